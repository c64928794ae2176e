//! Taints and the tolerations that answer them, as kube-scheduler reads them.

use serde::{Deserialize, Serialize};

/// What a taint does to pods that do not tolerate it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Effect {
    /// New pods stay away.
    NoSchedule,
    /// New pods stay away when they can.
    PreferNoSchedule,
    /// New pods stay away and running pods are evicted.
    NoExecute,
}

/// A mark on a node that repels pods.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Taint {
    /// Qualified name.
    pub key: String,
    /// Empty when absent.
    pub value: String,
    /// What it does.
    pub effect: Effect,
}

/// A pod's permission to ignore taints.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Toleration {
    /// `None` with `exists` tolerates every key.
    pub key: Option<String>,
    /// True for operator `Exists`: any value matches.
    pub exists: bool,
    /// Compared when `exists` is false.
    pub value: String,
    /// `None` tolerates every effect.
    pub effect: Option<Effect>,
}

impl Toleration {
    /// Whether this toleration answers `taint`.
    #[must_use]
    pub fn tolerates(&self, taint: &Taint) -> bool {
        self.effect.is_none_or(|effect| effect == taint.effect)
            && match &self.key {
                None => self.exists,
                Some(key) => *key == taint.key && (self.exists || self.value == taint.value),
            }
    }
}

impl Taint {
    /// A taint from its three parts.
    #[must_use]
    pub fn new(key: &str, value: &str, effect: Effect) -> Self {
        Self { key: key.to_owned(), value: value.to_owned(), effect }
    }

    /// Whether the taint keeps pods away that do not tolerate it (`PreferNoSchedule` does not).
    #[must_use]
    pub fn repels(&self) -> bool {
        self.effect != Effect::PreferNoSchedule
    }

    /// Whether any of `tolerations` answers this taint.
    #[must_use]
    pub fn tolerated_by(&self, tolerations: &[Toleration]) -> bool {
        tolerations.iter().any(|t| t.tolerates(self))
    }
}

/// The first taint that keeps a pod with these tolerations away, if any.
#[must_use]
pub fn untolerated<'a>(taints: &'a [Taint], tolerations: &[Toleration]) -> Option<&'a Taint> {
    taints.iter().find(|t| t.repels() && !t.tolerated_by(tolerations))
}

impl std::fmt::Display for Taint {
    /// As `kubectl taint` writes it: `key=value:Effect`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.key)?;
        if !self.value.is_empty() {
            write!(f, "={}", self.value)?;
        }
        write!(f, ":{:?}", self.effect)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toleration(key: Option<&str>, exists: bool, value: &str, effect: Option<Effect>) -> Toleration {
        Toleration { key: key.map(str::to_owned), exists, value: value.to_owned(), effect }
    }

    #[test]
    fn tolerations_answer_by_key_value_and_effect() {
        let taint = Taint::new("team", "a", Effect::NoSchedule);
        for (candidate, answers) in [
            (toleration(Some("team"), false, "a", None), true),
            (toleration(Some("team"), false, "b", None), false),
            (toleration(Some("team"), true, "", Some(Effect::NoSchedule)), true),
            (toleration(Some("team"), true, "", Some(Effect::NoExecute)), false),
            (toleration(None, true, "", None), true),
            (toleration(None, false, "a", None), false),
            (toleration(Some("other"), true, "", None), false),
        ] {
            assert_eq!(candidate.tolerates(&taint), answers, "{candidate:?}");
        }
        assert!(untolerated(&[Taint::new("soft", "", Effect::PreferNoSchedule)], &[]).is_none());
        assert_eq!(taint.to_string(), "team=a:NoSchedule");
    }
}
