//! What a new claim may still become: a pool, the requirements merged so far, whose pods it holds,
//! and the rows and offerings that suit them all. States and their merges are few and are computed once. What a requirement
//! leaves of a stock is found once for all pools that share it.

use std::rc::Rc;
use std::sync::Arc;

use fixedbitset::FixedBitSet;
use whittle_model::{InstanceType, Micros, Offering, Requirement, Requirements, keys};

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
    pub(crate) rows: Rc<FixedBitSet>,
    pub(crate) offers: Rc<FixedBitSet>,
    /// Whose pods it holds, as far as prices differ by that: index of a [`Purse`].
    pub(crate) purse: u32,
    /// Rows with most room: a need fits some row exactly if it fits one of these.
    pub(crate) ceiling: Rc<[u32]>,
    /// The best offering of each row, best first.
    pub(crate) best: Rc<[u32]>,
}

/// What offerings cost a claim that holds pods of these groups of askers: the dearest group's price.
#[derive(Debug, Clone, Default)]
pub(crate) struct Purse {
    pool: usize,
    /// Ascending.
    groups: Vec<u32>,
    /// By offering; `None` where one of the groups must not buy it.
    pub(crate) prices: Arc<[Option<Price>]>,
    /// Offerings that may be bought, in order of preference: rank, capacity type, type, zone.
    pub(crate) ranked: Arc<[u32]>,
    /// The same as a set, unless it is every offering.
    open: Option<FixedBitSet>,
}

/// Rows and offerings among them.
type Masks = (Rc<FixedBitSet>, Rc<FixedBitSet>);

/// What a requirement leaves of a stock.
#[derive(Debug)]
enum Leaves {
    Everything,
    Rows(FixedBitSet),
    Offers(FixedBitSet),
}

/// Lists that tables share, told by where they lie.
type Place = usize;

/// All states of a plan.
#[derive(Debug, Default)]
pub(crate) struct States {
    all: Vec<State>,
    known: Lookup<(u32, Requirements, Rc<FixedBitSet>), StateId>,
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
    /// By rows of a table: all of them with all offerings, and what requirements leave of these.
    whole: Lookup<Place, Masks>,
    leaves: Lookup<(Place, Requirement), Rc<Leaves>>,
    ceilings: Lookup<(Place, Rc<FixedBitSet>), Rc<[u32]>>,
    /// By order of preference and offerings.
    bests: Lookup<(Place, Rc<FixedBitSet>), Rc<[u32]>>,
}

impl States {
    /// Makes the states of empty claims, once it is known what offerings are worth.
    pub(crate) fn open(&mut self, tables: &Tables<'_>, prices: Vec<PoolPrices>) {
        self.prices = prices;
        for (number, pool) in tables.pools.iter().enumerate() {
            // Where prices are everybody's, an empty claim has them already.
            let groups = if self.prices[number].groups.len() == 1 { vec![0] } else { Vec::new() };
            let purse = self.purse(tables, number, groups);
            // Tables have nothing but what their template leaves.
            let all = self.whole(pool);
            let base = self.enter(pool, purse, pool.template.clone(), all, &[]);
            self.base.push(base);
        }
    }

    /// The purse of these groups of askers in a pool.
    fn purse(&mut self, tables: &Tables<'_>, pool: usize, groups: Vec<u32>) -> u32 {
        let key = (pool, groups);
        if let Some(known) = self.purse_numbers.get(&key) {
            return *known;
        }
        let (table, of) = (&tables.pools[pool], &self.prices[pool].groups);
        let (prices, ranked) = match key.1[..] {
            [one] if Arc::ptr_eq(&of[one as usize].prices, &table.list.prices) => {
                (Arc::clone(&table.list.counted), Arc::clone(&table.list.ranked))
            }
            _ => worst(&key.1.iter().map(|group| &of[*group as usize].prices[..]).collect::<Vec<_>>(), &table.places),
        };
        let open = (ranked.len() < prices.len()).then(|| {
            let mut open = FixedBitSet::with_capacity(prices.len());
            ranked.iter().for_each(|offer| open.insert(*offer as usize));
            open
        });
        let number = u32::try_from(self.purses.len()).expect("fewer purses than states");
        self.purses.push(Purse { pool, groups: key.1.clone(), prices, ranked, open });
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
            let masks = (Rc::clone(&state.rows), Rc::clone(&state.offers));
            let changed = parted(wanted.iter().filter_map(|want| both.get(want.key())), &state.requirements);
            self.enter(&tables.pools[pool], purse, both, masks, &changed)
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
        let (all, changed) = (self.whole(table), parted(requirements.iter(), &table.template));
        let wide = self.enter(table, purse, requirements, all, &changed).unwrap_or(id);
        self.widened.insert(id, wide);
        wide
    }

    /// The state in which only the given rows remain; `None` when none does.
    pub(crate) fn cut(&mut self, tables: &Tables<'_>, id: StateId, keep: &dyn Fn(u32) -> bool) -> Option<StateId> {
        let state = &self.all[id as usize];
        if state.rows.ones().all(|row| keep(row_number(row))) {
            return Some(id);
        }
        let mut rows = (*state.rows).clone();
        for row in state.rows.ones().filter(|row| !keep(row_number(*row))) {
            rows.remove(row);
        }
        if let Some(known) = self.narrowed.get(&(id, rows.clone())) {
            return *known;
        }
        let (pool, purse) = (state.pool, state.purse);
        let (requirements, offers) = (state.requirements.clone(), Rc::clone(&state.offers));
        let narrow = self.enter(&tables.pools[pool], purse, requirements, (Rc::new(rows.clone()), offers), &[]);
        self.narrowed.insert((id, rows), narrow);
        narrow
    }

    /// Everything that a table has.
    fn whole(&mut self, table: &PoolTable<'_>) -> Masks {
        let place = place(&table.rows);
        if let Some(known) = self.whole.get(&place) {
            return known.clone();
        }
        let full = |len: usize| {
            let mut all = FixedBitSet::with_capacity(len);
            all.insert_range(..);
            Rc::new(all)
        };
        let all = (full(table.rows.len()), full(table.offers.len()));
        self.whole.insert(place, all.clone());
        all
    }

    /// What a requirement leaves of a table.
    fn leaves(&mut self, table: &PoolTable<'_>, wanted: &Requirement) -> Rc<Leaves> {
        let key = (place(&table.rows), wanted.clone());
        if let Some(known) = self.leaves.get(&key) {
            return Rc::clone(known);
        }
        let some = |len: usize, allows: &dyn Fn(usize) -> bool| (0..len).filter(|at| allows(*at)).collect::<FixedBitSet>();
        let alone: Requirements = std::iter::once(wanted.clone()).collect();
        let leaves = if of_offerings(wanted.key()) {
            Leaves::Offers(some(table.offers.len(), &|offer| offering_allows(table.offers[offer].offering, &alone)))
        } else {
            Leaves::Rows(some(table.rows.len(), &|row| type_allows(table.rows[row].instance_type, &alone)))
        };
        let all = match &leaves {
            Leaves::Everything => true,
            Leaves::Rows(mask) => mask.count_ones(..) == table.rows.len(),
            Leaves::Offers(mask) => mask.count_ones(..) == table.offers.len(),
        };
        let leaves = Rc::new(if all { Leaves::Everything } else { leaves });
        self.leaves.insert(key, Rc::clone(&leaves));
        leaves
    }

    /// The number of the state with these requirements within rows and offerings that met all of them but for those that
    /// are `changed`.
    fn enter(
        &mut self,
        table: &PoolTable<'_>,
        purse: u32,
        requirements: Requirements,
        (mut rows, mut offers): Masks,
        changed: &[Requirement],
    ) -> Option<StateId> {
        for wanted in changed {
            match &*self.leaves(table, wanted) {
                Leaves::Everything => {}
                Leaves::Rows(mask) => within(&mut rows, mask),
                Leaves::Offers(mask) => within(&mut offers, mask),
            }
        }
        if let Some(open) = &self.purses[purse as usize].open {
            within(&mut offers, open);
        }
        let (rows, offers) = matched(table, (rows, offers));
        if rows.is_clear() {
            return None;
        }
        let key = (purse, requirements, rows);
        if let Some(known) = self.known.get(&key) {
            return Some(*known);
        }
        let id = StateId::try_from(self.all.len()).expect("fewer states than pods");
        let (ceiling, best) = (self.ceiling(table, &key.2), self.best(table, purse, &offers));
        let (pool, requirements, rows) = (self.purses[purse as usize].pool, key.1.clone(), Rc::clone(&key.2));
        self.all.push(State { pool, requirements, rows, offers, purse, ceiling, best });
        self.known.insert(key, id);
        Some(id)
    }

    /// The rows that no other row exceeds in every dimension.
    fn ceiling(&mut self, table: &PoolTable<'_>, rows: &Rc<FixedBitSet>) -> Rc<[u32]> {
        let key = (place(&table.rows), Rc::clone(rows));
        if let Some(known) = self.ceilings.get(&key) {
            return Rc::clone(known);
        }
        let ceiling: Rc<[u32]> = ceiling(table, rows).into();
        self.ceilings.insert(key, Rc::clone(&ceiling));
        ceiling
    }

    /// The first of these offerings of each row in the order of preference of a purse.
    fn best(&mut self, table: &PoolTable<'_>, purse: u32, offers: &Rc<FixedBitSet>) -> Rc<[u32]> {
        let ranked = &self.purses[purse as usize].ranked;
        let key = (place(ranked), Rc::clone(offers));
        if let Some(known) = self.bests.get(&key) {
            return Rc::clone(known);
        }
        let mut seen = FixedBitSet::with_capacity(table.rows.len());
        let among = ranked.iter().copied().filter(|offer| offers.contains(*offer as usize));
        let best: Rc<[u32]> = among.filter(|offer| !seen.put(table.offers[*offer as usize].row as usize)).collect();
        self.bests.insert(key, Rc::clone(&best));
        best
    }
}

/// Where a list lies, which tells it from others that are not the same one.
fn place<T>(list: &[T]) -> Place {
    list.as_ptr().addr()
}

/// Those of these requirements that `before` does not have so.
fn parted<'r>(requirements: impl Iterator<Item = &'r Requirement>, before: &Requirements) -> Vec<Requirement> {
    requirements.filter(|wanted| before.get(wanted.key()) != Some(wanted)).cloned().collect()
}

/// Takes out what is not in `mask`.
fn within(some: &mut Rc<FixedBitSet>, mask: &FixedBitSet) {
    if !some.is_subset(mask) {
        Rc::make_mut(some).intersect_with(mask);
    }
}

/// Rows and offerings without the offerings of other rows, and without rows that have none left.
fn matched(table: &PoolTable<'_>, (mut rows, mut offers): Masks) -> Masks {
    for row in rows.zeroes() {
        let range = table.rows[row].offers.clone();
        if offers.contains_any_in_range(range.clone()) {
            Rc::make_mut(&mut offers).remove_range(range);
        }
    }
    let bare: Vec<usize> = rows.ones().filter(|row| !offers.contains_any_in_range(table.rows[*row].offers.clone())).collect();
    if !bare.is_empty() {
        let rows = Rc::make_mut(&mut rows);
        bare.into_iter().for_each(|row| rows.remove(row));
    }
    (rows, offers)
}

/// What offerings cost a claim that counts as all of these askers, and the order of preference that follows.
pub(crate) fn worst(askers: &[&[Option<Price>]], places: &[u32]) -> (Arc<[Option<Price>]>, Arc<[u32]>) {
    let free = Some(Price { rank: Micros(1), cost: Micros(0) });
    let price = |offer: usize| askers.iter().fold(free, |worst, of| dearest(worst, of[offer]));
    let prices: Arc<[Option<Price>]> = (0..places.len()).map(price).collect();
    let mut ranked: Vec<u32> = (0..places.len()).filter(|o| prices[*o].is_some()).map(row_number).collect();
    ranked.sort_unstable_by_key(|offer| (prices[*offer as usize].map(|price| price.rank), places[*offer as usize]));
    (prices, ranked.into())
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

/// Whether a key is a matter of offerings, not of types.
pub(crate) fn of_offerings(key: &str) -> bool {
    matches!(
        key,
        keys::ZONE | keys::ZONE_ID | keys::CAPACITY_TYPE | keys::RESERVATION_ID | keys::RESERVATION_TYPE | keys::RESERVATION_INTERRUPTIBLE
    )
}

/// Whether a node of this type can meet the requirements. Zone and capacity type are its
/// offerings' matter; keys that the type does not define are the template's.
pub(crate) fn type_allows(instance_type: &InstanceType, requirements: &Requirements) -> bool {
    requirements.iter().all(|wanted| match wanted.key() {
        key if of_offerings(key) => true,
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
