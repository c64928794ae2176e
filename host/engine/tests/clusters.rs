//! Random clusters, plain ones and such with every kind of constraint: the auditor is silent, nothing is dearer than the greedy, a plan over
//! an unchanged world is empty, and what is said to fit nowhere fits nowhere.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::asks::{self, Ask};
use common::door::{Door, Launching};
use common::random::{Cluster, Dice};
use common::{NOW, leave};
use whittle_engine::report::Step;
use whittle_engine::{Engine, Plan};
use whittle_model::{Event, ListPrice, Micros, Node, NodeClaim, Packing, Pod, PodKey, Settings, taint};

/// Clusters without and with constraints; together some ten seconds.
const PLAIN: u64 = 300;
const FULL: u64 = 300;

/// An engine that bought for the first wave and was told of the claims; a few were launched.
fn in_flight(cluster: &Cluster, seed: u64) -> Engine {
    let mut dice = Dice(seed ^ 0xf1e2);
    let mut engine = common::told(&cluster.events());
    for event in cluster.wave(0) {
        engine.handle(&event, NOW);
    }
    let plan = engine.plan(NOW, &mut ListPrice);
    check(&engine, &plan, seed, "first");
    let served: BTreeSet<PodKey> = plan.nodes.iter().flat_map(|n| &n.pods).cloned().collect();
    let claims = leave::buy(&mut engine);
    let (fixed, claims): (Vec<NodeClaim>, Vec<NodeClaim>) =
        claims.into_iter().partition(|c| cluster.pools.iter().any(|p| p.name == c.node_pool && p.replicas.is_some()));
    assert_eq!(claims.len(), plan.nodes.len(), "every planned node is ordered, beside {}", fixed.len());
    let claims = claims.into_iter().chain(fixed);
    let again = engine.plan(NOW, &mut ListPrice);
    assert!(again.nodes.is_empty(), "seed {seed}: a second plan buys {} nodes for {:?}", again.nodes.len(), again.nodes[0].pods);
    check(&engine, &again, seed, "second");
    let mut door = Door::new(engine);
    door.now = NOW;
    door.pods = cluster.bound.iter().chain(&cluster.waves[0]).map(|p| (p.key.clone(), p.clone())).collect();
    door.nodes = cluster.nodes.iter().map(|n| (n.name.clone(), n.clone())).collect();
    for claim in claims {
        let name = claim.name.clone();
        door.catalog = cluster.catalogs.iter().find(|c| c.node_class == claim.node_class).expect("every class has one").clone();
        door.claims.insert(name.clone(), claim);
        if dice.one_in(2) {
            let event = door.buy(&name);
            door.engine.handle(&event, NOW);
        }
    }
    kept(&door.engine, &served, seed, "once they are launched");
    for claim in door.claims.values_mut() {
        claim.status = door.engine.world().claim(&claim.name).expect("it was shown").status.clone();
    }
    door.join();
    kept(&door.engine, &served, seed, "once they have joined");
    if dice.one_in(2) {
        door.launching = Launching::Silent;
        door.settle();
        // Whoever spreads is up to kube-scheduler once the node is in use: its order of binding is not the plan's.
        let spreads = |key: &PodKey| door.pods.get(key).is_some_and(|pod| pod.spread.iter().any(|s| s.required));
        let others = served.iter().filter(|key| !spreads(key)).cloned().collect();
        kept(&door.engine, &others, seed, "once they are registered");
    }
    door.engine
}

/// Pods wait for what was bought for them: nothing more is.
fn kept(engine: &Engine, served: &BTreeSet<PodKey>, seed: u64, when: &str) {
    let plan = engine.plan(NOW, &mut ListPrice);
    check(engine, &plan, seed, when);
    let twice: Vec<&PodKey> = plan.nodes.iter().flat_map(|n| &n.pods).filter(|p| served.contains(*p)).collect();
    assert!(twice.is_empty(), "seed {seed}: nodes are not trusted {when}: something is bought for {twice:?} again");
}

fn check(engine: &Engine, plan: &Plan, seed: u64, which: &str) {
    let objections: Vec<String> = common::objections(engine, plan).iter().map(ToString::to_string).collect();
    assert_eq!(objections, Vec::<String>::new(), "seed {seed}, {which} plan");
}

fn missing(plan: &Plan) -> usize {
    plan.unplaced.iter().map(|u| u.pods.len()).sum()
}

fn cost(plan: &Plan) -> Micros {
    plan.nodes.iter().map(|n| n.cost).sum()
}

fn with_packing(engine: &Engine, packing: Packing) -> Plan {
    let mut engine = engine.clone();
    let settings = Settings { packing, ..engine.world().settings().clone() };
    engine.handle(&Event::Settings(settings), NOW);
    let plan = engine.plan(NOW, &mut ListPrice);
    assert_eq!(common::objections(&engine, &plan), vec![], "{packing:?}");
    plan
}

/// What a run over clusters came to.
#[derive(Debug, Default)]
struct Tally {
    bought: usize,
    placed: usize,
    saved: usize,
    /// Pods with a place, by what they ask for.
    asks: BTreeMap<Ask, usize>,
}

/// Everything that has to hold of one cluster.
fn hold(cluster: &Cluster, seed: u64, tally: &mut Tally) {
    let mut engine = in_flight(cluster, seed);
    for event in cluster.wave(1) {
        engine.handle(&event, NOW);
    }
    let plan = engine.plan(NOW, &mut ListPrice);
    check(&engine, &plan, seed, "third");
    assert_eq!(plan, engine.plan(NOW, &mut ListPrice), "seed {seed}: the same world makes the same plan");

    let (ours, greedy) = (with_packing(&engine, Packing::Cost), with_packing(&engine, Packing::Greedy));
    assert_eq!(ours, plan);
    assert!(missing(&ours) <= missing(&greedy), "seed {seed}: greedy leaves fewer out");
    if engine.world().settings().nominates() && missing(&ours) == missing(&greedy) {
        assert!(cost(&ours) <= cost(&greedy), "seed {seed}: {} is dearer than the greedy's {}", cost(&ours), cost(&greedy));
        tally.saved += usize::from(cost(&ours) < cost(&greedy));
    }
    let housed: Vec<Pod> =
        plan.nodes.iter().flat_map(|n| &n.pods).chain(plan.placed.values().flatten()).filter_map(|key| engine.world().pod(key)).collect();
    asks::count(&mut tally.asks, housed.iter());
    tally.bought += plan.nodes.len();
    tally.placed += plan.placed.values().map(Vec::len).sum::<usize>();
    astray(engine, seed);
}

/// kube-scheduler goes its own way: it binds some pods to other nodes, and the nominations of others, right once or never, stay.
fn astray(mut engine: Engine, seed: u64) {
    let mut dice = Dice(seed ^ 0xa57a);
    let nodes: Vec<Node> = engine.world().nodes().cloned().collect();
    if nodes.is_empty() {
        return;
    }
    for pod in engine.world().pending().cloned().collect::<Vec<PodKey>>() {
        let Some(mut pod) = engine.world().pod(&pod) else { continue };
        let node = &nodes[dice.below(nodes.len())];
        match dice.below(8) {
            0 if taint::untolerated(&node.taints, &pod.tolerations).is_none() => pod.node = Some(node.name.clone()),
            1..=4 => pod.nominated = Some(node.name.clone()),
            _ => continue,
        }
        engine.handle(&Event::Pod(Box::new(pod)), NOW);
    }
    let plan = engine.plan(NOW, &mut ListPrice);
    check(&engine, &plan, seed, "astray");
}

#[test]
fn plans_of_random_clusters_hold() {
    let mut tally = Tally::default();
    // The last one: labels that nobody gives a claim must not call daemons onto it.
    for seed in (0..PLAIN).chain([21_179]) {
        hold(&Cluster::of(seed), seed, &mut tally);
    }
    let Tally { bought, placed, saved, .. } = tally;
    assert!(bought > 200 && placed > 800 && saved > 20, "the clusters try something: {bought} bought, {placed} placed, {saved} saved");
}

#[test]
fn plans_of_clusters_with_every_constraint_hold() {
    let mut tally = Tally::default();
    for seed in 0..FULL {
        hold(&Cluster::full(seed), seed, &mut tally);
    }
    asks::all_tried(&tally.asks, 20);
    assert!(tally.bought > 60 && tally.placed > 300, "the clusters try something: {tally:?}");
}

/// `make clusters`: as many as `CLUSTERS` says, each broken seed with what it breaks.
#[test]
#[ignore = "takes minutes"]
fn many_clusters_with_every_constraint_hold() {
    let asked = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (first, count) = (asked("FIRST").unwrap_or(0), asked("CLUSTERS").unwrap_or(10_000));
    std::panic::set_hook(Box::new(|_| {}));
    let lanes = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as u64;
    let broken: Vec<(u64, String)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..lanes)
            .map(|lane| scope.spawn(move || broken_of((first..first + count).skip(lane as usize).step_by(lanes as usize))))
            .collect();
        workers.into_iter().flat_map(|w| w.join().unwrap()).collect()
    });
    let _ = std::panic::take_hook();
    for (seed, why) in &broken {
        println!("seed {seed}: {}", why.lines().take(2).collect::<Vec<_>>().join(" "));
    }
    println!("clusters: {count} seeds from {first}, {} breaks", broken.len());
    assert!(broken.is_empty(), "{} clusters break", broken.len());
}

fn broken_of(seeds: impl Iterator<Item = u64>) -> Vec<(u64, String)> {
    let broken = |seed: u64| {
        let outcome = std::panic::catch_unwind(|| hold(&Cluster::full(seed), seed, &mut Tally::default()));
        let why = outcome.err()?;
        let text = why.downcast_ref::<String>().cloned().or_else(|| why.downcast_ref::<&str>().map(|s| (*s).to_owned()));
        Some((seed, text.unwrap_or_default()))
    };
    seeds.filter_map(broken).collect()
}

#[test]
fn the_order_of_events_does_not_matter() {
    for seed in 0..200 {
        let cluster = Cluster::of(seed);
        let mut events = cluster.events();
        events.extend(cluster.wave(0));
        let plan = common::told(&events).plan(NOW, &mut ListPrice);
        let sold_out: Vec<Event> = events.iter().filter(|e| matches!(e, Event::Outcome(_))).cloned().collect();
        Dice(seed).shuffle(&mut events);
        events.extend(sold_out);
        assert_eq!(plan, common::told(&events).plan(NOW, &mut ListPrice), "seed {seed}");
    }
}

#[test]
fn reports_name_every_pod_once() {
    for seed in 0..100 {
        let cluster = Cluster::of(seed);
        let mut engine = common::told(&cluster.events());
        for event in cluster.wave(0) {
            engine.handle(&event, NOW);
        }
        engine.poll(NOW.plus(common::seconds(2)), &mut ListPrice);
        let mut named = 0;
        let objections = engine.take_reports();
        assert!(objections.iter().all(|r| r.objections.is_empty()), "seed {seed}: {objections:?}");
        for step in objections.into_iter().flat_map(|r| r.steps) {
            named += match step {
                Step::Planned(claim) => claim.pods.len(),
                Step::Placed { pods, .. } => pods.len(),
                Step::Unplaced(unplaced) => {
                    assert!(!unplaced.reasons.is_empty(), "seed {seed}: no reason is given");
                    unplaced.pods.len()
                }
                Step::Claim { .. } | Step::Nominated { .. } | Step::SoldOut { .. } | Step::CollectionStopped { .. } => 0,
                Step::Move(_) | Step::Blocked { .. } | Step::Closed { .. } => 0,
            };
        }
        let moving = cluster.bound.iter().filter(|p| {
            let node = cluster.nodes.iter().find(|n| Some(&n.name) == p.node.as_ref()).unwrap();
            node.deleting && !p.tied_to_node()
        });
        assert_eq!(named, cluster.waves[0].len() + moving.count(), "seed {seed}");
    }
}
