//! Pods to be placed, gathered into classes: pods of one class are the same to every rule of
//! placement, so each rule is asked once for all of them.

use std::borrow::Cow;

use smallvec::SmallVec;
use whittle_model::{PodKey, Resources, Timestamp, Toleration};

use super::amounts::{Amounts, Dimensions};
use super::ports::PortUse;
use super::premises::Premises;
use super::pricer::Pricer;
use super::states::{ProfileId, States};
use super::tables::alternatives_of;
use super::topology::Topology;
use super::topology::asks::Aim;
use super::topology::class_rules::{Company, Level};
use crate::intern::Lookup;
use crate::world::{PodRecord, World};

/// A pod to be placed, and what is known of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Member<'w> {
    pub(crate) key: &'w PodKey,
    pub(crate) record: &'w PodRecord,
}

impl<'w> Member<'w> {
    /// The pod of this name, if there is one.
    pub(crate) fn known(world: &'w World, key: &'w PodKey) -> Option<Self> {
        world.pods.get(key).map(|record| Self { key, record })
    }

    /// Older pods come first, and of pods of one age one always comes first.
    fn age(&self) -> (Timestamp, &'w str) {
        (self.record.created, &self.record.uid)
    }
}

/// Pods that are the same to every rule of placement.
#[derive(Debug)]
pub(crate) struct Class<'w> {
    pub(crate) requests: &'w Resources,
    pub(crate) tolerations: &'w [Toleration],
    pub(crate) need: Amounts,
    /// The sets of requirements any one of which has to be met.
    pub(crate) profiles: SmallVec<[ProfileId; 1]>,
    /// The same without what its volumes demand: as documented, that is no matter of the domains it is counted in.
    pub(crate) own: SmallVec<[ProfileId; 1]>,
    /// What it asks for beyond that, and in which counts its pods are.
    pub(crate) company: Company,
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
        !self.ports.is_empty() || self.required().host.iter().any(|rule| rule.kind == Aim::Apart && rule.me)
    }

    /// Whether it and `other` exclude each other from a node.
    pub(crate) fn excludes(&self, other: &Self) -> bool {
        let refuses = |a: &Self, b: &Self| {
            a.required().host.iter().any(|rule| rule.kind == Aim::Apart && b.company.counts.binary_search(&rule.counter).is_ok())
        };
        refuses(self, other) || refuses(other, self) || self.ports.collides(&other.ports)
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

/// Consecutive pods of one class in the order of placement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) class: usize,
    pub(crate) count: usize,
}

/// What makes pods of one class: shape, what their volumes demand, terms that select them, and what policies look at.
type Sort = (u32, Option<u32>, (u32, u32), Vec<i64>);

/// Where classes come from.
pub(crate) struct Sorting<'a, 'w, 'p> {
    pub(crate) world: &'w World,
    pub(crate) dimensions: &'a Dimensions,
    pub(crate) premises: &'a Premises<'w>,
    pub(crate) topology: &'a mut Topology<'w>,
    pub(crate) states: &'a mut States,
    pub(crate) pricer: &'a mut Pricer<'p>,
    pub(crate) now: Timestamp,
}

impl<'w> Sorting<'_, 'w, '_> {
    /// Gathers pods into classes, ordered by CPU and memory descending, then by their first pod.
    pub(crate) fn classify(&mut self, pods: &[Member<'w>]) -> Vec<Class<'w>> {
        let mut sorted: Vec<(Sort, Vec<Member<'w>>)> = Vec::new();
        let mut known: Lookup<Sort, usize> = Lookup::default();
        for member in pods {
            let record = member.record;
            let stance = self.topology.stance(self.world, record);
            let split = self.pricer.askers.split(self.world, record, &mut self.pricer.words);
            let volumes = if record.volumes.is_empty() { None } else { self.premises.volumes.demand_of(member.key) };
            let sort = (record.shape, volumes, stance, split);
            match known.get(&sort) {
                Some(at) => sorted[*at].1.push(*member),
                None => {
                    known.insert(sort.clone(), sorted.len());
                    sorted.push((sort, vec![*member]));
                }
            }
        }
        sorted.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let mut classes: Vec<Class<'w>> = sorted.into_iter().map(|(sort, members)| self.class(sort, members)).collect();
        // What only stands for pods to come gives way to all that are there.
        let standing_in = |class: &Class<'w>| class.members.first().is_some_and(|m| self.world.buffers.holds(m.key));
        classes.sort_by(|a, b| {
            let size = || b.need[0].cmp(&a.need[0]).then(b.need[1].cmp(&a.need[1]));
            standing_in(a).cmp(&standing_in(b)).then_with(size).then_with(|| first(a).cmp(&first(b)))
        });
        classes
    }

    fn class(&mut self, (shape, volumes, stance, split): Sort, mut members: Vec<Member<'w>>) -> Class<'w> {
        members.sort_by_key(Member::age);
        let shape = self.world.shapes.value(shape);
        let mut need = self.dimensions.dense(&shape.requests);
        let mut alternatives = alternatives_of(&shape.affinity);
        let demand = volumes.map(|number| self.premises.volumes.demand(number));
        demand.iter().for_each(|demand| demand.add_own(&mut need, self.dimensions.volumes));
        let asker = self.pricer.asker(&members, &need, self.now);
        let own = alternatives.iter().map(|wanted| self.states.profile(wanted, asker)).collect();
        let mut shared = Vec::new();
        if let Some(demand) = demand {
            alternatives = demand.along(&alternatives);
            shared = demand.shared.iter().map(|(driver, volume)| (self.dimensions.volumes + driver, *volume)).collect();
        }
        let profiles = alternatives.iter().map(|wanted| self.states.profile(wanted, asker)).collect();
        let company = self.topology.company(stance, &alternatives, self.states, asker);
        let ports = self.premises.ports.used(&shape.host_ports);
        let (requests, tolerations) = (&shape.requests, &shape.tolerations[..]);
        Class { requests, tolerations, need, profiles, own, company, ports, shared, split, asker, members }
    }
}

fn first<'w>(class: &Class<'w>) -> Option<(Timestamp, &'w str)> {
    class.members.first().map(Member::age)
}

/// The order in which pods are placed: CPU descending, memory descending, creation, uid.
pub(crate) fn runs(classes: &[Class<'_>], left: &[usize]) -> Vec<Run> {
    runs_among(classes, left, &|_| true)
}

/// The same of the pods that are `standing`: of those the last ones of each class are left.
pub(crate) fn runs_among(classes: &[Class<'_>], left: &[usize], standing: &dyn Fn(&PodKey) -> bool) -> Vec<Run> {
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
            interleave(classes, left, start..end, standing, &mut runs);
        }
        start = end;
    }
    runs.retain(|run| run.count > 0);
    runs
}

/// Classes of one size take turns by the age of their pods.
fn interleave(
    classes: &[Class<'_>],
    left: &[usize],
    which: std::ops::Range<usize>,
    standing: &dyn Fn(&PodKey) -> bool,
    runs: &mut Vec<Run>,
) {
    let mut order: Vec<(Timestamp, &str, usize)> = Vec::new();
    for class in which {
        let before = order.len();
        let members = classes[class].members.iter().rev().filter(|m| standing(m.key));
        order.extend(members.take(left[class]).map(|m| (m.record.created, m.record.uid.as_str(), class)));
        debug_assert_eq!(order.len() - before, left[class], "all that are left are standing");
    }
    order.sort_unstable();
    for (_, _, class) in order {
        match runs.last_mut() {
            Some(run) if run.class == class => run.count += 1,
            _ => runs.push(Run { class, count: 1 }),
        }
    }
}
