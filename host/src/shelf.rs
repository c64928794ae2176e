//! What launches take from elsewhere: what each EC2NodeClass came to and what it can buy, which claims use it, and what
//! claims are stamped with. Shared between the tasks that find it out and those that use it; locks are held for copies
//! only. What must not enter: anything the engine plans with.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use whittle_cloud::fleet::LaunchClass;
use whittle_cluster::api;
use whittle_cluster::buffers::Buffers;
use whittle_cluster::hash;
use whittle_cluster::write::{HashStamp, PolicyCounts, Stamps};
use whittle_model::{Action, Catalog, PodKey};

use crate::claims::Claims;
use crate::clock;
use crate::health::Health;

/// The annotation of a claim with the instance profile its instance was given: profiles in use are not collected.
pub const PROFILE: &str = "karpenter.k8s.aws/instance-profile-name";

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
    /// Live NodeOverlays.
    pub node_overlays: BTreeMap<String, api::NodeOverlay>,
    /// CapacityBuffers, and what they can be for.
    pub buffers: Buffers,
    /// Of each live claim: its class, and the instance profile it was stamped with.
    pub users: BTreeMap<String, (String, Option<String>)>,
    /// What is said of claims.
    pub claims: Claims,
    /// How launches of each NodePool went.
    pub health: BTreeMap<String, Health>,
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

    /// The instance profile that a launch from a class takes now.
    pub fn profile_of(&self, class: &str) -> Option<String> {
        self.open().classes.get(class)?.class.resolved.instance_profile.clone()
    }

    /// What an action needs besides itself.
    pub fn stamps(&self, action: &Action, ca_bundle: Option<&str>) -> Stamps {
        let mut stamps = Stamps { now: clock::now(), ..Stamps::default() };
        if let Action::CreateClaim(claim) = action {
            stamps.pool = self.pool_stamp(&claim.node_pool);
            stamps.class = self.class_stamp(&claim.node_class, ca_bundle);
        } else if let Action::DeleteClaim { claim, .. } = action {
            stamps.uid = Some(self.open().claims.get(claim).uid.clone()).filter(|uid| !uid.is_empty());
        }
        stamps
    }

    /// What claims of a pool are stamped with; `None` for a pool that is not known.
    pub fn pool_stamp(&self, pool: &str) -> Option<HashStamp> {
        let known = self.open();
        let pool = known.node_pools.get(pool)?;
        Some(HashStamp {
            uid: pool.metadata.uid.clone().unwrap_or_default(),
            hash: hash::node_pool_hash(pool),
            version: hash::NODE_POOL_VERSION.to_owned(),
        })
    }

    /// What claims of a class are stamped with; `None` for a class that is not known.
    pub fn class_stamp(&self, class: &str, ca_bundle: Option<&str>) -> Option<HashStamp> {
        let known = self.open();
        let class = known.node_classes.get(class)?;
        Some(HashStamp {
            uid: class.metadata.uid.clone().unwrap_or_default(),
            hash: hash::node_class_hash(class, ca_bundle),
            version: hash::NODE_CLASS_VERSION.to_owned(),
        })
    }
}
