//! What pods and nodes refer to, as the engine gets it: storage, budgets, limit ranges, overlays.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use serde_json::{Value, json};
use whittle_cluster::{Object, Strictness, read};
use whittle_model::{
    LabelSelector, Labels, Micros, NodeOverlay, PodKey, PriceChange, Requirements, Resources, StorageClass, Volume, VolumeClaim,
    VolumeClaimPhase,
};

fn object(value: &Value) -> Object {
    let objects = read(&value.to_string(), "f", Strictness::Strict).unwrap();
    objects.into_iter().next().unwrap().object
}

fn faults(value: &Value) -> String {
    read(&value.to_string(), "f", Strictness::Strict).map(|_| value.to_string()).unwrap_err().to_string()
}

fn volume(spec: &Value, labels: &Value) -> Volume {
    let written = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v", "labels": labels}, "spec": spec});
    let Object::Volume(volume) = object(&written) else { unreachable!("{written}") };
    *volume
}

fn words(terms: &[Requirements]) -> Vec<String> {
    terms.iter().map(ToString::to_string).collect()
}

#[test]
fn a_claim_says_how_far_it_is() {
    let claim = |more: Value| {
        let mut written =
            json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "shop"}, "spec": {}});
        for (key, value) in more.as_object().unwrap() {
            for (inner, value) in value.as_object().unwrap() {
                written[key][inner] = value.clone();
            }
        }
        let Object::VolumeClaim(claim) = object(&written) else { unreachable!("{written}") };
        *claim
    };
    let bare = VolumeClaim { key: PodKey::new("shop", "data"), ..VolumeClaim::default() };
    assert_eq!(claim(json!({})), bare);
    assert_eq!(claim(json!({"spec": {"storageClassName": ""}})).storage_class.as_deref(), Some(""));
    let bound = claim(json!({
        "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes", "volume.beta.kubernetes.io/storage-class": "old"}},
        "spec": {"volumeName": "v", "storageClassName": "new"}, "status": {"phase": "Bound"},
    }));
    let wanted = VolumeClaim {
        phase: VolumeClaimPhase::Bound,
        volume: "v".to_owned(),
        storage_class: Some("old".to_owned()),
        bind_completed: true,
        ..bare.clone()
    };
    assert_eq!(bound, wanted);
    let lost = claim(json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": {"phase": "Lost"}}));
    assert_eq!(lost, VolumeClaim { phase: VolumeClaimPhase::Lost, deleting: true, ..bare });
}

#[test]
fn a_volume_is_counted_under_its_driver() {
    let none = json!({});
    for (spec, driver, handle, local) in [
        (json!({"csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1"}}), "ebs.csi.aws.com", "vol-1", false),
        (json!({"awsElasticBlockStore": {"volumeID": "aws://us-east-1a/vol-2"}}), "ebs.csi.aws.com", "vol-2", false),
        (json!({"awsElasticBlockStore": {"volumeID": "vol-3"}}), "ebs.csi.aws.com", "vol-3", false),
        (json!({"gcePersistentDisk": {"pdName": "d"}}), "pd.csi.storage.gke.io", "d", false),
        (json!({"nfs": {"path": "/", "server": "s"}}), "", "", false),
        (json!({"local": {"path": "/d"}}), "", "", true),
        (json!({"hostPath": {"path": "/d"}}), "", "", true),
    ] {
        let volume = volume(&spec, &none);
        assert_eq!((volume.driver.as_str(), volume.handle.as_str(), volume.local), (driver, handle, local), "{spec}");
        assert!(volume.node_terms.is_empty());
    }
}

#[test]
fn every_term_of_a_volume_is_an_alternative() {
    let zone = |zone: &str| json!({"matchExpressions": [{"key": "topology.ebs.csi.aws.com/zone", "operator": "In", "values": [zone]}]});
    let spec = |terms: Value| json!({"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}});
    let none = json!({});
    let zones = ["topology.kubernetes.io/zone In [a]", "topology.kubernetes.io/zone In [c]"];
    assert_eq!(words(&volume(&spec(json!([zone("a"), {}, zone("c")])), &none).node_terms), zones);
    let void = volume(&spec(json!([{}])), &none).node_terms;
    assert!(void.len() == 1 && !void[0].met_by(&Labels::new()), "a demand whose every term is void is never met");
    let labels = json!({"failure-domain.beta.kubernetes.io/zone": "a__b", "app": "x"});
    assert_eq!(words(&volume(&json!({}), &labels).node_terms), ["topology.kubernetes.io/zone In [a, b]"]);
    assert_eq!(words(&volume(&spec(json!([zone("a")])), &labels).node_terms), ["topology.kubernetes.io/zone In [a]"]);
    let fields = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"},
        "spec": spec(json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node"]}]}]))});
    assert!(faults(&fields).contains("matchFields: names nodes"));
}

#[test]
fn a_class_says_where_and_when_its_volumes_are_made() {
    let class = |more: &Value| {
        let mut written = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "c"}, "provisioner": "kubernetes.io/aws-ebs"});
        for (key, value) in more.as_object().unwrap() {
            written[key] = value.clone();
        }
        let Object::StorageClass(class) = object(&written) else { unreachable!("{written}") };
        *class
    };
    let bare = StorageClass { name: "c".to_owned(), provisioner: "ebs.csi.aws.com".to_owned(), immediate: true, ..StorageClass::default() };
    assert_eq!(class(&json!({})), bare);
    let full = class(&json!({
        "metadata": {"name": "c", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}, "provisioner": "d",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": [{"matchLabelExpressions": [{"key": "failure-domain.beta.kubernetes.io/zone", "values": ["a", "b"]}]}, {}],
    }));
    assert_eq!((full.immediate, full.default, full.provisioner.as_str()), (false, true, "d"));
    assert_eq!(words(&full.topologies), ["topology.kubernetes.io/zone In [a, b]"]);
    let void = class(&json!({"allowedTopologies": [{}]})).topologies;
    assert!(void.len() == 1 && !void[0].met_by(&Labels::new()));
}

#[test]
fn nodes_hold_volumes_up_to_their_limits() {
    let limits = json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": "n"}, "spec": {"drivers": [
        {"name": "a", "nodeID": "i", "allocatable": {"count": 25}}, {"name": "b", "nodeID": "i"}, {"name": "c", "nodeID": "i", "allocatable": {}},
    ]}});
    let Object::VolumeLimits(limits) = object(&limits) else { unreachable!("{limits}") };
    assert_eq!((limits.node.as_str(), limits.drivers.into_iter().collect::<Vec<_>>()), ("n", vec![("a".to_owned(), 25)]));
    let held = json!({"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": "x"},
        "spec": {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "v"}}});
    let Object::VolumeAttachment(held) = object(&held) else { unreachable!("{held}") };
    assert_eq!((held.name.as_str(), held.node.as_str(), held.volume.as_str()), ("x", "n", "v"));
}

#[test]
fn a_budget_knows_whether_it_ever_lets_a_pod_go() {
    let budget = |spec: Value| {
        let written = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": spec});
        let Object::DisruptionBudget(budget) = object(&written) else { unreachable!("{written}") };
        budget
    };
    for (spec, never) in [
        (json!({"maxUnavailable": 0}), true),
        (json!({"maxUnavailable": "0%"}), true),
        (json!({"maxUnavailable": "00%"}), true),
        (json!({"maxUnavailable": "10%"}), false),
        (json!({"maxUnavailable": 1}), false),
        (json!({"minAvailable": "100%"}), true),
        (json!({"minAvailable": 100}), false),
        (json!({"minAvailable": "99%"}), false),
        (json!({}), false),
    ] {
        assert_eq!(budget(spec.clone()).allowing(3).never, never, "{spec}");
    }
    let labels = Labels::new();
    assert!(!budget(json!({})).allowing(1).selector.matches(&labels), "an absent selector selects nothing");
    assert_eq!(budget(json!({"selector": {}})).allowing(1).selector, LabelSelector::default(), "an empty one selects everything");
    assert!(budget(json!({"unhealthyPodEvictionPolicy": "AlwaysAllow"})).always_allow_unready);
    assert!(!budget(json!({"unhealthyPodEvictionPolicy": "IfHealthyBudget"})).always_allow_unready);
}

#[test]
fn a_limit_range_fills_in_the_first_that_it_finds() {
    let range = |limits: Value| {
        let written = json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "r"}, "spec": {"limits": limits}});
        let Object::LimitRange(range) = object(&written) else { unreachable!("{written}") };
        range.requests
    };
    let cpu = |milli: i64| Resources::of(&[("cpu", milli)]);
    for (item, wanted) in [
        (
            json!({"type": "Container", "defaultRequest": {"cpu": "1"}, "default": {"cpu": 2}, "max": {"cpu": 3}, "min": {"cpu": 4}}),
            cpu(1000),
        ),
        (json!({"type": "Container", "default": {"cpu": 2}, "max": {"cpu": 3}, "min": {"cpu": 1}}), cpu(2000)),
        (json!({"type": "Container", "max": {"cpu": 3}, "min": {"cpu": 1}}), cpu(3000)),
        (json!({"type": "Container", "min": {"cpu": 1}}), cpu(1000)),
        (json!({"type": "Pod", "max": {"cpu": 3}}), cpu(0)),
    ] {
        assert_eq!(range(json!([item])), wanted, "{item}");
    }
}

fn overlay(spec: Value) -> Value {
    json!({"apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": {"name": "o"}, "spec": spec})
}

#[test]
fn an_overlay_changes_a_price_or_adds_resources() {
    let read = |spec: Value| {
        let Object::NodeOverlay(overlay) = object(&overlay(spec)) else { unreachable!("an overlay") };
        *overlay
    };
    let full = read(json!({
        "requirements": [
            {"key": "karpenter.sh/nodepool", "operator": "In", "values": ["p"]},
            {"key": "beta.kubernetes.io/instance-type", "operator": "NotIn", "values": ["m5.large"]},
            {"key": "karpenter.k8s.aws/instance-cpu", "operator": "Gte", "values": ["4"]},
        ],
        "priceAdjustment": "-15%", "capacity": {"smarter-devices/fuse": "2"}, "weight": 10,
    }));
    let requirements: Vec<String> = full.requirements.iter().map(ToString::to_string).collect();
    let wanted =
        ["karpenter.k8s.aws/instance-cpu >= 4", "karpenter.sh/nodepool In [p]", "node.kubernetes.io/instance-type NotIn [m5.large]"];
    assert_eq!(requirements, wanted);
    let NodeOverlay { name, weight, price, capacity, .. } = full;
    assert_eq!((name.as_str(), weight, price), ("o", 10, Some(PriceChange::Scale(-150_000))));
    assert_eq!(capacity, Resources::of(&[("smarter-devices/fuse", 2)]));
    let price = read(json!({"requirements": [], "price": "0.085"}));
    assert_eq!((price.weight, price.price), (0, Some(PriceChange::Absolute(Micros(85_000)))));
}

#[test]
fn an_overlay_that_breaks_a_rule_is_refused() {
    let requirement =
        |key: &str, operator: &str, values: Value| json!({"requirements": [{"key": key, "operator": operator, "values": values}]});
    for (spec, part) in [
        (json!({"requirements": [], "price": "1", "priceAdjustment": "+1"}), "price and priceAdjustment exclude each other"),
        (json!({"requirements": [], "price": "-1"}), "\"-1\" is no price"),
        (json!({"requirements": [], "priceAdjustment": "-101%"}), "no less than -100%"),
        (json!({"requirements": [], "capacity": {"cpu": "1"}}), "cpu is what the instance type has"),
        (json!({"requirements": [], "weight": 10_001}), "weight: is out of range"),
        (json!({"requirements": [], "weight": 0}), "weight: is out of range"),
        (requirement("a", "In", json!([])), "needs at least one value"),
        (requirement("a", "NotIn", json!([])), "needs at least one value"),
        (requirement("a", "Gt", json!(["x"])), "exactly one non-negative integer"),
        (requirement("a", "Like", json!(["x"])), "\"Like\" is not known"),
        (requirement("kubernetes.io/hostname", "Exists", json!([])), "cannot be used"),
        (requirement("karpenter.sh/odd", "Exists", json!([])), "cannot be used"),
        (requirement("karpenter.sh/capacity-type", "In", json!(["cheap"])), "\"cheap\" is not known"),
    ] {
        let said = faults(&overlay(spec.clone()));
        assert!(said.contains(part), "{spec}\n{said}");
    }
}

#[test]
fn each_pod_of_a_stateful_set_gets_the_claims_of_its_templates() {
    let set = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"},
        "spec": {
            "serviceName": "db", "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c"}]}},
            "volumeClaimTemplates": [
                {"metadata": {"name": "data"}, "spec": {"storageClassName": "gp3"}}, {"metadata": {"name": "log"}, "spec": {}},
            ],
        },
    });
    let Object::Workload(set) = object(&set) else { unreachable!("{set}") };
    let claims: Vec<(&str, Option<&str>)> = set.volume_claims.iter().map(|c| (c.name.as_str(), c.storage_class.as_deref())).collect();
    assert_eq!(claims, [("data", Some("gp3")), ("log", None)]);
    assert_eq!((set.template.volumes.len(), set.template.unsupported.len()), (0, 0));
}
