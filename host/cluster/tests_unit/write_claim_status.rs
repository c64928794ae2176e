//! What becomes of a claim, as patches: nothing for what is so already.

use serde_json::json;

use super::*;
use crate::from::{Cx, node_claim as read};

/// A claim as Karpenter leaves it when its node is in use.
fn theirs() -> api::NodeClaim {
    let condition = |kind: &str, status: &str, reason: &str, second: u32| {
        json!({ "type": kind, "status": status, "reason": reason, "message": "", "observedGeneration": 1,
            "lastTransitionTime": format!("2026-01-01T00:00:{second:02}Z") })
    };
    serde_json::from_value(json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {
            "name": "default-x7k2p", "uid": "u", "generation": 1, "resourceVersion": "9", "creationTimestamp": "2026-01-01T00:00:00Z",
            "finalizers": ["karpenter.sh/termination"],
            "annotations": { "karpenter.sh/nodepool-hash": "1", "karpenter.k8s.aws/tagged": "true" },
            "labels": {
                "karpenter.sh/nodepool": "default", "karpenter.k8s.aws/ec2nodeclass": "main", "karpenter.sh/capacity-type": "spot",
                "node.kubernetes.io/instance-type": "c6a.2xlarge", "topology.kubernetes.io/zone": "us-east-1a",
            },
        },
        "spec": {
            "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "main" }, "expireAfter": "720h",
            "requirements": [{ "key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["c6a.2xlarge"], "minValues": 1 }],
            "resources": { "requests": { "cpu": "5150m", "pods": "8" } },
        },
        "status": {
            "nodeName": "ip-10-0-0-1.ec2.internal", "providerID": "aws:///us-east-1a/i-1", "imageID": "ami-1",
            "lastPodEventTime": "2026-01-01T00:05:00Z",
            "capacity": { "cpu": "8", "memory": "15155Mi", "ephemeral-storage": "20Gi", "pods": "58", "vpc.amazonaws.com/pod-eni": "38" },
            "allocatable": { "cpu": "7910m", "memory": "14162Mi", "ephemeral-storage": "17Gi", "pods": "58", "vpc.amazonaws.com/pod-eni": "0" },
            "conditions": [
                condition("Launched", "True", "Launched", 2), condition("Registered", "True", "Registered", 30),
                condition("Initialized", "True", "Initialized", 40), condition("Consolidatable", "True", "Consolidatable", 41),
                condition("Ready", "True", "Ready", 40),
            ],
        },
    }))
    .expect("it has the shape of the API")
}

#[test]
fn a_claim_that_is_taken_over_is_not_written() {
    let live = theirs();
    let claim = read(&live, &mut Cx::new(true));
    assert_eq!(update(&live, &claim.labels, &claim.status, &[], Timestamp(0)), None);
}

#[test]
fn what_changed_is_written_and_no_more() {
    let live = theirs();
    let mut claim = read(&live, &mut Cx::new(true));
    claim.labels.insert(keys::CAPACITY_TYPE.to_owned(), "on-demand".to_owned());
    claim.status.capacity.set("vpc.amazonaws.com/pod-eni", 0);
    claim.status.last_pod_event = Some(Timestamp(1_767_226_000_900));
    claim.status.price.0 = 170_000;
    let patch = update(&live, &claim.labels, &claim.status, &[], Timestamp(0)).expect("something changed");
    let metadata =
        json!({ "labels": { "karpenter.sh/capacity-type": "on-demand" }, "annotations": { "whittle.sh/price-micros": "170000" } });
    let status = json!({ "capacity": { "vpc.amazonaws.com/pod-eni": null }, "lastPodEventTime": "2026-01-01T00:06:40Z" });
    assert_eq!(patch, ObjectPatch { object: Some(json!({ "metadata": metadata })), status: Some(json!({ "status": status })) });
}
