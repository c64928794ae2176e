//! What pools, classes and policies say of themselves, and the events.

use std::time::Duration;

use serde_json::{Value, json};
use whittle_cluster::api;
use whittle_cluster::write::{
    ClassFound, ClassState, EventKind, HashStamp, Note, ObjectPatch, OverlayState, PolicyCounts, PolicyFound, PolicyState, PoolUsage,
    Recorder, RegistrationHealth, Standing, Subject, Written, node_class_patch, node_class_release, node_overlay_patch, node_pool_patch,
    scoring_policy_patch,
};
use whittle_model::Resources;

use super::fake::Fake;
use super::{CLAIM, at, golden, leading};

const POOL: &str = "/apis/karpenter.sh/v1/nodepools/default";

fn pool(labels: Value) -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool",
        "metadata": { "name": "default", "uid": "pool-uid", "generation": 2, "creationTimestamp": "2026-01-01T00:00:00Z" },
        "spec": { "template": { "metadata": { "labels": labels }, "spec": {
            "requirements": [], "expireAfter": "720h",
            "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "main" },
        } } },
    })
}

fn usage() -> PoolUsage {
    PoolUsage { resources: Resources::of(&[("cpu", 2000), ("memory", 8 << 30)]), nodes: 1 }
}

pub fn conditions(object: &Value) -> Vec<String> {
    let all = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    all.iter()
        .map(|c| {
            format!("{}={} {}: {} since {}", c["type"], c["status"], c["reason"], c["message"], c["lastTransitionTime"]).replace('"', "")
        })
        .collect()
}

/// Looks at the pool and writes what has to change; whether anything had to.
async fn keep(fake: &Fake, class: &ClassState, policies: &PolicyState, health: &RegistrationHealth, second: i64) -> bool {
    let (writer, _gate) = leading(fake);
    let live: api::NodePool = serde_json::from_value(fake.get(POOL).unwrap()).unwrap();
    let Some(patch) = node_pool_patch(&live, class, &usage(), policies, health, at(second)) else { return false };
    assert_eq!(writer.keep_node_pool(&live.metadata, &patch).await.unwrap(), Written::Done);
    true
}

#[tokio::test(start_paused = true)]
async fn a_pool_says_how_it_stands_and_is_written_only_when_that_changes() {
    let fake = Fake::default();
    fake.put(POOL, pool(json!({ "team": "a" })));
    let ready = ClassState::Ready { generation: 4 };
    let mut told = Vec::new();
    let broken = PolicyState::NotReady { reason: "PolicyNotFound".to_owned(), message: "no ScoringPolicy team-a".to_owned() };
    let unhealthy =
        RegistrationHealth::Unhealthy { reason: "RegistrationFailed".to_owned(), message: "Failed to register node".to_owned() };
    let (none, unchanged) = (&PolicyState::None, &RegistrationHealth::Unchanged);
    let steps = [
        (&ClassState::Missing, none, unchanged),
        (&ready, none, unchanged),
        (&ready, &broken, &unhealthy),
        (&ready, none, unchanged),
        (&ClassState::Unknown { generation: 5 }, &PolicyState::Ready, unchanged),
    ];
    for (second, (class, policies, health)) in steps.into_iter().enumerate() {
        let second = i64::try_from(second).unwrap();
        assert!(keep(&fake, class, policies, health, second).await);
        assert!(!keep(&fake, class, policies, &RegistrationHealth::Unchanged, second + 100).await, "step {second} is not written twice");
        told.push(format!("step {second}"));
        told.extend(conditions(&fake.get(POOL).unwrap()));
    }
    golden("pool-conditions", &told);
    let live = fake.get(POOL).unwrap();
    let resources = json!({ "cpu": "2", "memory": "8Gi", "pods": "0", "ephemeral-storage": "0", "nodes": "1" });
    assert_eq!((&live["status"]["resources"], &live["status"]["nodes"]), (&resources, &json!(1)));
    assert_eq!(live["metadata"]["annotations"]["karpenter.sh/nodepool-hash-version"], "v3");
    assert!(fake.log().iter().all(|line| !line.starts_with("GET")));
}

#[tokio::test(start_paused = true)]
async fn a_look_from_before_the_last_write_is_not_written_from() {
    let fake = Fake::default();
    let (writer, _gate) = leading(&fake);
    fake.put(POOL, pool(json!({})));
    let live: api::NodePool = serde_json::from_value(fake.get(POOL).unwrap()).unwrap();
    let patch = |nodes| {
        let usage = PoolUsage { nodes, ..PoolUsage::default() };
        node_pool_patch(&live, &ClassState::Missing, &usage, &PolicyState::None, &RegistrationHealth::Unchanged, at(0)).unwrap()
    };
    assert_eq!(writer.keep_node_pool(&live.metadata, &patch(1)).await.unwrap(), Written::Done);
    fake.log();
    assert_eq!(writer.keep_node_pool(&live.metadata, &patch(2)).await.unwrap(), Written::Stale);
    assert!(fake.log().is_empty(), "it would only have conflicted");
    fake.put(POOL, pool(json!({ "changed": "by somebody" })));
    let (writer, _gate) = leading(&fake);
    assert_eq!(writer.keep_node_pool(&live.metadata, &patch(2)).await.unwrap(), Written::Stale);
    assert_eq!(fake.log().len(), 1);
}

#[test]
fn a_pool_that_breaks_a_rule_says_which() {
    let live: api::NodePool = serde_json::from_value(pool(json!({ "karpenter.sh/whatever": "x" }))).unwrap();
    let ready = ClassState::Ready { generation: 1 };
    let patch = node_pool_patch(&live, &ready, &usage(), &PolicyState::None, &RegistrationHealth::Unchanged, at(0)).unwrap();
    let told = conditions(&patch.status.unwrap());
    assert!(told[0].starts_with("ValidationSucceeded=False NodePoolValidationFailed: spec.template.metadata.labels"), "{told:#?}");
    assert!(told[3].starts_with("Ready=False UnhealthyDependents: ValidationSucceeded=False"), "{told:#?}");
}

#[test]
fn a_class_is_ready_when_all_that_it_depends_on_is() {
    let mut live: api::EC2NodeClass = serde_json::from_value(json!({
        "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass",
        "metadata": { "name": "main", "uid": "u", "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z", "resourceVersion": "7" },
        "spec": { "amiSelectorTerms": [{ "alias": "al2023@latest" }], "subnetSelectorTerms": [{ "id": "subnet-1" }],
            "securityGroupSelectorTerms": [{ "id": "sg-1" }], "role": "r" },
    }))
    .unwrap();
    let subnet = |id: &str| api::FoundSubnet { id: id.to_owned(), zone: "us-east-1a".to_owned(), zone_id: Some("use1-az1".to_owned()) };
    let found = ClassFound {
        subnets: Some(vec![subnet("subnet-1")]),
        security_groups: Some(Vec::new()),
        instance_profile: Some("p".to_owned()),
        ..ClassFound::default()
    };
    let mut standings: Vec<Standing> =
        ["AMIsReady", "SubnetsReady", "InstanceProfileReady", "ValidationSucceeded", "PlacementGroupReady"].map(Standing::holds).to_vec();
    let first = node_class_patch(&live, &found, &standings, None, at(9)).unwrap();
    let object = first.object.unwrap();
    assert_eq!(object["metadata"]["finalizers"], json!(["karpenter.k8s.aws/termination"]));
    assert_eq!(object["metadata"]["annotations"]["karpenter.k8s.aws/ec2nodeclass-hash-version"], "v6");
    let status = first.status.unwrap();
    assert_eq!(
        conditions(&status).last().unwrap(),
        "Ready=Unknown ReconcilingDependents: SecurityGroupsReady=Unknown since 2026-01-01T00:00:00Z"
    );
    assert_eq!(status["status"]["subnets"], json!([{ "id": "subnet-1", "zone": "us-east-1a", "zoneID": "use1-az1" }]));
    assert!(status["status"].get("securityGroups").is_none(), "none are none");
    live.metadata.annotations = serde_json::from_value(object["metadata"]["annotations"].clone()).unwrap();
    live.metadata.finalizers = serde_json::from_value(object["metadata"]["finalizers"].clone()).unwrap();
    live.status = serde_json::from_value(status["status"].clone()).unwrap();
    assert_eq!(node_class_patch(&live, &found, &standings, None, at(10)), None);
    standings.push(Standing::fails("SecurityGroupsReady", "SecurityGroupsNotFound", "none match"));
    let second = node_class_patch(&live, &ClassFound { subnets: Some(Vec::new()), ..found }, &standings, None, at(20)).unwrap();
    let status = second.status.unwrap();
    assert_eq!(status["status"]["subnets"], Value::Null, "what is gone is taken away");
    assert_eq!(
        conditions(&status).last().unwrap(),
        "Ready=False UnhealthyDependents: SecurityGroupsReady=False since 2026-01-01T00:00:20Z"
    );
    assert_eq!(second.object, None);
    let release = node_class_release(&live).unwrap().object.unwrap();
    assert_eq!(release["metadata"]["finalizers"], Value::Null);
}

#[test]
fn a_policy_says_what_serves_and_how_it_went() {
    let live: api::ScoringPolicy = serde_json::from_value(json!({
        "apiVersion": "whittle.sh/v1alpha1", "kind": "ScoringPolicy", "metadata": { "name": "p", "generation": 1 },
        "spec": { "module": { "builtin": "spot-share" }, "mode": "Enforce" },
    }))
    .unwrap();
    let mut found = PolicyFound {
        not_ready: None,
        digest: "sha256:1".to_owned(),
        manifest: Some(json!({ "name": "spot-share" })),
        counts: PolicyCounts { calls: 3, fuel: 900, ..PolicyCounts::default() },
    };
    let ObjectPatch { object, status } = scoring_policy_patch(&live, &found, at(0)).unwrap();
    assert_eq!(object, None);
    let status = status.unwrap();
    let expected = json!({
        "digest": "sha256:1", "manifest": { "name": "spot-share" }, "calls": 3, "fuel": 900,
        "conditions": [{ "type": "Ready", "status": "True", "reason": "Ready", "message": "", "observedGeneration": 1,
            "lastTransitionTime": "2026-01-01T00:00:00Z" }],
    });
    assert_eq!(status["status"], expected);
    let live = api::ScoringPolicy { status: serde_json::from_value(expected).unwrap(), ..live };
    assert_eq!(scoring_policy_patch(&live, &found, at(5)), None);
    found.not_ready = Some(("ModuleNotFound".to_owned(), "no built-in policy of this name".to_owned()));
    let status = scoring_policy_patch(&live, &found, at(5)).unwrap().status.unwrap();
    assert_eq!(conditions(&status), ["Ready=False ModuleNotFound: no built-in policy of this name since 2026-01-01T00:00:05Z"]);
}

#[tokio::test(start_paused = true)]
async fn claims_of_another_hash_version_are_stamped_anew_but_drifted_ones_stay_so() {
    let fake = Fake::default();
    let (writer, _gate) = leading(&fake);
    let stamp = HashStamp { uid: "pool-uid".to_owned(), hash: "42".to_owned(), version: "v3".to_owned() };
    for (version, drifted, hash, written) in
        [("v2", false, "42", Written::Done), ("v2", true, "1", Written::Done), ("v3", false, "1", Written::Already)]
    {
        let status = if drifted {
            json!({ "conditions": [{ "type": "Drifted", "status": "True", "reason": "NodePoolDrifted", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z" }] })
        } else {
            json!({})
        };
        fake.put(
            CLAIM,
            json!({
                "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "status": status,
                "metadata": { "name": "default-a1", "uid": "c", "annotations": {
                    "karpenter.sh/nodepool-hash": "1", "karpenter.sh/nodepool-hash-version": version } },
                "spec": { "requirements": [], "nodeClassRef": { "group": "g", "kind": "k", "name": "n" } },
            }),
        );
        let live: api::NodeClaim = serde_json::from_value(fake.get(CLAIM).unwrap()).unwrap();
        assert_eq!(writer.restamp(&live, Some(&stamp), None).await.unwrap(), written);
        let annotations = fake.get(CLAIM).unwrap()["metadata"]["annotations"].clone();
        assert_eq!(annotations, json!({ "karpenter.sh/nodepool-hash": hash, "karpenter.sh/nodepool-hash-version": "v3" }));
    }
}

fn note(name: &str) -> Note {
    Note {
        subject: Subject {
            api_version: "karpenter.sh/v1".to_owned(),
            kind: "NodeClaim".to_owned(),
            name: name.to_owned(),
            ..Subject::default()
        },
        kind: EventKind::Warning,
        reason: "InsufficientCapacityError".to_owned(),
        message: "ä".repeat(1000),
    }
}

#[tokio::test(start_paused = true)]
async fn of_what_happens_to_many_at_once_some_is_said() {
    let fake = Fake::default();
    let (_, gate) = leading(&fake);
    let (recorder, work) = Recorder::new(fake.client(), gate, "karpenter");
    tokio::spawn(work);
    let of = |reason: &str, name: String| Note { reason: reason.to_owned(), ..note(&name) };
    for number in 0..200 {
        recorder.sample(of("Registered", format!("a{number}")));
        recorder.sample(of("Launched", format!("a{number}")));
    }
    assert_eq!(recorder.dropped(), 380, "the first ten of each reason are taken");
    tokio::time::sleep(Duration::from_secs(1)).await;
    for number in 0..200 {
        recorder.sample(of("Registered", format!("b{number}")));
    }
    assert_eq!(recorder.dropped(), 380 + 195, "and five a second after them");
    recorder.note(of("Registered", "c".to_owned()));
    assert_eq!(recorder.dropped(), 380 + 195, "what must be said is said");
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(fake.log().len(), 26);
}

#[tokio::test(start_paused = true)]
async fn events_are_said_once_in_two_minutes_and_never_wait() {
    let fake = Fake::default();
    let (_, gate) = leading(&fake);
    let (recorder, work) = Recorder::new(fake.client(), gate.clone(), "karpenter");
    tokio::spawn(work);
    recorder.note(note("a"));
    recorder.note(note("a"));
    recorder.note(note("b"));
    tokio::time::sleep(Duration::from_secs(5)).await;
    let log = fake.log();
    assert_eq!(log.len(), 2, "{log:#?}");
    let (head, body) = log[0].split_once(" {").unwrap();
    assert_eq!(head, "POST /api/v1/namespaces/default/events?fieldManager=karpenter");
    let event: Value = serde_json::from_str(&format!("{{{body}")).unwrap();
    assert_eq!(event["source"], json!({ "component": "karpenter" }));
    assert_eq!(event["involvedObject"], json!({ "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": "a" }));
    assert_eq!((&event["type"], &event["reason"]), (&json!("Warning"), &json!("InsufficientCapacityError")));
    assert!(event["message"].as_str().unwrap().len() <= 1024);
    tokio::time::sleep(Duration::from_secs(120)).await;
    recorder.note(note("a"));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(fake.log().len(), 1, "two minutes later it is said again");
    gate.close();
    recorder.note(note("b"));
    gate.open();
    for number in 0..2000 {
        recorder.note(note(&format!("c{number}")));
    }
    assert_eq!(recorder.dropped(), 2000 - 512, "what is too much is dropped");
    tokio::time::sleep(Duration::from_secs(10)).await;
    let sent = fake.log().len();
    assert!((90..=101).contains(&sent), "{sent} in 10 s");
    gate.close();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(fake.log().is_empty(), "who no longer leads says nothing more");
    gate.open();
    recorder.note(note("b"));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(fake.log().len(), 1, "what was not taken was not said");
}

#[test]
fn an_overlay_says_whether_it_counts_and_why_not() {
    let mut live: api::NodeOverlay = serde_json::from_value(json!({
        "apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay",
        "metadata": { "name": "o", "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z" }, "spec": { "requirements": [] },
    }))
    .unwrap();
    let conflict = "NodeOverlay other of the same weight changes the same; give one of them another weight";
    for (second, state, valid, ready) in [
        (1, OverlayState::Applied, "True ValidationSucceeded: ".to_owned(), "True Ready: "),
        (
            2,
            OverlayState::Invalid("price: wrong".to_owned()),
            "False RuntimeValidation: price: wrong".to_owned(),
            "False UnhealthyDependents: ValidationSucceeded=False",
        ),
        (
            3,
            OverlayState::Conflict("other".to_owned()),
            format!("False Conflict: {conflict}"),
            "False UnhealthyDependents: ValidationSucceeded=False",
        ),
        (4, OverlayState::Applied, "True ValidationSucceeded: ".to_owned(), "True Ready: "),
    ] {
        let ObjectPatch { object, status } = node_overlay_patch(&live, &state, at(second)).unwrap();
        assert_eq!(object, None);
        let status = status.unwrap();
        let said = conditions(&status);
        assert!(said[0].starts_with(&format!("ValidationSucceeded={valid}")), "{said:?}");
        assert!(said[1].starts_with(&format!("Ready={ready}")), "{said:?}");
        live.status = serde_json::from_value(status["status"].clone()).unwrap();
        assert_eq!(node_overlay_patch(&live, &state, at(9)), None, "it is said once");
    }
}
