//! B4 and B8: plans in a large cluster that stands. 5,000 nodes of 20 pods each, ten daemons among them, 20 pools that
//! sell every type of a region, spot and on demand, in three zones.
//!
//! B4 times a plan for a thousand pods that wait. B8 times what comes after the last of some pods, the batch window being
//! over: the round that plans for them, and looks for moves when it is time for that.

use std::sync::Arc;
use std::time::Duration;

use whittle_engine::Engine;
use whittle_model::resources::{CPU, MEMORY, PODS};
use whittle_model::{
    DaemonSet, Event, InstanceType, Labels, ListPrice, NodePool, Owner, Pod, PodKey, PodPhase, Requirement, Resources, Template, Timestamp,
    TopologySpread, keys,
};

use super::moves::{at_once, bought};
use super::{BenchError, Line};
use crate::filter::Filter;
use crate::markets;
use crate::measure::{Millis, Times, timed};

const NODES: usize = 5000;
const POOLS: usize = 20;
const DAEMONS: usize = 10;
/// Pods of workloads on each node.
const TENANTS: usize = 10;
const PENDING: usize = 1000;
const ROUNDS: usize = 11;
/// Events whose cost is told by quantiles.
const ARRIVALS: usize = 50;
const MIB: i64 = 1 << 20;

/// B4: a plan for 1,000 pods beside 100,000 that run.
///
/// # Errors
/// When the catalogue cannot be built.
pub fn b4(filter: &Filter, line: Line<'_>) -> Result<(), BenchError> {
    for (suffix, full) in [("", false), ("/full", true)] {
        let name = format!("B4/{PENDING}{suffix}");
        if !filter.wants(&name) {
            continue;
        }
        let mut engine = standing(full)?;
        (0..PENDING).for_each(|number| engine.handle(&pending(number), Timestamp(3_600_000)));
        let now = Timestamp(3_620_000);
        let mut times = Vec::new();
        let mut placed = (0, 0, 0);
        for _ in 0..ROUNDS {
            let (time, plan) = timed(|| engine.plan(now, &mut ListPrice));
            times.push(time);
            let seated: usize = plan.placed.values().map(Vec::len).sum();
            placed = (seated, plan.nodes.len(), plan.unplaced.iter().map(|u| u.pods.len()).sum());
        }
        let times = Times::new(times);
        let (seated, nodes, unplaced) = placed;
        line(format!(
            "{name}: {} a plan, {seated} pods on nodes that exist, {nodes} new nodes, {unplaced} unplaced ({})",
            Millis(times.median()),
            times.spread()
        ));
    }
    Ok(())
}

/// B8: from an event to its first action in the same cluster.
///
/// # Errors
/// When the catalogue cannot be built.
pub fn b8(filter: &Filter, line: Line<'_>) -> Result<(), BenchError> {
    for count in [1, 100] {
        let name = format!("B8/{count}");
        if !filter.wants(&name) {
            continue;
        }
        let (mut engine, mut now) = (standing(false)?, Timestamp(3_600_000));
        // The first look finds everything new.
        drop(engine.poll(now, &mut ListPrice));
        let (mut events, mut times, mut actions): (Vec<Duration>, Vec<Duration>, usize) = (Vec::new(), Vec::new(), 0);
        for round in 0..ARRIVALS {
            for number in 0..count {
                let event = pending(PENDING + round * count + number);
                events.push(timed(|| engine.handle(&event, now)).0);
            }
            // The batch window is over.
            now = now.plus(whittle_model::Duration::seconds(10));
            let (time, done) = timed(|| engine.poll(now, &mut ListPrice));
            actions += usize::from(!done.is_empty());
            times.push(time);
        }
        let (events, times) = (Times::new(events), Times::new(times));
        line(format!(
            "{name}: {} a decision (p50, p99 {}), {:.1} µs an event, {actions} of {ARRIVALS} led to actions",
            Millis(times.median()),
            Millis(times.quantile(99)),
            events.seconds() * 1e6,
        ));
    }
    Ok(())
}

/// The cluster; `full` when its nodes have no room for what comes.
fn standing(full: bool) -> Result<Engine, BenchError> {
    let input = markets::real(markets::Set::All)?;
    let catalog = Arc::clone(&input.catalogs[0]);
    let mut engine = Engine::new();
    let mut tell = |event: Event| engine.handle(&event, Timestamp(0));
    tell(Event::Settings(at_once()));
    tell(Event::Catalog(Arc::clone(&catalog)));
    tell(Event::NodeClass(markets::node_class()));
    (0..POOLS).for_each(|number| tell(Event::NodePool(Box::new(pool(number)))));
    let daemons: Vec<DaemonSet> = (0..DAEMONS).map(daemon_set).collect();
    daemons.iter().for_each(|set| tell(Event::DaemonSet(Box::new(set.clone()))));
    let names = ["c7a.xlarge", "m7a.xlarge", "r7a.xlarge", "m7a.2xlarge"];
    let types: Vec<&InstanceType> = names.iter().filter_map(|name| catalog.get(name)).collect();
    for number in 0..NODES {
        let kind = types[number % types.len()];
        let zones: Vec<&str> = kind.offerings.iter().map(|o| o.zone.as_str()).collect();
        let zone = zones[number / types.len() % zones.len()];
        let name = format!("node-{number:05}");
        let (mut claim, mut node) = bought(&catalog, kind, zone, &name);
        for labels in [&mut claim.labels, &mut node.labels] {
            labels.insert(keys::NODE_POOL.to_owned(), pool_name(number % POOLS));
        }
        claim.node_pool = pool_name(number % POOLS);
        tell(Event::Claim(Box::new(claim)));
        tell(Event::Node(Box::new(node)));
        daemons.iter().for_each(|set| tell(Event::Pod(Box::new(daemon_pod(set, &name)))));
        (0..TENANTS).for_each(|pod| tell(Event::Pod(Box::new(tenant(kind, &name, number, pod, full)))));
    }
    tell(Event::Synced);
    Ok(engine)
}

fn pool_name(number: usize) -> String {
    format!("pool-{number:02}")
}

/// A pool of any types, one of five teams' by a label.
fn pool(number: usize) -> NodePool {
    let labels = Labels::from([("team".to_owned(), format!("team-{}", number % 5))]);
    let requirements = [
        Requirement::any_of(keys::ARCH, &["amd64"]),
        Requirement::any_of(keys::OS, &["linux"]),
        Requirement::any_of(keys::CAPACITY_TYPE, &["spot", "on-demand"]),
    ];
    let requirements = requirements.into_iter().collect();
    let template = Template { labels, requirements, node_class: markets::POOL.to_owned(), ..Template::default() };
    NodePool { name: pool_name(number), uid: pool_name(number), template, ..NodePool::default() }
}

fn daemon_set(number: usize) -> DaemonSet {
    let name = format!("daemon-{number}");
    let requests = Resources::of(&[(CPU, 20), (MEMORY, 40 * MIB), (PODS, 1)]);
    let template = Pod { key: PodKey::new("kube-system", &name), requests, ..Pod::default() };
    DaemonSet { key: PodKey::new("kube-system", &name), template, containers: None }
}

fn daemon_pod(set: &DaemonSet, node: &str) -> Pod {
    let key = PodKey::new(&set.key.namespace, &format!("{}-{node}", set.key.name));
    let owner = Some(Owner { kind: "DaemonSet".to_owned(), name: set.key.name.clone() });
    Pod { uid: format!("uid-{key}"), key, owner, node: Some(node.to_owned()), phase: PodPhase::Running, ..set.template.clone() }
}

/// A pod of forty workloads that runs, one of the ten that have a node's room but for a sixth of it, or all of it.
fn tenant(kind: &InstanceType, node: &str, number: usize, pod: usize, full: bool) -> Pod {
    let app = format!("app-{}", (number + pod) % 40);
    let (cpu, memory) = (kind.allocatable.get(CPU) - 200, kind.allocatable.get(MEMORY) - 400 * MIB);
    let parts = if full { 10 } else { 12 };
    Pod {
        key: PodKey::new("default", &format!("{node}-{pod}")),
        uid: format!("uid-{node}-{pod}"),
        labels: Labels::from([("app".to_owned(), app.clone())]),
        owner: Some(Owner { kind: "ReplicaSet".to_owned(), name: app }),
        node: Some(node.to_owned()),
        phase: PodPhase::Running,
        requests: Resources::of(&[(CPU, cpu / parts), (MEMORY, memory / parts), (PODS, 1)]),
        ..Pod::default()
    }
}

/// A pod that waits: of one workload in four that spreads over zones, of some sizes, some for a team alone.
fn pending(number: usize) -> Event {
    let app = format!("new-{}", number % 8);
    let labels = Labels::from([("app".to_owned(), app.clone())]);
    let spread = TopologySpread {
        topology_key: keys::ZONE.to_owned(),
        max_skew: 1,
        min_domains: None,
        required: true,
        selector: whittle_model::LabelSelector::of_labels(&labels),
        honor_affinity: true,
        honor_taints: false,
    };
    let cpu = [100, 250, 500, 1000, 1500][number / 8 % 5];
    let memory = [100, 256, 512, 1024, 2048, 4096][number / 40 % 6] * MIB;
    let mut pod = Pod {
        key: PodKey::new("default", &format!("{app}-{number}")),
        uid: format!("uid-{app}-{number}"),
        labels,
        owner: Some(Owner { kind: "ReplicaSet".to_owned(), name: app }),
        unschedulable: true,
        requests: Resources::of(&[(CPU, cpu), (MEMORY, memory), (PODS, 1)]),
        spread: if number % 8 < 2 { vec![spread] } else { Vec::new() },
        ..Pod::default()
    };
    if number % 8 == 7 {
        pod.affinity.node_selector = [Requirement::any_of("team", &["team-3"])].into_iter().collect();
    }
    Event::Pod(Box::new(pod))
}
