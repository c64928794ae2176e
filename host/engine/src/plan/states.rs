//! What a new claim may still become: a pool, the requirements merged so far, whose pods it holds,
//! and the rows and offerings that suit them all. States and their merges are few and are computed once.

use fixedbitset::FixedBitSet;
use whittle_model::{InstanceType, Micros, Offering, Requirements, keys};

use super::amounts::fits;
use super::pricer::{PoolPrices, Price, dearest};
use super::tables::{PoolTable, Tables};
use crate::intern::Lookup;

/// Index of a state.
pub(crate) type StateId = u32;
/// Index of a requirement profile of pods.
pub(crate) type ProfileId = u32;

/// One state.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) pool: usize,
    pub(crate) requirements: Requirements,
    pub(crate) rows: FixedBitSet,
    pub(crate) offers: FixedBitSet,
    /// Whose pods it holds, as far as prices differ by that: index of a [`Purse`].
    pub(crate) purse: u32,
    /// Rows with most room: a need fits some row exactly if it fits one of these.
    pub(crate) ceiling: Vec<u32>,
    /// The best offering of each row, best first.
    pub(crate) best: Vec<u32>,
}

/// What offerings cost a claim that holds pods of these groups of askers: the dearest group's price.
#[derive(Debug, Clone, Default)]
pub(crate) struct Purse {
    pool: usize,
    /// Ascending.
    groups: Vec<u32>,
    /// By offering; `None` where one of the groups must not buy it.
    pub(crate) prices: Vec<Option<Price>>,
    /// Offerings that may be bought, in order of preference: rank, capacity type, type, zone.
    pub(crate) ranked: Vec<u32>,
}

/// All states of a plan.
#[derive(Debug, Default)]
pub(crate) struct States {
    all: Vec<State>,
    known: Lookup<(u32, Requirements, FixedBitSet), StateId>,
    merged: Lookup<(StateId, ProfileId), Option<StateId>>,
    /// What is left of a state with these rows alone, and with all that its requirements leave.
    narrowed: Lookup<(StateId, FixedBitSet), Option<StateId>>,
    widened: Lookup<StateId, StateId>,
    /// Requirements and asker.
    profiles: Vec<(Requirements, u32)>,
    profile_numbers: Lookup<(Requirements, u32), ProfileId>,
    purses: Vec<Purse>,
    purse_numbers: Lookup<(usize, Vec<u32>), u32>,
    /// By pool.
    pub(crate) prices: Vec<PoolPrices>,
    /// The state of an empty claim, by pool.
    base: Vec<Option<StateId>>,
}

impl States {
    /// Makes the states of empty claims, once it is known what offerings are worth.
    pub(crate) fn open(&mut self, tables: &Tables<'_>, prices: Vec<PoolPrices>) {
        self.prices = prices;
        for (number, pool) in tables.pools.iter().enumerate() {
            let mut rows = FixedBitSet::with_capacity(pool.rows.len());
            rows.insert_range(..);
            // Where prices are everybody's, an empty claim has them already.
            let groups = if self.prices[number].groups.len() == 1 { vec![0] } else { Vec::new() };
            let purse = self.purse(tables, number, groups);
            let base = self.enter(pool, purse, pool.template.clone(), &rows, None);
            self.base.push(base);
        }
    }

    /// The purse of these groups of askers in a pool.
    fn purse(&mut self, tables: &Tables<'_>, pool: usize, groups: Vec<u32>) -> u32 {
        let key = (pool, groups);
        if let Some(known) = self.purse_numbers.get(&key) {
            return *known;
        }
        let table = &tables.pools[pool];
        let of = &self.prices[pool].groups;
        let all = of.first().map_or(0, |g| g.prices.len());
        let free = Some(Price { rank: Micros(1), cost: Micros(0) });
        let price = |offer: usize| key.1.iter().fold(free, |worst, group| dearest(worst, of[*group as usize].prices[offer]));
        let prices: Vec<Option<Price>> = (0..all).map(price).collect();
        let mut ranked: Vec<u32> = (0..all).filter(|o| prices[*o].is_some()).map(row_number).collect();
        ranked.sort_unstable_by_key(|offer| (prices[*offer as usize].map(|price| price.rank), table.places[*offer as usize]));
        let number = u32::try_from(self.purses.len()).expect("fewer purses than states");
        self.purses.push(Purse { pool, groups: key.1.clone(), prices, ranked });
        self.purse_numbers.insert(key, number);
        number
    }

    /// What offerings cost a claim in this state.
    pub(crate) fn purse_of(&self, id: StateId) -> &Purse {
        &self.purses[self.all[id as usize].purse as usize]
    }

    /// The state of this number.
    pub(crate) fn get(&self, id: StateId) -> &State {
        &self.all[id as usize]
    }

    /// The state of an empty claim of a pool; `None` when nothing may be bought there.
    pub(crate) fn base(&self, pool: usize) -> Option<StateId> {
        self.base[pool]
    }

    /// The number of a profile, new or known.
    pub(crate) fn profile(&mut self, wanted: &Requirements, asker: u32) -> ProfileId {
        let key = (wanted.clone(), asker);
        if let Some(known) = self.profile_numbers.get(&key) {
            return *known;
        }
        let number = ProfileId::try_from(self.profiles.len()).expect("fewer profiles than pods");
        self.profiles.push(key.clone());
        self.profile_numbers.insert(key, number);
        number
    }

    /// The requirements of a profile.
    pub(crate) fn wanted(&self, profile: ProfileId) -> &Requirements {
        &self.profiles[profile as usize].0
    }

    /// The state of a claim once a pod of `profile` joins it; `None` when they cannot agree.
    pub(crate) fn merge(&mut self, tables: &Tables<'_>, id: StateId, profile: ProfileId) -> Option<StateId> {
        let pool = self.all[id as usize].pool;
        let purse = self.joined(tables, id, profile);
        if self.profiles[profile as usize].0.is_empty() && purse == self.all[id as usize].purse {
            return Some(id);
        }
        if let Some(known) = self.merged.get(&(id, profile)) {
            return *known;
        }
        let (state, wanted) = (&self.all[id as usize], &self.profiles[profile as usize].0);
        let result = if state.requirements.compatible(wanted, &keys::well_known).is_ok() {
            let mut both = state.requirements.clone();
            both.add_all(wanted);
            let (rows, offers) = (state.rows.clone(), state.offers.clone());
            self.enter(&tables.pools[pool], purse, both, &rows, Some(&offers))
        } else {
            None
        };
        self.merged.insert((id, profile), result);
        result
    }

    /// The purse of a claim once a pod of `profile` joins it.
    fn joined(&mut self, tables: &Tables<'_>, id: StateId, profile: ProfileId) -> u32 {
        let (pool, purse) = (self.all[id as usize].pool, self.all[id as usize].purse);
        let group = self.prices[pool].group(self.profiles[profile as usize].1);
        let groups = &self.purses[purse as usize].groups;
        match groups.binary_search(&group) {
            Ok(_) => purse,
            Err(at) => {
                let mut groups = groups.clone();
                groups.insert(at, group);
                self.purse(tables, pool, groups)
            }
        }
    }

    /// The state of the same requirements in which every row remains that they leave.
    pub(crate) fn widened(&mut self, tables: &Tables<'_>, id: StateId) -> StateId {
        if let Some(known) = self.widened.get(&id) {
            return *known;
        }
        let state = &self.all[id as usize];
        let (table, purse, requirements) = (&tables.pools[state.pool], state.purse, state.requirements.clone());
        let mut rows = FixedBitSet::with_capacity(table.rows.len());
        rows.insert_range(..);
        let wide = self.enter(table, purse, requirements, &rows, None).unwrap_or(id);
        self.widened.insert(id, wide);
        wide
    }

    /// The state in which only the given rows remain; `None` when none does.
    pub(crate) fn cut(&mut self, tables: &Tables<'_>, id: StateId, keep: &dyn Fn(u32) -> bool) -> Option<StateId> {
        let state = &self.all[id as usize];
        if state.rows.ones().all(|row| keep(row_number(row))) {
            return Some(id);
        }
        let mut rows = state.rows.clone();
        for row in state.rows.ones().filter(|row| !keep(row_number(*row))) {
            rows.remove(row);
        }
        if let Some(known) = self.narrowed.get(&(id, rows.clone())) {
            return *known;
        }
        let (pool, purse) = (state.pool, state.purse);
        let (requirements, offers) = (state.requirements.clone(), state.offers.clone());
        let narrow = self.enter(&tables.pools[pool], purse, requirements, &rows, Some(&offers));
        self.narrowed.insert((id, rows), narrow);
        narrow
    }

    /// The number of the state with these requirements within `rows` and `offers`.
    fn enter(
        &mut self,
        table: &PoolTable<'_>,
        purse: u32,
        requirements: Requirements,
        rows: &FixedBitSet,
        offers: Option<&FixedBitSet>,
    ) -> Option<StateId> {
        let mut kept_rows = FixedBitSet::with_capacity(table.rows.len());
        let mut kept_offers = FixedBitSet::with_capacity(table.offers.len());
        for row in rows.ones() {
            if !type_allows(table.rows[row].instance_type, &requirements) {
                continue;
            }
            for offer in table.rows[row].offers.clone() {
                let may = self.purses[purse as usize].prices[offer].is_some() && offers.is_none_or(|within| within.contains(offer));
                if may && offering_allows(table.offers[offer].offering, &requirements) {
                    kept_offers.insert(offer);
                    kept_rows.insert(row);
                }
            }
        }
        if kept_rows.is_clear() {
            return None;
        }
        let key = (purse, requirements, kept_rows);
        if let Some(known) = self.known.get(&key) {
            return Some(*known);
        }
        let id = StateId::try_from(self.all.len()).expect("fewer states than pods");
        let (ceiling, best) = (ceiling(table, &key.2), best(table, &kept_offers, &self.purses[purse as usize].ranked));
        self.all.push(State {
            pool: self.purses[purse as usize].pool,
            requirements: key.1.clone(),
            rows: key.2.clone(),
            offers: kept_offers,
            purse,
            ceiling,
            best,
        });
        self.known.insert(key, id);
        Some(id)
    }
}

impl State {
    /// Whether some row has room for `used` and `need` together.
    pub(crate) fn has_room(&self, table: &PoolTable<'_>, used: &[i64], need: &[i64]) -> bool {
        self.ceiling.iter().any(|row| super::amounts::fits_on_top(used, need, &table.rows[*row as usize].room))
    }
}

fn row_number(row: usize) -> u32 {
    u32::try_from(row).expect("a catalogue has fewer than 2^32 types")
}

/// The first of these offerings of each row in an order of preference.
fn best(table: &PoolTable<'_>, offers: &FixedBitSet, ranked: &[u32]) -> Vec<u32> {
    let mut seen = FixedBitSet::with_capacity(table.rows.len());
    let among = ranked.iter().copied().filter(|offer| offers.contains(*offer as usize));
    among.filter(|offer| !seen.put(table.offers[*offer as usize].row as usize)).collect()
}

/// The rows that no other row exceeds in every dimension.
fn ceiling(table: &PoolTable<'_>, rows: &FixedBitSet) -> Vec<u32> {
    let mut order: Vec<usize> = rows.ones().collect();
    order.sort_by(|a, b| table.rows[*b].room.cmp(&table.rows[*a].room).then(a.cmp(b)));
    let mut kept: Vec<u32> = Vec::new();
    for row in order {
        let room = &table.rows[row].room;
        if !kept.iter().any(|k| fits(room, &table.rows[*k as usize].room)) {
            kept.push(row_number(row));
        }
    }
    kept
}

/// Whether a node of this type can meet the requirements. Zone and capacity type are its
/// offerings' matter; keys that the type does not define are the template's.
pub(crate) fn type_allows(instance_type: &InstanceType, requirements: &Requirements) -> bool {
    requirements.iter().all(|wanted| match wanted.key() {
        keys::ZONE | keys::ZONE_ID | keys::CAPACITY_TYPE => true,
        keys::RESERVATION_ID | keys::RESERVATION_TYPE | keys::RESERVATION_INTERRUPTIBLE => true,
        key => match (instance_type.labels.get(key), instance_type.requirements.get(key)) {
            (Some(value), _) => wanted.allows(value),
            (None, Some(offered)) => offered.intersects(wanted) || (offered.admits_absence() && wanted.admits_absence()),
            (None, None) => true,
        },
    })
}

/// Whether an offering can meet the requirements.
pub(crate) fn offering_allows(offering: &Offering, requirements: &Requirements) -> bool {
    let allows = |key: &str, value: &str| requirements.get(key).is_none_or(|wanted| wanted.allows(value));
    allows(keys::ZONE, &offering.zone)
        && allows(keys::CAPACITY_TYPE, offering.capacity_type.name())
        && (offering.zone_id.is_empty() || allows(keys::ZONE_ID, &offering.zone_id))
        && reservation_allows(offering, requirements)
}

/// Whether an offering's capacity reservation, or that it has none, can meet the requirements.
fn reservation_allows(offering: &Offering, requirements: &Requirements) -> bool {
    [keys::RESERVATION_ID, keys::RESERVATION_TYPE, keys::RESERVATION_INTERRUPTIBLE].into_iter().all(|key| {
        let value = offering.reservation.as_ref().and_then(|reservation| reservation.label(key));
        requirements.get(key).is_none_or(|wanted| value.map_or_else(|| wanted.admits_absence(), |value| wanted.allows(value)))
    })
}
