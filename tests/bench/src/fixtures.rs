//! The workloads: draws of Karpenter's own benchmark, the six mixes of pod shapes, and generated
//! ones. Fixtures are data compiled in; nothing is drawn from a clock or the machine.

use whittle_model::resources::{CPU, MEMORY, PODS};
use whittle_model::{
    LabelSelector, Labels, Pod, PodAffinityTerm, PodKey, Preferences, Requirement, Resources, Timestamp, TopologySpread, keys,
};

const MIB: i64 = 1 << 20;
const NAMESPACE: &str = "default";

/// A fixture that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FixtureError {
    /// There is no fixture of this name.
    #[error("no bench fixture {0:?}: see tests/fixtures/bench")]
    Unknown(String),
    /// A line is not what its header promises.
    #[error("read line {line} of a bench fixture, {text:?}: it should read {shape}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// The line.
        text: String,
        /// Its columns.
        shape: &'static str,
    },
}

macro_rules! embedded {
    ($($name:literal),* $(,)?) => { [$(($name, include_str!(concat!("../../fixtures/bench/", $name, ".csv")))),*] };
}

const FILES: [(&str, &str); 14] = embedded![
    "diverse-50",
    "diverse-100",
    "diverse-500",
    "diverse-1000",
    "diverse-2000",
    "diverse-5000",
    "diverse-10000",
    "diverse-20000",
    "mix-cpu-heavy",
    "mix-grid",
    "mix-karpenter",
    "mix-lognormal",
    "mix-memory-heavy",
    "mix-wide",
];

/// The numbers of pods that have a `diverse` fixture.
pub const DIVERSE: [usize; 8] = [50, 100, 500, 1000, 2000, 5000, 10_000, 20_000];

/// The mixes, by the names of their fixtures without `mix-`.
pub const MIXES: [&str; 6] = ["cpu-heavy", "grid", "karpenter", "lognormal", "memory-heavy", "wide"];

/// A line of a `diverse` fixture: one pod of Karpenter's `BenchmarkScheduling`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draw {
    /// `generic`, `zone-spread`, `host-spread`, `zone-affinity` or `anti`.
    pub kind: String,
    /// Value of its label.
    pub label: String,
    /// Value its constraint selects; empty for generic pods.
    pub selector: String,
    /// Request, in thousandths of a core.
    pub cpu_milli: i64,
    /// Request, in MiB.
    pub memory_mib: i64,
}

fn file(name: &str) -> Result<&'static str, FixtureError> {
    FILES.iter().find(|(n, _)| *n == name).map(|(_, text)| *text).ok_or_else(|| FixtureError::Unknown(name.to_owned()))
}

fn number(text: &str) -> Option<i64> {
    text.parse().ok()
}

/// The draws of `diverse-N`, in order.
///
/// # Errors
/// When there is no fixture of this size, or it cannot be read.
pub fn diverse(pods: usize) -> Result<Vec<Draw>, FixtureError> {
    let parse = |line: &str| {
        let [kind, label, selector, cpu, memory] = line.split(',').collect::<Vec<_>>().try_into().ok()?;
        let [kind, label, selector] = [kind, label, selector].map(str::to_owned);
        Some(Draw { kind, label, selector, cpu_milli: number(cpu)?, memory_mib: number(memory)? })
    };
    let lines = file(&format!("diverse-{pods}"))?.lines().enumerate();
    let wrong =
        |at: usize, text: &str| FixtureError::Line { line: at + 1, text: text.to_owned(), shape: "kind,label,selector,cpu_m,mem_Mi" };
    lines.map(|(at, line)| parse(line).ok_or_else(|| wrong(at, line))).collect()
}

/// The shapes of `mix-NAME` as (thousandths of a core, MiB), each as often as its share says.
///
/// # Errors
/// When there is no such fixture, or it cannot be read.
pub fn shapes(name: &str) -> Result<Vec<(i64, i64)>, FixtureError> {
    let parse = |line: &str| {
        let [cpu, memory, share] = line.split(',').collect::<Vec<_>>().try_into().ok()?;
        Some(((number(cpu)?, number(memory)?), usize::try_from(number(share)?).ok()?))
    };
    let mut all = Vec::new();
    for (at, line) in file(&format!("mix-{name}"))?.lines().enumerate().skip(1) {
        let wrong = || FixtureError::Line { line: at + 1, text: line.to_owned(), shape: "cpu_m,memory_mib,share" };
        let (shape, share) = parse(line).ok_or_else(wrong)?;
        all.extend(std::iter::repeat_n(shape, share));
    }
    Ok(all)
}

/// Pods of these sizes (thousandths of a core, MiB): named and created in this order, pending, with
/// no constraint at all.
pub fn pods(sizes: impl IntoIterator<Item = (i64, i64)>) -> Vec<Pod> {
    sizes.into_iter().enumerate().map(|(at, (cpu, memory))| pod(at, cpu, memory)).collect()
}

fn pod(at: usize, cpu_milli: i64, memory_mib: i64) -> Pod {
    let name = format!("pod-{:05}", at + 1);
    Pod {
        key: PodKey::new(NAMESPACE, &name),
        uid: name,
        created: Timestamp(i64::try_from(at).unwrap_or(i64::MAX)),
        unschedulable: true,
        requests: Resources::of(&[(CPU, cpu_milli), (MEMORY, memory_mib * MIB), (PODS, 1)]),
        ..Pod::default()
    }
}

/// Pods of a mix: its shapes over and over until there are `count`.
///
/// # Errors
/// When there is no such fixture, or it cannot be read.
pub fn mix(name: &str, count: usize) -> Result<Vec<Pod>, FixtureError> {
    Ok(pods(shapes(name)?.into_iter().cycle().take(count)))
}

/// The draws with their sizes only.
#[must_use]
pub fn generic(draws: &[Draw]) -> Vec<Pod> {
    pods(draws.iter().map(|d| (d.cpu_milli, d.memory_mib)))
}

/// The draws with their sizes and, for the fifth of them that has it, the anti-affinity on the host
/// name: no two of these share a node.
#[must_use]
pub fn anti(draws: &[Draw]) -> Vec<Pod> {
    let labels = Labels::from([("app".to_owned(), "nginx".to_owned())]);
    let term = PodAffinityTerm {
        topology_key: whittle_model::keys::HOSTNAME.to_owned(),
        namespace_selector: None,
        namespaces: vec![NAMESPACE.to_owned()],
        selector: LabelSelector::of_labels(&labels),
    };
    let mut all = generic(draws);
    for (pod, _) in all.iter_mut().zip(draws).filter(|(_, draw)| draw.kind == "anti") {
        pod.labels = labels.clone();
        pod.anti_affinity = vec![term.clone()];
    }
    all
}

fn labelled(key: &str, value: &str) -> Labels {
    Labels::from([(key.to_owned(), value.to_owned())])
}

fn spread(key: &str, selector: &str) -> TopologySpread {
    TopologySpread {
        topology_key: key.to_owned(),
        max_skew: 1,
        min_domains: None,
        required: true,
        selector: LabelSelector::of_labels(&labelled("my-label", selector)),
        honor_affinity: true,
        honor_taints: false,
    }
}

fn term(key: &str, labels: &Labels) -> PodAffinityTerm {
    PodAffinityTerm {
        topology_key: key.to_owned(),
        namespaces: vec![NAMESPACE.to_owned()],
        namespace_selector: None,
        selector: LabelSelector::of_labels(labels),
    }
}

/// The draws with everything they ask for: a fifth each spreads over zones, spreads over hosts, seeks its
/// like in a zone, and excludes its like from its host.
#[must_use]
pub fn constrained(draws: &[Draw]) -> Vec<Pod> {
    let mut all = generic(draws);
    for (pod, draw) in all.iter_mut().zip(draws) {
        pod.labels = labelled("my-label", &draw.label);
        match draw.kind.as_str() {
            "zone-spread" => pod.spread = vec![spread(keys::ZONE, &draw.selector)],
            "host-spread" => pod.spread = vec![spread(keys::HOSTNAME, &draw.selector)],
            "zone-affinity" => {
                // Spelled as in the workload it comes from.
                pod.labels = labelled("my-affininity", &draw.label);
                pod.pod_affinity = vec![term(keys::ZONE, &labelled("my-affininity", &draw.selector))];
            }
            "anti" => {
                pod.labels = labelled("app", "nginx");
                pod.anti_affinity = vec![term(keys::HOSTNAME, &pod.labels)];
            }
            _ => {}
        }
    }
    all
}

/// Identical pods that would rather be in one zone, and alone in their zone and on their host: Karpenter's
/// preference mix.
#[must_use]
pub fn preferring(count: usize) -> Vec<Pod> {
    let labels = labelled("app", "nginx");
    let preferences = Preferences {
        nodes: vec![(1, std::iter::once(Requirement::any_of(keys::ZONE, &["test-zone-1"])).collect())],
        near: Vec::new(),
        away: vec![(10, term(keys::ZONE, &labels)), (1, term(keys::HOSTNAME, &labels))],
    };
    let mut all = pods(std::iter::repeat_n((500, 512), count));
    for pod in &mut all {
        (pod.labels, pod.preferences) = (labels.clone(), preferences.clone());
    }
    all
}

/// Pods no two of which ask for the same CPU, nor the same memory: the worst case for whoever lives
/// off equal pods. From 100m and 128Mi up, in steps of 1m and 1Mi, in a scattered order.
#[must_use]
pub fn distinct(count: usize) -> Vec<Pod> {
    // Multiples of a prime that does not divide the count visit every residue once.
    let scattered = |at: usize, prime: usize| i64::try_from(at * prime % count).unwrap_or(i64::MAX);
    pods((0..count).map(|at| (100 + scattered(at, 7919), 128 + scattered(at, 6007))))
}

/// Draws like those of `diverse-N`, for sizes that have no fixture.
#[must_use]
pub fn drawn(count: usize) -> Vec<Draw> {
    let mut state = 42u64;
    let mut below = |sides: usize| usize::try_from(splitmix(&mut state) % sides as u64).unwrap_or(0);
    let kinds = ["generic", "zone-spread", "host-spread", "zone-affinity", "anti"];
    let mut draws = Vec::with_capacity(count);
    for at in 0..count {
        let kind = kinds[at % kinds.len()];
        let label = ["a", "b", "c", "d", "e", "f", "g"][below(7)];
        let selector = if kind == "zone-affinity" { label } else { ["a", "b", "c", "d", "e", "f", "g"][below(7)] };
        let cpu_milli = [100, 250, 500, 1000, 1500][below(5)];
        let memory_mib = [100, 256, 512, 1024, 2048, 4096][below(6)];
        draws.push(Draw { kind: kind.to_owned(), label: label.to_owned(), selector: selector.to_owned(), cpu_milli, memory_mib });
    }
    draws
}

/// The next number of the `SplitMix64` sequence: <https://prng.di.unimi.it/splitmix64.c>.
fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
