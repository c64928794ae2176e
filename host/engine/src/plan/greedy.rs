//! The documented greedy: biggest pod first, onto a node that exists, else onto the open claim with
//! the fewest pods that still has a fitting type, else a new claim from the first pool that fits; each
//! in the strictest form that finds a place. It is always available, and it is the yardstick of every
//! other packer.

mod ahead;
mod open;
mod settle;

use ahead::{crowds, least, waits};
pub(crate) use open::{charge, open};

use fixedbitset::FixedBitSet;

use super::amounts::{Amounts, add};
use super::bins::Bins;
use super::classes::{Class, Run};
use super::field::{Cursor, Field};
use super::flexible::{Counts, View};
use super::limits::Remaining;
use super::menu::Menus;
use super::ports::PortSet;
use super::pricer::Pricer;
use super::states::{StateId, States};
use super::tables::Tables;
use super::topology::class_rules::Level;
use super::topology::tally::{Local, Tally};
use super::topology::wishes::{Asking, Wish, beside, lasting};
use super::topology::{HOST, Topology};

/// A claim that is being filled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OpenClaim {
    pub(crate) pool: usize,
    pub(crate) state: StateId,
    pub(crate) used: Amounts,
    pub(crate) pods: usize,
    /// Class and number of its pods, in the order they came.
    pub(crate) content: Vec<(usize, usize)>,
    /// Its pods by counter.
    pub(crate) local: Local,
    /// The host ports that its pods bar.
    pub(crate) barred: PortSet,
    /// Volumes that pods share and that it has to attach.
    pub(crate) volumes: Vec<u32>,
}

/// Claims to be made, and pods that found no place on them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Draft {
    pub(crate) claims: Vec<OpenClaim>,
    /// Class and number of pods without a place.
    pub(crate) unplaced: Vec<(usize, usize)>,
    /// Class, bin and number of pods that found a place on what exists.
    pub(crate) seated: Vec<(usize, usize, usize)>,
}

/// What a packer works with.
pub(crate) struct Bench<'a, 'w> {
    pub(crate) tables: &'a Tables<'w>,
    pub(crate) states: &'a mut States,
    pub(crate) pricer: &'a mut Pricer<'w>,
    pub(crate) topology: &'a mut Topology<'w>,
    pub(crate) classes: &'a [Class<'w>],
    pub(crate) menus: &'a mut Menus,
}

/// How a packer goes about it; as documented by default.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Manner<'g> {
    /// Whether claims are asked by age, and not those with the fewest pods first.
    pub(crate) oldest_first: bool,
    /// By table: the rows to which new claims keep where that is possible.
    pub(crate) favoured: Option<&'g [FixedBitSet]>,
}

/// What pods are placed on: what exists, if that is asked at all, and what may be bought.
pub(crate) struct Ground<'g, 'w> {
    pub(crate) bins: Option<&'g mut Bins<'w>>,
    pub(crate) tally: &'g mut Tally,
    pub(crate) remaining: &'g mut Remaining,
    pub(crate) manner: Manner<'g>,
}

/// What a claim says to a pod.
enum Answer {
    /// It may come, and the claim will be in this state.
    Welcome(StateId),
    /// Not as counts are now.
    NotNow,
    Never,
}

impl OpenClaim {
    /// A claim with nothing in it.
    pub(crate) fn new(pool: usize, state: StateId, width: usize) -> Self {
        let (used, barred, volumes) = (Amounts::from_elem(0, width), PortSet::default(), Vec::new());
        Self { pool, state, used, pods: 0, content: Vec::new(), local: Local::new(), barred, volumes }
    }

    /// Whether it has pods that look at company beyond their node.
    pub(crate) fn sociable(&self, bench: &Bench<'_, '_>) -> bool {
        self.content.iter().any(|(class, _)| bench.classes[*class].sociable())
    }

    /// Whether no packer but the greedy knows it.
    pub(crate) fn stays(&self, bench: &Bench<'_, '_>) -> bool {
        bench.tables.pools[self.pool].reserved || self.sociable(bench)
    }

    /// Takes `count` pods of a class in and goes over to `state`; `crowd` is told of each counter that
    /// is more than before.
    pub(crate) fn take(
        &mut self,
        bench: &mut Bench<'_, '_>,
        tally: &mut Tally,
        number: usize,
        count: usize,
        state: StateId,
        crowd: &mut dyn FnMut(u32, u32, u32),
    ) {
        let class = &bench.classes[number];
        let before = std::mem::replace(&mut self.state, state);
        self.pods += count;
        add(&mut self.used, &class.need, i64::try_from(count).expect("fewer pods than 2^63"));
        self.barred.join(&class.ports.bars);
        for (dimension, volume) in &class.shared {
            if !self.volumes.contains(volume) {
                self.volumes.push(*volume);
                self.used[*dimension] += 1;
            }
        }
        match self.content.last_mut() {
            Some((last, so_far)) if *last == number => *so_far += count,
            _ => self.content.push((number, count)),
        }
        if !bench.topology.counters.is_empty() {
            let pods = u32::try_from(count).expect("fewer pods than 2^32");
            bench.topology.join(bench.tables, bench.states, tally, (&mut self.local, &class.company.counts), pods, (before, state), crowd);
        }
    }

    /// The state after one more pod of `class` in this form, if it has room and welcomes it.
    pub(crate) fn accepts(&self, bench: &mut Bench<'_, '_>, asking: Asking<'_, '_>) -> Option<StateId> {
        match self.answer(bench, asking) {
            Answer::Welcome(state) => Some(state),
            Answer::NotNow | Answer::Never => None,
        }
    }

    fn answer(&self, bench: &mut Bench<'_, '_>, asking: Asking<'_, '_>) -> Answer {
        let Asking { class, level, wishes, tally } = asking;
        if !level.host.is_empty() && beside(level, &self.local, tally) == 0 {
            return if lasting(level) { Answer::Never } else { Answer::NotNow };
        }
        if class.ports.takes.meets(&self.barred) {
            return Answer::Never;
        }
        let (table, need) = (&bench.tables.pools[self.pool], class.need_beside(&self.volumes));
        // Asked first of what is there already: most refusals end here.
        if !bench.states.get(self.state).has_room(table, &self.used, &need) {
            return Answer::Never;
        }
        if super::bins::repelled(&table.pool.template.taints, class, level) {
            return Answer::Never;
        }
        let merged = bench.states.merge(bench.tables, self.state, level.profile);
        let Some(state) = merged.and_then(|state| clear_of_daemons(bench.states, bench.tables, state, class)) else {
            return Answer::Never;
        };
        if state != self.state && !bench.states.get(state).has_room(table, &self.used, &need) {
            return Answer::Never;
        }
        if state != self.state && self.strays(bench, state) {
            return Answer::NotNow;
        }
        // What refuses a claim without wishes will be there tomorrow too.
        let refusal = if wishes.is_empty() && !bench.tables.relax { Answer::Never } else { Answer::NotNow };
        self.pinned(bench, asking, state, wishes).map_or(refusal, Answer::Welcome)
    }

    /// Whether pods that are counted would come to be in domains for which they were not asked: a label that had no value gets
    /// one, or another than it would have been given.
    fn strays(&self, bench: &mut Bench<'_, '_>, next: StateId) -> bool {
        self.local.iter().any(|(counter, _)| {
            let key = bench.topology.counters[*counter as usize].key;
            let before = bench.topology.reach(bench.tables, bench.states, self.state, key).clone();
            key != HOST && !bench.topology.reach(bench.tables, bench.states, next, key).within(&before)
        })
    }

    /// The state once the wishes are met that a claim in `state` does not meet already.
    fn pinned(&self, bench: &mut Bench<'_, '_>, asking: Asking<'_, '_>, state: StateId, wishes: &[Wish]) -> Option<StateId> {
        let Some((wish, others)) = wishes.split_first() else {
            return self.stays_flexible(bench, state, &asking.class.need_beside(&self.volumes)).then_some(state);
        };
        if wish.follow.is_some_and(|counter| super::topology::tally::there(&self.local, counter) == 0) {
            return None;
        }
        let reach = bench.topology.reach(bench.tables, bench.states, state, wish.key).clone();
        if reach.is_empty() {
            return if wish.must { None } else { self.pinned(bench, asking, state, others) };
        }
        // Only what the requirements say outlasts the plan: an offering that is sold out may come back.
        let said = bench.topology.said(bench.states, state, wish.key);
        if said.is_some_and(|said| said.within(&wish.allowed) && (!wish.single || said.single().is_some())) {
            return self.pinned(bench, asking, state, others);
        }
        if !wish.single {
            let both = reach.and(&wish.allowed);
            return if both.is_empty() { None } else { self.pin(bench, asking, state, wish, &both, others) };
        }
        let open = bench.topology.reach(bench.tables, bench.states, self.state, wish.key).len() > 1;
        let able = |domain: &&u32| reach.contains(**domain) && (!open || wish.bears(&self.local, **domain, asking.tally));
        wish.order.iter().filter(able).find_map(|domain| {
            let only = std::iter::once(*domain).collect();
            self.pin(bench, asking, state, wish, &only, others)
        })
    }

    fn pin(
        &self,
        bench: &mut Bench<'_, '_>,
        asking: Asking<'_, '_>,
        state: StateId,
        wish: &Wish,
        domains: &super::topology::set::Set,
        others: &[Wish],
    ) -> Option<StateId> {
        let profile = bench.topology.pin(bench.states, wish.key, domains, asking.class.asker);
        let pinned = bench.states.merge(bench.tables, state, profile)?;
        if !bench.states.get(pinned).has_room(&bench.tables.pools[self.pool], &self.used, &asking.class.need_beside(&self.volumes)) {
            return None;
        }
        self.pinned(bench, asking, pinned, others)
    }

    /// Whether a node of this offering's type has room for so many pods more with the volumes that they share.
    pub(crate) fn has_volumes(&self, bench: &Bench<'_, '_>, offer: usize, class: &Class<'_>, count: usize) -> bool {
        let table = &bench.tables.pools[self.pool];
        let mut used = self.used.clone();
        add(&mut used, &class.need, i64::try_from(count).expect("fewer pods than 2^63") - 1);
        super::amounts::fits_on_top(&used, &class.need_beside(&self.volumes), &table.rows[table.offers[offer].row as usize].room)
    }

    /// Whether enough distinct values remain once `need` is added. A claim that had fewer from its first pod on keeps
    /// those it has.
    fn stays_flexible(&self, bench: &Bench<'_, '_>, next: StateId, need: &[i64]) -> bool {
        let table = &bench.tables.pools[self.pool];
        if table.flexibility.is_empty() || (bench.tables.relax && self.pods == 0) {
            return true;
        }
        let had = bench.tables.relax.then(|| table.flexibility.left(&table.rows, self.view(bench, self.state), &self.used));
        table.flexibility.keeps(&table.rows, self.view(bench, next), &self.used, need, had.as_ref())
    }

    /// Whether a claim that was not filled pod by pod keeps enough distinct values: as many as are asked for, or,
    /// where fewer will do, as many as the pod with the fewest alone.
    pub(crate) fn is_flexible(&self, bench: &mut Bench<'_, '_>) -> bool {
        let table = &bench.tables.pools[self.pool];
        if table.flexibility.is_empty() {
            return true;
        }
        let none = Amounts::from_elem(0, self.used.len());
        let mut had = None;
        if bench.tables.relax {
            let classes = bench.classes;
            for class in self.content.iter().map(|(number, _)| &classes[*number]) {
                let base = bench.states.base(self.pool);
                let alone = base.and_then(|b| class.profiles.iter().find_map(|p| bench.states.merge(bench.tables, b, *p)));
                let Some(alone) = alone else { continue };
                let left = table.flexibility.left(&table.rows, self.view(bench, alone), &class.need);
                had = Some(had.map_or(left.clone(), |least: Counts| least.iter().zip(&left).map(|(a, b)| *a.min(b)).collect()));
            }
        }
        table.flexibility.keeps(&table.rows, self.view(bench, self.state), &self.used, &none, had.as_ref())
    }

    fn view<'b>(&self, bench: &'b Bench<'_, '_>, state: StateId) -> View<'b> {
        View { state: bench.states.get(state), one_way: bench.states.prices[self.pool].changed }
    }
}

/// The state without the types whose daemons take a host port that the class asks for.
pub(crate) fn clear_of_daemons(states: &mut States, tables: &Tables<'_>, state: StateId, class: &Class<'_>) -> Option<StateId> {
    if class.ports.is_empty() {
        return Some(state);
    }
    let rows = &tables.pools[states.get(state).pool].rows;
    states.cut(tables, state, &|row| !class.ports.takes.meets(&rows[row as usize].barred))
}

/// The packer at work.
struct Packer {
    field: Field,
    draft: Draft,
    wishes: Vec<Wish>,
    /// By level: the changes of the counts it depends on when it last found no place.
    failed: Vec<Option<u64>>,
    /// The least that anything still to come asks for.
    least: Amounts,
}

/// Packs `runs`. What found no place is tried again as long as others do: it may have waited for them.
pub(crate) fn pack(bench: &mut Bench<'_, '_>, ground: &mut Ground<'_, '_>, runs: &[Run]) -> Draft {
    pack_beside(bench, ground, runs, Vec::new())
}

/// The same beside claims that are open already and are counted: the first of the draft's are these.
pub(crate) fn pack_beside(bench: &mut Bench<'_, '_>, ground: &mut Ground<'_, '_>, runs: &[Run], claims: Vec<OpenClaim>) -> Draft {
    let topology = &*bench.topology;
    let domains: Vec<u32> = (0..topology.keys()).map(|key| topology.domains(key)).collect();
    let field = Field::new(&domains, &crowds(topology.counters.len(), bench.classes), topology.levels(), ground.manner.oldest_first);
    let mut packer =
        Packer { field, draft: Draft::default(), wishes: Vec::new(), failed: vec![None; topology.levels()], least: Amounts::new() };
    claims.into_iter().for_each(|claim| {
        packer.enter(bench, claim);
    });
    let mut waiting = packer.pass(bench, ground, runs, &least(bench.classes, runs));
    while waiting.iter().any(|run| waits(&bench.classes[run.class])) {
        let before: usize = waiting.iter().map(|run| run.count).sum();
        let none = vec![Amounts::new(); waiting.len()];
        waiting = packer.pass(bench, ground, &waiting, &none);
        let stuck = waiting.iter().map(|run| run.count).sum::<usize>() == before;
        if stuck && !packer.settle(bench, ground.tally, &waiting) {
            break;
        }
    }
    packer.draft.unplaced = waiting.into_iter().map(|run| (run.class, run.count)).collect();
    packer.draft.claims = packer.field.claims;
    packer.draft
}

impl Packer {
    /// Places runs in order; returns what found no place, by class.
    fn pass(&mut self, bench: &mut Bench<'_, '_>, ground: &mut Ground<'_, '_>, runs: &[Run], least: &[Amounts]) -> Vec<Run> {
        let mut waiting: Vec<Run> = Vec::new();
        for (run, least) in runs.iter().zip(least) {
            self.least.clone_from(least);
            let mut left = run.count;
            while left > 0 {
                let placed = self.place(bench, ground, run.class, left);
                if placed == 0 {
                    break;
                }
                left -= placed;
            }
            if left > 0 {
                match waiting.iter_mut().find(|other| other.class == run.class) {
                    Some(other) => other.count += left,
                    None => waiting.push(Run { class: run.class, count: left }),
                }
            }
        }
        waiting
    }

    /// Places at least one pod of a class, if it can; returns how many.
    fn place(&mut self, bench: &mut Bench<'_, '_>, ground: &mut Ground<'_, '_>, number: usize, left: usize) -> usize {
        let classes = bench.classes;
        let levels = &classes[number].company.levels;
        for stage in levels.chunk_by(|a, b| a.stage == b.stage) {
            for level in stage {
                if !self.failed(level, ground.tally) {
                    let seated = self.seat(bench, ground, number, level, left);
                    if seated > 0 {
                        return seated;
                    }
                }
            }
            for level in stage {
                if self.failed(level, ground.tally) {
                    continue;
                }
                if self.join(bench, ground, number, level) {
                    return 1;
                }
                self.failed[level.id as usize] = Some(stamp(level, ground.tally));
            }
        }
        0
    }

    /// Notes where a claim may come to be, which was in another state before.
    fn relocate(&mut self, bench: &mut Bench<'_, '_>, at: usize, before: StateId) {
        for key in HOST + 1..bench.topology.keys() {
            let was = bench.topology.reach(bench.tables, bench.states, before, key).clone();
            let is = bench.topology.reach(bench.tables, bench.states, self.field.claims[at].state, key);
            if was != *is {
                self.field.reaches(at, key, Some(&was), is);
            }
        }
    }

    /// Whether a level found no place, and nothing it depends on has changed since.
    fn failed(&self, level: &Level, tally: &Tally) -> bool {
        self.failed[level.id as usize].is_some_and(|then| then == stamp(level, tally))
    }

    fn seat(&mut self, bench: &mut Bench<'_, '_>, ground: &mut Ground<'_, '_>, number: usize, level: &Level, left: usize) -> usize {
        let Some(bins) = ground.bins.as_deref_mut().filter(|bins| bins.len() > 0) else { return 0 };
        if !bench.topology.wishes(level, ground.tally, &mut self.wishes) {
            return 0;
        }
        let class = &bench.classes[number];
        let asking = Asking { class, level, wishes: &self.wishes, tally: ground.tally };
        let Some((bin, count)) = bins.first(asking, bench.states, left) else { return 0 };
        bins.place(bin, class, count, bench.topology, ground.tally);
        self.draft.seated.push((number, bin, count));
        count
    }

    /// Puts one pod onto an open claim, or onto a new one.
    fn join(&mut self, bench: &mut Bench<'_, '_>, ground: &mut Ground<'_, '_>, number: usize, level: &Level) -> bool {
        let classes = bench.classes;
        let class = &classes[number];
        if !bench.topology.wishes(level, ground.tally, &mut self.wishes) {
            return false;
        }
        let mut cursor = Cursor::default();
        while let Some(at) = self.field.next(&mut cursor, level, &self.wishes, ground.tally) {
            let asking = Asking { class, level, wishes: &self.wishes, tally: ground.tally };
            match self.field.claims[at].answer(bench, asking) {
                Answer::Welcome(state) => {
                    self.take(bench, ground.tally, at, number, state);
                    return true;
                }
                Answer::Never => self.field.refuse(at, level),
                Answer::NotNow => {}
            }
        }
        let Some((claim, state)) = open(bench, number, level, &self.wishes, ground) else { return false };
        let at = self.enter(bench, claim);
        self.take(bench, ground.tally, at, number, state);
        charge(bench, &self.field.claims[at], ground);
        true
    }

    /// Adds a claim with what is on it; returns its number.
    fn enter(&mut self, bench: &mut Bench<'_, '_>, claim: OpenClaim) -> usize {
        let (state, local) = (claim.state, claim.local.clone());
        let at = self.field.push(claim);
        for key in HOST + 1..bench.topology.keys() {
            self.field.reaches(at, key, None, bench.topology.reach(bench.tables, bench.states, state, key));
        }
        local.iter().for_each(|(counter, pods)| self.field.crowd(at, *counter, 0, *pods));
        at
    }

    fn take(&mut self, bench: &mut Bench<'_, '_>, tally: &mut Tally, at: usize, number: usize, state: StateId) {
        let field = &mut self.field;
        let (mut crowded, before) = (Local::new(), (field.claims[at].state, field.claims[at].pods));
        field.claims[at].take(bench, tally, number, 1, state, &mut |counter, _, after| crowded.push((counter, after)));
        for (counter, after) in crowded {
            field.crowd(at, counter, after - 1, after);
        }
        if before.0 != state {
            self.relocate(bench, at, before.0);
        }
        let field = &mut self.field;
        field.moved(at, before.1);
        let claim = &field.claims[at];
        let table = &bench.tables.pools[claim.pool];
        if !self.least.is_empty() && !bench.states.get(claim.state).has_room(table, &claim.used, &self.least) {
            field.close(at);
        }
    }
}

/// What a level's refusal depends on.
fn stamp(level: &Level, tally: &Tally) -> u64 {
    level.loosening().map(|counter| u64::from(tally.0[counter as usize].changes)).sum()
}
