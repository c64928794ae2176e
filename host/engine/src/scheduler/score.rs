//! The scores: integers from 0 to 100 by plugin and node, weighted and summed.
//! Weights: <https://kubernetes.io/docs/reference/scheduling/config/#scheduling-plugins> and the
//! default plugins of kube-scheduler's configuration API v1. ImageLocality is left out.

use whittle_model::{Effect, Taint, Toleration};

use super::Scheduler;
use super::company::Constraint;
use super::counts::Counts;
use super::identity::Identity;
use super::neighbours::Books;

pub(super) const MOST: i64 = 100;
const TAINT_WEIGHT: i64 = 3;
const SPREAD_WEIGHT: i64 = 2;
const NODE_AFFINITY_WEIGHT: i64 = 2;
const POD_AFFINITY_WEIGHT: i64 = 2;

/// NodeResourcesFit with `LeastAllocated`: the mean over CPU and memory of the free share of each,
/// in whole hundredths rounded down at every step. A resource the node has none of is left out.
/// Source: <https://kubernetes.io/docs/reference/config-api/kube-scheduler-config.v1/#kubescheduler-config-k8s-io-v1-ScoringStrategy>.
pub(super) fn least_allocated(requested: [i64; 2], allocatable: [i64; 2]) -> i64 {
    let (mut sum, mut weights) = (0, 0);
    for (requested, allocatable) in requested.into_iter().zip(allocatable).filter(|(_, allocatable)| *allocatable > 0) {
        if requested <= allocatable {
            sum += allocatable.saturating_sub(requested).saturating_mul(MOST) / allocatable;
        }
        weights += 1;
    }
    if weights == 0 { 0 } else { sum / weights }
}

/// How even CPU and memory are used: `(1 - deviation) x 100` rounded down, where the standard
/// deviation of two fractions is half their difference. BalancedAllocation before Kubernetes 1.36.
pub(super) fn balance(requested: [i64; 2], allocatable: [i64; 2]) -> i64 {
    if allocatable.contains(&0) {
        return MOST;
    }
    let fraction = |at: usize| (requested[at] as f64 / allocatable[at] as f64).min(1.0);
    let difference = fraction(0) - fraction(1);
    let deviation = if difference < 0.0 { -difference / 2.0 } else { difference / 2.0 };
    ((1.0 - deviation) * MOST as f64) as i64
}

/// BalancedAllocation since Kubernetes 1.36: 75 when the pod leaves the balance as it was, up to
/// 100 when it makes it better, down to 50 when it makes it worse.
/// Source: <https://github.com/kubernetes/kubernetes/pull/135573>.
pub(super) fn balance_change(before: [i64; 2], after: [i64; 2], allocatable: [i64; 2]) -> i64 {
    MOST / 2 + (MOST / 2 + balance(after, allocatable) - balance(before, allocatable)) / 2
}

/// The `PreferNoSchedule` taints that are not tolerated.
pub(super) fn soft_taints(taints: &[Taint], tolerations: &[Toleration]) -> u8 {
    let untolerated = taints.iter().filter(|taint| taint.effect == Effect::PreferNoSchedule && !taint.tolerated_by(tolerations));
    u8::try_from(untolerated.count()).unwrap_or(u8::MAX)
}

/// TaintToleration: the fewer soft taints the better, against the most that any node has.
fn taint_score(soft_taints: u8, most: u8) -> i64 {
    if most == 0 { MOST } else { MOST - MOST * i64::from(soft_taints) / i64::from(most) }
}

/// NodeAffinity: the weights that are met against the most that any node meets.
fn preferred_score(weights: u32, most: u32) -> i64 {
    if most == 0 { 0 } else { MOST * i64::from(weights) / i64::from(most) }
}

impl Scheduler {
    /// The feasible nodes of the last search that share the highest score, in the order they were
    /// found.
    pub(super) fn top_scored(&mut self, identity: &Identity) -> Vec<u32> {
        let feasible = std::mem::take(&mut self.feasible);
        self.measure_spread(identity, &feasible);
        let books = Books { nodes: &self.nodes, crowds: &self.crowds, companies: &self.companies };
        self.affinity_scores.measure(identity, &books, &feasible);
        let slots = self.nodes.len();
        let mut cells = Vec::with_capacity(feasible.len());
        for slot in &feasible {
            let info = self.nodes.info(*slot).expect("a feasible node is known");
            cells.push(self.shapes.look(identity.shape, *slot, slots, self.nodes.entry(*slot), info));
        }
        let most_taints = cells.iter().map(|cell| cell.soft_taints).max().unwrap_or(0);
        let most_preferred = cells.iter().map(|cell| cell.preferred).max().unwrap_or(0);
        let (mut best, mut tied) = (-1, Vec::new());
        for (at, (slot, cell)) in feasible.iter().zip(&cells).enumerate() {
            let score = i64::from(cell.resources)
                + TAINT_WEIGHT * taint_score(cell.soft_taints, most_taints)
                + NODE_AFFINITY_WEIGHT * preferred_score(cell.preferred, most_preferred)
                + SPREAD_WEIGHT * self.spread_scores.at(at)
                + POD_AFFINITY_WEIGHT * self.affinity_scores.at(at);
            if score > best {
                best = score;
                tied.clear();
            }
            if score == best {
                tied.push(*slot);
            }
        }
        self.feasible = feasible;
        tied
    }

    /// PodTopologySpread by the pod's own constraints, or by the default ones if it has none at all.
    fn measure_spread(&mut self, identity: &Identity, feasible: &[u32]) {
        let company = self.companies.get(identity.company);
        let (constraints, own) = match (company.soft.as_slice(), company.hard.is_empty(), identity.group) {
            ([], true, Some(_)) => (self.default_spread.as_slice(), false),
            (soft, _, _) => (soft, true),
        };
        let none = Counts::default();
        let grouped = identity.group.and_then(|group| self.groups.get(group as usize)).unwrap_or(&none);
        let crowds = &self.crowds;
        let counts = |constraint: &Constraint| if own { crowds.there(constraint.audience) } else { grouped };
        self.spread_scores.measure(constraints, own, counts, identity.shape, feasible, &self.nodes, &mut self.shapes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: i64 = 1 << 30;

    #[test]
    fn least_allocated_is_the_mean_free_share() {
        for (requested, allocatable, score) in [
            ([0, 0], [4000, 16 * GIB], 100),
            ([1000, 4 * GIB], [4000, 16 * GIB], 75),  // (75 + 75) / 2
            ([1000, 12 * GIB], [4000, 16 * GIB], 50), // (75 + 25) / 2
            ([3000, 5 * GIB], [4000, 16 * GIB], 46),  // (25 + 68.75 -> 68) / 2 = 46.5
            ([4000, 16 * GIB], [4000, 16 * GIB], 0),  // full
            ([5000, 4 * GIB], [4000, 16 * GIB], 37),  // over: 0, then (0 + 75) / 2
            ([1000, 4 * GIB], [0, 16 * GIB], 75),     // no CPU: memory alone
            ([1000, 4 * GIB], [0, 0], 0),
        ] {
            assert_eq!(least_allocated(requested, allocatable), score, "{requested:?} of {allocatable:?}");
        }
    }

    #[test]
    fn balance_is_one_less_half_the_difference() {
        for (requested, allocatable, score) in [
            ([0, 0], [4000, 16 * GIB], 100),
            ([1000, 4 * GIB], [4000, 16 * GIB], 100), // 0.25 and 0.25
            ([3000, 4 * GIB], [4000, 16 * GIB], 75),  // 0.75 and 0.25
            ([1000, 16 * GIB], [4000, 16 * GIB], 62), // 0.25 and 1: 62.5
            ([8000, 0], [4000, 16 * GIB], 50),        // more than all counts as all
            ([1000, 4 * GIB], [0, 16 * GIB], 100),    // one resource has no deviation
        ] {
            assert_eq!(balance(requested, allocatable), score, "{requested:?} of {allocatable:?}");
        }
    }

    #[test]
    fn balance_change_is_75_when_nothing_changes() {
        let room = [4000, 16 * GIB];
        for (before, after, score) in [
            ([0, 0], [1000, 4 * GIB], 75),
            ([0, 0], [4000, 0], 50),            // 100 to 50: (50 + 50 - 100) / 2 = 0
            ([4000, 0], [4000, 16 * GIB], 100), // 50 to 100: (50 + 100 - 50) / 2 = 50
            ([0, 0], [3000, 4 * GIB], 62),      // 100 to 75: 25 / 2 = 12
        ] {
            assert_eq!(balance_change(before, after, room), score, "{before:?} to {after:?}");
        }
    }

    #[test]
    fn soft_taints_score_against_the_most() {
        for (taints, most, score) in [(0, 0, 100), (0, 2, 100), (1, 2, 50), (2, 2, 0), (1, 3, 67), (2, 3, 34)] {
            assert_eq!(taint_score(taints, most), score, "{taints} of {most}");
        }
    }
}
