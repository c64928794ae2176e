//! The scores: integers from 0 to 100 by plugin and node, weighted and summed.
//! Weights: <https://kubernetes.io/docs/reference/scheduling/config/#scheduling-plugins> and the
//! default plugins of kube-scheduler's configuration API v1. Plugins whose score is the same on
//! every node in this model (NodeAffinity, InterPodAffinity, ImageLocality) are left out.

use whittle_model::{Effect, Taint, Toleration};

use super::Scheduler;
use super::identity::Identity;
use super::nodes::Nodes;
use super::shapes::Shapes;

const MOST: i64 = 100;
const TAINT_WEIGHT: i64 = 3;
const SPREAD_WEIGHT: i64 = 2;

/// `maxSkew` of the built-in default constraints: 3 by host name, 5 by zone, both `ScheduleAnyway`.
/// Source: <https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/#internal-default-constraints>.
const HOST_SKEW: f64 = 3.0;
const ZONE_SKEW: f64 = 5.0;

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

/// Natural logarithm of a number of at least one, by `+ - * /` only, so that it is the same on every
/// machine: `x = m x 2^e` with m near one, then `ln m = 2 artanh((m-1)/(m+1))` by its series.
/// Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 4.1.27.
fn ln(x: f64) -> f64 {
    let (mut mantissa, mut exponent) = (x, 0.0);
    while mantissa > std::f64::consts::SQRT_2 {
        mantissa /= 2.0;
        exponent += 1.0;
    }
    let ratio = (mantissa - 1.0) / (mantissa + 1.0);
    let square = ratio * ratio;
    // |ratio| is at most 0.172, so that thirteen terms reach below the last bit.
    let series = (0..13).rev().fold(0.0, |sum, term| sum * square + 1.0 / f64::from(2 * term + 1));
    exponent * std::f64::consts::LN_2 + 2.0 * ratio * series
}

/// PodTopologySpread's weight of a topology with `size` domains: fewer domains count less.
fn topology_weight(size: usize) -> f64 {
    ln((size + 2) as f64)
}

/// PodTopologySpread before it is normalised: for each constraint the matching pods of the domain
/// times its weight, plus `maxSkew - 1`; rounded. A node without the zone label has no zone part.
fn spread_raw(on_host: u32, host_weight: f64, in_zone: Option<u32>, zone_weight: f64) -> i64 {
    let host = f64::from(on_host) * host_weight + (HOST_SKEW - 1.0);
    let sum = in_zone.map_or(host, |count| host + (f64::from(count) * zone_weight + (ZONE_SKEW - 1.0)));
    (sum + 0.5) as i64
}

/// PodTopologySpread: turned round, so that few matching pods score high.
fn spread_score(raw: i64, least: i64, most: i64) -> i64 {
    if most == 0 { MOST } else { MOST * (most + least - raw) / most }
}

/// Where the pods are that a pod spreads with, for one search at a time.
#[derive(Debug, Clone, Default)]
pub(super) struct Spread {
    on_host: Vec<u32>,
    in_zone: Vec<u32>,
    zone_seen: Vec<bool>,
    raw: Vec<i64>,
}

impl Spread {
    /// Works out `raw` for each of the feasible nodes; `placed` are the matching pods by slot.
    fn measure(&mut self, placed: &[(u32, u32)], feasible: &[u32], nodes: &Nodes, shapes: &mut Shapes, shape: u32) {
        self.on_host.resize(nodes.len(), 0);
        self.in_zone.clear();
        self.zone_seen.clear();
        for (slot, count) in placed {
            self.on_host[*slot as usize] = *count;
            // Only nodes that the pod's own affinity admits count for the zone (node affinity
            // policy Honor); taints do not matter (node taints policy Ignore).
            if let Some(info) = nodes.info(*slot)
                && let Some(zone) = info.zone
                && shapes.affinity_met(shape, *slot, info)
            {
                grow(&mut self.in_zone, zone, 0);
                self.in_zone[zone as usize] += count;
            }
        }
        let (host_weight, zone_weight) = (topology_weight(feasible.len()), topology_weight(self.domains(feasible, nodes)));
        self.raw.clear();
        for slot in feasible {
            let in_zone = zone_of(nodes, *slot).map(|zone| self.in_zone.get(zone as usize).copied().unwrap_or(0));
            self.raw.push(spread_raw(self.on_host[*slot as usize], host_weight, in_zone, zone_weight));
        }
        for (slot, _) in placed {
            self.on_host[*slot as usize] = 0;
        }
    }

    /// The zones among feasible nodes; nodes without a zone are one more.
    fn domains(&mut self, feasible: &[u32], nodes: &Nodes) -> usize {
        let (mut domains, mut unzoned) = (0, 0);
        for slot in feasible {
            let Some(zone) = zone_of(nodes, *slot) else {
                unzoned = 1;
                continue;
            };
            grow(&mut self.zone_seen, zone, false);
            if !std::mem::replace(&mut self.zone_seen[zone as usize], true) {
                domains += 1;
            }
        }
        domains + unzoned
    }
}

fn zone_of(nodes: &Nodes, slot: u32) -> Option<u32> {
    nodes.info(slot).and_then(|info| info.zone)
}

fn grow<T: Copy>(values: &mut Vec<T>, at: u32, filler: T) {
    if values.len() <= at as usize {
        values.resize(at as usize + 1, filler);
    }
}

impl Scheduler {
    /// The feasible nodes of the last search that share the highest score, in the order they were
    /// found.
    pub(super) fn top_scored(&mut self, identity: &Identity) -> Vec<u32> {
        let feasible = std::mem::take(&mut self.feasible);
        let placed = self.groups.of(identity);
        if let Some(placed) = placed {
            self.spread.measure(placed, &feasible, &self.nodes, &mut self.shapes, identity.shape);
        }
        let spreads = placed.is_some();
        let raw = if spreads { self.spread.raw.as_slice() } else { &[] };
        let (least, most) = raw.iter().fold((i64::MAX, 0), |(least, most), raw| (least.min(*raw), most.max(*raw)));
        let slots = self.nodes.len();
        let mut cells = Vec::with_capacity(feasible.len());
        for slot in &feasible {
            let info = self.nodes.info(*slot).expect("a feasible node is known");
            cells.push(self.shapes.look(identity.shape, *slot, slots, self.nodes.entry(*slot), info));
        }
        let most_taints = cells.iter().map(|cell| cell.soft_taints).max().unwrap_or(0);
        let (mut best, mut tied) = (-1, Vec::new());
        for (at, (slot, cell)) in feasible.iter().zip(&cells).enumerate() {
            let spread = raw.get(at).map_or(0, |raw| spread_score(*raw, least, most));
            let taints = taint_score(cell.soft_taints, most_taints);
            let score = i64::from(cell.resources) + TAINT_WEIGHT * taints + SPREAD_WEIGHT * spread;
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

    #[test]
    fn logarithms_agree_with_published_values() {
        // Abramowitz and Stegun, table 4.2; ln 5000 is ln 5 + 3 ln 10.
        for (x, value) in [
            (1.0, 0.0),
            (2.0, std::f64::consts::LN_2),
            (3.0, 1.098_612_288_668_109_8),
            (5.0, 1.609_437_912_434_100_3),
            (10.0, std::f64::consts::LN_10),
            (1000.0, 6.907_755_278_982_137),
            (5000.0, 8.517_193_191_416_238),
        ] {
            let got = ln(x);
            assert!((got - value).abs() <= 4.0 * f64::EPSILON * value.max(1.0), "ln {x} is {got}, not {value}");
        }
    }

    #[test]
    fn spread_prefers_empty_hosts_and_zones() {
        // Three nodes in one zone: weights ln 5 = 1.609 and ln 3 = 1.099.
        let (host, zone) = (topology_weight(3), topology_weight(1));
        let raws = [0, 1, 2].map(|count| spread_raw(count, host, Some(3), zone));
        assert_eq!(raws, [9, 11, 13]); // 2 + 0 + 4 + 3.296 = 9.296; + 1.609 = 10.905; 12.515
        assert_eq!(raws.map(|raw| spread_score(raw, 9, 13)), [100, 84, 69]); // 1300/13, 1100/13, 900/13
        assert_eq!(spread_raw(0, host, None, zone), 2); // no zone label
        assert_eq!(spread_raw(2, host, None, zone), 5); // 2 + 3.219
        assert_eq!(spread_score(0, 0, 0), 100);
    }
}
