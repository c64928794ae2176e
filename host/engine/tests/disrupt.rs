//! Moves of nodes: which are made, which are not and why, and how they come to their end.
#![expect(clippy::unwrap_used, reason = "a test fails where it stands")]

mod common;

use std::sync::Arc;

use common::door::{Door, Launching, names};
use common::{GIB, basics, bound, pod, pool, seconds, settings, told};
use whittle_engine::audit;
use whittle_engine::report::{MoveStage, Step};
use whittle_model::policy::{Judging, JudgingWants, MoveColumn, MoveKind, Pricing, RoundFacts, Wants, Words};
use whittle_model::scorer::{MoveVerdict, PolicyRecord, ScorerFailure, Verdict};
use whittle_model::{
    Action, CapacityType, ClaimStatus, DisruptionBudget, DisruptionSettings, Duration, Event, LabelSelector, ListPrice, Node, NodeClaim,
    NodePool, OfferingKey, Pod, PodDisruptionBudget, PodKey, Requirement, Scorer, Settings, Taint, Timestamp, keys,
};

const ZONE: &str = "us-east-1a";

/// A pool that buys on demand only.
fn on_demand() -> NodePool {
    let mut general = pool("general");
    general.template.requirements.add(Requirement::any_of(keys::CAPACITY_TYPE, &["on-demand"]));
    general
}

fn door(pools: Vec<NodePool>, settings: Settings) -> Door {
    let mut events = vec![Event::Settings(settings)];
    events.extend(basics().into_iter().filter(|event| !matches!(event, Event::Settings(_))));
    events.extend(pools.into_iter().map(|p| Event::NodePool(Box::new(p))));
    Door::new(told(&events))
}

/// A node that has been in use since the beginning.
fn add(door: &mut Door, name: &str, (of, way): (&str, CapacityType), pods: &[(i64, i64)]) {
    let kind = door.catalog.get(of).unwrap().clone();
    let provider_id = format!("aws:///{ZONE}/i-{name}");
    let mut labels = kind.labels.clone();
    for (key, value) in [(keys::NODE_POOL, "general"), (keys::NODE_CLASS, "default"), (keys::ZONE, ZONE), (keys::CAPACITY_TYPE, way.name())]
    {
        labels.insert(key.to_owned(), value.to_owned());
    }
    let status = ClaimStatus {
        launched: Some(Timestamp(0)),
        registered: Some(Timestamp(0)),
        initialized: Some(Timestamp(0)),
        provider_id: provider_id.clone(),
        node: format!("node-{name}"),
        instance_type: of.to_owned(),
        zone: ZONE.to_owned(),
        capacity_type: Some(way),
        capacity: kind.capacity.clone(),
        allocatable: kind.allocatable.clone(),
        ..ClaimStatus::default()
    };
    door.put_claim(NodeClaim {
        name: name.to_owned(),
        node_pool: "general".to_owned(),
        node_class: "default".to_owned(),
        labels: labels.clone(),
        status,
        ..NodeClaim::default()
    });
    for key in [keys::REGISTERED, keys::INITIALIZED] {
        labels.insert(key.to_owned(), "true".to_owned());
    }
    let (capacity, allocatable) = (kind.capacity, kind.allocatable);
    door.put_node(Node { name: format!("node-{name}"), provider_id, labels, capacity, allocatable, ready: true, ..Node::default() });
    for (number, (cpu, memory)) in pods.iter().enumerate() {
        door.put_pod(bound(pod(&format!("{name}-{number}"), *cpu, *memory), &format!("node-{name}")));
    }
}

const NONE: [(&str, &str); 0] = [];
const OD: CapacityType = CapacityType::OnDemand;

fn deleted(actions: &[Action]) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    for action in actions {
        if let Action::DeleteClaim { claim, reason } = action {
            found.push((claim.as_str(), reason.as_str()));
        }
    }
    found
}

fn created(actions: &[Action]) -> Vec<&NodeClaim> {
    let mut found = Vec::new();
    for action in actions {
        if let Action::CreateClaim(claim) = action {
            found.push(&**claim);
        }
    }
    found
}

/// Why nodes stay, as reported since the last call.
fn stays(door: &mut Door) -> Vec<String> {
    let steps = door.engine.take_reports().into_iter().flat_map(|report| report.steps);
    let why = |step: Step| match step {
        Step::Blocked { claim, why } => Some(format!("{claim}: {why}")),
        Step::Closed { pool, why } => Some(format!("{pool}: {why}")),
        Step::Move(step) => match step.stage {
            MoveStage::Rejected(why) | MoveStage::RolledBack(why) => Some(why),
            MoveStage::Found | MoveStage::Begun | MoveStage::Ready => None,
        },
        Step::CollectionStopped { .. }
        | Step::Planned(_)
        | Step::Placed { .. }
        | Step::Unplaced(_)
        | Step::Claim { .. }
        | Step::Nominated { .. }
        | Step::SoldOut { .. } => None,
    };
    steps.filter_map(why).collect()
}

/// Nodes that join, start and are initialized, while time goes on.
fn boot(door: &mut Door) -> Vec<Action> {
    door.join();
    let mut actions = door.pass(seconds(5));
    door.finish_boot();
    actions.extend(door.pass(seconds(5)));
    actions
}

#[test]
fn a_node_whose_pods_fit_elsewhere_goes_after_a_second_look() {
    let mut door = door(vec![on_demand()], settings());
    add(&mut door, "a", ("c.4", OD), &[(1500, GIB), (1500, GIB)]);
    add(&mut door, "b", ("c.2", OD), &[(500, GIB)]);
    assert_eq!(deleted(&door.pass(seconds(14))), NONE);
    let actions = door.pass(seconds(2));
    assert_eq!(deleted(&actions), [("b", "Underutilized")], "the one that is cheaper to move for what it saves");
    assert!(created(&actions).is_empty() && names(&actions).contains(&"evict"));
    assert_eq!(deleted(&door.pass(Duration::minutes(60))), NONE);
}

#[test]
fn a_node_whose_last_pods_were_leaving_at_the_first_look_is_empty_at_the_second() {
    let mut door = door(vec![on_demand()], settings());
    add(&mut door, "a", ("c.4", OD), &[(1500, GIB)]);
    let key = PodKey::new("default", "a-0");
    door.put_pod(Pod { deleting: true, ..door.pods[&key].clone() });
    door.pass(seconds(1));
    door.remove_pod(&key);
    assert_eq!(deleted(&door.pass(seconds(13))), NONE);
    assert_eq!(deleted(&door.pass(seconds(10))), [("a", "Empty")], "it does not rest first because it changed");
}

#[test]
fn that_a_node_may_go_is_said_once_a_scale_up_is_over() {
    let mut general = on_demand();
    (general.disruption.consolidate_after, general.disruption.policy) = (Some(seconds(5)), "WhenEmpty".to_owned());
    for boots in [true, false] {
        let mut door = door(vec![general.clone()], settings());
        add(&mut door, "a", ("c.4", OD), &[(1500, GIB)]);
        door.put_pod(pod("more", 3500, GIB));
        door.pass(seconds(20));
        assert_eq!((door.claims.len(), door.claims["a"].status.consolidatable), (2, None), "a node is on its way");
        if boots {
            boot(&mut door);
        }
        door.pass(seconds(if boots { 15 } else { 45 }));
        assert!(door.claims["a"].status.consolidatable.is_some(), "nothing new is on its way any more");
    }
}

#[test]
fn an_empty_node_that_waited_for_its_budget_goes_as_soon_as_there_is_one() {
    let mut general = on_demand();
    general.disruption.budgets = vec![budget("1")];
    let mut door = door(vec![general], settings());
    for name in ["a", "b", "c"] {
        add(&mut door, name, ("c.4", OD), &[]);
    }
    door.pass(seconds(120));
    let ordered = door.actions.iter().filter(|(_, action)| matches!(action, Action::DeleteClaim { .. }));
    let at: Vec<i64> = ordered.map(|(at, _)| at.since(Timestamp(0)).as_seconds()).collect();
    assert_eq!(at.len(), 3, "all of them go");
    assert!(at[1] > at[0] && at[2] > at[1], "one at a time: {at:?}");
    assert!(at[2] - at[0] <= 21, "only the first waits for its second look: {at:?}");
}

#[test]
fn a_cheaper_node_is_ready_before_the_old_one_goes() {
    let mut door = door(vec![on_demand()], settings());
    add(&mut door, "a", ("m.8", OD), &[(1000, GIB)]);
    let actions = door.pass(seconds(16));
    let [claim] = created(&actions)[..] else { panic!("one replacement: {actions:?}") };
    let types = claim.requirements.get(keys::INSTANCE_TYPE).unwrap();
    assert!(!types.allows("m.8") && !types.allows("r.8") && types.allows("c.2"), "only what is cheaper: {types}");
    assert_eq!((deleted(&actions), names(&actions).contains(&"taint")), (vec![], true));
    let status = &door.claims["a"].status;
    assert_eq!(status.disrupted.as_ref().map(|(reason, _)| reason.as_str()), Some("Underutilized"));
    assert_eq!(deleted(&door.pass(seconds(60))), NONE, "not before the new one is in use");
    assert_eq!(deleted(&boot(&mut door)), [("a", "Underutilized")]);
    assert_eq!(door.claims.len(), 1);
    assert_eq!(door.claims.values().next().unwrap().status.instance_type, "c.2");
}

#[test]
fn a_replacement_that_cannot_be_bought_leaves_no_trace() {
    let mut door = door(vec![on_demand()], settings());
    add(&mut door, "a", ("m.8", OD), &[(1000, GIB)]);
    for kind in door.catalog.clone().types {
        for offering in kind.offerings {
            let (instance_type, zone, capacity_type) = (kind.name.clone(), offering.zone, offering.capacity_type);
            door.sold_out.insert(OfferingKey { instance_type, zone, capacity_type });
        }
    }
    let actions = door.pass(seconds(60));
    let told: Vec<&str> =
        names(&actions).into_iter().filter(|name| matches!(*name, "taint" | "uncordon" | "evict" | "terminate")).collect();
    assert_eq!(told, ["taint", "uncordon"], "{actions:?}");
    assert!(door.nodes["node-a"].taints.is_empty() && door.claims["a"].status.disrupted.is_none());
    assert_eq!(door.claims.len(), 1, "what was bought for it goes too");
    assert!(stays(&mut door).iter().any(|why| why.contains("is gone")));
}

#[test]
fn a_replacement_that_never_starts_is_given_up() {
    let mut door = door(vec![on_demand()], settings());
    add(&mut door, "a", ("m.8", OD), &[(1000, GIB)]);
    door.launching = Launching::Silent;
    let actions = door.pass(Duration::minutes(12));
    assert!(names(&actions).contains(&"uncordon"), "{:?}", names(&actions));
    assert!(door.nodes["node-a"].taints.is_empty() && door.claims["a"].status.disrupted.is_none());
    assert!(door.pods.len() == 1 && !names(&actions).contains(&"evict"));
}

#[test]
fn a_taint_without_a_move_is_taken_off_at_once() {
    let mut door = door(vec![on_demand()], settings());
    add(&mut door, "a", ("c.2", OD), &[(1000, GIB)]);
    let mut node = door.nodes["node-a"].clone();
    node.taints.push(Taint::new(keys::DISRUPTED_TAINT, "", whittle_model::Effect::NoSchedule));
    door.put_node(node.clone());
    let mut claim = door.claims["a"].clone();
    claim.status.disrupted = Some(("Drifted".to_owned(), Timestamp(0)));
    door.put_claim(claim);
    let strange = Node { name: "strange".to_owned(), provider_id: "aws:///z/i-x".to_owned(), ..node };
    door.put_node(strange);
    assert!(names(&door.settle()).contains(&"uncordon"));
    assert!(door.nodes["node-a"].taints.is_empty() && door.claims["a"].status.disrupted.is_none());
    assert_eq!(door.nodes["strange"].taints.len(), 1, "what is not ours is left alone");
}

#[test]
fn two_nodes_become_one_and_one_becomes_two() {
    let mut door = door(vec![on_demand()], settings());
    add(&mut door, "a", ("m.2", OD), &[(1500, GIB)]);
    add(&mut door, "b", ("m.2", OD), &[(1500, GIB)]);
    let actions = door.pass(seconds(16));
    assert_eq!(created(&actions).len(), 1, "{actions:?}");
    let actions = boot(&mut door);
    assert_eq!(deleted(&actions), [("a", "Underutilized"), ("b", "Underutilized")]);
    assert_eq!(door.claims.values().map(|c| c.status.instance_type.as_str()).collect::<Vec<_>>(), ["c.4"]);

    let mut door = self::door(vec![on_demand()], settings());
    add(&mut door, "a", ("r.8", OD), &[(3800, 3 * GIB), (1000, 14 * GIB)]);
    let actions = door.pass(seconds(16));
    assert_eq!(created(&actions).len(), 2, "c.4 and r.2 cost less than m.8: {actions:?}");
    assert_eq!(deleted(&boot(&mut door)), [("a", "Underutilized")]);
    let mut types: Vec<&str> = door.claims.values().map(|c| c.status.instance_type.as_str()).collect();
    types.sort_unstable();
    assert_eq!(types, ["c.4", "r.2"]);

    // Without nominations nobody keeps the pods apart, so one node it is.
    let mut door = self::door(vec![on_demand()], Settings { kubernetes_minor: 34, ..settings() });
    add(&mut door, "a", ("r.8", OD), &[(3800, 3 * GIB), (1000, 14 * GIB)]);
    let actions = door.pass(seconds(16));
    assert_eq!(created(&actions).len(), 1, "{actions:?}");
}

#[test]
fn a_node_that_cannot_go_itself_takes_pods_of_its_own_kind() {
    let mut door = door(vec![on_demand()], settings());
    add(&mut door, "a", ("c.4", OD), &[(1000, GIB), (1000, GIB)]);
    add(&mut door, "b", ("c.2", OD), &[(1000, GIB)]);
    assert_eq!(deleted(&door.pass(seconds(16))), [("b", "Underutilized")], "the other is the first to be asked about");
}

#[test]
fn nodes_that_had_better_go_are_not_filled_first() {
    let kept = DisruptionSettings { soak: Duration(0), ..DisruptionSettings::default() };
    let mut door = door(vec![on_demand()], Settings { disruption: kept, ..settings() });
    price(&mut door, "c.8", 600_000);
    for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        add(&mut door, name, ("c.8", OD), &[(900, GIB), (900, GIB), (900, GIB), (900, GIB)]);
    }
    let actions = door.pass(seconds(16));
    assert_eq!(deleted(&actions), NONE, "no pod goes to a node that goes after it");
    assert!(!created(&actions).is_empty());
    assert_eq!(deleted(&boot(&mut door)).len(), 8);
    let list = |name: &str| common::TYPES.iter().find(|of| of.0 == name).unwrap().4;
    let cost: i64 = door.claims.values().map(|c| list(&c.status.instance_type)).sum();
    assert!(cost <= 8 * 170_000 && door.claims.values().all(|c| c.status.instance_type != "c.8"), "32 pods of 900m for {cost}");
    door.pass(seconds(60));
    assert_eq!(names(&door.pass(Duration::minutes(600))).iter().filter(|name| **name != "update").count(), 0, "and that is that");
}

#[test]
fn pods_of_a_node_that_a_move_takes_are_planned_for() {
    let mut door = door(vec![on_demand()], settings());
    add(&mut door, "a", ("m.8", OD), &[(1000, GIB)]);
    let replacement = created(&door.pass(seconds(16)))[0].name.clone();
    let plan = door.engine.plan(door.now, &mut ListPrice);
    assert_eq!(plan.placed.get(&replacement), Some(&vec![PodKey::new("default", "a-0")]));
    assert_eq!(audit(door.engine.world(), &plan, door.now), vec![]);
}

#[test]
fn a_steady_cluster_makes_no_move_in_a_day() {
    let mut door = door(vec![on_demand()], settings());
    for name in ["a", "b", "c"] {
        add(&mut door, name, ("m.4", OD), &[(3500, 12 * GIB)]);
    }
    let actions = door.pass(Duration::minutes(24 * 60));
    assert!(names(&actions).iter().all(|name| *name == "update"), "{:?}", names(&actions));
    let empty = Settings { disruption: whittle_model::DisruptionSettings { reshape: false, ..Default::default() }, ..settings() };
    assert_eq!(self::door(vec![], empty).pass(Duration::minutes(60)), vec![]);
}

#[test]
fn what_is_cheaper_as_spot_is_bought_as_spot_only() {
    let mut door = door(vec![pool("general")], settings());
    add(&mut door, "a", ("m.4", OD), &[(3500, 12 * GIB)]);
    let actions = door.pass(seconds(16));
    let [claim] = created(&actions)[..] else { panic!("one replacement: {actions:?}") };
    assert_eq!(claim.requirements.get(keys::CAPACITY_TYPE).unwrap().single(), Some("spot"));
    let spot: Vec<OfferingKey> = door
        .catalog
        .types
        .iter()
        .flat_map(|t| t.offerings.iter().map(move |o| (t, o)))
        .filter(|(_, o)| o.capacity_type == CapacityType::Spot)
        .map(|(t, o)| OfferingKey { instance_type: t.name.clone(), zone: o.zone.clone(), capacity_type: o.capacity_type })
        .collect();
    door.sold_out.extend(spot);
    let bought = door.actions.iter().filter(|(_, action)| matches!(action, Action::Launch { .. })).count();
    assert_eq!(bought, 1);
}

#[test]
fn spot_is_exchanged_for_spot_only_through_the_gate_and_with_fifteen_types_to_choose_from() {
    for (gate, why) in [(false, "feature gate SpotToSpotConsolidation is off"), (true, "of 15 spot types")] {
        let mut settings = settings();
        settings.features.spot_to_spot = gate;
        let mut door = door(vec![pool("general")], settings);
        add(&mut door, "a", ("m.8", CapacityType::Spot), &[(1000, GIB)]);
        let actions = door.pass(Duration::minutes(2));
        assert!(created(&actions).is_empty(), "{gate}");
        let stays = stays(&mut door);
        assert!(stays.iter().any(|s| s.contains(why)), "{gate}: {stays:?}");
    }
}

fn budget(nodes: &str) -> DisruptionBudget {
    DisruptionBudget { nodes: nodes.to_owned(), schedule: None, duration: None, reasons: Vec::new() }
}

#[test]
fn budgets_limit_how_many_go_at_once() {
    for (nodes, most) in [("1", 1), ("50%", 2), ("0", 0), ("half", 0)] {
        let mut general = on_demand();
        general.disruption.budgets = vec![budget(nodes)];
        let mut door = door(vec![general], settings());
        for name in ["a", "b", "c", "d"] {
            add(&mut door, name, ("m.4", OD), &[]);
        }
        // What goes takes its time: the first are still on their way.
        door.engine.take_reports();
        let first = door.engine.poll(door.now, &mut whittle_model::ListPrice);
        let later = door.now.plus(seconds(15));
        let second = door.engine.poll(later, &mut whittle_model::ListPrice);
        assert_eq!(deleted(&first), NONE, "{nodes}");
        assert_eq!(deleted(&second).len(), most, "{nodes}");
        if most == 0 {
            let stays = stays(&mut door);
            assert!(stays.iter().any(|why| why.starts_with("general: budget")), "{nodes}: {stays:?}");
        }
    }
    let whole = Settings {
        disruption: whittle_model::DisruptionSettings { cluster_budget: Some("25%".to_owned()), ..Default::default() },
        ..settings()
    };
    let mut door = door(vec![on_demand()], whole);
    for name in ["a", "b", "c", "d"] {
        add(&mut door, name, ("m.4", OD), &[]);
    }
    door.engine.poll(door.now, &mut whittle_model::ListPrice);
    let second = door.engine.poll(door.now.plus(seconds(15)), &mut whittle_model::ListPrice);
    assert_eq!(deleted(&second).len(), 1, "a quarter of the cluster");
}

fn annotated(mut pod: Pod, value: &str, started: Option<Timestamp>) -> Pod {
    pod.annotations.insert(keys::DO_NOT_DISRUPT.to_owned(), value.to_owned());
    pod.started = started;
    pod
}

#[test]
fn pods_that_ask_for_it_are_left_alone_as_long_as_they_ask() {
    let hour = Duration::minutes(60);
    for (value, started, early, late) in [
        ("true", Some(Timestamp(0)), false, false),
        ("30m", Some(Timestamp(0)), false, true),
        ("0.5h", Some(Timestamp(0)), false, true),
        ("1h30m", Some(Timestamp(0)), false, false),
        ("300ms", Some(Timestamp(0)), true, true),
        ("30m", None, false, false),
        ("0s", None, true, true),
        ("-5m", Some(Timestamp(0)), true, true),
        ("5", Some(Timestamp(0)), true, true),
        ("+", None, true, true),
        ("", None, true, true),
        ("soon", Some(Timestamp(0)), true, true),
        ("false", Some(Timestamp(0)), true, true),
    ] {
        let mut door = door(vec![on_demand()], settings());
        add(&mut door, "a", ("c.4", OD), &[(2500, GIB)]);
        add(&mut door, "b", ("c.2", OD), &[]);
        for node in ["node-a", "node-b"] {
            door.put_pod(annotated(bound(pod(&format!("kept-{node}"), 500, GIB), node), value, started));
        }
        let goes = !deleted(&door.pass(Duration::minutes(20))).is_empty();
        assert_eq!(goes, early, "{value} {started:?} early");
        let goes = goes || !deleted(&door.pass(hour)).is_empty();
        assert_eq!(goes, late, "{value} {started:?} late");
    }
}

fn pdb(name: &str, allowed: i32, always: bool) -> Event {
    Event::PodDisruptionBudget(Box::new(PodDisruptionBudget {
        key: PodKey::new("default", name),
        selector: LabelSelector::default(),
        allowed,
        never: false,
        always_allow_unready: always,
    }))
}

#[test]
fn disruption_budgets_of_pods_hold_their_node() {
    let rows: [(&[Event], bool, Option<&str>); 4] = [
        (&[pdb("one", 1, false)], true, None),
        (&[pdb("none", 0, false)], false, Some("PodDisruptionBudget default/none")),
        (&[pdb("none", 0, true)], true, None),
        (&[pdb("one", 5, false), pdb("two", 5, false)], false, Some("(default/one, default/two)")),
    ];
    for (budgets, goes, why) in rows {
        let mut door = door(vec![on_demand()], settings());
        add(&mut door, "a", ("c.4", OD), &[(3000, GIB)]);
        add(&mut door, "b", ("c.4", OD), &[(500, GIB)]);
        budgets.iter().for_each(|event| door.tell(event));
        let actions = door.pass(seconds(30));
        assert_eq!(!deleted(&actions).is_empty(), goes, "{budgets:?}");
        let stays = stays(&mut door);
        assert!(why.is_none_or(|why| stays.iter().any(|s| s.contains(why))), "{stays:?}");
    }
}

#[test]
fn a_node_rests_as_long_as_its_pool_asks_also_as_a_destination() {
    let mut general = on_demand();
    general.disruption.consolidate_after = Some(Duration::minutes(30));
    let mut door = door(vec![general], settings());
    add(&mut door, "a", ("c.4", OD), &[(3000, GIB)]);
    add(&mut door, "b", ("c.2", OD), &[(500, GIB)]);
    door.now = Timestamp(0).plus(Duration::minutes(40));
    // A pod comes to the one node that could take the other's.
    let late = bound(pod("late", 100, GIB), "node-a");
    door.put_pod(late.clone());
    assert_eq!(deleted(&door.pass(Duration::minutes(29))), NONE, "neither goes nor takes anything");
    assert_eq!(deleted(&door.pass(Duration::minutes(2))), [("b", "Underutilized")]);
    let mut never = on_demand();
    never.disruption.consolidate_after = None;
    let mut door = self::door(vec![never], settings());
    add(&mut door, "a", ("m.4", OD), &[]);
    assert_eq!(deleted(&door.pass(Duration::minutes(600))), NONE);
}

#[test]
fn only_the_policy_of_its_pool_moves_a_node() {
    for (policy, goes) in [("WhenEmpty", false), ("WhenEmptyOrUnderutilized", true), ("Balanced", false)] {
        let mut general = on_demand();
        general.disruption.policy = policy.to_owned();
        let mut door = door(vec![general], settings());
        let many: Vec<(i64, i64)> = vec![(100, GIB / 8); 8];
        add(&mut door, "small", ("c.2", OD), &many);
        add(&mut door, "large", ("r.8", OD), &[(6000, 40 * GIB)]);
        let mut node = door.nodes["node-large"].clone();
        node.annotations.insert(keys::DO_NOT_DISRUPT.to_owned(), "true".to_owned());
        door.put_node(node);
        assert_eq!(deleted(&door.pass(seconds(30))), if goes { vec![("small", "Underutilized")] } else { vec![] }, "{policy}");
    }
}

fn hashed(door: &mut Door, pool: (&str, &str), claim: (&str, &str)) {
    let mut general = on_demand();
    general.disruption.consolidate_after = None;
    general.annotations.insert(keys::NODE_POOL_HASH.to_owned(), pool.0.to_owned());
    general.annotations.insert(keys::NODE_POOL_HASH_VERSION.to_owned(), pool.1.to_owned());
    door.tell(&Event::NodePool(Box::new(general)));
    let mut known = door.claims["a"].clone();
    known.annotations.insert(keys::NODE_POOL_HASH.to_owned(), claim.0.to_owned());
    known.annotations.insert(keys::NODE_POOL_HASH_VERSION.to_owned(), claim.1.to_owned());
    door.put_claim(known);
}

#[test]
fn a_drifted_node_is_exchanged_whatever_that_costs() {
    for (pool, drifts) in [(("1", "v3"), false), (("2", "v3"), true), (("2", "v4"), false)] {
        let mut door = door(vec![], settings());
        add(&mut door, "a", ("c.2", OD), &[(1500, GIB)]);
        hashed(&mut door, pool, ("1", "v3"));
        let actions = door.pass(seconds(2));
        assert_eq!(created(&actions).len(), usize::from(drifts), "{pool:?}: {actions:?}");
        assert_eq!(door.claims["a"].status.drifted.as_ref().map(|(r, _)| r.as_str()), drifts.then_some("NodePoolDrifted"));
        assert_eq!(deleted(&boot(&mut door)), if drifts { vec![("a", "Drifted")] } else { vec![] }, "{pool:?}");
    }
}

#[test]
fn requirements_types_and_what_aws_tells_drift_too() {
    let drifted = |door: &Door| door.claims["a"].status.drifted.as_ref().map(|(reason, _)| reason.clone());
    let mut never = on_demand();
    never.disruption.budgets = vec![budget("0")];
    let mut door = door(vec![never.clone()], settings());
    add(&mut door, "a", ("c.2", OD), &[(1500, GIB)]);
    door.settle();
    assert_eq!(drifted(&door), None);
    door.tell(&Event::ProviderDrift { claim: "a".to_owned(), reason: Some("AMIDrift".to_owned()) });
    door.pass(seconds(20));
    assert_eq!(drifted(&door).as_deref(), Some("AMIDrift"));
    door.tell(&Event::ProviderDrift { claim: "a".to_owned(), reason: None });
    door.pass(seconds(20));
    assert_eq!(drifted(&door), None);
    never.template.requirements.add(Requirement::any_of(keys::ZONE, &["us-east-1b"]));
    door.tell(&Event::NodePool(Box::new(never)));
    door.pass(seconds(20));
    assert_eq!(drifted(&door).as_deref(), Some("RequirementsDrifted"));
    assert!(deleted(&door.pass(Duration::minutes(60))).is_empty(), "no budget, no move");
}

#[test]
fn a_protected_pod_holds_a_drifted_node_unless_its_drain_has_an_end() {
    for (grace, goes) in [(None, false), (Some(Duration::minutes(60)), true)] {
        let mut door = door(vec![], settings());
        add(&mut door, "a", ("c.2", OD), &[]);
        door.put_pod(annotated(bound(pod("kept", 500, GIB), "node-a"), "true", Some(Timestamp(0))));
        let mut claim = door.claims["a"].clone();
        claim.termination_grace_period = grace;
        door.put_claim(claim);
        hashed(&mut door, ("2", "v3"), ("1", "v3"));
        assert_eq!(deleted(&door.pass(seconds(5))), if goes { vec![("a", "Drifted")] } else { vec![] }, "{grace:?}");
    }
}

#[test]
fn a_move_under_way_goes_on_from_a_checkpoint_and_is_undone_without_one() {
    let mut door = door(vec![on_demand()], settings());
    add(&mut door, "a", ("m.8", OD), &[(1000, GIB)]);
    door.pass(seconds(16));
    assert!(!door.nodes["node-a"].taints.is_empty());
    let checkpoint = door.engine.checkpoint();
    let mut other = whittle_engine::Engine::restore(checkpoint);
    door.join();
    for node in door.nodes.values() {
        other.handle(&Event::Node(Box::new(node.clone())), door.now);
    }
    door.twin = Some(other);
    assert_eq!(deleted(&boot(&mut door)), [("a", "Underutilized")]);
}

#[test]
fn what_aws_told_an_earlier_life_stands_until_it_is_asked_again() {
    let mut never = on_demand();
    never.disruption.budgets = vec![budget("0")];
    let mut door = door(vec![never], settings());
    add(&mut door, "a", ("c.2", OD), &[(1500, GIB)]);
    let mut claim = door.claims["a"].clone();
    claim.status.drifted = Some(("SubnetDrift".to_owned(), Timestamp(5)));
    door.put_claim(claim);
    door.pass(Duration::minutes(10));
    assert_eq!(door.claims["a"].status.drifted, Some(("SubnetDrift".to_owned(), Timestamp(5))));
    door.tell(&Event::ProviderDrift { claim: "a".to_owned(), reason: None });
    door.pass(seconds(20));
    assert_eq!(door.claims["a"].status.drifted, None);
}

fn loaded(digest: &str) -> Event {
    Event::PolicyLoaded { name: "mine".to_owned(), digest: digest.to_owned() }
}

#[test]
fn after_a_change_of_mind_few_nodes_move_until_an_hour_has_passed() {
    for (told, slow) in [(&["1"][..], false), (&["1", "2"], true), (&["1", "1"], true), (&["", "", "1"], false)] {
        let mut door = door(vec![on_demand()], settings());
        for number in 0..16 {
            add(&mut door, &format!("n{number:02}"), ("c.8", OD), &[(400, GIB / 4)]);
        }
        told.iter().for_each(|digest| door.tell(&loaded(digest)));
        let early = deleted(&door.pass(Duration::minutes(50))).len();
        let why = stays(&mut door).iter().any(|why| why.contains("policy mine changed: 5 nodes move"));
        assert!(if slow { early == 5 && why } else { early > 10 && !why }, "{told:?}: {early}");
        let late = deleted(&door.pass(Duration::minutes(11))).len() + deleted(&boot(&mut door)).len();
        assert!(!slow || late > 5, "{told:?}: {late}");
    }
}

/// On-demand prices of a type, everywhere.
fn price(door: &mut Door, of: &str, micros: i64) {
    for zone in common::ZONES {
        let key = OfferingKey { instance_type: of.to_owned(), zone: zone.to_owned(), capacity_type: OD };
        door.tell(&Event::Price(key, whittle_model::Micros(micros)));
    }
}

#[test]
fn prices_that_swing_do_not_carry_pods_to_and_fro() {
    let mut pair = on_demand();
    pair.template.requirements.add(Requirement::any_of(keys::INSTANCE_TYPE, &["c.4", "m.4"]));
    let mut door = door(vec![pair], settings());
    add(&mut door, "a", ("c.4", OD), &[(3000, GIB)]);
    price(&mut door, "m.4", 90_000);
    door.pass(seconds(16));
    assert_eq!(deleted(&boot(&mut door)), [("a", "Underutilized")]);
    let types = |door: &Door| door.claims.values().map(|c| c.status.instance_type.clone()).collect::<Vec<_>>();
    assert_eq!(types(&door), ["m.4"]);
    let node = door.claims.values().next().unwrap().status.node.clone();
    door.put_pod(bound(pod("again", 3000, GIB), &node));
    price(&mut door, "m.4", 400_000);
    assert!(created(&door.pass(Duration::minutes(23 * 60))).is_empty(), "the way back");
    assert!(stays(&mut door).iter().any(|why| why.contains("its pods were moved off all that is cheaper within a day")));
    assert_eq!(created(&door.pass(Duration::minutes(62))).len(), 1, "it is dear to this day");
    boot(&mut door);
    assert_eq!(types(&door), ["c.4"]);
}

#[test]
fn a_pool_rests_when_what_it_gave_away_is_bought_again_at_once() {
    for (cpu, memory, rests) in [(1500, GIB, true), (1500, 6 * GIB, false)] {
        let mut door = door(vec![on_demand()], settings());
        add(&mut door, "a", ("c.4", OD), &[(1500, GIB), (1500, GIB)]);
        add(&mut door, "b", ("c.2", OD), &[(500, GIB)]);
        assert_eq!(deleted(&door.pass(seconds(30))), [("b", "Underutilized")]);
        door.put_pod(pod("late", cpu, memory));
        assert_eq!(created(&door.pass(seconds(20))).len(), 1);
        boot(&mut door);
        add(&mut door, "d", ("m.2", OD), &[(100, GIB / 8)]);
        assert_eq!(deleted(&door.pass(seconds(30))).is_empty(), rests, "{memory}");
        assert_eq!(deleted(&door.pass(Duration::minutes(2))).is_empty(), !rests, "{memory}");
    }
}

#[test]
fn a_pool_whose_drifted_nodes_cannot_go_keeps_no_other_waiting() {
    let mut full = on_demand();
    let mut other = NodePool { name: "other".to_owned(), uid: "other".to_owned(), ..on_demand() };
    other.disruption.budgets = vec![budget("100%")];
    other.template.taints = vec![common::taint("team")];
    full.disruption.budgets = vec![budget("100%")];
    full.limits = whittle_model::Limits { amounts: vec![("cpu".to_owned(), 60_000)] };
    let mut door = door(vec![full, other], settings());
    for number in 0..30 {
        add(&mut door, &format!("a{number:02}"), ("c.2", OD), &[(1500, GIB)]);
    }
    add(&mut door, "z", ("c.2", OD), &[]);
    door.put_pod(bound(Pod { tolerations: vec![common::toleration("team")], ..pod("z-0", 1500, GIB) }, "node-z"));
    let mut claim = door.claims["z"].clone();
    claim.node_pool = "other".to_owned();
    claim.labels.insert(keys::NODE_POOL.to_owned(), "other".to_owned());
    door.put_claim(claim.clone());
    let mut node = door.nodes["node-z"].clone();
    node.labels.insert(keys::NODE_POOL.to_owned(), "other".to_owned());
    door.put_node(node);
    let all: Vec<String> = door.claims.keys().cloned().collect();
    for claim in all {
        door.tell(&Event::ProviderDrift { claim, reason: Some("AMIDrift".to_owned()) });
    }
    let actions = door.pass(seconds(15));
    assert_eq!(created(&actions).iter().map(|claim| claim.node_pool.as_str()).collect::<Vec<_>>(), ["other"]);
    assert!(stays(&mut door).iter().filter(|why| why.starts_with('a')).count() >= 20);
}

#[test]
fn next_to_nothing_moves_no_pods() {
    // Within a day a saving of 500 micro-dollars an hour is 12 thousandths of a dollar, and a restart costs ten.
    for (of, pods, goes) in [(85_100, 1, false), (85_500, 1, true), (85_500, 2, false), (86_000, 2, true)] {
        let mut door = door(vec![on_demand()], settings());
        price(&mut door, "m.2", of);
        add(&mut door, "a", ("m.2", OD), &vec![(500, GIB); pods]);
        let actions = door.pass(seconds(16));
        assert_eq!(created(&actions).len(), usize::from(goes), "{of} {pods}: {actions:?}");
        let why = format!("a: $0.000{} an hour would not pay back the restarts of {pods} pods", (of - 85_000) / 100);
        assert_eq!(stays(&mut door).contains(&why), !goes, "{why}");
    }
}

#[test]
fn what_was_moved_stays_until_another_move_would_pay() {
    let mut door = door(vec![on_demand()], settings());
    add(&mut door, "a", ("m.8", OD), &[(3000, GIB)]);
    door.pass(seconds(16));
    assert_eq!(deleted(&boot(&mut door)), [("a", "Underutilized")]);
    let status = door.claims.values().next().unwrap().status.clone();
    assert_eq!(status.instance_type, "c.4");
    door.put_pod(bound(pod("again", 3000, GIB), &status.node));
    // A cent an hour: after an hour that is what the restart costs.
    price(&mut door, "m.4", 160_000);
    assert_eq!(created(&door.pass(Duration::minutes(59))).len(), 0);
    assert!(stays(&mut door).iter().any(|why| why.ends_with("$0.0100 an hour would not pay back the restarts of 1 pods")));
    assert_eq!(created(&door.pass(Duration::minutes(2))).len(), 1, "nothing happened, and it is looked at again");
}

/// Another controller, that reads everything, in the place of the first.
fn begin_anew(door: &mut Door, pools: Vec<NodePool>, loaded: &[Event]) {
    let mut engine = whittle_engine::Engine::new();
    let objects = basics().into_iter().filter(|event| !matches!(event, Event::Synced));
    let pools = pools.into_iter().map(|pool| Event::NodePool(Box::new(pool)));
    let claims = door.claims.values().map(|claim| Event::Claim(Box::new(claim.clone())));
    let nodes = door.nodes.values().map(|node| Event::Node(Box::new(node.clone())));
    let pods = door.pods.values().map(|pod| Event::Pod(Box::new(pod.clone())));
    for event in objects.chain(pools).chain(claims).chain(nodes).chain(pods).chain(loaded.iter().cloned()).chain([Event::Synced]) {
        engine.handle(&event, door.now);
    }
    door.engine = engine;
}

#[test]
fn a_controller_that_begins_anew_knows_what_pods_were_moved_off() {
    let mut pair = on_demand();
    pair.template.requirements.add(Requirement::any_of(keys::INSTANCE_TYPE, &["c.4", "m.4"]));
    for noted in [true, false] {
        let mut door = door(vec![pair.clone()], settings());
        add(&mut door, "a", ("c.4", OD), &[(3000, GIB)]);
        price(&mut door, "m.4", 90_000);
        door.pass(seconds(16));
        assert_eq!(deleted(&boot(&mut door)), [("a", "Underutilized")]);
        let mut claim = door.claims.values().next().unwrap().clone();
        assert_eq!(claim.moved_off().into_iter().map(|(_, of)| of).collect::<Vec<_>>(), ["c.4"]);
        door.put_pod(bound(pod("again", 3000, GIB), &claim.status.node));
        if !noted {
            claim.annotations.remove(keys::MOVED_OFF);
            door.put_claim(claim);
        }
        begin_anew(&mut door, vec![pair.clone()], &[]);
        price(&mut door, "m.4", 400_000);
        let back = created(&door.pass(Duration::minutes(23 * 60))).len();
        assert_eq!(back > 0, !noted, "without the note nobody would know: {back}");
    }
}

#[test]
fn a_controller_that_takes_nodes_over_moves_few_until_it_is_clear_that_nothing_changed() {
    // What a claim says that is made by the judges of today, and by those of another policy.
    let by = |loaded: &[Event]| {
        let mut door = door(vec![on_demand()], settings());
        loaded.iter().for_each(|event| door.tell(event));
        door.put_pod(pod("waits", 1000, GIB));
        created(&door.pass(seconds(5)))[0].annotations[keys::JUDGED_BY].clone()
    };
    let (one, two) = ([loaded("1")], [loaded("2")]);
    assert_ne!(by(&one), by(&two));
    assert_ne!(by(&[]), by(&two));
    for (noted, hours, slow) in [(None, 3, true), (Some(by(&two)), 3, true), (Some(by(&one)), 3, false), (Some(by(&one)), 0, true)] {
        let mut door = door(vec![on_demand()], settings());
        for number in 0..16 {
            add(&mut door, &format!("n{number:02}"), ("c.8", OD), &[(400, GIB / 4)]);
        }
        let mut claim = door.claims["n07"].clone();
        claim.annotations.extend(noted.clone().map(|by| (keys::JUDGED_BY.to_owned(), by)));
        door.put_claim(claim);
        door.now = Timestamp(0).plus(Duration::hours(hours));
        begin_anew(&mut door, vec![on_demand()], &one);
        let early = deleted(&door.pass(Duration::minutes(50))).len();
        let why = stays(&mut door).iter().any(|why| why.contains("began anew, and what moves are judged by may have changed: 5 nodes"));
        assert!(if slow { early == 5 && why } else { early > 10 && !why }, "{noted:?} {hours}: {early} {why}");
        let late = deleted(&door.pass(Duration::minutes(11))).len() + deleted(&boot(&mut door)).len();
        assert!(!slow || late > 5, "{noted:?} {hours}: {late}");
    }
}

/// A chain `advice` whose one policy is asked about some kinds of moves, and answers all of them alike.
struct Advisor(Vec<MoveKind>, MoveVerdict);

impl Scorer for Advisor {
    fn chain(&mut self, chain: &str, _: Timestamp) -> Result<Option<Arc<Wants>>, ScorerFailure> {
        let judging = JudgingWants { kinds: self.0.clone(), moves: vec![MoveColumn::Kind, MoveColumn::Score], ..JudgingWants::default() };
        Ok((chain == "advice").then(|| Arc::new(Wants { judging: Some(judging), ..Wants::default() })))
    }

    fn open(&mut self, _: &str, _: &Words, _: &RoundFacts) -> Result<(), ScorerFailure> {
        Ok(())
    }

    fn price(&mut self, _: &str, _: &Words, _: &Pricing) -> Result<Vec<Verdict>, ScorerFailure> {
        Ok(Vec::new())
    }

    fn judge(&mut self, _: &str, words: &Words, tables: &Judging) -> Result<Vec<MoveVerdict>, ScorerFailure> {
        let (kinds, scores) = (&tables.moves.columns[0], &tables.moves.columns[1]);
        assert!(kinds.iter().all(|kind| self.0.iter().any(|asked| asked.name() == words.text(*kind))));
        assert!(scores.iter().all(|score| *score == 0), "nobody else wants what is advised");
        Ok(vec![self.1; kinds.len()])
    }

    fn reason(&self, number: u32) -> String {
        format!("advice: reason {number}")
    }

    fn close(&mut self) -> Vec<PolicyRecord> {
        Vec::new()
    }
}

/// A node in a pool with the chain `advice`.
fn advised(kinds: &[MoveKind], verdict: MoveVerdict, way: CapacityType, change: impl FnOnce(&mut NodePool)) -> Door {
    let mut pool = pool("general");
    pool.disruption.consolidate_after = None;
    pool.annotations.insert(keys::POLICY.to_owned(), "advice".to_owned());
    change(&mut pool);
    let mut door = door(vec![pool], settings());
    door.scorer = Box::new(Advisor(kinds.to_vec(), verdict));
    add(&mut door, "a", ("c.2", way), &[(1500, GIB)]);
    door
}

#[test]
fn rebalance_advice_is_followed_when_a_policy_scores_it_and_not_onto_the_same_offering() {
    use MoveKind::{Drifted, Rebalance};
    let rows = [
        (vec![Rebalance], MoveVerdict::Score(1), true),
        (vec![Rebalance], MoveVerdict::Score(0), false),
        (vec![Rebalance], MoveVerdict::Vetoed(3), false),
        (vec![Drifted], MoveVerdict::Score(1), false),
    ];
    for (kinds, verdict, goes) in rows {
        let mut door = advised(&kinds, verdict, CapacityType::Spot, |_| {});
        door.pass(seconds(30));
        let provider_id = door.claims["a"].status.provider_id.clone();
        let left = door.claims["a"].status.offering().unwrap();
        door.tell(&Event::Interrupted { provider_id, what: whittle_model::Interruption::RebalanceRecommendation });
        let actions = door.pass(seconds(20));
        assert_eq!(created(&actions).len(), usize::from(goes), "{kinds:?} {verdict:?}: {actions:?}");
        assert_eq!(door.engine.world().sold_out_until(&left).is_some(), goes);
        assert_eq!(deleted(&boot(&mut door)), if goes { vec![("a", "Rebalance")] } else { vec![] }, "{kinds:?} {verdict:?}");
        let vetoes = stays(&mut door).iter().filter(|why| *why == "a: advice: reason 3").count();
        assert_eq!(vetoes, usize::from(matches!(verdict, MoveVerdict::Vetoed(_))), "a veto is said once");
        if goes {
            let bought: Vec<_> = door.claims.values().filter(|c| c.name != "a").filter_map(|c| c.status.offering()).collect();
            assert!(bought.len() == 1 && bought[0] != left, "{bought:?}");
        }
        door.pass(Duration::minutes(5));
        assert_eq!(stays(&mut door), Vec::<String>::new(), "it is asked again, and nothing new is said");
    }
}

#[test]
fn a_node_nears_its_end_in_the_last_quarter_of_its_life_and_no_policy_keeps_it_for_longer() {
    let life = Duration::hours(8);
    for (verdict, ready_first) in [(MoveVerdict::Score(1), true), (MoveVerdict::Score(0), false), (MoveVerdict::Vetoed(3), false)] {
        let mut door = advised(&[MoveKind::Expired], verdict, OD, |_| {});
        let claim = NodeClaim { expire_after: Some(life), ..door.claims["a"].clone() };
        door.put_claim(claim);
        assert_eq!(created(&door.pass(seconds(6 * 3600 - 1))), Vec::<&NodeClaim>::new());
        let actions = door.pass(seconds(2));
        assert_eq!(created(&actions).len(), usize::from(ready_first), "{verdict:?}: {actions:?}");
        assert_eq!(deleted(&actions), [], "its replacement comes first");
        assert_eq!(deleted(&boot(&mut door)), if ready_first { vec![("a", "Expired")] } else { vec![] });
        if !ready_first {
            assert_eq!(deleted(&door.pass(seconds(2 * 3600 - 20))), []);
            assert_eq!(deleted(&door.pass(seconds(20))), [("a", "Expired")], "{verdict:?}");
        }
    }
}

#[test]
fn what_a_policy_wants_exchanged_stays_within_budgets_and_protections() {
    let zero = |reasons: &[&str]| DisruptionBudget { reasons: reasons.iter().map(|r| (*r).to_owned()).collect(), ..budget("0") };
    for (budgets, protected, goes) in [
        (vec![budget("1")], false, true),
        (vec![budget("1")], true, false),
        (vec![budget("0")], false, false),
        (vec![zero(&["Drifted"])], false, false),
        (vec![zero(&["Empty", "Underutilized"])], false, true),
    ] {
        let mut door =
            advised(&[MoveKind::Rebalance], MoveVerdict::Score(1), CapacityType::Spot, |pool| pool.disruption.budgets = budgets.clone());
        if protected {
            door.put_pod(annotated(bound(pod("kept", 100, GIB), "node-a"), "true", Some(Timestamp(0))));
        }
        let provider_id = door.claims["a"].status.provider_id.clone();
        door.tell(&Event::Interrupted { provider_id, what: whittle_model::Interruption::RebalanceRecommendation });
        let actions = door.pass(seconds(20));
        assert_eq!(created(&actions).len(), usize::from(goes), "{budgets:?} {protected}");
    }
}
