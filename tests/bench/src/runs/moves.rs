//! B5 and B6: how fast moves of nodes are looked for, and how cheap the cluster is that they lead to.
//!
//! Timed is one whole look of the engine: candidates, budgets, the search, and the planning in full of what was found.
//! The world is known before.

use std::sync::Arc;

use whittle_engine::Engine;
use whittle_engine::report::{MoveStage, Step};
use whittle_model::resources::{CPU, MEMORY, PODS};
use whittle_model::{
    CapacityType, Catalog, ClaimStatus, DisruptionSettings, Duration, Event, InstanceType, ListPrice, Micros, Node, NodeClaim, Owner, Pod,
    PodKey, PodPhase, Requirement, Resources, Settings, Timestamp, TopologySpread, keys,
};

use super::{BenchError, Line};
use crate::filter::Filter;
use crate::measure::{Millis, timed};
use crate::{bound, markets};

/// The nodes of B5 and B6, in thousands of looks one would wait for.
const NODES: [usize; 2] = [500, 2000];
const ROUNDS: usize = 5;
const GIB: i64 = 1 << 30;
/// The types of the nodes there are.
const TYPES: [&str; 4] = ["c7a.xlarge", "m7a.xlarge", "r7a.large", "m7a.2xlarge"];

/// B5: a look at a cluster in which nothing can be moved: every node is tried.
///
/// # Errors
/// When the catalogue cannot be built.
pub fn b5(filter: &Filter, line: Line<'_>) -> Result<(), BenchError> {
    for count in NODES {
        for (suffix, spread) in [("", false), ("/spread", true)] {
            let name = format!("B5/{count}{suffix}");
            if filter.wants(&name) {
                let mut events = cluster(count, 10, spread)?;
                events.iter_mut().for_each(nothing_else);
                let look = look(&events);
                line(format!("{name}: {} a look, {} moves ({} nodes, {} pods)", look.time, look.moves, count, count * 10));
            }
        }
    }
    Ok(())
}

/// B6: a look at a cluster whose workloads were halved.
///
/// # Errors
/// When the catalogue cannot be built.
pub fn b6(filter: &Filter, line: Line<'_>) -> Result<(), BenchError> {
    for count in NODES {
        let name = format!("B6/{count}");
        if filter.wants(&name) {
            let look = look(&cluster(count, 5, false)?);
            let of_bound = bound::as_float(look.after.0) / bound::as_float(look.bound.0);
            line(format!(
                "{name}: {} a look, {} moves of {} nodes, {} before, {} after, {of_bound:.4} of bound",
                look.time, look.moves, look.gone, look.before, look.after
            ));
        }
    }
    Ok(())
}

/// Leaves a pool only the types that its nodes have: each is full, so nothing is cheaper.
fn nothing_else(event: &mut Event) {
    if let Event::NodePool(pool) = event {
        pool.template.requirements.add(Requirement::any_of(keys::INSTANCE_TYPE, &TYPES));
    }
}

struct Look {
    time: Millis,
    moves: usize,
    gone: usize,
    before: Micros,
    after: Micros,
    bound: Micros,
}

/// The moves that a fresh engine finds, and the median time it takes for them.
fn look(events: &[Event]) -> Look {
    let mut engine = Engine::new();
    events.iter().for_each(|event| engine.handle(event, Timestamp(0)));
    let now = Timestamp(3_600_000);
    let mut times = Vec::new();
    let mut found = Vec::new();
    for _ in 0..ROUNDS {
        let mut fresh = engine.clone();
        let (time, _) = timed(|| fresh.poll(now, &mut ListPrice));
        times.push(time);
        found = fresh.take_reports().into_iter().flat_map(|report| report.steps).filter_map(moved).collect();
    }
    times.sort_unstable();
    let price = |claim: &NodeClaim| claim.status.price;
    let before: Micros = engine.world().claims().map(price).sum();
    let saved: Micros = found.iter().map(|(_, saves)| *saves).sum();
    Look {
        time: Millis(times[ROUNDS / 2]),
        moves: found.len(),
        gone: found.iter().map(|(nodes, _)| nodes).sum(),
        before,
        after: before - saved,
        bound: engine.yardstick(now).bound,
    }
}

fn moved(step: Step) -> Option<(usize, Micros)> {
    if let Step::Move(step) = step
        && step.stage == MoveStage::Found
    {
        return Some((step.claims.len(), step.saves));
    }
    None
}

/// The defaults, but for the slow start of a controller that takes nodes over: the looks are what is measured.
pub(super) fn at_once() -> Settings {
    let disruption = DisruptionSettings { soak: Duration(0), ..DisruptionSettings::default() };
    Settings { disruption, ..Settings::default() }
}

/// A cluster of four sizes of nodes in three zones, each with this many of its ten pods.
pub(super) fn cluster(count: usize, pods: usize, spread: bool) -> Result<Vec<Event>, BenchError> {
    let input = markets::real(markets::Set::UpTo32)?;
    let catalog = Arc::clone(&input.catalogs[0]);
    let mut events = vec![Event::Settings(at_once()), Event::Catalog(Arc::clone(&catalog)), Event::NodeClass(markets::node_class())];
    events.extend(input.pools.iter().cloned().map(|pool| Event::NodePool(Box::new(pool))));
    let types: Vec<&InstanceType> = TYPES.iter().filter_map(|name| catalog.get(name)).collect();
    for number in 0..count {
        let kind = types[number % types.len()];
        let zones: Vec<&str> = kind.offerings.iter().map(|o| o.zone.as_str()).collect();
        let zone = zones[number / types.len() % zones.len()];
        let name = format!("node-{number:05}");
        let (claim, node) = bought(&catalog, kind, zone, &name);
        events.push(Event::Claim(Box::new(claim)));
        events.push(Event::Node(Box::new(node)));
        for pod in 0..pods {
            events.push(Event::Pod(Box::new(tenant(kind, &name, number, pod, spread))));
        }
    }
    events.push(Event::Synced);
    Ok(events)
}

pub(super) fn bought(catalog: &Catalog, kind: &InstanceType, zone: &str, name: &str) -> (NodeClaim, Node) {
    let mut labels = kind.labels.clone();
    for (key, value) in
        [(keys::NODE_POOL, markets::POOL), (keys::NODE_CLASS, markets::POOL), (keys::ZONE, zone), (keys::CAPACITY_TYPE, "on-demand")]
    {
        labels.insert(key.to_owned(), value.to_owned());
    }
    let key = whittle_model::OfferingKey { instance_type: kind.name.clone(), zone: zone.to_owned(), capacity_type: CapacityType::OnDemand };
    let status = ClaimStatus {
        launched: Some(Timestamp(0)),
        registered: Some(Timestamp(0)),
        initialized: Some(Timestamp(0)),
        consolidatable: Some(Timestamp(0)),
        provider_id: format!("aws:///{zone}/i-{name}"),
        node: name.to_owned(),
        instance_type: kind.name.clone(),
        zone: zone.to_owned(),
        capacity_type: Some(CapacityType::OnDemand),
        price: catalog.offering(&key).map_or(Micros(0), |offering| offering.price),
        capacity: kind.capacity.clone(),
        allocatable: kind.allocatable.clone(),
        ..ClaimStatus::default()
    };
    let claim = NodeClaim {
        name: name.to_owned(),
        node_pool: markets::POOL.to_owned(),
        node_class: markets::POOL.to_owned(),
        labels: labels.clone(),
        status: status.clone(),
        ..NodeClaim::default()
    };
    labels.insert(keys::REGISTERED.to_owned(), "true".to_owned());
    labels.insert(keys::INITIALIZED.to_owned(), "true".to_owned());
    let (capacity, allocatable) = (kind.capacity.clone(), kind.allocatable.clone());
    let node =
        Node { name: name.to_owned(), provider_id: status.provider_id, labels, capacity, allocatable, ready: true, ..Node::default() };
    (claim, node)
}

/// One of ten pods that fill a node to the last tenth.
fn tenant(kind: &InstanceType, node: &str, number: usize, pod: usize, spread: bool) -> Pod {
    let app = format!("app-{}", (number + pod) % 40);
    let share = |resource: &str| kind.allocatable.get(resource) / 10;
    let cpu = share(CPU) / 10 * 10;
    let memory = share(MEMORY) / (GIB / 64) * (GIB / 64);
    let labels = whittle_model::Labels::from([("app".to_owned(), app.clone())]);
    let constraint = TopologySpread {
        topology_key: keys::ZONE.to_owned(),
        max_skew: 5,
        min_domains: None,
        required: true,
        selector: whittle_model::LabelSelector::of_labels(&labels),
        honor_affinity: true,
        honor_taints: false,
    };
    Pod {
        key: PodKey::new("default", &format!("{node}-{pod}")),
        uid: format!("uid-{node}-{pod}"),
        labels,
        owner: Some(Owner { kind: "ReplicaSet".to_owned(), name: app }),
        node: Some(node.to_owned()),
        phase: PodPhase::Running,
        requests: Resources::of(&[(CPU, cpu), (MEMORY, memory), (PODS, 1)]),
        spread: if spread { vec![constraint] } else { Vec::new() },
        ..Pod::default()
    }
}
