//! The documented greedy: biggest pod first, onto the open claim with the fewest pods that still
//! has a fitting type, else a new claim from the first pool that fits. It is always available, and
//! it is the yardstick of every other packer.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::amounts::{Amounts, add};
use super::classes::{Class, Run, share_any};
use super::flexible::Counts;
use super::limits::Remaining;
use super::pricer::Pricer;
use super::states::{ProfileId, StateId, States};
use super::tables::Tables;

/// A claim that is being filled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OpenClaim {
    pub(crate) pool: usize,
    pub(crate) state: StateId,
    pub(crate) used: Amounts,
    pub(crate) pods: usize,
    /// Class and number of its pods, in the order they came.
    pub(crate) content: Vec<(usize, usize)>,
    pub(crate) owned: Vec<u32>,
    pub(crate) matched: Vec<u32>,
}

/// Claims to be made, and pods that found no place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Draft {
    pub(crate) claims: Vec<OpenClaim>,
    /// Class and number of pods without a place.
    pub(crate) unplaced: Vec<(usize, usize)>,
}

/// What a packer works with.
pub(crate) struct Bench<'a, 'w> {
    pub(crate) tables: &'a Tables<'w>,
    pub(crate) states: &'a mut States,
    pub(crate) pricer: &'a mut Pricer<'w>,
    pub(crate) classes: &'a [Class<'w>],
}

impl OpenClaim {
    /// A claim with nothing in it.
    pub(crate) fn new(pool: usize, state: StateId, width: usize) -> Self {
        Self { pool, state, used: Amounts::from_elem(0, width), pods: 0, content: Vec::new(), owned: Vec::new(), matched: Vec::new() }
    }

    /// Takes `count` pods of a class in and goes over to `state`.
    pub(crate) fn take(&mut self, number: usize, class: &Class<'_>, count: usize, state: StateId) {
        self.state = state;
        self.pods += count;
        add(&mut self.used, &class.need, i64::try_from(count).expect("fewer pods than 2^63"));
        match self.content.last_mut() {
            Some((last, so_far)) if *last == number => *so_far += count,
            _ => self.content.push((number, count)),
        }
        self.owned.extend(class.owned.iter().filter(|t| !self.owned.contains(t)).copied().collect::<Vec<_>>());
        self.matched.extend(class.matched.iter().filter(|t| !self.matched.contains(t)).copied().collect::<Vec<_>>());
    }

    /// The state after one more pod of `class` under `profile`, if it has room for it.
    pub(crate) fn accepts(&self, bench: &mut Bench<'_, '_>, class: &Class<'_>, profile: ProfileId) -> Option<StateId> {
        let table = &bench.tables.pools[self.pool];
        if !class.owned.is_empty() || !class.matched.is_empty() {
            let excluded = share_any(&class.owned, &self.matched) || share_any(&class.matched, &self.owned);
            if excluded {
                return None;
            }
        }
        // Asked first of what is there already: most refusals end here.
        if !bench.states.get(self.state).has_room(table, &self.used, &class.need) {
            return None;
        }
        if super::bins::repelling(&table.pool.template.taints, class).is_some() {
            return None;
        }
        let state = bench.states.merge(bench.tables, self.state, profile)?;
        let roomy = state == self.state || bench.states.get(state).has_room(table, &self.used, &class.need);
        (roomy && self.stays_flexible(bench, state, &class.need)).then_some(state)
    }

    /// Whether enough distinct values remain once `need` is added. A claim that had fewer from its first pod on keeps
    /// those it has.
    fn stays_flexible(&self, bench: &Bench<'_, '_>, next: StateId, need: &[i64]) -> bool {
        let table = &bench.tables.pools[self.pool];
        if table.flexibility.is_empty() || (bench.tables.relax && self.pods == 0) {
            return true;
        }
        let had = bench.tables.relax.then(|| table.flexibility.left(&table.rows, bench.states.get(self.state), &self.used));
        table.flexibility.keeps(&table.rows, bench.states.get(next), &self.used, need, had.as_ref())
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
                let left = table.flexibility.left(&table.rows, bench.states.get(alone), &class.need);
                had = Some(had.map_or(left.clone(), |least: Counts| least.iter().zip(&left).map(|(a, b)| *a.min(b)).collect()));
            }
        }
        table.flexibility.keeps(&table.rows, bench.states.get(self.state), &self.used, &none, had.as_ref())
    }
}

/// Packs `runs` onto new claims.
pub(crate) fn pack(bench: &mut Bench<'_, '_>, runs: &[Run], remaining: &mut Remaining) -> Draft {
    let mut draft = Draft::default();
    for run in runs {
        let mut left = run.count;
        let class = &bench.classes[run.class];
        for profile in &class.profiles {
            if left > 0 {
                left = pack_run(bench, &mut draft, run.class, *profile, left, remaining);
            }
        }
        if left > 0 {
            match draft.unplaced.iter_mut().find(|(class, _)| *class == run.class) {
                Some((_, count)) => *count += left,
                None => draft.unplaced.push((run.class, left)),
            }
        }
    }
    draft
}

/// Places pods of one class; returns how many are left. A claim that refuses the class once will
/// refuse it for the rest of the run, so each is asked until it first says no.
fn pack_run(
    bench: &mut Bench<'_, '_>,
    draft: &mut Draft,
    number: usize,
    profile: ProfileId,
    mut left: usize,
    remaining: &mut Remaining,
) -> usize {
    let classes = bench.classes;
    let class = &classes[number];
    let mut willing: BinaryHeap<Reverse<(usize, usize)>> = draft.claims.iter().enumerate().map(|(at, c)| Reverse((c.pods, at))).collect();
    while left > 0 {
        if let Some(Reverse((_, at))) = willing.pop() {
            if let Some(state) = draft.claims[at].accepts(bench, class, profile) {
                draft.claims[at].take(number, class, 1, state);
                left -= 1;
                willing.push(Reverse((draft.claims[at].pods, at)));
            }
            continue;
        }
        let Some(claim) = open(bench, number, profile, remaining) else { break };
        draft.claims.push(claim);
        left -= 1;
        willing.push(Reverse((1, draft.claims.len() - 1)));
    }
    left
}

/// A new claim with one pod of the class, from the first pool that fits.
pub(crate) fn open(bench: &mut Bench<'_, '_>, number: usize, profile: ProfileId, remaining: &mut Remaining) -> Option<OpenClaim> {
    (0..bench.tables.pools.len()).find_map(|pool| open_in(bench, pool, number, profile, remaining))
}

fn open_in(bench: &mut Bench<'_, '_>, pool: usize, number: usize, profile: ProfileId, remaining: &mut Remaining) -> Option<OpenClaim> {
    let table = &bench.tables.pools[pool];
    let mut claim = OpenClaim::new(pool, bench.states.base(pool)?, bench.tables.dimensions.names().len());
    if remaining.limited(pool) {
        let within = |row: u32| remaining.crossed(pool, &table.rows[row as usize].instance_type.capacity).is_none();
        claim.state = bench.states.cut(bench.tables, claim.state, &within)?;
    }
    let class = &bench.classes[number];
    let state = claim.accepts(bench, class, profile)?;
    claim.take(number, class, 1, state);
    if remaining.limited(pool) {
        // Pessimistic, as documented: whichever of its types is bought, the limit holds.
        let mut largest = whittle_model::Resources::default();
        let state = bench.states.get(state);
        for row in state.rows.ones().map(|row| &table.rows[row]).filter(|row| super::amounts::fits(&claim.used, &row.room)) {
            largest.raise_to(&row.instance_type.capacity);
        }
        remaining.take(pool, &largest);
    }
    Some(claim)
}
