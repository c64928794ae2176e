//! What an EC2NodeClass says of itself: its hash, what was found for it, and whether nodes may be launched from it.
//!
//! What must not enter: requests, AWS.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use whittle_model::Timestamp;

use super::claim_status::{with_finalizer, without_finalizer};
use super::conditions::{Conditions, Standing};
use super::patch::{Fields, ObjectPatch, missing};
use crate::{api, hash};

/// Keeps a class until its claims are gone.
const FINALIZER: &str = "karpenter.k8s.aws/termination";

/// What `Ready` of a class depends on, besides other conditions that it is given.
const DEPENDENTS: [&str; 6] =
    ["AMIsReady", "SubnetsReady", "SecurityGroupsReady", "InstanceProfileReady", "ValidationSucceeded", "PlacementGroupReady"];

/// What was found in AWS for a class; what could not be asked for is `None` and stays as it was.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ClassFound {
    /// Subnets, those with most free addresses first.
    pub subnets: Option<Vec<api::FoundSubnet>>,
    /// Security groups.
    pub security_groups: Option<Vec<api::SecurityGroup>>,
    /// Machine images.
    pub amis: Option<Vec<api::Ami>>,
    /// Capacity reservations.
    pub capacity_reservations: Option<Vec<api::CapacityReservation>>,
    /// The instance profile in use.
    pub instance_profile: Option<String>,
}

/// What has to change in an EC2NodeClass; `None` when nothing has. `conditions` are those that were found out; the
/// others on which `Ready` depends are awaited. `ca_bundle` is of [`hash::node_class_hash`]. Where the patch changes
/// the version of the hash, the class's claims are stamped anew first ([`super::Writer::restamp`]).
#[must_use]
pub fn node_class_patch(
    live: &api::EC2NodeClass,
    found: &ClassFound,
    conditions: &[Standing],
    ca_bundle: Option<&str>,
    now: Timestamp,
) -> Option<ObjectPatch> {
    let mut metadata = Fields::default();
    let stamp = BTreeMap::from([
        (hash::NODE_CLASS_HASH.to_owned(), hash::node_class_hash(live, ca_bundle)),
        (hash::NODE_CLASS_HASH_VERSION.to_owned(), hash::NODE_CLASS_VERSION.to_owned()),
    ]);
    metadata.object("annotations", missing(&stamp, live.metadata.annotations.as_ref()));
    if let Some(finalizers) = with_finalizer(&live.metadata, FINALIZER) {
        metadata.set("finalizers", finalizers);
        metadata.set("resourceVersion", json!(live.metadata.resource_version));
    }
    let mut status = found_fields(live.status.as_ref().unwrap_or(&api::EC2NodeClassStatus::default()), found);
    let was = live.status.as_ref().and_then(|s| s.conditions.as_ref());
    let meta = &live.metadata;
    let mut all = Conditions::new(was, meta.generation, meta.creation_timestamp.as_ref(), now);
    let mut dependents = DEPENDENTS.to_vec();
    for standing in conditions {
        all.set(standing, None);
        if !dependents.contains(&standing.kind.as_str()) && all.get(&standing.kind).is_some() {
            dependents.push(&standing.kind);
        }
    }
    all.await_all(&DEPENDENTS);
    all.sum_up(&dependents);
    if let Some(changed) = all.changed(was) {
        status.set("conditions", json!(changed));
    }
    ObjectPatch { object: metadata.under("metadata"), status: status.under("status") }.unless_empty()
}

/// Lets go of a class whose claims are gone.
#[must_use]
pub fn node_class_release(live: &api::EC2NodeClass) -> Option<ObjectPatch> {
    without_finalizer(&live.metadata, FINALIZER).map(|patch| ObjectPatch { object: Some(patch), status: None })
}

fn found_fields(was: &api::EC2NodeClassStatus, found: &ClassFound) -> Fields {
    let mut fields = Fields::default();
    let mut list = |key: &str, wanted: Option<Value>, have: Value| {
        // A list that is empty is not written by Go's encoder, and reads like none.
        let none = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
        if let Some(wanted) = wanted.filter(|wanted| *wanted != have && !(none(wanted) && none(&have))) {
            fields.set(key, if none(&wanted) { Value::Null } else { wanted });
        }
    };
    list("subnets", found.subnets.as_ref().map(|v| json!(v)), json!(was.subnets));
    list("securityGroups", found.security_groups.as_ref().map(|v| json!(v)), json!(was.security_groups));
    list("amis", found.amis.as_ref().map(|v| json!(v)), json!(was.amis));
    list("capacityReservations", found.capacity_reservations.as_ref().map(|v| json!(v)), json!(was.capacity_reservations));
    if let Some(profile) = &found.instance_profile {
        fields.text("instanceProfile", profile, was.instance_profile.as_ref());
    }
    fields
}
