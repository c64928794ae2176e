//! CapacityBuffers, and the objects that they take their templates from.

use k8s_openapi::{api::core::v1 as core, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use whittle_model::{BufferSource, BufferSpec, Pod, ScalableKind};

use super::{Cx, amounts, names, not_one_of, pod};
use crate::api;

/// The group of workloads; no other has kinds whose pods can be counted.
const APPS: &str = "apps";

/// A CapacityBuffer, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapacityBufferObject {
    /// What it asks for.
    pub spec: BufferSpec,
    /// Whether it is to be kept by whoever reads it here; those of other strategies are somebody else's.
    pub active: bool,
}

/// A CapacityBuffer, checked.
pub(crate) fn capacity_buffer(written: &api::CapacityBuffer, cx: &mut Cx) -> CapacityBufferObject {
    let key = names::object_key(&written.metadata, cx);
    let spec = &written.spec;
    cx.key("spec", |cx| {
        if let Some(strategy) = spec.provisioning_strategy.as_deref().filter(|_| !spec.active()) {
            let why = format!("buffers of strategy {strategy:?} are left to others; {} is kept", api::ACTIVE);
            cx.set_aside("provisioningStrategy", &why);
        }
        if spec.pod_template_ref.is_some() && spec.replicas.is_none() && spec.limits.is_none() {
            cx.broken_at("podTemplateRef", "says nothing of how many; write replicas or limits beside it");
        }
        let count = |key: &str, number: Option<i32>, cx: &mut Cx| {
            let read = number.map(u32::try_from);
            if read.is_some_and(|number| number.is_err()) {
                cx.broken_at(key, "is below zero; write at least 0");
            }
            read.and_then(Result::ok)
        };
        let of = source(spec, cx);
        let (replicas, percentage) = (count("replicas", spec.replicas, cx), count("percentage", spec.percentage, cx));
        let limits = amounts::amounts("limits", spec.limits.as_ref(), cx);
        CapacityBufferObject { spec: BufferSpec { key, of, replicas, percentage, limits }, active: spec.active() }
    })
}

fn source(spec: &api::CapacityBufferSpec, cx: &mut Cx) -> BufferSource {
    if let Some(named) = &spec.pod_template_ref {
        if spec.scalable_ref.is_some() {
            cx.broken_at("scalableRef", "podTemplateRef and scalableRef exclude each other; keep one of them");
        }
        cx.key("podTemplateRef", |cx| given(&named.name, cx));
        return BufferSource::PodTemplate(named.name.clone());
    }
    let Some(named) = &spec.scalable_ref else {
        cx.broken("neither podTemplateRef nor scalableRef says which pods the room is for; write one of them");
        return BufferSource::PodTemplate(String::new());
    };
    cx.key("scalableRef", |cx| {
        given(&named.name, cx);
        if let Some(group) = named.api_group.as_deref().filter(|group| !group.is_empty() && *group != APPS) {
            cx.broken_at("apiGroup", format!("{group:?} has no kind whose pods can be counted; write {APPS}"));
        }
        let kind = ScalableKind::ALL.into_iter().find(|kind| kind.name() == named.kind);
        if kind.is_none() {
            cx.broken_at("kind", not_one_of(&named.kind, &ScalableKind::ALL.map(ScalableKind::name)));
        }
        BufferSource::Scalable(kind.unwrap_or(ScalableKind::Deployment), named.name.clone())
    })
}

fn given(name: &str, cx: &mut Cx) {
    if name.is_empty() {
        cx.broken_at("name", "the name is empty; write the name of an object of this namespace");
    }
}

/// A pod of `template`, which stands at `path` of the object `meta`, as a buffer wants it: where it would run and on which
/// disks does not matter, for it never runs.
pub(crate) fn buffer_template(meta: &ObjectMeta, path: &[&str], template: Option<&core::PodTemplateSpec>, cx: &mut Cx) -> Pod {
    let key = names::object_key(meta, cx);
    let spec = template.and_then(|template| template.spec.clone()).map(|spec| core::PodSpec {
        node_name: None,
        volumes: spec.volumes.map(|all| all.into_iter().filter(|v| v.persistent_volume_claim.is_none() && v.ephemeral.is_none()).collect()),
        ..spec
    });
    let labels = template.and_then(|template| template.metadata.as_ref());
    cx.keys(path, |cx| pod::template(&key, "CapacityBuffer", labels, spec.as_ref(), cx))
}

/// A PodTemplate, as a pod of its name that buffers want.
pub(crate) fn pod_template(written: &core::PodTemplate, cx: &mut Cx) -> Pod {
    buffer_template(&written.metadata, &["template"], written.template.as_ref(), cx)
}
