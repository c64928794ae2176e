//! The watches against an API server in memory, in simulated time.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "live/buffers.rs"]
mod buffers;
#[path = "live/server.rs"]
mod server;

use std::{
    collections::BTreeMap,
    io::Write,
    sync::{Arc, Mutex},
    time::Duration,
};

use proptest::prelude::*;
use serde_json::{Value, json};
use server::{Server, Trouble};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::mpsc,
    task::JoinHandle,
    time::{Instant, timeout},
};
use whittle_cluster::live::{ClientOptions, Seen, WatchError, WatchOptions, client, watch};
use whittle_model::{CapacityType, ClaimStatus, Event, Micros, NodeClaim, Timestamp};

const PODS: &str = "/api/v1/pods";
const NODES: &str = "/api/v1/nodes";
const POOLS: &str = "/apis/karpenter.sh/v1/nodepools";
const CLAIMS: &str = "/apis/karpenter.sh/v1/nodeclaims";
const CLASSES: &str = "/apis/karpenter.k8s.aws/v1/ec2nodeclasses";
const POLICIES: &str = "/apis/whittle.sh/v1alpha1/scoringpolicies";
const OVERLAYS: &str = "/apis/karpenter.sh/v1alpha1/nodeoverlays";
const MAPS: &str = "/api/v1/namespaces/kube-system/configmaps";

fn pod(name: &str, cpu: &str, node: Option<&str>) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"nodeName": node, "containers": [{"name": "a", "resources": {"requests": {"cpu": cpu}}}], "fieldOfTomorrow": 1},
    })
}

fn node(name: &str, heartbeat: u8) -> Value {
    json!({
        "metadata": {"name": name},
        "status": {"capacity": {"cpu": "2"}, "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": format!("2026-01-01T00:00:0{heartbeat}Z")}]},
    })
}

fn pool(name: &str, operator: &str) -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name},
        "spec": {"limits": {"cpu": 100}, "template": {"spec": {
            "requirements": [{"key": "kubernetes.io/arch", "operator": operator, "values": ["amd64"]}],
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
        }}},
    })
}

fn policy(name: &str) -> Value {
    json!({"apiVersion": "whittle.sh/v1alpha1", "kind": "ScoringPolicy", "metadata": {"name": name},
        "spec": {"module": {"builtin": "spot-share"}, "mode": "Observe"}})
}

/// The watches at work.
struct Watching {
    seen: mpsc::Receiver<Seen>,
    task: JoinHandle<Result<(), WatchError>>,
}

impl Watching {
    fn of(server: &Server) -> Self {
        Self::with(server, WatchOptions { page_size: 2, ..WatchOptions::new("kube-system") })
    }

    /// Through a channel of one place, so that nothing works that needs a buffer.
    fn with(server: &Server, options: WatchOptions) -> Self {
        let (to, seen) = mpsc::channel(1);
        Self { seen, task: tokio::spawn(watch(server.client(), options, to)) }
    }

    async fn next(&mut self) -> Seen {
        timeout(Duration::from_secs(600), self.seen.recv()).await.expect("something is seen").expect("the watches go on")
    }

    async fn brief(&mut self) -> String {
        brief(&self.next().await)
    }

    /// Everything up to `Synced`, in the order of names: kinds are listed side by side.
    async fn synced(&mut self) -> Vec<String> {
        let mut all = Vec::new();
        loop {
            match self.brief().await {
                end if end == "Synced" => break,
                other => all.push(other),
            }
        }
        assert_eq!(all.pop().as_deref(), Some("event Synced"), "the engine is told right before");
        all.sort();
        all
    }

    /// Nothing more, for as long as two watches last.
    async fn nothing(&mut self) {
        let more = timeout(Duration::from_secs(700), self.seen.recv()).await;
        assert!(more.is_err(), "{:?}", more.map(|seen| seen.as_ref().map(brief)));
    }
}

/// What was seen, in a few words.
fn brief(seen: &Seen) -> String {
    let meta = |kind: &str, name: &Option<String>| format!("live {kind} {}", name.as_deref().unwrap());
    match seen {
        Seen::Event(event) => format!("event {}", brief_event(&serde_json::to_value(event).unwrap())),
        Seen::NodeClass(object) => meta("NodeClass", &object.metadata.name),
        Seen::NodePool(object) => meta("NodePool", &object.metadata.name),
        Seen::NodeClaim(object) => meta("NodeClaim", &object.metadata.name),
        Seen::ScoringPolicy(object) => meta("ScoringPolicy", &object.metadata.name),
        Seen::NodeOverlay(object) => meta("NodeOverlay", &object.metadata.name),
        Seen::ConfigMap { name, .. } => format!("live ConfigMap {name}"),
        Seen::CapacityBuffer(object) => meta("CapacityBuffer", &object.metadata.name),
        Seen::BufferBase { namespace, source, .. } => format!("BufferBase {namespace} {source}"),
        Seen::NodeClassGone(_)
        | Seen::NodePoolGone(_)
        | Seen::NodeClaimGone(_)
        | Seen::ScoringPolicyGone(_)
        | Seen::NodeOverlayGone(_)
        | Seen::CapacityBufferGone(_)
        | Seen::ConfigMapGone(_)
        | Seen::Synced => format!("{seen:?}"),
    }
}

fn brief_event(event: &Value) -> String {
    let Some((kind, inside)) = event.as_object().and_then(|o| o.iter().next()) else { return event.as_str().unwrap().to_owned() };
    let at = |path: &str| inside.pointer(path).and_then(Value::as_str);
    let name = at("/name").or(at("/key/name")).or(at("/node")).or(at("/0")).or(inside.as_str()).unwrap();
    match at("/why") {
        Some(why) => format!("{kind} {} {name} on {}: {why}", at("/kind").unwrap(), at("/node").unwrap_or("none")),
        None => format!("{kind} {name}"),
    }
}

/// Collects what is logged on this thread.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn listen(&self) -> tracing::subscriber::DefaultGuard {
        let log = self.clone();
        let filter = tracing_subscriber::EnvFilter::new("whittle_cluster=info");
        tracing::subscriber::set_default(
            tracing_subscriber::fmt().without_time().with_ansi(false).with_env_filter(filter).with_writer(move || log.clone()).finish(),
        )
    }

    /// The lines that hold `part`.
    fn lines(&self, part: &str) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().filter(|line| line.contains(part)).map(str::to_owned).collect()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn first_lists_come_in_pages_and_are_followed_by_one_synced() {
    let server = Server::default();
    for name in ["a", "b", "c", "d", "e"] {
        server.put(PODS, pod(name, "1", None));
    }
    server.put(NODES, node("n", 1));
    server.put(POOLS, pool("p", "In"));
    server.put("/api/v1/namespaces", json!({"metadata": {"name": "default"}}));
    let mut watching = Watching::of(&server);
    let seen = watching.synced().await;
    let wanted =
        ["Namespace default", "Node n", "NodePool p", "Pod a", "Pod b", "Pod c", "Pod d", "Pod e"].map(|what| format!("event {what}"));
    assert_eq!(seen, [wanted.as_slice(), &["live NodePool p".to_owned()]].concat());
    let lists: Vec<String> = server.requests(PODS).into_iter().filter(|r| !r.contains("watch=")).collect();
    assert_eq!(lists.len(), 3, "{lists:?}");
    assert!(lists[2].contains("limit=2") && lists[2].contains(".4"), "{lists:?}");
    watching.nothing().await;
    assert!(server.requests(PODS).len() >= 5, "idle watches are opened anew");
}

#[tokio::test(start_paused = true)]
async fn changes_are_told_and_heartbeats_are_not() {
    let server = Server::default();
    server.put(NODES, node("n", 1));
    let mut watching = Watching::of(&server);
    watching.synced().await;
    server.put(PODS, pod("a", "1", None));
    assert_eq!(watching.brief().await, "event Pod a");
    server.put(PODS, pod("a", "1", Some("n")));
    let Seen::Event(Event::Pod(bound)) = watching.next().await else { panic!("the pod is bound") };
    assert_eq!((bound.node.as_deref(), bound.requests.get("cpu")), (Some("n"), 1000));
    server.put(NODES, node("n", 2));
    watching.nothing().await;
    server.delete(NODES, "/n");
    server.delete(PODS, "default/a");
    let mut gone = [watching.brief().await, watching.brief().await];
    gone.sort();
    assert_eq!(gone, ["event NodeGone n", "event PodGone a"]);
    server.put(PODS, pod("a", "1", Some("n")));
    assert_eq!(watching.brief().await, "event Pod a", "what is gone is forgotten");
}

#[tokio::test(start_paused = true)]
async fn a_watch_goes_on_from_its_bookmark() {
    let server = Server::default();
    let mut watching = Watching::of(&server);
    watching.synced().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    server.say(PODS, &json!({"type": "BOOKMARK", "object": {"apiVersion": "v1", "kind": "Pod", "metadata": {"resourceVersion": "4711"}}}));
    server.hang_up(PODS);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let requests = server.requests(PODS);
    let last = requests.last().unwrap();
    assert!(last.contains("allowWatchBookmarks=true") && last.contains("resourceVersion=4711"), "{last}");
}

#[tokio::test(start_paused = true)]
async fn a_list_after_a_gap_tells_what_vanished_and_what_changed_and_no_more() {
    for refusal in [None, Some(410), Some(400), Some(404)] {
        let server = Server::default();
        for name in ["changed", "same", "vanished", "replaced"] {
            server.put(PODS, pod(name, "1", None));
        }
        let mut watching = Watching::of(&server);
        watching.synced().await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        server.compact(PODS);
        server.vanish(PODS, "default/vanished");
        server.vanish(PODS, "default/replaced");
        let mut replaced = pod("replaced", "1", None);
        replaced["metadata"]["uid"] = json!("another");
        server.put(PODS, replaced);
        server.put(PODS, pod("changed", "2", None));
        server.compact(PODS);
        server.trouble(PODS, &refusal.map(Trouble::Code).into_iter().collect::<Vec<_>>());
        let mut told = Vec::new();
        for _ in 0..4 {
            told.push(watching.brief().await);
        }
        assert_eq!(told, ["event Pod changed", "event PodGone replaced", "event Pod replaced", "event PodGone vanished"], "{refusal:?}");
        watching.nothing().await;
    }
}

#[tokio::test(start_paused = true)]
async fn trouble_is_logged_once_and_lived_through() {
    let (server, log) = (Server::default(), Log::default());
    let _guard = log.listen();
    server.put(PODS, pod("a", "1", None));
    server.trouble(PODS, &[Trouble::Refused, Trouble::Refused, Trouble::Refused, Trouble::Code(500), Trouble::Code(500)]);
    let mut watching = Watching::of(&server);
    assert_eq!(watching.synced().await, ["event Pod a"]);
    let failures = log.lines("the watch failed and is tried again");
    assert_eq!(failures.len(), 2, "{failures:?}");
    assert!(failures[0].contains("connection refused") && failures[0].contains("kind=\"Pod\""), "{failures:?}");
    assert!(failures[1].contains("500: as ordered"), "{failures:?}");
    assert_eq!(log.lines("the watch goes on").len(), 1);
    server.trouble(PODS, &[Trouble::Refused, Trouble::Code(503)]);
    server.hang_up(PODS);
    server.put(PODS, pod("b", "1", None));
    assert_eq!(watching.brief().await, "event Pod b");
    assert_eq!(log.lines("the watch goes on").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn one_unreadable_object_is_set_aside_and_the_others_go_on() {
    let server = Server::default();
    for (name, operator) in [("a", "In"), ("broken", "Within"), ("c", "Exists")] {
        server.put(POOLS, pool(name, operator));
    }
    let mut fixed = pool("fixed-size", "In");
    (fixed["spec"]["replicas"], fixed["spec"]["limits"]) = (json!(3), json!({"nodes": 5}));
    fixed["spec"]["template"]["spec"]["requirements"][0]["minValues"] = json!(1);
    server.put(POOLS, fixed);
    let mut shapeless = pool("shapeless", "In");
    shapeless["spec"]["template"]["spec"]["requirements"] = json!("all");
    server.put(POOLS, shapeless);
    server.put(PODS, pod("bad", "1x", Some("n")));
    let mut odd = pod("odd", "1", None); // the server takes it, and it matches no node
    let term = json!({"matchExpressions": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on_demand"]}]});
    odd["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"] = json!([term]);
    server.put(PODS, odd);
    let mut watching = Watching::of(&server);
    let seen = watching.synced().await;
    let aside: Vec<&String> = seen.iter().filter(|s| s.contains("SetAside")).collect();
    let parts = [
        "NodePool broken on none: spec.template.spec.requirements[0].operator: \"Within\" is not known",
        "NodePool c on none: spec.template.spec.requirements[0].values: ",
        "NodePool shapeless on none: spec.template.spec.requirements: wants a list",
        "Pod default/bad on n: spec.containers[0].resources.requests.cpu: ",
    ];
    assert_eq!(aside.len(), parts.len(), "{aside:?}");
    for (line, part) in aside.iter().zip(parts) {
        assert!(line.contains(part), "{line}");
    }
    for there in ["event Pod odd", "event NodePool a", "live NodePool a", "live NodePool broken", "event NodePool fixed-size"] {
        assert!(seen.contains(&there.to_owned()), "{there}");
    }
    assert!(!seen.contains(&"live NodePool shapeless".to_owned()));
    server.put(POOLS, pool("broken", "NotIn"));
    assert_eq!([watching.brief().await, watching.brief().await], ["live NodePool broken", "event NodePool broken"]);
    server.delete(POOLS, "/shapeless");
    assert_eq!([watching.brief().await, watching.brief().await], ["NodePoolGone(\"shapeless\")", "event NodePoolGone shapeless"]);
}

/// Where each further kind is, an object of it, one that cannot be read if the kind knows any, and what they are told as.
fn facts() -> Vec<(&'static str, Value, Option<Value>, &'static str)> {
    let meta = |namespace: Option<&str>, name: &str| json!({"name": name, "namespace": namespace});
    let at = |kind: &'static str| match kind {
        "pvc" => "/api/v1/persistentvolumeclaims",
        "pv" => "/api/v1/persistentvolumes",
        "range" => "/api/v1/limitranges",
        "pdb" => "/apis/policy/v1/poddisruptionbudgets",
        "class" => "/apis/storage.k8s.io/v1/storageclasses",
        "csinode" => "/apis/storage.k8s.io/v1/csinodes",
        _ => "/apis/storage.k8s.io/v1/volumeattachments",
    };
    let bad = |mut object: Value, path: &str, value: Value| {
        object["metadata"]["name"] = json!("bad");
        *object.pointer_mut(path).unwrap() = value;
        Some(object)
    };
    let pvc = json!({"metadata": meta(Some("n"), "a"), "spec": {"volumeName": "v"}});
    let pv = json!({"metadata": meta(None, "a"), "spec": {"csi": {"driver": "d", "volumeHandle": "h"}}});
    let class = json!({"metadata": meta(None, "a"), "provisioner": "p", "volumeBindingMode": "Immediate"});
    let csinode = json!({"metadata": meta(None, "a"), "spec": {"drivers": [{"name": "d", "nodeID": "i", "allocatable": {"count": 3}}]}});
    let held = json!({"metadata": meta(None, "a"), "spec": {"attacher": "d", "nodeName": "n", "source": {"persistentVolumeName": "v"}}});
    let pdb = json!({"metadata": meta(Some("n"), "a"), "spec": {"maxUnavailable": 1, "selector": {}}});
    let range = json!({"metadata": meta(Some("n"), "a"), "spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}});
    let overlay = json!({"apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": meta(None, "a"),
        "spec": {"requirements": [], "priceAdjustment": "-10%"}});
    vec![
        (at("pvc"), pvc.clone(), bad(pvc, "/spec", json!([])), "VolumeClaim"),
        (at("pv"), pv.clone(), bad(pv, "/spec/csi", json!("c")), "Volume"),
        (at("class"), class.clone(), bad(class, "/volumeBindingMode", json!("Later")), "StorageClass"),
        (at("csinode"), csinode, None, "VolumeLimits"),
        (at("held"), held, None, "VolumeAttachment"),
        (at("pdb"), pdb.clone(), bad(pdb, "/spec/maxUnavailable", json!("some")), "PodDisruptionBudget"),
        (at("range"), range, None, "LimitRange"),
        (OVERLAYS, overlay.clone(), bad(overlay, "/spec/priceAdjustment", json!("10")), "NodeOverlay"),
    ]
}

#[tokio::test(start_paused = true)]
async fn what_pods_and_nodes_refer_to_is_watched_and_set_aside_where_it_cannot_be_read() {
    let server = Server::default();
    let mut wanted = Vec::new();
    for (path, object, broken, event) in facts() {
        server.put(path, object);
        wanted.push(format!("event {event} "));
        if let Some(broken) = broken {
            server.put(path, broken);
            wanted.push(format!("event SetAside {event} "));
        }
    }
    let mut watching = Watching::of(&server);
    let seen = watching.synced().await;
    for part in &wanted {
        assert!(seen.iter().any(|line| line.starts_with(part.as_str())), "{part}: {seen:?}");
    }
    assert_eq!(seen.iter().filter(|line| line.starts_with("event ")).count(), wanted.len(), "{seen:?}");
    for (path, object, _, event) in facts() {
        let name = |key: &str| object["metadata"][key].as_str().unwrap_or_default().to_owned();
        server.delete(path, &format!("{}/{}", name("namespace"), name("name")));
        let told =
            if event == "NodeOverlay" { [watching.brief().await, watching.brief().await][1].clone() } else { watching.brief().await };
        assert!(told.starts_with(&format!("event {event}Gone ")), "{told}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_a_cluster_may_lack_holds_nothing_up() {
    let (server, log) = (Server::default(), Log::default());
    let _guard = log.listen();
    server.close(POLICIES, Some(403));
    server.close(OVERLAYS, Some(404));
    let mut watching = Watching::of(&server);
    assert_eq!(watching.synced().await, [""; 0]);
    watching.nothing().await;
    let said = log.lines("the cluster has none of this kind for us");
    assert_eq!(said.len(), 2, "{said:?}");
    server.close(POLICIES, None);
    server.put(POLICIES, policy("p"));
    assert_eq!(watching.brief().await, "live ScoringPolicy p");
    server.close(POLICIES, Some(403));
    watching.nothing().await;
    server.close(POLICIES, Some(404));
    assert_eq!(watching.brief().await, "ScoringPolicyGone(\"p\")");
    watching.nothing().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_has_just_started_is_asked_again() {
    for code in [403, 404] {
        let (server, log) = (Server::default(), Log::default());
        let _guard = log.listen();
        server.put(POLICIES, policy("p"));
        server.trouble(POLICIES, &[Trouble::Code(code)]);
        let mut watching = Watching::of(&server);
        assert_eq!(watching.synced().await, ["live ScoringPolicy p"], "{code}");
        for shelf in [POLICIES, PODS] {
            server.trouble(shelf, &[Trouble::Code(code)]);
            server.hang_up(shelf);
        }
        server.put(POLICIES, policy("q"));
        server.put(PODS, pod("a", "1", None));
        let start = Instant::now();
        let mut seen = [watching.brief().await, watching.brief().await];
        seen.sort();
        assert_eq!(seen, ["event Pod a", "live ScoringPolicy q"], "{code}");
        assert!(start.elapsed() < Duration::from_secs(5), "{code}: {:?}", start.elapsed());
        assert_eq!(log.lines("the cluster has none of this kind for us"), [""; 0]);
        watching.nothing().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_plans_need_holds_everything_up_and_says_so_each_minute() {
    let (server, log) = (Server::default(), Log::default());
    let _guard = log.listen();
    server.close(CLASSES, Some(403));
    let mut watching = Watching::of(&server);
    assert!(timeout(Duration::from_secs(200), watching.seen.recv()).await.is_err());
    let said = log.lines("nothing is planned yet");
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(said.iter().all(|line| line.contains("kind=\"EC2NodeClass\"") && line.contains("403: as ordered")), "{said:?}");
    server.close(CLASSES, None);
    assert_eq!(watching.synced().await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_claim_comes_back_with_what_was_done_for_it() {
    let server = Server::default();
    let at = |second: u8| format!("2026-01-01T00:00:{second:02}Z");
    let condition =
        |name: &str, second| json!({"type": name, "status": "True", "reason": name, "message": "", "lastTransitionTime": at(second)});
    server.put(
        CLAIMS,
        json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": {
                "name": "c", "uid": "u", "creationTimestamp": at(0), "deletionTimestamp": at(9),
                "labels": {"karpenter.sh/nodepool": "p", "node.kubernetes.io/instance-type": "m5.large",
                    "topology.kubernetes.io/zone": "us-east-1a", "karpenter.sh/capacity-type": "spot"},
                "annotations": {"whittle.sh/price-micros": "96000", "whittle.sh/launch": "g"},
            },
            "spec": {
                "requirements": [], "resources": {"requests": {"cpu": 1}},
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
            },
            "status": {
                "nodeName": "n", "providerID": "aws:///us-east-1a/i-1", "imageID": "ami-1", "capacity": {"cpu": "2"},
                "conditions": [condition("Launched", 1), condition("Registered", 2), condition("Initialized", 3)],
            },
        }),
    );
    let mut watching = Watching::of(&server);
    assert_eq!(watching.brief().await, "live NodeClaim c");
    let Seen::Event(Event::Claim(claim)) = watching.next().await else { panic!("a claim comes back") };
    let start = 1_767_225_600_000;
    let NodeClaim { uid, node_pool, annotations, created, deleting, status, .. } = *claim;
    assert_eq!((uid.as_str(), node_pool.as_str(), created, deleting), ("u", "p", Timestamp(start), true));
    assert_eq!(annotations["whittle.sh/launch"], "g");
    let wanted = ClaimStatus {
        launched: Some(Timestamp(start + 1000)),
        registered: Some(Timestamp(start + 2000)),
        initialized: Some(Timestamp(start + 3000)),
        provider_id: "aws:///us-east-1a/i-1".to_owned(),
        image: "ami-1".to_owned(),
        node: "n".to_owned(),
        instance_type: "m5.large".to_owned(),
        zone: "us-east-1a".to_owned(),
        capacity_type: Some(CapacityType::Spot),
        capacity: whittle_model::Resources::of(&[("cpu", 2000)]),
        price: Micros(96_000),
        ..ClaimStatus::default()
    };
    assert_eq!(status, wanted);
}

#[tokio::test(start_paused = true)]
async fn config_maps_are_those_of_the_own_namespace_and_only_if_wanted() {
    let server = Server::default();
    let map = |name: &str, text: &str| json!({"metadata": {"name": name, "namespace": "kube-system"}, "data": {"t": text}, "binaryData": {"b": "AGFzbQ=="}});
    server.put(MAPS, map("m", "one"));
    let mut watching = Watching::of(&server);
    let Seen::ConfigMap { name, data } = watching.next().await else { panic!("a ConfigMap is there") };
    assert_eq!((name.as_str(), data["t"].as_slice(), data["b"].as_slice()), ("m", b"one".as_slice(), b"\0asm".as_slice()));
    watching.synced().await;
    server.put(MAPS, map("m", "one"));
    watching.nothing().await;
    server.put(MAPS, map("m", "two"));
    assert_eq!(watching.brief().await, "live ConfigMap m");
    server.delete(MAPS, "kube-system/m");
    assert_eq!(watching.brief().await, "ConfigMapGone(\"m\")");
    let before = server.requests(MAPS).len();
    let mut without = Watching::with(&server, WatchOptions { config_maps: false, ..WatchOptions::new("kube-system") });
    without.synced().await;
    without.nothing().await;
    drop(watching);
    assert!(server.requests(MAPS)[before..].iter().all(|r| r.contains("watch=")), "nobody listed them again");
}

#[tokio::test(start_paused = true)]
async fn where_watching_is_forbidden_lists_still_tell() {
    let (server, log) = (Server::default(), Log::default());
    let _guard = log.listen();
    server.unwatch(PODS);
    let mut watching = Watching::of(&server);
    watching.synced().await;
    server.put(PODS, pod("a", "1", None));
    assert_eq!(watching.brief().await, "event Pod a");
    server.delete(PODS, "default/a");
    assert_eq!(watching.brief().await, "event PodGone a");
    watching.nothing().await;
    assert!(server.requests(PODS).len() < 70, "twice a minute is enough: {}", server.requests(PODS).len());
    assert_eq!(log.lines("403: as ordered").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn leave_to_watch_is_enough_for_config_maps() {
    let (server, log) = (Server::default(), Log::default());
    let _guard = log.listen();
    server.unlist(MAPS);
    let map = |text: &str| json!({"metadata": {"name": "m", "namespace": "kube-system"}, "data": {"t": text}});
    server.put(MAPS, map("one"));
    let mut watching = Watching::of(&server);
    assert_eq!(watching.synced().await, ["live ConfigMap m"]);
    server.put(MAPS, map("two"));
    assert_eq!(watching.brief().await, "live ConfigMap m");
    assert_eq!(log.lines("the cluster has none of this kind for us"), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn the_watches_end_with_their_listener() {
    let server = Server::default();
    let mut watching = Watching::of(&server);
    watching.synced().await;
    drop(watching.seen);
    assert!(timeout(Duration::from_secs(1), watching.task).await.unwrap().unwrap().is_ok());
    let before = server.requests(PODS).len();
    tokio::time::sleep(Duration::from_secs(1000)).await;
    assert_eq!(server.requests(PODS).len(), before, "no task is left behind");
}

#[tokio::test]
async fn a_client_says_its_name_and_keeps_its_pace() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    let options = ClientOptions { qps: 20, burst: 1, ..ClientOptions::default() };
    let client = client(kube::Config::new(uri), &options).unwrap();
    let server = tokio::spawn(async move {
        let mut heads = Vec::new();
        for _ in 0..3 {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = [0; 2048];
            let read = stream.read(&mut head).await.unwrap();
            heads.push(String::from_utf8_lossy(&head[..read]).to_lowercase());
            let body = r#"{"major":"1","minor":"36","buildDate":"","compiler":"","gitCommit":"","gitTreeState":"","gitVersion":"v1.36.3","goVersion":"","platform":""}"#;
            let answer = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
        heads
    });
    let start = Instant::now();
    for _ in 0..3 {
        assert_eq!(client.apiserver_version().await.unwrap().git_version, "v1.36.3");
    }
    assert!(start.elapsed() >= Duration::from_millis(100), "20 a second, one at once: the third waits a tenth of a second");
    let wanted = concat!("user-agent: whittle-controller/", env!("CARGO_PKG_VERSION"));
    assert!(server.await.unwrap().iter().all(|head| head.contains(wanted)));
}

/// What can happen to pods and to those who watch them.
#[derive(Debug, Clone)]
enum Step {
    Put(u8, u8),
    Delete(u8),
    Vanish(u8),
    HangUp,
    Compact,
    Trouble(u16),
    Refuse,
    Pause(u16),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..5u8, 1..4u8).prop_map(|(name, cpu)| Step::Put(name, cpu)),
        2 => (0..5u8).prop_map(Step::Delete),
        1 => (0..5u8).prop_map(Step::Vanish),
        1 => Just(Step::HangUp),
        1 => Just(Step::Compact),
        1 => prop_oneof![Just(410), Just(429), Just(500)].prop_map(Step::Trouble),
        1 => Just(Step::Refuse),
        2 => (0..3000u16).prop_map(Step::Pause),
    ]
}

async fn take(server: &Server, step: &Step) {
    let key = |name: &u8| format!("default/{name}");
    let there = |name: &u8| server.objects(PODS).contains_key(&key(name));
    match step {
        Step::Put(name, cpu) => server.put(PODS, pod(&name.to_string(), &cpu.to_string(), None)),
        Step::Delete(name) if there(name) => server.delete(PODS, &key(name)),
        Step::Vanish(name) if there(name) => {
            server.vanish(PODS, &key(name));
            server.compact(PODS);
        }
        Step::Delete(_) | Step::Vanish(_) => {}
        Step::HangUp => server.hang_up(PODS),
        Step::Compact => server.compact(PODS),
        Step::Trouble(code) => server.trouble(PODS, &[Trouble::Code(*code)]),
        Step::Refuse => server.trouble(PODS, &[Trouble::Refused]),
        Step::Pause(millis) => tokio::time::sleep(Duration::from_millis(u64::from(*millis))).await,
    }
}

/// What the events leave behind; each must say something new.
fn fold(world: &mut BTreeMap<String, i64>, seen: Seen) {
    if let Seen::Event(Event::Pod(pod)) = seen {
        let cpu = pod.requests.get("cpu");
        assert_ne!(world.insert(pod.key.to_string(), cpu), Some(cpu), "{} is told twice", pod.key);
    } else if let Seen::Event(Event::PodGone(key)) = seen {
        assert!(world.remove(&key.to_string()).is_some(), "{key} is gone twice");
    } else {
        assert!(matches!(seen, Seen::Event(Event::Synced) | Seen::Synced), "{seen:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_happens_the_events_lead_to_what_is(steps in proptest::collection::vec(step(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let (server, mut world) = (Server::default(), BTreeMap::new());
        runtime.block_on(async {
            let mut watching = Watching::of(&server);
            for each in &steps {
                take(&server, each).await;
                while let Ok(seen) = watching.seen.try_recv() {
                    fold(&mut world, seen);
                }
            }
            while let Ok(Some(seen)) = timeout(Duration::from_secs(400), watching.seen.recv()).await {
                fold(&mut world, seen);
            }
        });
        let cpu = |object: &Value| object["spec"]["containers"][0]["resources"]["requests"]["cpu"].as_str().unwrap().parse::<i64>().unwrap() * 1000;
        let wanted: BTreeMap<String, i64> = server.objects(PODS).iter().map(|(key, object)| (key.clone(), cpu(object))).collect();
        prop_assert_eq!(world, wanted);
    }
}
