//! The same rules read plainly, with no caches, no integers for names and the library's floats; and
//! random clusters on which the two must agree.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use whittle_engine::scheduler::Scheduler;
use whittle_model::{Effect, Node, Owner, Pod, PodKey, Requirement, Requirements, Resources, Taint, keys};

use crate::make::{GIB, away_from, cluster, node, replica, tolerates};

/// The cluster as maps of objects.
#[derive(Default)]
struct World {
    nodes: BTreeMap<String, Node>,
    bound: BTreeMap<PodKey, (String, Pod)>,
    nominated: BTreeMap<PodKey, (String, Pod)>,
}

const SCORED: [(&str, i64); 2] = [("cpu", 100), ("memory", 200 << 20)];

fn conflict(a: &Pod, b: &Pod) -> bool {
    a.anti_affinity.iter().any(|term| term.namespaces.contains(&b.key.namespace) && term.selector.matches(&b.labels))
}

fn admitted(pod: &Pod, node: &Node) -> bool {
    let met = |requirements: &Requirements| requirements.met_by(&node.labels);
    met(&pod.affinity.node_selector) && (pod.affinity.node_terms.is_empty() || pod.affinity.node_terms.iter().any(met))
}

fn soft_taints(pod: &Pod, node: &Node) -> i64 {
    let soft = node.taints.iter().filter(|taint| taint.effect == Effect::PreferNoSchedule && !taint.tolerated_by(&pod.tolerations));
    soft.count() as i64
}

fn zone(node: &Node) -> &str {
    node.labels.get(keys::ZONE).map_or("", String::as_str)
}

fn or_default(amount: i64, default: i64) -> i64 {
    if amount == 0 { default } else { amount }
}

impl World {
    fn on<'a>(&'a self, node: &'a Node) -> impl Iterator<Item = &'a Pod> {
        self.bound.values().filter(|(at, _)| *at == node.name).map(|(_, pod)| pod)
    }

    fn fits(&self, pod: &Pod, node: &Node) -> bool {
        let before = |(at, other): &&(String, Pod)| *at == node.name && other.key != pod.key && other.priority >= pod.priority;
        let held = self.nominated.values().filter(before).map(|(_, other)| other);
        let others: Vec<&Pod> = self.on(node).chain(held).collect();
        let mut room = node.allocatable.clone();
        others.iter().for_each(|other| room.subtract(&other.requests));
        let mut repelling = node.taints.iter().filter(|taint| taint.effect != Effect::PreferNoSchedule);
        node.ready
            && !node.cordoned
            && repelling.all(|taint| taint.tolerated_by(&pod.tolerations))
            && admitted(pod, node)
            && pod.requests.fit_in(&room)
            && others.iter().all(|other| !conflict(pod, other) && !conflict(other, pod))
    }

    fn least_allocated(&self, pod: &Pod, node: &Node) -> i64 {
        let share = |(name, default): (&str, i64)| {
            let all = self.on(node).chain([pod]).map(|pod| or_default(pod.requests.get(name), default));
            let (wanted, room) = (all.sum::<i64>(), node.allocatable.get(name));
            if wanted > room { 0 } else { (room - wanted) * 100 / room }
        };
        SCORED.into_iter().map(share).sum::<i64>() / 2
    }

    fn balanced(&self, pod: &Pod, node: &Node) -> i64 {
        let asked = SCORED.map(|(name, _)| pod.requests.get(name));
        if asked == [0, 0] {
            return 0;
        }
        let used = SCORED.map(|(name, _)| self.on(node).map(|pod| pod.requests.get(name)).sum::<i64>());
        let even = |used: [i64; 2]| {
            let share = |at: usize| (used[at] as f64 / node.allocatable.get(SCORED[at].0) as f64).min(1.0);
            ((1.0 - (share(0) - share(1)).abs() / 2.0) * 100.0) as i64
        };
        50 + (50 + even([used[0] + asked[0], used[1] + asked[1]]) - even(used)) / 2
    }

    fn kin(&self, pod: &Pod, node: &Node) -> usize {
        self.on(node).filter(|other| other.owner == pod.owner && other.key.namespace == pod.key.namespace).count()
    }

    #[expect(clippy::disallowed_methods, reason = "the library's logarithm is what the model's own is held to")]
    fn raw_spread(&self, pod: &Pod, node: &Node, feasible: &[&Node]) -> i64 {
        let zones: BTreeSet<&str> = feasible.iter().map(|node| zone(node)).collect();
        let host = self.kin(pod, node) as f64 * ((feasible.len() + 2) as f64).ln() + 2.0;
        if zone(node).is_empty() {
            return host.round() as i64;
        }
        let neighbours = self.nodes.values().filter(|other| zone(other) == zone(node) && admitted(pod, other));
        let in_zone: usize = neighbours.map(|other| self.kin(pod, other)).sum();
        (host + (in_zone as f64 * ((zones.len() + 2) as f64).ln() + 4.0)).round() as i64
    }

    /// The total score of each feasible node.
    fn scores(&self, pod: &Pod) -> BTreeMap<String, i64> {
        let feasible: Vec<&Node> = self.nodes.values().filter(|node| self.fits(pod, node)).collect();
        let most_soft = feasible.iter().map(|node| soft_taints(pod, node)).max().unwrap_or(0);
        let spreads = pod.owner.as_ref().is_some_and(|owner| owner.kind == "ReplicaSet");
        let raws: Vec<i64> = feasible.iter().map(|node| self.raw_spread(pod, node, &feasible)).collect();
        let (least, most) = (raws.iter().min().copied().unwrap_or(0), raws.iter().max().copied().unwrap_or(0));
        let score = |node: &Node, raw: i64| {
            let taints = if most_soft == 0 { 100 } else { 100 - 100 * soft_taints(pod, node) / most_soft };
            let spread = if spreads { 100 * (most + least - raw) / most } else { 0 };
            self.least_allocated(pod, node) + self.balanced(pod, node) + 3 * taints + 2 * spread
        };
        feasible.iter().zip(&raws).map(|(node, raw)| (node.name.clone(), score(node, *raw))).collect()
    }
}

/// One thing that happens to a random cluster; numbers choose a node or a bound pod.
#[derive(Debug, Clone)]
enum Step {
    Schedule(Box<Pod>),
    Nominate(Box<Pod>, usize, bool),
    Unbind(usize),
    Cordon(usize, bool),
    Gone(usize),
    Back(usize),
}

fn any_node() -> impl Strategy<Value = Node> {
    let taint = prop_oneof![
        6 => Just(None),
        1 => Just(Some(Taint::new("hard", "", Effect::NoSchedule))),
        2 => Just(Some(Taint::new("soft", "", Effect::PreferNoSchedule))),
    ];
    (prop::sample::select(vec!["", "a", "b"]), 1..5i64, 1..9i64, 1..12i64, prop::bool::weighted(0.9), taint).prop_map(
        |(zone, cores, gib, pods, ready, taint)| {
            let mut made = node("", zone);
            made.allocatable = Resources::of(&[("cpu", cores * 1000), ("memory", gib * GIB), ("pods", pods), ("gpu", pods % 3)]);
            made.labels.insert("size".into(), if cores > 2 { "big" } else { "small" }.into());
            made.ready = ready;
            made.taints = taint.into_iter().collect();
            made
        },
    )
}

fn any_nodes() -> impl Strategy<Value = Vec<Node>> {
    let numbered = |nodes: Vec<Node>| nodes.into_iter().zip(0..).map(|(made, at)| Node { name: format!("n{at}"), ..made }).collect();
    prop::collection::vec(any_node(), 1..12).prop_map(numbered)
}

fn any_pod() -> impl Strategy<Value = Pod> {
    let amounts = (prop::sample::select(vec![0, 100, 250, 900]), prop::sample::select(vec![0, 64, 700, 2048]), 0..8i64);
    let size = prop::sample::select(vec!["", "", "big", "small"]);
    let rules = (size, prop::option::weighted(0.3, 0..3usize), 0..3i32, prop::bool::weighted(0.3));
    (amounts, 0..4usize, rules).prop_map(|((cpu, mib, gpu), app, (size, shy_of, priority, tolerant))| {
        let mut made = replica(["web", "api", "job", "lone"][app], 0, cpu);
        made.requests.set("memory", mib << 20);
        made.requests.set("gpu", i64::from(gpu == 0));
        if app > 1 {
            made.owner = (app == 2).then(|| Owner { kind: "Job".into(), name: "job".into() });
        }
        let sized = || -> Requirements { [Requirement::any_of("size", &[size])].into_iter().collect() };
        match (size, tolerant) {
            ("", _) => {}
            (_, true) => made.affinity.node_selector = sized(),
            (_, false) => made.affinity.node_terms = vec![sized()],
        }
        made.anti_affinity = shy_of.map(|at| away_from(["web", "api", "job"][at])).into_iter().collect();
        made.tolerations = if tolerant { vec![tolerates("hard", None), tolerates("soft", None)] } else { Vec::new() };
        made.priority = priority;
        made
    })
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => any_pod().prop_map(|pod| Step::Schedule(Box::new(pod))),
        3 => (any_pod(), 0..12usize, any::<bool>()).prop_map(|(pod, at, wait)| Step::Nominate(Box::new(pod), at, wait)),
        3 => (0..40usize).prop_map(Step::Unbind),
        1 => (0..12usize, any::<bool>()).prop_map(|(at, on)| Step::Cordon(at, on)),
        1 => (0..12usize).prop_map(Step::Gone),
        1 => (0..12usize).prop_map(Step::Back),
    ]
}

/// Schedules a pod, holds the answer to the plain reading, and binds it.
fn schedule(scheduler: &mut Scheduler, world: &mut World, pod: &Pod) -> Result<(), TestCaseError> {
    let scores = world.scores(pod);
    match scheduler.schedule(pod) {
        Err(refusal) => prop_assert!(scores.is_empty(), "{} but {scores:?}", refusal.message),
        Ok(chosen) => {
            let kept = pod.nominated.as_ref().filter(|name| scores.contains_key(*name));
            match kept {
                Some(kept) => prop_assert_eq!(&chosen, kept),
                None => prop_assert_eq!(scores.get(&chosen), scores.values().max(), "{} of {:?}", chosen, scores),
            }
            scheduler.bind(pod, &chosen);
            world.nominated.remove(&pod.key);
            world.bound.insert(pod.key.clone(), (chosen, pod.clone()));
        }
    }
    Ok(())
}

fn happen(scheduler: &mut Scheduler, world: &mut World, nodes: &[Node], number: usize, step: Step) -> Result<(), TestCaseError> {
    match step {
        Step::Schedule(mut pod) => {
            pod.key.name = format!("p{number}");
            schedule(scheduler, world, &pod)?;
        }
        Step::Nominate(mut pod, at, wait) => {
            let name = &nodes[at % nodes.len()].name;
            (pod.key.name, pod.nominated) = (format!("p{number}"), Some(name.clone()));
            scheduler.nominate(&pod, name);
            world.nominated.insert(pod.key.clone(), (name.clone(), (*pod).clone()));
            if !wait {
                schedule(scheduler, world, &pod)?;
            }
        }
        Step::Unbind(at) => {
            if let Some(key) = world.bound.keys().nth(at).cloned() {
                scheduler.unbind(&key);
                world.bound.remove(&key);
            }
        }
        Step::Cordon(at, on) => {
            if let Some(node) = world.nodes.get_mut(&nodes[at % nodes.len()].name) {
                node.cordoned = on;
                scheduler.apply_node(node);
            }
        }
        Step::Gone(at) => {
            scheduler.remove_node(&nodes[at % nodes.len()].name);
            world.nodes.remove(&nodes[at % nodes.len()].name);
        }
        Step::Back(at) => {
            let node = &nodes[at % nodes.len()];
            scheduler.apply_node(node);
            world.nodes.insert(node.name.clone(), node.clone());
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn placements_pass_every_filter_and_score_best(
        nodes in any_nodes(),
        steps in prop::collection::vec(any_step(), 1..80),
        seed in any::<u64>(),
    ) {
        let mut scheduler = cluster(seed, &nodes);
        let mut world = World::default();
        world.nodes.extend(nodes.iter().map(|node| (node.name.clone(), node.clone())));
        for (number, step) in steps.into_iter().enumerate() {
            happen(&mut scheduler, &mut world, &nodes, number, step)?;
        }
    }

    #[test]
    fn equal_seeds_place_equally(nodes in any_nodes(), pods in prop::collection::vec(any_pod(), 1..40), seed in any::<u64>()) {
        let named: Vec<Pod> = pods.iter().zip(0..).map(|(pod, n)| Pod { key: PodKey::new("default", &format!("p{n}")), ..pod.clone() }).collect();
        let run = || {
            let mut scheduler = cluster(seed, &nodes);
            named.iter().map(|pod| scheduler.schedule_and_bind(pod)).collect::<Vec<_>>()
        };
        prop_assert_eq!(run(), run());
    }
}
