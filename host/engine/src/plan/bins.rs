//! Room that is paid for already: nodes that exist and claims in flight. Placements are applied to
//! it and can be undone, so that a what-if needs no copy.

mod land;
mod obstacles;

use whittle_model::{Labels, Node, NodeClaim, Requirements, Taint, keys, taint};

use super::amounts::{Amounts, Dimensions, add, fits, times};
use super::classes::{Class, Member};
use super::field::Mask;
use super::ports::PortSet;
use super::premises::Premises;
use super::states::{ProfileId, States};
use super::topology::class_rules::Level;
use super::topology::reach::Flight;
use super::topology::set::Set;
use super::topology::tally::{CounterId, Local, Tally, put, there};
use super::topology::wishes::{Asking, Wish, beside, lasting};
use super::topology::{FilterId, HOST, Topology};
use crate::intern::Lookup;
use crate::world::World;
use land::Land;

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
    /// Its place among the nodes of the world, if it is a node whose labels are its own.
    node: Option<usize>,
    face: Face<'w>,
    taints: Vec<&'w Taint>,
    free: Amounts,
    /// Its pods by counter.
    local: Local,
    /// By key: the domains it is in, or may come to be in.
    reach: Vec<Set>,
    /// The node filters it does not pass, and those that it may come not to pass.
    outside: Vec<FilterId>,
    unsure: Vec<FilterId>,
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
    local: Local,
    barred: PortSet,
    volumes: usize,
}

/// All bins in order of use, with an undo log.
#[derive(Debug, Default)]
pub(crate) struct Bins<'w> {
    all: Vec<Bin<'w>>,
    numbers: Lookup<&'w str, usize>,
    /// By sixty-four bins: the most that any of them has free when nothing is placed.
    peaks: Vec<Amounts>,
    log: Vec<Entry>,
    /// By key and domain: the bins in it; by key: those in none.
    inside: Vec<Vec<Mask>>,
    without: Vec<Mask>,
    /// By level: bins that refuse it for good, and the first that does not.
    refused: Vec<Mask>,
    first: Vec<usize>,
    /// By profile: bins whose labels were looked at, and those whose labels suit it.
    suiting: Lookup<ProfileId, (Mask, Mask)>,
}

/// What a bin says to pods.
enum Answer {
    /// So many may come.
    Welcome(usize),
    /// Not as counts are now.
    NotNow,
    Never,
}

impl<'w> Bins<'w> {
    /// The bins of a world: initialized nodes first, then by name.
    pub(crate) fn new(
        world: &'w World,
        dimensions: &Dimensions,
        premises: &Premises<'w>,
        topology: &Topology<'w>,
        mut running: Vec<Local>,
    ) -> Self {
        let land = Land { world, dimensions, premises };
        let mut all: Vec<Bin<'w>> = Vec::with_capacity(world.nodes.len());
        for (at, (node, usage)) in world.in_use().enumerate() {
            let claim = premises.holders.claim_of(node);
            if usable_node(node, claim) && claim.is_none_or(|c| !world.leaving.contains(&c.name)) && !world.pinned(&node.name) {
                let mut bin = land.node_bin(node, claim, usage);
                bin.local = running.get_mut(at).map(std::mem::take).unwrap_or_default();
                // Until it is registered, its claim tells what it will be.
                bin.node = claim.is_none_or(|claim| claim.status.registered.is_some()).then_some(at);
                all.push(bin);
            }
        }
        for claim in world.claims.values() {
            if !claim.deleting && !world.leaving.contains(&claim.name) && !premises.holders.joined(claim) {
                all.push(land.claim_bin(claim));
            }
        }
        all.sort_by(|a, b| b.initialized.cmp(&a.initialized).then_with(|| a.name.cmp(b.name)));
        let mut numbers = Lookup::with_capacity(all.len());
        all.iter().enumerate().for_each(|(number, bin)| numbers.insert(bin.name, number));
        let (levels, peaks) = (topology.levels(), all.chunks(64).map(peak).collect());
        let mut bins = Self { all, numbers, peaks, refused: vec![Mask::default(); levels], first: vec![0; levels], ..Self::default() };
        bins.locate(topology);
        bins
    }

    /// Finds the domains of each bin.
    fn locate(&mut self, topology: &Topology<'_>) {
        self.inside = (0..topology.keys()).map(|key| vec![Mask::default(); topology.domains(key) as usize]).collect();
        self.without = vec![Mask::default(); topology.keys()];
        for (number, bin) in self.all.iter_mut().enumerate() {
            match bin.face {
                Face::Labels(labels) => {
                    let taints: Vec<Taint> = bin.taints.iter().map(|taint| (*taint).clone()).collect();
                    let reach = |key| bin.node.map_or_else(|| topology.reach_of_labels(key, labels), |at| topology.reach_of_node(key, at));
                    bin.reach = (0..topology.keys()).map(reach).collect();
                    bin.outside = topology.outside(labels, &taints);
                    bin.unsure.clone_from(&bin.outside);
                }
                Face::Requirements(_) => {
                    let Flight { reach, outside, unsure } = topology.flight(bin.name);
                    (bin.reach, bin.outside, bin.unsure) = (reach, outside, unsure);
                }
            }
            for key in HOST + 1..topology.keys() {
                bin.reach[key].iter().for_each(|domain| self.inside[key][domain as usize].insert(number));
                if bin.reach[key].is_empty() {
                    self.without[key].insert(number);
                }
            }
        }
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

    /// How many pods of `class` the bin can take in this form, at most `most`.
    pub(crate) fn capacity(&self, bin: usize, asking: Asking<'_, '_>, states: &States, most: usize) -> usize {
        let bin = &self.all[bin];
        match bin.answer(asking, most, |wanted| bin.suits(wanted), states) {
            Answer::Welcome(count) => count,
            Answer::NotNow | Answer::Never => 0,
        }
    }

    /// Puts `count` pods of `class` into a bin.
    pub(crate) fn place(&mut self, bin: usize, class: &Class<'_>, count: usize, topology: &Topology<'_>, tally: &mut Tally) {
        let pods = u32::try_from(count).expect("fewer pods than 2^32");
        let count = i64::try_from(count).expect("fewer pods than 2^63");
        let target = &mut self.all[bin];
        let mut taken = Amounts::from_elem(0, target.free.len());
        add(&mut taken, &class.need, count);
        let (local, barred, volumes) = (target.local.clone(), target.barred.clone(), target.volumes.len());
        for (dimension, volume) in &class.shared {
            if !target.volumes.contains(volume) {
                target.volumes.push(*volume);
                taken[*dimension] += 1;
            }
        }
        target.barred.join(&class.ports.bars);
        add(&mut target.free, &taken, -1);
        self.log.push(Entry { bin, taken, local, barred, volumes });
        for counter in class.company.counts.iter().filter(|c| !target.outside.contains(&topology.counters[**c as usize].filter)) {
            put(&mut target.local, *counter, pods);
        }
        self.count(bin, class, pods as usize, topology, tally);
    }

    /// Counts `count` pods of `class` in a bin.
    pub(crate) fn count(&self, bin: usize, class: &Class<'_>, count: usize, topology: &Topology<'_>, tally: &mut Tally) {
        let bin = &self.all[bin];
        for counter in &class.company.counts {
            let of = &topology.counters[*counter as usize];
            let uncounted = if of.key == HOST { &bin.outside } else { &bin.unsure };
            if !uncounted.contains(&of.filter) {
                let reach = &bin.reach[of.key];
                let pods = u32::try_from(count).expect("fewer pods than 2^32");
                tally.0[*counter as usize].placed(of.key == HOST || !reach.is_empty(), reach, pods);
            }
        }
    }

    /// Takes what runs in a bin out of the counts: its node goes.
    pub(crate) fn lift(&self, bin: usize, topology: &Topology<'_>, tally: &mut Tally) {
        let bin = &self.all[bin];
        for (counter, pods) in &bin.local {
            let key = topology.counters[*counter as usize].key;
            tally.0[*counter as usize].lifted(key == HOST || !bin.reach[key].is_empty(), &bin.reach[key], *pods);
        }
    }

    /// Counts what runs in a bin again: its node stays.
    pub(crate) fn unlift(&self, bin: usize, topology: &Topology<'_>, tally: &mut Tally) {
        let bin = &self.all[bin];
        for (counter, pods) in &bin.local {
            let key = topology.counters[*counter as usize].key;
            tally.0[*counter as usize].placed(key == HOST || !bin.reach[key].is_empty(), &bin.reach[key], *pods);
        }
    }

    /// Whether a bin has the amounts that one pod of a class needs.
    pub(crate) fn has_room(&self, bin: usize, class: &Class<'_>) -> bool {
        fits(&class.need, &self.all[bin].free)
    }

    /// Whether a bin may take a pod of a class in this form, whatever the counts are.
    pub(crate) fn could(&self, bin: usize, class: &Class<'_>, level: &Level, states: &States) -> bool {
        let bin = &self.all[bin];
        bin.times(class, 1) > 0
            && !class.ports.takes.meets(&bin.barred)
            && bin.tolerated(class, level)
            && bin.suits(states.wanted(level.profile))
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
            add(&mut bin.free, &entry.taken, 1);
            bin.local = entry.local;
            bin.barred = entry.barred;
            bin.volumes.truncate(entry.volumes);
        }
        self.refused.fill(Mask::default());
        self.first.fill(0);
    }

    /// Takes back the placements since `mark` with their counts, for those who ask by [`Bins::capacity`] alone.
    pub(crate) fn take_back(&mut self, mark: usize, topology: &Topology<'_>, tally: &mut Tally) {
        for entry in self.log.drain(mark..).rev() {
            let bin = &mut self.all[entry.bin];
            for (counter, pods) in &bin.local {
                let (key, more) = (topology.counters[*counter as usize].key, pods - there(&entry.local, *counter));
                let reach = &bin.reach[key];
                tally.0[*counter as usize].lifted(more > 0 && (key == HOST || !reach.is_empty()), reach, more);
            }
            add(&mut bin.free, &entry.taken, 1);
            bin.local = entry.local;
            bin.barred = entry.barred;
            bin.volumes.truncate(entry.volumes);
        }
    }

    /// The domains of a bin, by key.
    pub(crate) fn reach(&self, bin: usize) -> &[Set] {
        &self.all[bin].reach
    }

    /// The first bin that takes pods of a class in this form, and how many of `left` it takes at once.
    pub(crate) fn first(&mut self, asking: Asking<'_, '_>, states: &States, left: usize) -> Option<(usize, usize)> {
        let id = asking.level.id as usize;
        for word in self.first[id] / 64..self.all.len().div_ceil(64) {
            if !fits(&asking.class.need, &self.peaks[word]) {
                continue;
            }
            let mut rest = self.willing(word, id, asking.wishes);
            while rest != 0 {
                let bin = word * 64 + rest.trailing_zeros() as usize;
                rest &= rest - 1;
                if bin >= self.all.len() {
                    return None;
                }
                let (one, suiting) = (&self.all[bin], &mut self.suiting);
                match one.answer(asking, left, |wanted| wanted.is_empty() || suits(suiting, bin, one, asking.level.profile, wanted), states)
                {
                    Answer::Welcome(count) => return Some((bin, count)),
                    Answer::NotNow => {}
                    Answer::Never => {
                        self.refused[id].insert(bin);
                        if self.first[id] == bin {
                            self.first[id] = bin + 1;
                        }
                    }
                }
            }
        }
        None
    }

    /// Which of sixty-four bins are not known to refuse.
    fn willing(&self, word: usize, level: usize, wishes: &[Wish]) -> u64 {
        let mut mask = !self.refused[level].word(word);
        for wish in wishes {
            let mut there = if wish.must { 0 } else { self.without[wish.key].word(word) };
            for domain in &wish.order {
                there |= self.inside[wish.key][*domain as usize].word(word);
            }
            mask &= there;
        }
        mask
    }
}

impl Bin<'_> {
    /// What it says to at most so many pods; `suits` tells whether its labels are what they want.
    fn answer(&self, asking: Asking<'_, '_>, most: usize, suits: impl FnOnce(&Requirements) -> bool, states: &States) -> Answer {
        let Asking { class, level, wishes, tally } = asking;
        let count = self.times(class, most);
        if count == 0 || class.ports.takes.meets(&self.barred) || !self.tolerated(class, level) || !suits(states.wanted(level.profile)) {
            return Answer::Never;
        }
        let beside = usize::try_from(beside(level, &self.local, tally)).unwrap_or(usize::MAX);
        if beside == 0 {
            return if lasting(level) { Answer::Never } else { Answer::NotNow };
        }
        if !wishes.iter().all(|wish| self.meets(wish)) {
            return Answer::NotNow;
        }
        // Where its own pods count, they are placed one by one.
        let one = !wishes.is_empty() || !lasting(level) || !class.ports.is_empty();
        Answer::Welcome(count.min(beside).min(if one { 1 } else { usize::MAX }))
    }

    fn meets(&self, wish: &Wish) -> bool {
        let reach = &self.reach[wish.key];
        let following = |counter: CounterId| there(&self.local, counter) > 0;
        if !wish.follow.is_none_or(following) {
            return false;
        }
        // What is bought already cannot be pinned any more; to whom it makes no difference where it will be, any will do.
        let settled = !wish.must || reach.single().is_some() || !(wish.me || reach.is_empty());
        settled && reach.within(&wish.allowed)
    }

    /// Whether its taints let pods of `class` in.
    fn tolerated(&self, class: &Class<'_>, level: &Level) -> bool {
        !self.taints.iter().any(|t| (t.repels() || !level.lenient) && !t.tolerated_by(class.tolerations))
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
}

/// The most that any of these bins has free, dimension by dimension.
fn peak(bins: &[Bin<'_>]) -> Amounts {
    let mut peak = bins[0].free.clone();
    bins.iter().for_each(|bin| peak.iter_mut().zip(&bin.free).for_each(|(peak, free)| *peak = (*peak).max(*free)));
    peak
}

/// Whether the labels of a bin are what a profile wants: each is looked at once.
fn suits(known: &mut Lookup<ProfileId, (Mask, Mask)>, number: usize, bin: &Bin<'_>, profile: ProfileId, wanted: &Requirements) -> bool {
    let (seen, suiting) = known.at(profile);
    if !seen.holds(number) {
        seen.insert(number);
        if bin.suits(wanted) {
            suiting.insert(number);
        }
    }
    suiting.holds(number)
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

/// Whether pods may be sent to a node at all.
fn usable_node(node: &Node, claim: Option<&NodeClaim>) -> bool {
    let going = node.deleting || claim.is_some_and(|c| c.deleting);
    let managed = node.labels.contains_key(keys::NODE_POOL);
    // A node of ours whose claim is not known may be on its way out: nothing is planned on it.
    !going && !node.cordoned && (claim.is_some() || !managed)
}

/// Whether a taint keeps pods with these tolerations off, for the refusals of a plan.
pub(crate) fn repelling<'t>(taints: &'t [Taint], class: &Class<'_>) -> Option<&'t Taint> {
    taint::untolerated(taints, class.tolerations)
}

/// Whether a taint keeps pods of a class off that ask in this form.
pub(crate) fn repelled(taints: &[Taint], class: &Class<'_>, level: &Level) -> bool {
    taints.iter().any(|t| (t.repels() || !level.lenient) && !t.tolerated_by(class.tolerations))
}

/// Pods already meant for a bin: nominated to its node, or planned for its claim.
pub(crate) fn meant_for<'w>(world: &'w World, pod: &Member<'w>) -> Option<&'w str> {
    if let Some(node) = &pod.record.nominated {
        return Some(node);
    }
    let claim = world.claims.get(world.assigned.claim(pod.key)?)?;
    Some(world.node_of(claim).map_or(&claim.name, |node| &node.name))
}
