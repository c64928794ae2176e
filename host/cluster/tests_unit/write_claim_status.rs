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
fn a_claim_of_a_person_gets_the_finalizer_with_the_first_write() {
    let mut live = theirs();
    for (had, wanted) in [
        (None, json!(["karpenter.sh/termination"])),
        (Some(vec!["example.com/mine".to_owned()]), json!(["example.com/mine", "karpenter.sh/termination"])),
    ] {
        live.metadata.finalizers = had;
        let claim = read(&live, &mut Cx::new(true));
        let patch = update(&live, &claim.labels, &claim.status, &[], Timestamp(0)).expect("it has none");
        assert_eq!(patch, ObjectPatch { object: Some(json!({ "metadata": { "finalizers": wanted } })), status: None });
    }
    live.metadata.finalizers = None;
    live.metadata.deletion_timestamp = live.metadata.creation_timestamp.clone();
    let claim = read(&live, &mut Cx::new(true));
    assert_eq!(update(&live, &claim.labels, &claim.status, &[], Timestamp(0)), None, "nothing may be added to what goes");
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

fn conditions_of(patch: &ObjectPatch) -> Vec<[String; 4]> {
    let all = patch.status.as_ref().and_then(|s| s["status"]["conditions"].as_array().cloned()).unwrap_or_default();
    let text = |c: &serde_json::Value, key: &str| c[key].as_str().unwrap_or_default().to_owned();
    all.iter().map(|c| ["type", "status", "reason", "lastTransitionTime"].map(|key| text(c, key))).collect()
}

/// What is written is read again as it was, whatever a claim goes through.
#[test]
fn every_stage_of_a_claim_is_written_and_read_again() {
    let second = |n: i64| Timestamp(1_767_226_000_000 + 1000 * n);
    let mut live = theirs();
    let mut status = read(&live, &mut Cx::new(true)).status;
    assert!(status.consolidatable.is_some());
    status.consolidatable = None;
    status.drifted = Some(("AMIDrift".to_owned(), second(1)));
    status.disrupted = Some(("Drifted".to_owned(), second(2)));
    status.inconsistent = Some(("cpu: 7 of 8".to_owned(), second(3)));
    for (drained, detached) in [
        (Milestone::Since(second(4)), Milestone::Ahead),
        (Milestone::Done(second(9)), Milestone::Since(second(9))),
        (Milestone::Done(second(9)), Milestone::GivenUp(second(60))),
        (Milestone::GivenUp(second(61)), Milestone::Done(second(62))),
    ] {
        (status.drained, status.volumes_detached) = (drained, detached);
        status.instance_terminating = matches!(detached, Milestone::Done(_)).then_some(second(63));
        let patch = update(&live, &read(&live, &mut Cx::new(true)).labels, &status, &[], second(99)).expect("something changed");
        let all = &patch.status.as_ref().expect("the status changed")["status"]["conditions"];
        let mut shown = json!(live);
        shown["status"]["conditions"] = all.clone();
        live = serde_json::from_value(shown).expect("it has the shape of the API");
        assert_eq!(read(&live, &mut Cx::new(true)).status, status, "{drained:?} {detached:?}");
    }
    let wanted = [
        ["Drifted", "True", "AMIDrift", "2026-01-01T00:06:41Z"],
        ["DisruptionReason", "True", "Drifted", "2026-01-01T00:06:42Z"],
        ["ConsistentStateFound", "False", "ConsistencyCheckFailed", "2026-01-01T00:06:43Z"],
        ["Drained", "False", "TerminationGracePeriodElapsed", "2026-01-01T00:07:41Z"],
        ["VolumesDetached", "True", "VolumesDetached", "2026-01-01T00:07:42Z"],
        ["InstanceTerminating", "True", "InstanceTerminating", "2026-01-01T00:07:43Z"],
    ];
    let patch = ObjectPatch {
        object: None,
        status: Some(json!({ "status": { "conditions": live.status.as_ref().and_then(|s| s.conditions.clone()) } })),
    };
    let got: Vec<[String; 4]> = conditions_of(&patch).into_iter().filter(|c| wanted.iter().any(|w| w[0] == c[0])).collect();
    assert_eq!(got, wanted.map(|row| row.map(str::to_owned)));
}

#[test]
fn what_no_longer_holds_is_taken_away() {
    let live = theirs();
    let mut claim = read(&live, &mut Cx::new(true));
    claim.status.consolidatable = None;
    let patch = update(&live, &claim.labels, &claim.status, &[], Timestamp(0)).expect("something changed");
    let kinds: Vec<String> = conditions_of(&patch).into_iter().map(|[kind, ..]| kind).collect();
    assert_eq!(kinds, ["Launched", "Registered", "Initialized", "Ready"]);
}
