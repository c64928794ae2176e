//! Claims of the model as NodeClaims.
//!
//! What must not enter: requests, what became of a claim.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use whittle_model::{Duration, NodeClaim, Operator, Requirement, Requirements, Taint, keys};

use super::{HashStamp, patch};
use crate::{api, hash};

/// Keeps claims and nodes until their instance has ended.
pub(super) const FINALIZER: &str = "karpenter.sh/termination";

/// A claim as it is created.
pub(super) fn node_claim(claim: &NodeClaim, pool: Option<&HashStamp>, class: Option<&HashStamp>) -> api::NodeClaim {
    let mut annotations = claim.annotations.clone();
    annotations.extend(stamps(pool, class));
    let mut labels = claim.labels.clone();
    if !claim.node_pool.is_empty() {
        labels.insert(keys::NODE_POOL.to_owned(), claim.node_pool.clone());
    }
    labels.entry(keys::NODE_CLASS.to_owned()).or_insert_with(|| claim.node_class.clone());
    let owner = pool.map(|pool| owner("NodePool", &claim.node_pool, &pool.uid));
    let requests = patch::list(&claim.requests);
    api::NodeClaim {
        api_version: api::KARPENTER.to_owned(),
        kind: "NodeClaim".to_owned(),
        metadata: ObjectMeta {
            name: Some(claim.name.clone()),
            labels: Some(labels),
            annotations: (!annotations.is_empty()).then_some(annotations),
            finalizers: Some(vec![FINALIZER.to_owned()]),
            owner_references: owner.map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        spec: api::NodeClaimSpec {
            taints: taints(&claim.taints),
            startup_taints: taints(&claim.startup_taints),
            requirements: requirements(&claim.requirements),
            resources: (!requests.is_empty()).then_some(api::ResourceRequests { requests: Some(requests) }),
            node_class_ref: api::NodeClassRef {
                group: api::AWS_GROUP.to_owned(),
                kind: api::NODE_CLASS_KIND.to_owned(),
                name: claim.node_class.clone(),
            },
            termination_grace_period: claim.termination_grace_period.map(duration),
            expire_after: Some(claim.expire_after.map_or_else(|| "Never".to_owned(), duration)),
        },
        status: None,
    }
}

/// The annotations under which a claim remembers what it was launched from.
pub(super) fn stamps(pool: Option<&HashStamp>, class: Option<&HashStamp>) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for (stamp, number, version) in
        [(pool, hash::NODE_POOL_HASH, hash::NODE_POOL_HASH_VERSION), (class, hash::NODE_CLASS_HASH, hash::NODE_CLASS_HASH_VERSION)]
    {
        if let Some(stamp) = stamp.filter(|s| !s.hash.is_empty()) {
            all.insert(number.to_owned(), stamp.hash.clone());
            all.insert(version.to_owned(), stamp.version.clone());
        }
    }
    all
}

/// The owner that keeps its dependents from being collected before they have let go.
pub(super) fn owner(kind: &str, name: &str, uid: &str) -> OwnerReference {
    OwnerReference {
        api_version: api::KARPENTER.to_owned(),
        kind: kind.to_owned(),
        name: name.to_owned(),
        uid: uid.to_owned(),
        block_owner_deletion: Some(true),
        controller: None,
    }
}

/// A taint as the API has it.
pub(super) fn taint(taint: &Taint) -> core::Taint {
    core::Taint {
        key: taint.key.clone(),
        value: (!taint.value.is_empty()).then(|| taint.value.clone()),
        effect: format!("{:?}", taint.effect),
        time_added: None,
    }
}

fn taints(all: &[Taint]) -> Option<Vec<core::Taint>> {
    (!all.is_empty()).then(|| all.iter().map(taint).collect())
}

/// Hours, minutes and seconds; the schema takes nothing finer.
fn duration(span: Duration) -> String {
    Duration::seconds(span.as_seconds()).to_string()
}

/// Requirements as lines of the API: one with bounds, or with refused values beside something, takes several.
fn requirements(all: &Requirements) -> Vec<api::Requirement> {
    all.iter().flat_map(lines).collect()
}

fn lines(requirement: &Requirement) -> Vec<api::Requirement> {
    let line = |operator: Operator, values: Option<Vec<String>>| api::Requirement {
        key: requirement.key().to_owned(),
        operator: operator.name().to_owned(),
        values,
        min_values: None,
    };
    let values = || Some(requirement.values().iter().cloned().collect::<Vec<_>>());
    let mut lines = match requirement.operator() {
        Operator::DoesNotExist => vec![line(Operator::DoesNotExist, None)],
        Operator::NotIn | Operator::Exists if requirement.values().is_empty() => Vec::new(),
        Operator::NotIn | Operator::Exists => vec![line(Operator::NotIn, values())],
        Operator::In | Operator::Gt | Operator::Lt | Operator::Gte | Operator::Lte => vec![line(Operator::In, values())],
    };
    let (at_least, at_most) = requirement.bounds();
    lines.extend(at_least.map(|low| line(Operator::Gte, Some(vec![low.to_string()]))));
    lines.extend(at_most.map(|high| line(Operator::Lte, Some(vec![high.to_string()]))));
    if requirement.operator() == Operator::Exists && at_least.is_none() && at_most.is_none() {
        lines.push(line(Operator::Exists, None));
    }
    if let Some(first) = lines.first_mut() {
        first.min_values = requirement.min_values().map(i64::from);
    }
    lines
}

#[cfg(test)]
#[path = "../../tests_unit/write_claim.rs"]
mod tests;
