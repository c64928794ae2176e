//! The reference itself, against cases worked out by hand.

use std::sync::Arc;

use whittle_bench::markets::{self, Set};
use whittle_bench::reference::{Outcome, Reference};
use whittle_bench::{Input, bound, fixtures};
use whittle_model::resources::{CPU, MEMORY, NODES, PODS};
use whittle_model::{
    CapacityType, Catalog, DaemonSet, Effect, InstanceType, LabelSelector, Labels, Limits, Micros, NodePool, Offering, Pod,
    PodAffinityTerm, PodKey, Requirement, Requirements, Resources, Taint, Template, Timestamp, Toleration, keys,
};

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

/// `cores` cores, four times as many GiB, at `cents` an hour in zone a, one cent more in zone b;
/// spot for half of it in zone b.
fn sold(name: &str, cores: i64, cents: i64) -> InstanceType {
    let offering = |capacity_type, zone: &str, cents: i64| Offering {
        zone: zone.to_owned(),
        zone_id: String::new(),
        capacity_type,
        price: Micros(cents * 10_000),
        available: true,
        reservation: None,
    };
    let all = Resources::of(&[(CPU, cores * 1000), (MEMORY, cores << 32), (PODS, 8)]);
    InstanceType {
        name: name.to_owned(),
        labels: labels(&[(keys::INSTANCE_TYPE, name), (keys::ARCH, if name.ends_with('g') { "arm64" } else { "amd64" })]),
        requirements: Arc::default(),
        capacity: all.clone(),
        allocatable: all,
        offerings: vec![
            offering(CapacityType::OnDemand, "a", cents),
            offering(CapacityType::Spot, "b", cents / 2),
            offering(CapacityType::OnDemand, "b", cents + 1),
        ],
    }
}

fn pool(name: &str, weight: i32, requirements: &[Requirement]) -> NodePool {
    let template = Template { node_class: "nc".to_owned(), requirements: requirements.iter().cloned().collect(), ..Template::default() };
    NodePool { name: name.to_owned(), weight, template, ..NodePool::default() }
}

fn pod(name: &str, cpu: i64) -> Pod {
    Pod {
        key: PodKey::new("default", name),
        uid: name.to_owned(),
        created: Timestamp(0),
        requests: Resources::of(&[(CPU, cpu), (MEMORY, 1 << 20), (PODS, 1)]),
        ..Pod::default()
    }
}

fn input(pools: Vec<NodePool>, pods: Vec<Pod>) -> Input {
    let types = vec![sold("l", 4, 16), sold("lg", 4, 12), sold("m", 2, 8), sold("s", 1, 5)];
    let catalog = Catalog { node_class: "nc".to_owned(), region: "r".to_owned(), price_region: "r".to_owned(), types };
    Input { catalogs: vec![Arc::new(catalog)], pools, daemon_sets: Vec::new(), pods }
}

fn solve(input: &Input) -> Outcome {
    Reference::new(input).solve()
}

/// Each node as `pool type capacity-type zone: pods`.
fn told(outcome: &Outcome) -> Vec<String> {
    let node = |n: &whittle_bench::reference::Node| {
        let pods: Vec<&str> = n.pods.iter().map(|p| p.name.as_str()).collect();
        format!("{} {} {} {}: {}", n.pool, n.offering.instance_type, n.offering.capacity_type, n.offering.zone, pods.join(" "))
    };
    outcome.nodes.iter().map(node).collect()
}

fn amd64() -> Requirement {
    Requirement::any_of(keys::ARCH, &["amd64"])
}

fn on_demand() -> Requirement {
    Requirement::any_of(keys::CAPACITY_TYPE, &["on-demand"])
}

#[test]
fn biggest_first_onto_the_claim_with_fewest_pods() {
    let pods = vec![pod("a", 500), pod("b", 3000), pod("c", 2500), pod("d", 1000), pod("e", 400)];
    let outcome = solve(&input(vec![pool("p", 0, &[amd64(), on_demand()])], pods));
    // b opens; c opens (5.5 cores fit nowhere); d: both hold one pod, the older first; a: c's has
    // fewer; e: both hold two, the older is full.
    assert_eq!(told(&outcome), ["p l on-demand a: b d", "p l on-demand a: c a e"]);
    assert_eq!((outcome.cost(), outcome.nodes[0].types), (Micros(320_000), 1));
}

#[test]
fn ties_go_by_memory_creation_and_uid() {
    let (mut heavy, mut young, mut old) = (pod("heavy", 2000), pod("young", 2000), pod("old", 2000));
    heavy.requests.set(MEMORY, 2 << 20);
    (young.created, old.created, heavy.created) = (Timestamp(2), Timestamp(1), Timestamp(3));
    let pods = vec![pod("z", 2000), pod("b", 2000), young, old, heavy];
    let small = Requirement::any_of(keys::INSTANCE_TYPE, &["m"]);
    let outcome = solve(&input(vec![pool("p", 0, &[small])], pods));
    let order: Vec<&str> = outcome.nodes.iter().map(|n| n.pods[0].name.as_str()).collect();
    assert_eq!(order, ["heavy", "b", "z", "old", "young"]);
}

#[test]
fn the_cheapest_type_that_fits_is_bought() {
    let outcome = solve(&input(vec![pool("p", 0, &[])], vec![pod("a", 900)]));
    assert_eq!(told(&outcome), ["p s spot b: a"]);
    assert_eq!((outcome.nodes[0].price, outcome.nodes[0].types), (Micros(20_000), 4));
}

#[test]
fn pools_go_by_weight_then_name_descending() {
    let pods = || vec![pod("a", 900)];
    let outcome = solve(&input(vec![pool("x", 1, &[]), pool("z", 0, &[]), pool("y", 1, &[])], pods()));
    assert_eq!(outcome.nodes[0].pool, "y");
    let mut unready = pool("y", 9, &[]);
    unready.not_ready = Some("no subnet".to_owned());
    assert_eq!(solve(&input(vec![pool("x", 1, &[]), unready], pods())).nodes[0].pool, "x");
}

#[test]
fn selectors_narrow_the_claim_and_terms_are_tried_in_turn() {
    let mut zoned = pod("zoned", 1000);
    zoned.affinity.node_selector.add(Requirement::any_of(keys::ZONE, &["b"]));
    let mut arm = pod("arm", 900);
    arm.affinity.node_terms = vec![
        Requirements::from_iter([Requirement::any_of("team", &["none"])]),
        Requirements::from_iter([Requirement::any_of(keys::ARCH, &["arm64"])]),
    ];
    let mut lost = pod("lost", 800);
    lost.affinity.node_terms = vec![Requirements::from_iter([Requirement::any_of(keys::ZONE, &["c"])])];
    let outcome = solve(&input(vec![pool("p", 0, &[on_demand()])], vec![zoned, arm, lost, pod("free", 10)]));
    assert_eq!(told(&outcome), ["p lg on-demand b: zoned arm free"]);
    assert_eq!(outcome.unplaced, [PodKey::new("default", "lost")]);
}

#[test]
fn labels_of_the_template_can_be_asked_for() {
    let mut teamed = pool("p", 0, &[]);
    teamed.template.labels = labels(&[("team", "a")]);
    let mut wants = pod("wants", 100);
    wants.affinity.node_selector.add(Requirement::any_of("team", &["a"]));
    let mut other = pod("other", 100);
    other.affinity.node_selector.add(Requirement::any_of("team", &["b"]));
    let outcome = solve(&input(vec![teamed, pool("q", 1, &[])], vec![wants, other]));
    assert_eq!(told(&outcome), ["p s spot b: wants"]);
    assert_eq!(outcome.unplaced.len(), 1);
}

#[test]
fn taints_keep_pods_away_that_do_not_tolerate_them() {
    let mut tainted = pool("t", 5, &[]);
    tainted.template.taints = vec![Taint::new("team", "a", Effect::NoSchedule)];
    let mut tolerant = pod("tolerant", 500);
    tolerant.tolerations = vec![Toleration { key: Some("team".to_owned()), exists: true, value: String::new(), effect: None }];
    let outcome = solve(&input(vec![tainted.clone()], vec![tolerant.clone(), pod("plain", 400)]));
    assert_eq!((told(&outcome), outcome.unplaced.len()), (vec!["t s spot b: tolerant".to_owned()], 1));
    let outcome = solve(&input(vec![tainted, pool("p", 0, &[])], vec![tolerant, pod("plain", 400)]));
    assert_eq!(told(&outcome), ["t s spot b: tolerant", "p s spot b: plain"]);
}

#[test]
fn anti_affinity_holds_in_both_directions() {
    let web = labels(&[("app", "web")]);
    let mut shy = pod("shy", 200);
    shy.anti_affinity = vec![PodAffinityTerm {
        topology_key: whittle_model::keys::HOSTNAME.to_owned(),
        namespace_selector: None,
        namespaces: vec!["default".to_owned()],
        selector: LabelSelector::of_labels(&web),
    }];
    let mut first = pod("first", 300);
    first.labels = web.clone();
    let mut later = pod("later", 100);
    later.labels = web.clone();
    let mut elsewhere = pod("elsewhere", 50);
    (elsewhere.labels, elsewhere.key.namespace) = (web, "other".to_owned());
    let outcome = solve(&input(vec![pool("p", 0, &[])], vec![shy, first, later, elsewhere]));
    assert_eq!(told(&outcome), ["p s spot b: first later", "p s spot b: shy elsewhere"]);
}

#[test]
fn daemons_take_room_on_the_types_they_run_on() {
    let mut template = pod("agent", 200);
    template.affinity.node_terms = vec![Requirements::from_iter([Requirement::any_of(keys::INSTANCE_TYPE, &["s", "m"])])];
    let mut market = input(vec![pool("p", 0, &[on_demand(), amd64()])], vec![pod("a", 900)]);
    market.daemon_sets = vec![DaemonSet { key: PodKey::new("default", "agent"), template: template.clone(), containers: None }];
    assert_eq!(told(&solve(&market)), ["p m on-demand a: a"]);
    market.pods = vec![pod("a", 1900)];
    assert_eq!(told(&solve(&market)), ["p l on-demand a: a"]);
    market.pools[0].template.taints = vec![Taint::new("quiet", "", Effect::NoExecute)];
    market.pods[0].tolerations = vec![Toleration { key: None, exists: true, value: String::new(), effect: None }];
    assert_eq!(told(&solve(&market)), ["p m on-demand a: a"]);
}

#[test]
fn limits_drop_types_and_count_what_may_still_be_bought() {
    let mut limited = pool("p", 0, &[amd64()]);
    limited.limits = Limits { amounts: vec![(CPU.to_owned(), 5000)] };
    // The first claim may still become `l`, so four cores are booked; one is left: `s` only.
    let outcome = solve(&input(vec![limited.clone()], vec![pod("a", 3000), pod("b", 1500), pod("c", 900), pod("d", 950)]));
    assert_eq!(told(&outcome), ["p l spot b: a d", "p s spot b: c"]);
    assert_eq!(outcome.unplaced, [PodKey::new("default", "b")]);

    limited.limits = Limits { amounts: vec![(NODES.to_owned(), 1)] };
    let outcome = solve(&input(vec![limited.clone()], vec![pod("a", 3000), pod("b", 1500), pod("c", 900)]));
    assert_eq!((told(&outcome), outcome.unplaced.len()), (vec!["p l spot b: a c".to_owned()], 1));
    let outcome = solve(&input(vec![limited, pool("o", 0, &[])], vec![pod("a", 3000), pod("b", 1500)]));
    assert_eq!(told(&outcome), ["p l spot b: a", "o m spot b: b"]);
}

#[test]
fn offerings_that_are_not_for_sale_are_not_bought() {
    let mut market = input(vec![pool("p", 0, &[])], vec![pod("a", 900)]);
    let mut catalog = market.catalogs[0].as_ref().clone();
    for offering in &mut catalog.types.iter_mut().find(|t| t.name == "s").unwrap().offerings {
        offering.available = false;
    }
    market.catalogs = vec![Arc::new(catalog)];
    assert_eq!(told(&solve(&market)), ["p m spot b: a"]);
}

#[test]
fn anti_affinity_decides_the_number_of_nodes_of_karpenters_mix() {
    for pods in [50, 100, 500, 1000] {
        let market = markets::synthetic().with_pods(fixtures::anti(&fixtures::diverse(pods).unwrap()));
        let outcome = solve(&market);
        assert_eq!((outcome.nodes.len(), outcome.unplaced.len()), (pods / 5, 0));
        let placed: usize = outcome.nodes.iter().map(|n| n.pods.len()).sum();
        assert_eq!(placed, pods);
    }
}

#[test]
fn no_plan_costs_less_than_the_aggregate_bound() {
    for pods in [100, 1000] {
        let market = markets::synthetic().with_pods(fixtures::generic(&fixtures::diverse(pods).unwrap()));
        let reference = Reference::new(&market);
        let ratio = bound::as_float(reference.solve().cost().0) / bound::aggregate(&reference, markets::POOL, &market.pods);
        assert!((1.0..1.2).contains(&ratio), "{pods}: {ratio}");
    }
}

#[test]
fn the_real_sets_are_those_of_the_published_figures() {
    for (set, types) in [(Set::UpTo32, 365), (Set::All, 636)] {
        let market = markets::real(set).unwrap();
        assert_eq!(Reference::new(&market).market(markets::POOL).len(), types, "{}", set.name());
    }
}
