//! What capacity buffers take their templates from, as the watches tell it. What must not enter: which buffer wants what.

use k8s_openapi::api::{apps::v1 as apps, core::v1 as core};
use kube::core::ObjectMeta;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use whittle_model::{BufferSource, Pod, ScalableKind};

use super::{
    Seen,
    kinds::{Told, convert},
    raw::Name,
};
use crate::{
    api,
    from::{self, Cx},
};

/// What a buffer can be for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BufferBase {
    /// One of its pods.
    pub template: Pod,
    /// How many it wants to have; `None` for a PodTemplate.
    pub scale: Option<u32>,
    /// Generation of a PodTemplate; 0 for workloads.
    pub generation: i64,
}

fn told(name: &Name, source: BufferSource, base: Option<Result<BufferBase, String>>) -> Told {
    let namespace = name.namespace.clone().unwrap_or_else(|| "default".to_owned());
    (Some(Seen::BufferBase { namespace, source, base: base.map(Box::new) }), None)
}

pub(super) fn buffer(value: &Value, name: &Name) -> Told {
    let (object, read) = convert::<api::CapacityBuffer, _>(value, |object, _| object.clone());
    if let Err(why) = read {
        tracing::warn!(kind = "CapacityBuffer", %name, why, "the object cannot be read; what was known of it stays");
    }
    (object.map(|object| Seen::CapacityBuffer(Box::new(object))), None)
}

pub(super) fn pod_template(value: &Value, name: &Name) -> Told {
    let (_, base) = convert::<core::PodTemplate, _>(value, |object, cx| BufferBase {
        template: from::pod_template(object, cx),
        scale: None,
        generation: object.metadata.generation.unwrap_or(0),
    });
    told(name, BufferSource::PodTemplate(name.name.clone()), Some(base))
}

/// A workload as read by `parts`: its metadata, number of pods and template.
fn scalable<T: DeserializeOwned>(
    (value, name, kind): (&Value, &Name, ScalableKind),
    parts: impl Fn(&T) -> (&ObjectMeta, Option<i32>, Option<&core::PodTemplateSpec>),
) -> Told {
    let (_, base) = convert::<T, _>(value, |object, cx: &mut Cx| {
        let (meta, replicas, template) = parts(object);
        let template = from::buffer_template(meta, &["spec", "template"], template, cx);
        // What says nothing has one.
        BufferBase { template, scale: Some(u32::try_from(replicas.unwrap_or(1)).unwrap_or(0)), generation: 0 }
    });
    told(name, BufferSource::Scalable(kind, name.name.clone()), Some(base))
}

pub(super) fn deployment(value: &Value, name: &Name) -> Told {
    scalable((value, name, ScalableKind::Deployment), |object: &apps::Deployment| {
        (&object.metadata, object.spec.replicas, Some(&object.spec.template))
    })
}

pub(super) fn stateful_set(value: &Value, name: &Name) -> Told {
    scalable((value, name, ScalableKind::StatefulSet), |object: &apps::StatefulSet| {
        (&object.metadata, object.spec.replicas, Some(&object.spec.template))
    })
}

pub(super) fn replica_set(value: &Value, name: &Name) -> Told {
    scalable((value, name, ScalableKind::ReplicaSet), |object: &apps::ReplicaSet| {
        (&object.metadata, object.spec.replicas, object.spec.template.as_ref())
    })
}

pub(super) fn pod_template_gone(name: &Name) -> Told {
    told(name, BufferSource::PodTemplate(name.name.clone()), None)
}

pub(super) fn scalable_gone(kind: ScalableKind, name: &Name) -> Told {
    told(name, BufferSource::Scalable(kind, name.name.clone()), None)
}
