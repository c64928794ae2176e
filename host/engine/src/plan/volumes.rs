//! Volumes: where the volumes of a pod let it run, what is wrong with broken ones, and how many volumes of a driver
//! a node may hold. Volumes belong to pods, not to shapes: pods whose volumes demand the same are of one class.
//!
//! A driver that limits some node is one more dimension of the plan's amounts. A volume that one pod alone uses is part of
//! what the pod needs; one that several pods use is counted once on each node.

mod attach;
mod resolve;

use std::collections::{BTreeMap, BTreeSet};

use whittle_model::{PodKey, Requirement, Requirements};

use super::amounts::Amounts;
use super::classes::Member;
use crate::intern::Lookup;
use crate::world::World;
pub(crate) use attach::Attached;
pub(crate) use resolve::fault;
use resolve::{Mounted, volumes_of};

/// At most so many ways to place the volumes of one pod are looked at: with terms of one key each, zones as a rule, there
/// is a single one.
const MOST_ALTERNATIVES: usize = 64;

/// What the volumes of a pod demand.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Demand {
    /// The sets of requirements any one of which the node has to meet; none means anywhere.
    pub(crate) places: Vec<Requirements>,
    /// Volumes of its own, by limited driver; empty when there are none.
    own: Vec<i64>,
    /// Volumes that others use too: limited driver and number, ascending.
    pub(crate) shared: Vec<(usize, u32)>,
}

/// The volumes of a plan.
#[derive(Debug, Default)]
pub(crate) struct Volumes<'w> {
    demands: Vec<Demand>,
    /// Index among the demands; pods without volumes are not listed.
    of_pod: BTreeMap<&'w PodKey, u32>,
    attached: Attached<'w>,
}

impl<'w> Volumes<'w> {
    /// The volumes of these pods, and what is on the nodes already.
    pub(crate) fn new(world: &'w World, pods: &[Member<'w>]) -> Self {
        if world.storage.claims.is_empty() && world.storage.classes.is_empty() {
            return Self::default();
        }
        // A pod with a broken volume is refused before it comes here; where pods are only counted, it is left alone.
        let mounted = |pod: &Member<'w>| Some((pod.key, volumes_of(world, pod.key, pod.record).ok()?));
        let with = pods.iter().filter(|pod| !pod.record.volumes.is_empty());
        let all: Vec<(&PodKey, Vec<Mounted<'_>>)> = with.filter_map(mounted).collect();
        if all.is_empty() {
            return Self::default();
        }
        let attached = Attached::new(world, &all);
        let mut volumes = Self { demands: Vec::new(), of_pod: BTreeMap::new(), attached };
        let mut known: Lookup<Demand, u32> = Lookup::default();
        for (key, mounted) in all {
            let (own, shared) = volumes.attached.split(&mounted);
            let demand = Demand { places: places(&mounted), own, shared };
            if demand == Demand::default() {
                continue;
            }
            let number = known.get(&demand).copied().unwrap_or_else(|| {
                let number = u32::try_from(volumes.demands.len()).expect("fewer demands than pods");
                known.insert(demand.clone(), number);
                volumes.demands.push(demand);
                number
            });
            volumes.of_pod.insert(key, number);
        }
        volumes
    }

    /// What tells this pod's volumes from those of others; `None` when they demand nothing.
    pub(crate) fn demand_of(&self, key: &PodKey) -> Option<u32> {
        if self.of_pod.is_empty() { None } else { self.of_pod.get(key).copied() }
    }

    /// The demand of this number.
    pub(crate) fn demand(&self, number: u32) -> &Demand {
        &self.demands[number as usize]
    }

    /// How many volumes nodes hold.
    pub(crate) fn attached(&self) -> &Attached<'w> {
        &self.attached
    }
}

impl Demand {
    /// Each of `alternatives` with each place of the volumes, in order; those that contradict themselves are left out as long
    /// as others are left.
    pub(crate) fn along(&self, alternatives: &[Requirements]) -> Vec<Requirements> {
        if self.places.is_empty() {
            return alternatives.to_vec();
        }
        cross(alternatives, &self.places)
    }

    /// Adds what a pod of its own brings to each dimension from `first` on.
    pub(crate) fn add_own(&self, need: &mut Amounts, first: usize) {
        for (at, count) in self.own.iter().enumerate() {
            need[first + at] += count;
        }
    }
}

/// Both at once, in order, each once; contradictions only when there is nothing else.
fn cross(left: &[Requirements], right: &[Requirements]) -> Vec<Requirements> {
    let mut seen: BTreeSet<Requirements> = BTreeSet::new();
    let (mut agreeing, mut first_of_others) = (Vec::new(), None);
    for a in left {
        for b in right {
            let mut both = a.clone();
            both.add_all(b);
            if both.iter().any(Requirement::is_contradiction) {
                first_of_others.get_or_insert(both);
            } else if agreeing.len() < MOST_ALTERNATIVES && seen.insert(both.clone()) {
                agreeing.push(both);
            }
        }
    }
    if agreeing.is_empty() { first_of_others.into_iter().collect() } else { agreeing }
}

/// The places in which all volumes of a pod can be at once; none means anywhere.
fn places(mounted: &[Mounted<'_>]) -> Vec<Requirements> {
    let mut places: Vec<Requirements> = Vec::new();
    for volume in mounted.iter().filter(|volume| !volume.terms.is_empty()) {
        let terms = gathered(&volume.terms);
        places = if places.is_empty() { terms } else { cross(&places, &terms) };
    }
    // A volume that may be anywhere, such as a path on a node that is gone, demands nothing.
    if places.iter().any(Requirements::is_empty) { Vec::new() } else { places }
}

/// The same terms with those that list values of one and the same key made one.
fn gathered(terms: &[Requirements]) -> Vec<Requirements> {
    let mut gathered: Vec<Requirements> = Vec::new();
    for term in terms {
        let listed = |of: &Requirements| {
            let mut all = of.iter();
            let only = all.next().filter(|r| all.next().is_none() && r.operator() == whittle_model::Operator::In).cloned();
            only.filter(|r| r.bounds() == (None, None))
        };
        let Some(one) = listed(term) else {
            gathered.push(term.clone());
            continue;
        };
        let alike = gathered.iter_mut().find_map(|other| listed(other).filter(|o| o.key() == one.key()).map(|o| (other, o)));
        match alike {
            Some((other, known)) => {
                let values: Vec<&str> = known.values().iter().chain(one.values()).map(String::as_str).collect();
                *other = std::iter::once(Requirement::any_of(one.key(), &values)).collect();
            }
            None => gathered.push(term.clone()),
        }
    }
    gathered
}

#[cfg(test)]
#[path = "../../tests_unit/volumes.rs"]
mod tests;
