//! Status conditions as controllers of Karpenter's family keep them: a transition has a time, each says which
//! generation it saw, and `Ready` sums up those that it depends on.
//!
//! What must not enter: which conditions an object has.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use whittle_model::Timestamp;

use super::time::time;

/// The condition that sums up the others.
pub(super) const READY: &str = "Ready";

/// How a condition stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// Nobody knows yet.
    Unknown,
    /// The object is without this condition.
    Absent,
}

impl ConditionStatus {
    fn word(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown | Self::Absent => "Unknown",
        }
    }
}

/// A condition as it shall stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Its type, such as `SubnetsReady`.
    pub kind: String,
    /// How it stands.
    pub status: ConditionStatus,
    /// Why, in one word of capitals; of a condition that holds, its type unless something else is given.
    pub reason: String,
    /// Why, in words; may be empty.
    pub message: String,
}

impl Standing {
    /// A condition that holds.
    #[must_use]
    pub fn holds(kind: &str) -> Self {
        Self::new(kind, ConditionStatus::True, kind, "")
    }

    /// A condition that holds for a reason of its own.
    #[must_use]
    pub fn holds_for(kind: &str, reason: &str) -> Self {
        Self::new(kind, ConditionStatus::True, reason, reason)
    }

    /// A condition that does not hold.
    #[must_use]
    pub fn fails(kind: &str, reason: &str, message: &str) -> Self {
        Self::new(kind, ConditionStatus::False, reason, message)
    }

    /// A condition that nobody has looked at yet.
    #[must_use]
    pub fn awaited(kind: &str) -> Self {
        Self::unknown(kind, "AwaitingReconciliation", "object is awaiting reconciliation")
    }

    /// A condition of which nobody can tell yet.
    #[must_use]
    pub fn unknown(kind: &str, reason: &str, message: &str) -> Self {
        Self::new(kind, ConditionStatus::Unknown, reason, message)
    }

    /// No such condition.
    #[must_use]
    pub fn absent(kind: &str) -> Self {
        Self::new(kind, ConditionStatus::Absent, "", "")
    }

    fn new(kind: &str, status: ConditionStatus, reason: &str, message: &str) -> Self {
        Self { kind: kind.to_owned(), status, reason: reason.to_owned(), message: message.to_owned() }
    }
}

/// The conditions of one object while they are set.
pub(super) struct Conditions {
    all: Vec<Condition>,
    generation: i64,
    created: Time,
    now: Timestamp,
}

impl Conditions {
    /// Those the object has. `created` is when it was made: conditions that `Ready` depends on begin then.
    pub(super) fn new(live: Option<&Vec<Condition>>, generation: Option<i64>, created: Option<&Time>, now: Timestamp) -> Self {
        let created = created.cloned().unwrap_or_else(|| time(now));
        Self { all: live.cloned().unwrap_or_default(), generation: generation.unwrap_or(0), created, now }
    }

    /// The condition of this type.
    pub(super) fn get(&self, kind: &str) -> Option<&Condition> {
        self.all.iter().find(|c| c.type_ == kind)
    }

    /// Sets one; a change of status happened at `at`, or now.
    pub(super) fn set(&mut self, standing: &Standing, at: Option<Timestamp>) {
        if standing.status == ConditionStatus::Absent {
            self.all.retain(|c| c.type_ != standing.kind);
            return;
        }
        let status = standing.status.word();
        let place = self.all.iter().position(|c| c.type_ == standing.kind);
        let since = match place.map(|at| &self.all[at]) {
            Some(before) if before.status == status => before.last_transition_time.clone(),
            None if standing.status == ConditionStatus::Unknown && at.is_none() => self.created.clone(),
            Some(_) | None => time(at.unwrap_or(self.now)),
        };
        let condition = Condition {
            type_: standing.kind.clone(),
            status: status.to_owned(),
            reason: if standing.reason.is_empty() { standing.kind.clone() } else { standing.reason.clone() },
            message: standing.message.clone(),
            last_transition_time: since,
            observed_generation: Some(self.generation),
        };
        match place {
            Some(at) => self.all[at] = condition,
            None => self.all.push(condition),
        }
    }

    /// Sets those of `dependents` that are absent to awaited.
    pub(super) fn await_all(&mut self, dependents: &[&str]) {
        for kind in dependents {
            if self.get(kind).is_none() {
                self.set(&Standing::awaited(kind), None);
            }
        }
    }

    /// Sets `Ready` from `dependents`, each of which is there: true when all hold, false when one of this
    /// generation fails, unknown otherwise.
    pub(super) fn sum_up(&mut self, dependents: &[&str]) {
        let of_now = |c: &Condition| c.observed_generation == Some(self.generation);
        let mut open: Vec<&Condition> =
            self.all.iter().filter(|c| dependents.contains(&c.type_.as_str()) && (c.status != "True" || !of_now(c))).collect();
        if open.is_empty() {
            return self.set(&Standing::holds(READY), None);
        }
        open.sort_by(|a, b| b.last_transition_time.cmp(&a.last_transition_time));
        let message: Vec<String> = open.iter().map(|c| format!("{}={}", c.type_, c.status)).collect();
        let message = message.join(", ");
        let fails = open.iter().any(|c| c.status == "False" && of_now(c));
        let standing = if fails {
            Standing::fails(READY, "UnhealthyDependents", &message)
        } else {
            Standing::unknown(READY, "ReconcilingDependents", &message)
        };
        self.set(&standing, None);
    }

    /// All of them, the earliest first and `Ready` last; `None` when they say what `live` says.
    pub(super) fn changed(mut self, live: Option<&Vec<Condition>>) -> Option<Vec<Condition>> {
        self.all.sort_by(|a, b| (a.type_ == READY, &a.last_transition_time).cmp(&(b.type_ == READY, &b.last_transition_time)));
        let none = Vec::new();
        let live = live.unwrap_or(&none);
        let same = live.len() == self.all.len() && self.all.iter().all(|c| live.contains(c));
        (!same).then_some(self.all)
    }
}
