//! What EC2 has for sale: prices, and what is sold out whatever anybody believes.

use std::sync::Arc;

use whittle_engine::World;
use whittle_model::{
    CapacityType, Catalog, Duration, Event, Held, ListedOffer, Micros, NodeClaim, OfferingKey, Reservation, Timestamp, keys,
};

use super::{Happening, Reality};

/// How long after a change reserved instances are counted again, as often as AWS is asked for them.
pub(super) const RECOUNT: Duration = Duration::minutes(1);

/// Offerings that cannot be bought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SoldOut {
    /// Of this capacity type.
    pub(crate) capacity_type: CapacityType,
    /// Of this type; all when `None`.
    pub(crate) instance_type: Option<String>,
    /// In this zone; all when `None`.
    pub(crate) zone: Option<String>,
    /// Until when; for ever when `None`.
    pub(crate) until: Option<Timestamp>,
}

impl SoldOut {
    fn covers(&self, key: &OfferingKey) -> bool {
        self.capacity_type == key.capacity_type
            && self.instance_type.as_ref().is_none_or(|t| *t == key.instance_type)
            && self.zone.as_ref().is_none_or(|z| *z == key.zone)
    }
}

impl Reality {
    /// Takes offerings off the market.
    pub(crate) fn sell_out(&mut self, mut what: SoldOut, lasting: Option<Duration>) {
        what.until = lasting.map(|span| self.now.plus(span));
        if let Some(span) = lasting {
            self.later(span, Happening::Restock);
        }
        self.ec2.sold_out.push(what);
    }

    pub(super) fn restock(&mut self) {
        let now = self.now;
        self.ec2.sold_out.retain(|s| s.until.is_none_or(|until| until > now));
    }

    /// Whether anything that the engine believes to be sold out can be bought, or will be.
    pub(crate) fn restocks(&self, world: &World) -> bool {
        let believed = |catalog: &Catalog| {
            catalog.types.iter().any(|t| {
                t.offerings.iter().any(|o| {
                    let key = t.key(o);
                    world.sold_out_until(&key).is_some() && self.for_sale(&key)
                })
            })
        };
        self.ec2.sold_out.iter().any(|s| s.until.is_some()) || self.api.catalogs.values().any(|c| believed(c))
    }

    /// Whether an offering can be bought now.
    pub(super) fn for_sale(&self, key: &OfferingKey) -> bool {
        !self.ec2.sold_out.iter().any(|s| s.covers(key))
    }

    /// A capacity reservation holds so many instances from now on.
    pub(crate) fn hold(&mut self, id: &str, instances: u32) {
        self.ec2.held.insert(id.to_owned(), instances);
        self.count_held();
    }

    /// Instances that may still be launched into a capacity reservation.
    pub(super) fn left(&self, id: &str) -> u32 {
        let used = self.ec2.running().filter(|i| i.provided.reservation.as_deref() == Some(id)).count();
        self.ec2.held.get(id).copied().unwrap_or(0).saturating_sub(u32::try_from(used).unwrap_or(u32::MAX))
    }

    /// Tells of catalogues in which the number of reserved instances has changed. What was just bought the engine counts by
    /// itself as soon as it is told; until then nothing is counted anew.
    pub(super) fn count_held(&mut self) {
        let told = |launched: Timestamp| self.now.since(launched) > RECOUNT;
        if self.ec2.running().any(|i| i.provided.reservation.is_some() && !i.given && !told(i.since)) {
            return self.later(RECOUNT, Happening::CountHeld);
        }
        for catalog in self.recount() {
            self.tell(Event::Catalog(catalog));
        }
    }

    /// Counts reserved instances anew; returns the catalogues that changed.
    pub(super) fn recount(&mut self) -> Vec<Arc<Catalog>> {
        let changed: Vec<(String, Arc<Catalog>)> =
            self.api.catalogs.iter().filter_map(|(name, catalog)| Some((name.clone(), self.counted(catalog)?))).collect();
        self.api.catalogs.extend(changed.iter().cloned());
        changed.into_iter().map(|(_, catalog)| catalog).collect()
    }

    /// A catalogue with its reserved instances as many as are left now; `None` when it says so already.
    pub(super) fn counted(&self, catalog: &Catalog) -> Option<Arc<Catalog>> {
        let before: Vec<Held> = catalog.held().collect();
        let count = |one: &Held| {
            let reservation = Reservation { left: self.left(&one.reservation.id), ..one.reservation.clone() };
            Held { reservation, ..one.clone() }
        };
        let now: Vec<Held> = before.iter().map(count).collect();
        (now != before).then(|| {
            let mut catalog = catalog.clone();
            catalog.reserve(&now);
            Arc::new(catalog)
        })
    }

    /// Changes a price; false when nothing is sold under this name.
    pub(crate) fn reprice(&mut self, key: &OfferingKey, price: Micros) -> bool {
        self.accrue();
        let mut found = false;
        for catalog in self.api.catalogs.values_mut() {
            if catalog.offering(key).is_none() {
                continue;
            }
            let catalog = Arc::make_mut(catalog);
            let Ok(at) = catalog.types.binary_search_by(|t| t.name.cmp(&key.instance_type)) else { continue };
            for offering in &mut catalog.types[at].offerings {
                if offering.zone == key.zone && offering.capacity_type == key.capacity_type {
                    offering.price = price;
                    found = true;
                }
            }
        }
        if found {
            self.tell(Event::Price(key.clone(), price));
        }
        found
    }

    /// Today's price of an offering of a node class; zero when it is not known.
    pub(crate) fn price(&self, node_class: &str, key: &OfferingKey) -> Micros {
        self.api.catalogs.get(node_class).and_then(|c| c.offering(key)).map_or(Micros(0), |o| o.price)
    }

    /// What a claim allows, cheapest first; as listed where the claim lists offerings.
    pub(super) fn allowed(&self, claim: &NodeClaim) -> Vec<(Micros, OfferingKey)> {
        let Some(catalog) = self.api.catalogs.get(&claim.node_class) else { return Vec::new() };
        let wanted = |key: &str, value: &str| claim.requirements.get(key).is_none_or(|r| r.allows(value));
        let mut all = Vec::new();
        for instance_type in &catalog.types {
            let named = wanted(keys::INSTANCE_TYPE, &instance_type.name) && wanted(keys::REGION, &catalog.region);
            let suits = named
                && claim.requests.fit_in(&instance_type.allocatable)
                && claim.requirements.iter().all(|want| match (instance_type.labels.get(want.key()), want.key()) {
                    (_, keys::ZONE | keys::ZONE_ID | keys::CAPACITY_TYPE | keys::INSTANCE_TYPE | keys::REGION) => true,
                    (_, keys::RESERVATION_ID | keys::RESERVATION_TYPE | keys::RESERVATION_INTERRUPTIBLE) => true,
                    (Some(value), _) => want.allows(value),
                    (None, key) => match instance_type.requirements.get(key) {
                        Some(have) => have.intersects(want) || (have.admits_absence() && want.admits_absence()),
                        // What the type does not define, the node gets from the claim's labels.
                        None => want.admits_absence() || !keys::well_known(key) || key == keys::NODE_POOL,
                    },
                });
            if !suits {
                continue;
            }
            for offering in instance_type.offerings.iter().filter(|o| o.available || o.reservation.is_some()) {
                let reserved = [keys::RESERVATION_ID, keys::RESERVATION_TYPE, keys::RESERVATION_INTERRUPTIBLE].into_iter().all(|key| {
                    let value = offering.reservation.as_ref().and_then(|reservation| reservation.label(key));
                    let want = claim.requirements.get(key);
                    want.is_none_or(|want| value.map_or_else(|| want.admits_absence(), |value| want.allows(value)))
                });
                if !reserved {
                    continue;
                }
                let zone_id = offering.zone_id.is_empty() || wanted(keys::ZONE_ID, &offering.zone_id);
                if zone_id && wanted(keys::ZONE, &offering.zone) && wanted(keys::CAPACITY_TYPE, offering.capacity_type.name()) {
                    let key = instance_type.key(offering);
                    all.push((offering.price, key));
                }
            }
        }
        all.sort_by(|a, b| (a.0, a.1.capacity_type, &a.1).cmp(&(b.0, b.1.capacity_type, &b.1)));
        if let Some(listed) = claim.listed_offers() {
            choose_from(&mut all, &listed);
        }
        all
    }
}

/// The capacity reservation that a claim is launched into when this is bought for it.
pub(super) fn reserved(claim: &NodeClaim, key: &OfferingKey) -> Option<String> {
    let named = claim.requirements.get(keys::RESERVATION_ID).and_then(whittle_model::Requirement::single);
    named.filter(|_| key.capacity_type == CapacityType::Reserved).map(str::to_owned)
}

/// Under policies a claim says what to buy: exactly the offerings listed, the first that is for sale.
fn choose_from(all: &mut Vec<(Micros, OfferingKey)>, listed: &[ListedOffer]) {
    let place = |key: &OfferingKey| listed.iter().position(|(name, zone, _)| *name == key.instance_type && *zone == key.zone);
    all.retain(|(_, key)| place(key).is_some());
    all.sort_by_key(|(_, key)| place(key));
}
