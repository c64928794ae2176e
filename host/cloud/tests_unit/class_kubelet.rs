//! Kubelet settings: taken, refused, not applied.

use serde_json::json;

use super::*;

fn fields(value: serde_json::Value) -> Fields {
    serde_json::from_value(value).unwrap()
}

#[test]
fn what_kubelet_takes_is_taken() {
    let good = json!({
        "kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "maxPods": 110, "podsPerCore": 0, "clusterDNS": ["10.0.0.10", "fd00::10"], "cpuCFSQuota": false, "syncFrequency": "1m30s",
        "evictionHard": {"memory.available": "5%", "nodefs.available": "1Gi"}, "evictionSoft": {"pid.available": "10%"},
        "evictionSoftGracePeriod": {"pid.available": "1m"}, "evictionMaxPodGracePeriod": 60, "imageGCHighThresholdPercent": 85,
        "imageGCLowThresholdPercent": 80, "kubeReserved": {"cpu": "100m", "ephemeral-storage": "1Gi"}, "systemReserved": {"pid": "100"},
        "authentication": {"x509": {"clientCAFile": "/ca"}, "webhook": {"cacheTTL": "2m"}}, "featureGates": {"A": true},
        "logging": {"flushFrequency": 5000, "vmodule": [{"filePattern": "a", "verbosity": 3}], "options": {"json": {"infoBufferSize": "4k"}}},
        "reservedMemory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}], "memoryThrottlingFactor": 0.9, "tracing": null,
        "shutdownGracePeriodByPodPriority": [{"priority": -1, "shutdownGracePeriodSeconds": 10}], "staticPodURLHeader": {"a": ["b"]},
        "crashLoopBackOff": {"maxContainerRestartPeriod": "5m"}, "userNamespaces": {"idsPerPod": 65536},
    });
    assert_eq!(invalid(&fields(good.clone())), [""; 0]);
    assert_eq!(expressions(&fields(good)), [""; 0]);
}

#[test]
fn what_kubelet_does_not_take_is_named() {
    for (written, wrong) in [
        (json!({"MaxPods": 1}), "spec.kubelet: kubelet knows no field \"MaxPods\", is maxPods meant?"),
        (json!({"colour": 1}), "spec.kubelet: kubelet knows no field \"colour\""),
        (json!({"authentication": {"x509": {"caFile": "x"}}}), "spec.kubelet.authentication.x509: kubelet knows no field \"caFile\""),
        (json!({"memorySwap": []}), "spec.kubelet.memorySwap: [] is not a mapping"),
        (json!({"maxPods": 1.5}), "spec.kubelet.maxPods: 1.5 is not a whole number"),
        (json!({"maxPods": 3_000_000_000_i64}), "spec.kubelet.maxPods: 3000000000 is not a whole number"),
        (json!({"cpuCFSQuota": "true"}), "spec.kubelet.cpuCFSQuota: \"true\" is not true or false"),
        (json!({"syncFrequency": 60}), "spec.kubelet.syncFrequency: 60 is not a duration such as 1m30s"),
        (json!({"clusterDNS": "10.0.0.10"}), "spec.kubelet.clusterDNS: \"10.0.0.10\" is not a list"),
        (json!({"clusterDNS": [1]}), "spec.kubelet.clusterDNS[0]: 1 is not a text"),
        (json!({"kubeReserved": {"cpu": 1}}), "spec.kubelet.kubeReserved[cpu]: 1 is not a text"),
        (json!({"logging": {"verbosity": -1}}), "spec.kubelet.logging.verbosity: -1 is not a whole number of at least 0"),
        (
            json!({"reservedMemory": [{"limits": {"memory": "x"}}]}),
            "spec.kubelet.reservedMemory[0].limits[memory]: \"x\" is not a quantity such as 500Mi",
        ),
        (json!({"maxPods": -1}), "spec.kubelet.maxPods: -1 is below zero"),
        (json!({"podsPerCore": -1}), "spec.kubelet.podsPerCore: -1 is below zero"),
        (json!({"imageGCHighThresholdPercent": 101}), "spec.kubelet.imageGCHighThresholdPercent: 101 is no percentage from 0 to 100"),
        (
            json!({"imageGCHighThresholdPercent": 50, "imageGCLowThresholdPercent": 50}),
            "spec.kubelet.imageGCHighThresholdPercent: 50 must be more than imageGCLowThresholdPercent, which is 50",
        ),
        (
            json!({"kubeReserved": {"gpu": "1"}}),
            "spec.kubelet.kubeReserved: \"gpu\" cannot be reserved; write one of cpu, memory, ephemeral-storage, pid",
        ),
        (json!({"systemReserved": {"cpu": "-1"}}), "spec.kubelet.systemReserved[cpu]: \"-1\" is below zero"),
        (
            json!({"evictionHard": {"memory": "5%"}}),
            "spec.kubelet.evictionHard: \"memory\" is no eviction signal; write one of memory.available, nodefs.available, \
             nodefs.inodesFree, imagefs.available, imagefs.inodesFree, pid.available",
        ),
        (
            json!({"evictionHard": {"memory.available": "101%"}}),
            "spec.kubelet.evictionHard[memory.available]: \"101%\" is no percentage from 0% to 100%",
        ),
        (json!({"evictionHard": {"memory.available": "-1Gi"}}), "spec.kubelet.evictionHard[memory.available]: \"-1Gi\" is below zero"),
        (
            json!({"evictionMinimumReclaim": {"memory.available": "some"}}),
            "spec.kubelet.evictionMinimumReclaim[memory.available]: \"some\" is neither a percentage such as 5% nor a quantity such as 500Mi",
        ),
        (
            json!({"evictionSoft": {"memory.available": "5%"}, "evictionSoftGracePeriod": {"memory.available": "soon"}}),
            "spec.kubelet.evictionSoftGracePeriod[memory.available]: \"soon\" is no duration such as 1m30s",
        ),
        (
            json!({"evictionSoftGracePeriod": {"memory.available": "1m"}}),
            "spec.kubelet.evictionSoftGracePeriod[memory.available]: needs an evictionSoft of the same signal beside it",
        ),
        (
            json!({"registerWithTaints": []}),
            "spec.kubelet.registerWithTaints: taints of nodes belong to the NodePool; write spec.template.spec.taints there",
        ),
    ] {
        assert_eq!(invalid(&fields(written.clone())), [wrong], "{written}");
    }
}

#[test]
fn expressions_are_known_by_their_fields() {
    let written = json!({"maxPods": "110", "kubeReserved": {"cpu": "vcpus * 10", "memory": "1Gi"}, "systemReserved": {"pid": "x"}, "clusterDomain": "a * b"});
    assert_eq!(invalid(&fields(written.clone())), [""; 0]);
    assert_eq!(expressions(&fields(written)), ["maxPods", "kubeReserved[cpu]", "systemReserved[pid]"]);
}

#[test]
fn families_apply_what_they_apply() {
    let written = fields(json!({"podsPerCore": 1, "registryBurst": 1, "maxPods": 1, "clusterDNS": ["a", "b"]}));
    for (family, names, dns) in [
        (Family::Al2023, "", false),
        (Family::Custom, "", false),
        (Family::Al2, "would not get registryBurst;", true),
        (Family::Windows2022, "would not get registryBurst;", true),
        (Family::Bottlerocket, "would not get podsPerCore, registryBurst;", true),
    ] {
        let wrong = unsupported(family, &written).unwrap_or_default();
        assert_eq!((wrong.contains(names), wrong.contains("takes one address"), wrong.is_empty()), (true, dns, !dns), "{family}: {wrong}");
    }
}
