//! The kinds of Kubernetes and Karpenter: which are read, which bear on no plan, which are not built
//! yet; and what was meant by a kind that is none of them.

use super::Fault;
use crate::yaml::closest;

/// What is done with objects of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    NodePool,
    NodeClass,
    NodeClaim,
    Node,
    Pod,
    Deployment,
    StatefulSet,
    ReplicaSet,
    ReplicationController,
    Job,
    DaemonSet,
    DisruptionBudget,
    VolumeClaim,
    Volume,
    StorageClass,
    VolumeLimits,
    VolumeAttachment,
    LimitRange,
    NodeOverlay,
    CapacityBuffer,
    PodTemplate,
    PriorityClass,
    Namespace,
    ScoringPolicy,
    /// Bears on no plan.
    Skip,
    /// Bears on plans, and is not built yet.
    Unsupported,
}

/// Kinds that are read or refused by name: group, the version that is read, kind.
const KINDS: [(&str, &str, &str, Role); 27] = [
    ("karpenter.sh", "v1", "NodePool", Role::NodePool),
    ("karpenter.sh", "v1", "NodeClaim", Role::NodeClaim),
    ("karpenter.k8s.aws", "v1", "EC2NodeClass", Role::NodeClass),
    ("", "v1", "Node", Role::Node),
    ("", "v1", "Pod", Role::Pod),
    ("apps", "v1", "Deployment", Role::Deployment),
    ("apps", "v1", "StatefulSet", Role::StatefulSet),
    ("apps", "v1", "ReplicaSet", Role::ReplicaSet),
    ("apps", "v1", "DaemonSet", Role::DaemonSet),
    ("", "v1", "ReplicationController", Role::ReplicationController),
    ("batch", "v1", "Job", Role::Job),
    ("policy", "v1", "PodDisruptionBudget", Role::DisruptionBudget),
    ("scheduling.k8s.io", "v1", "PriorityClass", Role::PriorityClass),
    ("", "v1", "Namespace", Role::Namespace),
    ("batch", "v1", "CronJob", Role::Unsupported),
    ("karpenter.sh", "v1alpha1", "NodeOverlay", Role::NodeOverlay),
    ("", "v1", "PersistentVolumeClaim", Role::VolumeClaim),
    ("", "v1", "PersistentVolume", Role::Volume),
    ("storage.k8s.io", "v1", "StorageClass", Role::StorageClass),
    ("storage.k8s.io", "v1", "CSINode", Role::VolumeLimits),
    ("storage.k8s.io", "v1", "VolumeAttachment", Role::VolumeAttachment),
    ("autoscaling.x-k8s.io", "v1beta1", "CapacityBuffer", Role::CapacityBuffer),
    ("", "v1", "PodTemplate", Role::PodTemplate),
    ("", "v1", "LimitRange", Role::LimitRange),
    ("scheduling.k8s.io", "v1alpha2", "Workload", Role::Unsupported),
    ("scheduling.k8s.io", "v1alpha2", "PodGroup", Role::Unsupported),
    ("whittle.sh", "v1alpha1", "ScoringPolicy", Role::ScoringPolicy),
];

/// Podless kinds of the groups above. Every kind of any other group is skipped without a list.
const PODLESS: [(&str, &[&str]); 5] = [
    ("", &["Binding", "ComponentStatus", "ConfigMap", "Endpoints", "Event", "ResourceQuota", "Secret", "Service", "ServiceAccount"]),
    ("apps", &["ControllerRevision"]),
    ("storage.k8s.io", &["CSIDriver", "CSIStorageCapacity", "VolumeAttributesClass"]),
    ("policy", &["Eviction", "PodSecurityPolicy"]),
    ("autoscaling.x-k8s.io", &["ProvisioningRequest"]),
];

/// Kinds that Karpenter had before v1beta1.
const ANCIENT: [(&str, &str); 3] = [("Provisioner", "NodePool"), ("AWSNodeTemplate", "EC2NodeClass"), ("Machine", "NodeClaim")];

/// What is done with `kind` of `api_version`.
pub(super) fn role(api_version: &str, kind: &str) -> Result<Role, Fault> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    if let Some((_, wanted, _, role)) = KINDS.iter().find(|(g, _, k, _)| *g == group && *k == kind) {
        // A kind that is not read is not read in any version.
        let any = matches!(role, Role::Unsupported | Role::Skip);
        return if any || version == *wanted { Ok(*role) } else { Err(other_version(group, version, kind, wanted)) };
    }
    if PODLESS.iter().any(|(g, kinds)| *g == group && kinds.contains(&kind)) {
        return Ok(Role::Skip);
    }
    if let Some((_, now)) = ANCIENT.iter().find(|(old, _)| *old == kind && group.starts_with("karpenter.")) {
        return Err(Fault::WrongVersion(format!(
            "{kind} of {api_version} is from before v1beta1 and is not converted; write {now} of {} instead",
            api_version_of(now)
        )));
    }
    if let Some(fault) = misplaced(group, api_version, kind) {
        return Err(fault);
    }
    let known = known_kinds(group);
    if known.is_empty() { Ok(Role::Skip) } else { Err(unknown(group, api_version, kind, &known)) }
}

fn join(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// Group and version of a kind that is read; empty for others.
pub(super) fn api_version_of(kind: &str) -> String {
    KINDS.iter().find(|(_, _, k, _)| *k == kind).map(|(group, version, _, _)| join(group, version)).unwrap_or_default()
}

/// The kind of a list's items: `PodList` holds Pods, `List` anything.
pub(super) fn list_items(kind: &str) -> Option<&str> {
    kind.strip_suffix("List").filter(|k| k.is_empty() || KINDS.iter().any(|(_, _, known, _)| known == k) || is_podless(k))
}

fn is_podless(kind: &str) -> bool {
    PODLESS.iter().any(|(_, kinds)| kinds.contains(&kind))
}

/// The spelling of a kind that was probably meant, from every kind that is read.
pub(super) fn near_kind(kind: &str) -> Option<&'static str> {
    closest(kind, KINDS.iter().map(|(_, _, k, _)| *k))
}

fn known_kinds(group: &str) -> Vec<&'static str> {
    let own = KINDS.iter().filter(|(g, _, _, _)| *g == group).map(|(_, _, kind, _)| *kind);
    own.chain(PODLESS.iter().filter(|(g, _)| *g == group).flat_map(|(_, kinds)| kinds.iter().copied())).collect()
}

fn other_version(group: &str, version: &str, kind: &str, wanted: &str) -> Fault {
    let (written, right) = (join(group, version), join(group, wanted));
    Fault::WrongVersion(if group.starts_with("karpenter.") && version == "v1beta1" {
        format!("{written} is the version before {right}; run `whittle convert FILE` and use what it prints")
    } else {
        format!("{kind} is not read in version {written}; write apiVersion: {right}")
    })
}

/// A kind that is read, in a group where it does not live.
fn misplaced(group: &str, api_version: &str, kind: &str) -> Option<Fault> {
    let (right_group, version, _, _) =
        KINDS.iter().find(|(_, _, k, role)| *k == kind && !matches!(role, Role::Unsupported | Role::Skip))?;
    // A group with a domain of its own may hold somebody's own kind of the same name.
    let lost = !group.contains('.') || !known_kinds(group).is_empty() || closest(group, [*right_group]).is_some();
    lost.then(|| Fault::WrongVersion(format!("{kind} is no kind of {api_version}; write apiVersion: {}", join(right_group, version))))
}

fn unknown(group: &str, api_version: &str, kind: &str, known: &[&str]) -> Fault {
    // A kind of another group may be meant as well: `kind: Deploymnet` under `v1`.
    Fault::UnknownKind(match closest(kind, known.iter().copied()).or_else(|| near_kind(kind)) {
        Some(meant) => {
            let right = api_version_of(meant);
            let version = if right.is_empty() || right == api_version { String::new() } else { format!(" of apiVersion {right}") };
            format!("{api_version} has no kind {kind}; did you mean {meant}{version}?")
        }
        None if group.is_empty() => format!("Kubernetes {api_version} has no kind {kind}; look at apiVersion and kind"),
        None => format!("{api_version} has no kind {kind}; known are {}", known.join(", ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_read_skipped_or_answered() {
        for (api_version, kind, wanted) in [
            ("karpenter.sh/v1", "NodePool", Ok(Role::NodePool)),
            ("v1", "Service", Ok(Role::Skip)),
            ("serving.knative.dev/v1", "Service", Ok(Role::Skip)),
            ("networking.k8s.io/v1", "Ingress", Ok(Role::Skip)),
            ("example.com/v1", "Deployment", Ok(Role::Skip)),
            ("batch/v1", "CronJob", Ok(Role::Unsupported)),
            ("karpenter.sh/v1alpha1", "NodeOverlay", Ok(Role::NodeOverlay)),
            ("storage.k8s.io/v1", "StorageClass", Ok(Role::StorageClass)),
            ("storage.k8s.io/v1", "CSIDriver", Ok(Role::Skip)),
            ("storage.k8s.io/v1beta1", "StorageClass", Err("write apiVersion: storage.k8s.io/v1")),
            ("v1", "PersistentVolumeClaim", Ok(Role::VolumeClaim)),
            ("autoscaling.x-k8s.io/v1beta1", "CapacityBuffer", Ok(Role::CapacityBuffer)),
            ("autoscaling.x-k8s.io/v1alpha1", "CapacityBuffer", Err("write apiVersion: autoscaling.x-k8s.io/v1beta1")),
            ("autoscaling/v1beta1", "CapacityBuffer", Err("write apiVersion: autoscaling.x-k8s.io/v1beta1")),
            ("v1", "PodTemplate", Ok(Role::PodTemplate)),
            ("apps/v1", "Deploymnet", Err("did you mean Deployment?")),
            ("v1", "Deploymnet", Err("did you mean Deployment of apiVersion apps/v1?")),
            ("v1", "Pood", Err("did you mean Pod?")),
            ("v1", "Deployment", Err("write apiVersion: apps/v1")),
            ("apps/v1beta2", "Deployment", Err("write apiVersion: apps/v1")),
            ("extensions/v1beta1", "Deployment", Err("write apiVersion: apps/v1")),
            ("policy/v1beta1", "PodDisruptionBudget", Err("write apiVersion: policy/v1")),
            ("karpenter.sh/v1beta1", "NodePool", Err("run `whittle convert FILE`")),
            ("karpenter.k8s.aws/v1beta1", "EC2NodeClass", Err("run `whittle convert FILE`")),
            ("karpenter.sh/v1alpha5", "Provisioner", Err("write NodePool of karpenter.sh/v1 instead")),
            ("karpenter.k8s.aws/v1alpha1", "AWSNodeTemplate", Err("write EC2NodeClass of karpenter.k8s.aws/v1 instead")),
            ("karpenter.k8s.aws/v1", "NodePool", Err("write apiVersion: karpenter.sh/v1")),
            ("karpenter.k8s.io/v1", "EC2NodeClass", Err("write apiVersion: karpenter.k8s.aws/v1")),
            ("karpentr.sh/v1", "NodePool", Err("write apiVersion: karpenter.sh/v1")),
            ("karpenter.k8s.aws/v1", "NodeClass", Err("did you mean EC2NodeClass?")),
            ("karpenter.sh/v1", "Nodepool", Err("did you mean NodePool?")),
        ] {
            match (role(api_version, kind), wanted) {
                (Ok(got), Ok(wanted)) => assert_eq!(got, wanted, "{api_version} {kind}"),
                (Err(fault), Err(part)) => assert!(fault.to_string().contains(part), "{api_version} {kind}: {fault}"),
                (got, wanted) => panic!("{api_version} {kind}: {got:?}, wanted {wanted:?}"),
            }
        }
    }
}
