//! Pods to be placed, gathered into classes: pods of one class are the same to every rule of
//! placement, so each rule is asked once for all of them.

use std::collections::BTreeMap;

use smallvec::SmallVec;
use whittle_model::{PodKey, Resources, Timestamp, Toleration};

use super::amounts::{Amounts, Dimensions};
use super::pricer::Pricer;
use super::states::{ProfileId, States};
use super::tables::alternatives_of;
use super::topology::Topology;
use super::topology::asks::Aim;
use super::topology::class_rules::{Company, Level};
use crate::world::World;

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
    /// The sets of requirements any one of which has to be met.
    pub(crate) profiles: SmallVec<[ProfileId; 1]>,
    /// What it asks for beyond that, and in which counts its pods are.
    pub(crate) company: Company,
    /// What tells its pods from others of their shape for policies: see [`Askers::split_value`].
    pub(crate) split: Vec<i64>,
    /// Its asker.
    pub(crate) asker: u32,
    /// Its pods by creation, then uid.
    pub(crate) members: Vec<Member<'w>>,
}

impl Class<'_> {
    /// What it asks for once every preference is given up.
    pub(crate) fn required(&self) -> &Level {
        self.company.levels.last().expect("every class has a level")
    }

    /// Whether its pods look at company beyond who must not share their node, or count for those that
    /// do by the alternative that they take.
    pub(crate) fn sociable(&self) -> bool {
        let asks = |l: &Level| l.stage > 0 || !l.keyed.is_empty() || l.host.iter().any(|rule| rule.kind != Aim::Apart);
        self.company.levels.iter().any(asks) || (self.profiles.len() > 1 && !self.company.counts.is_empty())
    }

    /// Whether two of its pods exclude each other from a node.
    pub(crate) fn alone(&self) -> bool {
        self.required().host.iter().any(|rule| rule.kind == Aim::Apart && rule.me)
    }

    /// Whether it and `other` exclude each other from a node.
    pub(crate) fn excludes(&self, other: &Self) -> bool {
        let refuses = |a: &Self, b: &Self| {
            a.required().host.iter().any(|rule| rule.kind == Aim::Apart && b.company.counts.binary_search(&rule.counter).is_ok())
        };
        refuses(self, other) || refuses(other, self)
    }
}

/// Consecutive pods of one class in the order of placement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) class: usize,
    pub(crate) count: usize,
}

/// What makes pods of one class: shape, terms that select them, and what policies look at.
type Sort = (u32, (u32, u32), Vec<i64>);

/// Where classes come from.
pub(crate) struct Sorting<'a, 'w, 'p> {
    pub(crate) world: &'w World,
    pub(crate) dimensions: &'a Dimensions,
    pub(crate) topology: &'a mut Topology<'w>,
    pub(crate) states: &'a mut States,
    pub(crate) pricer: &'a mut Pricer<'p>,
    pub(crate) now: Timestamp,
}

impl<'w> Sorting<'_, 'w, '_> {
    /// Gathers pods into classes, ordered by CPU and memory descending, then by their first pod.
    pub(crate) fn classify(&mut self, pods: &[&'w PodKey]) -> Vec<Class<'w>> {
        let mut sorted: BTreeMap<Sort, Vec<Member<'w>>> = BTreeMap::new();
        for key in pods {
            let Some(record) = self.world.pods.get(*key) else { continue };
            let member = Member { created: record.created, uid: &record.uid, key };
            let stance = self.topology.stance(self.world, record);
            let split = self.pricer.askers.split(self.world, record, &mut self.pricer.words);
            sorted.entry((record.shape, stance, split)).or_default().push(member);
        }
        let mut classes: Vec<Class<'w>> = sorted.into_iter().map(|(sort, members)| self.class(sort, members)).collect();
        classes.sort_by(|a, b| b.need[0].cmp(&a.need[0]).then(b.need[1].cmp(&a.need[1])).then_with(|| first(a).cmp(&first(b))));
        classes
    }

    fn class(&mut self, (shape, stance, split): Sort, mut members: Vec<Member<'w>>) -> Class<'w> {
        members.sort_by(|a, b| (a.created, a.uid).cmp(&(b.created, b.uid)));
        let shape = self.world.shapes.value(shape);
        let need = self.dimensions.dense(&shape.requests);
        let asker = self.pricer.asker(&members, &need, self.now);
        let alternatives = alternatives_of(&shape.affinity);
        let profiles = alternatives.iter().map(|wanted| self.states.profile(wanted, asker)).collect();
        let company = self.topology.company(stance, &alternatives, self.states, asker);
        Class { requests: &shape.requests, tolerations: &shape.tolerations, need, profiles, company, split, asker, members }
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
