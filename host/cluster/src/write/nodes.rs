//! The writer's actions on nodes and pods.
//!
//! What must not enter: what a node must carry.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};
use whittle_model::{Labels, PodKey, Taint};

use super::claim::FINALIZER;
use super::claim_status::without_finalizer;
use super::door::{Call, changed, of_budget};
use super::error::WriteError;
use super::gate::Term;
use super::seen::NodeParts;
use super::writer::{CONFLICTS, Stamps, Writer, Written};
use super::{node, pod};

impl Writer {
    pub(super) async fn register_node(&self, name: &str, claim: &str, labels: &Labels, taints: &[Taint]) -> Result<Written, WriteError> {
        let what = format!("register Node {name}");
        let term = self.door.term(&what)?;
        let Some(claim) = self.claim(&what, claim).await? else { return Ok(Written::Already) };
        self.change_node(&what, term, name, |live| node::register(live, &claim, labels, taints)).await
    }

    pub(super) async fn initialize_node(&self, name: &str) -> Result<Written, WriteError> {
        let what = format!("label Node {name} as initialized");
        let term = self.door.term(&what)?;
        let _turn = self.lanes.turn(node_path(name), 0).await;
        let labels = self.nodes.get(name).and_then(|node| node.metadata.labels);
        if labels.is_some_and(|labels| labels.get(whittle_model::keys::INITIALIZED).is_some_and(|v| v == "true")) {
            return Ok(Written::Already);
        }
        match self.door.write(&what, term, &Call::merge(node_path(name), node::initialize())).await? {
            Ok(answer) => self.nodes.answered(&what, answer).map(|_| Written::Done),
            Err(status) if status.is_not_found() => Ok(Written::Already),
            Err(status) => Err(WriteError::of(&what, &status)),
        }
    }

    pub(super) async fn cordon_node(&self, name: &str) -> Result<Written, WriteError> {
        let what = format!("cordon Node {name}");
        let term = self.door.term(&what)?;
        self.change_node(&what, term, name, node::cordon).await
    }

    pub(super) async fn taint_node(&self, name: &str) -> Result<Written, WriteError> {
        let what = format!("taint Node {name}");
        let term = self.door.term(&what)?;
        self.change_node(&what, term, name, node::keep_off).await
    }

    pub(super) async fn uncordon_node(&self, name: &str) -> Result<Written, WriteError> {
        let what = format!("uncordon Node {name}");
        let term = self.door.term(&what)?;
        self.change_node(&what, term, name, node::uncordon).await
    }

    async fn change_node(
        &self,
        what: &str,
        term: Term,
        name: &str,
        change: impl Fn(&NodeParts) -> Option<Value>,
    ) -> Result<Written, WriteError> {
        let _turn = self.lanes.turn(node_path(name), 0).await;
        for _ in 0..CONFLICTS {
            let Some(live) = self.node(what, name).await? else { return Ok(Written::Already) };
            let Some(patch) = change(&live) else { return Ok(Written::Already) };
            match self.door.write(what, term, &Call::merge(node_path(name), patch)).await? {
                Ok(answer) => return self.nodes.answered(what, answer).map(|_| Written::Done),
                Err(status) if status.is_not_found() => {
                    self.nodes.forget(name);
                    return Ok(Written::Already);
                }
                Err(status) if changed(&status) => self.nodes.forget(name),
                Err(status) => return Err(WriteError::of(what, &status)),
            }
        }
        Err(WriteError::Conflict { what: what.to_owned(), tries: CONFLICTS })
    }

    pub(super) async fn release_node(&self, name: &str) -> Result<Written, WriteError> {
        let what = format!("release Node {name}");
        let term = self.door.term(&what)?;
        let _turn = self.lanes.turn(node_path(name), 0).await;
        let mut written = Written::Already;
        for _ in 0..CONFLICTS {
            let Some(live) = self.node(&what, name).await? else { return Ok(written) };
            let call = match (&live.metadata.deletion_timestamp, without_finalizer(&live.metadata, FINALIZER)) {
                (None, _) => Call::delete(node_path(name), live.metadata.uid.as_deref()),
                (Some(_), Some(patch)) => Call::merge(node_path(name), patch),
                (Some(_), None) => return Ok(written), // others hold it still
            };
            let answer = self.door.write(&what, term, &call).await?;
            self.nodes.forget(name);
            match answer {
                Ok(answer) => {
                    written = Written::Done;
                    if !self.waits(answer) {
                        return Ok(written);
                    }
                }
                Err(status) if status.is_not_found() => return Ok(written),
                Err(status) if changed(&status) => {}
                Err(status) => return Err(WriteError::of(&what, &status)),
            }
        }
        Err(WriteError::Conflict { what, tries: CONFLICTS })
    }

    /// Whether the answer is a node that is to be deleted and waits for finalizers; it is seen then.
    fn waits(&self, answer: Value) -> bool {
        let waits = |meta: &ObjectMeta| meta.deletion_timestamp.is_some() && meta.finalizers.as_ref().is_some_and(|f| !f.is_empty());
        let node: Option<NodeParts> = serde_json::from_value(answer).ok().filter(|node: &NodeParts| waits(&node.metadata));
        node.map(|node| self.nodes.saw(node)).is_some()
    }

    pub(super) async fn nominate(&self, key: &PodKey, node: &str, stamps: &Stamps) -> Result<Written, WriteError> {
        let what = format!("nominate Pod {key} to Node {node}");
        let term = self.door.term(&what)?;
        let _turn = self.lanes.turn(pod::path(key), 0).await;
        let call = Call::merge(format!("{}/status", pod::path(key)), pod::nomination(node, stamps.uid.as_deref()));
        match self.door.write(&what, term, &call).await? {
            Ok(_) => Ok(Written::Done),
            Err(status) if status.is_not_found() || changed(&status) => Ok(Written::Already),
            Err(status) if status.is_invalid() => match self.door.read(&what, &pod::path(key)).await? {
                Some(pod) if !pod::settled(&pod) => Err(WriteError::of(&what, &status)),
                Some(_) | None => Ok(Written::Already),
            },
            Err(status) => Err(WriteError::of(&what, &status)),
        }
    }

    pub(super) async fn label_node(&self, name: &str, labels: &Labels) -> Result<Written, WriteError> {
        let what = format!("label Node {name}");
        let term = self.door.term(&what)?;
        let _turn = self.lanes.turn(node_path(name), 0).await;
        match self.door.write(&what, term, &Call::merge(node_path(name), json!({ "metadata": { "labels": labels } }))).await? {
            Ok(answer) => self.nodes.answered(&what, answer).map(|_| Written::Done),
            Err(status) if status.is_not_found() => Ok(Written::Already),
            Err(status) => Err(WriteError::of(&what, &status)),
        }
    }

    pub(super) async fn delete_pod(&self, key: &PodKey, uid: &str, grace_seconds: i64) -> Result<Written, WriteError> {
        let what = format!("delete Pod {key}");
        let term = self.door.term(&what)?;
        let _turn = self.lanes.turn(pod::path(key), 0).await;
        let call = Call::delete_within(pod::path(key), uid, grace_seconds.max(1));
        match self.door.write(&what, term, &call).await? {
            Ok(_) => Ok(Written::Done),
            Err(status) if status.is_not_found() || changed(&status) => Ok(Written::Already),
            Err(status) => Err(WriteError::of(&what, &status)),
        }
    }

    pub(super) async fn evict(&self, key: &PodKey, uid: &str) -> Result<Written, WriteError> {
        let what = format!("evict Pod {key}");
        let term = self.door.term(&what)?;
        let _turn = self.lanes.turn(pod::path(key), 0).await;
        let call = Call::create(format!("{}/eviction", pod::path(key)), pod::eviction(key, (!uid.is_empty()).then_some(uid)));
        match self.door.write(&what, term, &call).await? {
            Ok(_) => Ok(Written::Done),
            Err(status) if status.is_not_found() || changed(&status) => Ok(Written::Already),
            Err(status) if of_budget(&status) => Ok(Written::Blocked(status.message)),
            Err(status) => Err(WriteError::of(&what, &status)),
        }
    }

    /// The node as last seen, or read now.
    async fn node(&self, what: &str, name: &str) -> Result<Option<NodeParts>, WriteError> {
        if let Some(known) = self.nodes.get(name) {
            return Ok(Some(known));
        }
        match self.door.read(what, &node_path(name)).await? {
            Some(object) => self.nodes.answered(what, object).map(Some),
            None => Ok(None),
        }
    }
}

fn node_path(name: &str) -> String {
    format!("/api/v1/nodes/{name}")
}
