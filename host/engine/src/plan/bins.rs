//! Room that is paid for already: nodes that exist and claims in flight. Placements are applied to
//! it and can be undone, so that a what-if needs no copy.

use std::collections::BTreeMap;

use whittle_model::{Effect, Labels, Node, NodeClaim, PodKey, Requirement, Requirements, Resources, Taint, keys, taint};

use super::amounts::{Amounts, Dimensions, add, fits, times};
use super::classes::{Class, Terms, share_any};
use super::daemons::Daemon;
use super::ports::PortSet;
use super::premises::Premises;
use super::states::{States, offering_allows, type_allows};
use crate::report::Obstacle;
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
    /// The host ports that are taken.
    barred: PortSet,
    /// Volumes on it that pods to be placed share.
    volumes: Vec<u32>,
}

/// One placement that can be undone.
#[derive(Debug)]
struct Entry {
    bin: usize,
    taken: Amounts,
    owned: usize,
    matched: usize,
    barred: PortSet,
    volumes: usize,
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
    pub(crate) fn new(world: &'w World, dimensions: &Dimensions, premises: &Premises<'w>, terms: &mut Terms<'w>) -> Self {
        let ground = Ground { world, dimensions, premises };
        let mut all: Vec<Bin<'w>> = Vec::new();
        for node in world.nodes.values() {
            let claim = world.claim_of(node);
            if usable_node(node, claim) && claim.is_none_or(|c| !world.leaving.contains(&c.name)) && !world.pinned(&node.name) {
                all.push(ground.node_bin(node, claim, terms));
            }
        }
        for claim in world.claims.values() {
            if !claim.deleting && !world.leaving.contains(&claim.name) && world.node_of(claim).is_none() {
                all.push(ground.claim_bin(claim));
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
        let count = bin.times(class, most);
        if count == 0 || class.ports.takes.meets(&bin.barred) || !bin.admits(class, wanted) {
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
        let mut taken = Amounts::from_elem(0, target.free.len());
        add(&mut taken, &class.need, count);
        let (owned, matched, barred, volumes) = (target.owned.len(), target.matched.len(), target.barred.clone(), target.volumes.len());
        for (dimension, volume) in &class.shared {
            if !target.volumes.contains(volume) {
                target.volumes.push(*volume);
                taken[*dimension] += 1;
            }
        }
        target.barred.join(&class.ports.bars);
        add(&mut target.free, &taken, -1);
        self.log.push(Entry { bin, taken, owned, matched, barred, volumes });
        enlist(&mut target.owned, &class.owned);
        enlist(&mut target.matched, &class.matched);
    }

    /// Takes back every placement, last first.
    pub(crate) fn undo(&mut self) {
        for entry in self.log.drain(..).rev() {
            let bin = &mut self.all[entry.bin];
            add(&mut bin.free, &entry.taken, 1);
            bin.barred = entry.barred;
            bin.volumes.truncate(entry.volumes);
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

/// The first rule that keeps a class from a bin, in its shortest form: bins are many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Block {
    Taint,
    Labels,
    Port,
    /// The dimensions, as bits.
    Resources(u64),
    Pods,
}

impl Bins<'_> {
    /// What keeps pods of `class` from the bins: how many of them by which rule first, the most frequent first.
    pub(crate) fn obstacles(&self, class: &Class<'_>, states: &States, dimensions: &Dimensions) -> Vec<(usize, Obstacle)> {
        let mut counts: BTreeMap<Block, usize> = BTreeMap::new();
        for bin in &self.all {
            *counts.entry(bin.block(class, states)).or_default() += 1;
        }
        let named = |block| match block {
            Block::Taint => Obstacle::Taint,
            Block::Labels => Obstacle::Labels,
            Block::Port => Obstacle::Port,
            Block::Pods => Obstacle::Pods,
            Block::Resources(bits) => {
                let names = dimensions.names().iter().enumerate().filter(|(at, _)| bits >> (at % 64) & 1 == 1);
                Obstacle::Resources(names.map(|(_, name)| name.clone()).collect())
            }
        };
        let mut all: Vec<(usize, Obstacle)> = counts.into_iter().map(|(block, count)| (count, named(block))).collect();
        all.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        all
    }
}

impl Bin<'_> {
    fn block(&self, class: &Class<'_>, states: &States) -> Block {
        if self.repels(class) {
            return Block::Taint;
        }
        if !class.profiles.iter().any(|profile| self.suits(states.wanted(*profile))) {
            return Block::Labels;
        }
        if class.ports.takes.meets(&self.barred) {
            return Block::Port;
        }
        let need = class.need_beside(&self.volumes);
        let short = need.iter().zip(&self.free).enumerate().filter(|(_, (need, free))| **need > 0 && need > free);
        let bits = short.fold(0, |bits, (at, _)| bits | 1 << (at % 64));
        if bits == 0 { Block::Pods } else { Block::Resources(bits) }
    }

    /// How many pods of `class` have room, at most `most`.
    fn times(&self, class: &Class<'_>, most: usize) -> usize {
        if class.shared.is_empty() {
            return times(&class.need, &self.free, most);
        }
        let (first, mut free) = (class.need_beside(&self.volumes), self.free.clone());
        if !fits(&first, &free) {
            return 0;
        }
        free.iter_mut().zip(first.iter().zip(&class.need)).for_each(|(free, (first, need))| *free -= first - need);
        times(&class.need, &free, most)
    }

    fn repels(&self, class: &Class<'_>) -> bool {
        self.taints.iter().any(|t| t.repels() && !t.tolerated_by(class.tolerations))
    }

    /// Whether its labels are what is asked for.
    fn suits(&self, wanted: &Requirements) -> bool {
        match self.face {
            Face::Labels(labels) => wanted.met_by(labels),
            Face::Requirements(have) => certain(have, wanted),
        }
    }

    /// Whether taints and labels let pods of `class` in that ask for `wanted`.
    fn admits(&self, class: &Class<'_>, wanted: &Requirements) -> bool {
        !self.repels(class) && self.suits(wanted)
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

/// As documented: a taint that a node's start brings is no obstacle while it starts; a node that has gone silent evicts.
fn ephemeral(taint: &Taint) -> bool {
    keys::ephemeral_taint(&taint.key) && !(taint.key == keys::UNREACHABLE_TAINT && taint.effect == Effect::NoExecute)
}

/// What bins are made from.
struct Ground<'a, 'w> {
    world: &'w World,
    dimensions: &'a Dimensions,
    premises: &'a Premises<'w>,
}

impl<'w> Ground<'_, 'w> {
    fn node_bin(&self, node: &'w Node, claim: Option<&'w NodeClaim>, terms: &mut Terms<'w>) -> Bin<'w> {
        let initialized = claim.is_none_or(|c| c.status.initialized.is_some());
        // Until a node is initialized its kubelet may not have told all it has: the claim knows.
        let allocatable = match claim {
            Some(claim) if !initialized => &claim.status.allocatable,
            _ => &node.allocatable,
        };
        let startup = claim.map_or(&[][..], |c| &c.startup_taints[..]);
        let passing = |t: &&Taint| !initialized && (ephemeral(t) || startup.contains(t));
        // Until it is registered it does not bear what its claim will give it.
        let (labels, taints) = match claim.filter(|c| c.status.registered.is_none()) {
            Some(claim) => (&claim.labels, &claim.taints),
            None => (&node.labels, &node.taints),
        };
        let taints: Vec<&Taint> = taints.iter().filter(|t| !passing(t)).collect();
        let usage = self.world.usage.get(&node.name);
        let mut free = self.dimensions.dense(allocatable);
        let volumes = self.premises.volumes.attached().room_of_node(self.world, node, &mut free, self.dimensions.volumes);
        if let Some(usage) = usage {
            add(&mut free, &self.dimensions.dense(&usage.total), -1);
        }
        let face = Face::Labels(labels);
        let mut bin = Bin {
            name: &node.name,
            initialized,
            face,
            taints,
            free,
            owned: Vec::new(),
            matched: Vec::new(),
            barred: PortSet::default(),
            volumes,
        };
        self.reserve_for_daemons(&mut bin, labels, usage.map(|u| &u.daemons));
        let running = || usage.iter().flat_map(|u| u.pods.iter()).filter_map(|key| self.world.pods.get(key));
        if !self.premises.ports.is_empty() {
            for record in running() {
                bin.barred.join(&self.premises.ports.barred(&self.world.shape_of(record).host_ports));
            }
        }
        if !terms.is_empty() {
            for record in running() {
                enlist(&mut bin.owned, &terms.owned(self.world, record));
                enlist(&mut bin.matched, &terms.matched(self.world, record));
            }
        }
        bin
    }

    /// A claim whose node has not joined. Until it is bought, it counts as the smallest of the types it
    /// may become: what is planned on it must fit whichever is bought.
    fn claim_bin(&self, claim: &'w NodeClaim) -> Bin<'w> {
        let taints: Vec<&Taint> = claim.taints.iter().collect();
        let launched = claim.status.launched.is_some();
        let face = if launched { Face::Labels(&claim.labels) } else { Face::Requirements(&claim.requirements) };
        let (free, barred) = (self.dimensions.dense(&claim.status.allocatable), PortSet::default());
        let mut bin = Bin {
            name: &claim.name,
            initialized: false,
            face,
            taints,
            free,
            owned: Vec::new(),
            matched: Vec::new(),
            barred,
            volumes: Vec::new(),
        };
        if launched {
            self.premises.volumes.attached().room_of_type(&claim.status.instance_type, &mut bin.free, self.dimensions.volumes);
            self.reserve_for_daemons(&mut bin, &claim.labels, None);
        } else {
            self.shrink_to_smallest(&mut bin, claim);
        }
        bin
    }

    fn shrink_to_smallest(&self, bin: &mut Bin<'_>, claim: &NodeClaim) {
        let names = claim.requirements.get(keys::INSTANCE_TYPE).map(|r| r.values().clone()).unwrap_or_default();
        let catalog = self.world.catalog(&claim.node_class);
        let daemons = self.possible_daemons(claim, &bin.taints);
        let mut least: Option<Amounts> = None;
        for instance_type in names.iter().filter_map(|name| catalog?.get(name)) {
            let mut room = self.dimensions.dense(&instance_type.allocatable);
            self.premises.volumes.attached().room_of_type(&instance_type.name, &mut room, self.dimensions.volumes);
            for (daemon, alternatives) in &daemons {
                let there = |a: &Requirements| {
                    type_allows(instance_type, a) && instance_type.offerings.iter().any(|o| o.available && offering_allows(o, a))
                };
                if alternatives.iter().any(there) {
                    add(&mut room, &self.dimensions.dense(&daemon.requests), -1);
                    bin.barred.join(&self.premises.ports.barred(daemon.ports));
                }
            }
            match &mut least {
                None => least = Some(room),
                Some(least) => least.iter_mut().zip(&room).for_each(|(l, r)| *l = (*l).min(*r)),
            }
        }
        bin.free = least.unwrap_or_else(|| self.dimensions.dense(&Resources::default()));
    }

    /// Daemons that may come to run on what the claim becomes, and the requirements of which one has to be met.
    fn possible_daemons(&self, claim: &NodeClaim, taints: &[&Taint]) -> Vec<(&Daemon<'w>, Vec<Requirements>)> {
        let mut daemons = Vec::new();
        for daemon in self.premises.daemons.iter().filter(|daemon| daemon.tolerates(taints.iter().copied())) {
            let agrees = |wanted: &&Requirements| {
                wanted.iter().all(|w| settled(claim, w)) && claim.requirements.compatible(wanted, &keys::well_known).is_ok()
            };
            let together = daemon.wanted_ahead.iter().filter(agrees).map(|wanted| {
                let mut both = claim.requirements.clone();
                both.add_all(wanted);
                both
            });
            daemons.push((daemon, together.collect()));
        }
        daemons
    }

    /// Takes what daemons will still ask for on a node with these labels; those of `present` have their pod there already.
    fn reserve_for_daemons(&self, bin: &mut Bin<'_>, labels: &Labels, present: Option<&BTreeMap<PodKey, usize>>) {
        for daemon in &self.premises.daemons {
            let missing = !present.is_some_and(|p| p.contains_key(daemon.key)) && daemon.tolerates(bin.taints.iter().copied());
            let wanted = if bin.initialized { &daemon.wanted } else { &daemon.wanted_ahead };
            if missing && wanted.iter().any(|wanted| wanted.met_by(labels)) {
                add(&mut bin.free, &self.dimensions.dense(&daemon.requests), -1);
                bin.barred.join(&self.premises.ports.barred(daemon.ports));
            }
        }
    }
}

/// Whether the claim's own labels, where no type or offering has a say, meet what is wanted.
fn settled(claim: &NodeClaim, wanted: &Requirement) -> bool {
    keys::well_known(wanted.key()) || claim.labels.get(wanted.key()).map_or_else(|| wanted.admits_absence(), |v| wanted.allows(v))
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
