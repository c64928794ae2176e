//! The writer: carries out those of the engine's actions that concern Kubernetes. Claims are here, nodes and
//! pods beside it.
//!
//! What must not enter: when something is written.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use k8s_openapi::api::core::v1::Node;
use kube::Client;
use serde_json::json;
use whittle_model::{Action, ClaimStatus, Labels, NodeClaim, Timestamp};

use super::HashStamp;
use super::claim::{self, FINALIZER};
use super::claim_status::{update, without_finalizer};
use super::conditions::Standing;
use super::door::{Call, Door, changed};
use super::error::WriteError;
use super::gate::{Gate, Term};
use super::lanes::Lanes;
use super::patch::ObjectPatch;
use super::seen::{NodeParts, NodeSpecParts, Seen};
use crate::api;

/// How often an object that something else changed is read and written anew.
pub(super) const CONFLICTS: u32 = 5;

/// Carries out actions. Share it: each call takes `&self`, and calls for different objects go side by side.
pub struct Writer {
    pub(super) door: Door,
    pub(super) lanes: Lanes,
    pub(super) claims: Seen<api::NodeClaim>,
    pub(super) nodes: Seen<NodeParts>,
    pub(super) kept: Mutex<HashMap<String, u64>>,
    orders: AtomicU64,
}

/// What an action needs besides itself.
#[derive(Debug, Clone, Default)]
pub struct Stamps {
    /// To create a claim: its NodePool.
    pub pool: Option<HashStamp>,
    /// To create a claim: its EC2NodeClass.
    pub class: Option<HashStamp>,
    /// UID of the claim, node or pod that the action is about, if known: it is done to this one or to none.
    pub uid: Option<String>,
    /// To update a claim: conditions besides Launched, Registered and Initialized, or closer words on one of
    /// these that is not reached.
    pub conditions: Vec<Standing>,
    /// Now: when conditions that change have changed.
    pub now: Timestamp,
}

/// What came of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// It was written.
    Done,
    /// It was so already, or the object is gone: nothing was written.
    Already,
    /// A pod may not leave now, because of a disruption budget; the API server's message.
    Blocked(String),
    /// It has changed since it was looked at: nothing was written, look again.
    Stale,
    /// Not an action of this door.
    NotMine,
}

impl Writer {
    /// Writes through `client` as field manager `manager` while `gate` is open.
    #[must_use]
    pub fn new(client: Client, gate: Gate, manager: &str) -> Self {
        Self {
            door: Door::new(client, gate, manager),
            lanes: Lanes::default(),
            claims: Seen::default(),
            nodes: Seen::default(),
            kept: Mutex::default(),
            orders: AtomicU64::new(0),
        }
    }

    /// Tells what the watch showed of a claim: it need not be read before it is written.
    pub fn saw_claim(&self, claim: api::NodeClaim) {
        self.claims.saw(claim);
    }

    /// Tells that a claim is gone.
    pub fn claim_gone(&self, name: &str) {
        self.claims.forget(name);
    }

    /// Tells what the watch showed of a node: it need not be read before it is written.
    pub fn saw_node(&self, node: &Node) {
        let taints = node.spec.as_ref().and_then(|spec| spec.taints.clone());
        self.nodes.saw(NodeParts { metadata: node.metadata.clone(), spec: NodeSpecParts { taints } });
    }

    /// Tells that a node is gone.
    pub fn node_gone(&self, name: &str) {
        self.nodes.forget(name);
    }

    /// Waits until nothing that was ordered so far is under way: then the lease may be let go.
    pub async fn settled(&self) {
        self.lanes.settled().await;
    }

    /// Carries out `action`.
    ///
    /// # Errors
    /// When the gate is closed, the API server refuses, or does not answer in several tries.
    pub async fn apply(&self, action: &Action, stamps: &Stamps) -> Result<Written, WriteError> {
        match action {
            Action::CreateClaim(claim) => self.create_claim(claim, stamps).await,
            Action::UpdateClaim { claim, labels, status } => self.update_claim(claim, labels, status, stamps).await,
            Action::RegisterNode { node, claim, labels, taints } => self.register_node(node, claim, labels, taints).await,
            Action::InitializeNode { node } => self.initialize_node(node).await,
            Action::Nominate { pod, node } => self.nominate(pod, node, stamps).await,
            Action::DeleteClaim { claim, .. } => self.delete_claim(claim, stamps).await,
            Action::CordonNode { node } => self.cordon_node(node).await,
            Action::AnnotateClaim { claim, annotations } => self.annotate_claim(claim, annotations).await,
            Action::LabelNode { node, labels } => self.label_node(node, labels).await,
            Action::Evict { pod, uid } => self.evict(pod, uid).await,
            Action::DeletePod { pod, uid, grace_seconds } => self.delete_pod(pod, uid, *grace_seconds).await,
            Action::TaintNode { node } => self.taint_node(node).await,
            Action::UncordonNode { node } => self.uncordon_node(node).await,
            Action::ReleaseNode { node } => self.release_node(node).await,
            Action::ReleaseClaim { claim } => self.release_claim(claim).await,
            Action::Launch { .. } | Action::Terminate { .. } | Action::TagInstance { .. } | Action::TerminateStray { .. } => {
                Ok(Written::NotMine)
            }
        }
    }

    async fn create_claim(&self, claim: &NodeClaim, stamps: &Stamps) -> Result<Written, WriteError> {
        let what = format!("create NodeClaim {}", claim.name);
        let term = self.door.term(&what)?;
        let missing = |of: &str| WriteError::Missing { what: what.clone(), missing: of.to_owned() };
        if stamps.pool.is_none() && !claim.node_pool.is_empty() {
            return Err(missing(&format!("the uid of NodePool {}", claim.node_pool)));
        }
        if stamps.class.is_none() {
            return Err(missing(&format!("the hash of EC2NodeClass {}", claim.node_class)));
        }
        let _turn = self.lanes.turn(claim_path(&claim.name), 0).await;
        let body = json!(claim::node_claim(claim, stamps.pool.as_ref(), stamps.class.as_ref()));
        match self.door.write(&what, term, &Call::create(CLAIMS, body)).await? {
            Ok(answer) => self.claims.answered(&what, answer).map(|_| Written::Done),
            Err(status) if status.is_already_exists() => Ok(Written::Already),
            Err(status) => Err(WriteError::of(&what, &status)),
        }
    }

    async fn update_claim(&self, name: &str, labels: &Labels, status: &ClaimStatus, stamps: &Stamps) -> Result<Written, WriteError> {
        let what = format!("update NodeClaim {name}");
        let term = self.door.term(&what)?;
        let turn = self.lanes.turn(claim_path(name), 1 + self.orders.fetch_add(1, Ordering::Relaxed)).await;
        if turn.overtaken() {
            return Ok(Written::Already); // the order behind this one has the whole of it, and more
        }
        for _ in 0..CONFLICTS {
            let Some(live) = self.claim(&what, name).await? else { return Ok(Written::Already) };
            let Some(patch) = update(&live, labels, status, &stamps.conditions, stamps.now) else { return Ok(Written::Already) };
            if let Some(written) = self.patch_claim(&what, term, &live, patch).await? {
                return Ok(written);
            }
        }
        Err(WriteError::Conflict { what, tries: CONFLICTS })
    }

    /// `None` when the claim had changed; it is forgotten then, and read anew.
    async fn patch_claim(&self, what: &str, term: Term, live: &api::NodeClaim, patch: ObjectPatch) -> Result<Option<Written>, WriteError> {
        let name = live.metadata.name.clone().unwrap_or_default();
        let path = claim_path(&name);
        let mut version = live.metadata.resource_version.clone();
        let calls = [(path.clone(), patch.object), (format!("{path}/status"), patch.status)];
        for (path, patch) in calls {
            let Some(mut patch) = patch else { continue };
            patch["metadata"]["resourceVersion"] = json!(version);
            match self.door.write(what, term, &Call::merge(path, patch)).await? {
                Ok(answer) => version = self.claims.answered(what, answer)?.metadata.resource_version,
                Err(status) if status.is_not_found() => {
                    self.claims.forget(&name);
                    return Ok(Some(Written::Already));
                }
                Err(status) if changed(&status) => {
                    self.claims.forget(&name);
                    return Ok(None);
                }
                Err(status) => return Err(WriteError::of(what, &status)),
            }
        }
        Ok(Some(Written::Done))
    }

    async fn delete_claim(&self, name: &str, stamps: &Stamps) -> Result<Written, WriteError> {
        let what = format!("delete NodeClaim {name}");
        let term = self.door.term(&what)?;
        let _turn = self.lanes.turn(claim_path(name), 0).await;
        let known = self.claims.get(name);
        if known.as_ref().is_some_and(|claim| claim.metadata.deletion_timestamp.is_some()) {
            return Ok(Written::Already);
        }
        let uid = stamps.uid.clone().or_else(|| known.and_then(|claim| claim.metadata.uid));
        match self.door.write(&what, term, &Call::delete(claim_path(name), uid.as_deref())).await? {
            Ok(answer) => {
                self.claims.forget(name);
                // A claim that waits for its finalizer is answered; one that is gone is not.
                let waits: Option<api::NodeClaim> = serde_json::from_value(answer).ok();
                if let Some(claim) = waits.filter(|claim| claim.metadata.deletion_timestamp.is_some()) {
                    self.claims.saw(claim);
                }
                Ok(Written::Done)
            }
            Err(status) if status.is_not_found() || changed(&status) => {
                self.claims.forget(name);
                Ok(Written::Already)
            }
            Err(status) => Err(WriteError::of(&what, &status)),
        }
    }

    async fn annotate_claim(&self, name: &str, annotations: &Labels) -> Result<Written, WriteError> {
        let what = format!("annotate NodeClaim {name}");
        let term = self.door.term(&what)?;
        let _turn = self.lanes.turn(claim_path(name), 0).await;
        let patch = json!({ "metadata": { "annotations": annotations } });
        match self.door.write(&what, term, &Call::merge(claim_path(name), patch)).await? {
            Ok(answer) => self.claims.answered(&what, answer).map(|_| Written::Done),
            Err(status) if status.is_not_found() => Ok(Written::Already),
            Err(status) => Err(WriteError::of(&what, &status)),
        }
    }

    async fn release_claim(&self, name: &str) -> Result<Written, WriteError> {
        let what = format!("release NodeClaim {name}");
        let term = self.door.term(&what)?;
        let _turn = self.lanes.turn(claim_path(name), 0).await;
        for _ in 0..CONFLICTS {
            let Some(live) = self.claim(&what, name).await? else { return Ok(Written::Already) };
            let Some(patch) = without_finalizer(&live.metadata, FINALIZER) else { return Ok(Written::Already) };
            let answer = self.door.write(&what, term, &Call::merge(claim_path(name), patch)).await?;
            self.claims.forget(name);
            match answer {
                Ok(_) => return Ok(Written::Done),
                Err(status) if status.is_not_found() => return Ok(Written::Already),
                Err(status) if changed(&status) => {}
                Err(status) => return Err(WriteError::of(&what, &status)),
            }
        }
        Err(WriteError::Conflict { what, tries: CONFLICTS })
    }

    /// The claim as last seen, or read now.
    pub(super) async fn claim(&self, what: &str, name: &str) -> Result<Option<api::NodeClaim>, WriteError> {
        if let Some(known) = self.claims.get(name) {
            return Ok(Some(known));
        }
        match self.door.read(what, &claim_path(name)).await? {
            Some(object) => self.claims.answered(what, object).map(Some),
            None => Ok(None),
        }
    }
}

pub(super) const CLAIMS: &str = "/apis/karpenter.sh/v1/nodeclaims";

pub(super) fn claim_path(name: &str) -> String {
    format!("{CLAIMS}/{name}")
}
