//! What a NodePool says of itself: its hash, what its nodes have, and whether nodes may be launched from it.
//!
//! What must not enter: requests; what a pool's nodes are.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde_json::json;
use whittle_model::{Resources, Timestamp, resources};

use super::conditions::{Conditions, Standing};
use super::patch::{Fields, ObjectPatch, amounts, list, missing};
use crate::from::{Cx, node_pool};
use crate::{api, hash};

const VALIDATION: &str = "ValidationSucceeded";
const CLASS_READY: &str = "NodeClassReady";
const REGISTRATION: &str = "NodeRegistrationHealthy";
const POLICY_READY: &str = "PolicyReady";

/// How the pool's EC2NodeClass stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClassState {
    /// There is none of this name.
    Missing,
    /// It is being deleted.
    Terminating {
        /// Its generation.
        generation: i64,
    },
    /// Nodes may be launched from it.
    Ready {
        /// Its generation.
        generation: i64,
    },
    /// Nobody has found out yet.
    Unknown {
        /// Its generation.
        generation: i64,
    },
    /// Nodes may not be launched from it.
    NotReady {
        /// Its generation.
        generation: i64,
        /// The reason of its condition Ready.
        reason: String,
        /// The message of its condition Ready.
        message: String,
    },
}

/// What a pool's nodes, and claims that are becoming nodes, have together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PoolUsage {
    /// Their capacity.
    pub resources: Resources,
    /// How many they are.
    pub nodes: i64,
}

/// How the pool's chain of scoring policies stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicyState {
    /// The pool has none.
    None,
    /// All serve.
    Ready,
    /// One does not: nothing is bought.
    NotReady {
        /// In one word.
        reason: String,
        /// Which, and why.
        message: String,
    },
}

/// How the last launches from the pool went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RegistrationHealth {
    /// Nothing new is known: what the pool says stays, while neither it nor its class has changed.
    Unchanged,
    /// Enough of them became nodes.
    Healthy,
    /// Too many of them did not.
    Unhealthy {
        /// In one word.
        reason: String,
        /// In words.
        message: String,
    },
}

impl ClassState {
    /// How `class` stands; `None` when there is none.
    #[must_use]
    pub fn of(class: Option<&api::EC2NodeClass>) -> Self {
        let Some(class) = class else { return Self::Missing };
        let generation = class.metadata.generation.unwrap_or(0);
        if class.metadata.deletion_timestamp.is_some() {
            return Self::Terminating { generation };
        }
        let conditions = class.status.as_ref().and_then(|s| s.conditions.as_deref()).unwrap_or_default();
        match conditions.iter().find(|c| c.type_ == super::conditions::READY) {
            Some(ready) if ready.status == "True" => Self::Ready { generation },
            Some(ready) if ready.status == "False" => {
                Self::NotReady { generation, reason: ready.reason.clone(), message: ready.message.clone() }
            }
            Some(_) | None => Self::Unknown { generation },
        }
    }

    fn generation(&self) -> Option<i64> {
        match self {
            Self::Missing => None,
            Self::Terminating { generation }
            | Self::Ready { generation }
            | Self::Unknown { generation }
            | Self::NotReady { generation, .. } => Some(*generation),
        }
    }

    fn standing(&self) -> Standing {
        match self {
            Self::Missing => Standing::fails(CLASS_READY, "NodeClassNotFound", "NodeClass not found on cluster"),
            Self::Terminating { .. } => Standing::fails(CLASS_READY, "NodeClassTerminating", "NodeClass is Terminating"),
            Self::Ready { .. } => Standing::holds(CLASS_READY),
            Self::Unknown { .. } => Standing::fails(CLASS_READY, "NodeClassReadinessUnknown", "Node Class Readiness Unknown"),
            Self::NotReady { reason, message, .. } => Standing::fails(CLASS_READY, reason, message),
        }
    }
}

/// What has to change in a NodePool; `None` when nothing has. Where the patch changes the version of the hash,
/// the pool's claims are stamped anew first ([`super::Writer::restamp`]).
#[must_use]
pub fn node_pool_patch(
    live: &api::NodePool,
    class: &ClassState,
    usage: &PoolUsage,
    policies: &PolicyState,
    health: &RegistrationHealth,
    now: Timestamp,
) -> Option<ObjectPatch> {
    let mut metadata = Fields::default();
    let stamp = BTreeMap::from([
        (hash::NODE_POOL_HASH.to_owned(), hash::node_pool_hash(live)),
        (hash::NODE_POOL_HASH_VERSION.to_owned(), hash::NODE_POOL_VERSION.to_owned()),
    ]);
    metadata.object("annotations", missing(&stamp, live.metadata.annotations.as_ref()));
    let was = live.status.clone().unwrap_or_default();
    let mut status = Fields::default();
    status.object("resources", amounts(&together(usage), was.resources.as_ref()));
    if was.nodes != Some(usage.nodes) {
        status.set("nodes", json!(usage.nodes));
    }
    if let Some(seen) = class.generation().filter(|seen| was.node_class_observed_generation != Some(*seen)) {
        status.set("nodeClassObservedGeneration", json!(seen));
    }
    let meta = &live.metadata;
    let mut conditions = Conditions::new(was.conditions.as_ref(), meta.generation, meta.creation_timestamp.as_ref(), now);
    conditions.set(&validation(live), None);
    conditions.set(&class.standing(), None);
    if let Some(standing) = registration(live, class, health) {
        conditions.set(&standing, None);
    }
    let mut dependents = vec![VALIDATION, CLASS_READY];
    match policies {
        PolicyState::None => conditions.set(&Standing::absent(POLICY_READY), None),
        PolicyState::Ready => conditions.set(&Standing::holds(POLICY_READY), None),
        PolicyState::NotReady { reason, message } => conditions.set(&Standing::fails(POLICY_READY, reason, message), None),
    }
    if *policies != PolicyState::None {
        dependents.push(POLICY_READY);
    }
    conditions.sum_up(&dependents);
    if let Some(changed) = conditions.changed(was.conditions.as_ref()) {
        status.set("conditions", json!(changed));
    }
    ObjectPatch { object: metadata.under("metadata"), status: status.under("status") }.unless_empty()
}

/// The amounts of usage; those that every pool has are there even when zero.
fn together(usage: &PoolUsage) -> BTreeMap<String, Quantity> {
    let mut all = list(&usage.resources);
    for name in [resources::CPU, resources::MEMORY, resources::PODS, resources::EPHEMERAL_STORAGE] {
        all.entry(name.to_owned()).or_insert_with(|| Quantity("0".to_owned()));
    }
    all.insert(resources::NODES.to_owned(), Quantity(usage.nodes.to_string()));
    all
}

/// The rules that the schema cannot check.
fn validation(live: &api::NodePool) -> Standing {
    let mut cx = Cx::new(true);
    node_pool(live, &mut cx);
    if cx.problems.is_empty() {
        return Standing::holds(VALIDATION);
    }
    let problems: Vec<String> = cx.problems.iter().map(|(path, what)| format!("{path}: {what}")).collect();
    Standing::fails(VALIDATION, "NodePoolValidationFailed", &problems.join("; "))
}

/// What earlier launches say is forgotten when the pool or its class is no longer what they were launched from.
fn registration(live: &api::NodePool, class: &ClassState, health: &RegistrationHealth) -> Option<Standing> {
    match health {
        RegistrationHealth::Healthy => return Some(Standing::holds(REGISTRATION)),
        RegistrationHealth::Unhealthy { reason, message } => return Some(Standing::fails(REGISTRATION, reason, message)),
        RegistrationHealth::Unchanged => {}
    }
    let status = live.status.as_ref();
    let have = status.and_then(|s| s.conditions.iter().flatten().find(|c| c.type_ == REGISTRATION));
    let same_pool = have.is_some_and(|c| c.observed_generation == live.metadata.generation);
    let same_class = class.generation().is_none_or(|g| status.and_then(|s| s.node_class_observed_generation) == Some(g));
    (!same_pool || !same_class).then(|| Standing::awaited(REGISTRATION))
}
