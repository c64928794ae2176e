//! Pods to be placed, gathered into classes: pods of one class are the same to every rule of
//! placement, so each rule is asked once for all of them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use smallvec::SmallVec;
use whittle_model::{PodAffinityTerm, PodKey, Resources, Timestamp, Toleration};

use super::amounts::{Amounts, Dimensions};
use super::ports::PortUse;
use super::premises::Premises;
use super::pricer::Pricer;
use super::states::{ProfileId, States};
use super::tables::alternatives_of;
use crate::intern::Lookup;
use crate::world::{PodRecord, World};

/// A pod of a class.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Member<'w> {
    pub(crate) created: Timestamp,
    pub(crate) uid: &'w str,
    pub(crate) key: &'w PodKey,
}

/// Pods that are the same to every rule of placement.
#[derive(Debug)]
pub(crate) struct Class<'w> {
    pub(crate) requests: &'w Resources,
    pub(crate) tolerations: &'w [Toleration],
    pub(crate) need: Amounts,
    /// The sets of requirements any one of which will do, in order of preference.
    pub(crate) profiles: SmallVec<[ProfileId; 1]>,
    /// Anti-affinity terms it has, and those that select it: ascending numbers.
    pub(crate) owned: Vec<u32>,
    pub(crate) matched: Vec<u32>,
    /// The host ports it takes.
    pub(crate) ports: PortUse,
    /// Volumes that its pods share with each other or with other pods: dimension and number.
    pub(crate) shared: Vec<(usize, u32)>,
    /// What tells its pods from others of their shape for policies: see [`Askers::split_value`].
    pub(crate) split: Vec<i64>,
    /// Its asker.
    pub(crate) asker: u32,
    /// Its pods by creation, then uid.
    pub(crate) members: Vec<Member<'w>>,
}

impl Class<'_> {
    /// Whether two of its pods exclude each other.
    pub(crate) fn alone(&self) -> bool {
        share_any(&self.owned, &self.matched) || !self.ports.is_empty()
    }

    /// Whether it and `other` exclude each other.
    pub(crate) fn excludes(&self, other: &Self) -> bool {
        share_any(&self.owned, &other.matched) || share_any(&self.matched, &other.owned) || self.ports.collides(&other.ports)
    }

    /// What its next pod needs where these volumes are attached already.
    pub(crate) fn need_beside<'c>(&'c self, attached: &[u32]) -> Cow<'c, [i64]> {
        let mut need = Cow::Borrowed(&self.need[..]);
        for (dimension, _) in self.shared.iter().filter(|(_, volume)| !attached.contains(volume)) {
            need.to_mut()[*dimension] += 1;
        }
        need
    }
}

/// Whether two lists share a number.
pub(crate) fn share_any(a: &[u32], b: &[u32]) -> bool {
    a.iter().any(|n| b.contains(n))
}

/// The required anti-affinity terms of a plan, and which pods they select.
#[derive(Debug)]
pub(crate) struct Terms<'w> {
    terms: Vec<&'w PodAffinityTerm>,
    matched: Lookup<u32, Vec<u32>>,
}

impl<'w> Terms<'w> {
    /// All terms that any pod of the world has.
    pub(crate) fn new(world: &'w World) -> Self {
        let mut shapes: BTreeSet<u32> = BTreeSet::new();
        let mut all: BTreeSet<&PodAffinityTerm> = BTreeSet::new();
        for record in world.pods.values() {
            if !record.terminal() && shapes.insert(record.shape) {
                all.extend(&world.shape_of(record).anti_affinity);
            }
        }
        Self { terms: all.into_iter().collect(), matched: Lookup::default() }
    }

    /// Whether no pod excludes any other.
    pub(crate) fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// The numbers of the terms this pod has.
    pub(crate) fn owned(&self, world: &World, record: &PodRecord) -> Vec<u32> {
        let own = &world.shape_of(record).anti_affinity;
        let mut numbers: Vec<u32> = own.iter().filter_map(|t| self.terms.binary_search(&t).ok()).map(number).collect();
        numbers.sort_unstable();
        numbers
    }

    /// The numbers of the terms that select this pod.
    pub(crate) fn matched(&mut self, world: &World, record: &PodRecord) -> Vec<u32> {
        if let Some(known) = self.matched.get(&record.identity) {
            return known.clone();
        }
        let identity = world.identity_of(record);
        let selects = |t: &&&PodAffinityTerm| t.namespaces.contains(&identity.namespace) && t.selector.matches(&identity.labels);
        let numbers: Vec<u32> = self.terms.iter().enumerate().filter(|(_, t)| selects(t)).map(|(n, _)| number(n)).collect();
        self.matched.insert(record.identity, numbers.clone());
        numbers
    }
}

fn number(index: usize) -> u32 {
    u32::try_from(index).expect("fewer terms than pods")
}

/// Consecutive pods of one class in the order of placement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) class: usize,
    pub(crate) count: usize,
}

/// What makes pods of one class: shape, what their volumes demand, terms that select them, and what policies look at.
type Sort = (u32, Option<u32>, Vec<u32>, Vec<i64>);

/// Where classes come from.
pub(crate) struct Sorting<'a, 'w, 'p> {
    pub(crate) world: &'w World,
    pub(crate) dimensions: &'a Dimensions,
    pub(crate) premises: &'a Premises<'w>,
    pub(crate) terms: &'a mut Terms<'w>,
    pub(crate) states: &'a mut States,
    pub(crate) pricer: &'a mut Pricer<'p>,
    pub(crate) now: Timestamp,
}

impl<'w> Sorting<'_, 'w, '_> {
    /// Gathers pods into classes, ordered by CPU and memory descending, then by their first pod.
    pub(crate) fn classify(&mut self, pods: &[&'w PodKey]) -> Vec<Class<'w>> {
        let mut sorted: BTreeMap<Sort, Vec<Member<'w>>> = BTreeMap::new();
        let mut plain: BTreeMap<u32, Vec<Member<'w>>> = BTreeMap::new();
        for key in pods {
            let Some(record) = self.world.pods.get(*key) else { continue };
            let member = Member { created: record.created, uid: &record.uid, key };
            let matched = if self.terms.is_empty() { Vec::new() } else { self.terms.matched(self.world, record) };
            let split = self.pricer.askers.split(self.world, record, &mut self.pricer.words);
            let volumes = if record.volumes.is_empty() { None } else { self.premises.volumes.demand_of(key) };
            if volumes.is_none() && matched.is_empty() && split.is_empty() {
                plain.entry(record.shape).or_default().push(member);
            } else {
                sorted.entry((record.shape, volumes, matched, split)).or_default().push(member);
            }
        }
        let all = plain.into_iter().map(|(shape, members)| ((shape, None, Vec::new(), Vec::new()), members)).chain(sorted);
        let mut classes: Vec<Class<'w>> = all.map(|(sort, members)| self.class(sort, members)).collect();
        classes.sort_by(|a, b| b.need[0].cmp(&a.need[0]).then(b.need[1].cmp(&a.need[1])).then_with(|| first(a).cmp(&first(b))));
        classes
    }

    fn class(&mut self, (shape, volumes, matched, split): Sort, mut members: Vec<Member<'w>>) -> Class<'w> {
        members.sort_by(|a, b| (a.created, a.uid).cmp(&(b.created, b.uid)));
        let shape = self.world.shapes.value(shape);
        let owned =
            members.first().and_then(|m| self.world.pods.get(m.key)).map(|record| self.terms.owned(self.world, record)).unwrap_or_default();
        let mut need = self.dimensions.dense(&shape.requests);
        let mut alternatives = alternatives_of(&shape.affinity);
        let mut shared = Vec::new();
        if let Some(demand) = volumes.map(|number| self.premises.volumes.demand(number)) {
            demand.add_own(&mut need, self.dimensions.volumes);
            alternatives = demand.along(&alternatives);
            shared = demand.shared.iter().map(|(driver, volume)| (self.dimensions.volumes + driver, *volume)).collect();
        }
        let asker = self.pricer.asker(&members, &need, self.now);
        let profiles = alternatives.iter().map(|wanted| self.states.profile(wanted, asker)).collect();
        let (requests, tolerations) = (&shape.requests, &shape.tolerations[..]);
        let ports = self.premises.ports.used(&shape.host_ports);
        Class { requests, tolerations, need, profiles, owned, matched, ports, shared, split, asker, members }
    }
}

fn first<'w>(class: &Class<'w>) -> Option<(Timestamp, &'w str)> {
    class.members.first().map(|m| (m.created, m.uid))
}

/// The order in which pods are placed: CPU descending, memory descending, creation, uid.
pub(crate) fn runs(classes: &[Class<'_>], left: &[usize]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut start = 0;
    while start < classes.len() {
        let size = (classes[start].need[0], classes[start].need[1]);
        let mut end = start + 1;
        while end < classes.len() && (classes[end].need[0], classes[end].need[1]) == size {
            end += 1;
        }
        if end - start == 1 {
            runs.push(Run { class: start, count: left[start] });
        } else {
            interleave(classes, left, start..end, &mut runs);
        }
        start = end;
    }
    runs.retain(|run| run.count > 0);
    runs
}

/// Classes of one size take turns by the age of their pods. The pods that are left of a class are
/// its last ones.
fn interleave(classes: &[Class<'_>], left: &[usize], which: std::ops::Range<usize>, runs: &mut Vec<Run>) {
    let mut order: Vec<(Timestamp, &str, usize)> = which
        .flat_map(|c| {
            let members = &classes[c].members;
            members[members.len() - left[c]..].iter().map(move |m| (m.created, m.uid, c))
        })
        .collect();
    order.sort_unstable();
    for (_, _, class) in order {
        match runs.last_mut() {
            Some(run) if run.class == class => run.count += 1,
            _ => runs.push(Run { class, count: 1 }),
        }
    }
}
