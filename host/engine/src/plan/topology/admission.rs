//! Which nodes-to-be count for a spread constraint by its node policies. On single nodes those count that may pass: what is
//! there is rather thought to be more. Between domains those count that will pass whatever they become: the least that a
//! domain has must not be thought to be more than it is.

use whittle_model::{InstanceType, Labels, Offering, Operator, Requirement, Requirements, Taint, keys, taint};

use super::{Counter, EVERY_NODE, FilterId, HOST, Topology, number};
use crate::plan::states::{StateId, States, offering_allows};
use crate::plan::tables::{Tables, alternatives_of};

/// What a node-to-be may become.
pub(crate) struct Future<'a> {
    /// What its requirements say.
    pub(crate) have: &'a Requirements,
    /// The labels that it has in any case.
    pub(crate) labels: Option<&'a Labels>,
    pub(crate) taints: &'a [Taint],
    /// Everything that may be bought for it.
    pub(crate) outcomes: &'a [(&'a InstanceType, &'a Offering)],
}

impl Future<'_> {
    /// Whether it will meet this, whatever it becomes.
    fn meets(&self, want: &Requirement) -> bool {
        let (key, mut outcomes) = (want.key(), self.outcomes.iter());
        if let Some(value) = self.labels.and_then(|labels| labels.get(key)) {
            return want.allows(value);
        }
        let said = || self.have.get(key).map_or_else(|| want.admits_absence(), |have| within(have, want));
        match key {
            keys::ZONE | keys::ZONE_ID | keys::CAPACITY_TYPE => self.sells(want),
            _ if keys::OF_RESERVATIONS.contains(&key) => self.sells(want),
            _ if !keys::well_known(key) => said(),
            _ => outcomes.all(|(of_type, _)| match (of_type.labels.get(key), of_type.requirements.get(key)) {
                (Some(value), _) => want.allows(value),
                (None, Some(offered)) => within(&self.have.get(key).map_or_else(|| offered.clone(), |have| offered.intersect(have)), want),
                (None, None) => said(),
            }),
        }
    }

    fn sells(&self, want: &Requirement) -> bool {
        let wanted: Requirements = std::iter::once(want.clone()).collect();
        self.outcomes.iter().all(|(_, offering)| offering_allows(offering, &wanted))
    }
}

/// Whether every value that `have` admits is one that `want` does.
fn within(have: &Requirement, want: &Requirement) -> bool {
    match have.operator() {
        Operator::In => have.values().iter().all(|value| want.allows(value)),
        Operator::DoesNotExist => want.admits_absence(),
        Operator::NotIn | Operator::Exists | Operator::Gt | Operator::Lt | Operator::Gte | Operator::Lte => have.intersect(want) == *have,
    }
}

impl Topology<'_> {
    /// The filters that a node-to-be may not pass, and those that it may fail.
    pub(crate) fn outside_of(&self, future: &Future<'_>) -> (Vec<FilterId>, Vec<FilterId>) {
        let all = || (1..self.filters.len()).map(number);
        (all().filter(|filter| !self.may_pass(*filter, future)).collect(), all().filter(|filter| !self.passes(*filter, future)).collect())
    }

    fn may_pass(&self, filter: FilterId, future: &Future<'_>) -> bool {
        let alternatives = self.filters[filter as usize].affinity.map(alternatives_of).unwrap_or_default();
        let affinity = alternatives.is_empty() || alternatives.iter().any(|wanted| future.have.intersects(wanted));
        affinity && self.tolerated(filter, future.taints)
    }

    fn passes(&self, filter: FilterId, future: &Future<'_>) -> bool {
        let alternatives = self.filters[filter as usize].affinity.map(alternatives_of).unwrap_or_default();
        let affinity = alternatives.is_empty() || alternatives.iter().any(|wanted| wanted.iter().all(|want| future.meets(want)));
        affinity && self.tolerated(filter, future.taints)
    }

    fn tolerated(&self, filter: FilterId, taints: &[Taint]) -> bool {
        self.filters[filter as usize].tolerations.is_none_or(|tolerations| taint::untolerated(taints, tolerations).is_none())
    }

    /// Whether claims in a state are counted by a counter.
    pub(crate) fn admits(&mut self, tables: &Tables<'_>, states: &States, id: StateId, counter: &Counter) -> bool {
        let Counter { filter, key, .. } = *counter;
        if filter == EVERY_NODE {
            return true;
        }
        let on_host = key == HOST;
        if let Some(known) = self.admitted.get(&(filter, id, on_host)) {
            return *known;
        }
        let state = states.get(id);
        let table = &tables.pools[state.pool];
        let outcomes: Vec<(&InstanceType, &Offering)> = state
            .offers
            .ones()
            .map(|offer| &table.offers[offer])
            .map(|offer| (offer.row, offer.offering))
            .chain(
                table
                    .resting
                    .iter()
                    .copied()
                    .filter(|(row, o)| state.rows.contains(*row as usize) && offering_allows(o, &state.requirements)),
            )
            .map(|(row, offering)| (table.rows[row as usize].instance_type, offering))
            .collect();
        let future = Future { have: &state.requirements, labels: None, taints: &table.pool.template.taints, outcomes: &outcomes };
        let admitted = if on_host { self.may_pass(filter, &future) } else { self.passes(filter, &future) };
        self.admitted.insert((filter, id, on_host), admitted);
        admitted
    }
}
