//! The label, annotation and taint keys that Whittle reads and writes.

/// Label: the NodePool that owns a node.
pub const NODE_POOL: &str = "karpenter.sh/nodepool";
/// Label: `spot`, `on-demand` or `reserved`.
pub const CAPACITY_TYPE: &str = "karpenter.sh/capacity-type";
/// Label: `true` once a node is registered.
pub const REGISTERED: &str = "karpenter.sh/registered";
/// Label: `true` once a node is initialized.
pub const INITIALIZED: &str = "karpenter.sh/initialized";
/// Label: the EC2NodeClass of a node.
pub const NODE_CLASS: &str = "karpenter.k8s.aws/ec2nodeclass";
/// Label: availability zone, such as `us-east-1a`.
pub const ZONE: &str = "topology.kubernetes.io/zone";
/// Label: region.
pub const REGION: &str = "topology.kubernetes.io/region";
/// Label: zone id, such as `use1-az1`.
pub const ZONE_ID: &str = "topology.k8s.aws/zone-id";
/// Label: instance type name.
pub const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";
/// Label: `amd64` or `arm64`.
pub const ARCH: &str = "kubernetes.io/arch";
/// Label: `linux` or `windows`.
pub const OS: &str = "kubernetes.io/os";
/// Label: the node's host name.
pub const HOSTNAME: &str = "kubernetes.io/hostname";
/// Label: Windows build number.
pub const WINDOWS_BUILD: &str = "node.kubernetes.io/windows-build";
/// Prefix of the labels that AWS instance types define.
pub const AWS_PREFIX: &str = "karpenter.k8s.aws/";
/// Annotation: a pod, node or NodePool template that asks not to be disrupted.
pub const DO_NOT_DISRUPT: &str = "karpenter.sh/do-not-disrupt";
/// Annotation of a NodeClaim that is going: when its node ends whatever its pods do, in RFC 3339.
pub const TERMINATION_TIMESTAMP: &str = "karpenter.sh/nodeclaim-termination-timestamp";
/// Label of a node to which load balancers send nothing more.
pub const EXCLUDED: &str = "node.kubernetes.io/exclude-from-external-load-balancers";
/// Annotation of a NodeClaim: the launch group, which tags its instance so that a crash between
/// launch and record neither loses nor doubles it.
pub const LAUNCH_GROUP: &str = "whittle.sh/launch";
/// Annotation of a NodePool: its chain of scoring policies.
pub const POLICY: &str = "whittle.sh/policy";
/// Annotation of a NodeClaim that was chosen under policies: the offerings to buy from, best first,
/// as a JSON list of `["type", "zone", rank in micro-dollars]`.
pub const OFFERS: &str = "whittle.sh/offers";
/// Annotation of a NodeClaim: what an hour of its instance cost when it was bought, in micro-dollars.
pub const PRICE: &str = "whittle.sh/price-micros";
/// Annotation of a NodeClaim that a move exchanged others for: what its pods were moved off within a day, as a JSON list of
/// `[milliseconds since 1970, "type"]`. Whoever takes the cluster over goes on from there.
pub const MOVED_OFF: &str = "whittle.sh/moved-off";
/// Annotation of a NodeClaim: a fingerprint of the policies, prices, overlays and settings that moves were judged by when it
/// was made.
pub const JUDGED_BY: &str = "whittle.sh/judged-by";
/// Annotation of a NodeClaim that has fewer distinct values of a key than its pool's `minValues` asks for: `true`.
pub const MIN_VALUES_RELAXED: &str = "karpenter.sh/nodeclaim-min-values-relaxed";
/// Annotation of a NodeClaim whose prices a NodeOverlay made: `true`.
pub const PRICE_OVERLAY: &str = "karpenter.sh/price-overlay-applied";
/// Annotation of a NodeClaim to whose capacity a NodeOverlay added: `true`.
pub const CAPACITY_OVERLAY: &str = "karpenter.sh/capacity-overlay-applied";
/// Annotation of a NodePool, and of claims made from it: the hash of its template.
pub const NODE_POOL_HASH: &str = "karpenter.sh/nodepool-hash";
/// Annotation: how [`NODE_POOL_HASH`] was reckoned.
pub const NODE_POOL_HASH_VERSION: &str = "karpenter.sh/nodepool-hash-version";
/// Annotation of an EC2NodeClass, and of claims made from it: the hash of its spec.
pub const NODE_CLASS_HASH: &str = "karpenter.k8s.aws/ec2nodeclass-hash";
/// Annotation: how [`NODE_CLASS_HASH`] was reckoned.
pub const NODE_CLASS_HASH_VERSION: &str = "karpenter.k8s.aws/ec2nodeclass-hash-version";
/// Annotation of a pod: what its deletion costs beside that of others, as its ReplicaSet weighs it.
pub const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
/// Taint of a node that is being drained.
pub const DISRUPTED_TAINT: &str = "karpenter.sh/disrupted";
/// Taint that a node carries from its boot until it is registered.
pub const UNREGISTERED_TAINT: &str = "karpenter.sh/unregistered";
/// Taint of a node whose kubelet is no longer heard of.
pub const UNREACHABLE_TAINT: &str = "node.kubernetes.io/unreachable";
/// Prefix of taints that readiness gates of nodes hold.
pub const READINESS_PREFIX: &str = "readiness.k8s.io/";

/// Label: the capacity reservation that an instance stands in.
pub const RESERVATION_ID: &str = "karpenter.k8s.aws/capacity-reservation-id";
/// Label: `default` or `capacity-block`, of an instance in a capacity reservation.
pub const RESERVATION_TYPE: &str = "karpenter.k8s.aws/capacity-reservation-type";
/// Label: `true` or `false`, whether the owner of an instance's capacity reservation may take it back.
pub const RESERVATION_INTERRUPTIBLE: &str = "karpenter.k8s.aws/capacity-reservation-interruptible";
/// The labels of nodes in capacity reservations, which no others have.
pub const OF_RESERVATIONS: [&str; 3] = [RESERVATION_ID, RESERVATION_TYPE, RESERVATION_INTERRUPTIBLE];

/// The AWS labels that requirements may name without any NodePool defining them; each stands
/// behind [`AWS_PREFIX`].
pub const AWS_WELL_KNOWN: [&str; 28] = [
    "capacity-reservation-id",
    "capacity-reservation-interruptible",
    "capacity-reservation-type",
    "instance-accelerator-count",
    "instance-accelerator-manufacturer",
    "instance-accelerator-name",
    "instance-capability-flex",
    "instance-category",
    "instance-cpu",
    "instance-cpu-manufacturer",
    "instance-cpu-sustained-clock-speed-mhz",
    "instance-ebs-bandwidth",
    "instance-encryption-in-transit-supported",
    "instance-family",
    "instance-generation",
    "instance-gpu-count",
    "instance-gpu-manufacturer",
    "instance-gpu-memory",
    "instance-gpu-name",
    "instance-hypervisor",
    "instance-local-nvme",
    "instance-memory",
    "instance-network-bandwidth",
    "instance-size",
    "instance-tenancy",
    "nitro-sandbox",
    "placement-group-id",
    "placement-group-partition",
];

const WELL_KNOWN: [&str; 9] = [NODE_POOL, ZONE, REGION, ZONE_ID, INSTANCE_TYPE, ARCH, OS, CAPACITY_TYPE, WINDOWS_BUILD];

/// Whether a requirement may name `key` although no NodePool defines it.
#[must_use]
pub fn well_known(key: &str) -> bool {
    WELL_KNOWN.contains(&key) || key.strip_prefix(AWS_PREFIX).is_some_and(|rest| AWS_WELL_KNOWN.contains(&rest))
}

/// Why no pod or NodePool may ask for `key`, if so.
#[must_use]
pub fn restricted(key: &str) -> Option<&'static str> {
    if key == HOSTNAME {
        return Some("a node's host name is not known before it exists");
    }
    if well_known(key) {
        return None;
    }
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    let inside = |of: &str| domain == of || domain.strip_suffix(of).is_some_and(|rest| rest.ends_with('.'));
    if inside("karpenter.sh") || inside("karpenter.k8s.aws") {
        return Some("labels of this domain are set by the autoscaler, and this one is not known");
    }
    None
}

/// The stable key for a deprecated spelling, or the key itself.
#[must_use]
pub fn normalized(key: &str) -> &str {
    match key {
        "failure-domain.beta.kubernetes.io/zone" | "topology.ebs.csi.aws.com/zone" => ZONE,
        "failure-domain.beta.kubernetes.io/region" => REGION,
        "beta.kubernetes.io/arch" => ARCH,
        "beta.kubernetes.io/os" => OS,
        "beta.kubernetes.io/instance-type" => INSTANCE_TYPE,
        other => other,
    }
}

/// Whether a taint with this key belongs to a node's start and is gone once it is initialized.
#[must_use]
pub fn ephemeral_taint(key: &str) -> bool {
    matches!(
        key,
        "node.kubernetes.io/not-ready" | UNREACHABLE_TAINT | "node.cloudprovider.kubernetes.io/uninitialized" | UNREGISTERED_TAINT
    ) || key.starts_with(READINESS_PREFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restricted_keys_are_those_of_the_autoscaler_that_nobody_knows() {
        for (key, free) in [
            (ZONE, true),
            ("karpenter.k8s.aws/instance-category", true),
            ("karpenter.k8s.aws/instance-colour", false),
            ("karpenter.sh/whatever", false),
            ("a.karpenter.sh/x", false),
            ("notkarpenter.sh/x", true),
            (HOSTNAME, false),
            ("example.com/team", true),
            ("node.kubernetes.io/anything", true),
        ] {
            assert_eq!(restricted(key).is_none(), free, "{key}");
        }
    }
}
