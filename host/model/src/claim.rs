//! NodeClaims: intent to own a node, written down before money is spent.

use serde::{Deserialize, Serialize};

use crate::{CapacityType, Duration, Labels, Micros, OfferingKey, Requirements, Resources, Taint, Timestamp, keys};

/// A NodeClaim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct NodeClaim {
    /// Its name.
    pub name: String,
    /// The NodePool that owns it; empty for a standalone claim.
    pub node_pool: String,
    /// Name of the EC2NodeClass.
    pub node_class: String,
    /// Labels the node will get.
    pub labels: Labels,
    /// Annotations the node will get.
    pub annotations: Labels,
    /// Taints the node keeps.
    pub taints: Vec<Taint>,
    /// Taints that something removes while the node starts.
    pub startup_taints: Vec<Taint>,
    /// Which instance types, zones and capacity types will do.
    pub requirements: Requirements,
    /// What the planned pods and daemons ask for.
    pub requests: Resources,
    /// How long the node lives; `None` is for ever.
    pub expire_after: Option<Duration>,
    /// How long a drain may take; `None` is for ever.
    pub termination_grace_period: Option<Duration>,
    /// Unique for all time; empty until the API server gave it.
    pub uid: String,
    /// When it was made.
    pub created: Timestamp,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Since when, while it is being deleted.
    pub deleted_at: Option<Timestamp>,
    /// What became of it.
    pub status: ClaimStatus,
}

/// An offering that policies let a claim be bought from: instance type, zone, and rank in micro-dollars an hour.
pub type ListedOffer = (String, String, i64);

impl NodeClaim {
    /// What its pods were moved off before they came here: when, and the instance type. What cannot be read says nothing.
    #[must_use]
    pub fn moved_off(&self) -> Vec<(Timestamp, String)> {
        let noted = self.annotations.get(keys::MOVED_OFF);
        let list: Vec<(i64, String)> = noted.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        list.into_iter().map(|(at, of)| (Timestamp(at), of)).collect()
    }

    /// Notes what its pods were moved off.
    pub fn note_moved_off<'o>(&mut self, moves: impl Iterator<Item = (Timestamp, &'o str)>) {
        let list: Vec<(i64, &str)> = moves.map(|(at, of)| (at.0, of)).collect();
        let text = serde_json::to_string(&list).expect("texts and numbers are JSON");
        self.annotations.insert(keys::MOVED_OFF.to_owned(), text);
    }

    /// What policies let it be bought from, the best first; `None` where they have no say. A list that cannot be read
    /// is empty: nothing is bought on a guess.
    #[must_use]
    pub fn listed_offers(&self) -> Option<Vec<ListedOffer>> {
        self.annotations.get(keys::OFFERS).map(|text| serde_json::from_str(text).unwrap_or_default())
    }

    /// Says what it may be bought from, the best first.
    pub fn list_offers<'o>(&mut self, offers: impl Iterator<Item = (&'o str, &'o str, i64)>) {
        let text = serde_json::to_string(&offers.collect::<Vec<_>>()).expect("texts and numbers are JSON");
        self.annotations.insert(keys::OFFERS.to_owned(), text);
    }
}

/// What became of a claim. A milestone is the time it was reached, `None` before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct ClaimStatus {
    /// An instance was bought.
    pub launched: Option<Timestamp>,
    /// Its node joined.
    pub registered: Option<Timestamp>,
    /// Its node may be used.
    pub initialized: Option<Timestamp>,
    /// `aws:///<zone>/<instance id>`; empty before launch.
    pub provider_id: String,
    /// The machine image; empty before launch.
    pub image: String,
    /// The node's name; empty before registration.
    pub node: String,
    /// Instance type bought; empty before launch.
    pub instance_type: String,
    /// Zone bought in; empty before launch.
    pub zone: String,
    /// How it is paid for.
    pub capacity_type: Option<CapacityType>,
    /// What the instance has.
    pub capacity: Resources,
    /// What pods can use of it.
    pub allocatable: Resources,
    /// Price of an hour when it was bought.
    pub price: Micros,
    /// Last time a pod other than a daemon's came to or left the node.
    pub last_pod_event: Option<Timestamp>,
    /// The last launch failure, if the last try failed: reason and message.
    pub launch_error: Option<(String, String)>,
    /// Why its node cannot be taken for its own, if so: reason and message.
    pub registration_error: Option<(String, String)>,
    /// It no longer is what its pool and node class ask for: reason and since when.
    pub drifted: Option<(String, Timestamp)>,
    /// Since when its node has been left alone for the pool's `consolidateAfter`.
    pub consolidatable: Option<Timestamp>,
    /// A move that takes it away is under way: `Empty`, `Underutilized`, `Drifted`, `Expired` or
    /// `Rebalance`, and since when.
    pub disrupted: Option<(String, Timestamp)>,
    /// How its drain went, while it goes.
    pub drained: Milestone,
    /// How its volumes were let go, while it goes.
    pub volumes_detached: Milestone,
    /// Since when its instance has been ending.
    pub instance_terminating: Option<Timestamp>,
    /// Why the node is less than the claim promised, if so (`ConsistentStateFound` false).
    pub inconsistent: Option<(String, Timestamp)>,
}

impl ClaimStatus {
    /// What was bought; `None` before launch.
    #[must_use]
    pub fn offering(&self) -> Option<OfferingKey> {
        let capacity_type = self.capacity_type?;
        Some(OfferingKey { instance_type: self.instance_type.clone(), zone: self.zone.clone(), capacity_type })
    }
}

/// A step of a claim's removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
pub enum Milestone {
    /// Not begun.
    #[default]
    Ahead,
    /// Under way since then.
    Since(Timestamp),
    /// Given up at that time, because the grace period was over.
    GivenUp(Timestamp),
    /// Done at that time.
    Done(Timestamp),
}
