//! Random small clusters with every kind of constraint, on which the scheduler and its plain reading must agree.

use proptest::prelude::*;
use whittle_engine::scheduler::Scheduler;
use whittle_model::{
    Effect, Event, HostPort, LabelSelector, Node, Owner, Pod, PodAffinityTerm, PodKey, PodVolume, Protocol, Requirement, Requirements,
    Resources, StorageClass, Taint, TopologySpread, Volume, VolumeAttachment, VolumeClaim, VolumeClaimPhase, VolumeLimits, keys,
};

use crate::make::{GIB, cluster, labels, node, replica, tolerates};
use crate::oracle::World;

const ZONE: &str = keys::ZONE;
const RACK: &str = "rack";
const KEYS: [&str; 3] = [keys::HOSTNAME, ZONE, RACK];
const APPS: [&str; 4] = ["web", "api", "job", "lone"];
const SPACES: [&str; 2] = ["default", "other"];

/// One thing that happens to a random cluster; numbers choose a node, a bound pod, a claim.
#[derive(Debug, Clone)]
enum Step {
    Schedule(Box<Pod>),
    Nominate(Box<Pod>, usize, bool),
    Unbind(usize),
    Doom(usize),
    Cordon(usize, bool),
    Gone(usize),
    Back(usize),
    Namespace(usize, bool),
    Provision(usize),
    Attach(usize, usize),
}

fn any_node() -> impl Strategy<Value = Node> {
    let taint = prop_oneof![
        6 => Just(None),
        1 => Just(Some(Taint::new("hard", "", Effect::NoSchedule))),
        2 => Just(Some(Taint::new("soft", "", Effect::PreferNoSchedule))),
    ];
    let place = (prop::sample::select(vec!["", "a", "b"]), prop::sample::select(vec!["", "r1", "r2", "r3"]));
    (place, 1..5i64, 1..9i64, 1..12i64, prop::bool::weighted(0.9), taint).prop_map(|((zone, rack), cores, gib, pods, ready, taint)| {
        let mut made = node("", zone);
        made.allocatable = Resources::of(&[("cpu", cores * 1000), ("memory", gib * GIB), ("pods", pods), ("gpu", pods % 3)]);
        made.labels.insert("size".into(), if cores > 2 { "big" } else { "small" }.into());
        if !rack.is_empty() {
            made.labels.insert(RACK.into(), rack.into());
        }
        made.ready = ready;
        made.taints = taint.into_iter().collect();
        made
    })
}

fn any_nodes() -> impl Strategy<Value = Vec<Node>> {
    let numbered = |nodes: Vec<Node>| {
        let named = nodes.into_iter().zip(0..).map(|(mut made, at)| {
            made.name = format!("n{at}");
            made.labels.insert(keys::HOSTNAME.into(), made.name.clone());
            made
        });
        named.collect()
    };
    prop::collection::vec(any_node(), 1..12).prop_map(numbered)
}

fn any_selector() -> impl Strategy<Value = LabelSelector> {
    prop_oneof![
        6 => (0..3usize).prop_map(|at| LabelSelector::of_labels(&labels(&[("app", APPS[at])]))),
        1 => Just(LabelSelector::default()),
        1 => Just(LabelSelector::nothing()),
    ]
}

fn any_term() -> impl Strategy<Value = PodAffinityTerm> {
    let spaces = prop_oneof![
        4 => Just((vec!["default".to_owned()], None)),
        1 => Just((SPACES.map(str::to_owned).to_vec(), None)),
        1 => Just((Vec::new(), Some(LabelSelector::of_labels(&labels(&[("team", "x")]))))),
        1 => Just((Vec::new(), Some(LabelSelector::default()))),
    ];
    (0..3usize, spaces, any_selector()).prop_map(|(key, (namespaces, namespace_selector), selector)| PodAffinityTerm {
        topology_key: KEYS[key].to_owned(),
        namespaces,
        namespace_selector,
        selector,
    })
}

fn any_spread() -> impl Strategy<Value = TopologySpread> {
    let flags = (prop::bool::weighted(0.6), any::<bool>(), any::<bool>());
    (0..3usize, 1..4u32, prop::option::weighted(0.3, 1..4u32), any_selector(), flags).prop_map(|(key, max_skew, min, selector, flags)| {
        TopologySpread {
            topology_key: KEYS[key].to_owned(),
            max_skew,
            min_domains: min.filter(|_| flags.0),
            required: flags.0,
            selector,
            honor_affinity: flags.1,
            honor_taints: flags.2,
        }
    })
}

/// Mostly none, else one or two.
fn few<T: std::fmt::Debug + Clone + 'static>(of: impl Strategy<Value = T> + 'static) -> impl Strategy<Value = Vec<T>> {
    let of = of.boxed();
    prop_oneof![3 => Just(Vec::new()), 1 => prop::collection::vec(of, 1..3)]
}

fn sized(size: &str) -> Requirements {
    [Requirement::any_of("size", &[size])].into_iter().collect()
}

fn any_port() -> impl Strategy<Value = HostPort> {
    let ip = prop::sample::select(vec!["", "10.0.0.1", "10.0.0.2"]);
    let protocol = prop::sample::select(vec![Protocol::Tcp, Protocol::Udp]);
    (80..82u16, protocol, ip).prop_map(|(port, protocol, ip)| HostPort { port, protocol, ip: ip.to_owned() })
}

/// The claims there are, by what is the matter with them.
const CLAIMS: [&str; 9] = ["in-a", "big", "lost-volume", "later", "later-b", "none", "now", "going", "absent"];

fn any_volume() -> impl Strategy<Value = PodVolume> {
    let claim = prop_oneof![
        8 => 0..2usize,
        4 => 3..5usize,
        1 => 0..CLAIMS.len(),
    ];
    (claim, prop::bool::weighted(0.2))
        .prop_map(|(at, ephemeral)| PodVolume { claim: CLAIMS[at].to_owned(), ephemeral: ephemeral.then_some(None) })
}

type Wants = (Vec<TopologySpread>, Vec<PodAffinityTerm>, Vec<PodAffinityTerm>, Vec<(i32, PodAffinityTerm)>, Vec<(i32, PodAffinityTerm)>);

fn any_wants() -> impl Strategy<Value = Wants> {
    let weighted = || (1..101i32, any_term());
    (few(any_spread()), few(any_term()), few(any_term()), few(weighted()), few(weighted()))
}

fn any_pod() -> impl Strategy<Value = Pod> {
    let amounts = (prop::sample::select(vec![0, 100, 250, 900]), prop::sample::select(vec![0, 64, 700, 2048]), 0..8i64);
    let size = prop::sample::select(vec!["", "", "big", "small"]);
    let rules = (size, 0..3i32, prop::bool::weighted(0.3), prop::bool::weighted(0.2));
    let own = (few(any_port()), few(any_volume()), few((1..101i32, prop::sample::select(vec!["big", "small"]))));
    (amounts, 0..4usize, rules, any_wants(), own).prop_map(
        |((cpu, mib, gpu), app, (size, priority, tolerant, other), wants, (ports, volumes, rather))| {
            let mut made = replica(APPS[app], 0, cpu);
            made.requests.set("memory", mib << 20);
            made.requests.set("gpu", i64::from(gpu == 0));
            made.key.namespace = SPACES[usize::from(other)].to_owned();
            if app > 1 {
                made.owner = (app == 2).then(|| Owner { kind: "Job".into(), name: "job".into() });
            }
            match (size, tolerant) {
                ("", _) => {}
                (_, true) => made.affinity.node_selector = sized(size),
                (_, false) => made.affinity.node_terms = vec![sized(size)],
            }
            (made.spread, made.pod_affinity, made.anti_affinity, made.preferences.near, made.preferences.away) = wants;
            made.preferences.nodes = rather.into_iter().map(|(weight, size)| (weight, sized(size))).collect();
            made.tolerations = if tolerant { vec![tolerates("hard", None), tolerates("soft", None)] } else { Vec::new() };
            (made.host_ports, made.volumes) = (ports, volumes);
            made.priority = priority;
            made
        },
    )
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => any_pod().prop_map(|pod| Step::Schedule(Box::new(pod))),
        3 => (any_pod(), 0..12usize, any::<bool>()).prop_map(|(pod, at, wait)| Step::Nominate(Box::new(pod), at, wait)),
        3 => (0..40usize).prop_map(Step::Unbind),
        1 => (0..40usize).prop_map(Step::Doom),
        1 => (0..12usize, any::<bool>()).prop_map(|(at, on)| Step::Cordon(at, on)),
        1 => (0..12usize).prop_map(Step::Gone),
        1 => (0..12usize).prop_map(Step::Back),
        1 => (0..2usize, any::<bool>()).prop_map(|(at, on)| Step::Namespace(at, on)),
        1 => (0..2usize).prop_map(Step::Provision),
        1 => (0..3usize, 0..12usize).prop_map(|(at, node)| Step::Attach(at, node)),
    ]
}

/// The two readings of one cluster.
struct Both {
    scheduler: Scheduler,
    world: World,
}

impl Both {
    fn new(seed: u64, nodes: &[Node]) -> Self {
        let mut both = Self { scheduler: cluster(seed, nodes), world: World::default() };
        both.world.nodes.extend(nodes.iter().map(|node| (node.name.clone(), node.clone())));
        for node in nodes.iter().filter(|node| node.allocatable.get("pods") % 2 == 0) {
            let most = u32::try_from(node.allocatable.get("pods") / 2).expect("a small number");
            both.world.limits.insert(node.name.clone(), most);
            let limits = VolumeLimits { node: node.name.clone(), drivers: [("disk".to_owned(), most)].into() };
            both.scheduler.apply_storage(&Event::VolumeLimits(Box::new(limits)));
        }
        both.storage();
        both
    }

    fn storage(&mut self) {
        let in_zone = |zone: &str| -> Vec<Requirements> { vec![[Requirement::any_of(ZONE, &[zone])].into_iter().collect()] };
        let classes = [
            ("later", "disk", false, Vec::new(), true),
            ("later-b", "disk", false, in_zone("b"), false),
            ("none", "kubernetes.io/no-provisioner", false, Vec::new(), false),
            ("now", "disk", true, Vec::new(), false),
        ];
        for (name, provisioner, immediate, topologies, default) in classes {
            let class = StorageClass { name: name.into(), provisioner: provisioner.into(), immediate, topologies, default };
            self.scheduler.apply_storage(&Event::StorageClass(Box::new(class.clone())));
            self.world.classes.insert(class.name.clone(), class);
        }
        for (name, node_terms) in [("in-a", in_zone("a")), ("big", vec![sized("big")]), ("spare", Vec::new())] {
            self.volume(&Volume { name: name.into(), node_terms, driver: "disk".into(), handle: format!("h-{name}"), ..Volume::default() });
        }
        for namespace in SPACES {
            for name in &CLAIMS[..8] {
                let key = PodKey::new(namespace, name);
                let volume = match *name {
                    "in-a" | "big" => *name,
                    "lost-volume" => "gone",
                    _ => "",
                };
                // The default class is `later`.
                let storage_class = Some((*name).to_owned()).filter(|class| class != "later" && self.world.classes.contains_key(class));
                self.claim(VolumeClaim {
                    key,
                    volume: volume.into(),
                    bind_completed: !volume.is_empty(),
                    phase: if volume.is_empty() { VolumeClaimPhase::Pending } else { VolumeClaimPhase::Bound },
                    storage_class,
                    deleting: *name == "going",
                });
            }
        }
    }

    fn claim(&mut self, claim: VolumeClaim) {
        self.scheduler.apply_storage(&Event::VolumeClaim(Box::new(claim.clone())));
        self.world.claims.insert(claim.key.clone(), claim);
    }

    fn volume(&mut self, volume: &Volume) {
        self.scheduler.apply_storage(&Event::Volume(Box::new(volume.clone())));
        self.world.volumes.insert(volume.name.clone(), volume.clone());
    }

    /// Schedules a pod, holds the answer to the plain reading, and binds it.
    fn schedule(&mut self, pod: &Pod) -> Result<(), TestCaseError> {
        let scores = self.world.scores(pod);
        match self.scheduler.schedule(pod) {
            Err(refusal) => {
                prop_assert!(scores.is_empty(), "{} but {:?}", refusal.message, scores);
                prop_assert_eq!(refusal.message, self.world.refusal(pod));
            }
            Ok(chosen) => {
                let kept = pod.nominated.as_ref().filter(|name| scores.contains_key(*name));
                match kept {
                    Some(kept) => prop_assert_eq!(&chosen, kept),
                    None => prop_assert_eq!(scores.get(&chosen), scores.values().max(), "{} of {:?}", chosen, scores),
                }
                self.bind(pod, &chosen);
            }
        }
        Ok(())
    }

    fn bind(&mut self, pod: &Pod, node: &str) {
        self.scheduler.bind(pod, node);
        self.world.nominated.remove(&pod.key);
        self.world.bound.insert(pod.key.clone(), (node.to_owned(), pod.clone()));
    }

    fn happen(&mut self, nodes: &[Node], number: usize, step: Step) -> Result<(), TestCaseError> {
        match step {
            Step::Schedule(mut pod) => {
                pod.key.name = format!("p{number}");
                self.schedule(&pod)?;
            }
            Step::Nominate(mut pod, at, wait) => {
                let name = &nodes[at % nodes.len()].name;
                (pod.key.name, pod.nominated) = (format!("p{number}"), Some(name.clone()));
                self.scheduler.nominate(&pod, name);
                self.world.nominated.insert(pod.key.clone(), (name.clone(), (*pod).clone()));
                if !wait {
                    self.schedule(&pod)?;
                }
            }
            Step::Unbind(at) => {
                if let Some(key) = self.world.bound.keys().nth(at).cloned() {
                    self.scheduler.unbind(&key);
                    self.world.bound.remove(&key);
                }
            }
            Step::Doom(at) => {
                if let Some((node, pod)) = self.world.bound.values().nth(at).cloned() {
                    self.bind(&Pod { deleting: true, ..pod }, &node);
                }
            }
            Step::Cordon(at, on) => {
                if let Some(node) = self.world.nodes.get_mut(&nodes[at % nodes.len()].name) {
                    node.cordoned = on;
                    self.scheduler.apply_node(node);
                }
            }
            Step::Gone(at) => {
                self.scheduler.remove_node(&nodes[at % nodes.len()].name);
                self.world.nodes.remove(&nodes[at % nodes.len()].name);
            }
            Step::Back(at) => {
                let node = &nodes[at % nodes.len()];
                self.scheduler.apply_node(node);
                self.world.nodes.insert(node.name.clone(), node.clone());
            }
            Step::Namespace(..) | Step::Provision(_) | Step::Attach(..) => self.surroundings(nodes, number, &step),
        }
        Ok(())
    }

    fn surroundings(&mut self, nodes: &[Node], number: usize, step: &Step) {
        match step {
            Step::Namespace(at, true) => {
                let team = labels(&[("team", "x")]);
                self.scheduler.apply_namespace(SPACES[*at], &team);
                self.world.namespaces.insert(SPACES[*at].to_owned(), team);
            }
            Step::Namespace(at, false) => {
                self.scheduler.remove_namespace(SPACES[*at]);
                self.world.namespaces.remove(SPACES[*at]);
            }
            Step::Provision(at) => {
                let name = format!("made-{at}");
                self.volume(&Volume { name: name.clone(), driver: "disk".into(), handle: name.clone(), ..Volume::default() });
                let claim = self.world.claims[&PodKey::new(SPACES[*at], "later")].clone();
                self.claim(VolumeClaim { volume: name, bind_completed: true, phase: VolumeClaimPhase::Bound, ..claim });
            }
            Step::Attach(at, node) => {
                let volume = ["in-a", "spare", "made-0"][*at];
                let node = nodes[node % nodes.len()].name.clone();
                let attachment = VolumeAttachment { name: format!("va-{}", number % 4), node, volume: volume.into() };
                self.scheduler.apply_storage(&Event::VolumeAttachment(Box::new(attachment.clone())));
                self.world.attachments.insert(attachment.name.clone(), attachment);
            }
            Step::Schedule(_) | Step::Nominate(..) | Step::Unbind(_) | Step::Doom(_) | Step::Cordon(..) | Step::Gone(_) | Step::Back(_) => {
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn placements_pass_every_filter_and_score_best(
        nodes in any_nodes(),
        steps in prop::collection::vec(any_step(), 1..80),
        seed in any::<u64>(),
    ) {
        let mut both = Both::new(seed, &nodes);
        for (number, step) in steps.into_iter().enumerate() {
            both.happen(&nodes, number, step)?;
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
