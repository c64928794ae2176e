//! Which domains of a key a claim may come to be in, and the demand that pins it to some of them.

use std::collections::BTreeSet;
use std::rc::Rc;

use whittle_model::{Catalog, InstanceType, NodeClaim, Offering, Operator, Requirement, Requirements, keys};

use super::admission::Future;
use super::set::Set;
use super::{FilterId, HOST, KeyId, Topology};
use crate::plan::states::{ProfileId, State, StateId, States, offering_allows, type_allows};
use crate::plan::tables::{PoolTable, Tables};
use crate::plan::write::some_value;
use crate::world::World;

/// The values that nodes of a state may have under a key: those bought today, and `ever` also those of offerings that are
/// sold out, which the claim would still allow when they come back.
pub(super) fn values(table: &PoolTable<'_>, state: &State, key: &str, ever: bool) -> BTreeSet<String> {
    let resting =
        || table.resting.iter().filter(|(row, o)| ever && state.rows.contains(*row as usize) && offering_allows(o, &state.requirements));
    let offers = || state.offers.ones().map(|offer| table.offers[offer].offering).chain(resting().map(|(_, o)| *o));
    let mut found: BTreeSet<&str> = match key {
        keys::ZONE => distinct(offers().map(|o| o.zone.as_str())),
        keys::ZONE_ID => distinct(offers().map(|o| o.zone_id.as_str())),
        keys::CAPACITY_TYPE => distinct(offers().map(|o| o.capacity_type.name())),
        other => of_types(table, state, other),
    };
    // A node without a usable value is in no domain.
    found.remove("");
    let found: BTreeSet<String> = found.into_iter().map(str::to_owned).collect();
    // A label of nobody's that has to be there gets a value when the claim is written.
    let invented = state.requirements.get(key).filter(|_| found.is_empty() && !keys::well_known(key)).and_then(some_value);
    if let Some(value) = invented { std::iter::once(value).collect() } else { found }
}

/// Distinct ones of many values that are few.
fn distinct<'v>(values: impl Iterator<Item = &'v str>) -> BTreeSet<&'v str> {
    let mut found: Vec<&str> = Vec::new();
    for value in values {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found.into_iter().collect()
}

/// All values that a catalogue has of a key.
pub(super) fn sold<'c>(catalog: &'c Catalog, key: &str) -> BTreeSet<&'c str> {
    let offerings = || catalog.types.iter().flat_map(|t| &t.offerings);
    match key {
        keys::ZONE => offerings().map(|o| o.zone.as_str()).collect(),
        keys::ZONE_ID => offerings().map(|o| o.zone_id.as_str()).collect(),
        keys::CAPACITY_TYPE => offerings().map(|o| o.capacity_type.name()).collect(),
        other => catalog.types.iter().filter_map(|t| t.labels.get(other)).map(String::as_str).collect(),
    }
}

fn of_types<'a>(table: &'a PoolTable<'_>, state: &'a State, key: &str) -> BTreeSet<&'a str> {
    let wanted = state.requirements.get(key);
    if let Some(listed) = wanted.filter(|r| r.operator() == Operator::In) {
        return listed.values().iter().map(String::as_str).collect();
    }
    if wanted.is_none() && !keys::well_known(key) {
        return BTreeSet::new();
    }
    let allowed = |value: &&str| wanted.is_none_or(|r| r.allows(value));
    let mut found = BTreeSet::new();
    for row in state.rows.ones().map(|row| table.rows[row].instance_type) {
        match (row.labels.get(key), row.requirements.get(key)) {
            (Some(value), _) => found.extend([value.as_str()].into_iter().filter(allowed)),
            (None, Some(offered)) if offered.operator() == Operator::In => {
                found.extend(offered.values().iter().map(String::as_str).filter(allowed));
            }
            (None, _) => {}
        }
    }
    found
}

/// What is known of a claim that is not bought yet.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flight {
    /// By key: the domains that its node may come to be in.
    pub(crate) reach: Vec<Set>,
    /// The node filters that it will not pass, and those that it may come not to pass.
    pub(crate) outside: Vec<FilterId>,
    pub(crate) unsure: Vec<FilterId>,
}

/// Everything that may be bought for a claim in flight, as the types and offerings it admits tell.
fn outcomes<'w>(world: &'w World, claim: &NodeClaim) -> Vec<(&'w InstanceType, &'w Offering)> {
    let Some(catalog) = world.catalog_of(claim) else { return Vec::new() };
    let have = &claim.requirements;
    let named = |t: &&InstanceType| have.get(keys::INSTANCE_TYPE).is_none_or(|names| names.allows(&t.name)) && type_allows(t, have);
    let listed = claim.listed_offers();
    let open = |t: &InstanceType, o: &Offering| {
        let listed = listed.as_ref().is_none_or(|all| all.iter().any(|(name, zone, _)| *name == t.name && *zone == o.zone));
        listed && offering_allows(o, have) && (o.available || o.reservation.is_some())
    };
    catalog.types.iter().filter(named).flat_map(|t| t.offerings.iter().map(move |o| (t, o))).filter(|(t, o)| open(t, o)).collect()
}

/// The values of a label that a node of this type, bought so, may show where `asked` is asked of it.
fn shown<'o>(of_type: &'o InstanceType, offering: &'o Offering, key: &str, asked: Option<&Requirement>) -> Vec<&'o str> {
    match key {
        keys::ZONE => vec![&offering.zone],
        keys::ZONE_ID => vec![&offering.zone_id],
        keys::CAPACITY_TYPE => vec![offering.capacity_type.name()],
        _ => match (of_type.labels.get(key), of_type.requirements.get(key)) {
            (Some(value), _) => vec![value],
            (None, Some(may)) if may.operator() == Operator::In => {
                may.values().iter().map(String::as_str).filter(|value| asked.is_none_or(|asked| asked.allows(value))).collect()
            }
            (None, _) => Vec::new(),
        },
    }
}

impl<'w> Topology<'w> {
    /// The domains that a claim in a state may come to be in.
    pub(crate) fn reach(&mut self, tables: &Tables<'_>, states: &States, id: StateId, key: KeyId) -> &Set {
        let (at, keys) = (id as usize, self.keys.len());
        if self.reaches.len() <= at {
            self.reaches.resize_with(at + 1, Vec::new);
        }
        if self.reaches[at].len() < keys {
            let mut all = vec![Set::default()];
            all.extend((HOST + 1..keys).map(|key| self.found(tables, states, id, key)));
            self.reaches[at] = all;
        }
        &self.reaches[at][key]
    }

    /// The same, found once for states that have the same offerings and say the same of the key.
    fn found(&mut self, tables: &Tables<'_>, states: &States, id: StateId, key: KeyId) -> Set {
        let state = states.get(id);
        let (table, name) = (&tables.pools[state.pool], self.keys[key].as_str());
        let same = (Rc::as_ptr(&state.rows).addr(), Rc::as_ptr(&state.offers).addr(), key, state.requirements.get(name).cloned());
        if let Some(known) = self.found.get(&same).filter(|_| table.resting.is_empty()) {
            return known.clone();
        }
        let found = self.domains_of(key, values(table, state, name, true).iter().map(String::as_str));
        self.found.insert(same, found.clone());
        found
    }

    /// The domain that a claim in a state surely comes to be in: the only one, or that of the label that it will give itself.
    pub(super) fn settled_on(&mut self, tables: &Tables<'_>, states: &States, id: StateId, key: KeyId) -> Option<u32> {
        if let Some(only) = self.reach(tables, states, id, key).single() {
            return Some(only);
        }
        let name = &self.keys[key];
        let given = states.get(id).requirements.get(name).filter(|_| !keys::well_known(name)).and_then(some_value)?;
        self.domains_of(key, std::iter::once(given.as_str())).single()
    }

    /// The domains in which a node of a state can be bought today.
    pub(super) fn sold_in(&mut self, tables: &Tables<'_>, states: &States, id: StateId, key: KeyId) -> Set {
        let state = states.get(id);
        let table = &tables.pools[state.pool];
        if table.resting.is_empty() || key == HOST {
            return self.reach(tables, states, id, key).clone();
        }
        self.domains_of(key, values(table, state, &self.keys[key], false).iter().map(String::as_str))
    }

    /// Notes where claims that are not bought yet may come to be.
    pub(super) fn watch_flights(&mut self, world: &'w World) {
        if self.keys.len() == 1 && self.filters.len() == 1 {
            return;
        }
        let open = world.claims.values().filter(|claim| !claim.deleting && claim.status.launched.is_none());
        self.flights = open.map(|claim| (claim.name.as_str(), self.watched(world, claim))).collect();
    }

    /// What is known of a claim that is not bought yet.
    pub(crate) fn flight(&self, claim: &str) -> Flight {
        self.flights.get(claim).cloned().unwrap_or_else(|| Flight { reach: vec![Set::default(); self.keys.len()], ..Flight::default() })
    }

    /// All of them.
    pub(super) fn flights(&self) -> impl Iterator<Item = &Flight> {
        self.flights.values()
    }

    fn watched(&self, world: &World, claim: &NodeClaim) -> Flight {
        let outcomes = outcomes(world, claim);
        let reach = (0..self.keys.len()).map(|key| self.reach_of_claim(key, claim, &outcomes)).collect();
        let future = Future { have: &claim.requirements, labels: Some(&claim.labels), taints: &claim.taints, outcomes: &outcomes };
        let (outside, unsure) = self.outside_of(&future);
        Flight { reach, outside, unsure }
    }

    /// The domains that the node of a claim may come to be in: by its own labels, by the offerings it admits, or as its
    /// requirements tell. A plan reads its own claims so before they are written.
    fn reach_of_claim(&self, key: KeyId, claim: &NodeClaim, outcomes: &[(&InstanceType, &Offering)]) -> Set {
        let own = self.reach_of_labels(key, &claim.labels);
        if !own.is_empty() || key == HOST {
            return own;
        }
        let name = self.keys[key].as_str();
        let asked = claim.requirements.get(name);
        let sold: BTreeSet<&str> = outcomes.iter().flat_map(|(of_type, offering)| shown(of_type, offering, name, asked)).collect();
        let sold = self.domains_of(key, sold.into_iter());
        if !sold.is_empty() {
            return sold;
        }
        match claim.requirements.get(name).filter(|r| r.operator() == Operator::In) {
            Some(listed) => self.domains_of(key, listed.values().iter().map(String::as_str)),
            // What its type or offering brings under a key of theirs is not known: it may be any.
            None if keys::well_known(name) => (0..self.domains(key)).collect(),
            None => Set::default(),
        }
    }

    /// The domains that the requirements of a state list.
    pub(crate) fn said(&self, states: &States, id: StateId, key: KeyId) -> Option<Set> {
        let listed = states.get(id).requirements.get(&self.keys[key]).filter(|r| r.operator() == Operator::In)?;
        Some(self.domains_of(key, listed.values().iter().map(String::as_str)))
    }

    /// The numbers of domains by their names; names nobody knows are left out.
    pub(super) fn domains_of<'v>(&self, key: KeyId, names: impl Iterator<Item = &'v str>) -> Set {
        let known = &self.names[key];
        names.filter_map(|name| known.binary_search_by(|n| n.as_str().cmp(name)).ok()).map(super::number).collect()
    }

    /// The profile that asks for one of these domains on behalf of an asker.
    pub(crate) fn pin(&mut self, states: &mut States, key: KeyId, domains: &Set, asker: u32) -> ProfileId {
        let of = (key, domains.clone(), asker);
        if let Some(known) = self.pins.get(&of) {
            return *known;
        }
        let values: Vec<&str> = domains.iter().map(|domain| self.names[key][domain as usize].as_str()).collect();
        let wanted: Requirements = [Requirement::any_of(&self.keys[key], &values)].into_iter().collect();
        let profile = states.profile(&wanted, asker);
        self.pins.insert(of, profile);
        profile
    }
}
