//! Compares instances with what their EC2NodeClasses come to, and says what the engine has not been told of yet: how they
//! differ, and that the capacity block is about to end in which they are. What must not enter: what is done about it.

use std::collections::{BTreeMap, BTreeSet};

use whittle_cloud::fleet::InstanceFacts;
use whittle_model::{CapacityType, Event, Interruption, provider_drift};

use crate::shelf::Shelf;

/// What was told of claims, by name.
#[derive(Debug, Default)]
pub struct Drifts {
    told: BTreeMap<String, Option<&'static str>>,
    /// Instances that were told of because their reservation is about to end.
    ending: BTreeSet<String>,
    /// Whether it matters in which reservation an instance runs.
    reservations: bool,
}

impl Drifts {
    /// Nothing told yet.
    pub fn new(reservations: bool) -> Self {
        Self { reservations, ..Self::default() }
    }

    /// What is new since the last time. A claim that was never told of is told of when its instance differs, or when its
    /// status says so of an earlier life.
    pub fn news(&mut self, instances: &[InstanceFacts], shelf: &Shelf) -> Vec<Event> {
        let known = shelf.open();
        let by_id: BTreeMap<&str, &InstanceFacts> = instances.iter().map(|facts| (facts.provider_id.as_str(), facts)).collect();
        self.told.retain(|claim, _| known.users.contains_key(claim));
        self.ending.retain(|instance| by_id.contains_key(instance.as_str()));
        let mut news = Vec::new();
        for (claim, (class, _)) in &known.users {
            let about = known.claims.get(claim);
            let (Some(facts), Some(ready)) = (by_id.get(about.provider_id.as_str()), known.classes.get(class)) else { continue };
            let bought = about.capacity_type == Some(CapacityType::Reserved);
            let labels = ready.catalog.get(&facts.instance_type).map(|found| &found.labels);
            let comes_to = ready.class.resolved.comes_to(self.reservations);
            let ends = bought && facts.reservation.as_ref().is_some_and(|id| ready.class.resolved.about_to_end(id));
            if ends && self.ending.insert(facts.provider_id.clone()) {
                let what = Interruption::CapacityReservationInterrupted;
                news.push(Event::Interrupted { provider_id: facts.provider_id.clone(), what });
            }
            let reason = provider_drift(&comes_to, &facts.provided(bought), labels);
            let stale = reason.is_some() || about.drifted_by_provider;
            if self.told.get(claim).map_or(stale, |told| *told != reason) {
                news.push(Event::ProviderDrift { claim: claim.clone(), reason: reason.map(ToOwned::to_owned) });
                self.told.insert(claim.clone(), reason);
            }
        }
        news
    }
}
