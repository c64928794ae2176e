//! A small cluster to test against: a catalogue of eight types, builders for what a cluster holds,
//! random worlds, and a door that carries out what the engine orders.
#![expect(dead_code, reason = "each test binary uses its part")]

pub mod asks;
pub mod door;
pub mod filters;
pub mod full;
pub mod leave;
pub mod random;

use std::sync::Arc;

use whittle_engine::{Engine, Objection, Plan, audit};
use whittle_model::resources::{CPU, EPHEMERAL_STORAGE, MEMORY, PODS};
use whittle_model::{
    Action, CapacityType, Catalog, DaemonSet, Duration, Event, InstanceType, LabelSelector, Labels, Launched, ListPrice, Micros, Node,
    NodeClaim, NodeClass, NodePool, Offering, Operator, Outcome, Owner, Pod, PodAffinityTerm, PodKey, PodPhase, Requirement, Requirements,
    Resources, Settings, Taint, Template, Timestamp, Toleration, keys,
};

pub const GIB: i64 = 1 << 30;
pub const CATEGORY: &str = "karpenter.k8s.aws/instance-category";
pub const TYPE_CPU: &str = "karpenter.k8s.aws/instance-cpu";
pub const ZONES: [&str; 3] = ["us-east-1a", "us-east-1b", "us-east-1c"];
/// When planning happens: after everything was made, before what was sold out is forgotten.
pub const NOW: Timestamp = Timestamp(100_000);

/// Name, category, cores, GiB, list price in micro-dollars.
pub const TYPES: [(&str, &str, i64, i64, i64); 8] = [
    ("c.2", "c", 2, 4, 85_000),
    ("c.4", "c", 4, 8, 170_000),
    ("c.8", "c", 8, 16, 340_000),
    ("m.2", "m", 2, 8, 96_000),
    ("m.4", "m", 4, 16, 192_000),
    ("m.8", "m", 8, 32, 384_000),
    ("r.2", "r", 2, 16, 126_000),
    ("r.8", "r", 8, 64, 504_000),
];

pub fn resources(cpu: i64, memory: i64) -> Resources {
    Resources::of(&[(CPU, cpu), (MEMORY, memory), (PODS, 1)])
}

pub fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

pub fn any_of(key: &str, values: &[&str]) -> Requirement {
    Requirement::any_of(key, values)
}

pub fn operator(key: &str, operator: Operator, values: &[&str]) -> Requirement {
    let values: Vec<String> = values.iter().map(|v| (*v).to_owned()).collect();
    Requirement::new(key, operator, &values).expect("the values suit the operator")
}

pub fn all_of(requirements: &[Requirement]) -> Requirements {
    requirements.iter().cloned().collect()
}

fn instance_type((name, category, cores, gib, micros): (&str, &str, i64, i64, i64)) -> InstanceType {
    let offer = |zone: &str, capacity_type, price| Offering {
        zone: zone.to_owned(),
        zone_id: format!("use1-az{}", zone.as_bytes()[zone.len() - 1] - b'a' + 1),
        capacity_type,
        price: Micros(price),
        available: true,
        reservation: None,
    };
    let mut offerings = Vec::new();
    for (at, zone) in ZONES.iter().enumerate() {
        let discount = 30 + 5 * i64::try_from(at).expect("there are three zones") + cores;
        offerings.push(offer(zone, CapacityType::Spot, micros * discount / 100));
        offerings.push(offer(zone, CapacityType::OnDemand, micros));
    }
    let arch = if category == "r" { "arm64" } else { "amd64" };
    InstanceType {
        name: name.to_owned(),
        labels: labels(&[
            (keys::INSTANCE_TYPE, name),
            (keys::ARCH, arch),
            (keys::OS, "linux"),
            (keys::REGION, "us-east-1"),
            (CATEGORY, category),
            (TYPE_CPU, &cores.to_string()),
        ]),
        requirements: all_of(&[
            any_of("karpenter.k8s.aws/instance-tenancy", &["dedicated", "default"]),
            Requirement::absent("karpenter.k8s.aws/instance-gpu-name"),
        ])
        .into(),
        capacity: Resources::of(&[(CPU, cores * 1000), (MEMORY, gib * GIB), (PODS, 20), (EPHEMERAL_STORAGE, 20 * GIB)]),
        allocatable: Resources::of(&[(CPU, cores * 1000 - 100), (MEMORY, gib * GIB * 9 / 10), (PODS, 20), (EPHEMERAL_STORAGE, 17 * GIB)]),
        offerings,
    }
}

/// What node class `class` can buy.
pub fn catalog(class: &str) -> Catalog {
    let types = TYPES.into_iter().map(instance_type).collect();
    Catalog { node_class: class.to_owned(), region: "us-east-1".to_owned(), price_region: "us-east-1".to_owned(), types }
}

pub fn pool(name: &str) -> NodePool {
    NodePool {
        name: name.to_owned(),
        uid: name.to_owned(),
        template: Template { node_class: "default".to_owned(), ..Template::default() },
        ..NodePool::default()
    }
}

/// A pod that kube-scheduler could not place.
pub fn pod(name: &str, cpu: i64, memory: i64) -> Pod {
    Pod {
        key: PodKey::new("default", name),
        uid: format!("uid-{name}"),
        unschedulable: true,
        requests: resources(cpu, memory),
        owner: Some(Owner { kind: "ReplicaSet".to_owned(), name: "web".to_owned() }),
        ..Pod::default()
    }
}

/// The same pod, running on a node.
pub fn bound(pod: Pod, node: &str) -> Pod {
    Pod { node: Some(node.to_owned()), unschedulable: false, phase: PodPhase::Running, ..pod }
}

pub fn daemon_set(name: &str, cpu: i64, memory: i64) -> DaemonSet {
    let template = Pod { unschedulable: false, ..pod(name, cpu, memory) };
    DaemonSet { key: PodKey::new("kube-system", name), template, containers: None }
}

/// A daemon's pod on a node.
pub fn daemon_pod(set: &DaemonSet, node: &str) -> Pod {
    let key = PodKey::new(&set.key.namespace, &format!("{}-{node}", set.key.name));
    let owner = Some(Owner { kind: "DaemonSet".to_owned(), name: set.key.name.clone() });
    bound(Pod { uid: format!("uid-{key}"), key, owner, ..set.template.clone() }, node)
}

/// A node of nobody's, as large as a type of the catalogue.
pub fn node(name: &str, of: &str, zone: &str) -> Node {
    let catalog = catalog("default");
    let kind = catalog.get(of).expect("the type is in the catalogue");
    let mut labels = kind.labels.clone();
    labels.insert(keys::ZONE.to_owned(), zone.to_owned());
    labels.insert(keys::CAPACITY_TYPE.to_owned(), "on-demand".to_owned());
    labels.insert(keys::HOSTNAME.to_owned(), name.to_owned());
    Node {
        name: name.to_owned(),
        provider_id: format!("aws:///{zone}/i-{name}"),
        labels,
        capacity: kind.capacity.clone(),
        allocatable: kind.allocatable.clone(),
        ready: true,
        ..Node::default()
    }
}

pub fn toleration(key: &str) -> Toleration {
    Toleration { key: Some(key.to_owned()), exists: true, value: String::new(), effect: None }
}

pub fn taint(key: &str) -> Taint {
    Taint::new(key, "yes", whittle_model::Effect::NoSchedule)
}

/// Excludes pods with this label from its node.
pub fn excludes(key: &str, value: &str) -> PodAffinityTerm {
    PodAffinityTerm {
        topology_key: keys::HOSTNAME.to_owned(),
        namespace_selector: None,
        namespaces: vec!["default".to_owned()],
        selector: LabelSelector::of_labels(&labels(&[(key, value)])),
    }
}

/// Settings whose improvement phase is short enough for a thousand plans.
pub fn settings() -> Settings {
    Settings { improvement_steps: 20_000, ..Settings::default() }
}

/// The events of a cluster with one node class and nothing else.
pub fn basics() -> Vec<Event> {
    vec![
        Event::Settings(settings()),
        Event::Catalog(Arc::new(catalog("default"))),
        Event::NodeClass(NodeClass { name: "default".to_owned(), not_ready: None, ..NodeClass::default() }),
        Event::Synced,
    ]
}

/// An engine that was told `events` long ago.
pub fn told(events: &[Event]) -> Engine {
    let mut engine = Engine::new();
    for event in events {
        engine.handle(event, Timestamp(0));
    }
    engine
}

pub fn objections(engine: &Engine, plan: &Plan) -> Vec<Objection> {
    audit(engine.world(), plan, NOW)
}

/// A span in seconds.
pub fn seconds(seconds: i64) -> Duration {
    Duration::seconds(seconds)
}

/// The node of a claim that was bought as such a type joins and is ready; what the engine does then.
pub fn join(engine: &mut Engine, claim: &NodeClaim, of_type: &str, now: Timestamp) -> Vec<Action> {
    let of_type = catalog("default").get(of_type).expect("the catalogue has it").clone();
    let provider_id = format!("aws:///us-east-1a/i-{}", claim.name);
    let launched = Launched {
        claim: claim.name.clone(),
        provider_id: provider_id.clone(),
        instance_type: of_type.name.clone(),
        zone: "us-east-1a".to_owned(),
        capacity_type: CapacityType::Spot,
        reservation: None,
        price: Micros(1),
        capacity: of_type.capacity.clone(),
        allocatable: of_type.allocatable.clone(),
        image: String::new(),
        sold_out: Vec::new(),
    };
    engine.handle(&Event::Outcome(Box::new(Outcome::Launched(launched))), now);
    let mut labels = engine.world().claim(&claim.name).expect("it was told").labels.clone();
    labels.extend([keys::REGISTERED, keys::INITIALIZED].map(|key| (key.to_owned(), "true".to_owned())));
    let name = format!("node-{}", claim.name);
    let (capacity, allocatable) = (of_type.capacity, of_type.allocatable);
    engine.handle(&Event::Node(Box::new(Node { name, provider_id, labels, capacity, allocatable, ready: true, ..Node::default() })), now);
    (0..4).flat_map(|_| engine.poll(now, &mut ListPrice)).collect()
}
