//! What metrics and events say of a claim, kept a little longer than the claim itself: the last thing said of it is
//! that it is gone. What must not enter: anything a plan reads.

use std::collections::BTreeMap;

use whittle_model::provider_drift::REASONS;
use whittle_model::{CapacityType, NodeClaim};

/// What is said of a claim.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct About {
    /// Its pool.
    pub node_pool: String,
    /// Its zone; empty before launch.
    pub zone: String,
    /// How it is paid for.
    pub capacity_type: Option<CapacityType>,
    /// Its uid.
    pub uid: String,
    /// Whether its node was registered.
    pub registered: bool,
    /// `aws:///<zone>/<instance id>`; empty before launch.
    pub provider_id: String,
    /// Whether its status says that its instance is not what its class comes to.
    pub drifted_by_provider: bool,
}

/// All claims there are.
#[derive(Debug, Default)]
pub struct Claims {
    all: BTreeMap<String, About>,
    nothing: About,
}

impl Claims {
    /// Takes a claim as it is now.
    pub fn put(&mut self, claim: &NodeClaim) {
        let status = &claim.status;
        let about = About {
            node_pool: claim.node_pool.clone(),
            zone: status.zone.clone(),
            capacity_type: status.capacity_type,
            uid: claim.uid.clone(),
            registered: status.registered.is_some(),
            provider_id: status.provider_id.clone(),
            drifted_by_provider: status.drifted.as_ref().is_some_and(|(reason, _)| REASONS.contains(&reason.as_str())),
        };
        self.all.insert(claim.name.clone(), about);
    }

    /// What is known of a claim; nothing when it is not known.
    pub fn get(&self, name: &str) -> &About {
        self.all.get(name).unwrap_or(&self.nothing)
    }

    /// Forgets a claim.
    pub fn forget(&mut self, name: &str) {
        self.all.remove(name);
    }
}
