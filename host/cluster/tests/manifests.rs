//! Whole files, as users have them, into objects.

use whittle_cluster::{Located, Object, Strictness, WorkloadKind, link, not_acted_on, read};
use whittle_model::{
    CapacityType, DaemonSet, Duration, Effect, Labels, Node, NodeClaim, NodePool, Pod, PodKey, PodPhase, Requirement, Resources, Taint,
    Timestamp, keys,
    resources::{CPU, MEMORY, PODS},
};

fn objects(file: &str) -> Vec<Located<Object>> {
    let path = format!("{}/tests/fixtures/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("the fixture is there");
    let objects = read(&text, file, Strictness::Strict).expect("the fixture reads");
    link(objects).expect("the fixture is whole")
}

fn pool(objects: &[Located<Object>]) -> &NodePool {
    objects.iter().find_map(|o| if let Object::NodePool(p) = &o.object { Some(p.as_ref()) } else { None }).expect("a pool")
}

fn pods(objects: &[Located<Object>]) -> Vec<&Pod> {
    objects.iter().filter_map(|o| if let Object::Pod(p) = &o.object { Some(p.as_ref()) } else { None }).collect()
}

fn node(objects: &[Located<Object>]) -> &Node {
    objects.iter().find_map(|o| if let Object::Node(n) = &o.object { Some(n.as_ref()) } else { None }).expect("a node")
}

fn claim(objects: &[Located<Object>]) -> &NodeClaim {
    objects.iter().find_map(|o| if let Object::NodeClaim(c) = &o.object { Some(c.as_ref()) } else { None }).expect("a claim")
}

fn daemon_set(objects: &[Located<Object>]) -> &DaemonSet {
    objects.iter().find_map(|o| if let Object::DaemonSet(d) = &o.object { Some(d.as_ref()) } else { None }).expect("a DaemonSet")
}

fn taint(key: &str, effect: Effect) -> Taint {
    Taint::new(key, "true", effect)
}

#[test]
fn the_walk_through_reads_as_written() {
    let all = objects("walkthrough.yaml");
    let places: Vec<(usize, usize, &str)> = all.iter().map(|o| (o.document, o.line, o.name.as_str())).collect();
    assert_eq!(places, [(1, 2, "NodePool default"), (2, 36, "EC2NodeClass default"), (3, 51, "Deployment inflate")]);
    assert!(all.iter().all(|o| o.refused().is_empty()));
    let pool = pool(&all);
    assert_eq!(pool.limits.amounts, [("cpu".to_owned(), 1_000_000)]);
    assert_eq!(pool.disruption.consolidate_after, Some(Duration::minutes(1)));
    assert_eq!(pool.disruption.budgets[0].nodes, "10%");
    assert_eq!(pool.template.expire_after, Some(Duration::minutes(720 * 60)));
    assert_eq!(pool.template.node_class, "default");
    let generation = pool.template.requirements.get("karpenter.k8s.aws/instance-generation").map(Requirement::bounds);
    assert_eq!(generation, Some((Some(3), None)));
    let Object::NodeClass(class) = &all[1].object else { panic!("{:?}", all[1]) };
    assert_eq!((class.family.as_str(), class.root_volume_bytes, class.instance_store_raid0), ("AL2023", None, false));
    let Object::Workload(inflate) = &all[2].object else { panic!("{:?}", all[2]) };
    assert_eq!((inflate.kind, inflate.replicas, inflate.present), (WorkloadKind::Deployment, 5, 0));
    assert_eq!(inflate.key, PodKey::new("default", "inflate"));
    assert_eq!(inflate.template.requests, Resources::of(&[(CPU, 1000), (PODS, 1)]));
    assert_eq!(not_acted_on(&all), [""; 0]);
}

#[test]
fn a_pool_keeps_everything_it_says() {
    let all = objects("gpu.yaml");
    let pool = pool(&all);
    let limits: Vec<(&str, i64)> = pool.limits.amounts.iter().map(|(n, a)| (n.as_str(), *a)).collect();
    assert_eq!(limits, [("cpu", 1_000_000), ("memory", 1000 << 30), ("nodes", 10), ("nvidia.com/gpu", 0)]);
    assert_eq!(pool.weight, 50);
    assert_eq!(pool.template.labels, Labels::from([("example.com/team".to_owned(), "vision".to_owned())]));
    assert_eq!(pool.template.taints, [taint("nvidia.com/gpu", Effect::NoSchedule)]);
    assert_eq!(pool.template.startup_taints, [taint("node.cilium.io/agent-not-ready", Effect::NoExecute)]);
    assert_eq!((pool.template.expire_after, pool.template.termination_grace_period), (None, Some(Duration::minutes(90))));
    assert_eq!(pool.disruption.consolidate_after, None);
    let zone = pool.template.requirements.get(keys::ZONE).expect("the deprecated key is read as the stable one");
    assert!(!zone.allows("us-east-1e") && zone.allows("us-east-1a"));
    let window = &pool.disruption.budgets[1];
    assert_eq!((window.schedule.as_deref(), window.duration), (Some("0 9 * * mon-fri"), Some(Duration::minutes(480))));
}

#[test]
fn a_node_class_keeps_what_instance_types_depend_on() {
    let all = objects("gpu.yaml");
    let Object::NodeClass(class) = &all[1].object else { panic!("{:?}", all[1]) };
    assert_eq!((class.family.as_str(), class.root_volume_bytes, class.instance_store_raid0), ("Bottlerocket", Some(100 << 30), true));
    let of = |pairs: &[(&str, &str)]| pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect::<Labels>();
    let kubelet = &class.kubelet;
    assert_eq!((kubelet.max_pods, kubelet.pods_per_core), (Some(42), None));
    assert_eq!(kubelet.kube_reserved, of(&[("cpu", "200m"), ("memory", "300Mi")]));
    assert_eq!(kubelet.system_reserved, of(&[("memory", "100Mi")]));
    assert_eq!(kubelet.eviction_hard, of(&[("memory.available", "5%"), ("nodefs.available", "10Gi")]));
}

#[test]
fn a_pod_keeps_what_decides_where_it_may_run() {
    let all = objects("gpu.yaml");
    let pod = pods(&all)[0];
    assert_eq!(pod.key, PodKey::new("vision", "train"));
    // The init container needs 2000m beside the sidecar's 100m, more than both containers; plus overhead.
    let wanted = Resources::of(&[(CPU, 2110), (MEMORY, 3 << 29), ("nvidia.com/gpu", 1), (PODS, 1)]);
    assert_eq!(pod.requests, wanted);
    assert_eq!((pod.priority, pod.priority_class.as_str()), (-10, "batch"));
    assert_eq!(pod.affinity.node_selector.to_string(), "node.kubernetes.io/instance-type In [g5.xlarge]");
    let terms: Vec<String> = pod.affinity.node_terms.iter().map(ToString::to_string).collect();
    assert_eq!(terms, ["topology.kubernetes.io/zone In [us-east-1a]", "topology.kubernetes.io/zone In [us-east-1b]"]);
    assert!(taint("nvidia.com/gpu", Effect::NoSchedule).tolerated_by(&pod.tolerations));
    assert_eq!(pod.anti_affinity[0].namespaces, ["vision"]);
    assert!(pod.anti_affinity[0].selector.matches(&pod.labels));
    assert_eq!(pod.unsupported, [""; 0]);
    let Object::Workload(job) = &all[6].object else { panic!("{:?}", all[6]) };
    assert_eq!((job.kind, job.replicas, job.completions), (WorkloadKind::Job, 3, Some(3)));
    let agent = &daemon_set(&all).template;
    assert_eq!((agent.priority, agent.tied_to_node()), (2_000_001_000, true));
}

#[test]
fn a_snapshot_of_a_cluster_is_the_starting_world() {
    let all = objects("snapshot.yaml");
    let node = node(&all);
    assert_eq!((node.ready, node.cordoned, node.created), (true, true, Timestamp(1_772_359_200_000)));
    assert_eq!(node.labels.get(keys::ARCH).map(String::as_str), Some("amd64"));
    assert_eq!(node.allocatable.get(CPU), 1930);
    let pods = pods(&all);
    assert_eq!((pods[0].node.as_deref(), pods[0].phase), (Some("ip-10-0-1-7.ec2.internal"), PodPhase::Running));
    assert_eq!(pods[0].requests.get(CPU), 400, "a resize in place holds what it was given");
    assert_eq!(pods[0].priority, 7);
    assert_eq!((pods[1].unschedulable, pods[1].nominated.as_deref()), (true, Some("ip-10-0-1-7.ec2.internal")));
    let claim = claim(&all);
    let status = &claim.status;
    assert_eq!((claim.node_pool.as_str(), status.instance_type.as_str(), status.zone.as_str()), ("default", "m7i.large", "us-east-1a"));
    assert_eq!((status.capacity_type, status.initialized), (Some(CapacityType::Spot), None));
    assert_eq!(status.registered, Some(node.created));
    assert_eq!(status.launch_error, None);
    let Object::Workload(web) = &all[1].object else { panic!("{:?}", all[1]) };
    assert_eq!((web.replicas, web.present), (2, 1), "the live pod whose owner is known belongs to the Deployment");
    let skipped: Vec<&str> =
        all.iter().filter_map(|o| if let Object::Skipped { kind, .. } = &o.object { Some(kind.as_str()) } else { None }).collect();
    assert_eq!(skipped, ["ReplicaSet", "Service", "Rollout"]);
    assert!(pods[0].spread[0].required && pods[0].spread[0].honor_affinity);
    assert!(all.iter().all(|o| o.refused().is_empty()), "a bound pod is never planned for");
}

/// A pod with one more field.
fn with(more: &str) -> String {
    format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec:\n  containers: [{{name: c, image: i}}]\n  {more}\n")
}

fn assert_refused(rows: &[(String, String)]) {
    for (text, path) in rows {
        let objects = read(text, "f", Strictness::Strict).expect(text);
        assert_eq!(objects[0].refused(), [path.as_str()], "{text}");
    }
}

#[test]
fn every_field_of_a_pod_that_is_not_built_yet_is_listed_by_path() {
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let rows = [
        (
            with(&format!(
                "affinity: {{nodeAffinity: {{{required}: {{nodeSelectorTerms: [{{matchFields: [{{key: metadata.name, operator: In, values: [node]}}]}}]}}}}}}"
            )),
            format!("spec.affinity.nodeAffinity.{required}.nodeSelectorTerms[0].matchFields"),
        ),
        (with("volumes: [{name: v, awsElasticBlockStore: {volumeID: vol-1}}]"), "spec.volumes[0].awsElasticBlockStore".to_owned()),
        (with("schedulingGates: [{name: wait}]"), "spec.schedulingGates".to_owned()),
        (with("runtimeClassName: gvisor"), "spec.runtimeClassName".to_owned()),
        (with("tolerations: [{key: k, operator: Gt, value: \"5\"}]"), "spec.tolerations[0].operator".to_owned()),
    ];
    assert_refused(&rows);
    for free in [
        "hostNetwork: true",
        "volumes: [{name: v, emptyDir: {}}]",
        "volumes: [{name: v, csi: {driver: d}}]",
        "schedulerName: other",
        "dnsPolicy: Default",
    ] {
        let objects = read(&with(free), "f", Strictness::Strict).expect(free);
        assert_eq!(objects[0].refused(), [""; 0], "{free}");
    }
}

#[test]
fn every_other_field_that_is_not_built_yet_is_listed_by_path() {
    assert_refused(&[("apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: c}\n".to_owned(), "kind CronJob".to_owned())]);
}

#[test]
fn a_capacity_buffer_is_read_with_what_it_is_for() {
    let template = |name: &str| {
        format!(
            "apiVersion: v1\nkind: PodTemplate\nmetadata: {{name: {name}}}\ntemplate:\n  metadata: {{labels: {{a: b}}}}\n  \
             spec: {{runtimeClassName: x, nodeName: node-1, containers: [{{name: c, resources: {{requests: {{cpu: 2}}}}}}]}}\n---\n"
        )
    };
    let buffer = |spec: &str| {
        format!(
            "apiVersion: autoscaling.x-k8s.io/v1beta1\nkind: CapacityBuffer\nmetadata: {{name: spare, namespace: default}}\nspec: {spec}\n"
        )
    };
    let text = template("used") + &template("other") + &buffer("{podTemplateRef: {name: used}, limits: {cpu: 7}}");
    let objects = link(read(&text, "f", Strictness::Strict).expect("reads")).expect("is whole");
    let [Object::PodTemplate(used), Object::PodTemplate(_), Object::CapacityBuffer(spare)] = [0, 1, 2].map(|at| &objects[at].object) else {
        panic!("{objects:?}")
    };
    assert_eq!(spare.spec.filled(used, None).map(|buffer| buffer.count), Ok(3));
    assert_eq!(objects[0].refused(), ["template.spec.runtimeClassName"], "a node it names would be its own");
    assert_eq!(objects[1].refused(), [""; 0], "no buffer names it");
    let other = read(&buffer("{provisioningStrategy: mine, podTemplateRef: {name: used}, replicas: 1}"), "f", Strictness::Strict);
    let said = &other.expect("reads")[0].not_acted_on;
    assert!(said[0].starts_with("spec.provisioningStrategy: buffers of strategy \"mine\" are left to others"), "{said:?}");
    let wrong = buffer("{podTemplateRef: {name: used}, scalableRef: {kind: Job, name: j}, size: 3}");
    let error = read(&wrong, "f.yaml", Strictness::Strict).expect_err("it breaks rules").to_string();
    assert_eq!(
        error.lines().collect::<Vec<_>>(),
        [
            "f.yaml:4: document 1, CapacityBuffer default/spare, spec.size: unknown field size; known here: \
             provisioningStrategy, podTemplateRef, scalableRef, replicas, percentage, limits",
            "f.yaml:4: document 1, CapacityBuffer default/spare, spec.podTemplateRef: says nothing of how many; write replicas or limits beside it",
            "f.yaml:4: document 1, CapacityBuffer default/spare, spec.scalableRef: podTemplateRef and scalableRef exclude each other; keep one of them",
        ]
    );
}

#[test]
fn what_is_not_built_may_stand_where_it_bears_on_nothing() {
    let daemons = "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: d}\nspec:\n  selector: {matchLabels: {a: b}}\n  template:\n    \
                   metadata: {labels: {a: b}}\n    spec:\n      hostNetwork: true\n      containers: [{name: c, ports: [{containerPort: 80}]}]\n";
    let objects = read(daemons, "f", Strictness::Strict).expect("reads");
    assert_eq!(objects[0].refused(), [""; 0]);
    let web = |replicas: u32| {
        format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\nspec:\n  replicas: {replicas}\n  selector: {{matchLabels: {{a: b}}}}\n  \
             template:\n    metadata: {{labels: {{a: b}}}}\n    spec:\n      schedulingGates: [{{name: g}}]\n      containers: [{{name: c}}]\n---\n\
             apiVersion: v1\nkind: Pod\nmetadata: {{name: p, ownerReferences: [{{apiVersion: apps/v1, kind: ReplicaSet, name: web-1, uid: u, \
             controller: true}}]}}\nspec: {{nodeName: n1, containers: [{{name: c}}]}}\n"
        )
    };
    for (replicas, refused) in [(1, vec![]), (2, vec!["spec.template.spec.schedulingGates"])] {
        let objects = link(read(&web(replicas), "f", Strictness::Strict).expect("reads")).expect("is whole");
        assert_eq!(objects[0].refused(), refused, "{replicas}");
    }
}

#[test]
fn a_demand_whose_every_term_is_void_is_never_met() {
    let text = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers: [{name: c}]\n  affinity: {nodeAffinity: \
                {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{}]}}}\n";
    let objects = read(text, "f", Strictness::Strict).unwrap_or_else(|e| panic!("{e}"));
    let terms = &pods(&objects)[0].affinity.node_terms;
    assert_eq!(terms.len(), 1);
    for host in [None, Some("a")] {
        let labels: Labels = host.map(|h| (keys::HOSTNAME.to_owned(), h.to_owned())).into_iter().collect();
        assert!(!terms[0].met_by(&labels), "{host:?}");
    }
}

#[test]
fn fields_of_live_objects_may_be_newer_than_this_version() {
    let text = |meta: &str| format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: ns{meta}}}\nspec: {{newer: 1}}\n");
    assert!(read(&text(""), "f", Strictness::Strict).is_err());
    assert!(read(&text(", uid: u"), "f", Strictness::Strict).is_ok());
    assert!(read(&text(""), "f", Strictness::Lenient).is_ok());
}
