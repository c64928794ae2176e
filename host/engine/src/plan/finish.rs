//! From a draft to claims that can be written: the types that are left, the offering the plan
//! counts on, the price, the runner-up, and limits held against every type a claim may become.

use std::collections::BTreeMap;
use std::rc::Rc;

use whittle_model::scorer::ScorerFailure;
use whittle_model::{CapacityType, Micros, OfferingKey, Resources};

use super::amounts::fits;
use super::askers::{family_label, mix_column};
use super::greedy::{Bench, Draft, OpenClaim};
use super::limits::Remaining;
use super::menu::{Menu, shortages};
use super::mix::{Mix, Part};
use super::pricer::{ASKED_AGAIN, Price};
use super::reserved;
use super::states::{State, StateId};
use super::tables::PoolTable;

/// EC2 is asked for at most this many types in one launch; naming more would only make the claim
/// larger.
pub(crate) const TYPES_IN_A_CLAIM: usize = 60;

/// A claim as it will be written, still by class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finished {
    pub(crate) pool: usize,
    pub(crate) content: Vec<(usize, usize)>,
    pub(crate) state: StateId,
    /// What its pods ask for, with the least that daemons take of any type it may become.
    pub(crate) requests: Resources,
    /// What it may be bought from.
    pub(crate) menu: Rc<Menu>,
    /// Under policies: the offerings to buy from, best first, with their price. Empty means whatever
    /// the requirements leave.
    pub(crate) listed: Vec<Found>,
    pub(crate) choice: OfferingKey,
    pub(crate) rank: Micros,
    pub(crate) cost: Micros,
    /// List price of the choice.
    pub(crate) list: Micros,
    pub(crate) runner_up: Option<(OfferingKey, Micros)>,
    /// Number of the choice among the pool's offerings.
    offer: u32,
    /// Its part in the mix, when prices depend on that.
    part: Option<Part>,
}

/// Claims of a packer with what they cost.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Priced {
    pub(crate) method: &'static str,
    pub(crate) claims: Vec<Finished>,
    pub(crate) unplaced: Vec<(usize, usize)>,
    pub(crate) rank: Micros,
    pub(crate) cost: Micros,
}

impl Priced {
    pub(crate) fn missing(&self) -> usize {
        self.unplaced.iter().map(|(_, count)| count).sum()
    }

    /// Whether of no class more pods are left over than `other` leaves.
    pub(crate) fn places_all_of(&self, other: &Self) -> bool {
        let left = |priced: &Self, class: usize| -> usize { priced.unplaced.iter().filter(|(c, _)| *c == class).map(|(_, n)| n).sum() };
        self.unplaced.iter().all(|(class, _)| left(self, *class) <= left(other, *class))
    }

    /// Whether this is better: more pods placed, then a lower rank, then fewer nodes.
    pub(crate) fn better_than(&self, other: &Self) -> bool {
        (self.missing(), self.rank, self.claims.len()) < (other.missing(), other.rank, other.claims.len())
    }

    fn sum_up(&mut self) {
        self.rank = self.claims.iter().map(|c| c.rank).sum();
        self.cost = self.claims.iter().map(|c| c.cost).sum();
    }
}

/// Prices a draft. Claims that no longer keep within the limits of their pool lose their largest
/// types; one that keeps none gives its pods back. Where prices depend on the mix, each claim is
/// settled against the mix of what exists and what was settled before it, and in the end all are
/// priced once more against the mix of everything else.
pub(crate) fn finish(
    bench: &mut Bench<'_, '_>,
    draft: Draft,
    method: &'static str,
    mut remaining: Remaining,
) -> Result<Priced, ScorerFailure> {
    let by_mix = bench.states.prices.iter().any(|p| p.by_mix);
    let mut mix = if by_mix { bench.pricer.mix() } else { Mix::default() };
    let mut priced = Priced { method, unplaced: draft.unplaced, ..Priced::default() };
    for claim in draft.claims {
        match finish_claim(bench, &claim, &mut remaining, &mix)? {
            Some(finished) => {
                finished.part.iter().for_each(|part| mix.add(part));
                priced.claims.push(finished);
            }
            None => {
                for (class, count) in claim.content {
                    match priced.unplaced.iter_mut().find(|(c, _)| *c == class) {
                        Some((_, so_far)) => *so_far += count,
                        None => priced.unplaced.push((class, count)),
                    }
                }
            }
        }
    }
    if by_mix {
        price_at_last(bench, &mut priced, &mut mix)?;
    }
    priced.sum_up();
    Ok(priced)
}

/// Prices each claim against the mix of everything else.
fn price_at_last(bench: &mut Bench<'_, '_>, priced: &mut Priced, mix: &mut Mix) -> Result<(), ScorerFailure> {
    for claim in priced.claims.iter_mut().filter(|c| bench.states.prices[c.pool].by_mix) {
        let Some(part) = claim.part.clone() else { continue };
        mix.subtract(&part);
        let (askers, pods) = (askers_of(bench, &claim.content), pods_of(&claim.content));
        let answers = bench.pricer.again(&bench.tables.pools[claim.pool], &askers, pods, &[claim.offer], mix)?;
        // A veto binds what is bought, and this was allowed when it was chosen: its rank stands.
        if let Some((_, Some(price))) = answers.first() {
            (claim.rank, claim.cost) = (price.rank, price.cost);
        }
        mix.add(&part);
    }
    Ok(())
}

/// An offering that a claim may be bought from, at what price.
pub(crate) type Found = (u32, Price);

fn finish_claim(
    bench: &mut Bench<'_, '_>,
    claim: &OpenClaim,
    remaining: &mut Remaining,
    mix: &Mix,
) -> Result<Option<Finished>, ScorerFailure> {
    let tables = bench.tables;
    let table = &tables.pools[claim.pool];
    let named = bench.states.prices[claim.pool].changed;
    let plain = !named && !remaining.tight(claim.pool);
    let known = if plain { bench.menus.known(claim.state, &claim.used) } else { None };
    let (menu, listed) = match known {
        Some(menu) => (menu, Vec::new()),
        None => {
            let found = found(bench, claim, remaining, mix)?;
            if found.is_empty() {
                return Ok(None);
            }
            let (now, state) = (bench.pricer.scene().1, bench.states.get(claim.state));
            let found = shortened(table, state, found, named);
            let menu = bench.menus.of(table, (claim.state, state), offers_of(&found), named, now);
            if plain {
                bench.menus.keep(claim.state, &claim.used, &menu);
            }
            (menu, if named { found } else { Vec::new() })
        }
    };
    let unit = table.reserved.then(|| reserved::named(&bench.states.get(claim.state).requirements)).flatten();
    if table.reserved && !unit.is_some_and(|reservation| remaining.reserve(reservation)) {
        return Ok(None);
    }
    if menu.short && !tables.relax {
        return Ok(None);
    }
    if remaining.limited(claim.pool) {
        remaining.take(claim.pool, &menu.largest);
    }
    Ok(Some(assemble(bench, claim, menu, listed)))
}

/// The offerings that a claim may be bought from, the best first.
fn found(bench: &mut Bench<'_, '_>, claim: &OpenClaim, remaining: &Remaining, mix: &Mix) -> Result<Vec<Found>, ScorerFailure> {
    let table = &bench.tables.pools[claim.pool];
    let tight = remaining.tight(claim.pool);
    let allowed = |offer: &u32| {
        let row = table.offers[*offer as usize].row as usize;
        fits(&claim.used, &table.rows[row].room) && !(tight && remaining.crosses(claim.pool, row))
    };
    let (state, purse) = (bench.states.get(claim.state), bench.states.purse_of(claim.state));
    let price = |offer: u32| purse.prices[offer as usize].map(|price| (offer, price));
    let priced = purse.ranked.iter().copied().filter(|o| state.offers.contains(*o as usize)).filter(allowed).filter_map(price);
    let prices = &bench.states.prices[claim.pool];
    if !prices.changed {
        // Where any types will do, no more are looked for than EC2 is asked for.
        let most = if table.flexibility.is_empty() { TYPES_IN_A_CLAIM } else { usize::MAX };
        return Ok(state.best.iter().copied().filter(allowed).filter_map(price).take(most).collect());
    }
    if !prices.by_mix {
        return Ok(best_of_one_way(table, state, priced));
    }
    let offers: Vec<u32> = cheapest_of_each_way(table, state, priced);
    let (askers, pods) = (askers_of(bench, &claim.content), pods_of(&claim.content));
    let answers = bench.pricer.again(table, &askers, pods, &offers, mix)?;
    let mut allowed: Vec<Found> = answers.into_iter().filter_map(|(o, price)| price.map(|p| (o, p))).collect();
    allowed.sort_unstable_by_key(|(offer, price)| (price.rank, table.places[*offer as usize]));
    Ok(best_of_one_way(table, state, allowed.into_iter()))
}

fn offers_of(found: &[Found]) -> Vec<u32> {
    found.iter().map(|(offer, _)| *offer).collect()
}

/// As many as EC2 is asked for, those that bring distinct values that the pool asks for before all others. When the
/// values it asks for take more types than that, they are given up.
fn shortened(table: &PoolTable<'_>, state: &State, found: Vec<Found>, changed: bool) -> Vec<Found> {
    if found.len() <= TYPES_IN_A_CLAIM {
        return found;
    }
    let candidates: Vec<(u32, Option<u32>)> =
        found.iter().map(|(offer, _)| (table.offers[*offer as usize].row, changed.then_some(*offer))).collect();
    let kept = table.flexibility.choose(&table.rows, state, &candidates, TYPES_IN_A_CLAIM);
    found.into_iter().zip(kept).filter_map(|(one, kept)| kept.then_some(one)).take(TYPES_IN_A_CLAIM).collect()
}

/// The best offerings of one capacity type: under policies a claim says what to buy, offering by offering, and one launch
/// is of one capacity type. It is that of the best of all, which comes first, unless that has too few distinct values.
fn best_of_one_way(table: &PoolTable<'_>, state: &State, priced: impl Iterator<Item = Found>) -> Vec<Found> {
    let way = |found: &Found| table.offers[found.0 as usize].offering.capacity_type;
    let mut priced = priced.peekable();
    let Some(best) = priced.peek().map(way) else { return Vec::new() };
    if table.flexibility.is_empty() {
        return priced.filter(|found| way(found) == best).take(TYPES_IN_A_CLAIM).collect();
    }
    let mut ways: Vec<(CapacityType, Vec<Found>)> = Vec::new();
    for found in priced {
        match ways.iter_mut().find(|(known, _)| *known == way(&found)) {
            Some((_, of_way)) => of_way.push(found),
            None => ways.push((way(&found), vec![found])),
        }
    }
    let enough = ways.iter().position(|(_, of_way)| shortages(table, state, &offers_of(of_way), true).is_empty());
    ways.swap_remove(enough.unwrap_or(0)).1
}

/// The cheapest offerings of each capacity type in equal parts: a chain that prices by the mix must
/// see every way to buy.
fn cheapest_of_each_way(table: &PoolTable<'_>, state: &State, priced: impl Iterator<Item = Found>) -> Vec<u32> {
    let enough = ASKED_AGAIN / table.ways.max(1);
    let mut ways: BTreeMap<CapacityType, Vec<u32>> = BTreeMap::new();
    let mut full = 0;
    for (offer, _) in priced {
        let of_way = ways.entry(table.offers[offer as usize].offering.capacity_type).or_default();
        of_way.push(offer);
        full += usize::from(of_way.len() == enough);
        // Offerings come by rank: what follows would be left out, unless it is needed for the number of values.
        if full == table.ways && table.flexibility.is_empty() {
            break;
        }
    }
    let each = ASKED_AGAIN / ways.len().max(1);
    let some = |offers: Vec<u32>| {
        let candidates: Vec<(u32, Option<u32>)> = offers.iter().map(|offer| (table.offers[*offer as usize].row, Some(*offer))).collect();
        let kept = table.flexibility.choose(&table.rows, state, &candidates, each);
        offers.into_iter().zip(kept).filter_map(|(offer, kept)| kept.then_some(offer)).take(each)
    };
    ways.into_values().flat_map(some).collect()
}

fn askers_of(bench: &Bench<'_, '_>, content: &[(usize, usize)]) -> Vec<u32> {
    let mut askers: Vec<u32> = content.iter().map(|(class, _)| bench.classes[*class].asker).collect();
    askers.sort_unstable();
    askers.dedup();
    askers
}

fn pods_of(content: &[(usize, usize)]) -> usize {
    content.iter().map(|(_, count)| count).sum()
}

/// A claim that is bought from a menu; `listed` are the prices there where policies made them.
fn assemble(bench: &mut Bench<'_, '_>, claim: &OpenClaim, menu: Rc<Menu>, listed: Vec<Found>) -> Finished {
    let table = &bench.tables.pools[claim.pool];
    let purse = bench.states.purse_of(claim.state);
    let price = |at: usize| listed.get(at).map_or_else(|| purse.prices[menu.offers[at] as usize], |(_, price)| Some(*price));
    let offer = menu.offers[0];
    let best = &table.offers[offer as usize];
    let (rank, cost) = price(0).map_or((Micros(0), Micros(0)), |price| (price.rank, price.cost));
    let other_type = (1..menu.offers.len()).find(|at| table.offers[menu.offers[*at] as usize].row != best.row);
    let runner_up = other_type.and_then(|at| Some((table.key(&table.offers[menu.offers[at] as usize]), price(at)?.rank)));
    let mut finished = Finished {
        pool: claim.pool,
        content: claim.content.clone(),
        state: claim.state,
        requests: requests(bench, &claim.content, &menu.daemons),
        choice: table.key(best),
        rank,
        cost,
        list: best.offering.price,
        runner_up,
        listed,
        menu,
        offer,
        part: None,
    };
    finished.part = part_of(bench, &finished);
    finished
}

/// What a claim will be in the mix; `None` when nobody looks at that.
fn part_of(bench: &mut Bench<'_, '_>, finished: &Finished) -> Option<Part> {
    if bench.pricer.mix_keys.is_empty() {
        return None;
    }
    let table = &bench.tables.pools[finished.pool];
    let row = &table.rows[table.offers[finished.offer as usize].row as usize];
    let pricer = &mut *bench.pricer;
    let family = row.instance_type.labels.get(&family_label()).map_or("", String::as_str);
    let choice = &finished.choice;
    let mut part = Part::new((choice.capacity_type.name(), &choice.zone, family), finished.list, &mut pricer.words);
    part.cost = finished.cost;
    let pool = pricer.words.intern(&table.pool.name);
    for key in &pricer.mix_keys {
        let mut values: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
        for (class, count) in &finished.content {
            let class = &bench.classes[*class];
            let value = mix_column(key).map_or(pool, |column| pricer.askers.split_value(&column, &class.split));
            let count = i64::try_from(*count).expect("fewer pods than 2^63");
            let slot = values.entry(value).or_default();
            *slot = (slot.0 + count, slot.1 + count * class.need[0]);
        }
        part.values.push(values);
    }
    Some(part)
}

/// What these pods and such daemons ask for.
fn requests(bench: &Bench<'_, '_>, content: &[(usize, usize)], daemons: &Resources) -> Resources {
    let mut sum = Resources::default();
    let mut by_class: BTreeMap<usize, usize> = BTreeMap::new();
    for (class, count) in content {
        *by_class.entry(*class).or_default() += count;
    }
    for (class, count) in by_class {
        let count = i64::try_from(count).expect("fewer pods than 2^63");
        for (name, amount) in bench.classes[class].requests.iter() {
            sum.set(name, sum.get(name).saturating_add(amount.saturating_mul(count)));
        }
    }
    sum.add(daemons);
    sum
}
