//! What a new claim may still become: a pool, the requirements merged so far, and the rows and
//! offerings that meet them. States and their merges are few and are computed once.

use fixedbitset::FixedBitSet;
use whittle_model::{InstanceType, Offering, Requirements, keys};

use super::amounts::fits;
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
    /// Rows with most room: a need fits some row exactly if it fits one of these.
    pub(crate) ceiling: Vec<u32>,
}

/// All states of a plan.
#[derive(Debug, Default)]
pub(crate) struct States {
    all: Vec<State>,
    known: Lookup<(usize, Requirements, FixedBitSet), StateId>,
    merged: Lookup<(StateId, ProfileId), Option<StateId>>,
    profiles: Vec<Requirements>,
    profile_numbers: Lookup<Requirements, ProfileId>,
    /// The state of an empty claim, by pool.
    base: Vec<StateId>,
}

impl States {
    /// The states of empty claims.
    pub(crate) fn new(tables: &Tables<'_>) -> Self {
        let mut states = Self::default();
        for (number, pool) in tables.pools.iter().enumerate() {
            let mut rows = FixedBitSet::with_capacity(pool.rows.len());
            rows.insert_range(..);
            let base = states.enter(pool, number, pool.template.clone(), &rows, None).unwrap_or(0);
            states.base.push(base);
        }
        states
    }

    /// The state of this number.
    pub(crate) fn get(&self, id: StateId) -> &State {
        &self.all[id as usize]
    }

    /// The state of an empty claim of a pool.
    pub(crate) fn base(&self, pool: usize) -> StateId {
        self.base[pool]
    }

    /// The number of a profile, new or known.
    pub(crate) fn profile(&mut self, wanted: &Requirements) -> ProfileId {
        if let Some(known) = self.profile_numbers.get(wanted) {
            return *known;
        }
        let number = ProfileId::try_from(self.profiles.len()).expect("fewer profiles than pods");
        self.profiles.push(wanted.clone());
        self.profile_numbers.insert(wanted.clone(), number);
        number
    }

    /// The requirements of a profile.
    pub(crate) fn wanted(&self, profile: ProfileId) -> &Requirements {
        &self.profiles[profile as usize]
    }

    /// The state of a claim once a pod of `profile` joins it; `None` when they cannot agree.
    pub(crate) fn merge(&mut self, tables: &Tables<'_>, id: StateId, profile: ProfileId) -> Option<StateId> {
        if self.profiles[profile as usize].is_empty() {
            return Some(id);
        }
        if let Some(known) = self.merged.get(&(id, profile)) {
            return *known;
        }
        let (state, wanted) = (&self.all[id as usize], &self.profiles[profile as usize]);
        let result = if state.requirements.compatible(wanted, &keys::well_known).is_ok() {
            let mut both = state.requirements.clone();
            both.add_all(wanted);
            let (pool, rows) = (state.pool, state.rows.clone());
            let offers = state.offers.clone();
            self.enter(&tables.pools[pool], pool, both, &rows, Some(&offers))
        } else {
            None
        };
        self.merged.insert((id, profile), result);
        result
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
        let (pool, requirements, offers) = (state.pool, state.requirements.clone(), state.offers.clone());
        self.enter(&tables.pools[pool], pool, requirements, &rows, Some(&offers))
    }

    /// The number of the state with these requirements within `rows` and `offers`.
    fn enter(
        &mut self,
        table: &PoolTable<'_>,
        pool: usize,
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
                if offers.is_none_or(|within| within.contains(offer)) && offering_allows(table.offers[offer].offering, &requirements) {
                    kept_offers.insert(offer);
                    kept_rows.insert(row);
                }
            }
        }
        if kept_rows.is_clear() {
            return None;
        }
        let key = (pool, requirements, kept_rows);
        if let Some(known) = self.known.get(&key) {
            return Some(*known);
        }
        let id = StateId::try_from(self.all.len()).expect("fewer states than pods");
        let ceiling = ceiling(table, &key.2);
        self.all.push(State { pool, requirements: key.1.clone(), rows: key.2.clone(), offers: kept_offers, ceiling });
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
}
