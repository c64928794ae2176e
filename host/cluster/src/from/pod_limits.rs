//! The fields of a pod that would change where it may run and that this version cannot read. A pod
//! that has one is never planned for.

use k8s_openapi::api::core::v1 as core;

use super::Cx;

/// Lists what of `spec` cannot be read; affinity, tolerations and volumes are listed where they are read.
pub(super) fn list_unsupported(spec: &core::PodSpec, cx: &mut Cx) {
    if spec.scheduling_group.is_some() {
        cx.cannot_read("schedulingGroup");
    }
    if !none(spec.scheduling_gates.as_ref()) && spec.node_name.is_none() {
        cx.cannot_read("schedulingGates");
    }
    // Of a live pod, admission has written the class's node selector and overhead into the pod.
    if !cx.live && spec.runtime_class_name.is_some() {
        cx.cannot_read("runtimeClassName");
    }
}

fn none<T>(list: Option<&Vec<T>>) -> bool {
    list.is_none_or(Vec::is_empty)
}
