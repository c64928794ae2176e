//! PodTopologySpread as a score: nodes in whose domains few matching pods are score high.
//! Source: <https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/#internal-default-constraints>.

use whittle_model::keys;

use super::company::Constraint;
use super::counts::Counts;
use super::neighbours::{eligible, labelled};
use super::nodes::Nodes;
use super::score::MOST;
use super::shapes::Shapes;

/// The built-in default constraints, all `ScheduleAnyway`: key and `maxSkew`.
const DEFAULTS: [(&str, u32); 2] = [(keys::HOSTNAME, 3), (keys::ZONE, 5)];

/// Stands for a node that is not scored.
const IGNORED: i64 = -1;

/// The built-in default constraints.
pub(super) fn defaults(nodes: &mut Nodes) -> Vec<Constraint> {
    let constraint = |(key, max_skew): (&str, u32)| Constraint {
        key: nodes.topology(key),
        max_skew,
        min_domains: 1,
        audience: 0,
        honor_affinity: true,
        honor_taints: false,
        by_host: key == keys::HOSTNAME,
    };
    DEFAULTS.into_iter().map(constraint).collect()
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

/// What one constraint adds to the raw score of a node that has its label: matching pods of the domain times the weight,
/// plus `maxSkew - 1`.
fn part(count: u32, weight: f64, max_skew: u32) -> f64 {
    f64::from(count) * weight + (f64::from(max_skew) - 1.0)
}

/// Raw scores are rounded.
fn rounded(sum: f64) -> i64 {
    (sum + 0.5) as i64
}

/// Turned round, so that few matching pods score high.
fn turned(raw: i64, least: i64, most: i64) -> i64 {
    if most == 0 { MOST } else { MOST * (most + least - raw) / most }
}

/// The scores of one search.
#[derive(Debug, Clone, Default)]
pub(super) struct SpreadScores {
    scores: Vec<i64>,
    sums: Vec<f64>,
    ignored: Vec<bool>,
    on_host: Vec<u32>,
    /// By domain: pods there, and whether a feasible node is in it.
    in_domain: Vec<(u32, bool)>,
}

impl SpreadScores {
    /// The score of the `at`-th feasible node.
    pub fn at(&self, at: usize) -> i64 {
        self.scores.get(at).copied().unwrap_or(0)
    }

    /// Scores the feasible nodes. A pod's `own` constraints leave nodes out that lack one of the labels.
    #[expect(clippy::too_many_arguments, reason = "the books it reads, and what for")]
    pub fn measure<'c>(
        &mut self,
        constraints: &'c [Constraint],
        own: bool,
        counts: impl Fn(&'c Constraint) -> &'c Counts,
        shape: u32,
        feasible: &[u32],
        nodes: &Nodes,
        shapes: &mut Shapes,
    ) {
        self.scores.clear();
        if constraints.is_empty() {
            return;
        }
        self.ignored.clear();
        self.ignored.extend(feasible.iter().map(|slot| own && !labelled(constraints, *slot, nodes)));
        self.sums.clear();
        self.sums.resize(feasible.len(), 0.0);
        for constraint in constraints {
            let counts = counts(constraint);
            if constraint.by_host {
                self.add_by_host(constraint, counts, feasible, nodes);
            } else {
                let counted = |slot: u32, shapes: &mut Shapes| {
                    (!own || labelled(constraints, slot, nodes)) && eligible(constraint, shape, slot, nodes, shapes)
                };
                self.add_by_domain(constraint, counts, feasible, nodes, |slot| counted(slot, shapes));
            }
        }
        self.turn();
    }

    fn add_by_host(&mut self, constraint: &Constraint, counts: &Counts, feasible: &[u32], nodes: &Nodes) {
        self.on_host.resize(nodes.len().max(self.on_host.len()), 0);
        counts.iter().for_each(|(slot, count)| self.on_host[slot as usize] = count);
        let weight = topology_weight(self.ignored.iter().filter(|ignored| !**ignored).count());
        for (at, slot) in feasible.iter().enumerate() {
            if nodes.topologies.domain(constraint.key, *slot).is_some() {
                self.sums[at] += part(self.on_host[*slot as usize], weight, constraint.max_skew);
            }
        }
        counts.iter().for_each(|(slot, _)| self.on_host[slot as usize] = 0);
    }

    fn add_by_domain(
        &mut self,
        constraint: &Constraint,
        counts: &Counts,
        feasible: &[u32],
        nodes: &Nodes,
        mut counted: impl FnMut(u32) -> bool,
    ) {
        let domain = |slot: u32| nodes.topologies.domain(constraint.key, slot);
        self.in_domain.clear();
        self.in_domain.resize(nodes.topologies.size(constraint.key), (0, false));
        // Nodes without the label are one domain more, where they are not left out.
        let (mut domains, mut elsewhere) = (0, 0);
        for (slot, _) in feasible.iter().zip(&self.ignored).filter(|(_, ignored)| !**ignored) {
            match domain(*slot) {
                Some(at) if !self.in_domain[at].1 => {
                    self.in_domain[at].1 = true;
                    domains += 1;
                }
                Some(_) => {}
                None => elsewhere = 1,
            }
        }
        for (slot, count) in counts.iter() {
            if let Some(at) = domain(slot).filter(|at| self.in_domain[*at].1)
                && counted(slot)
            {
                self.in_domain[at].0 += count;
            }
        }
        let weight = topology_weight(domains + elsewhere);
        for (at, slot) in feasible.iter().enumerate() {
            if let Some(of) = domain(*slot) {
                self.sums[at] += part(self.in_domain[of].0, weight, constraint.max_skew);
            }
        }
    }

    fn turn(&mut self) {
        let raw = self.sums.iter().zip(&self.ignored).map(|(sum, ignored)| if *ignored { IGNORED } else { rounded(*sum) });
        self.scores.extend(raw);
        let scored = self.scores.iter().filter(|raw| **raw != IGNORED);
        let (least, most) = scored.fold((i64::MAX, 0), |(least, most), raw| (least.min(*raw), most.max(*raw)));
        for score in &mut self.scores {
            *score = if *score == IGNORED { 0 } else { turned(*score, least, most) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let raws = [0, 1, 2].map(|count| rounded(part(count, host, 3) + part(3, zone, 5)));
        assert_eq!(raws, [9, 11, 13]); // 2 + 0 + 4 + 3.296 = 9.296; + 1.609 = 10.905; 12.515
        assert_eq!(raws.map(|raw| turned(raw, 9, 13)), [100, 84, 69]); // 1300/13, 1100/13, 900/13
        assert_eq!(rounded(part(0, host, 3)), 2); // no zone label
        assert_eq!(rounded(part(2, host, 3)), 5); // 2 + 3.219
        assert_eq!(turned(0, 0, 0), 100);
    }
}
