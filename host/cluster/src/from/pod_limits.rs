//! The fields of a pod that would change where it may run and that this version cannot read. A pod
//! that has one is never planned for.

use k8s_openapi::api::core::v1 as core;

use super::Cx;

/// Lists what of `spec` cannot be read; affinity, tolerations and resource claims of containers are
/// listed where they are read.
pub(super) fn list_unsupported(spec: &core::PodSpec, in_template: bool, cx: &mut Cx) {
    if !none(spec.topology_spread_constraints.as_ref()) {
        cx.cannot_read("topologySpreadConstraints");
    }
    if !none(spec.resource_claims.as_ref()) {
        cx.cannot_read("resourceClaims");
    }
    if spec.scheduling_group.is_some() {
        cx.cannot_read("schedulingGroup");
    }
    if !none(spec.scheduling_gates.as_ref()) && spec.node_name.is_none() {
        cx.cannot_read("schedulingGates");
    }
    if in_template && spec.node_name.is_some() {
        cx.cannot_read("nodeName");
    }
    // Of a live pod, admission has written the class's node selector and overhead into the pod.
    if !cx.live && spec.runtime_class_name.is_some() {
        cx.cannot_read("runtimeClassName");
    }
    host_ports(spec, cx);
    volumes(spec, cx);
}

fn none<T>(list: Option<&Vec<T>>) -> bool {
    list.is_none_or(Vec::is_empty)
}

fn host_ports(spec: &core::PodSpec, cx: &mut Cx) {
    let host = spec.host_network == Some(true);
    let mut check = |key: &str, containers: &[core::Container]| {
        cx.each(key, containers, |cx, container| {
            cx.each("ports", container.ports.as_deref().unwrap_or_default(), |cx, port| {
                if port.host_port.is_some_and(|p| p != 0) {
                    cx.cannot_read("hostPort");
                } else if host {
                    cx.cannot_read("containerPort"); // on the host's network every port is a host port
                }
            });
        });
    };
    check("containers", &spec.containers);
    let init = spec.init_containers.as_deref().unwrap_or_default();
    check("initContainers", init);
}

/// Volumes that tie a pod to a zone or node, or count against what a node can attach.
fn volumes(spec: &core::PodSpec, cx: &mut Cx) {
    cx.each("volumes", spec.volumes.as_deref().unwrap_or_default(), |cx, volume| {
        for (key, present) in [
            ("persistentVolumeClaim", volume.persistent_volume_claim.is_some()),
            ("ephemeral", volume.ephemeral.is_some()),
            ("csi", volume.csi.is_some()),
            ("awsElasticBlockStore", volume.aws_elastic_block_store.is_some()),
            ("azureDisk", volume.azure_disk.is_some()),
            ("cinder", volume.cinder.is_some()),
            ("gcePersistentDisk", volume.gce_persistent_disk.is_some()),
            ("iscsi", volume.iscsi.is_some()),
            ("portworxVolume", volume.portworx_volume.is_some()),
            ("rbd", volume.rbd.is_some()),
            ("vsphereVolume", volume.vsphere_volume.is_some()),
        ] {
            if present {
                cx.cannot_read(key);
            }
        }
    });
}
