//! Volumes of pods that bear on their place.

use k8s_openapi::api::core::v1 as core;
use whittle_model::PodVolume;

use super::Cx;

/// The volumes that claims stand for, in the order written; claims of ephemeral volumes are named after `pod`. What ties a pod
/// to a disk without a claim is listed as unsupported.
pub(super) fn volumes(pod: &str, spec: &core::PodSpec, cx: &mut Cx) -> Vec<PodVolume> {
    let mut all: Vec<PodVolume> = Vec::new();
    cx.each("volumes", spec.volumes.as_deref().unwrap_or_default(), |cx, one| {
        inline(one, cx);
        let volume = match (&one.persistent_volume_claim, &one.ephemeral) {
            (Some(claim), _) => {
                if claim.claim_name.is_empty() {
                    cx.keys(&["persistentVolumeClaim", "claimName"], |cx| cx.broken("the name is empty; write the name of a claim"));
                }
                PodVolume { claim: claim.claim_name.clone(), ephemeral: None }
            }
            (None, Some(ephemeral)) => PodVolume {
                claim: format!("{pod}-{}", one.name),
                ephemeral: Some(ephemeral.volume_claim_template.as_ref().and_then(|t| t.spec.storage_class_name.clone())),
            },
            (None, None) => return,
        };
        // Two volumes of one claim are one disk.
        if !all.contains(&volume) {
            all.push(volume);
        }
    });
    all
}

/// Disks of plugins that count towards what a node may hold, or that no two pods of a node may share.
fn inline(volume: &core::Volume, cx: &mut Cx) {
    for (key, present) in [
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
}
