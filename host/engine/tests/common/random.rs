//! Random clusters, each made from a seed.

use std::collections::BTreeSet;
use std::sync::Arc;

use whittle_model::{
    Affinity, CapacityType, Catalog, DaemonSet, Duration, Event, Limits, Node, NodeClass, NodePool, OfferingKey, Operator, Outcome, Pod,
    PodKey, Requirement, Requirements, Settings, Timestamp, keys,
};

use super::door::outcome;
use super::{CATEGORY, GIB, TYPE_CPU, TYPES, ZONES, all_of, any_of, catalog, excludes, labels, operator, resources, taint, toleration};

/// Splitmix64: a seed in, a stream of numbers out (<https://prng.di.unimi.it/splitmix64.c>).
#[derive(Debug, Clone)]
pub struct Dice(pub u64);

impl Dice {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).expect("a remainder is below what it is of")
    }

    /// An amount below `end`.
    pub fn amount(&mut self, end: usize) -> i64 {
        i64::try_from(self.below(end)).expect("the ends are small")
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// A non-empty choice of `of`.
    pub fn some<'t>(&mut self, of: &[&'t str]) -> Vec<&'t str> {
        let mut chosen: BTreeSet<&str> = BTreeSet::new();
        chosen.insert(self.pick(of));
        for one in of {
            if self.one_in(2) {
                chosen.insert(one);
            }
        }
        chosen.into_iter().collect()
    }

    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for at in (1..list.len()).rev() {
            list.swap(at, self.below(at + 1));
        }
    }
}

/// A random cluster, as objects.
#[derive(Debug, Clone)]
pub struct Cluster {
    pub settings: Settings,
    pub catalogs: Vec<Catalog>,
    pub classes: Vec<NodeClass>,
    pub pools: Vec<NodePool>,
    pub daemon_sets: Vec<DaemonSet>,
    pub nodes: Vec<Node>,
    /// On nodes already.
    pub bound: Vec<Pod>,
    /// Without a place, in two waves.
    pub waves: [Vec<Pod>; 2],
    pub sold_out: Vec<OfferingKey>,
    /// Namespaces, storage and overlays.
    pub others: Vec<Event>,
}

impl Cluster {
    pub fn of(seed: u64) -> Self {
        let mut dice = Dice(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
        let d = &mut dice;
        let settings = Settings { kubernetes_minor: d.pick(&[36, 36, 34]), ..super::settings() };
        let classes = vec![
            NodeClass { name: "default".to_owned(), not_ready: None, ..NodeClass::default() },
            NodeClass { name: "other".to_owned(), not_ready: d.one_in(3).then(|| "no subnets".to_owned()), ..NodeClass::default() },
        ];
        let pools = (0..1 + d.below(3)).map(|n| pool(d, n)).collect();
        let daemon_sets: Vec<DaemonSet> = (0..d.below(4)).map(|n| daemon_set(d, n)).collect();
        let nodes: Vec<Node> = (0..d.below(5)).map(|n| node(d, n)).collect();
        let shapes: Vec<Pod> = (0..1 + d.below(6)).map(|n| shape(d, n)).collect();
        let mut bound = Vec::new();
        for node in &nodes {
            for set in &daemon_sets {
                if d.one_in(3) {
                    bound.push(super::daemon_pod(set, &node.name));
                }
            }
            for n in 0..d.below(5) {
                bound.push(super::bound(copy(&shapes[d.below(shapes.len())], &format!("{}-{n}", node.name), 0), &node.name));
            }
        }
        let counts = [1 + d.below(25), d.below(12)];
        let waves = [0, 1].map(|w: usize| {
            (0..counts[w]).map(|n| copy(&shapes[d.below(shapes.len())], &format!("wave{w}-{n:02}"), d.amount(3))).collect()
        });
        let sold_out = (0..if d.one_in(2) { d.below(12) } else { 0 }).map(|_| offering(d)).collect();
        Self {
            settings,
            catalogs: vec![catalog("default"), second_catalog()],
            classes,
            pools,
            daemon_sets,
            nodes,
            bound,
            waves,
            sold_out,
            others: Vec::new(),
        }
    }

    /// Everything but the waiting pods, as events.
    pub fn events(&self) -> Vec<Event> {
        let mut events = vec![Event::Settings(self.settings.clone())];
        events.extend(self.catalogs.iter().map(|c| Event::Catalog(Arc::new(c.clone()))));
        events.extend(self.classes.iter().map(|c| Event::NodeClass(c.clone())));
        events.extend(self.pools.iter().map(|p| Event::NodePool(Box::new(p.clone()))));
        events.extend(self.daemon_sets.iter().map(|d| Event::DaemonSet(Box::new(d.clone()))));
        events.extend(self.nodes.iter().map(|n| Event::Node(Box::new(n.clone()))));
        events.extend(self.others.iter().cloned());
        events.extend(self.bound.iter().map(|p| Event::Pod(Box::new(p.clone()))));
        if !self.sold_out.is_empty() {
            // The memory of what is sold out is filled by answers to launches only.
            let failure = whittle_model::LaunchFailure::InsufficientCapacity(self.sold_out.clone());
            events.push(outcome(Outcome::LaunchFailed { claim: "an-older-claim".to_owned(), failure }));
        }
        events.push(Event::Synced);
        events
    }

    pub fn wave(&self, number: usize) -> Vec<Event> {
        self.waves[number].iter().map(|p| Event::Pod(Box::new(p.clone()))).collect()
    }
}

/// Fewer types, other prices.
pub(super) fn second_catalog() -> Catalog {
    let mut other = catalog("other");
    other.types.retain(|t| t.name != "c.2" && t.name != "r.8");
    for kind in &mut other.types {
        for offering in &mut kind.offerings {
            offering.price.0 += 1_000;
            offering.available = offering.zone != "us-east-1c";
        }
    }
    other
}

pub(super) fn offering(d: &mut Dice) -> OfferingKey {
    OfferingKey {
        instance_type: d.pick(&TYPES).0.to_owned(),
        zone: d.pick(&ZONES).to_owned(),
        capacity_type: d.pick(&[CapacityType::Spot, CapacityType::OnDemand]),
    }
}

/// A requirement that a pool or a pod may have.
pub(super) fn requirement(d: &mut Dice) -> Requirement {
    match d.below(9) {
        0 => any_of(keys::ZONE, &d.some(&ZONES)),
        1 => operator(keys::ZONE, Operator::NotIn, &[d.pick(&ZONES)]),
        2 => any_of(keys::CAPACITY_TYPE, &d.some(&["on-demand", "spot"])),
        3 => any_of(CATEGORY, &d.some(&["c", "m", "r"])),
        4 => operator(CATEGORY, Operator::NotIn, &[d.pick(&["c", "m", "r"])]),
        5 => operator(TYPE_CPU, d.pick(&[Operator::Gt, Operator::Gte]), &["2"]),
        6 => any_of(keys::ARCH, &d.some(&["amd64", "arm64"])),
        7 => any_of("karpenter.k8s.aws/instance-tenancy", &d.some(&["default", "dedicated"])),
        _ => any_of(keys::ZONE_ID, &d.some(&["use1-az1", "use1-az2"])),
    }
}

/// A requirement on a label that only some pools define.
pub(super) fn team(d: &mut Dice) -> Requirement {
    match d.below(4) {
        0 => any_of("team", &d.some(&["a", "b", "c"])),
        1 => operator("team", Operator::NotIn, &["a"]),
        2 => Requirement::exists("team"),
        _ => operator("team", Operator::DoesNotExist, &[]),
    }
}

pub(super) fn pool(d: &mut Dice, number: usize) -> NodePool {
    let mut pool = super::pool(&format!("pool-{number}"));
    pool.weight = d.pick(&[0, 0, 10, 50]);
    if d.one_in(3) {
        pool.template.node_class = "other".to_owned();
    }
    for _ in 0..d.below(3) {
        let more = requirement(d);
        let mut all = pool.template.requirements.clone();
        all.add(more);
        // A pool that contradicts itself would only be a pool fewer.
        if !all.iter().any(Requirement::is_contradiction) {
            pool.template.requirements = all;
        }
    }
    match d.below(6) {
        0 => pool.template.requirements.add(any_of("team", &d.some(&["a", "b", "c"]))),
        1 => pool.template.requirements.add(Requirement::exists("team")),
        2 => pool.template.labels = labels(&[("team", d.pick(&["a", "b"]))]),
        _ => {}
    }
    if d.one_in(3) {
        pool.template.taints.push(taint("dedicated"));
    }
    if d.one_in(4) {
        pool.template.startup_taints.push(taint("starting"));
    }
    if d.one_in(5) {
        pool.template.expire_after = Some(Duration::minutes(60));
    }
    if d.one_in(2) {
        let amounts = match d.below(3) {
            0 => vec![("cpu".to_owned(), 1000 * d.amount(30))],
            1 => vec![("memory".to_owned(), GIB * d.amount(100))],
            _ => vec![("cpu".to_owned(), 24_000), ("nodes".to_owned(), d.amount(4))],
        };
        pool.limits = Limits { amounts };
    }
    pool.not_ready = d.one_in(10).then(|| "it is told so".to_owned());
    pool.deleting = d.one_in(15);
    pool
}

pub(super) fn daemon_set(d: &mut Dice, number: usize) -> DaemonSet {
    let mut set = super::daemon_set(&format!("daemon-{number}"), d.pick(&[50, 100, 400]), GIB / 4);
    if d.one_in(2) {
        set.template.tolerations = vec![toleration("dedicated")];
    }
    if d.one_in(2) {
        set.template.affinity.node_selector = all_of(&[requirement(d)]);
    }
    if d.one_in(4) {
        set.template.affinity.node_terms = vec![all_of(&[requirement(d)]), all_of(&[team(d)])];
    }
    set
}

pub(super) fn node(d: &mut Dice, number: usize) -> Node {
    let mut node = super::node(&format!("node-{number}"), d.pick(&TYPES).0, d.pick(&ZONES));
    node.labels.insert(keys::ZONE_ID.to_owned(), "use1-az1".to_owned());
    if d.one_in(4) {
        node.labels.insert("team".to_owned(), d.pick(&["a", "b"]).to_owned());
    }
    if d.one_in(4) {
        node.taints.push(taint("dedicated"));
    }
    if d.one_in(5) {
        // Of a pool of ours, but nobody knows its claim.
        node.labels.insert(keys::NODE_POOL.to_owned(), "pool-0".to_owned());
    }
    node.cordoned = d.one_in(8);
    node.deleting = d.one_in(10);
    node
}

pub(super) fn shape(d: &mut Dice, number: usize) -> Pod {
    let mut pod = super::pod(&format!("shape-{number}"), 0, 0);
    pod.requests = resources(d.pick(&[100, 250, 700, 1500, 3000, 7000]), GIB / 4 * (1 + d.amount(24)));
    if d.one_in(8) {
        pod.requests.set("ephemeral-storage", GIB * 6);
    }
    pod.labels = labels(&[("app", d.pick(&["web", "db", "batch"]))]);
    pod.affinity = affinity(d);
    if d.one_in(2) {
        pod.tolerations = vec![toleration("dedicated")];
    }
    if d.one_in(4) {
        pod.anti_affinity = vec![excludes("app", d.pick(&["web", "db", "batch"]))];
    }
    if d.one_in(20) {
        pod.unsupported = vec!["spec.topologySpreadConstraints".to_owned()];
    }
    pod
}

fn affinity(d: &mut Dice) -> Affinity {
    let mut selector = Requirements::default();
    if d.one_in(2) {
        selector.add(requirement(d));
    }
    if d.one_in(5) {
        selector.add(team(d));
    }
    let terms = if d.one_in(4) { 1 + d.below(3) } else { 0 };
    let node_terms = (0..terms)
        .map(|_| {
            let one = requirement(d);
            if d.one_in(2) { all_of(&[one, team(d)]) } else { all_of(&[one]) }
        })
        .collect();
    Affinity { node_selector: selector, node_terms }
}

pub(super) fn copy(shape: &Pod, name: &str, created: i64) -> Pod {
    Pod { key: PodKey::new("default", name), uid: format!("uid-{name}"), created: Timestamp(created), ..shape.clone() }
}
