//! Whether launches of a NodePool come to nodes, as its condition `NodeRegistrationHealthy` says. What must not enter:
//! anything that follows from that.

use std::collections::VecDeque;

use whittle_cluster::write::RegistrationHealth;

/// As many outcomes are remembered; Karpenter's.
const REMEMBERED: usize = 4;
/// As many failures among them are too many; Karpenter's.
const TOO_MANY: usize = 2;

/// What a pool was, so that outcomes of what it is no longer do not count: its uid, its generation, that of its class.
pub type Version = (String, Option<i64>, Option<i64>);

/// How the last launches of a pool went, the oldest first: why one came to no node.
#[derive(Debug, Clone, Default)]
pub struct Health {
    of: Option<Version>,
    last: VecDeque<Option<(&'static str, &'static str)>>,
}

impl Health {
    /// A launch came to a node.
    pub fn came(&mut self) {
        self.push(None);
    }

    /// A claim went because of this. Says nothing of launches when it went for another reason.
    pub fn went(&mut self, reason: &str) {
        match reason {
            "RegistrationTimeout" => self.push(Some(("RegistrationFailed", "Failed to register node"))),
            "LaunchTimeout" => self.push(Some(("LaunchFailed", "Failed to launch instance"))),
            _ => {}
        }
    }

    fn push(&mut self, outcome: Option<(&'static str, &'static str)>) {
        self.last.push_back(outcome);
        while self.last.len() > REMEMBERED {
            self.last.pop_front();
        }
    }

    /// What is to be said of the pool as it is now. `said` is what its condition says already: a successor of the
    /// controller that wrote it goes on from there.
    pub fn verdict(&mut self, now: Version, said: Option<bool>) -> RegistrationHealth {
        match &self.of {
            Some(of) if *of == now => {}
            Some(_) => {
                self.last.clear();
                self.of = Some(now);
            }
            None => {
                self.of = Some(now);
                let failed = Some(("RegistrationFailed", "Failed to register node"));
                match said {
                    Some(true) => self.last.push_front(None),
                    Some(false) => (0..TOO_MANY).for_each(|_| self.last.push_front(failed)),
                    None => {}
                }
                self.last.truncate(REMEMBERED);
            }
        }
        let failures = self.last.iter().flatten();
        match (self.last.len(), failures.clone().count(), failures.last()) {
            (0, ..) => RegistrationHealth::Unchanged,
            (_, TOO_MANY.., Some((reason, message))) => {
                RegistrationHealth::Unhealthy { reason: (*reason).to_owned(), message: (*message).to_owned() }
            }
            _ => RegistrationHealth::Healthy,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(generation: i64) -> Version {
        ("uid".to_owned(), Some(generation), Some(1))
    }

    fn word(health: &RegistrationHealth) -> &str {
        match health {
            RegistrationHealth::Unchanged => "-",
            RegistrationHealth::Healthy => "healthy",
            RegistrationHealth::Unhealthy { reason, .. } => reason,
        }
    }

    #[test]
    fn two_of_the_last_four_that_fail_are_too_many() {
        for (outcomes, wanted) in [
            ("", "-"),
            ("n", "healthy"),
            ("r", "healthy"),
            ("rr", "RegistrationFailed"),
            ("nlnl", "LaunchFailed"),
            ("rrnn", "RegistrationFailed"),
            ("rrnnn", "healthy"),
            ("o", "-"),
        ] {
            let mut health = Health::default();
            for outcome in outcomes.chars() {
                match outcome {
                    'n' => health.came(),
                    'r' => health.went("RegistrationTimeout"),
                    'l' => health.went("LaunchTimeout"),
                    _ => health.went("Expired"),
                }
            }
            assert_eq!(word(&health.verdict(version(1), None)), wanted, "{outcomes}");
        }
    }

    #[test]
    fn a_changed_pool_begins_anew_and_a_successor_goes_on() {
        let mut health = Health::default();
        health.went("RegistrationTimeout");
        health.went("RegistrationTimeout");
        assert_eq!(word(&health.verdict(version(1), None)), "RegistrationFailed");
        assert_eq!(word(&health.verdict(version(2), Some(false))), "-");
        health.came();
        assert_eq!(word(&health.verdict(version(2), None)), "healthy");

        let mut after_a_start = Health::default();
        after_a_start.came();
        assert_eq!(word(&after_a_start.verdict(version(1), Some(false))), "RegistrationFailed", "one of three is not enough");
        after_a_start.came();
        after_a_start.came();
        assert_eq!(word(&after_a_start.verdict(version(1), Some(false))), "healthy");
    }
}
