//! The writing side of the door against an API server in memory: what is sent, and what is made of the answers.
#![cfg(feature = "client")]
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "write/buffers.rs"]
mod buffers;
#[path = "write/fake.rs"]
mod fake;
#[path = "write/keeping.rs"]
mod keeping;
#[path = "write/leading.rs"]
mod leading;

use std::path::PathBuf;
use std::sync::Arc;

use fake::{Fake, status};
use serde_json::json;
use whittle_cluster::write::{ConditionStatus, Gate, HashStamp, Stamps, Standing, WriteError, Writer, Written};
use whittle_model::{
    Action, CapacityType, ClaimStatus, Duration, Effect, Labels, Micros, NodeClaim, PodKey, Requirement, Requirements, Resources, Taint,
    Timestamp, keys,
};

const CLAIM: &str = "/apis/karpenter.sh/v1/nodeclaims/default-a1";
const NODE: &str = "/api/v1/nodes/ip-10-0-0-1";
const POD: &str = "/api/v1/namespaces/shop/pods/web-1";

fn leading(fake: &Fake) -> (Writer, Gate) {
    let gate = Gate::new();
    gate.open();
    (Writer::new(fake.client(), gate.clone(), "whittle"), gate)
}

/// Compares with `fixtures/write/NAME.golden`, or writes it when `UPDATE_GOLDENS` is 1.
fn golden(name: &str, lines: &[String]) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/write").join(name).with_extension("golden");
    let text = lines.join("\n") + "\n";
    if std::env::var_os("UPDATE_GOLDENS").is_some_and(|value| value == "1") {
        std::fs::write(&path, &text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "{}", path.display());
}

/// Requests with each body spread over lines, so that a difference can be read.
fn spread(log: &[String]) -> Vec<String> {
    let body = |text: &str| serde_json::from_str(text).ok().map(|body: serde_json::Value| serde_json::to_string(&body).unwrap());
    log.iter()
        .flat_map(|line| {
            let mut parts = line.splitn(3, ' ');
            let head = format!("{} {}", parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
            [Some(head), parts.next().and_then(body).map(|b| format!("  {b}"))].into_iter().flatten()
        })
        .collect()
}

fn labels(all: &[(&str, &str)]) -> Labels {
    all.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn claim() -> NodeClaim {
    NodeClaim {
        name: "default-a1".to_owned(),
        node_pool: "default".to_owned(),
        node_class: "main".to_owned(),
        labels: labels(&[(keys::NODE_POOL, "default"), (keys::NODE_CLASS, "main"), ("team", "a")]),
        annotations: labels(&[(keys::LAUNCH_GROUP, "g1"), (keys::OFFERS, "[]")]),
        startup_taints: vec![Taint::new("boot", "", Effect::NoExecute)],
        requirements: [Requirement::any_of(keys::ARCH, &["amd64", "arm64"])].into_iter().collect::<Requirements>(),
        requests: Resources::of(&[("cpu", 1500), ("memory", 1 << 30)]),
        expire_after: Some(Duration::minutes(720 * 60)),
        ..NodeClaim::default()
    }
}

fn stamps(second: i64) -> Stamps {
    let stamp = |uid: &str, version: &str| Some(HashStamp { uid: uid.to_owned(), hash: "17".to_owned(), version: version.to_owned() });
    Stamps { pool: stamp("pool-uid", "v3"), class: stamp("class-uid", "v6"), now: at(second), ..Stamps::default() }
}

/// Seconds after the claim was created.
fn at(second: i64) -> Timestamp {
    Timestamp((1_767_225_600 + second) * 1000)
}

fn launched() -> ClaimStatus {
    ClaimStatus {
        launched: Some(at(3)),
        provider_id: "aws:///us-east-1a/i-1".to_owned(),
        image: "ami-1".to_owned(),
        instance_type: "m7g.large".to_owned(),
        zone: "us-east-1a".to_owned(),
        capacity_type: Some(CapacityType::Spot),
        capacity: Resources::of(&[("cpu", 2000), ("memory", 8 << 30), ("pods", 29)]),
        allocatable: Resources::of(&[("cpu", 1930), ("memory", 7 << 30), ("pods", 29)]),
        price: Micros(31_200),
        ..ClaimStatus::default()
    }
}

fn initialized() -> ClaimStatus {
    ClaimStatus { registered: Some(at(40)), initialized: Some(at(40)), node: "ip-10-0-0-1".to_owned(), ..launched() }
}

fn update(status: ClaimStatus, more: &[(&str, &str)]) -> Action {
    let mut labels = claim().labels;
    labels.extend(more.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())));
    Action::UpdateClaim { claim: "default-a1".to_owned(), labels, status: Box::new(status) }
}

fn node() -> serde_json::Value {
    json!({
        "metadata": { "name": "ip-10-0-0-1", "uid": "node-uid", "labels": { "kubernetes.io/hostname": "ip-10-0-0-1" } },
        "spec": {
            "providerID": "aws:///us-east-1a/i-1",
            "taints": [
                { "key": "node.kubernetes.io/not-ready", "effect": "NoSchedule" },
                { "key": "karpenter.sh/unregistered", "effect": "NoExecute" },
            ],
        },
    })
}

fn register() -> Action {
    Action::RegisterNode {
        node: "ip-10-0-0-1".to_owned(),
        claim: "default-a1".to_owned(),
        labels: labels(&[("team", "a"), (keys::REGISTERED, "true"), (keys::INITIALIZED, "true")]),
        // As decided when the node still had another taint of its start, which must not come back.
        taints: vec![Taint::new("node.kubernetes.io/unreachable", "", Effect::NoExecute), Taint::new("boot", "", Effect::NoExecute)],
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_takes_five_writes_from_claim_to_initialized() {
    let fake = Fake::default();
    let (writer, _gate) = leading(&fake);
    let bought = [(keys::INSTANCE_TYPE, "m7g.large"), (keys::ZONE, "us-east-1a")];
    writer.apply(&Action::CreateClaim(Box::new(claim())), &stamps(0)).await.unwrap();
    writer.apply(&update(launched(), &bought), &stamps(3)).await.unwrap();
    fake.put(NODE, node());
    writer.saw_node(&serde_json::from_value(fake.get(NODE).unwrap()).unwrap());
    writer.apply(&register(), &stamps(40)).await.unwrap();
    writer.apply(&update(initialized(), &bought), &stamps(40)).await.unwrap();
    let log = fake.log();
    assert_eq!(log.len(), 5, "{log:#?}");
    golden("claim-to-initialized", &spread(&log));
    let claim = fake.get(CLAIM).unwrap();
    let conditions: Vec<String> = claim["status"]["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| format!("{}={} {} {}", c["type"], c["status"], c["reason"], c["lastTransitionTime"]).replace('"', ""))
        .collect();
    let expected = [
        "Launched=True Launched 2026-01-01T00:00:03Z",
        "Registered=True Registered 2026-01-01T00:00:40Z",
        "Initialized=True Initialized 2026-01-01T00:00:40Z",
        "ConsistentStateFound=True ConsistentStateFound 2026-01-01T00:00:40Z",
        "Ready=True Ready 2026-01-01T00:00:40Z",
    ];
    assert_eq!(conditions, expected);
    // All of it once more changes nothing.
    for action in [Action::CreateClaim(Box::new(self::claim())), update(initialized(), &bought), register()] {
        assert_eq!(writer.apply(&action, &stamps(50)).await.unwrap(), Written::Already, "{action:?}");
    }
    assert_eq!(fake.log().len(), 1, "only the creation has to be tried to know");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_was_never_seen_is_read_first() {
    let fake = Fake::default();
    let (writer, _gate) = leading(&fake);
    writer.apply(&Action::CreateClaim(Box::new(claim())), &stamps(0)).await.unwrap();
    fake.put(NODE, node());
    fake.log();
    let (writer, _gate) = leading(&fake);
    writer.apply(&register(), &stamps(3)).await.unwrap();
    let log: Vec<String> = fake.log().iter().map(|line| line.split('?').next().unwrap_or_default().to_owned()).collect();
    assert_eq!(log, [format!("GET {CLAIM}"), format!("GET {NODE}"), format!("PATCH {NODE}")]);
}

#[tokio::test(start_paused = true)]
async fn what_a_claim_waits_for_is_told_and_what_others_set_stays() {
    let fake = Fake::default();
    let (writer, _gate) = leading(&fake);
    writer.apply(&Action::CreateClaim(Box::new(claim())), &stamps(0)).await.unwrap();
    let mut live = fake.get(CLAIM).unwrap();
    live["status"] = json!({ "conditions": [{
        "type": "OfOthers", "status": "True", "reason": "OfOthers", "message": "", "lastTransitionTime": "2026-01-01T00:00:01Z",
    }] });
    live["metadata"]["labels"]["theirs"] = json!("x");
    fake.put(CLAIM, live);
    fake.log();
    let failing = ClaimStatus { launch_error: Some(("LaunchFailed".to_owned(), "no luck".to_owned())), ..ClaimStatus::default() };
    let more = Stamps { conditions: vec![Standing::fails("ConsistentStateFound", "ConsistencyCheckFailed", "m")], ..stamps(9) };
    writer.apply(&update(failing, &[]), &more).await.unwrap();
    let waiting = Stamps { conditions: vec![Standing::unknown("Initialized", "NodeNotReady", "Node status is NotReady")], ..stamps(60) };
    writer.apply(&update(ClaimStatus { initialized: None, ..initialized() }, &[]), &waiting).await.unwrap();
    let gone = Stamps { conditions: vec![Standing::absent("ConsistentStateFound")], ..waiting };
    writer.apply(&update(ClaimStatus { initialized: None, ..initialized() }, &[]), &gone).await.unwrap();
    golden("claim-waiting", &spread(&fake.log()));
    assert_eq!(fake.get(CLAIM).unwrap()["metadata"]["labels"]["theirs"], "x");
    assert_eq!(gone.conditions[0].status, ConditionStatus::Absent);
}

#[tokio::test(start_paused = true)]
async fn a_node_goes_cordoned_then_deleted_then_let_go() {
    let fake = Fake::default();
    let (writer, _gate) = leading(&fake);
    writer.apply(&Action::CreateClaim(Box::new(claim())), &stamps(0)).await.unwrap();
    fake.put(NODE, node());
    writer.apply(&register(), &stamps(3)).await.unwrap();
    fake.log();
    let node = || "ip-10-0-0-1".to_owned();
    for (action, written) in [
        (Action::CordonNode { node: node() }, Written::Done),
        (Action::CordonNode { node: node() }, Written::Already),
        (Action::DeleteClaim { claim: "default-a1".to_owned(), reason: "Empty".to_owned() }, Written::Done),
        (Action::ReleaseNode { node: node() }, Written::Done),
        (Action::ReleaseNode { node: node() }, Written::Already),
        (Action::ReleaseClaim { claim: "default-a1".to_owned() }, Written::Done),
        (Action::ReleaseClaim { claim: "default-a1".to_owned() }, Written::Already),
        (Action::DeleteClaim { claim: "default-a1".to_owned(), reason: "Empty".to_owned() }, Written::Already),
    ] {
        assert_eq!(writer.apply(&action, &stamps(9)).await.unwrap(), written, "{action:?}");
    }
    assert!(fake.get(NODE).is_none() && fake.get(CLAIM).is_none());
    golden("node-goes", &spread(&fake.log()));
}

#[tokio::test(start_paused = true)]
async fn pods_are_nominated_and_evicted() {
    let fake = Fake::default();
    let (writer, _gate) = leading(&fake);
    let pod = PodKey::new("shop", "web-1");
    let nominate = Action::Nominate { pod: pod.clone(), node: "n1".to_owned() };
    let evict = Action::Evict { pod, uid: "u1".to_owned() };
    let known = Stamps { uid: Some("u1".to_owned()), ..Stamps::default() };
    assert_eq!(writer.apply(&nominate, &known).await.unwrap(), Written::Already, "it is gone");
    assert_eq!(writer.apply(&evict, &known).await.unwrap(), Written::Already, "it is gone");
    fake.put(POD, json!({ "metadata": { "name": "web-1", "uid": "u1" }, "spec": {}, "status": {} }));
    fake.log();
    assert_eq!(writer.apply(&nominate, &known).await.unwrap(), Written::Done);
    let (code, mut body) = status(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.");
    body["details"] = json!({ "causes": [{ "reason": "DisruptionBudget", "message": "needs 2 healthy pods and has 2 currently" }] });
    fake.answer_next(Some((code, body)));
    let blocked = "Cannot evict pod as it would violate the pod's disruption budget.".to_owned();
    assert_eq!(writer.apply(&evict, &known).await.unwrap(), Written::Blocked(blocked));
    let several = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
    fake.answer_next(Some(status(500, "InternalError", several)));
    assert_eq!(writer.apply(&evict, &known).await.unwrap(), Written::Blocked(several.to_owned()));
    fake.answer_next(Some(status(429, "TooManyRequests", "too many requests, please try again later")));
    assert_eq!(writer.apply(&evict, &known).await.unwrap(), Written::Done, "a busy server is tried again");
    golden("pods", &spread(&fake.log()));
    fake.put(POD, json!({ "metadata": { "name": "web-1", "uid": "u2" }, "spec": { "nodeName": "n2" } }));
    assert_eq!(writer.apply(&evict, &known).await.unwrap(), Written::Already, "another pod of its name");
    assert_eq!(writer.apply(&nominate, &known).await.unwrap(), Written::Already, "another pod of its name");
    fake.answer_next(Some(status(422, "Invalid", "nominatedNodeName may not be set once bound")));
    assert_eq!(writer.apply(&nominate, &Stamps::default()).await.unwrap(), Written::Already, "it is bound");
}

#[tokio::test(start_paused = true)]
async fn a_conflict_reads_again_and_gives_up_in_the_end() {
    let fake = Fake::default();
    let (writer, _gate) = leading(&fake);
    fake.put(NODE, node());
    writer.saw_node(&serde_json::from_value(fake.get(NODE).unwrap()).unwrap());
    let mut changed = node();
    changed["spec"]["taints"] = json!([{ "key": "theirs", "effect": "NoSchedule" }]);
    fake.put(NODE, changed);
    let cordon = Action::CordonNode { node: "ip-10-0-0-1".to_owned() };
    assert_eq!(writer.apply(&cordon, &stamps(0)).await.unwrap(), Written::Done);
    let taints = fake.get(NODE).unwrap()["spec"]["taints"].clone();
    assert_eq!(
        taints.as_array().unwrap().iter().map(|t| t["key"].as_str().unwrap()).collect::<Vec<_>>(),
        ["theirs", "karpenter.sh/disrupted"]
    );
    assert_eq!(fake.log().len(), 3, "a write that conflicts, a read, a write");
    fake.put(NODE, node());
    let (writer, _gate) = leading(&fake);
    for _ in 0..5 {
        fake.answer_next(None);
        fake.answer_next(Some(status(409, "Conflict", "modified")));
    }
    let error = writer.apply(&cordon, &stamps(0)).await.unwrap_err();
    assert!(matches!(error, WriteError::Conflict { tries: 5, .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn errors_say_what_to_do() {
    let fake = Fake::default();
    let (writer, _gate) = leading(&fake);
    let create = Action::CreateClaim(Box::new(claim()));
    let (code, mut body) = status(422, "Invalid", "NodeClaim.karpenter.sh \"default-a1\" is invalid");
    body["details"] =
        json!({ "causes": [{ "reason": "FieldValueInvalid", "field": "spec.requirements[0].operator", "message": "Unsupported value" }] });
    fake.answer_next(Some((code, body)));
    let error = writer.apply(&create, &stamps(0)).await.unwrap_err().to_string();
    assert_eq!(
        error,
        "create NodeClaim default-a1: the API server refuses it: NodeClaim.karpenter.sh \"default-a1\" is invalid: \
         spec.requirements[0].operator: Unsupported value; check that the installed CRDs are of this version"
    );
    fake.answer_next(Some(status(403, "Forbidden", "nodeclaims is forbidden")));
    let error = writer.apply(&create, &stamps(0)).await.unwrap_err().to_string();
    assert!(error.contains("grant this verb"), "{error}");
    for _ in 0..6 {
        fake.answer_next(Some(status(503, "ServiceUnavailable", "away")));
    }
    fake.log();
    let error = writer.apply(&create, &stamps(0)).await.unwrap_err();
    assert!(matches!(error, WriteError::Unavailable { tries: 6, .. }), "{error}");
    assert_eq!(fake.log().len(), 6);
    let unknown = Stamps { pool: None, ..stamps(0) };
    let error = writer.apply(&create, &unknown).await.unwrap_err().to_string();
    assert!(error.contains("the uid of NodePool default is not known yet"), "{error}");
    fake.answer_next(Some(status(500, "InternalError", "etcdserver: leader changed")));
    assert_eq!(writer.apply(&create, &stamps(0)).await.unwrap(), Written::Done, "it came back");
}

#[tokio::test(start_paused = true)]
async fn a_closed_gate_lets_nothing_through() {
    let fake = Fake::default();
    let (writer, gate) = leading(&fake);
    gate.close();
    let pod = PodKey::new("shop", "web-1");
    let (node, claim) = (|| "n".to_owned(), || "c".to_owned());
    for action in [
        Action::CreateClaim(Box::new(self::claim())),
        update(launched(), &[]),
        register(),
        Action::InitializeNode { node: node() },
        Action::Nominate { pod: pod.clone(), node: node() },
        Action::DeleteClaim { claim: claim(), reason: String::new() },
        Action::CordonNode { node: node() },
        Action::Evict { pod, uid: String::new() },
        Action::ReleaseNode { node: node() },
        Action::ReleaseClaim { claim: claim() },
    ] {
        let error = writer.apply(&action, &stamps(0)).await.unwrap_err();
        assert!(matches!(error, WriteError::NotLeader { .. }), "{error}");
    }
    for action in [Action::Terminate { claim: claim() }, Action::TagInstance { claim: claim() }] {
        assert_eq!(writer.apply(&action, &stamps(0)).await.unwrap(), Written::NotMine);
    }
    assert!(fake.log().is_empty());
    // Leading that ends while a busy server is waited for ends the write too, even if leading begins anew.
    gate.open();
    fake.answer_next(Some(status(503, "ServiceUnavailable", "away")));
    let turn = async {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        gate.close();
        gate.open();
    };
    let create = Action::CreateClaim(Box::new(self::claim()));
    let stamps = stamps(0);
    let (written, ()) = tokio::join!(writer.apply(&create, &stamps), turn);
    assert!(matches!(written.unwrap_err(), WriteError::NotLeader { .. }));
    assert_eq!(fake.log().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn orders_for_one_claim_wait_for_each_other_and_the_last_has_it_all() {
    let fake = Fake::default();
    let (writer, _gate) = leading(&fake);
    writer.apply(&Action::CreateClaim(Box::new(claim())), &stamps(0)).await.unwrap();
    fake.log();
    let (first, second, third) =
        (update(launched(), &[]), update(ClaimStatus { initialized: None, ..initialized() }, &[]), update(initialized(), &[]));
    let writer = Arc::new(writer);
    let order = |action| {
        let writer = Arc::clone(&writer);
        tokio::spawn(async move { writer.apply(&action, &stamps(40)).await.unwrap() })
    };
    let (first, second, third) = (order(first), order(second), order(third));
    tokio::task::yield_now().await;
    writer.settled().await;
    let log = fake.log();
    assert!(log.iter().all(|line| line.starts_with("PATCH")), "nothing conflicted, so nothing was read again: {log:#?}");
    assert_eq!([first.await.unwrap(), second.await.unwrap(), third.await.unwrap()], [Written::Done, Written::Already, Written::Done]);
    assert_eq!(log.len(), 3);
    assert_eq!(fake.get(CLAIM).unwrap()["status"]["nodeName"], "ip-10-0-0-1");
}
