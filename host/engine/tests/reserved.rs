//! Capacity reservations: each instance of one is counted on once, the smallest that does is taken, and what is not
//! reserved is bought only when nothing is left.

#![expect(clippy::unwrap_used, reason = "a test that unwraps nothing fails, as it should")]

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::{GIB, NOW, all_of, any_of, basics, catalog, objections, pod, pool, settings, told};
use whittle_engine::{Engine, Plan};
use whittle_model::{
    Affinity, CapacityType, Catalog, Event, Features, Launched, ListPrice, Micros, NodeClaim, Offering, Outcome, Packing, Pod, Requirement,
    Reservation, Settings, keys,
};

/// Reservations: id, type, zone, instances left.
fn with(reservations: &[(&str, &str, &str, u32)]) -> Catalog {
    let mut all = catalog("default");
    for (id, of_type, zone, left) in reservations {
        let at = all.types.iter().position(|t| t.name == *of_type).unwrap();
        let reservation = Reservation { id: (*id).to_owned(), block: id.contains("block"), interruptible: false, left: *left };
        let offerings = &mut all.types[at].offerings;
        let zone_id = offerings.iter().find(|o| o.zone == *zone).unwrap().zone_id.clone();
        offerings.push(Offering {
            zone: (*zone).to_owned(),
            zone_id,
            capacity_type: CapacityType::Reserved,
            price: Micros(0),
            available: *left > 0,
            reservation: Some(reservation),
        });
        offerings.sort_by(|a, b| (&a.zone, a.capacity_type).cmp(&(&b.zone, b.capacity_type)));
    }
    all
}

fn engine(reservations: &[(&str, &str, &str, u32)], settings: Settings, pods: &[Pod]) -> Engine {
    let mut events = basics();
    events.push(Event::Settings(settings));
    events.push(Event::Catalog(Arc::new(with(reservations))));
    events.push(Event::NodePool(Box::new(pool("p"))));
    events.extend(pods.iter().map(|p| Event::Pod(Box::new(p.clone()))));
    told(&events)
}

fn plan(engine: &Engine) -> Plan {
    let plan = engine.plan(NOW, &mut ListPrice);
    assert_eq!(objections(engine, &plan), vec![]);
    plan
}

fn reservation(claim: &NodeClaim) -> Option<String> {
    claim.requirements.get(keys::RESERVATION_ID).and_then(Requirement::single).map(str::to_owned)
}

/// How many claims count on each reservation; empty text for what is bought.
fn counted(plan: &Plan) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for node in &plan.nodes {
        *counts.entry(reservation(&node.claim).unwrap_or_default()).or_insert(0) += 1;
        assert_eq!(reservation(&node.claim).is_some(), node.choice.capacity_type == CapacityType::Reserved);
    }
    counts
}

fn pods(count: usize, cpu: i64) -> Vec<Pod> {
    (0..count).map(|n| pod(&format!("a{n}"), cpu, GIB)).collect()
}

fn count(pairs: &[(&str, usize)]) -> BTreeMap<String, usize> {
    pairs.iter().map(|(id, n)| ((*id).to_owned(), *n)).collect()
}

/// The claim is launched into reservation `cr-1`.
fn launched(claim: &str) -> Event {
    let of_type = catalog("default").get("m.4").unwrap().clone();
    let launched = Launched {
        claim: claim.to_owned(),
        provider_id: format!("aws:///us-east-1a/i-{claim}"),
        instance_type: of_type.name,
        zone: "us-east-1a".to_owned(),
        capacity_type: CapacityType::Reserved,
        reservation: Some("cr-1".to_owned()),
        price: Micros(0),
        capacity: of_type.capacity,
        allocatable: of_type.allocatable,
        image: String::new(),
        sold_out: Vec::new(),
    };
    Event::Outcome(Box::new(Outcome::Launched(launched)))
}

#[test]
fn what_is_reserved_is_used_first_and_no_more_than_there_is() {
    for packing in [Packing::Cost, Packing::Greedy] {
        let settings = Settings { packing, ..settings() };
        // A pod of 3,500 takes an m.4 alone.
        let four = engine(&[("cr-1", "m.4", "us-east-1a", 2)], settings.clone(), &pods(4, 3500));
        let plan_of_four = plan(&four);
        assert_eq!(counted(&plan_of_four)["cr-1"], 2, "{packing:?}");
        let choice = plan_of_four.choice.unwrap();
        assert!(choice.bound <= choice.cost && choice.cost <= choice.greedy, "{choice:?}");
        let one = engine(&[("cr-1", "m.4", "us-east-1a", 2)], settings.clone(), &pods(1, 3500));
        let claim = &plan(&one).nodes[0].claim;
        assert_eq!(claim.requirements.get(keys::CAPACITY_TYPE).unwrap().single(), Some("reserved"));
        assert_eq!(claim.requirements.get(keys::INSTANCE_TYPE).unwrap().single(), Some("m.4"));
        let off = Settings { features: Features { reserved_capacity: false, ..Features::default() }, ..settings };
        assert_eq!(counted(&plan(&engine(&[("cr-1", "m.4", "us-east-1a", 2)], off, &pods(4, 3500)))).get("cr-1"), None, "the gate is shut");
    }
}

#[test]
fn many_pods_take_the_large_one_few_the_small_one() {
    let two = [("cr-l", "m.8", "us-east-1a", 1), ("cr-s", "m.2", "us-east-1a", 1)];
    for (number, want) in [(1, count(&[("cr-s", 1)])), (4, count(&[("cr-l", 1)])), (8, count(&[("cr-l", 1), ("cr-s", 1)]))] {
        assert_eq!(counted(&plan(&engine(&two, settings(), &pods(number, 1000)))), want, "{number} pods");
    }
    let equal = [("cr-block", "m.4", "us-east-1a", 1), ("cr-plain", "m.4", "us-east-1a", 1)];
    assert_eq!(counted(&plan(&engine(&equal, settings(), &pods(2, 3500)))).len(), 2, "each is one claim's");
}

#[test]
fn pods_may_ask_for_a_reservation_or_for_none() {
    let two = [("cr-1", "m.4", "us-east-1a", 1), ("cr-2", "m.4", "us-east-1b", 1)];
    let asks = |requirement: Requirement| {
        let node_selector = all_of(&[requirement]);
        vec![Pod { affinity: Affinity { node_selector, node_terms: Vec::new() }, ..pod("a", 3500, GIB) }]
    };
    for (requirement, want) in [
        (any_of(keys::RESERVATION_ID, &["cr-2"]), "cr-2"),
        (any_of(keys::ZONE, &["us-east-1b"]), "cr-2"),
        (any_of(keys::RESERVATION_TYPE, &["default"]), "cr-1"),
        (any_of(keys::CAPACITY_TYPE, &["reserved"]), "cr-1"),
        (Requirement::absent(keys::RESERVATION_ID), ""),
        (any_of(keys::CAPACITY_TYPE, &["on-demand"]), ""),
        (any_of(keys::ZONE, &["us-east-1c"]), ""),
    ] {
        let plan = plan(&engine(&two, settings(), &asks(requirement.clone())));
        assert_eq!(counted(&plan).into_keys().collect::<Vec<_>>(), [want], "{requirement}");
    }
    let none = plan(&engine(&two, settings(), &asks(any_of(keys::RESERVATION_TYPE, &["capacity-block"]))));
    assert!(none.nodes.is_empty());
    let first = engine(&two, settings(), &asks(any_of(keys::RESERVATION_ID, &["cr-2"])));
    let mut again = told(&basics());
    again.handle(&Event::Catalog(Arc::new(with(&[("cr-2", "m.4", "us-east-1b", 0)]))), NOW);
    again.handle(&Event::NodePool(Box::new(pool("p"))), NOW);
    again.handle(&Event::Pod(Box::new(first.world().pod(first.world().pending().next().unwrap()).unwrap())), NOW);
    assert!(plan(&again).nodes.is_empty(), "it is used up");
}

#[test]
fn claims_under_way_count() {
    let mut engine = engine(&[("cr-1", "m.4", "us-east-1a", 2)], settings(), &pods(1, 3500));
    let actions = engine.poll(NOW, &mut ListPrice);
    let claim = actions
        .iter()
        .find_map(|a| if let whittle_model::Action::CreateClaim(claim) = a { Some((**claim).clone()) } else { None })
        .unwrap();
    assert_eq!(reservation(&claim).as_deref(), Some("cr-1"));
    engine.handle(&Event::Claim(Box::new(claim.clone())), NOW);
    let more: Vec<Pod> = ["b", "c"].map(|name| pod(name, 3500, GIB)).into();
    for one in &more {
        engine.handle(&Event::Pod(Box::new(one.clone())), NOW);
    }
    assert_eq!(counted(&plan(&engine)), count(&[("cr-1", 1), ("", 1)]), "one of two is under way");
    engine.handle(&launched(&claim.name), NOW);
    assert_eq!(engine.world().claim(&claim.name).unwrap().labels[keys::RESERVATION_ID], "cr-1");
    assert_eq!(counted(&plan(&engine)), count(&[("cr-1", 1), ("", 1)]), "it is launched, and counts once");
    engine.handle(&Event::Catalog(Arc::new(with(&[("cr-1", "m.4", "us-east-1a", 1)]))), NOW);
    assert_eq!(counted(&plan(&engine)), count(&[("cr-1", 1), ("", 1)]), "the cloud says so too");
}

#[test]
fn packed_anew_pods_have_what_their_own_nodes_have_reserved() {
    let mut engine = engine(&[("cr-1", "m.4", "us-east-1a", 2)], settings(), &pods(3, 3500));
    let actions = engine.poll(NOW, &mut ListPrice);
    let claims = actions.into_iter().filter_map(|a| if let whittle_model::Action::CreateClaim(claim) = a { Some(*claim) } else { None });
    let reserved: Vec<NodeClaim> = claims.filter(|claim| reservation(claim).is_some()).collect();
    assert_eq!(reserved.len(), 2);
    for claim in reserved {
        engine.handle(&Event::Claim(Box::new(claim.clone())), NOW);
        engine.handle(&launched(&claim.name), NOW);
    }
    let bind = |engine: &mut Engine, one: Pod| {
        let node = format!("node-{}", one.key.name);
        engine.handle(&Event::Pod(Box::new(common::bound(one, &node))), NOW);
        engine.yardstick(NOW)
    };
    let mut pods = pods(3, 3500).into_iter();
    // The plan knows that nothing is left; packed anew they have both.
    for one in pods.by_ref().take(2) {
        assert_eq!(bind(&mut engine, one).greedy, Micros(0));
    }
    let third = bind(&mut engine, pods.next().unwrap());
    let bought = plan(&self::engine(&[], settings(), &[pod("a", 3500, GIB)])).nodes[0].cost;
    assert!(third.greedy == bought && third.bound <= bought, "one of three is bought for {bought}: {third:?}");
}

#[test]
fn a_pool_with_min_values_uses_reservations_too() {
    let mut choosy = pool("p");
    choosy.template.requirements.add(Requirement::exists(keys::INSTANCE_TYPE).with_min_values(Some(4)));
    let mut engine = engine(&[("cr-1", "m.4", "us-east-1a", 1)], settings(), &pods(2, 3500));
    engine.handle(&Event::NodePool(Box::new(choosy)), NOW);
    let plan = plan(&engine);
    assert_eq!(counted(&plan), count(&[("cr-1", 1), ("", 1)]));
    let bought = plan.nodes.iter().find(|n| reservation(&n.claim).is_none()).unwrap();
    assert!(bought.claim.requirements.get(keys::INSTANCE_TYPE).unwrap().values().len() >= 4);
}
