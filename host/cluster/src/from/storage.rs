//! Storage: claims, volumes, classes, what nodes may hold and hold.

use k8s_openapi::{
    api::{core::v1 as core, storage::v1 as storage},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use whittle_model::{Requirement, Requirements, StorageClass, Volume, VolumeAttachment, VolumeClaim, VolumeClaimPhase, VolumeLimits, keys};

use super::{Cx, affinity::unsatisfiable, names, requirement};

/// In-tree plugins and the CSI drivers that stand in for them.
const MIGRATED: [(&str, &str); 7] = [
    ("kubernetes.io/aws-ebs", "ebs.csi.aws.com"),
    ("kubernetes.io/gce-pd", "pd.csi.storage.gke.io"),
    ("kubernetes.io/azure-disk", "disk.csi.azure.com"),
    ("kubernetes.io/azure-file", "file.csi.azure.com"),
    ("kubernetes.io/cinder", "cinder.csi.openstack.org"),
    ("kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com"),
    ("kubernetes.io/portworx-volume", "pxd.portworx.com"),
];

/// The driver that stands in for an in-tree plugin, or the name itself.
pub(super) fn driver_of(provisioner: &str) -> &str {
    MIGRATED.iter().find(|(plugin, _)| *plugin == provisioner).map_or(provisioner, |(_, driver)| driver)
}

fn annotated<'a>(meta: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    meta.annotations.as_ref()?.get(key).map(String::as_str)
}

/// A PersistentVolumeClaim.
pub(crate) fn volume_claim(written: &core::PersistentVolumeClaim, cx: &mut Cx) -> VolumeClaim {
    const CLASS: &str = "volume.beta.kubernetes.io/storage-class";
    let meta = &written.metadata;
    let spec = written.spec.as_ref();
    let phase = written.status.as_ref().and_then(|status| status.phase.as_deref());
    VolumeClaim {
        key: names::object_key(meta, cx),
        phase: match phase {
            Some("Bound") => VolumeClaimPhase::Bound,
            Some("Lost") => VolumeClaimPhase::Lost,
            Some(_) | None => VolumeClaimPhase::Pending,
        },
        volume: spec.and_then(|s| s.volume_name.clone()).unwrap_or_default(),
        storage_class: annotated(meta, CLASS).map(str::to_owned).or_else(|| spec.and_then(|s| s.storage_class_name.clone())),
        bind_completed: annotated(meta, "pv.kubernetes.io/bind-completed").is_some(),
        deleting: meta.deletion_timestamp.is_some(),
    }
}

/// A PersistentVolume.
pub(crate) fn volume(written: &core::PersistentVolume, cx: &mut Cx) -> Volume {
    let meta = &written.metadata;
    let default = core::PersistentVolumeSpec::default();
    let spec = written.spec.as_ref().unwrap_or(&default);
    let (driver, handle) = source(spec);
    let required = spec.node_affinity.as_ref().and_then(|affinity| affinity.required.as_ref());
    let terms = cx.keys(&["spec", "nodeAffinity", "required"], |cx| required.map_or_else(Vec::new, |required| terms(required, cx)));
    Volume {
        name: names::object_name(meta, cx),
        node_terms: within_labels(terms, meta),
        driver: driver.to_owned(),
        handle,
        local: spec.local.is_some() || spec.host_path.is_some(),
        deleting: meta.deletion_timestamp.is_some(),
    }
}

/// The driver and what it calls the volume; nothing for those that no limit counts.
fn source(spec: &core::PersistentVolumeSpec) -> (&str, String) {
    let last = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    if let Some(csi) = &spec.csi {
        return (&csi.driver, csi.volume_handle.clone());
    }
    let in_tree = [
        // Written `aws://zone/vol-1` or `vol-1`.
        ("kubernetes.io/aws-ebs", spec.aws_elastic_block_store.as_ref().map(|s| last(&s.volume_id))),
        ("kubernetes.io/gce-pd", spec.gce_persistent_disk.as_ref().map(|s| s.pd_name.clone())),
        ("kubernetes.io/azure-disk", spec.azure_disk.as_ref().map(|s| s.disk_uri.clone())),
        ("kubernetes.io/azure-file", spec.azure_file.as_ref().map(|s| s.share_name.clone())),
        ("kubernetes.io/cinder", spec.cinder.as_ref().map(|s| s.volume_id.clone())),
        ("kubernetes.io/vsphere-volume", spec.vsphere_volume.as_ref().map(|s| s.volume_path.clone())),
        ("kubernetes.io/portworx-volume", spec.portworx_volume.as_ref().map(|s| s.volume_id.clone())),
    ];
    in_tree.into_iter().find_map(|(plugin, handle)| Some((driver_of(plugin), handle?))).unwrap_or_default()
}

fn terms(required: &core::NodeSelector, cx: &mut Cx) -> Vec<Requirements> {
    let mut all = Vec::new();
    cx.each("nodeSelectorTerms", &required.node_selector_terms, |cx, term| {
        if term.match_fields.as_ref().is_some_and(|fields| !fields.is_empty()) {
            cx.broken_at("matchFields", "names nodes instead of labelling them, which this version cannot read; write matchExpressions");
        }
        let expressions = term.match_expressions.as_deref().unwrap_or_default();
        // A term that says nothing matches nothing.
        if !expressions.is_empty() {
            all.push(requirement::expressions(expressions, cx));
        }
    });
    if all.is_empty() {
        all.push(unsatisfiable());
    }
    all
}

/// kube-scheduler also heeds the zone and region that a volume is labelled with; several are joined by `__`.
fn within_labels(mut terms: Vec<Requirements>, meta: &ObjectMeta) -> Vec<Requirements> {
    let labelled: Requirements = meta
        .labels
        .iter()
        .flatten()
        .map(|(key, value)| (keys::normalized(key), value))
        .filter(|(key, _)| [keys::ZONE, keys::REGION].contains(key))
        .map(|(key, value)| Requirement::any_of(key, &value.split("__").collect::<Vec<_>>()))
        .collect();
    if labelled.is_empty() {
        return terms;
    }
    if terms.is_empty() {
        return vec![labelled];
    }
    terms.iter_mut().for_each(|term| term.add_all(&labelled));
    terms
}

/// A StorageClass.
pub(crate) fn storage_class(written: &storage::StorageClass, cx: &mut Cx) -> StorageClass {
    const DEFAULT: [&str; 2] = ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
    let meta = &written.metadata;
    let mode = written.volume_binding_mode.as_deref().unwrap_or("Immediate");
    cx.one_of("volumeBindingMode", mode, &["Immediate", "WaitForFirstConsumer"]);
    StorageClass {
        name: names::object_name(meta, cx),
        provisioner: driver_of(&written.provisioner).to_owned(),
        immediate: mode == "Immediate",
        topologies: topologies(written.allowed_topologies.as_deref().unwrap_or_default(), cx),
        default: DEFAULT.iter().any(|key| annotated(meta, key) == Some("true")),
    }
}

fn topologies(written: &[core::TopologySelectorTerm], cx: &mut Cx) -> Vec<Requirements> {
    let mut all = Vec::new();
    cx.each("allowedTopologies", written, |cx, term| {
        let expressions = term.match_label_expressions.as_deref().unwrap_or_default();
        let mut read = Requirements::default();
        cx.each("matchLabelExpressions", expressions, |cx, one| {
            if one.values.is_empty() {
                cx.broken_at("values", "needs at least one value");
            }
            let values: Vec<&str> = one.values.iter().map(String::as_str).collect();
            read.add(Requirement::any_of(keys::normalized(&one.key), &values));
        });
        // A term that says nothing matches nothing.
        if !expressions.is_empty() {
            all.push(read);
        }
    });
    if all.is_empty() && !written.is_empty() {
        all.push(unsatisfiable());
    }
    all
}

/// A CSINode.
pub(crate) fn volume_limits(written: &storage::CSINode, cx: &mut Cx) -> VolumeLimits {
    let count = |driver: &storage::CSINodeDriver| driver.allocatable.as_ref()?.count.and_then(|count| u32::try_from(count).ok());
    VolumeLimits {
        node: names::object_name(&written.metadata, cx),
        drivers: written.spec.drivers.iter().filter_map(|driver| Some((driver.name.clone(), count(driver)?))).collect(),
    }
}

/// A VolumeAttachment.
pub(crate) fn volume_attachment(written: &storage::VolumeAttachment, cx: &mut Cx) -> VolumeAttachment {
    VolumeAttachment {
        name: names::object_name(&written.metadata, cx),
        node: written.spec.node_name.clone(),
        volume: written.spec.source.persistent_volume_name.clone().unwrap_or_default(),
    }
}
