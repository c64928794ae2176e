//! What NodeOverlays make of prices and capacity: precedence, conflicts, labels that a pool leaves open.

mod common;

use common::{CATEGORY, GIB, NOW, all_of, any_of, basics, objections, pod, pool, settings, told};
use whittle_engine::{Engine, OverlayVerdict, Plan};
use whittle_model::{
    Affinity, CapacityType, Event, Features, ListPrice, Micros, NodeOverlay, NodePool, OfferingKey, Pod, PriceChange, Requirement,
    Resources, Settings, keys,
};

fn overlay(name: &str, weight: i32, requirements: &[Requirement]) -> NodeOverlay {
    NodeOverlay { name: name.to_owned(), weight, requirements: all_of(requirements), price: None, capacity: Resources::default() }
}

fn priced(name: &str, weight: i32, requirements: &[Requirement], price: PriceChange) -> NodeOverlay {
    NodeOverlay { price: Some(price), ..overlay(name, weight, requirements) }
}

fn sized(name: &str, weight: i32, requirements: &[Requirement], capacity: &[(&str, i64)]) -> NodeOverlay {
    NodeOverlay { capacity: Resources::of(capacity), ..overlay(name, weight, requirements) }
}

/// On-demand only, so that prices are those of common::TYPES.
fn on_demand(name: &str) -> NodePool {
    let mut pool = pool(name);
    pool.template.requirements.add(any_of(keys::CAPACITY_TYPE, &["on-demand"]));
    pool
}

fn engine(pools: &[NodePool], overlays: &[NodeOverlay], pods: &[Pod]) -> Engine {
    let mut events = basics();
    events.push(Event::Settings(Settings { features: Features { node_overlay: true, ..Features::default() }, ..settings() }));
    events.extend(pools.iter().map(|p| Event::NodePool(Box::new(p.clone()))));
    events.extend(overlays.iter().map(|o| Event::NodeOverlay(Box::new(o.clone()))));
    events.extend(pods.iter().map(|p| Event::Pod(Box::new(p.clone()))));
    told(&events)
}

fn plan(engine: &Engine) -> Plan {
    let plan = engine.plan(NOW, &mut ListPrice);
    assert_eq!(objections(engine, &plan), vec![]);
    plan
}

fn asking(name: &str, extra: &[(&str, i64)]) -> Pod {
    let mut pod = pod(name, 500, GIB);
    pod.requests.add(&Resources::of(extra));
    pod
}

fn of_type(name: &str) -> Requirement {
    any_of(keys::INSTANCE_TYPE, &[name])
}

#[test]
fn the_highest_weight_wins_and_prices_are_not_stacked() {
    let half = PriceChange::Scale(-500_000);
    // m.2 costs 96,000 and c.2 85,000.
    for (overlays, choice, cost) in [
        (vec![], "c.2", 85_000),
        (vec![priced("a", 1, &[of_type("m.2")], half)], "m.2", 48_000),
        (
            vec![priced("a", 1, &[of_type("m.2")], half), priced("b", 2, &[of_type("m.2")], PriceChange::Absolute(Micros(90_000)))],
            "c.2",
            85_000,
        ),
        (
            vec![priced("a", 1, &[of_type("m.2")], half), priced("b", 2, &[of_type("m.2")], PriceChange::Absolute(Micros(80_000)))],
            "m.2",
            80_000,
        ),
        (vec![priced("a", 1, &[of_type("m.2")], PriceChange::Add(Micros(-20_000)))], "m.2", 76_000),
        (vec![priced("a", 1, &[of_type("m.2")], PriceChange::Add(Micros(-200_000)))], "m.2", 0),
        (vec![priced("a", 1, &[of_type("c.2")], PriceChange::Scale(200_000))], "m.2", 96_000),
        // A key that nobody defines does not match, unless absence will do.
        (vec![priced("a", 1, &[of_type("m.2"), any_of("team", &["x"])], half)], "c.2", 85_000),
        (vec![priced("a", 1, &[of_type("m.2"), Requirement::absent("team")], half)], "m.2", 48_000),
        (vec![priced("a", 1, &[of_type("m.2"), any_of(keys::NODE_POOL, &["other"])], half)], "c.2", 85_000),
        (vec![priced("a", 1, &[of_type("m.2"), any_of(keys::CAPACITY_TYPE, &["spot"])], half)], "c.2", 85_000),
        (vec![priced("a", 1, &[of_type("m.2"), any_of(keys::ZONE, &["us-east-1b"])], half)], "m.2", 48_000),
    ] {
        let plan = plan(&engine(&[on_demand("p")], &overlays, &[asking("a", &[])]));
        let node = &plan.nodes[0];
        assert_eq!((node.choice.instance_type.as_str(), node.cost), (choice, Micros(cost)), "{overlays:?}");
        if node.claim.annotations.contains_key(keys::PRICE_OVERLAY) {
            let listed = &node.claim.annotations[keys::OFFERS];
            assert!(listed.starts_with(&format!("[[\"{choice}\"")), "the cloud is told what to buy: {listed}");
        } else {
            assert!(choice == "c.2", "what is bought at an overlaid price is marked");
        }
    }
}

#[test]
fn capacity_is_merged_by_resource_and_the_highest_weight_wins() {
    let m4 = [of_type("m.4")];
    let overlays = [sized("a", 10, &m4, &[("x/dev", 2)]), sized("b", 5, &m4, &[("x/dev", 8), ("y/dev", 1)])];
    for (asked, fits) in
        [(vec![("x/dev", 2)], true), (vec![("x/dev", 3)], false), (vec![("x/dev", 2), ("y/dev", 1)], true), (vec![("y/dev", 2)], false)]
    {
        let engine = engine(&[pool("p")], &overlays, &[asking("a", &asked)]);
        let plan = plan(&engine);
        assert_eq!(plan.nodes.len(), usize::from(fits), "{asked:?}");
        for node in &plan.nodes {
            assert_eq!(node.choice.instance_type, "m.4");
            assert!(
                node.claim.annotations.contains_key(keys::CAPACITY_OVERLAY) && !node.claim.annotations.contains_key(keys::PRICE_OVERLAY)
            );
        }
        assert!(engine.world().overlay_verdicts().values().all(|v| *v == OverlayVerdict::Applied));
    }
}

#[test]
fn of_equal_weight_the_later_does_not_apply_at_all() {
    let half = PriceChange::Scale(-500_000);
    let with_device = NodeOverlay { capacity: Resources::of(&[("x/dev", 1)]), ..priced("a", 3, &[any_of(CATEGORY, &["m"])], half) };
    // Overlays of one weight go by name, the last first.
    let overlays = [with_device.clone(), priced("b", 3, &[of_type("m.2")], PriceChange::Absolute(Micros(90_000)))];
    let one = engine(&[on_demand("p")], &overlays, &[asking("a", &[("x/dev", 1)])]);
    assert_eq!(one.world().overlay_verdicts()["a"], OverlayVerdict::Conflict("b".to_owned()));
    assert_eq!(one.world().overlay_verdicts()["b"], OverlayVerdict::Applied);
    assert!(plan(&one).nodes.is_empty(), "its capacity does not apply either");
    let other = [with_device, priced("b", 3, &[of_type("c.2")], half), sized("c", 3, &[of_type("c.2")], &[("x/dev", 1)])];
    let two = engine(&[on_demand("p")], &other, &[]);
    assert!(two.world().overlay_verdicts().values().all(|v| *v == OverlayVerdict::Applied), "they meet nowhere");
    let bad = [sized("cpu", 1, &[], &[("cpu", 4)]), overlay("host", 1, &[any_of(keys::HOSTNAME, &["x"])])];
    let three = engine(&[on_demand("p")], &bad, &[]);
    assert!(three.world().overlay_verdicts().values().all(|v| matches!(v, OverlayVerdict::Invalid(_))));
}

#[test]
fn a_price_is_of_its_pool_and_follows_the_list() {
    let overlays = [priced("c", 1, &[any_of(keys::NODE_POOL, &["spot-a"])], PriceChange::Scale(-500_000))];
    let mut engine = engine(&[on_demand("spot-a"), on_demand("z")], &overlays, &[asking("a", &[])]);
    // Pools of equal weight: z would go first, but spot-a is cheaper.
    let first = plan(&engine);
    assert_eq!((first.nodes[0].claim.node_pool.as_str(), first.nodes[0].cost), ("spot-a", Micros(42_500)));
    assert_eq!(plan(&engine), first, "asked again it says the same");
    for zone in common::ZONES {
        let key = OfferingKey { instance_type: "c.2".to_owned(), zone: zone.to_owned(), capacity_type: CapacityType::OnDemand };
        engine.handle(&Event::Price(key, Micros(90_000)), NOW);
    }
    assert_eq!(plan(&engine).nodes[0].cost, Micros(45_000));
    let again = Engine::restore(engine.checkpoint());
    assert_eq!(plan(&again), plan(&engine), "a checkpoint keeps it");
    engine.handle(&Event::NodeOverlayGone("c".to_owned()), NOW);
    assert_eq!(plan(&engine).nodes[0].cost, Micros(90_000));
}

#[test]
fn an_overlay_on_a_label_that_the_pool_leaves_open_is_for_those_who_ask_for_it() {
    let mut open = on_demand("p");
    open.template.requirements.add(Requirement::exists("team/cfg"));
    open.limits.amounts.push(("nodes".to_owned(), 2));
    let overlays = [sized("d", 1, &[any_of("team/cfg", &["s3"])], &[("x/shared", 1)])];
    let choosing = |name: &str, value: &str, extra: &[(&str, i64)]| {
        let node_selector = all_of(&[any_of("team/cfg", &[value])]);
        Pod { affinity: Affinity { node_selector, node_terms: Vec::new() }, ..asking(name, extra) }
    };
    let shared = [("x/shared", 1)];
    let pods = [choosing("a", "s3", &shared), choosing("b", "s4", &shared), choosing("c", "s4", &[]), choosing("d", "s3", &shared)];
    let plan = plan(&engine(&[open], &overlays, &pods));
    let of = |name: &str| plan.nodes.iter().find(|n| n.pods.iter().any(|p| p.name == name));
    let first = of("a").or_else(|| of("d")).unwrap();
    assert_eq!(first.claim.labels["team/cfg"], "s3");
    assert!(first.claim.annotations.contains_key(keys::CAPACITY_OVERLAY));
    assert!(of("b").is_none(), "nodes with s4 have no device");
    assert_eq!(plan.nodes.len(), 2, "both parts share the pool's limit");
    let reason = plan.unplaced.iter().find(|u| u.pods[0].name == "b").unwrap();
    assert_eq!(reason.reasons.len(), 1, "one reason a pool: {reason:?}");
    assert!(reason.reasons[0].why.to_string().contains("x/shared"), "{reason:?}");
}

#[test]
fn a_node_that_starts_has_what_overlays_say() {
    let overlays = [sized("a", 1, &[of_type("m.4")], &[("x/dev", 2)])];
    let mut engine = engine(&[pool("p")], &overlays, &[asking("a", &[("x/dev", 1)])]);
    let actions = engine.poll(NOW, &mut ListPrice);
    let claim = actions
        .iter()
        .find_map(|a| if let whittle_model::Action::CreateClaim(claim) = a { Some((**claim).clone()) } else { None })
        .unwrap();
    engine.handle(&Event::Claim(Box::new(claim.clone())), NOW);
    let catalog = common::catalog("default");
    let m4 = catalog.get("m.4").unwrap();
    let launched = whittle_model::Launched {
        claim: claim.name.clone(),
        provider_id: "aws:///us-east-1a/i-1".to_owned(),
        instance_type: "m.4".to_owned(),
        zone: "us-east-1a".to_owned(),
        capacity_type: CapacityType::Spot,
        reservation: None,
        price: Micros(1),
        capacity: m4.capacity.clone(),
        allocatable: m4.allocatable.clone(),
        image: String::new(),
        sold_out: Vec::new(),
    };
    engine.handle(&Event::Outcome(Box::new(whittle_model::Outcome::Launched(launched))), NOW);
    assert_eq!(engine.world().claim(&claim.name).unwrap().status.allocatable.get("x/dev"), 2);
    engine.handle(&Event::Pod(Box::new(asking("b", &[("x/dev", 1)]))), NOW);
    let next = plan(&engine);
    assert_eq!((next.nodes.len(), next.placed[&claim.name].len()), (0, 2), "both wait for it");
}
