//! Whether an instance still is what its EC2NodeClass comes to, in Karpenter's order of reasons.
//!
//! What must not enter: how either is found out, and what is done about a difference.

use std::collections::BTreeSet;

use crate::{Labels, Requirements, Subnet};

/// What a class comes to in AWS.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ComesTo {
    /// Its machine images with the types they boot, the preferred ones first.
    pub images: Vec<(String, Requirements)>,
    /// Its subnets.
    pub subnets: BTreeSet<Subnet>,
    /// Ids of its security groups.
    pub security_groups: BTreeSet<String>,
    /// Ids of its capacity reservations; `None` where reservations are nobody's matter.
    pub reservations: Option<BTreeSet<String>>,
    /// Id of its placement group; `None` where that is not known.
    pub placement_group: Option<Option<String>>,
}

/// What an instance was given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Provided {
    /// Its machine image.
    pub image: String,
    /// Its subnet; empty when it has none any more.
    pub subnet: String,
    /// Ids of its security groups.
    pub security_groups: BTreeSet<String>,
    /// The capacity reservation that was bought for it, if it was.
    pub reservation: Option<String>,
    /// Its placement group.
    pub placement_group: Option<String>,
}

/// What an instance may be found to differ in.
pub const REASONS: [&str; 5] = ["AMIDrift", "SecurityGroupDrift", "SubnetDrift", "CapacityReservationDrift", "PlacementGroupDrift"];

/// The first thing in which an instance of a type with these labels differs from what its class comes to; `None` when it
/// does not. What a class comes to nothing of is not known, and nothing differs from it.
#[must_use]
pub fn provider_drift(class: &ComesTo, given: &Provided, labels: Option<&Labels>) -> Option<&'static str> {
    let image = labels.filter(|_| !class.images.is_empty() && !given.image.is_empty()).is_some_and(|labels| {
        let boots = class.images.iter().find(|(_, requirements)| requirements.met_by(labels));
        boots.is_none_or(|(image, _)| *image != given.image)
    });
    let groups = !class.security_groups.is_empty() && !given.security_groups.is_empty() && class.security_groups != given.security_groups;
    let subnet = !class.subnets.is_empty() && !given.subnet.is_empty() && class.subnets.iter().all(|subnet| subnet.id != given.subnet);
    let elsewhere = |known: &BTreeSet<String>| given.reservation.as_ref().is_some_and(|id| !known.contains(id));
    let reservation = class.reservations.as_ref().is_some_and(elsewhere);
    let placed = class.placement_group.as_ref().is_some_and(|group| *group != given.placement_group);
    let differs = [image, groups, subnet, reservation, placed];
    REASONS.into_iter().zip(differs).find(|(_, differs)| *differs).map(|(reason, _)| reason)
}

#[cfg(test)]
#[path = "../tests_unit/provider_drift.rs"]
mod tests;
