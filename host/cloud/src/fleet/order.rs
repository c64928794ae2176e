//! What a launch is told: the claim, and everything that was found out for it.
//!
//! What must not enter: how it was found out, and what is made of it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use whittle_model::{Catalog, NodeClaim, OfferingKey, ec2_node_class::Ec2NodeClassSpec, keys};

use crate::{class::Resolved, image::ClusterFacts};

/// An order to buy an instance for a claim.
#[derive(Debug, Clone)]
pub struct LaunchOrder {
    /// The claim.
    pub claim: NodeClaim,
    /// Whether an instance may have been bought for it already: those that carry its launch group are looked for first.
    pub adopt: bool,
    /// Provider ids that other claims have.
    pub taken: BTreeSet<String>,
    /// What its node class came to.
    pub class: Arc<LaunchClass>,
    /// What its node class can buy.
    pub catalog: Arc<Catalog>,
    /// Offerings that are remembered to be sold out.
    pub sold_out: BTreeSet<OfferingKey>,
    /// Settings that bear on launches.
    pub settings: LaunchSettings,
}

/// A node class, ready to launch from.
#[derive(Debug, Clone, PartialEq)]
pub struct LaunchClass {
    /// What it came to.
    pub resolved: Resolved,
    /// What it wants.
    pub spec: Ec2NodeClassSpec,
    /// The cluster that nodes join.
    pub cluster: ClusterFacts,
}

/// Settings that bear on launches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LaunchSettings {
    /// Whether capacity reservations are only used where they are named (gate ReservedCapacity).
    pub targeted_reservations: bool,
}

impl LaunchOrder {
    /// Claims of one group are launched together and their instances may stand for each other. A claim that nobody put
    /// into a group is a group of its own.
    pub(crate) fn group(&self) -> &str {
        self.claim.annotations.get(keys::LAUNCH_GROUP).map_or_else(|| self.identity(), String::as_str)
    }

    /// Unique for all time, where the API server gave it.
    pub(crate) fn identity(&self) -> &str {
        if self.claim.uid.is_empty() { &self.claim.name } else { &self.claim.uid }
    }
}

/// Subnets of a class by zone.
pub(crate) type Zones<'a> = BTreeMap<&'a str, Vec<&'a crate::class::Subnet>>;

impl LaunchClass {
    pub(crate) fn zones(&self) -> Zones<'_> {
        let mut zones = Zones::new();
        for subnet in &self.resolved.subnets {
            zones.entry(&subnet.zone).or_default().push(subnet);
        }
        zones
    }
}
