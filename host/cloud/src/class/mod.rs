//! EC2NodeClasses: what each of them names in AWS, what its status says of that, and whether AWS would allow a launch
//! from it. Nothing here keeps time: the time is handed in, and each answer says when to ask again.
//!
//! What must not enter: watches and writes of the object, instance types and prices, launches.

mod cache;
mod checks;
mod condition;
mod dry_run;
mod find;
mod images;
mod kubelet;
mod kubelet_fields;
mod lookup;
mod parameters;
mod placement;
mod profile;
mod reservations;
mod resolved;
mod security_groups;
mod selector;
mod subnets;
mod trial;

use std::{collections::BTreeSet, sync::Mutex};

use whittle_model::{Duration, InstanceType, Timestamp};

pub use condition::{ClassCondition, ConditionKind, ConditionStatus};
pub use resolved::{Ami, ClassInput, PlacementGroup, PlacementStrategy, Reservation, Resolved, SecurityGroup, Subnet};

use crate::{
    Aws, CloudError,
    image::{ClusterFacts, Family},
};
use cache::Cache;
use checks::{Check, Words};
use condition::ConditionKind as Kind;
use find::Found;
use parameters::Parameters;
use profile::Profiles;

/// Profiles out of use are looked for this often.
const COLLECT: Duration = Duration::minutes(30);

/// Settings that bear on classes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassSettings {
    /// The cluster's name.
    pub cluster: String,
    /// Whether services without an endpoint in the VPC cannot be reached: IAM among them.
    pub isolated_vpc: bool,
    /// Whether AWS is not asked if it would allow a launch.
    pub disable_dry_run: bool,
    /// Gate ReservedCapacity.
    pub reserved_capacity: bool,
    /// How long images that were found are good; at least a minute.
    pub ami_refresh: Duration,
    /// How long subnets that were found are good; at least a minute.
    pub subnet_refresh: Duration,
}

/// What a class is resolved in.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings<'a> {
    /// The cluster that its nodes join.
    pub cluster: &'a ClusterFacts,
    /// Version of Kubernetes, such as `1.34`.
    pub kubernetes: &'a str,
    /// Types that its NodePools buy, those to be tried first in front; empty while they are not known.
    pub candidates: &'a [InstanceType],
    /// Whether one of its NodePools asks for dedicated hosts.
    pub dedicated: bool,
    /// Whether anything may be made in AWS. Where not, as in mode Observe and while another replica acts, no instance
    /// profile is made and no launch is tried, and both count as good.
    pub may_write: bool,
}

/// Resolves classes, and remembers what AWS said.
#[derive(Debug)]
pub struct Classes {
    settings: ClassSettings,
    subnets: Cache<Vec<Subnet>>,
    security_groups: Cache<Vec<SecurityGroup>>,
    images: Cache<Vec<images::Image>>,
    parameters: Parameters,
    reservations: Cache<Vec<Reservation>>,
    placement_groups: Cache<Option<PlacementGroup>>,
    profiles: Profiles,
    words: Words,
    collected: Mutex<Option<Timestamp>>,
}

impl Classes {
    /// With nothing remembered.
    #[must_use]
    pub fn new(settings: ClassSettings) -> Self {
        Self {
            profiles: Profiles::new(&settings.cluster),
            settings,
            subnets: Cache::default(),
            security_groups: Cache::default(),
            images: Cache::default(),
            parameters: Parameters::default(),
            reservations: Cache::default(),
            placement_groups: Cache::default(),
            words: Words::default(),
            collected: Mutex::default(),
        }
    }

    /// What `class` comes to now. What AWS does not say stays as it was; failures are conditions and notes.
    pub async fn resolve(&self, aws: &Aws, class: &ClassInput, around: &Surroundings<'_>, now: Timestamp) -> Resolved {
        let family = Family::of(&class.spec).unwrap_or(Family::Custom);
        let (subnets, groups, images, profile, placement, reservations) = tokio::join!(
            self.find_subnets(aws, class, now),
            self.find_security_groups(aws, class, now),
            self.find_images(aws, class, around.kubernetes, now),
            self.find_profile(aws, class, around.may_write, now),
            self.find_placement_group(aws, class, now),
            self.find_reservations(aws, class, now),
        );
        let mut resolved = Resolved {
            name: class.name.clone(),
            generation: class.generation,
            family,
            subnets: Vec::new(),
            security_groups: Vec::new(),
            amis: Vec::new(),
            capacity_reservations: Vec::new(),
            placement_group: None,
            instance_profile: None,
            conditions: Vec::new(),
            notes: Vec::new(),
            next: now.plus(Duration::minutes(10)),
        };
        resolved.subnets = resolved.take(subnets);
        let groups = find::with_vpc(groups, &resolved.subnets);
        resolved.security_groups = resolved.take(groups);
        resolved.amis = resolved.take(images);
        resolved.instance_profile = resolved.take(profile);
        resolved.placement_group = resolved.take(placement);
        if let Some(reservations) = reservations {
            resolved.capacity_reservations = resolved.take(reservations);
        }
        let check =
            Check { settings: &self.settings, words: &self.words, profiles: &self.profiles, class, around, resolved: &resolved, now };
        let checked = check.run(aws).await;
        resolved.conditions.push(checked.condition);
        resolved.notes.extend(checked.notes);
        resolved.next = resolved.next.min(checked.next);
        resolved.conditions.push(ClassCondition::ready(&resolved.conditions));
        resolved
    }

    /// Deletes what was made for a class that is being deleted and has no claims any more: its instance profiles.
    ///
    /// # Errors
    /// When AWS does not delete them; call again.
    pub async fn delete(&self, aws: &Aws, name: &str, uid: &str) -> Result<(), CloudError> {
        let prefix = format!("{name} ");
        for key in self.words.questions(|_| true).iter().filter(|key| key.starts_with(&prefix)) {
            self.words.forget(key);
        }
        if self.settings.isolated_vpc {
            return Ok(());
        }
        self.profiles.delete_of_class(aws, name, uid).await
    }

    /// When profiles out of use are to be deleted next; `None` is never.
    #[must_use]
    pub fn next_collection(&self, now: Timestamp) -> Option<Timestamp> {
        if self.settings.isolated_vpc {
            return None;
        }
        let collected = *self.collected.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        Some(collected.map_or(now, |collected| collected.plus(COLLECT)))
    }

    /// Deletes the cluster's managed profiles that are not `in_use`: neither named by the status of a class nor by the
    /// annotation of a claim. Those that went out of use within the hour stay. Returns the names of the deleted.
    ///
    /// # Errors
    /// When AWS does not list or delete them; those that are left are found the next time.
    pub async fn collect_profiles(&self, aws: &Aws, in_use: &BTreeSet<String>, now: Timestamp) -> Result<Vec<String>, CloudError> {
        if self.settings.isolated_vpc {
            return Ok(Vec::new());
        }
        *self.collected.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(now);
        self.profiles.collect(aws, in_use, now).await
    }
}

impl Resolved {
    /// Adds what was found out of one part, and returns the part.
    fn take<T>(&mut self, found: Found<T>) -> T {
        self.conditions.push(found.condition);
        self.notes.extend(found.notes);
        self.next = self.next.min(found.next);
        found.value
    }
}

#[cfg(test)]
#[path = "../../tests_unit/class.rs"]
mod tests;
