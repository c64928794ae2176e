//! Workloads that keep a number of pods.

use k8s_openapi::{
    api::{apps::v1 as apps, batch::v1 as batch, core::v1 as core},
    apimachinery::pkg::apis::meta::v1::{self as meta, ObjectMeta},
};
use whittle_model::{LabelSelector, Labels, Owner, Pod, PodKey, SelectorRequirement};

use super::{Cx, names, pod, selector, storage};

/// The kinds of workloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkloadKind {
    /// `apps/v1` Deployment.
    Deployment,
    /// `apps/v1` StatefulSet.
    StatefulSet,
    /// `apps/v1` ReplicaSet that no Deployment owns.
    ReplicaSet,
    /// `v1` ReplicationController.
    ReplicationController,
    /// `batch/v1` Job.
    Job,
}

impl WorkloadKind {
    /// As Kubernetes spells it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Deployment => "Deployment",
            Self::StatefulSet => "StatefulSet",
            Self::ReplicaSet => "ReplicaSet",
            Self::ReplicationController => "ReplicationController",
            Self::Job => "Job",
        }
    }

    /// The kind of the controller that its pods name as their owner.
    #[must_use]
    pub const fn owner_of_pods(self) -> &'static str {
        match self {
            Self::Deployment => "ReplicaSet",
            Self::StatefulSet | Self::ReplicaSet | Self::ReplicationController | Self::Job => self.name(),
        }
    }
}

/// A workload: how many pods of which template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workload {
    /// Its kind.
    pub kind: WorkloadKind,
    /// Namespace and name.
    pub key: PodKey,
    /// The controller that owns the workload itself, such as the Deployment of a ReplicaSet.
    pub owner: Option<Owner>,
    /// Pods wanted at a time: `replicas`, of a Job its parallelism (0 while suspended), at most
    /// what is left to complete.
    pub replicas: u32,
    /// Of a Job: pods that must end well; `None` for other kinds and for work queues.
    pub completions: Option<u32>,
    /// A pod as its template makes it, with the workload's own name.
    pub template: Pod,
    /// The pods that are its own.
    pub selector: LabelSelector,
    /// Of a StatefulSet: the claims that each of its pods gets, named `<template>-<pod>`. Its template has no volumes for them.
    pub volume_claims: Vec<VolumeClaimTemplate>,
    /// Live pods of it that were read along with it; filled in by [`crate::manifest::link`].
    pub present: u32,
}

/// A claim that each pod of a StatefulSet gets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VolumeClaimTemplate {
    /// Its name, which volume mounts use.
    pub name: String,
    /// Its storage class: `None` is the default class, empty is none.
    pub storage_class: Option<String>,
}

/// The parts that every workload has.
struct Parts<'a> {
    kind: WorkloadKind,
    meta: &'a ObjectMeta,
    replicas: i32,
    completions: Option<i32>,
    selector: Option<&'a meta::LabelSelector>,
    template: Option<&'a core::PodTemplateSpec>,
}

fn workload(parts: &Parts<'_>, cx: &mut Cx) -> Workload {
    let key = names::object_key(parts.meta, cx);
    cx.key("spec", |cx| {
        let template = cx.key("template", |cx| {
            let (meta, spec) = (parts.template.and_then(|t| t.metadata.as_ref()), parts.template.and_then(|t| t.spec.as_ref()));
            pod::template(&key, parts.kind.owner_of_pods(), meta, spec, cx)
        });
        let selector = match parts.selector {
            Some(selector) => matching_selector(selector, &template.labels, cx),
            None => LabelSelector::of_labels(&template.labels),
        };
        if parts.replicas < 0 {
            cx.broken_at("replicas", format!("{} is below zero; write at least 0", parts.replicas));
        }
        let count = |n: i32| u32::try_from(n).unwrap_or(0);
        Workload {
            kind: parts.kind,
            owner: names::owner(parts.meta),
            replicas: count(parts.replicas),
            completions: parts.completions.map(count),
            template,
            selector,
            volume_claims: Vec::new(),
            present: 0,
            key,
        }
    })
}

/// The selector of a workload, which must select the pods of its own template.
pub(super) fn matching_selector(written: &meta::LabelSelector, labels: &Labels, cx: &mut Cx) -> LabelSelector {
    let own = selector::selector("selector", written, cx);
    if own.requirements.is_empty() {
        cx.broken_at("selector", "the selector is missing: write matchLabels with labels of the template");
    } else if !own.matches(labels) {
        let fails = |one: &&SelectorRequirement| !LabelSelector { requirements: vec![(*one).clone()] }.matches(labels);
        let key = own.requirements.iter().find(fails).map_or("", |r| r.key.as_str());
        cx.broken_at(
            "selector",
            format!("does not select the pods of its own template: label {key} of template.metadata.labels is absent or another; make them agree"),
        );
    }
    own
}

/// A Deployment.
pub(crate) fn deployment(written: &apps::Deployment, cx: &mut Cx) -> Workload {
    let spec = &written.spec;
    let parts = Parts {
        kind: WorkloadKind::Deployment,
        meta: &written.metadata,
        replicas: spec.replicas.unwrap_or(1),
        completions: None,
        selector: Some(&spec.selector),
        template: Some(&spec.template),
    };
    workload(&parts, cx)
}

/// A StatefulSet.
pub(crate) fn stateful_set(written: &apps::StatefulSet, cx: &mut Cx) -> Workload {
    let spec = &written.spec;
    let parts = Parts {
        kind: WorkloadKind::StatefulSet,
        meta: &written.metadata,
        replicas: spec.replicas.unwrap_or(1),
        completions: None,
        selector: Some(&spec.selector),
        template: Some(&spec.template),
    };
    let mut workload = workload(&parts, cx);
    workload.volume_claims = claims(spec.volume_claim_templates.as_deref().unwrap_or_default(), cx);
    workload
}

fn claims(written: &[core::PersistentVolumeClaim], cx: &mut Cx) -> Vec<VolumeClaimTemplate> {
    let mut all = Vec::new();
    cx.key("spec", |cx| {
        cx.each("volumeClaimTemplates", written, |cx, one| {
            let claim = storage::volume_claim(one, cx);
            all.push(VolumeClaimTemplate { name: claim.key.name, storage_class: claim.storage_class });
        });
    });
    all
}

/// A ReplicaSet.
pub(crate) fn replica_set(written: &apps::ReplicaSet, cx: &mut Cx) -> Workload {
    let spec = &written.spec;
    let parts = Parts {
        kind: WorkloadKind::ReplicaSet,
        meta: &written.metadata,
        replicas: spec.replicas.unwrap_or(1),
        completions: None,
        selector: Some(&spec.selector),
        template: spec.template.as_ref(),
    };
    workload(&parts, cx)
}

/// A ReplicationController; its selector is its template's labels when absent.
pub(crate) fn replication_controller(written: &core::ReplicationController, cx: &mut Cx) -> Workload {
    let default = core::ReplicationControllerSpec::default();
    let spec = written.spec.as_ref().unwrap_or(&default);
    let selector = spec.selector.clone().map(|labels| meta::LabelSelector { match_labels: Some(labels), match_expressions: None });
    let parts = Parts {
        kind: WorkloadKind::ReplicationController,
        meta: &written.metadata,
        replicas: spec.replicas.unwrap_or(1),
        completions: None,
        selector: selector.as_ref(),
        template: spec.template.as_ref(),
    };
    workload(&parts, cx)
}

/// A Job. Its selector is made by the server; without one, its pods are those it owns.
pub(crate) fn job(written: &batch::Job, cx: &mut Cx) -> Workload {
    let default = batch::JobSpec::default();
    let spec = written.spec.as_ref().unwrap_or(&default);
    let done = written.status.as_ref().and_then(|s| s.succeeded).unwrap_or(0);
    let wanted = spec.parallelism.unwrap_or(1);
    // Without either, one pod must end well; with parallelism alone, the pods share a queue.
    let completions = spec.completions.or(if spec.parallelism.is_none() { Some(1) } else { None });
    let most = completions.map_or(wanted, |n| wanted.min(n.saturating_sub(done).max(0)));
    let parts = Parts {
        kind: WorkloadKind::Job,
        meta: &written.metadata,
        replicas: if spec.suspend == Some(true) { 0 } else { most },
        completions,
        selector: spec.selector.as_ref().filter(|_| spec.manual_selector == Some(true) || cx.live),
        template: Some(&spec.template),
    };
    let policy = spec.template.spec.as_ref().and_then(|s| s.restart_policy.as_deref());
    if policy.is_none_or(|p| p == "Always") && spec.template.spec.is_some() {
        let what = "a Job's pods may not restart always; write restartPolicy: Never or OnFailure";
        cx.keys(&["spec", "template", "spec", "restartPolicy"], |cx| cx.broken(what));
    }
    if spec.scheduling.is_some() {
        cx.keys(&["spec"], |cx| cx.cannot_read("scheduling"));
    }
    workload(&parts, cx)
}
