//! Random small clusters with every constraint the reference knows. A seed makes a cluster.

use std::sync::Arc;

use whittle_bench::Input;
use whittle_bench::markets::POOL;
use whittle_model::resources::{CPU, MEMORY, NODES, PODS};
use whittle_model::{
    Affinity, Catalog, DaemonSet, Effect, LabelSelector, Labels, Limits, NodePool, Pod, PodAffinityTerm, PodKey, Requirement, Requirements,
    Resources, Taint, Template, Timestamp, Toleration, TopologySpread, keys,
};

const MIB: i64 = 1 << 20;
const TEAM: &str = "example.com/team";

/// A linear congruential generator (Knuth's MMIX constants), upper bits.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % sides as u64).expect("a remainder of a usize is one")
    }

    fn one_in(&mut self, sides: usize) -> bool {
        self.below(sides) == 0
    }

    fn pick<'v, T>(&mut self, values: &'v [T]) -> &'v T {
        &values[self.below(values.len())]
    }

    fn some<'v>(&mut self, values: &[&'v str]) -> Vec<&'v str> {
        let chosen: Vec<&str> = values.iter().copied().filter(|_| self.one_in(2)).collect();
        if chosen.is_empty() { vec![*self.pick::<&str>(values)] } else { chosen }
    }
}

/// `market` with a handful of families, so that a solve is quick: old and new, both
/// architectures, burstable ones.
pub fn few_types(market: &Input) -> Input {
    let families = ["c5", "c7g", "m5", "m6a", "m7i", "r5", "r6g", "t3"];
    let few = |catalog: &Catalog| {
        let types = catalog.types.iter().filter(|t| t.name.split('.').next().is_some_and(|family| families.contains(&family)));
        Arc::new(Catalog { types: types.cloned().collect(), ..catalog.clone() })
    };
    Input { catalogs: market.catalogs.iter().map(|c| few(c)).collect(), ..market.clone() }
}

/// The cluster of this seed, buying from the catalogue of `market`.
pub fn random(market: &Input, seed: u64) -> Input {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1);
    let pools = (0..=dice.below(3)).map(|at| pool(&mut dice, at)).collect();
    let daemon_sets = (0..dice.below(3)).map(|at| daemon_set(&mut dice, at)).collect();
    let shapes: Vec<Pod> = (0..=dice.below(10)).map(|at| shape(&mut dice, at)).collect();
    let pods = (0..=dice.below(120)).map(|at| named(dice.pick(&shapes), at)).collect();
    Input { catalogs: market.catalogs.clone(), pools, daemon_sets, pods }
}

fn pool(dice: &mut Dice, at: usize) -> NodePool {
    let aws = |label: &str| format!("{}{label}", keys::AWS_PREFIX);
    let mut requirements = Requirements::from_iter([
        Requirement::any_of(&aws("instance-category"), &dice.some(&["c", "m", "r", "t"])),
        Requirement::any_of(&aws("instance-generation"), &dice.some(&["3", "5", "6", "7"])),
    ]);
    if dice.one_in(2) {
        requirements.add(Requirement::any_of(&aws("instance-cpu"), &dice.some(&["2", "4", "8", "16", "48"])));
    }
    if dice.one_in(2) {
        requirements.add(Requirement::any_of(keys::ARCH, &dice.some(&["amd64", "arm64"])));
    }
    if dice.one_in(2) {
        requirements.add(Requirement::any_of(keys::CAPACITY_TYPE, &dice.some(&["spot", "on-demand"])));
    }
    if dice.one_in(4) {
        requirements.add(Requirement::exists(TEAM));
    }
    let mut template = Template { requirements, node_class: POOL.to_owned(), ..Template::default() };
    if dice.one_in(3) {
        template.labels = Labels::from([(TEAM.to_owned(), (*dice.pick(&["a", "b"])).to_owned())]);
    }
    if dice.one_in(3) {
        template.taints = vec![Taint::new("dedicated", "x", *dice.pick(&[Effect::NoSchedule, Effect::PreferNoSchedule]))];
    }
    let mut limits = Limits::default();
    if dice.one_in(4) {
        limits.amounts.push((CPU.to_owned(), *dice.pick(&[0, 7_000, 40_000, 200_000])));
    }
    if dice.one_in(6) {
        limits.amounts.push((MEMORY.to_owned(), *dice.pick(&[30_000, 300_000]) * MIB));
    }
    if dice.one_in(4) {
        limits.amounts.push((NODES.to_owned(), *dice.pick(&[1, 3])));
    }
    let weight = *dice.pick(&[0, 0, 10]);
    NodePool { name: format!("pool-{at}"), uid: format!("pool-{at}"), weight, template, limits, ..NodePool::default() }
}

fn sized(name: &str, cpu: i64, memory_mib: i64) -> Pod {
    Pod {
        key: PodKey::new("default", name),
        uid: name.to_owned(),
        unschedulable: true,
        requests: Resources::of(&[(CPU, cpu), (MEMORY, memory_mib * MIB), (PODS, 1)]),
        ..Pod::default()
    }
}

fn daemon_set(dice: &mut Dice, at: usize) -> DaemonSet {
    let name = format!("daemon-{at}");
    let mut template = sized(&name, *dice.pick(&[0, 100, 900]), *dice.pick(&[50, 500]));
    template.unschedulable = false;
    if dice.one_in(2) {
        template.affinity.node_terms = vec![demand(dice), demand(dice)];
    }
    if dice.one_in(2) {
        template.tolerations = vec![tolerate_all()];
    }
    DaemonSet { key: PodKey::new("kube-system", &name), template, containers: None }
}

fn tolerate_all() -> Toleration {
    Toleration { key: None, exists: true, value: String::new(), effect: None }
}

/// A demand on nodes that some of them meet.
fn demand(dice: &mut Dice) -> Requirements {
    let key = *dice.pick(&[keys::ZONE, keys::ARCH, keys::CAPACITY_TYPE, TEAM, keys::NODE_POOL]);
    let values: &[&str] = match key {
        keys::ZONE => &["us-east-1a", "us-east-1b", "us-east-1e"],
        keys::ARCH => &["amd64", "arm64"],
        keys::CAPACITY_TYPE => &["spot", "on-demand"],
        TEAM => &["a", "b"],
        _ => &["pool-0", "pool-1"],
    };
    Requirements::from_iter([Requirement::any_of(key, &dice.some(values))])
}

fn shape(dice: &mut Dice, at: usize) -> Pod {
    let mut pod = sized("", *dice.pick(&[0, 100, 400, 1000, 2500, 7000]), *dice.pick(&[0, 64, 700, 3000, 9000]));
    pod.labels = Labels::from([("app".to_owned(), at.to_string())]);
    if dice.one_in(4) {
        pod.affinity.node_selector = demand(dice);
    }
    if dice.one_in(5) {
        pod.affinity.node_terms = vec![demand(dice), demand(dice)];
    }
    if dice.one_in(3) {
        pod.tolerations = vec![tolerate_all()];
    }
    if dice.one_in(4) {
        let shunned = if dice.one_in(2) { at } else { dice.below(10) };
        let labels = Labels::from([("app".to_owned(), shunned.to_string())]);
        let term = PodAffinityTerm {
            topology_key: whittle_model::keys::HOSTNAME.to_owned(),
            namespace_selector: None,
            namespaces: vec!["default".to_owned()],
            selector: LabelSelector::of_labels(&labels),
        };
        pod.anti_affinity = vec![term];
    }
    company(dice, &mut pod);
    pod
}

fn term(dice: &mut Dice, app: usize) -> PodAffinityTerm {
    PodAffinityTerm {
        topology_key: (*dice.pick(&[keys::ZONE, keys::HOSTNAME, keys::CAPACITY_TYPE])).to_owned(),
        namespace_selector: None,
        namespaces: vec!["default".to_owned()],
        selector: LabelSelector::of_labels(&Labels::from([("app".to_owned(), app.to_string())])),
    }
}

/// Spread, affinity to its like, anti-affinity and preferences, each now and then.
fn company(dice: &mut Dice, pod: &mut Pod) {
    let like = pod.labels["app"].parse().expect("apps are numbers");
    for _ in 0..if dice.one_in(3) { 1 + dice.below(2) } else { 0 } {
        let app = if dice.one_in(3) { dice.below(10) } else { like };
        let constraint = TopologySpread {
            topology_key: (*dice.pick(&[keys::ZONE, keys::HOSTNAME, keys::CAPACITY_TYPE])).to_owned(),
            max_skew: u32::try_from(1 + dice.below(3)).expect("a small number"),
            min_domains: None,
            required: dice.one_in(2),
            selector: term(dice, app).selector,
            honor_affinity: true,
            honor_taints: false,
        };
        if pod.spread.iter().all(|s| s.topology_key != constraint.topology_key) {
            pod.spread.push(constraint);
        }
    }
    // Who seeks others with fewer zones to choose from would have to wait for them.
    if dice.one_in(8) && pod.affinity == Affinity::default() {
        pod.pod_affinity = vec![term(dice, like)];
    }
    if dice.one_in(8) {
        let app = dice.below(10);
        pod.anti_affinity.push(term(dice, app));
    }
    if dice.one_in(4) {
        let weight = i32::try_from(1 + dice.below(3)).expect("a small number");
        match dice.below(3) {
            0 => pod.preferences.nodes.push((weight, demand(dice))),
            1 => pod.preferences.near.push((weight, term(dice, like))),
            _ => pod.preferences.away.push((weight, term(dice, like))),
        }
    }
}

fn named(shape: &Pod, at: usize) -> Pod {
    let name = format!("pod-{at:03}");
    let created = Timestamp(i64::try_from(at / 7).expect("few pods"));
    Pod { key: PodKey::new("default", &name), uid: name, created, ..shape.clone() }
}
