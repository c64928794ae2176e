//! The disruption controller and the eviction API: how many pods of each PodDisruptionBudget may go, and whether one may.
//! Source: <https://kubernetes.io/docs/tasks/run-application/configure-pdb/> and
//! <https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/>.

use std::collections::{BTreeMap, BTreeSet};

use whittle_model::{Duration, Event, LabelSelector, Pod, PodDisruptionBudget, PodKey, PodPhase};

use super::workloads::WorkloadId;
use super::{Happening, Reality};
use crate::scenario::Budget;

/// The disruption controller counts anew so long after a pod has changed.
const NOTICE: Duration = Duration(100);

/// Budgets as written, and as they stand.
#[derive(Debug, Default)]
pub(crate) struct Budgets {
    all: BTreeMap<PodKey, (Budget, Count)>,
    /// Whether a count is to come.
    due: bool,
}

/// How a budget stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Count {
    allowed: i32,
    healthy: i64,
    desired: i64,
}

/// A count or a percentage of `all`, rounded up.
fn scaled(text: &str, all: i64) -> i64 {
    match text.strip_suffix('%') {
        Some(percent) => percent.parse::<i64>().map_or(0, |percent| (all * percent + 99) / 100),
        None => text.parse().unwrap_or(0),
    }
}

impl Budget {
    fn selects(&self, pod: &Pod) -> bool {
        pod.key.namespace == self.key.namespace && self.selector.as_ref().is_some_and(|selector| selector.matches(&pod.labels))
    }

    /// Whether it lets no pod go, however many there are.
    fn never(&self) -> bool {
        let all = self.min_available.as_deref() == Some("100%");
        all || self.max_unavailable.as_deref().is_some_and(|most| most == "0" || most == "0%")
    }

    fn told(&self, allowed: i32) -> Event {
        Event::PodDisruptionBudget(Box::new(PodDisruptionBudget {
            key: self.key.clone(),
            selector: self.selector.clone().unwrap_or_else(LabelSelector::nothing),
            allowed,
            never: self.never(),
            always_allow_unready: self.always_allow_unready,
        }))
    }
}

/// Whether a pod counts as healthy.
fn healthy(pod: &Pod) -> bool {
    pod.ready && pod.phase == PodPhase::Running && !pod.deleting
}

impl Budgets {
    /// Everything a controller reads when it starts.
    pub(super) fn lists(&self) -> impl Iterator<Item = Event> {
        self.all.values().map(|(budget, count)| budget.told(count.allowed))
    }
}

impl Reality {
    /// A budget is new or changed. Nothing may go before it has been counted.
    pub(super) fn put_budget(&mut self, budget: Budget) {
        let event = budget.told(0);
        self.budgets.all.insert(budget.key.clone(), (budget, Count::default()));
        self.tell(event);
        self.count_later();
    }

    /// A pod or its workload has changed.
    pub(super) fn count_later(&mut self) {
        if !self.budgets.all.is_empty() && !self.budgets.due {
            self.budgets.due = true;
            self.later(NOTICE, Happening::Count);
        }
    }

    /// Counts all budgets, and tells what has changed.
    pub(super) fn count_budgets(&mut self) {
        self.budgets.due = false;
        let counted: Vec<(PodKey, Count)> = self.budgets.all.values().map(|(budget, _)| (budget.key.clone(), self.count(budget))).collect();
        for (key, count) in counted {
            let Some((budget, known)) = self.budgets.all.get_mut(&key) else { continue };
            let changed = known.allowed != count.allowed;
            *known = count;
            if changed {
                let event = budget.told(count.allowed);
                self.tell(event);
            }
        }
    }

    fn count(&self, budget: &Budget) -> Count {
        let pods: Vec<&Pod> = self.api.pods.values().filter(|pod| budget.selects(pod)).collect();
        let there = pods.iter().filter(|pod| healthy(pod)).count() as i64;
        // A plain count that must stay is held against the pods there are, all else against what their workloads want.
        let plain = budget.min_available.as_ref().is_some_and(|least| !least.ends_with('%'));
        let expected = if plain {
            pods.len() as i64
        } else {
            let workloads: BTreeSet<&WorkloadId> = pods.iter().filter_map(|pod| self.member_of.get(&pod.key)).collect();
            workloads.into_iter().filter_map(|id| self.workloads.get(id)).map(|managed| i64::from(managed.wanted())).sum()
        };
        let desired = match (&budget.min_available, &budget.max_unavailable) {
            (Some(least), _) => scaled(least, expected),
            (None, Some(most)) => (expected - scaled(most, expected)).max(0),
            (None, None) => (expected - 1).max(0),
        };
        let allowed = if expected > 0 { (there - desired).max(0) } else { 0 };
        Count { allowed: i32::try_from(allowed).unwrap_or(i32::MAX), healthy: there, desired }
    }

    /// The eviction API: whether a pod may go. If so it is one less from now on for its budget.
    pub(super) fn may_evict(&mut self, pod: &PodKey) -> bool {
        let Some(pod) = self.api.pods.get(pod).filter(|pod| !pod.terminal() && !pod.deleting && pod.phase != PodPhase::Pending) else {
            return true;
        };
        let mut theirs = self.budgets.all.values_mut().filter(|(budget, _)| budget.selects(pod));
        let Some((budget, count)) = theirs.next() else { return true };
        if theirs.next().is_some() {
            return false; // a pod of two budgets cannot be evicted
        }
        let enough = count.healthy >= count.desired && count.desired > 0;
        if !pod.ready && (budget.always_allow_unready || enough) {
            return true;
        }
        if count.allowed <= 0 {
            return false;
        }
        count.allowed -= 1;
        let event = budget.told(count.allowed);
        self.tell(event);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::scaled;

    #[test]
    fn percentages_are_rounded_up() {
        for (text, all, count) in [("2", 10, 2), ("50%", 5, 3), ("100%", 7, 7), ("1%", 7, 1), ("0%", 7, 0), ("50%", 0, 0)] {
            assert_eq!(scaled(text, all), count, "{text} of {all}");
        }
    }
}
