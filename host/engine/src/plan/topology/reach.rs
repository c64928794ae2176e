//! Which domains of a key a claim may come to be in, and the demand that pins it to some of them.

use std::collections::BTreeSet;

use whittle_model::{Catalog, InstanceType, NodeClaim, Offering, Operator, Requirement, Requirements, keys};

use super::set::Set;
use super::{HOST, KeyId, Topology};
use crate::plan::states::{ProfileId, State, StateId, States, offering_allows, type_allows};
use crate::plan::tables::{PoolTable, Tables};
use crate::plan::write::some_value;
use crate::world::World;

/// The values that nodes of a state may have under a key.
pub(super) fn values(table: &PoolTable<'_>, state: &State, key: &str) -> BTreeSet<String> {
    let offers = || state.offers.ones().map(|offer| table.offers[offer].offering);
    let mut found: BTreeSet<&str> = match key {
        keys::ZONE => offers().map(|o| o.zone.as_str()).collect(),
        keys::ZONE_ID => offers().map(|o| o.zone_id.as_str()).collect(),
        keys::CAPACITY_TYPE => offers().map(|o| o.capacity_type.name()).collect(),
        other => of_types(table, state, other),
    };
    // A node without a usable value is in no domain.
    found.remove("");
    let found: BTreeSet<String> = found.into_iter().map(str::to_owned).collect();
    // A label of nobody's that has to be there gets a value when the claim is written.
    let invented = state.requirements.get(key).filter(|_| found.is_empty() && !keys::well_known(key)).and_then(some_value);
    if let Some(value) = invented { std::iter::once(value).collect() } else { found }
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

impl Topology<'_> {
    /// The domains that a claim in a state may come to be in.
    pub(crate) fn reach(&mut self, tables: &Tables<'_>, states: &States, id: StateId, key: KeyId) -> &Set {
        let (at, keys) = (id as usize, self.keys.len());
        if self.reaches.len() <= at {
            self.reaches.resize_with(at + 1, Vec::new);
        }
        if self.reaches[at].len() < keys {
            let state = states.get(id);
            let table = &tables.pools[state.pool];
            let all = (HOST + 1..keys).map(|key| self.domains_of(key, values(table, state, &self.keys[key]).iter().map(String::as_str)));
            let all: Vec<Set> = std::iter::once(Set::default()).chain(all).collect();
            self.reaches[at] = all;
        }
        &self.reaches[at][key]
    }

    /// The domains that the node of a claim in flight may come to be in, as the types and offerings it admits tell; `None`
    /// when they tell nothing. A plan reads its own claims so before they are written.
    pub(crate) fn reach_of_claim(&self, key: KeyId, world: &World, claim: &NodeClaim) -> Option<Set> {
        let (name, have, catalog) = (&self.keys[key], &claim.requirements, world.catalog_of(claim)?);
        let named = |t: &&InstanceType| have.get(keys::INSTANCE_TYPE).is_none_or(|names| names.allows(&t.name)) && type_allows(t, have);
        let listed = claim.listed_offers();
        let open = |t: &InstanceType, o: &Offering| {
            let listed = listed.as_ref().is_none_or(|all| all.iter().any(|(name, zone, _)| *name == t.name && *zone == o.zone));
            listed && offering_allows(o, have) && (o.available || o.reservation.is_some())
        };
        let types = || catalog.types.iter().filter(named);
        let offers = || types().flat_map(|t| t.offerings.iter().filter(|o| open(t, o)).collect::<Vec<_>>());
        let found: BTreeSet<&str> = match name.as_str() {
            keys::ZONE => offers().map(|o| o.zone.as_str()).collect(),
            keys::ZONE_ID => offers().map(|o| o.zone_id.as_str()).collect(),
            keys::CAPACITY_TYPE => offers().map(|o| o.capacity_type.name()).collect(),
            _ => return None,
        };
        let found = self.domains_of(key, found.into_iter());
        (!found.is_empty()).then_some(found)
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
