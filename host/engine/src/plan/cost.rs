//! Packing for cost, translated: from classes, pools and offerings to the abstract problem of
//! [`crate::pack`], and from its answer back to claims.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use whittle_model::{Micros, Toleration};

use super::amounts::fits;
use super::bins::repelling;
use super::classes::Class;
use super::greedy::{Bench, Draft, Ground, Manner, OpenClaim, charge, clear_of_daemons, open};
use super::limits::Remaining;
use super::ports::PortUse;
use super::states::{ProfileId, StateId};
use super::tables::{Row, Tables};
use super::topology::asks::Aim;
use super::topology::set::Set;
use super::topology::tally::Tally;
use super::topology::wishes::Asking;
use crate::intern::Lookup;
use crate::pack::{Kind, Packing, Problem};

/// What a kind of the problem stands for: the best offering of a row for the same set of profiles.
#[derive(Debug, Clone, Copy)]
struct Source {
    pool: usize,
    row: u32,
    offer: usize,
}

/// The problem and the way back.
#[derive(Debug)]
pub(crate) struct Translated {
    pub(crate) problem: Problem,
    sources: Vec<Source>,
    /// The profiles that each kind admits.
    admitted: Vec<Set>,
    /// Plan class of each problem class.
    classes: Vec<usize>,
}

/// States of an empty claim after each profile, by pool: what a pod of that profile could have.
type Openings = BTreeMap<ProfileId, Vec<Option<StateId>>>;

/// The profiles that an offering admits at a level of rank: its rank, its number and its cost.
type Leveled = (Set, (Micros, usize, Micros));

/// What pools with the same kinds have in common: by profile, where its offerings and their prices lie.
type Alike = Vec<Option<(usize, usize)>>;

/// Classes that may go to the same kinds, room and ports aside.
type Group<'a> = (&'a [Toleration], &'a [ProfileId]);
/// What decides which kinds of its group's a class fits: the group, what a pod needs, its ports.
type Fit<'a> = (usize, Vec<i64>, &'a PortUse);

/// The problem of placing `left` pods of each class on new nodes only. A class may go to the pools
/// of the first tier in which it fits at all, within what is left of the limits.
pub(crate) fn translate(bench: &mut Bench<'_, '_>, left: &[usize], remaining: &Remaining) -> Translated {
    let openings = openings(bench);
    let profiles: Vec<ProfileId> = openings.keys().copied().collect();
    let (kinds, sources, admitted) = kinds(bench, &openings, remaining);
    let wanted: Vec<usize> = (0..bench.classes.len()).filter(|c| left[*c] > 0).collect();
    let width = bench.tables.dimensions.names().len();
    let mut problem = Problem { width, classes: Vec::new(), kinds };
    // Classes are many, and few differ in what they may have.
    let mut by_group: BTreeMap<Group<'_>, (usize, Vec<usize>)> = BTreeMap::new();
    let mut lists: BTreeMap<Fit<'_>, Arc<[u32]>> = BTreeMap::new();
    for number in &wanted {
        let class = &bench.classes[*number];
        let groups = by_group.len();
        let (group, reachable) = by_group.entry((class.tolerations, &class.profiles[..])).or_insert_with(|| {
            let open: Vec<bool> = bench.tables.pools.iter().map(|table| repelling(&table.pool.template.taints, class).is_none()).collect();
            let mine: Vec<u32> = class.profiles.iter().filter_map(|p| profiles.binary_search(p).ok()).map(index).collect();
            let suits = |kind: &usize| open[sources[*kind].pool] && mine.iter().any(|p| admitted[*kind].contains(*p));
            (groups, (0..sources.len()).filter(suits).collect())
        });
        let alone = class.need_beside(&[]);
        let barred = |kind: usize| {
            let table = &bench.tables.pools[sources[kind].pool];
            !class.ports.is_empty() && class.ports.takes.meets(&table.rows[table.offers[sources[kind].offer].row as usize].barred)
        };
        let list = lists.entry((*group, alone.to_vec(), &class.ports)).or_insert_with(|| {
            // Pools that share what they sell have the same rooms.
            let mut roomy: Vec<(*const Row<'_>, Vec<bool>)> = Vec::new();
            let mut of_pool: Vec<usize> = Vec::with_capacity(bench.tables.pools.len());
            for table in &bench.tables.pools {
                let known = roomy.iter().position(|(rows, _)| *rows == table.rows.as_ptr());
                of_pool.push(known.unwrap_or(roomy.len()));
                if known.is_none() {
                    roomy.push((table.rows.as_ptr(), table.rows.iter().map(|row| fits(&alone, &row.room)).collect()));
                }
            }
            let fitting = |kind: &usize| roomy[of_pool[sources[*kind].pool]].1[sources[*kind].row as usize] && !barred(*kind);
            // Kinds stand by pool, and pools by tier.
            let tier = |kind: usize| bench.tables.pools[sources[kind].pool].tier;
            let mut allowed = reachable.iter().copied().filter(fitting).peekable();
            let first = allowed.peek().map(|kind| tier(*kind));
            allowed.take_while(|kind| Some(tier(*kind)) == first).map(index).collect()
        });
        problem.classes.push(crate::pack::Class {
            demand: class.need.to_vec(),
            count: u32::try_from(left[*number]).unwrap_or(u32::MAX),
            kinds: Arc::clone(list),
            alone: class.alone(),
            conflicts: Vec::new(),
        });
    }
    add_conflicts(bench, &wanted, &mut problem);
    Translated { problem, sources, admitted, classes: wanted }
}

fn index(at: usize) -> u32 {
    u32::try_from(at).expect("fewer kinds and classes than 2^32")
}

fn openings(bench: &mut Bench<'_, '_>) -> Openings {
    let profiles: BTreeSet<ProfileId> = bench.classes.iter().flat_map(|c| c.profiles.iter().copied()).collect();
    let mut all = Openings::new();
    for profile in profiles {
        let states = (0..bench.tables.pools.len())
            .map(|pool| {
                let base = bench.states.base(pool)?;
                bench.states.merge(bench.tables, base, profile)
            })
            .collect();
        all.insert(profile, states);
    }
    all
}

/// One kind for each row and set of profiles that its offerings admit: the best-ranked of them.
fn kinds(bench: &Bench<'_, '_>, openings: &Openings, remaining: &Remaining) -> (Vec<Kind>, Vec<Source>, Vec<Set>) {
    let (mut kinds, mut sources, mut admitted) = (Vec::new(), Vec::new(), Vec::new());
    let mut known: Lookup<Alike, Vec<Vec<Leveled>>> = Lookup::default();
    // What is reserved is counted, which kinds are not: the greedy's claims there stay.
    for (pool, table) in bench.tables.pools.iter().enumerate().filter(|(_, table)| !table.reserved) {
        let tight = remaining.tight(pool);
        // Of pools that share what they sell, those that may hold the same profiles have the same kinds.
        let states = || openings.values().map(|states| states[pool]);
        let masks = |state| (Rc::as_ptr(&bench.states.get(state).offers).addr(), bench.states.purse_of(state).prices.as_ptr().addr());
        let same: Alike = states().map(|state| state.map(masks)).collect();
        if known.get(&same).is_none() {
            known.insert(same.clone(), table.rows.iter().map(|row| levels(bench, openings, pool, row.offers.clone())).collect());
        }
        for ((number, row), levels) in table.rows.iter().enumerate().zip(known.get(&same).into_iter().flatten()) {
            if tight && remaining.crosses(pool, number) {
                continue;
            }
            for (admits, (rank, offer, cost)) in levels {
                kinds.push(Kind { capacity: row.room.to_vec(), rank: *rank, cost: *cost });
                sources.push(Source { pool, row: index(number), offer: *offer });
                admitted.push(admits.clone());
            }
        }
    }
    (kinds, sources, admitted)
}

/// For each set of profiles that some offering admits at some rank: the best such offering, with
/// its rank and cost. A node ranks as its dearest asker, so an offering that costs one asker more
/// than another is two kinds: one for the first level of rank and those who pay no more, and one for
/// all.
fn levels(bench: &Bench<'_, '_>, openings: &Openings, pool: usize, offers: Range<usize>) -> Vec<Leveled> {
    let mut best: Vec<Leveled> = Vec::new();
    let mut priced: Vec<(Micros, Micros, u32)> = Vec::new();
    for offer in offers {
        priced.clear();
        for (profile, states) in openings.values().enumerate() {
            let Some(state) = states[pool].filter(|s| bench.states.get(*s).offers.contains(offer)) else { continue };
            priced.extend(bench.states.purse_of(state).prices[offer].map(|price| (price.rank, price.cost, index(profile))));
        }
        priced.sort_unstable();
        let mut admits = Set::default();
        for level in priced.chunk_by(|a, b| a.0 == b.0) {
            level.iter().for_each(|(_, _, profile)| admits.insert(*profile));
            // Sorted: the dearest of a level is its last.
            let this = level.last().map_or((Micros(0), offer, Micros(0)), |(rank, cost, _)| (*rank, offer, *cost));
            match best.iter_mut().find(|(known, _)| *known == admits) {
                Some((_, slot)) if (this.0, this.1) < (slot.0, slot.1) => *slot = this,
                Some(_) => {}
                None => best.push((admits.clone(), this)),
            }
        }
    }
    best.sort_unstable_by(|(a, _), (b, _)| a.iter().cmp(b.iter()));
    best
}

/// Classes that never share a node: by anti-affinity, or because they ask for different values of
/// a label that the pool leaves open. Classes that are alike in both are compared once.
fn add_conflicts(bench: &mut Bench<'_, '_>, wanted: &[usize], problem: &mut Problem) {
    let mut groups: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    let aparts = |class: &Class<'_>| -> Vec<u32> {
        class.required().host.iter().filter(|rule| rule.kind == Aim::Apart).map(|rule| rule.counter).collect()
    };
    let excluded: BTreeSet<u32> = wanted.iter().flat_map(|number| aparts(&bench.classes[*number])).collect();
    for (at, number) in wanted.iter().enumerate() {
        let class = &bench.classes[*number];
        let counts: Vec<u32> = class.company.counts.iter().copied().filter(|counter| excluded.contains(counter)).collect();
        groups.entry((&class.profiles[..], aparts(class), counts, &class.ports)).or_default().push(at);
    }
    let groups: Vec<Vec<usize>> = groups.into_values().collect();
    for (n, left) in groups.iter().enumerate() {
        for right in &groups[n..] {
            let (a, b) = (&bench.classes[wanted[left[0]]], &bench.classes[wanted[right[0]]]);
            if a.excludes(b) || clash(bench.states, a, b) {
                for (x, y) in left.iter().flat_map(|x| right.iter().map(move |y| (*x, *y))).filter(|(x, y)| x != y) {
                    problem.classes[x].conflicts.push(index(y));
                    problem.classes[y].conflicts.push(index(x));
                }
            }
        }
    }
    for class in &mut problem.classes {
        class.conflicts.sort_unstable();
        class.conflicts.dedup();
    }
}

/// Whether no alternative of one class agrees with any of the other.
fn clash(states: &super::states::States, a: &Class<'_>, b: &Class<'_>) -> bool {
    !a.profiles.iter().any(|p| b.profiles.iter().any(|q| p == q || states.wanted(*p).intersects(states.wanted(*q))))
}

impl Translated {
    /// The plan's number of a class of the problem.
    pub(crate) fn class(&self, number: u32) -> usize {
        self.classes[number as usize]
    }

    /// Pool and instance type of each kind of the problem.
    pub(crate) fn kinds<'t>(&self, tables: &'t Tables<'_>) -> impl Iterator<Item = (&'t str, &'t str)> {
        self.sources.iter().map(|source| {
            let table = &tables.pools[source.pool];
            let row = &table.rows[table.offers[source.offer].row as usize];
            (table.pool.name.as_str(), row.instance_type.name.as_str())
        })
    }

    /// The lower bound on any packing; and by table and row what a node of it can be worth at most by the duals of that
    /// bound, by its rank (1 where it just pays, 0 where another is better in every respect), and the rank.
    pub(crate) fn prospects(&self, bench: &Bench<'_, '_>) -> (Micros, Vec<Vec<(f64, Micros)>>) {
        let (bound, promises) = crate::pack::prospects(&self.problem);
        let none = |table: &super::tables::PoolTable<'_>| vec![(0.0, Micros(i64::MAX)); table.rows.len()];
        let mut of_rows: Vec<Vec<(f64, Micros)>> = bench.tables.pools.iter().map(none).collect();
        for ((source, kind), promise) in self.sources.iter().zip(&self.problem.kinds).zip(promises) {
            let row = &mut of_rows[source.pool][bench.tables.pools[source.pool].offers[source.offer].row as usize];
            *row = (promise.max(row.0), kind.rank.min(row.1));
        }
        (bound.rank, of_rows)
    }

    /// A packing as a draft. Where merged requirements refuse what pairwise checks allowed, the
    /// pods concerned are opened anew by the greedy rule.
    pub(crate) fn draft(&self, bench: &mut Bench<'_, '_>, packing: &Packing, tally: &mut Tally, remaining: &Remaining) -> Draft {
        let unplaced = packing.unplaced.iter().map(|(c, n)| (self.classes[*c as usize], *n as usize)).collect();
        let mut draft = Draft { unplaced, ..Draft::default() };
        let mut loose: Vec<(usize, usize)> = Vec::new();
        for pattern in &packing.patterns {
            for _ in 0..pattern.times {
                let claim = self.claim(bench, pattern.kind, &pattern.items, tally, &mut loose);
                draft.claims.extend(claim);
            }
        }
        for (class, count) in loose {
            let mut ground = Ground { bins: None, tally: &mut *tally, remaining: &mut remaining.clone(), manner: Manner::default() };
            reopen(bench, &mut draft, class, count, &mut ground);
        }
        draft
    }

    /// The greedy's draft as a packing, for the solver to beat. What the problem does not know (a
    /// pod on a node of a pool below its tier) makes the whole draft unknown: nothing packed.
    pub(crate) fn packing(&self, bench: &Bench<'_, '_>, draft: &Draft) -> Packing {
        self.known(bench, draft).unwrap_or_else(|| Packing {
            patterns: Vec::new(),
            unplaced: self.problem.classes.iter().enumerate().map(|(class, c)| (index(class), c.count)).collect(),
        })
    }

    fn known(&self, bench: &Bench<'_, '_>, draft: &Draft) -> Option<Packing> {
        let mut kinds: BTreeMap<(usize, u32, &Set), usize> = BTreeMap::new();
        for (kind, source) in self.sources.iter().enumerate() {
            let row = bench.tables.pools[source.pool].offers[source.offer].row;
            kinds.insert((source.pool, row, &self.admitted[kind]), kind);
        }
        let none = Set::default();
        let mut packing = Packing::default();
        for claim in &draft.claims {
            let row = bench.tables.pools[claim.pool].offers[best_offer(bench, claim)?].row;
            let mut items: BTreeMap<u32, u32> = BTreeMap::new();
            for (class, count) in &claim.content {
                *items.entry(index(self.classes.binary_search(class).ok()?)).or_default() += index(*count);
            }
            let of_row = kinds.range((claim.pool, row, &none)..).take_while(|((pool, r, _), _)| (*pool, *r) == (claim.pool, row));
            let holds_all =
                |kind: usize| items.keys().all(|class| self.problem.classes[*class as usize].kinds.binary_search(&index(kind)).is_ok());
            let kind = of_row.map(|(_, kind)| *kind).filter(|kind| holds_all(*kind)).min_by_key(|kind| self.problem.kinds[*kind].rank)?;
            packing.patterns.push(crate::pack::Pattern { kind: index(kind), items: items.into_iter().collect(), times: 1 });
        }
        Some(packing)
    }

    fn claim(
        &self,
        bench: &mut Bench<'_, '_>,
        kind: u32,
        items: &[(u32, u32)],
        tally: &mut Tally,
        loose: &mut Vec<(usize, usize)>,
    ) -> Option<OpenClaim> {
        let source = self.sources[kind as usize];
        let classes = bench.classes;
        let mut claim: Option<OpenClaim> = None;
        for (class, count) in items {
            let (number, count) = (self.classes[*class as usize], *count as usize);
            let base = bench.states.base(source.pool)?;
            let current = claim.get_or_insert_with(|| OpenClaim::new(source.pool, base, bench.tables.dimensions.names().len()));
            let state = classes[number].profiles.iter().find_map(|profile| {
                let state = bench.states.merge(bench.tables, current.state, *profile)?;
                let state = clear_of_daemons(bench.states, bench.tables, state, &classes[number])?;
                bench.states.get(state).offers.contains(source.offer).then_some(state)
            });
            // Volumes that pods share are no part of the problem.
            let state = state.filter(|_| {
                let class = &classes[number];
                class.shared.is_empty() || current.has_volumes(bench, source.offer, class, count)
            });
            match state {
                Some(state) => current.take(bench, tally, number, count, state, &mut |_, _, _| ()),
                None => loose.push((number, count)),
            }
        }
        let claim = claim.filter(|c| c.pods > 0)?;
        if !claim.is_flexible(bench) {
            loose.extend(claim.content);
            return None;
        }
        Some(claim)
    }
}

/// Opens claims for pods of one class and fills each with what it accepts.
fn reopen(bench: &mut Bench<'_, '_>, draft: &mut Draft, number: usize, mut count: usize, ground: &mut Ground<'_, '_>) {
    let classes = bench.classes;
    let class = &classes[number];
    let mut wishes = Vec::new();
    while count > 0 {
        let opened = class.company.levels.iter().find_map(|level| {
            let able = bench.topology.wishes(level, ground.tally, &mut wishes);
            able.then(|| open(bench, number, level, &wishes, ground)).flatten().map(|opened| (level, opened))
        });
        let Some((level, (mut claim, state))) = opened else {
            draft.unplaced.push((number, count));
            return;
        };
        claim.take(bench, ground.tally, number, 1, state, &mut |_, _, _| ());
        charge(bench, &claim, ground);
        count -= 1;
        while count > 0 && bench.topology.wishes(level, ground.tally, &mut wishes) {
            let Some(state) = claim.accepts(bench, Asking { class, level, wishes: &wishes, tally: ground.tally }) else { break };
            claim.take(bench, ground.tally, number, 1, state, &mut |_, _, _| ());
            count -= 1;
        }
        draft.claims.push(claim);
    }
}

/// The best-ranked offering that holds what a claim holds.
fn best_offer(bench: &Bench<'_, '_>, claim: &OpenClaim) -> Option<usize> {
    let (table, state) = (&bench.tables.pools[claim.pool], bench.states.get(claim.state));
    let mut offers = bench.states.purse_of(claim.state).ranked.iter().map(|o| *o as usize).filter(|o| state.offers.contains(*o));
    offers.find(|o| fits(&claim.used, &table.rows[table.offers[*o].row as usize].room))
}
