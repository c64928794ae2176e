//! What pods ask of the company they keep, from the strictest form to what is left once every
//! preference is given up.

use whittle_model::{PodAffinityTerm, Preferences, Requirements, TopologySpread, keys};

use super::Topology;
use super::tally::CounterId;
use super::who::Who;
use crate::world::{Shape, World};

/// What a rule demands of a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Aim {
    /// Its count exceeds the least of all by at most `skew`.
    Spread {
        /// `maxSkew`.
        skew: u32,
        /// With fewer domains the least is 0.
        min_domains: u32,
    },
    /// Pods that count are there.
    Near,
    /// None are.
    Apart,
}

/// A rule before it is known who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) counter: CounterId,
    pub(crate) kind: Aim,
}

/// One step of giving up.
#[derive(Debug, Clone)]
pub(crate) struct Stage<'w> {
    /// The preferred node affinity that is in force.
    pub(crate) node: Option<&'w Requirements>,
    pub(crate) rules: Vec<Wanted>,
    /// Whether taints that only ask pods to stay away are ignored.
    pub(crate) lenient: bool,
}

/// What pods of a shape in a namespace ask for.
#[derive(Debug, Default)]
pub(crate) struct Asks<'w> {
    /// The strictest first, at least one.
    pub(crate) stages: Vec<Stage<'w>>,
    /// Counters of pods that have its required anti-affinity terms.
    pub(crate) holds: Vec<CounterId>,
}

/// Preferences that are still in force, each list from its heaviest on.
struct Left<'w, 's> {
    near: Vec<&'w PodAffinityTerm>,
    away: Vec<&'w PodAffinityTerm>,
    nodes: Vec<&'w Requirements>,
    anyway: Vec<&'s TopologySpread>,
    lenient: bool,
}

fn heaviest_first<T>(weighted: &[(i32, T)]) -> Vec<&T> {
    let mut sorted: Vec<&(i32, T)> = weighted.iter().collect();
    sorted.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
    sorted.into_iter().map(|(_, term)| term).collect()
}

impl Left<'_, '_> {
    /// Gives up one more; false when nothing is left to give up.
    fn relax(&mut self) -> bool {
        if !self.near.is_empty() {
            self.near.remove(0);
        } else if !self.away.is_empty() {
            self.away.remove(0);
        } else if !self.nodes.is_empty() {
            self.nodes.remove(0);
        } else if !self.anyway.is_empty() {
            self.anyway.remove(0);
        } else if !self.lenient {
            self.lenient = true;
        } else {
            return false;
        }
        true
    }
}

/// Whether pods of a shape ask for company, or to be without, or have preferences.
pub(super) fn asks_anything(shape: &Shape) -> bool {
    !(shape.spread.is_empty() && shape.pod_affinity.is_empty() && shape.anti_affinity.is_empty())
        || shape.preferences != Preferences::default()
}

impl<'w> Topology<'w> {
    /// What pods of a shape in a namespace ask for; `spread` are its constraints or the cluster's.
    pub(super) fn read(&mut self, world: &'w World, shape: &'w Shape, namespace: &str, spread: &[TopologySpread]) -> Asks<'w> {
        let respect = world.settings.respect_preferences;
        let mut left = Left {
            near: if respect { heaviest_first(&shape.preferences.near) } else { Vec::new() },
            away: if respect { heaviest_first(&shape.preferences.away) } else { Vec::new() },
            nodes: if respect { heaviest_first(&shape.preferences.nodes) } else { Vec::new() },
            anyway: if respect { spread.iter().filter(|s| !s.required).collect() } else { Vec::new() },
            lenient: !self.soft_taints,
        };
        let mut asks = Asks::default();
        let mut required: Vec<Wanted> = spread.iter().filter(|s| s.required).map(|s| self.spread(shape, namespace, s)).collect();
        let all = Who::of_terms(world, shape.pod_affinity.iter());
        for term in &shape.pod_affinity {
            required.push(Wanted { counter: self.selected(&term.topology_key, all.clone()), kind: Aim::Near });
        }
        for term in &shape.anti_affinity {
            let who = Who::of_terms(world, [term].into_iter());
            asks.holds.push(self.owned(&term.topology_key, who.clone()));
            required.push(Wanted { counter: self.selected(&term.topology_key, who), kind: Aim::Apart });
        }
        loop {
            let mut rules = required.clone();
            rules.extend(left.anyway.iter().map(|s| self.spread(shape, namespace, s)));
            for (terms, kind) in [(&left.near, Aim::Near), (&left.away, Aim::Apart)] {
                for term in terms {
                    rules.push(Wanted { counter: self.selected(&term.topology_key, Who::of_terms(world, [*term].into_iter())), kind });
                }
            }
            asks.stages.push(Stage { node: left.nodes.first().copied(), rules, lenient: left.lenient });
            if !left.relax() {
                break;
            }
        }
        asks
    }

    fn spread(&mut self, shape: &'w Shape, namespace: &str, spread: &TopologySpread) -> Wanted {
        let affinity = spread.honor_affinity.then_some(&shape.affinity);
        let tolerations = spread.honor_taints.then_some(&shape.tolerations[..]);
        let filter = self.filter(affinity, tolerations);
        let who = self.whos.number(Who::within(namespace, &spread.selector));
        let key = self.key(keys::normalized(&spread.topology_key));
        let kind = Aim::Spread { skew: spread.max_skew.max(1), min_domains: spread.min_domains.unwrap_or(0) };
        Wanted { counter: self.counter(super::Counter { key, means: super::Means::Selected(who), filter }), kind }
    }
}
