//! Many questions of one kind about one world: could the pods of these nodes go elsewhere, and what would have to be
//! bought for them? Tables, states and classes are made once; each question is applied to the one set of bins and undone.
//! The answers guide the search for moves. What is done is planned again in full before.
//!
//! What must not enter: which nodes may go, and why.

mod worth;

use std::collections::{BTreeMap, BTreeSet};

use fixedbitset::FixedBitSet;
use whittle_model::scorer::ScorerFailure;
use whittle_model::{PodKey, Scorer, Timestamp};

use super::bins::{self, Bins};
use super::classes::Member;
use super::finish::{self, Priced};
use super::greedy::{self, Ground, Manner};
use super::limits::Remaining;
use super::pricer::Pricer;
use super::topology::tally::Tally;
use super::topology::wishes::Asking;
use super::{PlannedNode, Scene, Seats, classes, cost, refusals, write};
use crate::pack;
use crate::world::World;
use worth::Worth;

/// Pods of one class on one node.
type Content<'w> = Vec<(usize, Vec<&'w PodKey>)>;

/// What the questions are asked of.
pub(crate) struct Study<'w> {
    world: &'w World,
    now: Timestamp,
    pricer: Pricer<'w>,
    scene: Scene<'w>,
    bins: Bins<'w>,
    /// How many pods are where.
    tally: Tally,
    remaining: Remaining,
    /// The pods of each node that is asked about, in the order of placement.
    content: BTreeMap<&'w str, Content<'w>>,
    /// Bins that may take pods, in the order in which they are tried.
    order: Vec<usize>,
    /// Bins that take none: those that never did, and those whose node went.
    shut: FixedBitSet,
    /// Bins that took pods for good: their nodes hold more than they did.
    received: FixedBitSet,
    /// Bins that took pods since the question that stands was asked, and those it took out of the counts.
    touched: FixedBitSet,
    lifted: Vec<usize>,
    /// Bins that take no pods for the time being: their nodes had better go.
    closed: FixedBitSet,
    /// The bins of nodes that are gone.
    gone: Vec<usize>,
    start: Start,
    worth: Worth,
    /// Bins that may have room for a class, in order. Room only shrinks from one question that is kept to the next: a bin
    /// that is found without goes for good.
    willing: Vec<Option<Vec<usize>>>,
}

/// How things stood before the first question.
#[derive(Debug, Clone)]
struct Start {
    mark: usize,
    remaining: Remaining,
}

/// A pod that waits: its class, and the node with its bin where it was meant to go.
struct Waiting<'w> {
    class: usize,
    key: &'w PodKey,
    meant: Option<(&'w str, usize)>,
}

/// Adds a pod to those of its node.
fn put<'w>(content: &mut Content<'w>, class: usize, pod: &'w PodKey) {
    match content.last_mut() {
        Some((last, keys)) if *last == class => keys.push(pod),
        Some(_) | None => content.push((class, vec![pod])),
    }
}

/// Pods that found no room on what exists: class and count.
pub(crate) type Left = Vec<(usize, usize)>;

impl<'w> Study<'w> {
    /// A study of the pods of these nodes. Pods that wait get their room first. `order` names the nodes that may take
    /// pods, those to be tried first in front.
    ///
    /// # Errors
    /// When a policy fails.
    pub(crate) fn new(
        world: &'w World,
        nodes: &BTreeMap<&'w str, &'w [PodKey]>,
        order: &[&'w str],
        scorer: &'w mut dyn Scorer,
        now: Timestamp,
    ) -> Result<Self, ScorerFailure> {
        let (waiting, _) = refusals::sort_out(world, now);
        let first: BTreeSet<&PodKey> = waiting.iter().map(|pod| pod.key).collect();
        let moving = nodes.values().flat_map(|pods| pods.iter()).filter(|key| !first.contains(key));
        let pods: Vec<Member<'_>> = waiting.iter().copied().chain(moving.filter_map(|key| Member::known(world, key))).collect();
        let mut pricer = Pricer::new(world, scorer, now, pods.len(), &BTreeMap::new())?;
        let mut scene = Scene::new(world, &pods, &mut pricer, false, now)?;
        let (tally, running) = scene.topology.count(world);
        let bins = Bins::new(world, &scene.tables.dimensions, &scene.premises, &scene.topology, running);
        let remaining = Remaining::new(world, &scene.tables);
        let order: Vec<usize> = order.iter().filter_map(|name| bins.find(name)).collect();
        let mut shut = FixedBitSet::with_capacity(bins.len());
        shut.insert_range(..);
        order.iter().for_each(|bin| shut.remove(*bin));
        let (received, willing) = (FixedBitSet::with_capacity(bins.len()), vec![None; scene.classes.len()]);
        let mut study = Self {
            world,
            now,
            pricer,
            bins,
            tally,
            content: BTreeMap::new(),
            order,
            shut,
            touched: received.clone(),
            closed: received.clone(),
            received,
            lifted: Vec::new(),
            gone: Vec::new(),
            start: Start { mark: 0, remaining: remaining.clone() },
            worth: Worth::of(&scene),
            remaining,
            scene,
            willing,
        };
        study.sort(nodes, &first);
        study.start.mark = study.bins.mark();
        Ok(study)
    }

    /// Seats the pods that wait, and notes who is on which node.
    fn sort(&mut self, nodes: &BTreeMap<&'w str, &'w [PodKey]>, first: &BTreeSet<&PodKey>) {
        let mut waiting: Vec<Waiting<'w>> = Vec::new();
        for (number, class) in self.scene.classes.iter().enumerate() {
            for member in &class.members {
                if first.contains(member.key) {
                    let meant = bins::meant_for(self.world, member).and_then(|name| Some((name, self.bins.find(name)?)));
                    waiting.push(Waiting { class: number, key: member.key, meant });
                    continue;
                }
                let node = member.record.node.as_deref();
                if let Some((name, _)) = node.and_then(|node| nodes.get_key_value(node)) {
                    put(self.content.entry(*name).or_default(), number, member.key);
                }
            }
        }
        let all: Vec<usize> = (0..self.bins.len()).collect();
        for Waiting { class, key, meant } in waiting {
            let Some((name, _)) = meant.filter(|(_, bin)| self.settle(class, &[*bin], 1).0 == 0) else {
                self.settle(class, &all, 1);
                continue;
            };
            // What keeps its room on a node that is asked about goes with it.
            if let Some((name, _)) = nodes.get_key_value(name).filter(|(_, pods)| pods.contains(key)) {
                put(self.content.entry(*name).or_default(), class, key);
            }
        }
        self.touched.clear();
    }

    /// Places pods of a class on these bins, in the strictest form that finds room; returns how many found none, and the
    /// places of bins among them that will have none again.
    fn settle(&mut self, number: usize, among: &[usize], mut left: usize) -> (usize, Vec<usize>) {
        let class = &self.scene.classes[number];
        let (mut wishes, mut full) = (Vec::new(), Vec::new());
        let open = |bin: usize| !self.shut.contains(bin) && !self.closed.contains(bin);
        for (nth, level) in class.company.levels.iter().enumerate() {
            let simple = level.keyed.is_empty() && level.host.is_empty();
            while left > 0 && self.scene.topology.wishes(level, &self.tally, &mut wishes) {
                let before = left;
                for (place, bin) in among.iter().copied().enumerate().filter(|(_, bin)| open(*bin)) {
                    if !self.bins.has_room(bin, class) {
                        if nth == 0 && !self.touched.contains(bin) {
                            full.push(place);
                        }
                        continue;
                    }
                    let asking = Asking { class, level, wishes: &wishes, tally: &self.tally };
                    let room = self.bins.capacity(bin, asking, &self.scene.states, left);
                    if room > 0 {
                        self.bins.place(bin, class, room, &self.scene.topology, &mut self.tally);
                        self.touched.insert(bin);
                        left -= room;
                    }
                    // Where pods count, what is wanted of the next may be something else.
                    if left == 0 || (room > 0 && !simple) {
                        break;
                    }
                }
                if left == before || simple {
                    break;
                }
            }
        }
        full.sort_unstable();
        full.dedup();
        (left, full)
    }

    /// Whether a node took pods that were moved for good.
    pub(crate) fn received(&self, node: &str) -> bool {
        self.bins.find(node).is_some_and(|bin| self.received.contains(bin))
    }

    /// Finds room on other nodes for the pods of these; says what is left over. It stands until [`Study::keep`] or
    /// [`Study::undo`]; `mark` is for them.
    pub(crate) fn empty(&mut self, nodes: &[&str]) -> (Left, usize) {
        let mark = self.bins.mark();
        let counts = self.counts(nodes);
        for (class, _) in &counts {
            self.look_up(*class);
        }
        let own: Vec<usize> = nodes.iter().filter_map(|node| self.bins.find(node)).filter(|bin| !self.shut.contains(*bin)).collect();
        for bin in &own {
            self.shut.insert(*bin);
            self.bins.lift(*bin, &self.scene.topology, &mut self.tally);
        }
        let mut left = Left::new();
        for (class, count) in counts {
            let rest = self.place(class, count);
            if rest > 0 {
                left.push((class, rest));
            }
        }
        own.iter().for_each(|bin| self.shut.remove(*bin));
        self.lifted = own;
        (left, mark)
    }

    /// How many pods of each class are on these nodes.
    pub(crate) fn counts(&self, nodes: &[&str]) -> Left {
        if let [node] = nodes {
            return self.content.get(node).into_iter().flatten().map(|(class, keys)| (*class, keys.len())).collect();
        }
        let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
        for (class, keys) in nodes.iter().filter_map(|node| self.content.get(node)).flatten() {
            *counts.entry(*class).or_default() += keys.len();
        }
        counts.into_iter().collect()
    }

    /// Notes the bins that may have room for a class, now or once counts are different, before anything is tried.
    fn look_up(&mut self, number: usize) {
        if self.willing[number].is_none() {
            let may = self.order.iter().copied().filter(|bin| !self.shut.contains(*bin) && self.may(number, *bin));
            self.willing[number] = Some(may.collect());
        }
    }

    /// Places pods of a class on what exists; returns how many found no room.
    fn place(&mut self, number: usize, count: usize) -> usize {
        let mut among = self.willing[number].take().unwrap_or_default();
        let (left, full) = self.settle(number, &among, count);
        if !full.is_empty() {
            let (mut full, mut place) = (full.into_iter().peekable(), 0);
            among.retain(|_| {
                place += 1;
                full.next_if_eq(&(place - 1)).is_none()
            });
        }
        self.willing[number] = Some(among);
        left
    }

    /// Whether a bin may have room for a class, now or once counts are different.
    fn may(&self, number: usize, bin: usize) -> bool {
        let class = &self.scene.classes[number];
        class.company.levels.iter().any(|level| self.bins.could(bin, class, level, &self.scene.states))
    }

    /// Takes back what was placed since `mark`.
    pub(crate) fn undo(&mut self, mark: usize) {
        self.bins.take_back(mark, &self.scene.topology, &mut self.tally);
        for bin in self.lifted.drain(..) {
            self.bins.unlift(bin, &self.scene.topology, &mut self.tally);
        }
        self.touched.clear();
    }

    /// Lets what was placed since `mark` stand: these nodes are gone, and others hold more than they did.
    pub(crate) fn keep(&mut self, nodes: &[&str], mark: usize) {
        for bin in self.bins.since(mark) {
            self.received.insert(bin);
        }
        for bin in nodes.iter().filter_map(|node| self.bins.find(node)) {
            self.shut.insert(bin);
        }
        self.gone.append(&mut self.lifted);
        self.touched.clear();
    }

    /// Whether these nodes take pods from now on.
    pub(crate) fn close(&mut self, nodes: &[&str], closed: bool) {
        for bin in nodes.iter().filter_map(|node| self.bins.find(node)) {
            self.closed.set(bin, closed);
        }
    }

    /// Makes everything as it was before the first question.
    pub(crate) fn start_over(&mut self) {
        self.bins.take_back(self.start.mark, &self.scene.topology, &mut self.tally);
        for bin in self.gone.drain(..) {
            self.bins.unlift(bin, &self.scene.topology, &mut self.tally);
            self.shut.remove(bin);
        }
        self.received.clear();
        self.closed.clear();
        self.willing.fill(None);
        self.remaining.clone_from(&self.start.remaining);
    }

    /// What would be bought for pods that found no room: by the greedy alone, or for cost within so many steps. `None`
    /// when not all can be bought for.
    ///
    /// # Errors
    /// When a policy fails.
    pub(crate) fn buy(&mut self, left: &Left, steps: Option<u64>) -> Result<Option<Priced>, ScorerFailure> {
        let mut counts = vec![0; self.scene.classes.len()];
        left.iter().for_each(|(class, count)| counts[*class] = *count);
        let mut runs = classes::runs(&self.scene.classes, &counts);
        let mut bench = self.scene.bench(&mut self.pricer);
        bench.topology.tighter_first(bench.tables, bench.states, bench.classes, &mut runs);
        let mut ground =
            Ground { bins: None, tally: &mut self.tally.clone(), remaining: &mut self.remaining.clone(), manner: Manner::default() };
        let draft = greedy::pack(&mut bench, &mut ground, &runs);
        if !draft.unplaced.is_empty() {
            return Ok(None);
        }
        let mut best = finish::finish(&mut bench, draft.clone(), "greedy", self.remaining.clone())?;
        let sociable = draft.claims.iter().flat_map(|claim| &claim.content).any(|(class, _)| bench.classes[*class].sociable());
        // Pods that count each other are packed by the greedy alone here; the plan knows better.
        if let Some(steps) = steps.filter(|_| !sociable) {
            let translated = cost::translate(&mut bench, &counts, &self.remaining);
            let start = translated.packing(&bench, &draft);
            let solution = pack::solve(&translated.problem, &start, steps);
            let solved = translated.draft(&mut bench, &solution.packing, &mut self.tally.clone(), &self.remaining);
            let solved = finish::finish(&mut bench, solved, solution.method, self.remaining.clone())?;
            if solved.better_than(&best) {
                best = solved;
            }
        }
        Ok((best.missing() == 0).then_some(best))
    }

    /// The nodes that a purchase for the pods of these nodes comes to.
    pub(crate) fn nodes(&self, nodes: &[&str], left: &Left, bought: Priced) -> Vec<PlannedNode> {
        let mut members: Vec<Vec<&PodKey>> = vec![Vec::new(); self.scene.classes.len()];
        for (class, keys) in nodes.iter().filter_map(|node| self.content.get(node)).flatten() {
            members[*class].extend(keys.iter().copied());
        }
        let mut counts = vec![0; members.len()];
        left.iter().for_each(|(class, count)| counts[*class] = *count);
        let seats = Seats::standing_all(members, counts);
        write::nodes(self.world, &self.scene.tables, &self.scene.classes, &seats, bought, self.now)
    }

    /// Takes what is bought from what the limits leave.
    pub(crate) fn spend(&mut self, bought: &Priced) {
        for claim in &bought.claims {
            self.remaining.take(claim.pool, &claim.menu.largest);
        }
    }
}
