//! The auditor: silent on a good plan, and for each of its rules corrupted plans that it names.

mod common;

use common::{CATEGORY, GIB, NOW, any_of, basics, bound, daemon_set, excludes, labels, node, pod, pool, taint, told, toleration};
use whittle_engine::{Engine, Plan};
use whittle_model::resources::{CPU, MEMORY};
use whittle_model::{
    Action, CapacityType, Duration, Event, Limits, ListPrice, Micros, NodeClass, OfferingKey, Operator, Outcome, Pod, PodKey, Requirement,
    Timestamp, keys,
};

fn boxed_pod(pod: Pod) -> Event {
    Event::Pod(Box::new(pod))
}

fn labelled(name: &str, app: &str, cpu: i64) -> Pod {
    Pod { labels: labels(&[("app", app)]), ..pod(name, cpu, GIB) }
}

/// A cluster in which every rule has something to look at: a node with room, one that is tainted,
/// a claim in flight, and pods that need new nodes of two pools.
fn engine() -> Engine {
    let mut events = basics();
    let mut general = pool("general");
    general.template.requirements.add(any_of(CATEGORY, &["c", "m"]));
    general.template.labels = labels(&[("tier", "gold")]);
    general.template.annotations = labels(&[("note", "keep")]);
    general.template.startup_taints = vec![taint("starting")];
    general.template.expire_after = Some(Duration::minutes(60));
    general.limits = Limits { amounts: vec![(CPU.to_owned(), 40_000)] };
    let mut special = pool("special");
    special.template.taints = vec![taint("dedicated")];
    special.template.requirements.add(Requirement::exists("team"));
    let mut gone = pool("gone");
    gone.template.node_class = "missing".to_owned();
    events.extend([general, special, gone].map(|p| Event::NodePool(Box::new(p))));
    let mut daemon = daemon_set("logs", 200, GIB / 4);
    daemon.template.tolerations = vec![toleration("dedicated")];
    events.push(Event::DaemonSet(Box::new(daemon)));
    let mut tainted = node("tainted", "m.8", "us-east-1a");
    tainted.taints = vec![taint("dedicated")];
    let mut cordoned = node("cordoned", "m.8", "us-east-1b");
    cordoned.cordoned = true;
    events.extend([node("roomy", "m.4", "us-east-1a"), tainted, cordoned].map(|n| Event::Node(Box::new(n))));
    events.push(boxed_pod(bound(labelled("there", "db", 500), "roomy")));
    let mut engine = told(&events);

    // A first plan leaves a claim in flight.
    engine.handle(&boxed_pod(labelled("early", "api", 5000)), LONG_AGO);
    for action in engine.poll(NOW, &mut ListPrice) {
        if let Action::CreateClaim(claim) = action {
            engine.handle(&Event::Claim(claim), NOW);
        }
    }
    assert_eq!(engine.world().claims().count(), 1);

    for pod in [
        labelled("web-0", "web", 3000),
        labelled("web-1", "web", 3000),
        Pod { anti_affinity: vec![excludes("app", "db")], ..labelled("shy", "shy", 1700) },
        Pod { anti_affinity: vec![excludes("app", "lone")], ..labelled("lone-0", "lone", 1500) },
        Pod { anti_affinity: vec![excludes("app", "lone")], ..labelled("lone-1", "lone", 1500) },
        Pod { tolerations: vec![toleration("dedicated")], ..with_zone(labelled("zoned", "zoned", 7000), "us-east-1c") },
        Pod { unsupported: vec!["spec.x".to_owned()], ..labelled("strange", "strange", 100) },
        labelled("huge", "huge", 64_000),
    ] {
        engine.handle(&boxed_pod(pod), NOW);
    }
    engine
}

const LONG_AGO: Timestamp = Timestamp(0);

fn with_zone(mut pod: Pod, zone: &str) -> Pod {
    pod.affinity.node_selector.add(any_of(keys::ZONE, &[zone]));
    pod
}

fn rules(engine: &Engine, plan: &Plan) -> Vec<String> {
    let mut rules: Vec<String> = common::objections(engine, plan).iter().map(|o| o.rule.to_owned()).collect();
    rules.sort_unstable();
    rules.dedup();
    rules
}

fn key(name: &str) -> PodKey {
    PodKey::new("default", name)
}

/// Takes a pod out of wherever the plan has it.
fn take(plan: &mut Plan, name: &str) -> PodKey {
    let key = key(name);
    plan.nodes.iter_mut().for_each(|n| n.pods.retain(|p| *p != key));
    plan.placed.values_mut().for_each(|pods| pods.retain(|p| *p != key));
    plan.unplaced.iter_mut().for_each(|u| u.pods.retain(|p| *p != key));
    key
}

/// The planned node that holds a pod.
fn holder<'p>(plan: &'p mut Plan, name: &str) -> &'p mut whittle_engine::PlannedNode {
    plan.nodes.iter_mut().find(|n| n.pods.contains(&key(name))).expect("the plan has one")
}

fn in_flight(engine: &Engine) -> String {
    engine.world().claims().next().expect("one claim is in flight").name.clone()
}

fn types(node: &mut whittle_engine::PlannedNode, types: &[&str]) {
    node.claim.requirements.remove(keys::INSTANCE_TYPE);
    node.claim.requirements.add(any_of(keys::INSTANCE_TYPE, types));
}

fn offering(instance_type: &str, zone: &str, capacity_type: CapacityType) -> OfferingKey {
    OfferingKey { instance_type: instance_type.to_owned(), zone: zone.to_owned(), capacity_type }
}

type Corruption = (&'static str, &'static str, fn(&Engine, &mut Plan));

#[test]
fn a_good_plan_is_passed_and_every_corruption_is_named() {
    let engine = engine();
    let good = engine.plan(NOW, &mut ListPrice);
    assert_eq!(common::objections(&engine, &good), vec![], "{good:#?}");
    assert!(good.nodes.len() >= 2 && good.placed.len() >= 2 && good.unplaced.len() == 2, "every rule has something to look at: {good:#?}");
    let all: Vec<&Corruption> = ONCE_AND_NAMES
        .iter()
        .chain(FIT)
        .chain(TAINTS_AND_LABELS)
        .chain(AFFINITY_AND_LIMITS)
        .chain(POOL)
        .chain(OFFERING_AND_MONEY)
        .collect();
    for (rule, how, corrupt) in all {
        let mut plan = good.clone();
        corrupt(&engine, &mut plan);
        assert_ne!(plan, good, "{how}: changes something");
        let named = rules(&engine, &plan);
        assert!(named.iter().any(|r| r == rule), "{how}: expected {rule}, heard {:?}", common::objections(&engine, &plan));
    }
}

const ONCE_AND_NAMES: &[Corruption] = &[
    ("once", "a pod on two nodes", |_, plan| {
        let twice = plan.nodes[0].pods[0].clone();
        plan.nodes[1].pods.push(twice);
    }),
    ("once", "a pod twice on one node", |_, plan| {
        let twice = plan.nodes[0].pods[0].clone();
        plan.nodes[0].pods.push(twice);
    }),
    ("once", "a pod that is placed and unplaced", |_, plan| {
        let twice = plan.nodes[0].pods[0].clone();
        plan.unplaced[0].pods.push(twice);
    }),
    ("once", "a pod that nobody thought of", |_, plan| drop(take(plan, "web-0"))),
    ("once", "a refused pod that nobody thought of", |_, plan| drop(take(plan, "strange"))),
    ("once", "a pod that runs already", |_, plan| plan.nodes[0].pods.push(key("there"))),
    ("once", "a pod that is not there at all", |_, plan| plan.nodes[0].pods.push(key("ghost"))),
    ("once", "a pod that is not understood", |_, plan| {
        let strange = take(plan, "strange");
        plan.nodes[0].pods.push(strange);
    }),
    ("once", "a claim for nobody", |_, plan| {
        let mut empty = plan.nodes[0].clone();
        empty.claim.name = "empty".to_owned();
        empty.pods.clear();
        plan.nodes.push(empty);
    }),
    ("names", "two claims of one name", |_, plan| plan.nodes[1].claim.name = plan.nodes[0].claim.name.clone()),
    ("names", "the name of a claim that exists", |engine, plan| plan.nodes[0].claim.name = in_flight(engine)),
    ("names", "a place that is none", |_, plan| {
        let web = take(plan, "web-0");
        plan.placed.insert("nowhere".to_owned(), vec![web]);
    }),
];

const FIT: &[Corruption] = &[
    ("fit", "a type too small for its pods", |_, plan| types(holder(plan, "zoned"), &["c.2", "m.8"])),
    ("fit", "a type that is too small once its daemon runs", |_, plan| {
        let moved = ["web-0", "web-1", "shy", "lone-0"].map(|name| take(plan, name));
        holder(plan, "zoned").pods.extend(moved.into_iter().take(1));
    }),
    ("fit", "too much for a node that exists", |_, plan| {
        let moved = ["web-0", "web-1"].map(|name| take(plan, name));
        plan.placed.entry("roomy".to_owned()).or_default().extend(moved);
    }),
    ("fit", "too much for a claim in flight", |engine, plan| {
        let moved = ["web-0", "web-1"].map(|name| take(plan, name));
        plan.placed.entry(in_flight(engine)).or_default().extend(moved);
    }),
    ("fit", "a claim that asks for less than its pods", |_, plan| plan.nodes[0].claim.requests.set(MEMORY, 1)),
    ("fit", "a claim without types", |_, plan| drop(plan.nodes[0].claim.requirements.remove(keys::INSTANCE_TYPE))),
];

const TAINTS_AND_LABELS: &[Corruption] = &[
    ("taints", "a node whose taint the pod does not tolerate", |_, plan| {
        let web = take(plan, "web-0");
        plan.placed.insert("tainted".to_owned(), vec![web]);
    }),
    ("taints", "a claim whose taint the pod does not tolerate", |_, plan| plan.nodes[0].claim.taints.push(taint("surprise"))),
    ("taints", "a node that is cordoned", |_, plan| {
        let web = take(plan, "web-0");
        plan.placed.insert("cordoned".to_owned(), vec![web]);
    }),
    ("labels", "a claim that may be bought in another zone", |_, plan| {
        drop(holder(plan, "zoned").claim.requirements.remove(keys::ZONE));
    }),
    ("labels", "a claim that is bought in another zone", |_, plan| {
        let node = holder(plan, "zoned");
        node.claim.requirements.remove(keys::ZONE);
        node.claim.requirements.add(any_of(keys::ZONE, &["us-east-1a", "us-east-1c"]));
    }),
    ("labels", "a node in another zone", |_, plan| {
        let zoned = take(plan, "zoned");
        plan.placed.insert("tainted".to_owned(), vec![zoned]);
    }),
    ("labels", "a claim in flight that may become something else", |engine, plan| {
        let zoned = take(plan, "zoned");
        plan.placed.entry(in_flight(engine)).or_default().push(zoned);
    }),
];

const AFFINITY_AND_LIMITS: &[Corruption] = &[
    ("affinity", "two pods that exclude each other", |_, plan| {
        let lone = ["lone-0", "lone-1"].map(|name| take(plan, name));
        plan.nodes[0].pods.extend(lone);
    }),
    ("affinity", "a pod beside one that it excludes", |_, plan| {
        let shy = take(plan, "shy");
        plan.placed.entry("roomy".to_owned()).or_default().push(shy);
    }),
    ("affinity", "on a claim in flight too", |engine, plan| {
        let lone = ["lone-0", "lone-1"].map(|name| take(plan, name));
        plan.placed.entry(in_flight(engine)).or_default().extend(lone);
    }),
    ("limits", "more than the pool may own", |_, plan| {
        let general = plan.nodes.iter().find(|n| n.claim.node_pool == "general").expect("the plan has one").clone();
        for number in 0..5 {
            let mut more = general.clone();
            more.claim.name = format!("more-{number}");
            plan.nodes.push(more);
        }
    }),
    ("limits", "a type that the limit has no room for", |_, plan| {
        for number in 0..3 {
            let mut node = plan.nodes.iter().find(|n| n.claim.node_pool == "general").expect("the plan has one").clone();
            node.claim.name = format!("more-{number}");
            types(&mut node, &["c.2", "m.8"]);
            plan.nodes.push(node);
        }
    }),
];

const POOL: &[Corruption] = &[
    ("pool", "a pool that does not exist", |_, plan| plan.nodes[0].claim.node_pool = "nobody".to_owned()),
    ("pool", "a pool whose node class does not exist", |_, plan| plan.nodes[0].claim.node_pool = "gone".to_owned()),
    ("pool", "another node class", |_, plan| plan.nodes[0].claim.node_class = "missing".to_owned()),
    ("pool", "without the pool's label", |_, plan| {
        for node in &mut plan.nodes {
            node.claim.labels.remove("tier");
        }
    }),
    ("pool", "with a label against its own requirements", |_, plan| {
        plan.nodes[0].claim.requirements.add(any_of("colour", &["red"]));
        plan.nodes[0].claim.labels.insert("colour".to_owned(), "blue".to_owned());
    }),
    ("pool", "without the label that says whose it is", |_, plan| drop(plan.nodes[0].claim.labels.remove(keys::NODE_POOL))),
    ("pool", "without the pool's annotation", |_, plan| plan.nodes.iter_mut().for_each(|n| n.claim.annotations.clear())),
    ("pool", "without the pool's startup taint", |_, plan| plan.nodes.iter_mut().for_each(|n| n.claim.startup_taints.clear())),
    ("pool", "with a taint of its own", |_, plan| {
        plan.nodes[0].claim.taints.push(whittle_model::Taint::new("soft", "", whittle_model::Effect::PreferNoSchedule));
    }),
    ("pool", "living longer than the pool lets it", |_, plan| {
        for node in &mut plan.nodes {
            node.claim.expire_after = Some(Duration::minutes(61));
        }
    }),
    ("pool", "without the pool's requirement", |_, plan| {
        for node in &mut plan.nodes {
            node.claim.requirements.remove(CATEGORY);
        }
    }),
    ("pool", "beyond the pool's requirement", |_, plan| {
        for node in &mut plan.nodes {
            node.claim.requirements.remove(CATEGORY);
            node.claim.requirements.add(common::operator(CATEGORY, Operator::NotIn, &["c"]));
        }
    }),
    ("pool", "already launched", |_, plan| plan.nodes[0].claim.status.launched = Some(NOW)),
    ("pool", "made at another time", |_, plan| plan.nodes[0].claim.created = LONG_AGO),
];

const OFFERING_AND_MONEY: &[Corruption] = &[
    ("offering", "a choice that does not exist", |_, plan| plan.nodes[0].choice.zone = "us-east-1z".to_owned()),
    ("offering", "a choice of a type that is not named", |_, plan| plan.nodes[0].choice.instance_type = "r.2".to_owned()),
    ("offering", "a choice in a zone that is not allowed", |_, plan| holder(plan, "zoned").choice.zone = "us-east-1b".to_owned()),
    ("offering", "a type that does not exist", |_, plan| types(&mut plan.nodes[0], &["c.8", "m.8", "x.99"])),
    ("offering", "a type of which nothing is allowed", |_, plan| {
        let node = &mut plan.nodes[0];
        node.claim.requirements.remove(keys::CAPACITY_TYPE);
        node.claim.requirements.add(any_of(keys::CAPACITY_TYPE, &["reserved"]));
    }),
    ("offering", "a runner-up that does not exist", |_, plan| {
        plan.nodes[0].runner_up = Some((offering("x.99", "us-east-1a", CapacityType::Spot), Micros(9_999_999)));
    }),
    ("price", "a cost below zero", |_, plan| plan.nodes[0].cost = Micros(-1)),
    ("price", "a price that is not listed", |_, plan| {
        plan.nodes[0].cost = plan.nodes[0].cost + Micros(1);
        plan.nodes[0].rank = plan.nodes[0].rank + Micros(1);
    }),
    ("price", "a choice that is not the cheapest", |_, plan| {
        let node = holder(plan, "zoned");
        node.choice.capacity_type = CapacityType::OnDemand;
        let (cost, rank) = match node.choice.instance_type.as_str() {
            "c.8" => (Micros(340_000), Micros(340_000)),
            other => unreachable!("the cheapest of its types is c.8, not {other}"),
        };
        (node.cost, node.rank) = (cost, rank);
    }),
    ("price", "a runner-up better than the choice", |_, plan| {
        let node = plan.nodes.iter_mut().find(|n| n.runner_up.is_some()).expect("the plan has one");
        let (key, rank) = node.runner_up.clone().expect("the plan has one");
        node.runner_up = Some((std::mem::replace(&mut node.choice, key), std::mem::replace(&mut node.rank, rank)));
    }),
    ("price", "a runner-up that is forgotten", |_, plan| {
        plan.nodes.iter_mut().for_each(|n| n.runner_up = None);
    }),
    ("bound", "a bound above the cost", |_, plan| {
        complete(plan);
        let choice = plan.choice.as_mut().expect("the plan names its choice");
        choice.bound = choice.cost + Micros(1);
    }),
    ("bound", "a greedy that was cheaper", |_, plan| {
        complete(plan);
        let choice = plan.choice.as_mut().expect("the plan names its choice");
        choice.greedy = choice.cost - Micros(1);
    }),
    ("bound", "a cost that is not the sum", |_, plan| {
        let choice = plan.choice.as_mut().expect("the plan names its choice");
        choice.cost = choice.cost + Micros(1);
    }),
    ("bound", "a count of pods that is wrong", |_, plan| plan.choice.as_mut().expect("the plan names its choice").pods += 1),
    ("bound", "a count of nodes that is wrong", |_, plan| plan.choice.as_mut().expect("the plan names its choice").nodes += 1),
    ("bound", "a mix that is wrong", |_, plan| plan.choice.as_mut().expect("the plan names its choice").mix.clear()),
    ("bound", "no choice named", |_, plan| plan.choice = None),
];

/// Makes it look as if nobody was left out but for reasons of their own.
fn complete(plan: &mut Plan) {
    for reason in plan.unplaced.iter_mut().flat_map(|u| &mut u.reasons) {
        reason.place = "pod".to_owned();
    }
}

#[test]
fn what_changed_since_the_plan_is_named() {
    let mut engine = engine();
    let plan = engine.plan(NOW, &mut ListPrice);
    let changes: [(&str, Event); 4] = [
        ("offering", {
            let failure = whittle_model::LaunchFailure::InsufficientCapacity(vec![plan.nodes[0].choice.clone()]);
            common::door::outcome(Outcome::LaunchFailed { claim: "another".to_owned(), failure })
        }),
        (
            "pool",
            Event::NodeClass(NodeClass { name: "default".to_owned(), not_ready: Some("no subnets".to_owned()), ..NodeClass::default() }),
        ),
        ("pool", Event::NodePoolGone(plan.nodes[0].claim.node_pool.clone())),
        ("once", boxed_pod(labelled("late", "late", 100))),
    ];
    for (rule, event) in changes {
        let before = engine.clone();
        engine.handle(&event, NOW);
        let named = rules(&engine, &plan);
        assert!(named.iter().any(|r| r == rule), "expected {rule}, heard {named:?}");
        engine = before;
    }
}
