//! What a class comes to: the things that launches need, and what its status shows of them.
//!
//! What must not enter: how they are found, and what is done with them.

use whittle_model::{self as model, ComesTo, Labels, Requirements, Timestamp, ec2_node_class as api};

use super::condition::{ClassCondition, ConditionKind, ConditionStatus};
use crate::image::Family;

/// One EC2NodeClass as it is to be resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassInput {
    /// Its name.
    pub name: String,
    /// Unique for all time: the path of its instance profiles.
    pub uid: String,
    /// Counts the changes of its spec.
    pub generation: i64,
    /// Its annotations: a change of them has AWS asked anew whether it would allow a launch.
    pub annotations: Labels,
    /// What it wants.
    pub spec: api::Ec2NodeClassSpec,
    /// The instance profile that its status names.
    pub status_profile: Option<String>,
}

/// A subnet that a class names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subnet {
    /// `subnet-…`.
    pub id: String,
    /// Its zone.
    pub zone: String,
    /// Its zone's id; empty when AWS does not say.
    pub zone_id: String,
    /// `vpc-…`.
    pub vpc: String,
    /// Addresses that no interface has.
    pub free_addresses: i64,
}

/// A security group that a class names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SecurityGroup {
    /// `sg-…`.
    pub id: String,
    /// Its name.
    pub name: String,
    /// `vpc-…`.
    pub vpc: String,
}

/// A machine image that a class names, for the instance types that meet its requirements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ami {
    /// `ami-…`.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Whether its owner deprecated it.
    pub deprecated: bool,
    /// When it was made, if AWS says so.
    pub created: Option<Timestamp>,
    /// The instance types it boots.
    pub requirements: Requirements,
}

/// A capacity reservation that a class names.
#[derive(Debug, Clone, PartialEq)]
pub struct Reservation {
    /// What the status shows.
    pub found: api::CapacityReservation,
    /// When it ends; `None` is never.
    pub ends: Option<Timestamp>,
    /// Instances that it still has room for.
    pub available: i64,
}

/// How a placement group places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PlacementStrategy {
    /// Close together.
    Cluster,
    /// In partitions that share no hardware.
    Partition,
    /// Each on hardware of its own.
    Spread,
}

/// The placement group that a class names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacementGroup {
    /// `pg-…`.
    pub id: String,
    /// Its name.
    pub name: String,
    /// How it places.
    pub strategy: PlacementStrategy,
    /// Its partitions; zero unless it has some.
    pub partitions: u32,
    /// `rack` or `host`; empty unless it spreads.
    pub spread_level: String,
}

/// What a class comes to.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// Its name.
    pub name: String,
    /// The generation it was resolved at.
    pub generation: i64,
    /// The image family: the one it names, else its alias's.
    pub family: Family,
    /// Those with most free addresses first.
    pub subnets: Vec<Subnet>,
    /// By id.
    pub security_groups: Vec<SecurityGroup>,
    /// The newest first. An instance type takes the first that it meets.
    pub amis: Vec<Ami>,
    /// By id; empty without the gate.
    pub capacity_reservations: Vec<Reservation>,
    /// The group instances stand in, if one is asked for and was found.
    pub placement_group: Option<PlacementGroup>,
    /// The profile of its instances.
    pub instance_profile: Option<String>,
    /// What its status says; [`Ready`](ConditionKind::Ready) is the last.
    pub conditions: Vec<ClassCondition>,
    /// What went wrong or found nothing without being in the way of launches, for the log.
    pub notes: Vec<String>,
    /// When to resolve it again, if it does not change before.
    pub next: Timestamp,
}

impl Resolved {
    /// What it says of `kind`; `None` for what is not asked for.
    #[must_use]
    pub fn condition(&self, kind: ConditionKind) -> Option<&ClassCondition> {
        self.conditions.iter().find(|condition| condition.kind == kind)
    }

    /// The capacity reservations that may be launched into, with what is left of them.
    #[must_use]
    pub fn held(&self) -> Vec<model::Held> {
        let left = |one: &Reservation| u32::try_from(one.available).unwrap_or(0);
        self.capacity_reservations.iter().filter_map(|one| model::Held::listed(&one.found, left(one))).collect()
    }

    /// Whether EC2 takes the instances of this capacity block soon.
    #[must_use]
    pub fn about_to_end(&self, reservation: &str) -> bool {
        let found = self.capacity_reservations.iter().find(|one| one.found.id == reservation);
        found.is_some_and(|one| model::Held::listed(&one.found, 0).is_none())
    }

    /// Why nothing may be launched from it, if so.
    #[must_use]
    pub fn not_ready(&self) -> Option<String> {
        let unhealthy = |c: &&ClassCondition| c.kind != ConditionKind::Ready && c.status != ConditionStatus::True;
        let all: Vec<String> = self.conditions.iter().filter(unhealthy).map(ToString::to_string).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    /// What instances of it are compared with. Without `reservations` nobody minds which of them an instance runs in.
    #[must_use]
    pub fn comes_to(&self, reservations: bool) -> ComesTo {
        let group = self.placement_group.as_ref().map(|group| group.id.clone());
        let asks_for_group = self.condition(ConditionKind::PlacementGroupReady).is_some();
        let ids = || self.capacity_reservations.iter().map(|reservation| reservation.found.id.clone()).collect();
        ComesTo {
            images: self.amis.iter().map(|ami| (ami.id.clone(), ami.requirements.clone())).collect(),
            subnets: self.subnets.iter().map(|subnet| model::Subnet { id: subnet.id.clone(), zone: subnet.zone.clone() }).collect(),
            security_groups: self.security_groups.iter().map(|group| group.id.clone()).collect(),
            reservations: reservations.then(ids),
            placement_group: if asks_for_group { group.map(Some) } else { Some(None) },
        }
    }

    /// `status.subnets`.
    #[must_use]
    pub fn status_subnets(&self) -> Vec<api::FoundSubnet> {
        let shown = |s: &Subnet| api::FoundSubnet {
            id: s.id.clone(),
            zone: s.zone.clone(),
            zone_id: Some(s.zone_id.clone()).filter(|id| !id.is_empty()),
        };
        self.subnets.iter().map(shown).collect()
    }

    /// `status.securityGroups`.
    #[must_use]
    pub fn status_security_groups(&self) -> Vec<api::SecurityGroup> {
        let shown = |g: &SecurityGroup| api::SecurityGroup { id: g.id.clone(), name: Some(g.name.clone()).filter(|name| !name.is_empty()) };
        self.security_groups.iter().map(shown).collect()
    }

    /// `status.amis`.
    #[must_use]
    pub fn status_amis(&self) -> Vec<api::Ami> {
        self.amis.iter().map(Ami::status).collect()
    }

    /// `status.capacityReservations`.
    #[must_use]
    pub fn status_capacity_reservations(&self) -> Vec<api::CapacityReservation> {
        self.capacity_reservations.iter().map(|reservation| reservation.found.clone()).collect()
    }
}

impl Ami {
    fn status(&self) -> api::Ami {
        let requirement = |r: &whittle_model::Requirement| api::AmiRequirement {
            key: r.key().to_owned(),
            operator: r.operator().name().to_owned(),
            values: Some(r.values().iter().cloned().collect::<Vec<_>>()).filter(|values| !values.is_empty()),
        };
        let mut requirements: Vec<api::AmiRequirement> = self.requirements.iter().map(requirement).collect();
        // Short keys first, as Karpenter writes them: a take-over changes no status.
        requirements.sort_by(|a, b| (a.key.len(), &a.key).cmp(&(b.key.len(), &b.key)));
        api::Ami {
            id: self.id.clone(),
            name: Some(self.name.clone()).filter(|name| !name.is_empty()),
            deprecated: self.deprecated.then_some(true),
            requirements,
        }
    }
}
