//! What launches take from elsewhere: what each EC2NodeClass came to and what it can buy, which claims use it, and what
//! claims are stamped with. Shared between the tasks that find it out and those that use it; locks are held for copies
//! only. What must not enter: anything the engine plans with.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use whittle_cloud::fleet::LaunchClass;
use whittle_cluster::api;
use whittle_cluster::write::PolicyCounts;
use whittle_model::{Catalog, PodKey};

use crate::claims::Claims;

/// A class that can be launched from.
#[derive(Debug, Clone)]
pub struct Ready {
    /// What it came to.
    pub class: Arc<LaunchClass>,
    /// What it can buy.
    pub catalog: Arc<Catalog>,
}

/// What is known at one time.
#[derive(Debug, Default)]
pub struct Known {
    /// Classes that were resolved and have a catalogue, by name.
    pub classes: BTreeMap<String, Ready>,
    /// Live EC2NodeClasses.
    pub node_classes: BTreeMap<String, api::EC2NodeClass>,
    /// Live NodePools.
    pub node_pools: BTreeMap<String, api::NodePool>,
    /// Of each live claim: its class, and the instance profile it was stamped with.
    pub users: BTreeMap<String, (String, Option<String>)>,
    /// What is said of claims.
    pub claims: Claims,
    /// Policies, with the reason for those that cannot be asked.
    pub policies: BTreeMap<String, Option<String>>,
    /// How the calls of policies went since the start.
    pub counts: BTreeMap<String, PolicyCounts>,
    /// Live NodeClaims whose hashes were made by another version.
    pub outdated: BTreeMap<String, api::NodeClaim>,
    /// UIDs of pods that have no node, for events about them.
    pub pods: BTreeMap<PodKey, String>,
}

/// Shared.
#[derive(Debug, Clone, Default)]
pub struct Shelf(Arc<Mutex<Known>>);

impl Shelf {
    /// Looks or changes; never across a wait.
    pub fn open(&self) -> MutexGuard<'_, Known> {
        // Each change is whole by itself.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Instance profiles that a class or a claim uses.
    pub fn profiles(&self) -> BTreeSet<String> {
        let known = self.open();
        let of_classes = known.node_classes.values().filter_map(|class| class.status.as_ref()?.instance_profile.clone());
        let of_claims = known.users.values().filter_map(|(_, profile)| profile.clone());
        of_classes.chain(of_claims).collect()
    }

    /// A class is gone.
    pub fn forget_class(&self, name: &str) {
        let mut known = self.open();
        known.node_classes.remove(name);
        known.classes.remove(name);
    }

    /// How many claims use a class.
    pub fn users_of(&self, class: &str) -> usize {
        self.open().users.values().filter(|(used, _)| used == class).count()
    }
}
