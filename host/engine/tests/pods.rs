//! Host ports, volumes, daemons and resource claims: where pods that have them may go, and what is said when they may not.
#![expect(clippy::unwrap_used, reason = "a test that finds nothing fails")]

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::door::Door;
use common::random::Dice;
use common::{
    CATEGORY, GIB, NOW, TYPES, ZONES, all_of, any_of, basics, bound, daemon_pod, daemon_set, node, operator, pod, pool, resources, told,
};
use whittle_engine::report::{Miss, Obstacle, Reason, Unmet, VolumeFault};
use whittle_engine::{Engine, Plan};
use whittle_model::pod::ContainerRequests;
use whittle_model::resources::{CPU, MEMORY};
use whittle_model::{
    DaemonSet, Event, HostPort, LimitRange, ListPrice, NodePool, Operator, Pod, PodKey, PodVolume, Protocol, Requirements, Resources,
    StorageClass, TemplateRequests, Toleration, Volume, VolumeAttachment, VolumeClaim, VolumeClaimPhase, VolumeLimits, keys,
};

const DRIVER: &str = "ebs.csi.aws.com";

fn planned(events: &[Event]) -> (Engine, Plan) {
    let mut all = basics();
    all.extend_from_slice(events);
    let engine = told(&all);
    let plan = engine.plan(NOW, &mut ListPrice);
    assert_eq!(common::objections(&engine, &plan), vec![]);
    (engine, plan)
}

fn of_pool(pool: NodePool) -> Event {
    Event::NodePool(Box::new(pool))
}

fn of_pod(pod: Pod) -> Event {
    Event::Pod(Box::new(pod))
}

fn of_set(set: &DaemonSet) -> Event {
    Event::DaemonSet(Box::new(set.clone()))
}

fn of_node(name: &str, of: &str, zone: &str) -> Event {
    Event::Node(Box::new(node(name, of, zone)))
}

/// A pool that sells these types.
fn selling(types: &[&str]) -> NodePool {
    let mut pool = pool("pool");
    pool.template.requirements = all_of(&[any_of(keys::INSTANCE_TYPE, types)]);
    pool
}

fn port(port: u16) -> HostPort {
    HostPort { port, protocol: Protocol::Tcp, ip: String::new() }
}

fn with_ports(name: &str, ports: &[HostPort]) -> Pod {
    Pod { host_ports: ports.to_vec(), ..pod(name, 100, GIB / 8) }
}

fn types_of(plan: &Plan) -> Vec<BTreeSet<String>> {
    let types = |n: &whittle_engine::PlannedNode| n.claim.requirements.get(keys::INSTANCE_TYPE).unwrap().values().clone();
    plan.nodes.iter().map(types).collect()
}

fn reason_of(plan: &Plan, pod: &str) -> Reason {
    let unplaced = plan.unplaced.iter().find(|u| u.pods.iter().any(|p| p.name == pod)).expect("the pod has no place");
    unplaced.reasons[0].why.clone()
}

#[test]
fn ports_decide_who_shares_a_new_node() {
    let udp = HostPort { protocol: Protocol::Udp, ..port(80) };
    let on = |ip: &str| HostPort { ip: ip.to_owned(), ..port(80) };
    for (left, right, nodes) in [
        (vec![port(80)], vec![port(80)], 2),
        (vec![port(80)], vec![port(81)], 1),
        (vec![port(80)], vec![udp.clone()], 1),
        (vec![port(80)], vec![on("10.0.0.1")], 2),
        (vec![on("10.0.0.1")], vec![on("10.0.0.2")], 1),
        (vec![on("10.0.0.1"), port(90)], vec![on("10.0.0.2"), port(90)], 2),
        (vec![port(80)], vec![], 1),
    ] {
        let pods = [of_pod(with_ports("left", &left)), of_pod(with_ports("right", &right))];
        let (_, plan) = planned(&[vec![of_pool(pool("pool"))], pods.to_vec()].concat());
        assert_eq!((plan.nodes.len(), plan.unplaced.len()), (nodes, 0), "{left:?} {right:?}");
    }
}

#[test]
fn ports_of_running_pods_and_of_daemons_to_come_are_taken() {
    let mut set = daemon_set("agent", 50, GIB / 8);
    set.template.host_ports = vec![port(9100)];
    let running = bound(with_ports("running", &[port(80)]), "one");
    for (asked, daemon_there, place) in [
        (80, false, Some("two")),
        (81, false, Some("one")),
        // Whether its pod is there already or still to come: the daemon takes its port on every node.
        (9100, false, None),
        (9100, true, None),
    ] {
        let mut events = vec![of_node("one", "m.4", ZONES[0]), of_node("two", "m.4", ZONES[0]), of_set(&set), of_pod(running.clone())];
        if daemon_there {
            events.extend(["one", "two"].map(|node| of_pod(daemon_pod(&set, node))));
        }
        events.push(of_pod(with_ports("asks", &[port(asked)])));
        let (_, plan) = planned(&events);
        assert_eq!(plan.placed.keys().map(String::as_str).next(), place, "{asked}");
        if place.is_none() {
            let nodes = plan.unplaced[0].reasons.last().unwrap();
            assert_eq!(nodes.why, Reason::Nodes(vec![(2, Obstacle::Port)]), "{asked}");
        }
    }
}

#[test]
fn ports_of_daemons_bar_the_types_they_run_on() {
    let mut set = daemon_set("agent", 50, GIB / 8);
    set.template.host_ports = vec![port(9100)];
    let asks = || of_pod(with_ports("asks", &[port(9100)]));
    let (_, plan) = planned(&[of_pool(pool("pool")), of_set(&set), asks()]);
    assert_eq!(reason_of(&plan, "asks"), Reason::Port(port(9100)));
    assert_eq!(reason_of(&plan, "asks").to_string(), "host port 9100 is taken by daemons on every node there that would do");
    set.template.affinity.node_selector = all_of(&[any_of(CATEGORY, &["c", "m"])]);
    // Another pod of the same size shares the node, and must not bring the other types back.
    let (_, plan) = planned(&[of_pool(pool("pool")), of_set(&set), asks(), of_pod(pod("other", 100, GIB / 8))]);
    assert_eq!(plan.unplaced, vec![]);
    let with_asker = plan.nodes.iter().position(|n| n.pods.iter().any(|p| p.name == "asks")).unwrap();
    assert!(types_of(&plan)[with_asker].iter().all(|t| t.starts_with("r.")), "{:?}", types_of(&plan));
}

/// A claim of the namespace `default`.
fn claim(name: &str) -> VolumeClaim {
    VolumeClaim { key: PodKey::new("default", name), storage_class: Some("gp3".to_owned()), ..VolumeClaim::default() }
}

fn bound_claim(name: &str, volume: &str) -> VolumeClaim {
    VolumeClaim { phase: VolumeClaimPhase::Bound, volume: volume.to_owned(), bind_completed: true, ..claim(name) }
}

fn volume(name: &str, zones: &[&str]) -> Volume {
    let terms = zones.iter().map(|zone| all_of(&[any_of(keys::ZONE, &[zone])])).collect();
    Volume { name: name.to_owned(), node_terms: terms, driver: DRIVER.to_owned(), handle: format!("vol-{name}"), ..Volume::default() }
}

fn class(name: &str, topologies: Vec<Requirements>) -> StorageClass {
    StorageClass { name: name.to_owned(), provisioner: DRIVER.to_owned(), topologies, ..StorageClass::default() }
}

fn using(pod: Pod, claims: &[&str]) -> Pod {
    let volumes = claims.iter().map(|claim| PodVolume { claim: (*claim).to_owned(), ephemeral: None }).collect();
    Pod { volumes, ..pod }
}

fn of_claim(claim: VolumeClaim) -> Event {
    Event::VolumeClaim(Box::new(claim))
}

fn of_volume(volume: Volume) -> Event {
    Event::Volume(Box::new(volume))
}

fn of_class(class: StorageClass) -> Event {
    Event::StorageClass(Box::new(class))
}

fn zones_of(plan: &Plan) -> BTreeSet<String> {
    plan.nodes[0].claim.requirements.get(keys::ZONE).map(|r| r.values().clone()).unwrap_or_default()
}

#[test]
fn volumes_decide_the_zone() {
    let in_a = all_of(&[any_of(keys::ZONE, &[ZONES[0]])]);
    let host = all_of(&[any_of(keys::HOSTNAME, &["gone"]), any_of(keys::ZONE, &[ZONES[2]])]);
    let only_host = all_of(&[any_of(keys::HOSTNAME, &["gone"])]);
    let local = |terms: Vec<Requirements>| Volume { local: true, node_terms: terms, ..volume("pv", &[]) };
    let ephemeral = |class: Option<&str>| Pod {
        volumes: vec![PodVolume { claim: "web-scratch".to_owned(), ephemeral: Some(class.map(str::to_owned)) }],
        ..pod("web", 100, GIB)
    };
    let plain = || using(pod("web", 100, GIB), &["data"]);
    let default = StorageClass { default: true, ..class("standard", vec![all_of(&[any_of(keys::ZONE, &[ZONES[1]])])]) };
    for (what, pod, objects, zones) in [
        ("bound", plain(), vec![of_claim(bound_claim("data", "pv")), of_volume(volume("pv", &[ZONES[1]]))], vec![ZONES[1]]),
        (
            "named but not bound yet",
            plain(),
            vec![
                of_claim(VolumeClaim { volume: "pv".to_owned(), ..claim("data") }),
                of_volume(volume("pv", &[ZONES[1]])),
                of_class(class("gp3", vec![in_a.clone()])),
            ],
            vec![ZONES[1]],
        ),
        (
            "terms of a volume are alternatives",
            plain(),
            vec![of_claim(bound_claim("data", "pv")), of_volume(volume("pv", &[ZONES[0], ZONES[2]]))],
            vec![ZONES[0], ZONES[2]],
        ),
        ("unbound", plain(), vec![of_claim(claim("data")), of_class(class("gp3", vec![in_a.clone()]))], vec![ZONES[0]]),
        ("unbound anywhere", plain(), vec![of_claim(claim("data")), of_class(class("gp3", vec![]))], vec![]),
        (
            "of the default class",
            plain(),
            vec![of_claim(VolumeClaim { storage_class: None, ..claim("data") }), of_class(default.clone())],
            vec![ZONES[1]],
        ),
        ("ephemeral, to be made", ephemeral(Some("gp3")), vec![of_class(class("gp3", vec![in_a.clone()]))], vec![ZONES[0]]),
        ("ephemeral of the default class", ephemeral(None), vec![of_class(default)], vec![ZONES[1]]),
        (
            "ephemeral, made",
            ephemeral(Some("gp3")),
            vec![of_class(class("gp3", vec![])), of_claim(bound_claim("web-scratch", "pv")), of_volume(volume("pv", &[ZONES[2]]))],
            vec![ZONES[2]],
        ),
        ("local: no host name", plain(), vec![of_claim(bound_claim("data", "pv")), of_volume(local(vec![host]))], vec![ZONES[2]]),
        ("local: host name alone", plain(), vec![of_claim(bound_claim("data", "pv")), of_volume(local(vec![only_host]))], vec![]),
        (
            "two volumes agree on one zone",
            using(pod("web", 100, GIB), &["data", "more"]),
            vec![
                of_claim(bound_claim("data", "pv")),
                of_volume(volume("pv", &[ZONES[0], ZONES[1]])),
                of_claim(bound_claim("more", "pv2")),
                of_volume(volume("pv2", &[ZONES[1], ZONES[2]])),
            ],
            vec![ZONES[1]],
        ),
    ] {
        let (_, plan) = planned(&[vec![of_pool(pool("pool")), of_pod(pod)], objects].concat());
        assert_eq!(plan.unplaced, vec![], "{what}");
        assert_eq!(zones_of(&plan), zones.into_iter().map(str::to_owned).collect(), "{what}");
    }
}

#[test]
fn a_zone_that_sells_nothing_is_passed_over_for_another_term() {
    let mut catalog = common::catalog("default");
    let offerings = catalog.types.iter_mut().flat_map(|t| &mut t.offerings);
    offerings.filter(|o| o.zone == ZONES[0]).for_each(|o| o.available = false);
    let events = [
        Event::Catalog(std::sync::Arc::new(catalog)),
        of_pool(pool("pool")),
        of_claim(bound_claim("data", "pv")),
        of_volume(volume("pv", &[ZONES[0], ZONES[2]])),
        of_claim(bound_claim("stuck", "pv-a")),
        of_volume(volume("pv-a", &[ZONES[0]])),
        of_pod(using(pod("free", 100, GIB), &["data"])),
        of_pod(using(pod("stuck", 100, GIB), &["stuck"])),
    ];
    let (_, plan) = planned(&events);
    assert_eq!(plan.nodes[0].choice.zone, ZONES[2]);
    let Reason::Types(refusal) = reason_of(&plan, "stuck") else { panic!("{:?}", plan.unplaced) };
    assert_eq!((refusal.unmet, refusal.unsold_zones), (Unmet::Offerings, vec![ZONES[0].to_owned()]));
    let nearest = plan.unplaced[0].nearest.clone().unwrap();
    assert!(matches!(&nearest, Miss::Zone { zone, .. } if zone == ZONES[0]), "{nearest}");
}

#[test]
fn broken_storage_is_one_pods_problem() {
    let gone = |phase| VolumeClaim { phase, ..bound_claim("data", "pv") };
    let class_named = |name: Option<&str>| VolumeClaim { storage_class: name.map(str::to_owned), ..claim("data") };
    let pv = || of_volume(volume("pv", &[]));
    let apart = vec![
        of_claim(bound_claim("data", "pv-a")),
        of_volume(volume("pv-a", &[ZONES[0]])),
        of_claim(bound_claim("more", "pv-b")),
        of_volume(volume("pv-b", &[ZONES[1]])),
    ];
    for (objects, fault) in [
        (vec![], VolumeFault::NoClaim),
        (vec![of_claim(VolumeClaim { deleting: true, ..bound_claim("data", "pv") }), pv()], VolumeFault::ClaimDeleting),
        (vec![of_claim(gone(VolumeClaimPhase::Lost)), pv()], VolumeFault::Lost),
        (vec![of_claim(bound_claim("data", "pv"))], VolumeFault::NoVolume("pv".to_owned())),
        (
            vec![of_claim(bound_claim("data", "pv")), of_volume(Volume { deleting: true, ..volume("pv", &[]) })],
            VolumeFault::VolumeDeleting("pv".to_owned()),
        ),
        (vec![of_claim(VolumeClaim { bind_completed: false, ..bound_claim("data", "pv") }), pv()], VolumeFault::NotBoundYet),
        (vec![of_claim(class_named(None))], VolumeFault::NoClass),
        (vec![of_claim(class_named(Some("")))], VolumeFault::NoClass),
        (vec![of_claim(class_named(Some("nope")))], VolumeFault::MissingClass("nope".to_owned())),
        (
            vec![of_claim(class_named(Some("fast"))), of_class(StorageClass { immediate: true, ..class("fast", vec![]) })],
            VolumeFault::Immediate("fast".to_owned()),
        ),
        (apart, VolumeFault::Apart),
    ] {
        let claims: &[&str] = if fault == VolumeFault::Apart { &["data", "more"] } else { &["data"] };
        let bad = of_pod(using(pod("bad", 100, GIB), claims));
        let (_, plan) = planned(&[vec![of_pool(pool("pool")), of_pod(pod("ok", 100, GIB)), bad], objects].concat());
        assert_eq!(plan.nodes.len(), 1, "{fault:?}");
        let Reason::Volume { claim, fault: found } = reason_of(&plan, "bad") else { panic!("{:?}", plan.unplaced) };
        assert_eq!((claim.name.as_str(), &found), (*claims.last().unwrap(), &fault));
        assert_eq!(plan.unplaced[0].reasons[0].place, "pod");
    }
}

fn limits(node: &str, most: u32) -> Event {
    Event::VolumeLimits(Box::new(VolumeLimits { node: node.to_owned(), drivers: BTreeMap::from([(DRIVER.to_owned(), most)]) }))
}

/// Four pods with a claim each, of 500m and 512Mi.
fn four_with_claims() -> Vec<Event> {
    let pods = (0..4).map(|n| of_pod(using(pod(&format!("web-{n}"), 500, GIB / 2), &[&format!("data-{n}")])));
    let claims = (0..4).map(|n| of_claim(claim(&format!("data-{n}"))));
    pods.chain(claims).chain([of_class(class("gp3", vec![]))]).collect()
}

#[test]
fn a_node_holds_as_many_volumes_as_its_driver_says() {
    let other_driver = Event::VolumeLimits(Box::new(VolumeLimits {
        node: "one".to_owned(),
        drivers: BTreeMap::from([("efs.csi.aws.com".to_owned(), 1)]),
    }));
    let attachment = VolumeAttachment { name: "a".to_owned(), node: "one".to_owned(), volume: "pv-left".to_owned() };
    let attached = || vec![Event::VolumeAttachment(Box::new(attachment.clone())), of_volume(volume("pv-left", &[]))];
    let running = || {
        let on = bound(using(pod("old", 100, GIB / 4), &["old"]), "one");
        vec![of_pod(on), of_claim(bound_claim("old", "pv-left")), of_volume(volume("pv-left", &[]))]
    };
    for (what, more, on_one) in [
        ("no limit", vec![], 4),
        ("another driver's limit", vec![other_driver], 4),
        ("three", vec![limits("one", 3)], 3),
        ("none", vec![limits("one", 0)], 0),
        ("one is attached", [vec![limits("one", 3)], attached()].concat(), 2),
        ("one is mounted", [vec![limits("one", 3)], running()].concat(), 2),
        // What is mounted is attached: it counts once.
        ("one is both", [vec![limits("one", 3)], running(), attached()].concat(), 2),
    ] {
        let (_, plan) =
            planned(&[vec![of_node("one", "m.4", ZONES[0]), of_node("two", "m.8", ZONES[0])], four_with_claims(), more].concat());
        assert_eq!(plan.placed.get("one").map_or(0, Vec::len), on_one, "{what}: {:?}", plan.placed);
        assert_eq!(plan.placed.values().map(Vec::len).sum::<usize>(), 4, "{what}");
    }
}

#[test]
fn new_nodes_hold_what_others_of_their_type_were_seen_to() {
    let full = of_pod(bound(pod("full", 3800, GIB), "one"));
    for (limit, nodes) in [(None, 1), (Some(3), 2), (Some(1), 4)] {
        let mut events = [vec![of_pool(selling(&["m.4"])), of_node("one", "m.4", ZONES[0]), full.clone()], four_with_claims()].concat();
        events.extend(limit.map(|most| limits("one", most)));
        let (_, plan) = planned(&events);
        assert_eq!((plan.nodes.len(), plan.unplaced.len()), (nodes, 0), "{limit:?}");
    }
    // No type there takes two.
    let two = of_pod(using(pod("two", 100, GIB / 8), &["data-0", "more"]));
    let events = [
        vec![of_pool(selling(&["m.4"])), of_node("one", "m.4", ZONES[0]), full, limits("one", 1), of_claim(claim("more")), two],
        four_with_claims(),
    ];
    let (_, plan) = planned(&events.concat());
    let nearest = plan.unplaced[0].nearest.clone().unwrap().to_string();
    assert!(nearest.contains("volumes of ebs.csi.aws.com request were 1 smaller"), "{nearest}");
    let Reason::Nodes(obstacles) = &plan.unplaced[0].reasons.last().unwrap().why else { panic!("{:?}", plan.unplaced) };
    assert_eq!(obstacles.len(), 1, "{obstacles:?}");
}

#[test]
fn a_shared_volume_counts_once_on_a_node() {
    let shared = |n: usize| of_pod(using(pod(&format!("web-{n}"), 500, GIB / 2), &["shared"]));
    let objects = vec![of_claim(bound_claim("shared", "pv")), of_volume(volume("pv", &[]))];
    let full = of_pod(bound(pod("full", 3800, GIB), "full"));
    for (what, events, on_node, nodes) in [
        ("on a node", vec![of_node("one", "m.4", ZONES[0]), limits("one", 1)], 4, 0),
        ("on a new node", vec![of_pool(selling(&["m.4"])), of_node("full", "m.4", ZONES[0]), limits("full", 1), full.clone()], 0, 1),
        (
            "attached already",
            vec![of_node("one", "m.4", ZONES[0]), limits("one", 1), of_pod(bound(using(pod("old", 100, GIB / 4), &["shared"]), "one"))],
            4,
            0,
        ),
        (
            "not beside another",
            vec![
                of_node("one", "m.4", ZONES[0]),
                limits("one", 1),
                of_pod(bound(using(pod("old", 100, GIB / 4), &["other"]), "one")),
                of_claim(bound_claim("other", "pv-other")),
                of_volume(volume("pv-other", &[])),
            ],
            0,
            0,
        ),
    ] {
        let pods: Vec<Event> = (0..4).map(shared).collect();
        let (_, plan) = planned(&[events, pods, objects.clone()].concat());
        assert_eq!((plan.placed.values().map(Vec::len).sum::<usize>(), plan.nodes.len()), (on_node, nodes), "{what}: {:?}", plan.unplaced);
    }
}

fn everywhere() -> Toleration {
    Toleration { key: None, exists: true, value: String::new(), effect: None }
}

/// Types on which a pod may go, next to these daemons.
fn types_beside(pool: NodePool, sets: &[DaemonSet], more: &[Event], pod: Pod) -> BTreeSet<String> {
    let events = [vec![of_pool(pool), of_pod(pod)], sets.iter().map(of_set).collect(), more.to_vec()].concat();
    let (_, plan) = planned(&events);
    types_of(&plan).into_iter().next().unwrap_or_default()
}

fn names(types: &[&str]) -> BTreeSet<String> {
    types.iter().map(|t| (*t).to_owned()).collect()
}

#[test]
fn daemons_take_their_share_of_the_types_they_run_on() {
    // m.2 has 1900m and m.4 3900m.
    let mut tainted = selling(&["m.2", "m.4"]);
    tainted.template.taints = vec![common::taint("dedicated")];
    let tolerant = |name: &str| {
        let mut set = daemon_set(name, 200, GIB / 8);
        set.template.tolerations = vec![everywhere()];
        set
    };
    let four: Vec<DaemonSet> = ["a", "b", "c", "d"].map(tolerant).to_vec();
    let asks = |cpu| Pod { tolerations: vec![common::toleration("dedicated")], ..pod("web", cpu, GIB) };
    assert_eq!(types_beside(tainted.clone(), &four, &[], asks(1500)), names(&["m.4"]), "tolerations for all taints");
    assert_eq!(types_beside(tainted.clone(), &four, &[], asks(1100)), names(&["m.2", "m.4"]));
    let strangers: Vec<DaemonSet> = ["a", "b", "c", "d"].map(|name| daemon_set(name, 200, GIB / 8)).to_vec();
    assert_eq!(types_beside(tainted, &strangers, &[], asks(1500)), names(&["m.2", "m.4"]), "daemons that do not come");
    // Overhead is of a type, not of a pool.
    let mut big = daemon_set("only-large", 3000, GIB);
    big.template.affinity.node_terms = vec![all_of(&[operator(common::TYPE_CPU, Operator::Gt, &["3"])])];
    assert_eq!(types_beside(selling(&["m.2", "m.4", "m.8"]), &[big], &[], pod("web", 1500, GIB)), names(&["m.2", "m.8"]));
}

#[test]
fn daemons_that_wait_for_a_registered_node_come_along() {
    for (key, value, comes) in [(keys::INITIALIZED, "true", true), (keys::REGISTERED, "true", true), (keys::REGISTERED, "false", false)] {
        let mut set = daemon_set("late", 500, GIB / 8);
        set.template.affinity.node_terms = vec![all_of(&[any_of(key, &[value])])];
        let types = types_beside(selling(&["m.2", "m.4"]), &[set], &[], pod("web", 1500, GIB));
        assert_eq!(types, if comes { names(&["m.4"]) } else { names(&["m.2", "m.4"]) }, "{key}={value}");
    }
}

#[test]
fn daemons_ask_for_what_they_run_with_before_what_their_template_says() {
    let bare = |cpu: i64| DaemonSet {
        containers: Some(TemplateRequests { containers: vec![Resources::of(&[(CPU, cpu)])], ..TemplateRequests::default() }),
        ..daemon_set("agent", cpu, 0)
    };
    let range = |namespace: &str, cpu| {
        let key = PodKey::new(namespace, "defaults");
        Event::LimitRange(Box::new(LimitRange { key, requests: Resources::of(&[(CPU, cpu)]) }))
    };
    let running = |cpu: i64, created: i64, name: &str| {
        let mut live = daemon_pod(&bare(0), "elsewhere");
        live.key.name = name.to_owned();
        live.created = whittle_model::Timestamp(created);
        live.requests = resources(cpu, 0);
        // The server pins each pod of a DaemonSet to its node.
        live.affinity.node_terms = vec![all_of(&[any_of(keys::HOSTNAME, &["elsewhere"])])];
        of_pod(live)
    };
    let small = names(&["m.2", "m.4"]);
    let large = names(&["m.4"]);
    for (what, cpu, more, types) in [
        ("nothing said", 0, vec![], &small),
        ("the namespace's default", 0, vec![range("kube-system", 500)], &large),
        ("another namespace's default", 0, vec![range("default", 500)], &small),
        ("a request is no gap", 100, vec![range("kube-system", 500)], &small),
        ("a running pod", 0, vec![running(500, 5, "old")], &large),
        ("the newest running pod", 0, vec![running(500, 5, "old"), running(100, 7, "new")], &small),
        ("a running pod before the default", 0, vec![range("kube-system", 500), running(100, 5, "old")], &small),
        ("a pod that is gone", 0, vec![running(500, 5, "old"), Event::PodGone(PodKey::new("kube-system", "old"))], &small),
    ] {
        assert_eq!(&types_beside(selling(&["m.2", "m.4"]), &[bare(cpu)], &more, pod("web", 1500, GIB)), types, "{what}");
    }
}

#[test]
fn sidecars_of_a_template_get_the_default_too() {
    let set = DaemonSet {
        containers: Some(TemplateRequests {
            init: vec![ContainerRequests { requests: Resources::default(), sidecar: true }],
            containers: vec![Resources::default()],
            ..TemplateRequests::default()
        }),
        ..daemon_set("agent", 0, 0)
    };
    let range = |cpu| {
        let key = PodKey::new("kube-system", "defaults");
        Event::LimitRange(Box::new(LimitRange { key, requests: Resources::of(&[(CPU, cpu)]) }))
    };
    assert_eq!(
        types_beside(selling(&["m.2", "m.4"]), std::slice::from_ref(&set), &[range(200)], pod("web", 1500, GIB)),
        names(&["m.2", "m.4"])
    );
    assert_eq!(types_beside(selling(&["m.2", "m.4"]), &[set], &[range(250)], pod("web", 1500, GIB)), names(&["m.4"]));
}

#[test]
fn memory_that_a_node_turned_out_not_to_have_is_not_planned_with_again() {
    let mut door = Door::new(told(&basics()));
    door.less_memory = GIB / 4;
    door.now = NOW;
    door.tell(&of_pool(selling(&["c.2", "m.2"])));
    // c.2 is told to have 3.6 GiB and m.2 7.2 GiB.
    let asks = |name: &str| pod(name, 1000, GIB * 7 / 2);
    door.put_pod(asks("first"));
    let bought = |door: &Door| {
        let mut types: Vec<String> = door.claims.values().map(|c| c.status.instance_type.clone()).collect();
        types.sort();
        types
    };
    door.pass(common::seconds(5));
    assert_eq!(bought(&door), ["c.2"]);
    let checkpoint_before = door.engine.checkpoint();
    door.join();
    door.pass(common::seconds(20));
    assert_ne!(door.engine.checkpoint(), checkpoint_before);
    // The pod cannot be bound there: it waits again, and its second node is not the first one's like.
    door.put_pod(asks("first"));
    door.pass(common::seconds(20));
    door.join();
    door.put_pod(asks("second"));
    door.pass(common::seconds(20));
    // One launch was wasted, and its node, which is empty, has gone.
    assert_eq!(bought(&door), ["m.2", "m.2"]);
    let created = door.actions.iter().filter(|(_, action)| matches!(action, whittle_model::Action::CreateClaim(_)));
    assert_eq!(created.count(), 3);
    // The knowledge outlives the process, and another table of types.
    let mut again = Engine::restore(door.engine.checkpoint());
    again.handle(&Event::Catalog(std::sync::Arc::new(common::catalog("default"))), door.now);
    let memory = |engine: &Engine, of: &str| engine.world().catalog("default").unwrap().get(of).unwrap().allocatable.get(MEMORY);
    let told = common::catalog("default").get("c.2").unwrap().allocatable.get(MEMORY);
    assert_eq!(memory(&again, "c.2"), told - GIB / 4);
    assert_eq!(memory(&again, "c.4"), common::catalog("default").get("c.4").unwrap().allocatable.get(MEMORY));
}

#[test]
fn resource_claims_are_left_alone_and_said_so() {
    let asks = Pod { resource_claims: true, ..pod("gpu", 100, GIB) };
    let (_, plan) = planned(&[of_pool(pool("pool")), of_pod(asks), of_pod(pod("ok", 100, GIB))]);
    assert_eq!(plan.nodes.len(), 1);
    assert_eq!(reason_of(&plan, "gpu"), Reason::ResourceClaims);
}

#[test]
fn reasons_tell_which_rule_leaves_no_type() {
    let wants = |pod: Pod, requirements: &[whittle_model::Requirement]| {
        let mut pod = pod;
        pod.affinity.node_selector = all_of(requirements);
        pod
    };
    let (small, huge) = (pod("web", 100, GIB), pod("web", 90_000, GIB));
    let (no_zone, no_category) = (|| any_of(keys::ZONE, &["us-east-1z"]), || any_of(CATEGORY, &["x"]));
    let eight = |memory| pod("web", 5000, memory * GIB);
    for (what, pod, unmet) in [
        ("category", wants(small.clone(), &[no_category()]), Unmet::Requirements),
        ("size", huge.clone(), Unmet::Resources),
        ("zone", wants(small.clone(), &[no_zone()]), Unmet::Offerings),
        ("category and size", wants(huge.clone(), &[no_category()]), Unmet::RequirementsAndResources),
        ("category and zone", wants(small.clone(), &[no_category(), no_zone()]), Unmet::RequirementsAndOfferings),
        ("size and zone", wants(huge.clone(), &[no_zone()]), Unmet::ResourcesAndOfferings),
        ("all", wants(huge, &[no_category(), no_zone()]), Unmet::All),
        // 40 GiB is in r.8 alone.
        ("large enough is of another category", wants(eight(40), &[any_of(CATEGORY, &["m"])]), Unmet::RequirementsOfTheRest),
    ] {
        let (_, plan) = planned(&[of_pool(pool("pool")), of_pod(pod)]);
        let Reason::Types(refusal) = reason_of(&plan, "web") else { panic!("{what}: {:?}", plan.unplaced) };
        assert_eq!(refusal.unmet, unmet, "{what}: {refusal}");
        assert!(!refusal.to_string().is_empty());
    }
    let (_, plan) = planned(&[of_pool(pool("pool")), of_pod(pod("web", 1_000_000_000, GIB))]);
    let text = reason_of(&plan, "web").to_string();
    assert!(text.contains("M is a million"), "{text}");
}

/// Random pods with ports and volumes on random nodes.
fn random_events(seed: u64) -> Vec<Event> {
    let mut dice = Dice(seed);
    let d = &mut dice;
    let mut events = vec![of_pool(pool("pool"))];
    let mut set = daemon_set("agent", 50, GIB / 8);
    set.template.host_ports = if d.one_in(2) { vec![port(1)] } else { vec![] };
    set.template.affinity.node_selector = all_of(&[any_of(CATEGORY, &d.some(&["c", "m", "r"]))]);
    events.push(of_set(&set));
    for n in 0..d.below(4) {
        let name = format!("node-{n}");
        events.push(of_node(&name, d.pick(&TYPES).0, d.pick(&ZONES)));
        if d.one_in(2) {
            events.push(limits(&name, u32::try_from(d.below(4)).unwrap()));
        }
    }
    events.push(of_class(class("gp3", vec![])));
    for n in 0..6 {
        events.push(of_volume(volume(&format!("pv-{n}"), &d.some(&ZONES))));
        events.push(of_claim(bound_claim(&format!("bound-{n}"), &format!("pv-{n}"))));
        events.push(of_claim(claim(&format!("free-{n}"))));
    }
    let nodes = events.iter().filter(|e| matches!(e, Event::Node(_))).count();
    for n in 0..4 + d.below(20) {
        let mut pod = pod(&format!("pod-{n:02}"), d.pick(&[100, 500, 1500]), GIB / 4);
        for number in 1..4 {
            if d.one_in(4) {
                pod.host_ports.push(HostPort { ip: d.pick(&["", "10.0.0.1", "10.0.0.2"]).to_owned(), ..port(number) });
            }
        }
        let claims: BTreeSet<String> = (0..d.below(3)).map(|_| format!("{}-{}", d.pick(&["bound", "free"]), d.below(6))).collect();
        let pod = using(pod, &claims.iter().map(String::as_str).collect::<Vec<_>>());
        events.push(of_pod(if nodes > 0 && d.one_in(4) { bound(pod, &format!("node-{}", d.below(nodes))) } else { pod }));
    }
    events
}

#[test]
fn no_plan_breaks_a_rule_of_ports_or_volumes() {
    let (mut bought, mut placed) = (0, 0);
    for seed in 0..200 {
        let events = random_events(seed);
        let (engine, plan) = planned(&events);
        let world = engine.world();
        let volumes: BTreeMap<&str, &Volume> =
            events.iter().filter_map(|e| if let Event::Volume(v) = e { Some((v.name.as_str(), &**v)) } else { None }).collect();
        let zones = |pod: &Pod| -> Vec<BTreeSet<String>> {
            let pv = |v: &PodVolume| volumes.get(v.claim.replace("bound", "pv").as_str()).copied();
            let of = |v: &Volume| v.node_terms.iter().flat_map(|t| t.get(keys::ZONE).unwrap().values().clone()).collect();
            pod.volumes.iter().filter_map(pv).map(of).collect()
        };
        let set = world.daemon_sets().next().unwrap().clone();
        let apart = |pods: &[Pod], ports: &[HostPort], seed: u64| {
            for (at, pod) in pods.iter().enumerate() {
                let others = pods[..at].iter().flat_map(|p| &p.host_ports).chain(ports);
                for other in others {
                    assert!(pod.host_ports.iter().all(|p| !p.collides(other)), "seed {seed}: {}", pod.key);
                }
            }
        };
        for node in &plan.nodes {
            bought += 1;
            let pods: Vec<Pod> = node.pods.iter().map(|key| world.pod(key).unwrap()).collect();
            let types = node.claim.requirements.get(keys::INSTANCE_TYPE).unwrap();
            let catalog = world.catalog("default").unwrap();
            for name in types.values() {
                let runs = set.template.affinity.node_selector.met_by(&catalog.get(name).unwrap().labels);
                apart(&pods, if runs { &set.template.host_ports } else { &[] }, seed);
            }
            for zones in pods.iter().flat_map(&zones) {
                let left = node.claim.requirements.get(keys::ZONE).expect("a volume ties the claim to zones");
                assert!(left.values().is_subset(&zones), "seed {seed}");
            }
        }
        for (name, keys) in &plan.placed {
            placed += keys.len();
            let new: Vec<Pod> = keys.iter().map(|key| world.pod(key).unwrap()).collect();
            let old: Vec<Pod> = world.pods_on(name).map(|key| world.pod(key).unwrap()).collect();
            let there: Vec<HostPort> = old.iter().flat_map(|p| p.host_ports.clone()).collect();
            apart(&new, &there, seed);
            let node = world.node(name).unwrap();
            for zones in new.iter().flat_map(&zones) {
                assert!(zones.contains(&node.labels[keys::ZONE]), "seed {seed}");
            }
            let limit = events
                .iter()
                .find_map(|e| if let Event::VolumeLimits(l) = e { (l.node == *name).then(|| l.drivers[DRIVER]) } else { None });
            let all: BTreeSet<&str> = new.iter().chain(&old).flat_map(|p| &p.volumes).map(|v| v.claim.as_str()).collect();
            let before: BTreeSet<&str> = old.iter().flat_map(|p| &p.volumes).map(|v| v.claim.as_str()).collect();
            let grew = all.len() > before.len();
            assert!(!grew || limit.is_none_or(|most| all.len() <= most as usize), "seed {seed}: {} volumes on {name}", all.len());
        }
    }
    assert!(bought > 200 && placed > 150, "{bought} nodes, {placed} pods on nodes there were");
}
