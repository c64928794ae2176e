//! The company pods keep: topology spread, pod affinity and anti-affinity, preferences. Each case is a
//! small cluster and what becomes of it; the auditor has to be silent on all of them.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::{GIB, NOW, ZONES, any_of, basics, bound, catalog, labels, node, objections, pod, pool, settings, taint, told};
use whittle_engine::{Engine, Plan};
use whittle_model::{
    Effect, Event, InstanceType, LabelSelector, ListPrice, Node, NodePool, Packing, Pod, PodAffinityTerm, Requirement, SelectorOperator,
    SelectorRequirement, Settings, Taint, TopologySpread, keys,
};

const A: &str = ZONES[0];
const B: &str = ZONES[1];
const C: &str = ZONES[2];

/// A cluster in the making.
#[derive(Default)]
struct Cluster {
    pools: Vec<NodePool>,
    nodes: Vec<Node>,
    pods: Vec<Pod>,
    settings: Option<Settings>,
    more: Vec<Event>,
}

/// What became of it.
struct Outcome {
    engine: Engine,
    plan: Plan,
    /// Zone of each pod that has a place, and the name of the place.
    places: BTreeMap<String, (String, String)>,
}

impl Cluster {
    fn of(pods: impl IntoIterator<Item = Pod>) -> Self {
        Self { pools: vec![pool("p")], pods: pods.into_iter().collect(), ..Self::default() }
    }

    fn plan(self) -> Outcome {
        let mut events = basics();
        events.extend(self.settings.map(Event::Settings));
        events.extend(self.more);
        events.extend(self.pools.into_iter().map(|p| Event::NodePool(Box::new(p))));
        events.extend(self.nodes.into_iter().map(|n| Event::Node(Box::new(n))));
        events.extend(self.pods.into_iter().map(|p| Event::Pod(Box::new(p))));
        let mut engine = told(&events);
        let plan = engine.plan(NOW, &mut ListPrice);
        let found: Vec<String> = objections(&engine, &plan).iter().map(ToString::to_string).collect();
        assert_eq!(found, Vec::<String>::new());
        let mut places = BTreeMap::new();
        for node in &plan.nodes {
            for pod in &node.pods {
                places.insert(pod.name.clone(), (node.choice.zone.clone(), node.claim.name.clone()));
            }
        }
        for (name, pods) in &plan.placed {
            let zone = engine.world().node(name).and_then(|n| n.labels.get(keys::ZONE)).cloned().unwrap_or_default();
            places.extend(pods.iter().map(|pod| (pod.name.clone(), (zone.clone(), name.clone()))));
        }
        engine.take_reports();
        Outcome { engine, plan, places }
    }
}

impl Outcome {
    fn zone(&self, pod: &str) -> &str {
        self.places.get(pod).map_or("", |(zone, _)| zone)
    }

    fn place(&self, pod: &str) -> &str {
        self.places.get(pod).map_or("", |(_, place)| place)
    }

    /// How many pods whose name starts so are in each zone.
    fn by_zone(&self, prefix: &str) -> Vec<usize> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for (_, (zone, _)) in self.places.iter().filter(|(name, _)| name.starts_with(prefix)) {
            *counts.entry(zone).or_default() += 1;
        }
        let mut counts: Vec<usize> = counts.into_values().collect();
        counts.sort_unstable();
        counts
    }

    /// Why the pods that have no place have none, all in one text.
    fn reasons(&self) -> String {
        self.plan.unplaced.iter().flat_map(|u| &u.reasons).map(|r| format!("{}: {}\n", r.place, r.why)).collect()
    }

    fn missing(&self) -> usize {
        self.plan.unplaced.iter().map(|u| u.pods.len()).sum()
    }
}

fn app(name: &str, app: &str) -> Pod {
    Pod { labels: labels(&[("app", app)]), ..pod(name, 1000, GIB) }
}

fn web(count: usize) -> Vec<Pod> {
    (0..count).map(|n| app(&format!("web-{n}"), "web")).collect()
}

fn selector(app: &str) -> LabelSelector {
    LabelSelector::of_labels(&labels(&[("app", app)]))
}

fn spread(key: &str, skew: u32, app: &str) -> TopologySpread {
    TopologySpread {
        topology_key: key.to_owned(),
        max_skew: skew,
        min_domains: None,
        required: true,
        selector: selector(app),
        honor_affinity: true,
        honor_taints: false,
    }
}

fn term(key: &str, app: &str) -> PodAffinityTerm {
    PodAffinityTerm {
        topology_key: key.to_owned(),
        namespaces: vec!["default".to_owned()],
        namespace_selector: None,
        selector: selector(app),
    }
}

fn spreading(pods: Vec<Pod>, constraints: &[TopologySpread]) -> Vec<Pod> {
    pods.into_iter().map(|p| Pod { spread: constraints.to_vec(), ..p }).collect()
}

fn near(pods: Vec<Pod>, terms: &[PodAffinityTerm]) -> Vec<Pod> {
    pods.into_iter().map(|p| Pod { pod_affinity: terms.to_vec(), ..p }).collect()
}

fn apart(pods: Vec<Pod>, terms: &[PodAffinityTerm]) -> Vec<Pod> {
    pods.into_iter().map(|p| Pod { anti_affinity: terms.to_vec(), ..p }).collect()
}

/// A small node that is full, so that only what runs there matters.
fn full(name: &str, zone: &str) -> Node {
    let mut node = node(name, "c.2", zone);
    node.allocatable.set("cpu", 1);
    node
}

fn running(name: &str, of: &str, node: &str) -> Pod {
    bound(app(name, of), node)
}

/// Two pods that seek each other have room on a node in use. What is bought for a third of theirs is in another zone: it must
/// not draw them away before kube-scheduler has bound them.
#[test]
fn room_on_a_node_in_use_is_kept_until_pods_are_bound() {
    let mut pods = near(web(2), &[term(keys::ZONE, "web")]);
    pods.push(Pod { requests: common::resources(100, 6 * GIB), ..app("third", "web") });
    let mut of_a = pool("p");
    of_a.template.requirements.add(any_of(keys::ZONE, &[A]));
    // Two gibibytes short of room for the third.
    let mut here = node("here", "c.4", C);
    here.allocatable.set("memory", 4 * GIB);
    let Outcome { mut engine, places, .. } = Cluster { pools: vec![of_a], nodes: vec![here], ..Cluster::of(pods) }.plan();
    assert_eq!((places["web-0"].1.as_str(), places["web-1"].1.as_str(), places["third"].0.as_str()), ("here", "here", A));
    let bought = common::leave::buy(&mut engine);
    assert_eq!(bought.len(), 1);
    // Its successor knows it too.
    for mut engine in [engine.clone(), Engine::restore(engine.checkpoint())] {
        let again = engine.plan(NOW, &mut ListPrice);
        assert_eq!((again.nodes.len(), again.placed["here"].len(), objections(&engine, &again).len()), (0, 2, 0));
        // Once the third one runs elsewhere kube-scheduler lets nobody onto that node any more.
        let mut third = bound(app("third", "web"), "there");
        third.requests = common::resources(100, 6 * GIB);
        engine.handle(&Event::Node(Box::new(node("there", "m.2", A))), NOW);
        engine.handle(&Event::Pod(Box::new(third)), NOW);
        assert!(!engine.plan(NOW, &mut ListPrice).placed.contains_key("here"));
    }
}

#[test]
fn pods_spread_over_zones_and_nodes() {
    for (key, skew, pods, expected) in
        [(keys::ZONE, 1, 6, vec![2, 2, 2]), (keys::ZONE, 1, 7, vec![2, 2, 3]), (keys::ZONE, 5, 5, vec![5]), (keys::ZONE, 1, 1, vec![1])]
    {
        // Two small nodes in two zones may be cheaper where the skew allows that.
        let settings = Some(Settings { packing: Packing::Greedy, ..settings() });
        let outcome = Cluster { settings, ..Cluster::of(spreading(web(pods), &[spread(key, skew, "web")])) }.plan();
        assert_eq!(outcome.by_zone("web"), expected, "{pods} with skew {skew}");
        assert!(outcome.plan.nodes.iter().all(|n| n.claim.requirements.get(keys::ZONE).is_some_and(|r| r.single().is_some())));
    }
    let settings = Some(Settings { packing: Packing::Greedy, ..settings() });
    let outcome = Cluster { settings, ..Cluster::of(spreading(web(5), &[spread(keys::HOSTNAME, 2, "web")])) }.plan();
    let mut counts: Vec<usize> = outcome.plan.nodes.iter().map(|n| n.pods.len()).collect();
    counts.sort_unstable();
    assert_eq!((counts.iter().sum::<usize>(), counts.iter().max()), (5, Some(&2)));
    let outcome = Cluster::of(spreading(web(4), &[spread(keys::CAPACITY_TYPE, 1, "web")])).plan();
    let spot = outcome.plan.nodes.iter().filter(|n| n.choice.capacity_type.name() == "spot").map(|n| n.pods.len()).sum::<usize>();
    assert_eq!(spot, 2);
    let mut pool = pool("p");
    pool.template.requirements.add(any_of("rack", &["r1", "r2", "r3"]));
    let outcome = Cluster { pools: vec![pool], ..Cluster::of(spreading(web(6), &[spread("rack", 1, "web")])) }.plan();
    let mut racks: BTreeMap<&String, usize> = BTreeMap::new();
    for node in &outcome.plan.nodes {
        *racks.entry(&node.claim.labels["rack"]).or_default() += node.pods.len();
    }
    assert_eq!(racks.into_values().collect::<Vec<_>>(), vec![2, 2, 2]);
}

#[test]
fn an_empty_label_is_no_zone() {
    // Running: two in a, one in b, one in c; an old node has the label without a value.
    let mut old = full("old", A);
    old.labels.insert(keys::ZONE.to_owned(), String::new());
    let nodes = vec![full("na", A), full("nb", B), full("nc", C), old];
    let there = [("r0", "na"), ("r1", "na"), ("r2", "nb"), ("r3", "nc")].map(|(name, node)| running(name, "web", node));
    let pods = spreading(web(1), &[spread(keys::ZONE, 1, "web")]).into_iter().chain(there);
    let outcome = Cluster { nodes, ..Cluster::of(pods) }.plan();
    assert!([B, C].contains(&outcome.zone("web-0")), "{:?}", outcome.places);
}

#[test]
fn a_zone_without_an_offering_is_no_domain() {
    let mut typo = pool("typo");
    typo.template.requirements.add(any_of(keys::ZONE, &["us-east-1z"]));
    let soft = TopologySpread { required: false, ..spread(keys::ZONE, 1, "web") };
    for constraint in [soft, spread(keys::ZONE, 1, "web")] {
        let outcome = Cluster { pools: vec![typo.clone(), pool("p")], ..Cluster::of(spreading(web(6), &[constraint])) }.plan();
        assert_eq!(outcome.by_zone("web"), vec![2, 2, 2]);
    }
}

#[test]
fn the_least_count_is_zero_while_domains_are_few() {
    let mut two = pool("p");
    two.template.requirements.add(any_of(keys::ZONE, &[A, B]));
    let zone = |least| TopologySpread { min_domains: Some(least), ..spread(keys::ZONE, 1, "r") };
    let host = spread(keys::HOSTNAME, 1, "r");
    let cluster = |least: u32| {
        let there = [running("r-0", "r", "na"), running("r-1", "r", "nb")];
        let waiting = spreading(vec![app("r-2", "r")], &[zone(least), host.clone()]);
        Cluster { pools: vec![two.clone()], nodes: vec![full("na", A), full("nb", B)], ..Cluster::of(waiting.into_iter().chain(there)) }
    };
    let outcome = cluster(2).plan();
    assert_eq!((outcome.plan.nodes.len(), outcome.missing()), (1, 0));
    let outcome = cluster(3).plan();
    assert_eq!((outcome.plan.nodes.len(), outcome.missing()), (0, 1));
    let text = outcome.reasons();
    assert!(
        text.contains("topologySpreadConstraints on topology.kubernetes.io/zone with maxSkew 1") && text.contains("us-east-1a 1"),
        "{text}"
    );
}

#[test]
fn policies_say_which_nodes_count() {
    // Pods that run: three in c, which is out of the waiting pods' reach.
    let cluster = |constraint: TopologySpread, tainted: bool, selector: bool| {
        let mut nodes = vec![full("na", A), full("nb", B), full("nc", C)];
        if tainted {
            nodes[2].taints = vec![taint("dedicated")];
        }
        let there = [running("r0", "web", "na"), running("r1", "web", "nb")];
        let mut waiting = spreading(web(2), &[constraint]);
        if selector {
            waiting.iter_mut().for_each(|p| p.affinity.node_selector.add(any_of(keys::ZONE, &[A, B])));
        }
        let mut two = pool("p");
        two.template.requirements.add(any_of(keys::ZONE, &[A, B]));
        Cluster { pools: vec![two], nodes, ..Cluster::of(waiting.into_iter().chain(there)) }.plan().missing()
    };
    let plain = spread(keys::ZONE, 1, "web");
    let any_node = TopologySpread { honor_affinity: false, ..plain.clone() };
    let taints = TopologySpread { honor_taints: true, ..plain.clone() };
    // Zone c has a node without such pods: where it counts, nothing more fits elsewhere.
    assert_eq!(cluster(plain.clone(), false, false), 2);
    assert_eq!(cluster(plain.clone(), false, true), 0);
    assert_eq!(cluster(any_node, false, true), 2);
    assert_eq!(cluster(plain, true, false), 2);
    assert_eq!(cluster(taints, true, false), 0);
}

#[test]
fn selectors_that_select_nothing_ask_for_nothing() {
    let constraint = TopologySpread { selector: LabelSelector::nothing(), ..spread(keys::ZONE, 1, "web") };
    assert_eq!(Cluster::of(spreading(web(3), &[constraint])).plan().missing(), 0);
    // Written twice, and apart: two groups with a count of their own.
    let twice = |app: &str| {
        let one = SelectorRequirement { key: "app".to_owned(), operator: SelectorOperator::In, values: vec![app.to_owned()] };
        TopologySpread { selector: LabelSelector { requirements: vec![one.clone(), one] }, ..spread(keys::ZONE, 1, app) }
    };
    let mut pods = spreading(web(3), &[twice("web")]);
    pods.extend(spreading((0..3).map(|n| app(&format!("db-{n}"), "db")).collect(), &[twice("db")]));
    let outcome = Cluster::of(pods).plan();
    assert_eq!((outcome.by_zone("web"), outcome.by_zone("db")), (vec![1, 1, 1], vec![1, 1, 1]));
}

#[test]
fn pods_that_seek_each_other_share_a_domain() {
    let outcome = Cluster::of(near(web(3), &[term(keys::ZONE, "web")])).plan();
    assert_eq!((outcome.by_zone("web"), outcome.missing()), (vec![3], 0));
    let outcome = Cluster::of(near(web(3), &[term(keys::HOSTNAME, "web")])).plan();
    assert_eq!(outcome.plan.nodes.len(), 1);
    // Of another app: only where that runs, or is planned to run.
    let waiting = || near(web(2), &[term(keys::ZONE, "db")]);
    let outcome = Cluster::of(waiting()).plan();
    assert_eq!(outcome.missing(), 2);
    assert!(
        outcome.reasons().contains("podAffinity on topology.kubernetes.io/zone: no pod that it selects has a place"),
        "{}",
        outcome.reasons()
    );
    let there = running("db-0", "db", "nb");
    let outcome = Cluster { nodes: vec![full("nb", B)], ..Cluster::of(waiting().into_iter().chain([there])) }.plan();
    assert_eq!((outcome.zone("web-0"), outcome.zone("web-1")), (B, B));
    let mut db = Pod { requests: common::resources(100, GIB), ..app("db-0", "db") };
    let outcome = Cluster::of(waiting().into_iter().chain([db.clone()])).plan();
    assert_eq!((outcome.by_zone(""), outcome.missing()), (vec![3], 0), "the smaller pod is sought by the larger ones");
    db.affinity.node_selector.add(any_of(keys::ZONE, &[C]));
    let outcome = Cluster::of(waiting().into_iter().chain([db])).plan();
    assert_eq!((outcome.zone("web-0"), outcome.zone("web-1")), (C, C));
}

#[test]
fn the_tighter_pod_decides_where_both_go() {
    let group = |name: &str, cpu: i64| Pod {
        pod_affinity: vec![term(keys::ZONE, "pair")],
        ..Pod { requests: common::resources(cpu, GIB), ..app(name, "pair") }
    };
    let mut data = group("data-0", 500);
    data.affinity.node_selector.add(any_of(keys::ZONE, &[C]));
    let outcome = Cluster { nodes: vec![node("nb", "c.4", B)], ..Cluster::of([group("side-0", 1000), data]) }.plan();
    assert_eq!((outcome.zone("data-0"), outcome.zone("side-0")), (C, C), "{:?}", outcome.places);
}

#[test]
fn pods_that_avoid_each_other_do() {
    let outcome = Cluster::of(apart(web(4), &[term(keys::ZONE, "web")])).plan();
    assert_eq!((outcome.by_zone("web"), outcome.missing()), (vec![1, 1, 1], 1));
    assert!(outcome.reasons().contains("podAntiAffinity on topology.kubernetes.io/zone"), "{}", outcome.reasons());
    // Those that run count, and so do their own terms.
    let there = apart(vec![running("db-0", "db", "na")], &[term(keys::ZONE, "web")]);
    let outcome = Cluster { nodes: vec![full("na", A)], ..Cluster::of(web(2).into_iter().chain(there)) }.plan();
    assert!(outcome.missing() == 0 && outcome.places.values().all(|(zone, _)| zone != A), "{:?}", outcome.places);
    let there = [running("db-0", "db", "na"), running("db-1", "db", "nb")];
    let outcome = Cluster {
        nodes: vec![full("na", A), full("nb", B)],
        ..Cluster::of(apart(web(2), &[term(keys::ZONE, "db")]).into_iter().chain(there))
    }
    .plan();
    assert_eq!((outcome.zone("web-0"), outcome.zone("web-1")), (C, C));
    let outcome = Cluster::of(apart(web(3), &[term(keys::HOSTNAME, "web")])).plan();
    assert_eq!(outcome.plan.nodes.len(), 3);
}

#[test]
fn terms_reach_into_the_namespaces_they_name() {
    let elsewhere = |namespace: &str| {
        let mut pod = running("db-0", "db", "na");
        pod.key.namespace = namespace.to_owned();
        pod
    };
    let red = Some(LabelSelector::of_labels(&labels(&[("team", "red")])));
    for (namespaces, namespace_selector, of, avoided) in [
        (vec!["default"], None, "other", false),
        (vec!["other"], None, "other", true),
        (vec![], red.clone(), "other", true),
        (vec![], red, "third", false),
        (vec![], Some(LabelSelector::default()), "third", true),
    ] {
        let term = PodAffinityTerm {
            namespaces: namespaces.iter().map(|n| (*n).to_owned()).collect(),
            namespace_selector: namespace_selector.clone(),
            ..term(keys::ZONE, "db")
        };
        let mut two = pool("p");
        two.template.requirements.add(any_of(keys::ZONE, &[A]));
        let more =
            vec![Event::Namespace("other".to_owned(), labels(&[("team", "red")])), Event::Namespace("third".to_owned(), labels(&[]))];
        let pods = apart(web(1), &[term]).into_iter().chain([elsewhere(of)]);
        let outcome = Cluster { pools: vec![two], nodes: vec![full("na", A)], more, ..Cluster::of(pods) }.plan();
        assert_eq!(outcome.missing() == 1, avoided, "{namespaces:?} {namespace_selector:?} {of}");
    }
}

#[test]
fn preferences_hold_until_nothing_meets_them() {
    let prefer = |mut pod: Pod, key: &str, values: &[&str], weight: i32| {
        pod.preferences.nodes.push((weight, std::iter::once(any_of(key, values)).collect()));
        pod
    };
    let zone = |pod: Pod| Cluster::of([pod]).plan().zone("web-0").to_owned();
    assert_eq!(zone(prefer(app("web-0", "web"), keys::ZONE, &[C], 1)), C);
    // Of two the heavier one is tried first; what nobody has is given up.
    let both = prefer(prefer(app("web-0", "web"), keys::ZONE, &[C], 1), keys::ZONE, &[B], 50);
    assert_eq!(zone(both), B);
    let gone = prefer(prefer(app("web-0", "web"), keys::HOSTNAME, &["gone-node"], 50), keys::ZONE, &[C], 1);
    assert_eq!(zone(gone), C);
    // A node that exists is no reason to give a preference up.
    let outcome = Cluster { nodes: vec![node("nb", "m.8", B)], ..Cluster::of([prefer(app("web-0", "web"), keys::ZONE, &[C], 1)]) }.plan();
    assert_eq!(outcome.zone("web-0"), C);
    let ignoring = Settings { respect_preferences: false, ..common::settings() };
    let pods = [prefer(app("web-0", "web"), keys::ZONE, &[C], 1)];
    let outcome = Cluster { nodes: vec![node("nb", "m.8", B)], settings: Some(ignoring), ..Cluster::of(pods) }.plan();
    assert_eq!(outcome.place("web-0"), "nb");
}

#[test]
fn preferred_company_is_sought_and_given_up_by_weight() {
    let mut pods = web(4);
    for pod in &mut pods {
        pod.preferences.away = vec![(10, term(keys::ZONE, "web")), (1, term(keys::HOSTNAME, "web"))];
    }
    let outcome = Cluster::of(pods).plan();
    assert_eq!((outcome.missing(), outcome.by_zone("web"), outcome.plan.nodes.len()), (0, vec![1, 1, 2], 4));
    let mut pods = web(2);
    pods.iter_mut().for_each(|pod| pod.preferences.near = vec![(1, term(keys::ZONE, "db"))]);
    assert_eq!(Cluster::of(pods.clone()).plan().missing(), 0);
    let outcome = Cluster { nodes: vec![full("nb", B)], ..Cluster::of(pods.into_iter().chain([running("db-0", "db", "nb")])) }.plan();
    assert_eq!((outcome.zone("web-0"), outcome.zone("web-1")), (B, B));
    let soft = TopologySpread { required: false, ..spread(keys::ZONE, 1, "web") };
    let mut pods = spreading(web(4), &[soft]);
    pods.iter_mut().for_each(|p| p.affinity.node_selector.add(any_of(keys::ZONE, &[A])));
    assert_eq!(Cluster::of(pods).plan().missing(), 0);
}

#[test]
fn alternatives_of_required_affinity_are_tried_in_order_and_all() {
    let terms = |zones: &[&str]| {
        let mut pod = app("web-0", "web");
        pod.affinity.node_terms = zones.iter().map(|zone| std::iter::once(any_of(keys::ZONE, &[zone])).collect()).collect();
        pod
    };
    assert_ne!(Cluster::of([terms(&[C, A])]).plan().zone("web-0"), B);
    assert_eq!(Cluster::of([terms(&["nowhere", B])]).plan().zone("web-0"), B);
    // The last one cannot be had, and a preference has to go: the first still serves.
    let mut pod = terms(&[C, "nowhere"]);
    pod.preferences.near = vec![(1, term(keys::ZONE, "db"))];
    assert_eq!(Cluster::of([pod]).plan().zone("web-0"), C);
}

#[test]
fn taints_that_ask_to_stay_away_are_heeded_while_there_is_a_choice() {
    let mut soft = pool("soft");
    soft.weight = 50;
    soft.template.taints = vec![Taint::new("slow", "yes", Effect::PreferNoSchedule)];
    let outcome = Cluster { pools: vec![soft.clone(), pool("p")], ..Cluster::of(web(1)) }.plan();
    assert_eq!(outcome.plan.nodes[0].claim.node_pool, "p");
    let outcome = Cluster { pools: vec![soft.clone()], ..Cluster::of(web(1)) }.plan();
    assert_eq!(outcome.plan.nodes[0].claim.node_pool, "soft");
    let mut tolerant = web(1);
    tolerant[0].tolerations = vec![common::toleration("slow")];
    let outcome = Cluster { pools: vec![soft, pool("p")], ..Cluster::of(tolerant) }.plan();
    assert_eq!(outcome.plan.nodes[0].claim.node_pool, "soft");
}

#[test]
fn a_pool_that_sells_nothing_stops_nobody() {
    let mut bad = pool("bad");
    bad.template.requirements.add(any_of("karpenter.k8s.aws/instance-family", &["doesnotexist"]));
    let pods = spreading(web(1), &[spread(keys::ZONE, 1, "web")]);
    let outcome = Cluster { pools: vec![bad], nodes: vec![node("roomy", "m.4", A)], ..Cluster::of(pods) }.plan();
    assert_eq!(outcome.place("web-0"), "roomy");
}

#[test]
fn labels_that_are_absent_are_read_as_kubernetes_reads_them() {
    let size = "karpenter.k8s.aws/instance-category";
    let mut bare = node("bare", "m.8", A);
    bare.labels.remove(size);
    let with = |name: &str, requirement| {
        let mut pod = app(name, "web");
        pod.affinity.node_selector.add(requirement);
        pod
    };
    let pods = [
        with("not-in", common::operator("team", whittle_model::Operator::NotIn, &["blue"])),
        with("absent", common::operator("team", whittle_model::Operator::DoesNotExist, &[])),
        with("in", any_of(size, &["m"])),
        with("exists", common::operator("team", whittle_model::Operator::Exists, &[])),
    ];
    let outcome = Cluster { nodes: vec![bare], ..Cluster::of(pods) }.plan();
    assert_eq!((outcome.place("not-in"), outcome.place("absent")), ("bare", "bare"));
    assert!(outcome.place("in") != "bare" && !outcome.place("in").is_empty() && outcome.place("exists").is_empty());
    assert!(outcome.reasons().contains("team"), "{}", outcome.reasons());
}

#[test]
fn pods_without_constraints_get_those_of_the_cluster() {
    let default = TopologySpread { selector: LabelSelector::default(), required: false, ..spread(keys::ZONE, 1, "web") };
    let settings = Settings { default_spread: vec![default], ..common::settings() };
    let outcome = Cluster { settings: Some(settings.clone()), ..Cluster::of(web(6)) }.plan();
    assert_eq!(outcome.by_zone("web"), vec![2, 2, 2]);
    // Nobody owns these: there is nothing to deduce a selector from.
    let alone = web(6).into_iter().map(|p| Pod { owner: None, ..p });
    let outcome = Cluster { settings: Some(settings), ..Cluster::of(alone) }.plan();
    assert!(outcome.plan.nodes.iter().all(|n| n.claim.requirements.get(keys::ZONE).is_none()));
}

#[test]
fn a_plan_over_an_unchanged_world_is_empty() {
    let mut pods = spreading(web(7), &[spread(keys::ZONE, 1, "web"), spread(keys::HOSTNAME, 2, "web")]);
    pods.extend(near((0..3).map(|n| app(&format!("db-{n}"), "db")).collect(), &[term(keys::ZONE, "db")]));
    pods.extend(apart((0..3).map(|n| app(&format!("mq-{n}"), "mq")).collect(), &[term(keys::ZONE, "mq"), term(keys::HOSTNAME, "web")]));
    let mut outcome = Cluster::of(pods).plan();
    assert_eq!(outcome.missing(), 0);
    let actions = outcome.engine.poll(NOW.plus(common::seconds(10)), &mut ListPrice);
    for action in actions {
        if let whittle_model::Action::CreateClaim(claim) = action {
            outcome.engine.handle(&Event::Claim(claim), NOW);
        }
    }
    assert!(outcome.engine.take_reports().iter().all(|r| r.objections.is_empty()));
    let again = outcome.engine.plan(NOW, &mut ListPrice);
    assert!(again.nodes.is_empty() && again.unplaced.is_empty(), "{:?}", again.nodes);
}

#[test]
fn greedy_alone_keeps_the_rules_too() {
    let settings = Settings { packing: Packing::Greedy, ..common::settings() };
    let outcome = Cluster { settings: Some(settings), ..Cluster::of(spreading(web(6), &[spread(keys::ZONE, 1, "web")])) }.plan();
    assert_eq!(outcome.by_zone("web"), vec![2, 2, 2]);
}

/// Twenty-four that spread and five that avoid each other.
fn mixed() -> Vec<Pod> {
    let of = |count: usize, name: &str, cpu, memory| -> Vec<Pod> {
        let member = |n| Pod { labels: labels(&[("app", name)]), ..pod(&format!("{name}-{n:02}"), cpu, memory) };
        (0..count).map(member).collect()
    };
    let web = spreading(of(24, "web", 700, 3 * GIB), &[spread(keys::ZONE, 1, "web")]);
    web.into_iter().chain(apart(of(5, "lone", 300, GIB), &[term(keys::HOSTNAME, "lone")])).collect()
}

#[test]
fn pods_that_look_at_company_are_packed_for_cost_though_others_fit_nowhere() {
    let all = Cluster::of(mixed()).plan();
    // One that is too large for any type, and one that seeks company which nobody gives it.
    let huge = pod("huge", 90_000, GIB);
    let lonely = near(vec![app("lonely", "lonely")], &[term(keys::ZONE, "nobody")]);
    let some = Cluster::of(mixed().into_iter().chain(lonely).chain([huge])).plan();
    assert_eq!((all.missing(), some.missing()), (0, 2));
    let (all, some) = (all.plan.choice.unwrap(), some.plan.choice.unwrap());
    assert_eq!((some.pods, some.cost, some.greedy), (all.pods, all.cost, all.greedy), "what has no place changes nothing for the others");
    assert!(some.cost < some.greedy);
}

#[test]
fn a_label_that_a_claim_gives_itself_is_its_domain() {
    let mut open = pool("p");
    open.template.requirements.add(any_of("team", &["a", "b"]));
    // The first to come would do anywhere and gets the first team; who avoids it has the other.
    let first = Pod { labels: labels(&[("app", "web")]), ..pod("first", 3000, GIB) };
    let second = apart(vec![app("second", "db")], &[term("team", "web")]);
    let outcome = Cluster { pools: vec![open], ..Cluster::of([first].into_iter().chain(second)) }.plan();
    let teams: Vec<&String> = outcome.plan.nodes.iter().map(|node| &node.claim.labels["team"]).collect();
    assert_eq!((outcome.missing(), teams.len()), (0, 2), "{}", outcome.reasons());
    assert_ne!(teams[0], teams[1]);
}

#[test]
fn values_that_pods_settle_are_domains_too() {
    // The pool only has the label; whose value is a, b or c the first pods say. Those that avoid them go elsewhere.
    let mut open = pool("p");
    open.template.requirements.add(Requirement::exists("team"));
    let mut web: Vec<Pod> = (0..3).map(|n| app(&format!("web-{n}"), "web")).collect();
    web.iter_mut().for_each(|p| p.affinity.node_selector.add(any_of("team", &["a", "b"])));
    let lone = apart(vec![pod("lone", 100, GIB)], &[term("team", "web")]);
    let outcome = Cluster { pools: vec![open], ..Cluster::of(web.into_iter().chain(lone)) }.plan();
    assert_eq!(outcome.missing(), 0, "{}", outcome.reasons());
    let team = |pod: &str| outcome.plan.nodes.iter().find(|n| n.claim.name == outcome.place(pod)).map(|n| n.claim.labels["team"].clone());
    assert_ne!(team("lone"), team("web-0"));
}

#[test]
fn a_zone_counts_once_a_planned_node_is_in_it() {
    // Two web pods run in a. Pods of another pool get a node in c, which counts for those whose policy is to ignore affinity.
    let mut elsewhere = pool("elsewhere");
    elsewhere.template.requirements.add(any_of(keys::ZONE, &[C]));
    elsewhere.template.taints = vec![taint("dedicated")];
    let mut here = pool("here");
    here.template.requirements.add(any_of(keys::ZONE, &[A]));
    let constraint = TopologySpread { honor_affinity: false, ..spread(keys::ZONE, 2, "web") };
    let tolerant = Pod { tolerations: vec![common::toleration("dedicated")], ..pod("other", 3500, GIB) };
    let there = [running("r0", "web", "na"), running("r1", "web", "na")];
    let plan = |others: Vec<Pod>| {
        let pods = spreading(web(2), std::slice::from_ref(&constraint)).into_iter().chain(there.clone()).chain(others);
        let mut tolerant_pool = elsewhere.clone();
        tolerant_pool.weight = 50;
        Cluster { pools: vec![tolerant_pool, here.clone()], nodes: vec![full("na", A)], ..Cluster::of(pods) }.plan()
    };
    assert_eq!(plan(Vec::new()).missing(), 0, "a is the only zone there is");
    let outcome = plan(vec![tolerant]);
    assert_eq!((outcome.zone("other"), outcome.missing()), (C, 2), "{}", outcome.reasons());
}

#[test]
fn pods_that_look_at_company_are_packed_for_cost_and_ec2_keeps_its_choice() {
    let outcome = Cluster::of(mixed()).plan();
    let choice = outcome.plan.choice.as_ref().unwrap();
    assert!(choice.cost.0 * 100 <= choice.greedy.0 * 95, "{} is hardly less than the greedy's {}", choice.cost, choice.greedy);
    assert_eq!(outcome.by_zone("web"), vec![8, 8, 8]);
    for node in &outcome.plan.nodes {
        let holds = |of: &&InstanceType| node.claim.requests.iter().all(|(name, amount)| of.allocatable.get(name) >= amount);
        let able: BTreeSet<String> = catalog("default").types.iter().filter(holds).map(|of| of.name.clone()).collect();
        assert_eq!(node.claim.requirements.get(keys::INSTANCE_TYPE).unwrap().values(), &able, "{}", node.claim.name);
    }
}
