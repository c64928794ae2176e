//! From a draft to claims that can be written: the types that are left, the offering the plan
//! counts on, the price, the runner-up, and limits held against every type a claim may become.

use std::collections::BTreeMap;

use whittle_model::{CapacityType, Micros, OfferingKey, Requirement, Resources, keys};

use super::amounts::fits;
use super::classes::runs;
use super::greedy::{Bench, Draft, OpenClaim, pack};
use super::limits::Remaining;
use super::states::State;
use super::tables::{Offer, PoolTable};

/// EC2 is asked for at most this many types in one launch; naming more would only make the claim
/// larger.
pub(crate) const TYPES_IN_A_CLAIM: usize = 60;

/// A claim as it will be written, still by class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finished {
    pub(crate) pool: usize,
    pub(crate) content: Vec<(usize, usize)>,
    pub(crate) requirements: whittle_model::Requirements,
    pub(crate) requests: Resources,
    /// Names of the types it may become, best first.
    pub(crate) types: Vec<String>,
    pub(crate) choice: OfferingKey,
    pub(crate) rank: Micros,
    pub(crate) cost: Micros,
    pub(crate) runner_up: Option<(OfferingKey, Micros)>,
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

    /// Whether this is better: more pods placed, then a lower rank, then fewer nodes.
    pub(crate) fn better_than(&self, other: &Self) -> bool {
        (self.missing(), self.rank, self.claims.len()) < (other.missing(), other.rank, other.claims.len())
    }
}

/// Prices a draft. Claims that no longer keep within the limits of their pool lose their largest
/// types; one that keeps none gives its pods back.
pub(crate) fn finish(bench: &Bench<'_, '_>, draft: Draft, method: &'static str, mut remaining: Remaining) -> Priced {
    let mut priced = Priced { method, unplaced: draft.unplaced, ..Priced::default() };
    for claim in draft.claims {
        match finish_claim(bench, &claim, &mut remaining) {
            Some(finished) => {
                priced.rank = priced.rank + finished.rank;
                priced.cost = priced.cost + finished.cost;
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
    priced
}

/// Buys more for pods that were left out, by the greedy rule, as long as what the finished claims
/// leave of the limits allows it: while claims were open they counted as larger than they became.
/// Returns what that costs.
pub(crate) fn second_helping(bench: &mut Bench<'_, '_>, best: &mut Priced, remaining: &Remaining) -> Micros {
    let before = best.cost;
    loop {
        let mut counts: Vec<usize> = vec![0; bench.classes.len()];
        for (class, count) in best.unplaced.drain(..) {
            counts[class] += count;
        }
        best.unplaced = counts.iter().copied().enumerate().filter(|(_, count)| *count > 0).collect();
        if best.unplaced.is_empty() {
            break;
        }
        let mut left = remaining.clone();
        for claim in &best.claims {
            left.take(claim.pool, &largest_of(&bench.tables.pools[claim.pool], &claim.types));
        }
        let draft = pack(bench, &runs(bench.classes, &counts), &mut left.clone());
        let more = finish(bench, draft, best.method, left);
        if more.claims.is_empty() {
            break;
        }
        best.rank = best.rank + more.rank;
        best.cost = best.cost + more.cost;
        best.claims.extend(more.claims);
        best.unplaced = more.unplaced;
    }
    best.cost - before
}

fn finish_claim(bench: &Bench<'_, '_>, claim: &OpenClaim, remaining: &mut Remaining) -> Option<Finished> {
    let table = &bench.tables.pools[claim.pool];
    let state = bench.states.get(claim.state);
    let limited = remaining.limited(claim.pool);
    let allowed = |row: u32| {
        let row = &table.rows[row as usize];
        fits(&claim.used, &row.room) && (!limited || remaining.crossed(claim.pool, &row.instance_type.capacity).is_none())
    };
    // The best offering of each row that will do, in order of preference.
    let mut found: Vec<&Offer<'_>> = Vec::new();
    for offer in table.ranked.iter().filter(|o| state.offers.contains(**o as usize)).map(|o| &table.offers[*o as usize]) {
        if found.len() == TYPES_IN_A_CLAIM {
            break;
        }
        if !found.iter().any(|f| f.row == offer.row) && allowed(offer.row) {
            found.push(offer);
        }
    }
    let best = *found.first()?;
    let runner_up = found.get(1).map(|o| (table.key(o), o.rank));
    let rows: Vec<u32> = found.iter().map(|o| o.row).collect();
    if limited {
        remaining.take(claim.pool, &largest(table, &rows));
    }
    let types: Vec<String> = rows.iter().map(|row| table.rows[*row as usize].instance_type.name.clone()).collect();
    let mut requirements = state.requirements.clone();
    requirements.add(any_of(keys::INSTANCE_TYPE, &types));
    requirements.add(any_of(keys::CAPACITY_TYPE, &capacity_types(table, state, &rows)));
    Some(Finished {
        pool: claim.pool,
        content: claim.content.clone(),
        requirements,
        requests: requests(bench, claim, table, &rows),
        types,
        choice: table.key(best),
        rank: best.rank,
        cost: best.cost,
        runner_up,
    })
}

fn largest(table: &PoolTable<'_>, rows: &[u32]) -> Resources {
    let mut largest = Resources::default();
    for row in rows {
        largest.raise_to(&table.rows[*row as usize].instance_type.capacity);
    }
    largest
}

fn largest_of(table: &PoolTable<'_>, types: &[String]) -> Resources {
    let mut largest = Resources::default();
    for instance_type in types.iter().filter_map(|name| table.catalog.get(name)) {
        largest.raise_to(&instance_type.capacity);
    }
    largest
}

fn capacity_types(table: &PoolTable<'_>, state: &State, rows: &[u32]) -> Vec<String> {
    let offers = rows.iter().flat_map(|row| table.rows[*row as usize].offers.clone()).filter(|o| state.offers.contains(*o));
    let mut all: Vec<CapacityType> = offers.map(|o| table.offers[o].offering.capacity_type).collect();
    all.sort_unstable();
    all.dedup();
    all.into_iter().map(|c| c.name().to_owned()).collect()
}

fn any_of(key: &str, values: &[String]) -> Requirement {
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    Requirement::any_of(key, &values)
}

/// What the claim's pods ask for, with the least that daemons take of any type it may become.
fn requests(bench: &Bench<'_, '_>, claim: &OpenClaim, table: &PoolTable<'_>, rows: &[u32]) -> Resources {
    let mut sum = Resources::default();
    let mut by_class: BTreeMap<usize, usize> = BTreeMap::new();
    for (class, count) in &claim.content {
        *by_class.entry(*class).or_default() += count;
    }
    for (class, count) in by_class {
        let count = i64::try_from(count).expect("fewer pods than 2^63");
        for (name, amount) in bench.classes[class].requests.iter() {
            sum.set(name, sum.get(name).saturating_add(amount.saturating_mul(count)));
        }
    }
    let least = rows.iter().map(|row| &table.rows[*row as usize].daemons).min_by(|a, b| a.iter().cmp(b.iter()));
    if let Some(least) = least {
        sum.add(least);
    }
    sum
}
