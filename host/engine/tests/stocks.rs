//! What plans remember of what pools can buy does not outlive it: whatever changes, an engine that planned before plans as one
//! that never did.

mod common;

use std::sync::Arc;

use common::door::outcome;
use common::random::Dice;
use common::{
    CATEGORY, GIB, TYPE_CPU, ZONES, all_of, any_of, basics, catalog, daemon_set, pod, pool, seconds, settings, taint, told, toleration,
};
use whittle_engine::{Engine, Plan};
use whittle_model::{
    CapacityType, Event, Features, LaunchFailure, ListPrice, Micros, NodeOverlay, NodePool, OfferingKey, Outcome, Pod, PodKey, PriceChange,
    Resources, Settings, Timestamp, TopologySpread, keys,
};

fn offering(d: &mut Dice) -> OfferingKey {
    let (name, ..) = common::TYPES[d.below(common::TYPES.len())];
    let capacity_type = [CapacityType::Spot, CapacityType::OnDemand][d.below(2)];
    OfferingKey { instance_type: name.to_owned(), zone: ZONES[d.below(3)].to_owned(), capacity_type }
}

fn some_pool(d: &mut Dice) -> NodePool {
    let mut pool = pool(["a", "b", "c"][d.below(3)]);
    pool.weight = i32::try_from(d.below(2)).unwrap_or(0);
    let wanted = [
        any_of(keys::ARCH, &["amd64"]),
        any_of(CATEGORY, &["m", "r"]),
        any_of(keys::ZONE, &["us-east-1b", "us-east-1c"]),
        any_of(keys::CAPACITY_TYPE, &["on-demand"]),
        any_of(TYPE_CPU, &["4", "8"]).with_min_values(Some(2)),
    ];
    pool.template.requirements = wanted.into_iter().filter(|_| d.one_in(4)).collect();
    if d.one_in(3) {
        pool.template.labels.insert("team".to_owned(), ["x", "y"][d.below(2)].to_owned());
    }
    if d.one_in(4) {
        pool.template.taints.push(taint("dedicated"));
    }
    pool
}

fn some_overlay(d: &mut Dice) -> NodeOverlay {
    let price = d.one_in(2).then(|| PriceChange::Scale(-100_000 * (1 + d.amount(8))));
    let capacity = if d.one_in(2) { Resources::of(&[("example.com/chip", 4)]) } else { Resources::default() };
    let requirements = all_of(&[any_of(CATEGORY, &[["c", "m", "r"][d.below(3)]])]);
    NodeOverlay { name: "overlay".to_owned(), weight: 1, requirements, price, capacity }
}

fn some_daemons(d: &mut Dice) -> Event {
    let mut set = daemon_set(["agent", "logs"][d.below(2)], 100 * (1 + d.amount(30)), GIB / 4);
    if d.one_in(2) {
        set.template.affinity.node_selector = all_of(&[any_of(["team", keys::ARCH, CATEGORY][d.below(3)], &["x", "amd64", "r"])]);
    }
    if d.one_in(3) {
        set.template.tolerations.push(toleration("dedicated"));
    }
    Event::DaemonSet(Box::new(set))
}

/// What pools can buy changes, or who asks.
fn change(d: &mut Dice, step: usize) -> Event {
    match d.below(12) {
        0 | 1 => Event::Price(offering(d), Micros(1_000 + d.amount(500_000))),
        2 | 3 => {
            let failure = LaunchFailure::InsufficientCapacity((0..1 + d.below(12)).map(|_| offering(d)).collect());
            outcome(Outcome::LaunchFailed { claim: "another".to_owned(), failure })
        }
        4 => {
            let mut catalog = catalog("default");
            let offerings = catalog.types.iter_mut().flat_map(|of_type| &mut of_type.offerings);
            offerings.for_each(|offering| offering.available = !d.one_in(5));
            Event::Catalog(Arc::new(catalog))
        }
        5 | 6 => Event::NodePool(Box::new(some_pool(d))),
        7 => Event::NodeOverlay(Box::new(some_overlay(d))),
        8 => Event::NodeOverlayGone("overlay".to_owned()),
        9 => some_daemons(d),
        10 => Event::DaemonSetGone(PodKey::new("kube-system", ["agent", "logs"][d.below(2)])),
        _ => Event::Pod(Box::new(some_pod(d, step))),
    }
}

fn some_pod(d: &mut Dice, step: usize) -> Pod {
    let mut pod = pod(&format!("p-{step}-{}", d.below(1000)), 200 + d.amount(2500), GIB / 2 + d.amount(4) * GIB);
    if d.one_in(4) {
        pod.requests.add(&Resources::of(&[("example.com/chip", 1)]));
    }
    if d.one_in(3) {
        pod.affinity.node_selector = all_of(&[any_of(["team", keys::ZONE, CATEGORY][d.below(3)], &["x", "us-east-1b", "m"])]);
    }
    if d.one_in(3) {
        pod.tolerations.push(toleration("dedicated"));
    }
    if d.one_in(3) {
        pod.spread.push(TopologySpread {
            topology_key: keys::ZONE.to_owned(),
            max_skew: 1,
            min_domains: None,
            required: true,
            selector: whittle_model::LabelSelector::of_labels(&pod.labels),
            honor_affinity: true,
            honor_taints: false,
        });
    }
    pod
}

fn begin(d: &mut Dice) -> Engine {
    let mut events = basics();
    events.push(Event::Settings(Settings { features: Features { node_overlay: true, ..Features::default() }, ..settings() }));
    events.extend((0..3).map(|_| Event::NodePool(Box::new(some_pool(d)))));
    events.extend((0..6).map(|_| Event::Pod(Box::new(some_pod(d, 0)))));
    told(&events)
}

#[test]
fn a_plan_is_that_of_an_engine_that_never_planned_before() {
    let (mut bought, mut changed) = (0, 0);
    for seed in 0..30 {
        let mut d = Dice(seed);
        let (mut engine, mut now) = (begin(&mut d), Timestamp(100_000));
        let mut before: Option<Plan> = None;
        for step in 1..30 {
            let event = change(&mut d, step);
            engine.handle(&event, now);
            // Now and then what was sold out is asked for again.
            now = now.plus(seconds([1, 1, 1, 200][d.below(4)]));
            let plan = engine.plan(now, &mut ListPrice);
            let fresh = Engine::restore(engine.checkpoint()).plan(now, &mut ListPrice);
            assert_eq!(plan, fresh, "seed {seed}, step {step}, after {event:?}");
            bought += usize::from(!plan.nodes.is_empty());
            changed += usize::from(before.is_some_and(|before| without_times(&before) != without_times(&plan)));
            before = Some(plan);
        }
    }
    assert!(bought > 600 && changed > 200, "too little happens: {bought} plans bought, {changed} differ from the one before");
}

/// What is bought for whom, without names that tell the time.
fn without_times(plan: &Plan) -> Vec<(OfferingKey, Micros, Vec<PodKey>)> {
    plan.nodes.iter().map(|node| (node.choice.clone(), node.cost, node.pods.clone())).collect()
}
