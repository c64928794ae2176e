//! Plans against kube-scheduler: whatever a plan buys becomes a node, in some order every pod passes
//! the filters on the node that the plan has for it, by a naive reading of them and by the engine's
//! own model of the scheduler.

mod common;

use std::collections::BTreeMap;

use common::asks::{self, Ask};
use common::filters::Bed;
use common::random::{Cluster, Dice};
use common::{NOW, leave};
use whittle_engine::scheduler::Scheduler;
use whittle_engine::{Engine, Plan};
use whittle_model::{ListPrice, Pod, PodKey};

const CLUSTERS: u64 = 300;
/// Orders and outcomes tried of each plan.
const TRIES: u64 = 2;

/// The kinds of constraints that the engine's model of the scheduler knows.
const MODELLED: &[Ask] = &[Ask::Preference];

fn modelled(pod: &Pod) -> bool {
    asks::asks_of(pod).iter().all(|ask| MODELLED.contains(ask)) && pod.unsupported.is_empty()
}

/// The engine's model, told the same as the bed.
fn model(bed: &Bed) -> Scheduler {
    let mut scheduler = Scheduler::new(0);
    for node in bed.nodes.values() {
        let mut node = node.clone();
        for ghost in bed.ghosts.iter().filter(|ghost| ghost.node.as_ref() == Some(&node.name)) {
            node.allocatable.subtract(&ghost.requests);
        }
        scheduler.apply_node(&node);
    }
    for pod in bed.pods.values() {
        scheduler.bind(pod, pod.node.as_deref().expect("the pods of a bed are bound"));
    }
    scheduler
}

/// Binds what a plan places, and returns what cannot be bound, with the reasons.
fn left_over(engine: &Engine, cluster: &Cluster, plan: &Plan, dice: Dice) -> BTreeMap<PodKey, String> {
    let mut bed = leave::bed(engine, cluster, plan, &mut leave::Pick::Chance(dice));
    let mut scheduler = model(&bed);
    let placements = leave::placements(engine, plan);
    let known = bed.pods.values().chain(placements.iter().map(|(pod, _)| pod)).all(modelled);
    let (mut left, order) = leave::bind_all(&mut bed, &placements);
    let mut disagreed = BTreeMap::new();
    for (pod, on) in order.iter().filter(|_| known) {
        let asked = Pod { node: Some(on.clone()), ..pod.clone() };
        if let Err(refusal) = scheduler.schedule(&asked) {
            disagreed.insert(pod.key.clone(), format!("{on}: the model says {refusal}"));
        }
        scheduler.bind(pod, on);
    }
    left.append(&mut disagreed);
    left
}

#[test]
fn every_placement_passes_the_filters_in_some_order() {
    let (mut tally, mut placed, mut broken) = (BTreeMap::<Ask, usize>::new(), 0, Vec::new());
    for seed in 10_000..10_000 + CLUSTERS {
        let cluster = Cluster::full(seed);
        let mut engine = common::told(&cluster.events());
        for event in cluster.wave(0).iter().chain(&cluster.wave(1)) {
            engine.handle(event, NOW);
        }
        let plan = engine.plan(NOW, &mut ListPrice);
        broken.extend(common::objections(&engine, &plan).iter().map(|o| format!("seed {seed}: {o}")));
        for number in 0..TRIES {
            let left = left_over(&engine, &cluster, &plan, Dice(seed ^ (number << 40)));
            if !left.is_empty() {
                broken.push(format!("seed {seed}: {left:?}"));
                break;
            }
        }
        let housed: Vec<Pod> = leave::placements(&engine, &plan).into_iter().map(|(pod, _)| pod).collect();
        asks::count(&mut tally, housed.iter());
        placed += housed.len();
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    asks::all_tried(&tally, 20);
    assert!(placed > 500, "{placed} pods placed");
}

/// The two readings of the filters agree on every pod and node, not only where plans place.
#[test]
fn the_model_and_the_naive_filters_agree() {
    let (mut tally, mut refused, mut let_in) = (BTreeMap::<Ask, usize>::new(), 0, 0);
    for seed in 20_000..20_000 + CLUSTERS {
        let cluster = Cluster::full(seed);
        let engine = common::told(&cluster.events());
        let mut bed = leave::bed(&engine, &cluster, &Plan::default(), &mut leave::Pick::Turn(0));
        bed.pods.retain(|_, pod| modelled(pod));
        let mut scheduler = model(&bed);
        let mut dice = Dice(seed);
        for pod in cluster.waves.iter().flatten().filter(|pod| modelled(pod)) {
            let mut open: Vec<&str> = Vec::new();
            for node in bed.nodes.values() {
                let refusal = bed.refusal(pod, node);
                let asked = Pod { node: Some(node.name.clone()), ..pod.clone() };
                let answer = scheduler.schedule(&asked);
                assert_eq!(refusal.is_some(), answer.is_err(), "seed {seed}: {} on {}: {refusal:?}, {answer:?}", pod.key, node.name);
                if refusal.is_none() {
                    open.push(&node.name);
                }
            }
            let_in += open.len();
            refused += bed.nodes.len() - open.len();
            asks::count(&mut tally, std::iter::once(pod));
            if !open.is_empty() {
                let on = dice.pick(&open).to_owned();
                scheduler.bind(pod, &on);
                bed.bind(pod, &on);
            }
        }
    }
    let missed: Vec<&Ask> = MODELLED.iter().filter(|ask| tally.get(ask).copied().unwrap_or(0) < 20).collect();
    assert!(missed.is_empty() && refused > 500 && let_in > 200, "{missed:?}, {refused} refused, {let_in} let in");
}
