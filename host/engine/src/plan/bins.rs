//! Room that is paid for already: nodes that exist and claims in flight. Placements are applied to
//! it and can be undone, so that a what-if needs no copy.

use std::collections::BTreeMap;

use whittle_model::{Labels, Node, NodeClaim, Pod, PodKey, Requirement, Requirements, Resources, Taint, keys, taint};

use super::amounts::{Amounts, Dimensions, add, times};
use super::classes::{Class, Terms, share_any};
use super::states::{States, offering_allows, type_allows};
use super::tables::alternatives;
use crate::world::World;

/// What is known of the labels of a node-to-be.
#[derive(Debug)]
enum Face<'w> {
    /// They are settled.
    Labels(&'w Labels),
    /// It is not bought yet: whatever these requirements admit.
    Requirements(&'w Requirements),
}

/// One node or claim in flight.
#[derive(Debug)]
pub(crate) struct Bin<'w> {
    pub(crate) name: &'w str,
    initialized: bool,
    face: Face<'w>,
    taints: Vec<&'w Taint>,
    free: Amounts,
    owned: Vec<u32>,
    matched: Vec<u32>,
}

/// One placement that can be undone.
#[derive(Debug)]
struct Entry {
    bin: usize,
    need: Amounts,
    count: i64,
    owned: usize,
    matched: usize,
}

/// All bins in order of use, with an undo log.
#[derive(Debug, Default)]
pub(crate) struct Bins<'w> {
    all: Vec<Bin<'w>>,
    numbers: BTreeMap<&'w str, usize>,
    log: Vec<Entry>,
}

impl<'w> Bins<'w> {
    /// The bins of a world: initialized nodes first, then by name.
    pub(crate) fn new(world: &'w World, dimensions: &Dimensions, terms: &mut Terms<'w>) -> Self {
        let mut all: Vec<Bin<'w>> = Vec::new();
        for node in world.nodes.values() {
            let claim = world.claim_of(node);
            if usable_node(node, claim) && claim.is_none_or(|c| !world.leaving.contains(&c.name)) && !world.pinned(&node.name) {
                all.push(node_bin(world, node, claim, dimensions, terms));
            }
        }
        for claim in world.claims.values() {
            if !claim.deleting && !world.leaving.contains(&claim.name) && world.node_of(claim).is_none() {
                all.push(claim_bin(world, claim, dimensions));
            }
        }
        all.sort_by(|a, b| b.initialized.cmp(&a.initialized).then_with(|| a.name.cmp(b.name)));
        let numbers = all.iter().enumerate().map(|(number, bin)| (bin.name, number)).collect();
        Self { all, numbers, log: Vec::new() }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// The bin of this number.
    pub(crate) fn get(&self, bin: usize) -> &Bin<'w> {
        &self.all[bin]
    }

    /// The number of the bin of this name.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.numbers.get(name).copied()
    }

    /// How many pods of `class` the bin could take, at most `most`, when they ask for `profile`.
    pub(crate) fn capacity(&self, bin: usize, class: &Class<'_>, wanted: &Requirements, most: usize) -> usize {
        let bin = &self.all[bin];
        let count = times(&class.need, &bin.free, most);
        if count == 0 || !bin.admits(class, wanted) {
            return 0;
        }
        if share_any(&class.owned, &bin.matched) || share_any(&class.matched, &bin.owned) {
            return 0;
        }
        if class.alone() { count.min(1) } else { count }
    }

    /// Puts `count` pods of `class` into a bin.
    pub(crate) fn place(&mut self, bin: usize, class: &Class<'_>, count: usize) {
        let count = i64::try_from(count).expect("fewer pods than 2^63");
        let target = &mut self.all[bin];
        self.log.push(Entry { bin, need: class.need.clone(), count, owned: target.owned.len(), matched: target.matched.len() });
        add(&mut target.free, &class.need, -count);
        enlist(&mut target.owned, &class.owned);
        enlist(&mut target.matched, &class.matched);
    }

    /// How many placements there are, to go back to.
    pub(crate) fn mark(&self) -> usize {
        self.log.len()
    }

    /// The bins of the placements since `mark`.
    pub(crate) fn since(&self, mark: usize) -> impl Iterator<Item = usize> {
        self.log[mark..].iter().map(|entry| entry.bin)
    }

    /// Takes back every placement, last first.
    pub(crate) fn undo(&mut self) {
        self.undo_to(0);
    }

    /// Takes back the placements since `mark`, last first.
    pub(crate) fn undo_to(&mut self, mark: usize) {
        for entry in self.log.drain(mark..).rev() {
            let bin = &mut self.all[entry.bin];
            add(&mut bin.free, &entry.need, entry.count);
            bin.owned.truncate(entry.owned);
            bin.matched.truncate(entry.matched);
        }
    }

    /// Places as many of `left` pods of a class as there is room for, under the first set of
    /// requirements that finds any; returns bin and count.
    pub(crate) fn fill(&mut self, class: &Class<'_>, states: &States, mut left: usize) -> Vec<(usize, usize)> {
        let mut placed = Vec::new();
        for profile in &class.profiles {
            for bin in 0..self.all.len() {
                if left == 0 {
                    return placed;
                }
                let count = self.capacity(bin, class, states.wanted(*profile), left);
                if count > 0 {
                    self.place(bin, class, count);
                    placed.push((bin, count));
                    left -= count;
                }
            }
        }
        placed
    }
}

impl Bin<'_> {
    /// Whether taints and labels let pods of `class` in that ask for `wanted`.
    fn admits(&self, class: &Class<'_>, wanted: &Requirements) -> bool {
        if self.taints.iter().any(|t| t.repels() && !t.tolerated_by(class.tolerations)) {
            return false;
        }
        match self.face {
            Face::Labels(labels) => wanted.met_by(labels),
            Face::Requirements(have) => certain(have, wanted),
        }
    }
}

/// Whether every node that `have` admits meets `wanted`.
fn certain(have: &Requirements, wanted: &Requirements) -> bool {
    wanted.iter().all(|want| match have.get(want.key()) {
        // What the type or offering brings under a key of theirs is not known yet.
        None => want.admits_absence() && !keys::well_known(want.key()),
        Some(have) if have.operator() == whittle_model::Operator::In => have.values().iter().all(|v| want.allows(v)),
        Some(have) => have.intersect(want) == *have,
    })
}

fn enlist(list: &mut Vec<u32>, more: &[u32]) {
    for number in more {
        if !list.contains(number) {
            list.push(*number);
        }
    }
}

/// Whether pods may be sent to a node at all.
fn usable_node(node: &Node, claim: Option<&NodeClaim>) -> bool {
    let going = node.deleting || claim.is_some_and(|c| c.deleting);
    let managed = node.labels.contains_key(keys::NODE_POOL);
    // A node of ours whose claim is not known may be on its way out: nothing is planned on it.
    !going && !node.cordoned && (claim.is_some() || !managed)
}

fn node_bin<'w>(world: &'w World, node: &'w Node, claim: Option<&'w NodeClaim>, dimensions: &Dimensions, terms: &mut Terms<'w>) -> Bin<'w> {
    let initialized = claim.is_none_or(|c| c.status.initialized.is_some());
    // Until a node is initialized its kubelet may not have told all it has: the claim knows.
    let allocatable = match claim {
        Some(claim) if !initialized => &claim.status.allocatable,
        _ => &node.allocatable,
    };
    let startup = claim.map_or(&[][..], |c| &c.startup_taints[..]);
    let passing = |t: &&Taint| !initialized && (keys::ephemeral_taint(&t.key) || startup.contains(t));
    // Until it is registered it does not bear what its claim will give it.
    let (labels, taints) = match claim.filter(|c| c.status.registered.is_none()) {
        Some(claim) => (&claim.labels, &claim.taints),
        None => (&node.labels, &node.taints),
    };
    let taints: Vec<&Taint> = taints.iter().filter(|t| !passing(t)).collect();
    let usage = world.usage.get(&node.name);
    let mut free = dimensions.dense(allocatable);
    if let Some(usage) = usage {
        add(&mut free, &dimensions.dense(&usage.total), -1);
    }
    reserve_for_daemons(world, labels, &taints, usage.map(|u| &u.daemons), dimensions, &mut free);
    let mut bin = Bin { name: &node.name, initialized, face: Face::Labels(labels), taints, free, owned: Vec::new(), matched: Vec::new() };
    if !terms.is_empty() {
        for record in usage.iter().flat_map(|u| u.pods.iter()).filter_map(|key| world.pods.get(key)) {
            enlist(&mut bin.owned, &terms.owned(world, record));
            enlist(&mut bin.matched, &terms.matched(world, record));
        }
    }
    bin
}

/// A claim whose node has not joined. Until it is bought, it counts as the smallest of the types it
/// may become: what is planned on it must fit whichever is bought.
fn claim_bin<'w>(world: &'w World, claim: &'w NodeClaim, dimensions: &Dimensions) -> Bin<'w> {
    let taints: Vec<&Taint> = claim.taints.iter().collect();
    let launched = claim.status.launched.is_some();
    let (face, free) = if launched {
        let mut free = dimensions.dense(&claim.status.allocatable);
        reserve_for_daemons(world, &claim.labels, &taints, None, dimensions, &mut free);
        (Face::Labels(&claim.labels), free)
    } else {
        (Face::Requirements(&claim.requirements), smallest(world, claim, &taints, dimensions))
    };
    Bin { name: &claim.name, initialized: false, face, taints, free, owned: Vec::new(), matched: Vec::new() }
}

fn smallest(world: &World, claim: &NodeClaim, taints: &[&Taint], dimensions: &Dimensions) -> Amounts {
    let names = claim.requirements.get(keys::INSTANCE_TYPE).map(|r| r.values().clone()).unwrap_or_default();
    let catalog = world.catalog(&claim.node_class);
    let daemons = possible_daemons(world, claim, taints, dimensions);
    let mut least: Option<Amounts> = None;
    for instance_type in names.iter().filter_map(|name| catalog?.get(name)) {
        let mut room = dimensions.dense(&instance_type.allocatable);
        for (share, alternatives) in &daemons {
            let there = |a: &Requirements| {
                type_allows(instance_type, a) && instance_type.offerings.iter().any(|o| o.available && offering_allows(o, a))
            };
            if alternatives.iter().any(there) {
                add(&mut room, share, -1);
            }
        }
        match &mut least {
            None => least = Some(room),
            Some(least) => least.iter_mut().zip(&room).for_each(|(l, r)| *l = (*l).min(*r)),
        }
    }
    least.unwrap_or_else(|| dimensions.dense(&Resources::default()))
}

/// Daemons that may come to run on what the claim becomes: what each takes, and the requirements of
/// which one has to be met.
fn possible_daemons(world: &World, claim: &NodeClaim, taints: &[&Taint], dimensions: &Dimensions) -> Vec<(Amounts, Vec<Requirements>)> {
    let mut daemons = Vec::new();
    for pod in world.daemon_sets.values().map(|set| &set.template).filter(|pod| tolerated(taints, pod)) {
        let agrees = |wanted: &Requirements| {
            wanted.iter().all(|w| settled(claim, w)) && claim.requirements.compatible(wanted, &keys::well_known).is_ok()
        };
        let together = alternatives(pod).into_iter().filter(agrees);
        let together = together.map(|wanted| {
            let mut both = claim.requirements.clone();
            both.add_all(&wanted);
            both
        });
        daemons.push((dimensions.dense(&pod.requests), together.collect()));
    }
    daemons
}

/// Whether the claim's own labels, where no type or offering has a say, meet what is wanted.
fn settled(claim: &NodeClaim, wanted: &Requirement) -> bool {
    keys::well_known(wanted.key()) || claim.labels.get(wanted.key()).map_or_else(|| wanted.admits_absence(), |v| wanted.allows(v))
}

/// Takes from `free` what daemons will still ask for on a node with these labels and taints; those
/// of `present` have their pod there already.
fn reserve_for_daemons(
    world: &World,
    labels: &Labels,
    taints: &[&Taint],
    present: Option<&BTreeMap<PodKey, usize>>,
    dimensions: &Dimensions,
    free: &mut [i64],
) {
    for daemon_set in world.daemon_sets.values() {
        let pod = &daemon_set.template;
        let missing = !present.is_some_and(|p| p.contains_key(&daemon_set.key)) && tolerated(taints, pod);
        if missing && alternatives(pod).iter().any(|a| a.met_by(labels)) {
            add(free, &dimensions.dense(&pod.requests), -1);
        }
    }
}

fn tolerated(taints: &[&Taint], pod: &Pod) -> bool {
    taints.iter().all(|t| !t.repels() || t.tolerated_by(&pod.tolerations))
}

/// Whether a taint keeps pods with these tolerations off, for the refusals of a plan.
pub(crate) fn repelling<'t>(taints: &'t [Taint], class: &Class<'_>) -> Option<&'t Taint> {
    taint::untolerated(taints, class.tolerations)
}

/// Pods already meant for a bin: nominated to its node, or planned for its claim.
pub(crate) fn meant_for<'w>(world: &'w World, key: &PodKey) -> Option<&'w str> {
    let record = world.pods.get(key)?;
    if let Some(node) = &record.nominated {
        return Some(node);
    }
    let claim = world.claims.get(world.assigned.claim(key)?)?;
    Some(world.node_of(claim).map_or(&claim.name, |node| &node.name))
}
