//! NodePools.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use whittle_model::{Duration, Labels, Limits, NodePool, Taint, Template, keys, resources};

use super::{Cx, amounts, disruption, names, requirement, taints};
use crate::api;

/// How long a node lives when the pool does not say.
pub(super) const EXPIRE_AFTER: Duration = Duration::minutes(720 * 60);

/// A NodePool.
pub(crate) fn node_pool(written: &api::NodePool, cx: &mut Cx) -> NodePool {
    let meta = &written.metadata;
    let name = names::object_name(meta, cx);
    let conditions = written.status.as_ref().and_then(|s| s.conditions.as_deref()).unwrap_or_default();
    cx.key("spec", |cx| {
        let spec = &written.spec;
        static_pool(spec, cx);
        NodePool {
            name,
            uid: meta.uid.clone().unwrap_or_default(),
            annotations: meta.annotations.clone().unwrap_or_default(),
            weight: weight(spec.weight, cx),
            template: cx.key("template", |cx| template(&spec.template, cx)),
            limits: Limits { amounts: amounts::amounts("limits", spec.limits.as_ref(), cx) },
            disruption: disruption::disruption(spec.disruption.as_ref(), cx),
            replicas: spec.replicas.and_then(|n| u32::try_from(n).ok()),
            not_ready: not_ready(conditions),
            deleting: meta.deletion_timestamp.is_some(),
        }
    })
}

/// Why an object says that it is not ready, if it says so.
pub(super) fn not_ready(conditions: &[Condition]) -> Option<String> {
    let ready = conditions.iter().find(|c| c.type_ == "Ready" && c.status != "True")?;
    Some(if ready.message.is_empty() { ready.reason.clone() } else { format!("{}: {}", ready.reason, ready.message) })
}

fn weight(written: Option<i32>, cx: &mut Cx) -> i32 {
    let weight = written.unwrap_or(0);
    if written.is_some() && !(1..=100).contains(&weight) {
        cx.broken_at("weight", format!("{weight} is out of range; write 1 to 100, or leave it out"));
    }
    weight
}

fn static_pool(spec: &api::NodePoolSpec, cx: &mut Cx) {
    let Some(replicas) = spec.replicas else { return };
    if replicas < 0 {
        cx.broken_at("replicas", format!("{replicas} is below zero; write at least 0"));
    }
    if spec.weight.is_some() {
        cx.broken_at("weight", "a pool with replicas takes no weight; take one of them away");
    }
    for name in spec.limits.iter().flatten().map(|(name, _)| name) {
        if name != resources::NODES {
            cx.keys(&["limits", name], |cx| cx.broken("a pool with replicas may limit nodes only; take this limit away"));
        }
    }
}

fn template(written: &api::Template, cx: &mut Cx) -> Template {
    let labels = cx.key("metadata", |cx| template_labels(written.metadata.labels.as_ref(), cx));
    cx.key("spec", |cx| {
        let spec = &written.spec;
        let own = taints::taints("taints", spec.taints.as_deref(), cx);
        let startup = taints::taints("startupTaints", spec.startup_taints.as_deref(), cx);
        check_taints(&own, &startup, cx);
        if spec.expire_after.as_deref().is_some_and(|e| e != "Never") {
            cx.set_aside("expireAfter", "not acted on yet, nodes do not expire");
        }
        if spec.termination_grace_period.is_some() {
            cx.set_aside("terminationGracePeriod", "not acted on yet, only empty nodes are removed");
        }
        Template {
            labels,
            annotations: written.metadata.annotations.clone().unwrap_or_default(),
            requirements: requirement::requirements(&spec.requirements, true, cx),
            node_class: node_class(&spec.node_class_ref, cx),
            expire_after: amounts::duration_or_never("expireAfter", spec.expire_after.as_deref(), EXPIRE_AFTER, cx),
            termination_grace_period: grace(spec.termination_grace_period.as_deref(), cx),
            taints: own,
            startup_taints: startup,
        }
    })
}

/// How long a drain may take.
pub(super) fn grace(written: Option<&str>, cx: &mut Cx) -> Option<Duration> {
    amounts::duration("terminationGracePeriod", written?, cx)
}

fn template_labels(written: Option<&Labels>, cx: &mut Cx) -> Labels {
    let labels = names::labels(written, cx);
    cx.key("labels", |cx| {
        if labels.len() > 100 {
            cx.broken(format!("{} labels are more than the 100 that are taken", labels.len()));
        }
        for key in labels.keys() {
            if key == keys::NODE_POOL {
                cx.broken_at(key, format!("{key} is set by the autoscaler; take it away"));
            } else if let Some(why) = keys::restricted(key) {
                cx.broken_at(key, requirement::restricted_key(key, why));
            }
        }
    });
    labels.into_iter().map(|(key, value)| (keys::normalized(&key).to_owned(), value)).collect()
}

fn check_taints(own: &[Taint], startup: &[Taint], cx: &mut Cx) {
    let all: Vec<&Taint> = own.iter().chain(startup).collect();
    for (at, taint) in all.iter().enumerate() {
        if all[..at].iter().any(|t| t.key == taint.key && t.effect == taint.effect) {
            let key = if at < own.len() { "taints" } else { "startupTaints" };
            cx.broken_at(key, format!("taint {}:{:?} is given twice; keep one of them", taint.key, taint.effect));
        }
    }
}

/// The name of the node class that a pool or claim refers to.
pub(super) fn node_class(written: &api::NodeClassRef, cx: &mut Cx) -> String {
    cx.key("nodeClassRef", |cx| {
        if written.group != api::AWS_GROUP {
            cx.broken_at("group", format!("{:?} is not a group this version launches from; write {}", written.group, api::AWS_GROUP));
        }
        if written.kind != api::NODE_CLASS_KIND {
            cx.broken_at("kind", format!("{:?} is not a kind this version launches from; write {}", written.kind, api::NODE_CLASS_KIND));
        }
        if written.name.is_empty() {
            cx.broken_at("name", "the name is empty; write the name of an EC2NodeClass");
        }
    });
    written.name.clone()
}
