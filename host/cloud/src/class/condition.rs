//! The conditions of an EC2NodeClass: what its status says of each thing that launches need.
//!
//! What must not enter: how a thing is found out.

use std::fmt;

/// What a condition is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConditionKind {
    /// Subnets were found.
    SubnetsReady,
    /// Security groups were found.
    SecurityGroupsReady,
    /// Machine images were found.
    AmisReady,
    /// The instance profile is there, or is named by the class.
    InstanceProfileReady,
    /// The placement group was found, or none is asked for.
    PlacementGroupReady,
    /// Capacity reservations were looked up.
    CapacityReservationsReady,
    /// What the class says is valid, and AWS would allow a launch from it.
    ValidationSucceeded,
    /// All the others.
    Ready,
}

impl ConditionKind {
    /// As the API spells it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SubnetsReady => "SubnetsReady",
            Self::SecurityGroupsReady => "SecurityGroupsReady",
            Self::AmisReady => "AMIsReady",
            Self::InstanceProfileReady => "InstanceProfileReady",
            Self::PlacementGroupReady => "PlacementGroupReady",
            Self::CapacityReservationsReady => "CapacityReservationsReady",
            Self::ValidationSucceeded => "ValidationSucceeded",
            Self::Ready => "Ready",
        }
    }
}

/// What a condition says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConditionStatus {
    /// It is so.
    True,
    /// It is not so.
    False,
    /// It could not be found out yet.
    Unknown,
}

impl ConditionStatus {
    /// As the API spells it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// One condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassCondition {
    /// What it is about.
    pub kind: ConditionKind,
    /// What it says.
    pub status: ConditionStatus,
    /// Why, in one word; the kind's name when true.
    pub reason: String,
    /// Why and what to do, for people; empty when true.
    pub message: String,
}

impl ClassCondition {
    pub(super) fn yes(kind: ConditionKind) -> Self {
        Self { kind, status: ConditionStatus::True, reason: kind.name().to_owned(), message: String::new() }
    }

    pub(super) fn no(kind: ConditionKind, reason: &str, message: impl Into<String>) -> Self {
        Self { kind, status: ConditionStatus::False, reason: reason.to_owned(), message: short(message.into()) }
    }

    pub(super) fn unknown(kind: ConditionKind, reason: &str, message: impl Into<String>) -> Self {
        Self { kind, status: ConditionStatus::Unknown, reason: reason.to_owned(), message: short(message.into()) }
    }

    /// The condition that sums up `others`.
    pub(super) fn ready(others: &[Self]) -> Self {
        let unhealthy: Vec<&Self> = others.iter().filter(|other| other.status != ConditionStatus::True).collect();
        let message = || unhealthy.iter().map(|c| format!("{}={}", c.kind.name(), c.status.name())).collect::<Vec<_>>().join(", ");
        let kind = ConditionKind::Ready;
        if unhealthy.is_empty() {
            Self::yes(kind)
        } else if unhealthy.iter().any(|c| c.status == ConditionStatus::False) {
            Self::no(kind, "UnhealthyDependents", message())
        } else {
            Self::unknown(kind, "UnhealthyDependents", message())
        }
    }
}

/// An answer that could not be read stands in its error as a whole.
const LONGEST: usize = 2000;

fn short(message: String) -> String {
    match message.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &message[..end]),
        None => message,
    }
}

impl fmt::Display for ClassCondition {
    /// `SubnetsReady=False SubnetsNotFound: no subnet ...`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.kind.name(), self.status.name())?;
        match (self.reason == self.kind.name(), self.message.is_empty()) {
            (true, true) => Ok(()),
            (false, true) => write!(f, " {}", self.reason),
            (true, false) | (false, false) => write!(f, " {}: {}", self.reason, self.message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_sums_up() {
        let (yes, kind) = (ClassCondition::yes(ConditionKind::SubnetsReady), ConditionKind::AmisReady);
        for (others, told) in [
            (vec![yes.clone()], "Ready=True"),
            (vec![yes.clone(), ClassCondition::unknown(kind, "X", "x")], "Ready=Unknown UnhealthyDependents: AMIsReady=Unknown"),
            (
                vec![ClassCondition::unknown(kind, "X", "x"), ClassCondition::no(ConditionKind::ValidationSucceeded, "X", "x")],
                "Ready=False UnhealthyDependents: AMIsReady=Unknown, ValidationSucceeded=False",
            ),
        ] {
            assert_eq!(ClassCondition::ready(&others).to_string(), told);
        }
    }

    #[test]
    fn a_message_has_an_end() {
        let told = |message: &str| ClassCondition::no(ConditionKind::Ready, "X", message).message;
        assert_eq!((told(&"é".repeat(2001)), told(&"é".repeat(2000))), ("é".repeat(2000) + "...", "é".repeat(2000)));
    }
}
