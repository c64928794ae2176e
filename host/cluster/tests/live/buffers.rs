//! The watches of capacity buffers and of what these are for, and both brought together.

use super::*;
use whittle_cluster::api;
use whittle_cluster::buffers::Buffers;
use whittle_cluster::live::{BufferBase, capacity_buffer};
use whittle_cluster::write::BufferFound;
use whittle_model::{BufferSource, Pod, PodKey, Resources, ScalableKind};

const BUFFERS: &str = "/apis/autoscaling.x-k8s.io/v1beta1/capacitybuffers";
const TEMPLATES: &str = "/api/v1/podtemplates";
const DEPLOYMENTS: &str = "/apis/apps/v1/deployments";
const STATEFUL_SETS: &str = "/apis/apps/v1/statefulsets";
const REPLICA_SETS: &str = "/apis/apps/v1/replicasets";
const ALL: [&str; 5] = [BUFFERS, TEMPLATES, DEPLOYMENTS, STATEFUL_SETS, REPLICA_SETS];

fn with_gate(server: &Server) -> Watching {
    Watching::with(server, WatchOptions { page_size: 2, capacity_buffers: true, ..WatchOptions::new("kube-system") })
}

fn buffer(spec: &Value) -> Value {
    json!({
        "apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer", "metadata": {"name": "spare", "namespace": "shop"},
        "spec": spec,
    })
}

/// A template whose pods would have disks, and run on a node of their own.
fn template(cpu: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {
            "nodeName": "n", "nodeSelector": {"disk": "ssd"},
            "containers": [{"name": "a", "resources": {"requests": {"cpu": cpu}}, "volumeMounts": [{"name": "v", "mountPath": "/v"}]}],
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}, {"name": "e", "ephemeral": {}}, {"name": "t", "emptyDir": {}}],
        },
    })
}

fn workload(replicas: Option<i32>, cpu: &str, status: i32) -> Value {
    json!({
        "metadata": {"name": "web", "namespace": "shop", "generation": 7},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "serviceName": "web", "template": template(cpu)},
        "status": {"readyReplicas": status, "replicas": status},
    })
}

/// The next that is seen of what buffers are for.
async fn base(watching: &mut Watching) -> (String, BufferSource, Option<Result<BufferBase, String>>) {
    let seen = watching.next().await;
    let Seen::BufferBase { namespace, source, base } = seen else { unreachable!("nothing else changed: {seen:?}") };
    (namespace, source, base.map(|base| *base))
}

#[tokio::test(start_paused = true)]
async fn nothing_of_buffers_is_watched_without_the_gate() {
    let server = Server::default();
    server.put(BUFFERS, buffer(&json!({})));
    server.put(DEPLOYMENTS, workload(Some(3), "1", 0));
    let mut watching = Watching::of(&server);
    assert_eq!(watching.synced().await, [""; 0]);
    watching.nothing().await;
    for shelf in ALL {
        assert_eq!(server.requests(shelf), [""; 0], "{shelf}");
    }
}

#[tokio::test(start_paused = true)]
async fn kinds_that_nobody_serves_are_said_once_and_looked_for_again() {
    let (server, log) = (Server::default(), Log::default());
    let _guard = log.listen();
    server.close(BUFFERS, Some(404));
    server.put(TEMPLATES, json!({"metadata": {"name": "small", "namespace": "shop"}, "template": template("1")}));
    let mut watching = with_gate(&server);
    assert_eq!(watching.synced().await, ["BufferBase shop PodTemplate small"], "the others do not wait for the CRD");
    watching.nothing().await;
    let said = log.lines("the cluster has none of this kind for us");
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("CapacityBuffer") && said[0].contains("install the CustomResourceDefinition"), "{said:?}");
    server.close(BUFFERS, None);
    server.put(BUFFERS, buffer(&json!({"podTemplateRef": {"name": "small"}, "replicas": 1})));
    assert_eq!(watching.brief().await, "live CapacityBuffer spare");
    server.delete(BUFFERS, "shop/spare");
    assert_eq!(watching.brief().await, r#"CapacityBufferGone(PodKey { namespace: "shop", name: "spare" })"#);
}

#[tokio::test(start_paused = true)]
async fn what_buffers_are_for_is_told_when_its_pods_or_their_number_change() {
    for (shelf, kind) in
        [(DEPLOYMENTS, ScalableKind::Deployment), (STATEFUL_SETS, ScalableKind::StatefulSet), (REPLICA_SETS, ScalableKind::ReplicaSet)]
    {
        let server = Server::default();
        let mut watching = with_gate(&server);
        watching.synced().await;
        let source = BufferSource::Scalable(kind, "web".to_owned());
        server.put(shelf, workload(None, "500m", 0));
        let (namespace, of, told) = base(&mut watching).await;
        assert_eq!((namespace.as_str(), &of), ("shop", &source));
        let told = told.unwrap().unwrap();
        let pod = &told.template;
        assert_eq!((told.scale, told.generation, pod.requests.get("cpu")), (Some(1), 0, 500));
        assert_eq!(pod.labels.get("app").map(String::as_str), Some("web"));
        assert_eq!(pod.affinity.node_selector.iter().count(), 1, "where it may run counts");
        assert_eq!((pod.volumes.len(), pod.unsupported.len()), (0, 0), "its disks and its node do not");
        server.put(shelf, workload(None, "500m", 1));
        watching.nothing().await;
        server.put(shelf, workload(Some(12), "500m", 1));
        assert_eq!(base(&mut watching).await.2.unwrap().unwrap().scale, Some(12));
        server.put(shelf, workload(Some(12), "x", 1));
        let why = base(&mut watching).await.2.unwrap().unwrap_err();
        assert!(why.starts_with("spec.template.spec.containers[0].resources.requests.cpu: "), "{why}");
        server.delete(shelf, "shop/web");
        assert_eq!(base(&mut watching).await, ("shop".to_owned(), source, None));
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_template_is_told_with_its_generation() {
    let server = Server::default();
    let mut watching = with_gate(&server);
    watching.synced().await;
    for (generation, cpu) in [(1, "1"), (2, "2")] {
        let meta = json!({"name": "small", "namespace": "shop", "generation": generation});
        server.put(TEMPLATES, json!({"metadata": meta, "template": template(cpu)}));
        let (_, of, told) = base(&mut watching).await;
        let told = told.unwrap().unwrap();
        assert_eq!((of, told.scale, told.generation), (BufferSource::PodTemplate("small".to_owned()), None, generation));
        assert_eq!(told.template.requests.get("cpu"), generation * 1000);
    }
    server.delete(TEMPLATES, "shop/small");
    assert_eq!(base(&mut watching).await.2, None);
}

#[test]
fn a_buffer_that_breaks_a_rule_says_which() {
    let read = |spec: &Value| capacity_buffer(&serde_json::from_value(buffer(spec)).unwrap());
    let named = |more: Value| {
        let mut spec = json!({"scalableRef": {"apiGroup": "apps", "kind": "Deployment", "name": "web"}});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        spec
    };
    for (spec, why) in [
        (json!({}), "spec: neither podTemplateRef nor scalableRef says which pods the room is for; write one of them"),
        (json!({"podTemplateRef": {"name": "small"}}), "spec.podTemplateRef: says nothing of how many; write replicas or limits beside it"),
        (json!({"podTemplateRef": {"name": ""}, "replicas": 1}), "spec.podTemplateRef.name: the name is empty"),
        (
            named(json!({"podTemplateRef": {"name": "small"}, "replicas": 1})),
            "spec.scalableRef: podTemplateRef and scalableRef exclude each other; keep one of them",
        ),
        (json!({"scalableRef": {"apiGroup": "batch", "kind": "Job", "name": "j"}}), "spec.scalableRef.apiGroup: \"batch\" has no kind"),
        (
            json!({"scalableRef": {"kind": "Deploymnet", "name": "web"}}),
            "spec.scalableRef.kind: \"Deploymnet\" is not known; did you mean Deployment?",
        ),
        (
            json!({"scalableRef": {"kind": "Rollout", "name": "web"}}),
            "spec.scalableRef.kind: \"Rollout\" is not known; write one of Deployment, StatefulSet, ReplicaSet",
        ),
        (named(json!({"replicas": -1})), "spec.replicas: is below zero; write at least 0"),
        (named(json!({"percentage": -5})), "spec.percentage: is below zero; write at least 0"),
        (named(json!({"limits": {"cpu": "-1"}})), "spec.limits.cpu: -1 is below zero; write an amount of at least 0"),
        (named(json!({"limits": {"cpu": "many"}})), "spec.limits.cpu: "),
    ] {
        let said = read(&spec).unwrap_err();
        assert!(said.starts_with(why), "{spec}: {said}");
    }
    let all = named(json!({"replicas": 2, "percentage": 20, "limits": {"cpu": 4, "memory": "1Gi"}}));
    let object = read(&all).unwrap();
    assert_eq!(object.spec.limits, [("cpu".to_owned(), 4000), ("memory".to_owned(), 1 << 30)]);
    assert_eq!((object.active, object.spec.replicas, object.spec.percentage), (true, Some(2), Some(20)));
    let core = json!({"scalableRef": {"apiGroup": "", "kind": "ReplicaSet", "name": "web"}, "provisioningStrategy": "example.com/other"});
    let object = read(&core).unwrap();
    assert_eq!((object.active, object.spec.of), (false, BufferSource::Scalable(ScalableKind::ReplicaSet, "web".to_owned())));
}

fn web() -> BufferSource {
    BufferSource::Scalable(ScalableKind::Deployment, "web".to_owned())
}

fn scaled(scale: u32) -> Option<Result<BufferBase, String>> {
    let template = Pod { requests: Resources::of(&[("cpu", 500)]), ..Pod::default() };
    Some(Ok(BufferBase { template, scale: Some(scale), generation: 0 }))
}

fn written(spec: &Value) -> api::CapacityBuffer {
    serde_json::from_value(buffer(spec)).unwrap()
}

fn of_web(more: &Value) -> api::CapacityBuffer {
    let mut spec = json!({ "scalableRef": { "apiGroup": "apps", "kind": "Deployment", "name": "web" } });
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    written(&spec)
}

fn count(event: Option<&Event>) -> Option<u32> {
    event.and_then(|event| if let Event::CapacityBuffer(buffer) = event { Some(buffer.count) } else { None })
}

#[test]
fn the_engine_hears_of_a_buffer_what_changes_it() {
    let mut buffers = Buffers::default();
    let key = PodKey::new("shop", "spare");
    let found = |buffers: &Buffers| buffers.found().find(|(of, _, _)| **of == key).map(|(_, _, found)| found.clone());
    let share = of_web(&json!({ "percentage": 20 }));
    assert_eq!(buffers.put(share.clone()), None);
    assert_eq!(found(&buffers), Some(BufferFound::NoScalable("Deployment web".to_owned())));
    assert_eq!(count(buffers.base("shop", &web(), scaled(10)).first()), Some(2));
    assert_eq!(found(&buffers), Some(BufferFound::Resolved { base: None, count: 2, standing: None }));
    assert_eq!(buffers.base("shop", &web(), scaled(6)), vec![], "a fifth of six is two as well");
    assert_eq!(buffers.base("other", &web(), scaled(60)), vec![], "another namespace");
    assert_eq!(count(buffers.base("shop", &web(), scaled(20)).first()), Some(4));
    assert_eq!(count(buffers.put(of_web(&json!({ "percentage": 20, "replicas": 9 }))).as_ref()), Some(9));
    assert_eq!(buffers.base("shop", &web(), None), [Event::CapacityBufferGone(key.clone())]);
    assert_eq!(buffers.gone(&key), None, "the engine heard so");
    assert_eq!(found(&buffers), None);
    buffers.base("shop", &web(), scaled(10));
    assert_eq!(count(buffers.put(share).as_ref()), Some(2));
    assert_eq!(buffers.gone(&key), Some(Event::CapacityBufferGone(key.clone())));
}

#[test]
fn what_is_wrong_with_a_buffer_is_found_and_buffers_of_others_are_let_be() {
    let mut buffers = Buffers::default();
    buffers.base("shop", &web(), scaled(10));
    buffers.base("shop", &BufferSource::PodTemplate("odd".to_owned()), Some(Err("spec.x: is odd".to_owned())));
    let key = PodKey::new("shop", "spare");
    for (object, why) in [
        (written(&json!({})), "neither podTemplateRef nor scalableRef"),
        (written(&json!({ "podTemplateRef": { "name": "odd" }, "replicas": 1 })), "PodTemplate odd cannot be read: spec.x: is odd"),
        (of_web(&json!({ "replicas": 10_001 })), "10000 is the most"),
    ] {
        assert_eq!(count(buffers.put(of_web(&json!({ "replicas": 1 }))).as_ref()), Some(1));
        assert_eq!(buffers.put(object), Some(Event::CapacityBufferGone(key.clone())), "{why}");
        let found = buffers.found().next().map(|(_, _, found)| found.clone()).unwrap();
        assert!(matches!(&found, BufferFound::Failed(said) if said.contains(why)), "{found:?}");
    }
    assert_eq!(buffers.put(of_web(&json!({ "replicas": -1, "provisioningStrategy": "example.com/other" }))), None);
    assert_eq!(buffers.found().count(), 0);
}
