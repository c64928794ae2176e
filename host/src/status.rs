//! Writes what EC2NodeClasses say of themselves. What must not enter: finding it out.

use whittle_cloud::class::{ConditionStatus as Told, Resolved};
use whittle_cloud::image::ClusterFacts;
use whittle_cluster::api;
use whittle_cluster::write::{ClassFound, ConditionStatus, Recorder, Standing, WriteError, Writer, node_class_patch, node_class_release};

use crate::{clock, voice};

/// Writes what a class came to, as far as it is new; what is bad news is an event too.
pub async fn class(writer: &Writer, recorder: &Recorder, live: &api::EC2NodeClass, resolved: &Resolved, cluster: &ClusterFacts) {
    let found = ClassFound {
        subnets: Some(resolved.status_subnets()),
        security_groups: Some(resolved.status_security_groups()),
        amis: Some(resolved.status_amis()),
        capacity_reservations: Some(resolved.status_capacity_reservations()).filter(|all| !all.is_empty()),
        instance_profile: resolved.instance_profile.clone(),
    };
    let conditions: Vec<Standing> = resolved.conditions.iter().filter(|c| c.kind.name() != "Ready").map(standing).collect();
    for bad in conditions.iter().filter(|c| c.status == ConditionStatus::False) {
        let name = live.metadata.name.clone().unwrap_or_default();
        recorder.note(voice::about_class(&name, live.metadata.uid.as_deref().unwrap_or_default(), &bad.reason, &bad.message));
    }
    if let Some(patch) = node_class_patch(live, &found, &conditions, cluster.ca_bundle.as_deref(), clock::now()) {
        said(writer.keep_node_class(&live.metadata, &patch).await.map(drop));
    }
}

/// Lets go of a class.
pub async fn release_class(writer: &Writer, live: &api::EC2NodeClass) {
    if let Some(patch) = node_class_release(live) {
        said(writer.keep_node_class(&live.metadata, &patch).await.map(drop));
    }
}

fn standing(told: &whittle_cloud::class::ClassCondition) -> Standing {
    let status = match told.status {
        Told::True => ConditionStatus::True,
        Told::False => ConditionStatus::False,
        Told::Unknown => ConditionStatus::Unknown,
    };
    Standing { kind: told.kind.name().to_owned(), status, reason: told.reason.clone(), message: told.message.clone() }
}

/// Says why something was not written, unless another replica writes it or it will be looked at again because it changed.
pub fn said(written: Result<(), WriteError>) {
    match written {
        Ok(()) | Err(WriteError::NotLeader { .. } | WriteError::Conflict { .. }) => {}
        Err(error) => tracing::warn!(error = %voice::chain(&error), "a status was not written; it is written with the next look"),
    }
}
