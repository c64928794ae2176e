//! Nodes and pods as the tests need them.

use whittle_engine::scheduler::Scheduler;
use whittle_model::{Effect, LabelSelector, Labels, Node, Owner, Pod, PodAffinityTerm, PodKey, Resources, Toleration, keys};

pub const GIB: i64 = 1 << 30;

pub fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// A ready node of 4 cores, 16 GiB and 110 pods in a zone (none when empty).
pub fn node(name: &str, zone: &str) -> Node {
    let mut node = Node {
        name: name.to_owned(),
        labels: labels(&[(keys::HOSTNAME, name)]),
        allocatable: Resources::of(&[("cpu", 4000), ("memory", 16 * GIB), ("pods", 110)]),
        ready: true,
        ..Node::default()
    };
    if !zone.is_empty() {
        node.labels.insert(keys::ZONE.to_owned(), zone.to_owned());
    }
    node
}

pub fn pod(name: &str, cpu: i64, memory: i64) -> Pod {
    let requests = Resources::of(&[("cpu", cpu), ("memory", memory), ("pods", 1)]);
    Pod { key: PodKey::new("default", name), requests, ..Pod::default() }
}

/// A pod of a Deployment, labelled by it.
pub fn replica(of: &str, number: usize, cpu: i64) -> Pod {
    Pod {
        owner: Some(Owner { kind: "ReplicaSet".to_owned(), name: of.to_owned() }),
        labels: labels(&[("app", of)]),
        ..pod(&format!("{of}-{number}"), cpu, cpu << 20)
    }
}

pub fn away_from(app: &str) -> PodAffinityTerm {
    PodAffinityTerm {
        topology_key: keys::HOSTNAME.to_owned(),
        namespace_selector: None,
        namespaces: vec!["default".to_owned()],
        selector: LabelSelector::of_labels(&labels(&[("app", app)])),
    }
}

pub fn tolerates(key: &str, effect: Option<Effect>) -> Toleration {
    Toleration { key: Some(key.to_owned()), exists: true, value: String::new(), effect }
}

pub fn cluster(seed: u64, nodes: &[Node]) -> Scheduler {
    let mut scheduler = Scheduler::new(seed);
    nodes.iter().for_each(|node| scheduler.apply_node(node));
    scheduler
}

/// The node the pod goes to, or why it goes nowhere.
pub fn answer(scheduler: &mut Scheduler, pod: &Pod) -> String {
    scheduler.schedule(pod).unwrap_or_else(|refusal| refusal.message)
}
