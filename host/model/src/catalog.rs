//! What can be bought: instance types, and offerings of them by zone and capacity type.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ec2_node_class::CapacityReservation;
use crate::{Labels, Micros, Requirements, Resources, keys};

/// How capacity is paid for. The order is that of preference at equal price.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum CapacityType {
    /// A capacity reservation already paid for.
    Reserved,
    /// Spare capacity that may be taken back.
    Spot,
    /// Bought by the hour at list price.
    OnDemand,
}

impl CapacityType {
    /// The label value: `reserved`, `spot`, `on-demand`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reserved => "reserved",
            Self::Spot => "spot",
            Self::OnDemand => "on-demand",
        }
    }

    /// The capacity type of this label value.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Reserved, Self::Spot, Self::OnDemand].into_iter().find(|c| c.name() == name)
    }
}

impl std::fmt::Display for CapacityType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// One place and way to buy an instance type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offering {
    /// Availability zone.
    pub zone: String,
    /// Zone id, such as `use1-az1`; empty when unknown.
    pub zone_id: String,
    /// How it is paid for.
    pub capacity_type: CapacityType,
    /// Price of an hour: the list price, for spot today's.
    pub price: Micros,
    /// False when this offering is known not to be for sale (no subnet in the zone, no price).
    /// Sold-out answers are remembered by the engine, not here.
    pub available: bool,
    /// The capacity reservation behind it, when it is `reserved`.
    pub reservation: Option<Reservation>,
}

/// A capacity reservation behind an offering.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    /// `cr-…`.
    pub id: String,
    /// Whether it is a capacity block rather than a default reservation.
    pub block: bool,
    /// Whether its owner may take it back at any time.
    pub interruptible: bool,
    /// Instances that may still be launched into it.
    pub left: u32,
}

impl Reservation {
    /// Its kind, in the order in which kinds are used: those that nobody may take back first, and blocks after others.
    #[must_use]
    pub const fn kind(&self) -> (bool, bool) {
        (self.interruptible, self.block)
    }

    /// The value of a label that tells reserved instances apart; `None` for other keys.
    #[must_use]
    pub fn label(&self, key: &str) -> Option<&str> {
        let of_bool = |yes: bool| if yes { "true" } else { "false" };
        match key {
            keys::RESERVATION_ID => Some(&self.id),
            keys::RESERVATION_TYPE => Some(if self.block { "capacity-block" } else { "default" }),
            keys::RESERVATION_INTERRUPTIBLE => Some(of_bool(self.interruptible)),
            _ => None,
        }
    }
}

/// A capacity reservation that a NodeClass selects, with what it is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The reservation.
    pub reservation: Reservation,
    /// The type of its instances.
    pub instance_type: String,
    /// Their zone.
    pub zone: String,
}

impl Held {
    /// A reservation as the status of a NodeClass lists it, with so many instances left; `None` for one that is about to end,
    /// into which nothing is launched any more.
    #[must_use]
    pub fn listed(one: &CapacityReservation, left: u32) -> Option<Self> {
        let reservation = Reservation {
            id: one.id.clone(),
            block: one.reservation_type.as_deref() == Some("capacity-block"),
            interruptible: one.interruptible == Some(true),
            left,
        };
        let held = Self { reservation, instance_type: one.instance_type.clone(), zone: one.availability_zone.clone() };
        (one.state.as_deref() != Some("expiring")).then_some(held)
    }
}

/// A reserved offering costs so little of the price on demand: it is paid for, and the dearer goes after the cheaper.
const RESERVED_SHARE: i64 = 10_000_000;

/// The name of an offering in every table: type, zone, capacity type.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct OfferingKey {
    /// Instance type name.
    pub instance_type: String,
    /// Availability zone.
    pub zone: String,
    /// How it is paid for.
    pub capacity_type: CapacityType,
}

impl std::fmt::Display for OfferingKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}", self.capacity_type, self.instance_type, self.zone)
    }
}

/// An instance type as one NodeClass makes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceType {
    /// Its name, such as `m7i.large`.
    pub name: String,
    /// The labels a node of this type gets, besides zone, zone id and capacity type.
    pub labels: Labels,
    /// Labels that may take one of several values at launch (tenancy), and absent well-known
    /// labels as `DoesNotExist`, so that `Exists` chooses types that have them. Few sets are distinct,
    /// so types share them.
    pub requirements: Arc<Requirements>,
    /// What the instance has.
    pub capacity: Resources,
    /// What pods can use of it: capacity less what kubelet, system and eviction keep.
    pub allocatable: Resources,
    /// Where and how it is sold, ordered by zone and capacity type.
    pub offerings: Vec<Offering>,
}

impl InstanceType {
    /// The name of one of its offerings.
    #[must_use]
    pub fn key(&self, offering: &Offering) -> OfferingKey {
        OfferingKey { instance_type: self.name.clone(), zone: offering.zone.clone(), capacity_type: offering.capacity_type }
    }
}

/// Everything one NodeClass can buy, at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Catalog {
    /// The NodeClass this was made for; pools find their catalogue by it.
    pub node_class: String,
    /// Region of the zones.
    pub region: String,
    /// Region whose price list was used; another than `region` when the latter has none here.
    pub price_region: String,
    /// Types ordered by name.
    pub types: Vec<InstanceType>,
}

impl Catalog {
    /// The type of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&InstanceType> {
        self.types.binary_search_by(|t| t.name.as_str().cmp(name)).ok().map(|at| &self.types[at])
    }

    /// The reservations behind its offerings.
    pub fn held(&self) -> impl Iterator<Item = Held> + '_ {
        self.types.iter().flat_map(|of_type| {
            let behind = |o: &Offering| o.reservation.clone().map(|reservation| (reservation, o.zone.clone()));
            let found = of_type.offerings.iter().filter_map(behind);
            found.map(|(reservation, zone)| Held { reservation, instance_type: of_type.name.clone(), zone })
        })
    }

    /// Makes an offering of each of these reservations, and of no other, whose type and zone are known here. It is for sale
    /// while instances are left, in zones where anything else is.
    pub fn reserve(&mut self, held: &[Held]) {
        self.types.iter_mut().for_each(|t| t.offerings.retain(|o| o.reservation.is_none()));
        for one in held {
            let in_zone = |o: &&Offering| o.zone == one.zone;
            let Some(zone_id) = self.types.iter().flat_map(|t| &t.offerings).find(in_zone).map(|o| o.zone_id.clone()) else { continue };
            let open = self.types.iter().flat_map(|t| &t.offerings).any(|o| in_zone(&o) && o.available && o.reservation.is_none());
            let Ok(at) = self.types.binary_search_by(|t| t.name.cmp(&one.instance_type)) else { continue };
            let offerings = &mut self.types[at].offerings;
            let on_demand = offerings.iter().find(|o| o.capacity_type == CapacityType::OnDemand).map_or(0, |o| o.price.0);
            offerings.push(Offering {
                zone: one.zone.clone(),
                zone_id,
                capacity_type: CapacityType::Reserved,
                price: Micros(on_demand / RESERVED_SHARE),
                available: open && one.reservation.left > 0,
                reservation: Some(one.reservation.clone()),
            });
            offerings.sort_by(|a, b| (&a.zone, a.capacity_type).cmp(&(&b.zone, b.capacity_type)));
        }
    }

    /// The offering of this name.
    #[must_use]
    pub fn offering(&self, key: &OfferingKey) -> Option<&Offering> {
        let of_type = self.get(&key.instance_type)?;
        of_type.offerings.iter().find(|o| o.zone == key.zone && o.capacity_type == key.capacity_type)
    }
}

#[cfg(test)]
#[path = "../tests_unit/catalog.rs"]
mod tests;
