//! The writer's hand on objects that users own: pools, classes, policies, buffers, and the stamps of claims.
//!
//! What must not enter: what they say.

use std::sync::PoisonError;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use super::HashStamp;
use super::claim::stamps;
use super::door::{Call, changed};
use super::error::WriteError;
use super::patch::{ObjectPatch, missing};
use super::writer::{Writer, Written, claim_path};
use crate::{api, hash};

impl Writer {
    /// Writes what [`super::node_pool_patch`] found to change in `live`.
    ///
    /// # Errors
    /// As [`Writer::apply`].
    pub async fn keep_node_pool(&self, live: &ObjectMeta, patch: &ObjectPatch) -> Result<Written, WriteError> {
        self.keep("NodePool", "/apis/karpenter.sh/v1/nodepools", live, patch).await
    }

    /// Writes what [`super::node_class_patch`] found to change in `live`.
    ///
    /// # Errors
    /// As [`Writer::keep_node_pool`].
    pub async fn keep_node_class(&self, live: &ObjectMeta, patch: &ObjectPatch) -> Result<Written, WriteError> {
        self.keep("EC2NodeClass", "/apis/karpenter.k8s.aws/v1/ec2nodeclasses", live, patch).await
    }

    /// Writes what [`super::scoring_policy_patch`] found to change in `live`.
    ///
    /// # Errors
    /// As [`Writer::keep_node_pool`].
    pub async fn keep_scoring_policy(&self, live: &ObjectMeta, patch: &ObjectPatch) -> Result<Written, WriteError> {
        self.keep("ScoringPolicy", "/apis/whittle.sh/v1alpha1/scoringpolicies", live, patch).await
    }

    /// Writes what [`super::node_overlay_patch`] found to change in `live`.
    ///
    /// # Errors
    /// As [`Writer::keep_node_pool`].
    pub async fn keep_node_overlay(&self, live: &ObjectMeta, patch: &ObjectPatch) -> Result<Written, WriteError> {
        self.keep("NodeOverlay", "/apis/karpenter.sh/v1alpha1/nodeoverlays", live, patch).await
    }

    /// Writes what [`super::capacity_buffer_patch`] found to change in `live`.
    ///
    /// # Errors
    /// As [`Writer::keep_node_pool`].
    pub async fn keep_capacity_buffer(&self, live: &ObjectMeta, patch: &ObjectPatch) -> Result<Written, WriteError> {
        let namespace = live.namespace.as_deref().unwrap_or("default");
        let all = format!("/apis/autoscaling.x-k8s.io/v1beta1/namespaces/{namespace}/capacitybuffers");
        self.keep("CapacityBuffer", &all, live, patch).await
    }

    /// Brings the stamps of a claim to the present version of its pool's and class's hashes, where another
    /// version made them: what a hash of that version says can no longer be compared. A claim that has drifted
    /// keeps its number and stays drifted.
    ///
    /// # Errors
    /// As [`Writer::apply`].
    pub async fn restamp(&self, live: &api::NodeClaim, pool: Option<&HashStamp>, class: Option<&HashStamp>) -> Result<Written, WriteError> {
        let Some(patch) = restamping(live, pool, class) else { return Ok(Written::Already) };
        let name = live.metadata.name.clone().unwrap_or_default();
        let what = format!("stamp NodeClaim {name}");
        let term = self.door.term(&what)?;
        let _turn = self.lanes.turn(claim_path(&name), 0).await;
        match self.door.write(&what, term, &Call::merge(claim_path(&name), patch)).await? {
            Ok(answer) => self.claims.answered(&what, answer).map(|_| Written::Done),
            Err(status) if status.is_not_found() || changed(&status) => Ok(Written::Already),
            Err(status) => Err(WriteError::of(&what, &status)),
        }
    }

    async fn keep(&self, kind: &str, all: &str, live: &ObjectMeta, patch: &ObjectPatch) -> Result<Written, WriteError> {
        let name = live.name.clone().unwrap_or_default();
        let what = format!("update {kind} {name}");
        let term = self.door.term(&what)?;
        let path = format!("{all}/{name}");
        let _turn = self.lanes.turn(path.clone(), 0).await;
        if self.kept_since(&path, live.resource_version.as_deref()) {
            return Ok(Written::Stale);
        }
        let mut version = live.resource_version.clone();
        let calls = [(path.clone(), patch.object.clone()), (format!("{path}/status"), patch.status.clone())];
        for (at, patch) in calls {
            let Some(mut patch) = patch else { continue };
            patch["metadata"]["resourceVersion"] = json!(version);
            match self.door.write(&what, term, &Call::merge(at, patch)).await? {
                Ok(answer) => version = answer["metadata"]["resourceVersion"].as_str().map(str::to_owned),
                Err(status) if status.is_not_found() => return Ok(Written::Already),
                Err(status) if changed(&status) => return Ok(Written::Stale),
                Err(status) => return Err(WriteError::of(&what, &status)),
            }
            self.kept(&path, version.as_deref());
        }
        Ok(Written::Done)
    }

    /// Whether `version` is from before this writer's own last write: to send it would only conflict.
    fn kept_since(&self, path: &str, version: Option<&str>) -> bool {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let seen: Option<u64> = version.and_then(|v| v.parse().ok());
        kept.get(path).zip(seen).is_some_and(|(kept, seen)| *kept > seen)
    }

    fn kept(&self, path: &str, version: Option<&str>) {
        if let Some(version) = version.and_then(|v| v.parse().ok()) {
            self.kept.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned(), version);
        }
    }
}

fn restamping(live: &api::NodeClaim, pool: Option<&HashStamp>, class: Option<&HashStamp>) -> Option<Value> {
    let annotations = live.metadata.annotations.as_ref();
    let stale = |stamp: &&HashStamp, key: &str| annotations.and_then(|a| a.get(key)) != Some(&stamp.version);
    let pool = pool.filter(|stamp| stale(stamp, hash::NODE_POOL_HASH_VERSION));
    let class = class.filter(|stamp| stale(stamp, hash::NODE_CLASS_HASH_VERSION));
    let mut wanted = stamps(pool, class);
    let conditions = live.status.as_ref().and_then(|s| s.conditions.as_deref()).unwrap_or_default();
    if conditions.iter().any(|c| c.type_ == "Drifted") {
        wanted.retain(|key, _| key.ends_with("-version"));
    }
    let fields = missing(&wanted, annotations);
    (!fields.is_empty()).then(|| json!({ "metadata": { "annotations": fields, "uid": live.metadata.uid } }))
}
