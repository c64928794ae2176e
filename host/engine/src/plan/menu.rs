//! What a claim may be bought from, as it will be written. Claims of one plan that are left with the same
//! offerings in the same state differ in their pods alone: all else is made once and shared.

use std::cell::OnceCell;
use std::rc::Rc;

use fixedbitset::FixedBitSet;
use whittle_model::{CapacityType, Requirement, Requirements, Resources, Timestamp, keys};

use super::amounts::Amounts;
use super::flexible::{Shortage, View, lowered};
use super::states::{State, StateId};
use super::tables::PoolTable;
use super::write::group_of;
use crate::intern::Lookup;

/// What claims with the same offerings have in common.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Menu {
    /// The best first.
    pub(crate) offers: Vec<u32>,
    /// What they are written with.
    pub(crate) requirements: Requirements,
    /// Their launch group.
    pub(crate) group: String,
    /// Amount by amount the most that a type among theirs has.
    pub(crate) largest: Resources,
    /// The least that daemons take of any of these types.
    pub(crate) daemons: Resources,
    /// Whether they have fewer distinct values than their pool asks for.
    pub(crate) short: bool,
    /// The state that they are in once they are written, when somebody asked.
    pub(crate) written: OnceCell<StateId>,
    /// Whether overlays made a price among theirs, and whether they added to what a type has.
    pub(crate) overlaid: (bool, bool),
}

/// All menus of a plan.
#[derive(Debug, Default)]
pub(crate) struct Menus {
    by_offers: Lookup<(StateId, Vec<u32>), Rc<Menu>>,
    /// By what is on the claim: where prices are plain and no limit is near, nothing else matters.
    by_use: Lookup<(StateId, Amounts), Rc<Menu>>,
}

impl Menus {
    /// The menu of claims in this state that are left with these offerings, the best first; `named` when they say
    /// which, offering by offering.
    pub(crate) fn of(
        &mut self,
        table: &PoolTable<'_>,
        (id, state): (StateId, &State),
        offers: Vec<u32>,
        named: bool,
        now: Timestamp,
    ) -> Rc<Menu> {
        let key = (id, offers);
        if let Some(known) = self.by_offers.get(&key) {
            return Rc::clone(known);
        }
        let menu = Rc::new(Menu::new(table, state, &key.1, named, now));
        self.by_offers.insert(key, Rc::clone(&menu));
        menu
    }

    /// The menu of an earlier claim with the same on it.
    pub(crate) fn known(&self, state: StateId, used: &Amounts) -> Option<Rc<Menu>> {
        self.by_use.get(&(state, used.clone())).map(Rc::clone)
    }

    /// Keeps a menu for claims with the same on them.
    pub(crate) fn keep(&mut self, state: StateId, used: &Amounts, menu: &Rc<Menu>) {
        self.by_use.insert((state, used.clone()), Rc::clone(menu));
    }
}

impl Menu {
    fn new(table: &PoolTable<'_>, state: &State, offers: &[u32], named: bool, now: Timestamp) -> Self {
        let rows = rows_of(table, offers);
        let shortages = shortages(table, state, offers, named);
        let types: Vec<&str> = rows.iter().map(|row| &*table.rows[*row as usize].instance_type.name).collect();
        let mut requirements = state.requirements.clone();
        requirements.add(Requirement::any_of(keys::INSTANCE_TYPE, &types));
        requirements.add(Requirement::any_of(keys::CAPACITY_TYPE, &capacity_types(table, state, offers, &rows, named)));
        let requirements = lowered(&requirements, &shortages);
        let mut largest = Resources::default();
        rows.iter().for_each(|row| largest.raise_to(&table.rows[*row as usize].instance_type.capacity));
        let daemons = rows.iter().map(|row| table.rows[*row as usize].daemons()).min_by(|a, b| a.iter().cmp(b.iter()));
        Self {
            offers: offers.to_vec(),
            group: group_of(&table.pool.name, &requirements, now),
            requirements,
            largest,
            daemons: daemons.cloned().unwrap_or_default(),
            short: !shortages.is_empty(),
            written: OnceCell::new(),
            overlaid: (
                offers.iter().any(|offer| table.offers[*offer as usize].overlaid),
                rows.iter().any(|row| table.rows[*row as usize].overlaid),
            ),
        }
    }
}

/// The rows of offerings, each once, in their order.
fn rows_of(table: &PoolTable<'_>, offers: &[u32]) -> Vec<u32> {
    let mut seen = FixedBitSet::with_capacity(table.rows.len());
    offers.iter().map(|offer| table.offers[*offer as usize].row).filter(|row| !seen.put(*row as usize)).collect()
}

/// What a claim with these offerings lacks of the values that its pool asks for. One that says what to buy has no others
/// than those it names.
pub(crate) fn shortages(table: &PoolTable<'_>, state: &State, offers: &[u32], named: bool) -> Vec<Shortage> {
    if table.flexibility.is_empty() {
        return Vec::new();
    }
    let offers: Vec<(u32, u32)> = offers.iter().map(|offer| (*offer, table.offers[*offer as usize].row)).collect();
    if named {
        return table.flexibility.shortages_of(&table.rows, state, &offers);
    }
    table.flexibility.shortages(&table.rows, View { state, one_way: false }, offers.iter().map(|(_, row)| *row as usize))
}

/// The ways in which they are paid for; a claim that says what to buy is bought in one.
fn capacity_types(table: &PoolTable<'_>, state: &State, offers: &[u32], rows: &[u32], named: bool) -> Vec<&'static str> {
    let way = |offer: usize| table.offers[offer].offering.capacity_type;
    let mut all: Vec<CapacityType> = if named {
        offers.first().map(|offer| way(*offer as usize)).into_iter().collect()
    } else {
        let of_rows = rows.iter().flat_map(|row| table.rows[*row as usize].offers.clone());
        of_rows.filter(|offer| state.offers.contains(*offer)).map(way).collect()
    };
    all.sort_unstable();
    all.dedup();
    all.into_iter().map(CapacityType::name).collect()
}
