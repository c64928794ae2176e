//! What the cluster is made of, as series for Prometheus under Karpenter's names: counted when somebody asks, and not
//! kept. What must not enter: counters, which follow reports.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use whittle_engine::World;
use whittle_model::resources::{CPU, MEMORY};
use whittle_model::{CapacityType, Labels, Node, NodeClaim, Pod, PodPhase, Resources, Timestamp, keys};

/// One metric: its series by their labels, ready to be written.
struct Gauge {
    name: &'static str,
    help: &'static str,
    series: Vec<(String, f64)>,
}

impl Gauge {
    const fn new(name: &'static str, help: &'static str) -> Self {
        Self { name, help, series: Vec::new() }
    }

    fn put(&mut self, labels: &[(&str, &str)], value: f64) {
        let mut text = String::new();
        for (name, value) in labels {
            if !text.is_empty() {
                text.push(',');
            }
            let _ = write!(text, "{name}=\"{}\"", escaped(value));
        }
        self.series.push((text, value));
    }

    fn write(&self, text: &mut String) {
        if self.series.is_empty() {
            return;
        }
        let _ = writeln!(text, "# HELP {} {}.\n# TYPE {} gauge", self.name, self.help, self.name);
        for (labels, value) in &self.series {
            let _ = if labels.is_empty() {
                writeln!(text, "{} {value}", self.name)
            } else {
                writeln!(text, "{}{{{labels}}} {value}", self.name)
            };
        }
    }
}

/// A label's value as the text format wants it.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Amounts as Karpenter shows them: cores, and units of everything else.
fn shown(name: &str, amount: i64) -> f64 {
    if name == CPU { amount as f64 / 1000.0 } else { amount as f64 }
}

/// Names of resources as labels have them.
fn resource_type(name: &str) -> String {
    name.replace('-', "_")
}

/// All series of `world`. Without `details` those of single nodes and pods are left out.
pub fn text(world: &World, now: Timestamp, details: bool) -> String {
    let mut text = String::new();
    for gauge in [nodes_counted(world), cost(world), utilization(world)] {
        gauge.write(&mut text);
    }
    if details {
        for gauge in nodes(world, now).iter().chain(&[pods(world)]).chain(&waiting(world, now)).chain(&offerings(world)) {
            gauge.write(&mut text);
        }
    }
    text
}

fn nodes_counted(world: &World) -> Gauge {
    let mut gauge = Gauge::new("karpenter_cluster_state_node_count", "Nodes, and NodeClaims whose node has not joined");
    let on_the_way = world.claims().filter(|claim| claim.status.node.is_empty()).count();
    gauge.put(&[], (world.nodes().count() + on_the_way) as f64);
    gauge
}

fn cost(world: &World) -> Gauge {
    let mut gauge = Gauge::new("karpenter_nodepools_cost_total", "Price of an hour of a NodePool's nodes in dollars");
    let mut pools: BTreeMap<&str, i64> = world.pools().map(|pool| (pool.name.as_str(), 0)).collect();
    for claim in world.claims() {
        if let Some(sum) = pools.get_mut(claim.node_pool.as_str()) {
            *sum += claim.status.price.0;
        }
    }
    for (pool, micros) in pools {
        gauge.put(&[("nodepool", pool)], micros as f64 / 1e6);
    }
    gauge
}

/// What pods on a node ask for: all of them, and the daemons alone.
fn requests(world: &World, node: &str) -> (Resources, Resources) {
    let (mut all, mut daemons) = (Resources::default(), Resources::default());
    for pod in world.pods_on(node).filter_map(|key| world.pod(key)) {
        all.add(&pod.requests);
        if pod.owner.as_ref().is_some_and(|owner| owner.kind == "DaemonSet") {
            daemons.add(&pod.requests);
        }
    }
    (all, daemons)
}

fn utilization(world: &World) -> Gauge {
    let mut gauge = Gauge::new("karpenter_cluster_utilization_percent", "Share of what nodes can give that pods ask for");
    let (mut asked, mut given) = (Resources::default(), Resources::default());
    for node in world.nodes() {
        asked.add(&requests(world, &node.name).0);
        given.add(&node.allocatable);
    }
    for name in [CPU, MEMORY] {
        let (asked, given) = (asked.get(name) as f64, given.get(name) as f64);
        gauge.put(&[("resource_type", name)], if given > 0.0 { 100.0 * asked / given } else { 0.0 });
    }
    gauge
}

/// Well-known labels in the form of Prometheus: what stands behind the slash, with underscores.
fn well_known(labels: &Labels) -> Vec<(String, &str)> {
    let named = |key: &str| match key {
        keys::INSTANCE_TYPE => "instance_type".to_owned(),
        other => other.rsplit('/').next().unwrap_or(other).replace('-', "_"),
    };
    let mut all: Vec<(String, &str)> =
        labels.iter().filter(|(key, _)| keys::well_known(key)).map(|(key, value)| (named(key), value.as_str())).collect();
    all.sort();
    all.dedup_by(|a, b| a.0 == b.0);
    all
}

fn phase(node: &Node, claim: Option<&NodeClaim>) -> &'static str {
    if node.deleting || claim.is_some_and(|claim| claim.deleting) {
        "Terminated"
    } else if node.ready {
        "Running"
    } else {
        "Pending"
    }
}

fn nodes(world: &World, now: Timestamp) -> [Gauge; 6] {
    let mut lifetime = Gauge::new("karpenter_nodes_current_lifetime_seconds", "Age of a node");
    let mut allocatable = Gauge::new("karpenter_nodes_allocatable", "What pods can use of a node");
    let mut requested = Gauge::new("karpenter_nodes_total_pod_requests", "What pods on a node ask for, without daemons");
    let mut daemons = Gauge::new("karpenter_nodes_total_daemon_requests", "What daemons on a node ask for");
    let mut overhead = Gauge::new("karpenter_nodes_system_overhead", "What the system keeps of a node");
    let mut utilized = Gauge::new("whittle_node_utilization_percent", "Share of what a node can give that pods ask for");
    let claims: BTreeMap<&str, &NodeClaim> = world.claims().map(|claim| (claim.status.node.as_str(), claim)).collect();
    for node in world.nodes() {
        let claim = claims.get(node.name.as_str()).copied();
        let managed = if claim.is_some() { "true" } else { "" };
        let known = well_known(&node.labels);
        let mut labels: Vec<(&str, &str)> = known.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        labels.extend([("node_name", node.name.as_str()), ("phase", phase(node, claim)), ("managed", managed)]);
        lifetime.put(&labels, now.since(node.created).0.max(0) as f64 / 1000.0);
        let (all, of_daemons) = requests(world, &node.name);
        let (mut kept, mut own) = (node.capacity.clone(), all.clone());
        kept.subtract(&node.allocatable);
        own.subtract(&of_daemons);
        for (gauge, amounts) in
            [(&mut allocatable, &node.allocatable), (&mut requested, &own), (&mut daemons, &of_daemons), (&mut overhead, &kept)]
        {
            for (name, amount) in amounts.iter() {
                let resource = resource_type(name);
                let with: Vec<(&str, &str)> = labels.iter().copied().chain([("resource_type", resource.as_str())]).collect();
                gauge.put(&with, shown(name, amount));
            }
        }
        for name in [CPU, MEMORY].into_iter().filter(|name| node.allocatable.get(name) > 0) {
            let share = 100.0 * all.get(name) as f64 / node.allocatable.get(name) as f64;
            utilized.put(&[("node_name", &node.name), ("resource_type", name)], share);
        }
    }
    [lifetime, allocatable, requested, daemons, overhead, utilized]
}

fn owner(pod: &Pod) -> String {
    let of = |owner: &whittle_model::Owner| format!("/apis/{}/{}/{}", owner.kind, pod.key.namespace, owner.name);
    pod.owner.as_ref().map(of).unwrap_or_default()
}

const fn phase_of(pod: &Pod) -> &'static str {
    match pod.phase {
        PodPhase::Pending => "Pending",
        PodPhase::Running => "Running",
        PodPhase::Succeeded => "Succeeded",
        PodPhase::Failed => "Failed",
    }
}

fn pods(world: &World) -> Gauge {
    let mut gauge = Gauge::new("karpenter_pods_state", "Pods, and where they are");
    let none = Labels::new();
    for pod in world.pod_keys().filter_map(|key| world.pod(key)) {
        let node = pod.node.as_deref().and_then(|name| world.node(name));
        let of_node = node.map_or(&none, |node| &node.labels);
        let label = |key: &str| of_node.get(key).map_or("", String::as_str);
        let yes = |truth: bool| if truth { "true" } else { "false" };
        gauge.put(
            &[
                ("name", &pod.key.name),
                ("namespace", &pod.key.namespace),
                ("owner", &owner(&pod)),
                ("node", pod.node.as_deref().unwrap_or_default()),
                ("scheduled", yes(pod.node.is_some())),
                ("nodepool", label(keys::NODE_POOL)),
                ("zone", label(keys::ZONE)),
                ("arch", label(keys::ARCH)),
                ("capacity_type", label(keys::CAPACITY_TYPE)),
                ("instance_type", label(keys::INSTANCE_TYPE)),
                ("phase", phase_of(&pod)),
                ("ready", yes(pod.ready)),
                ("managed", if of_node.contains_key(keys::NODE_POOL) { "true" } else { "" }),
            ],
            1.0,
        );
    }
    gauge
}

/// How long pods have waited for a node, and for their start.
fn waiting(world: &World, now: Timestamp) -> [Gauge; 2] {
    let mut unbound = Gauge::new("karpenter_pods_unbound_time_seconds", "Time since a pod without a node was made");
    let mut unstarted = Gauge::new("karpenter_pods_unstarted_time_seconds", "Time since a pod that does not run yet was made");
    for pod in world.pod_keys().filter_map(|key| world.pod(key)).filter(|pod| pod.phase == PodPhase::Pending) {
        let waited = now.since(pod.created).0.max(0) as f64 / 1000.0;
        let labels = [("name", pod.key.name.as_str()), ("namespace", pod.key.namespace.as_str())];
        unstarted.put(&labels, waited);
        if pod.node.is_none() {
            unbound.put(&labels, waited);
        }
    }
    [unbound, unstarted]
}

/// What there is to buy; types that several node classes offer are shown once.
fn offerings(world: &World) -> [Gauge; 4] {
    let mut cores = Gauge::new("karpenter_cloudprovider_instance_type_cpu_cores", "Cores of an instance type");
    let mut memory = Gauge::new("karpenter_cloudprovider_instance_type_memory_bytes", "Memory of an instance type");
    let mut available = Gauge::new("karpenter_cloudprovider_instance_type_offering_available", "Whether an offering can be bought");
    let mut price = Gauge::new("karpenter_cloudprovider_instance_type_offering_price_estimate", "Price of an hour in dollars");
    let (mut types, mut seen) = (BTreeSet::new(), BTreeSet::new());
    for pool in world.pools() {
        for instance_type in world.catalog(&pool.template.node_class).into_iter().flat_map(|catalog| &catalog.types) {
            let name = instance_type.name.as_str();
            if types.insert(name) {
                cores.put(&[("instance_type", name)], instance_type.capacity.get(CPU) as f64 / 1000.0);
                memory.put(&[("instance_type", name)], instance_type.capacity.get(MEMORY) as f64);
            }
            for offering in &instance_type.offerings {
                let way = CapacityType::name(offering.capacity_type);
                if seen.insert((name, way, offering.zone.as_str())) {
                    let labels = [("instance_type", name), ("capacity_type", way), ("zone", offering.zone.as_str())];
                    available.put(&labels, f64::from(u8::from(offering.available)));
                    price.put(&labels, offering.price.0 as f64 / 1e6);
                }
            }
        }
    }
    [cores, memory, available, price]
}

#[cfg(test)]
mod tests {
    use whittle_model::{Event, PodKey};

    use super::*;

    #[test]
    fn nodes_and_pods_are_shown_under_karpenters_names() {
        let mut engine = whittle_engine::Engine::new();
        let node = Node {
            name: "n".to_owned(),
            ready: true,
            labels: Labels::from([(keys::ZONE.to_owned(), "a".to_owned()), ("team".to_owned(), "x".to_owned())]),
            allocatable: Resources::of(&[(CPU, 4000)]),
            capacity: Resources::of(&[(CPU, 4100)]),
            ..Node::default()
        };
        let pod = Pod {
            key: PodKey::new("default", "p\"q"),
            node: Some("n".to_owned()),
            phase: PodPhase::Running,
            requests: Resources::of(&[(CPU, 1000)]),
            ..Pod::default()
        };
        engine.handle(&Event::Node(Box::new(node)), Timestamp(0));
        engine.handle(&Event::Pod(Box::new(pod)), Timestamp(0));
        let told = text(engine.world(), Timestamp(5000), true);
        for line in [
            "# TYPE karpenter_nodes_allocatable gauge",
            r#"karpenter_nodes_allocatable{zone="a",node_name="n",phase="Running",managed="",resource_type="cpu"} 4"#,
            r#"karpenter_nodes_system_overhead{zone="a",node_name="n",phase="Running",managed="",resource_type="cpu"} 0.1"#,
            r#"karpenter_nodes_current_lifetime_seconds{zone="a",node_name="n",phase="Running",managed=""} 5"#,
            r#"karpenter_cluster_utilization_percent{resource_type="cpu"} 25"#,
            "karpenter_cluster_state_node_count 1",
            r#"karpenter_pods_state{name="p\"q",namespace="default",owner="",node="n",scheduled="true",nodepool="",zone="a","#,
        ] {
            assert!(told.contains(line), "{line} in\n{told}");
        }
        assert!(!text(engine.world(), Timestamp(0), false).contains("pods_state"));
    }
}
