//! A tiny world for tests: a handful of instance types, one pool, and hands to change it.

use std::sync::Arc;

use whittle_model::resources::{CPU, MEMORY, PODS};
use whittle_model::{
    CapacityType, Catalog, ComesTo, DaemonSet, Disruption, Duration, InstanceType, LabelSelector, Labels, Limits, Micros, NodeClass,
    NodePool, Offering, Pod, PodKey, Requirement, Resources, Settings, Template, Timestamp, Toleration, keys,
};
use whittle_sim::{
    Ending, Given, Manifests, ObjectName, Observer, RunError, Scenario, ScenarioObject, Simulation, Story, Summary, TimelineEvent, Weather,
    Workload, WorkloadKind,
};

pub const GIB: i64 = 1 << 30;

/// Types by cores, GiB and price of an hour in micro-dollars; spot costs two fifths.
const TYPES: [(&str, i64, i64, i64); 5] = [
    ("c1.large", 2, 4, 85_000),
    ("c1.xlarge", 4, 8, 170_000),
    ("c1.2xlarge", 8, 16, 340_000),
    ("m1.large", 2, 8, 100_000),
    ("m1.xlarge", 4, 16, 200_000),
];

pub fn catalog() -> Catalog {
    let mut types: Vec<InstanceType> = TYPES.iter().map(|(name, cores, gib, price)| instance_type(name, *cores, *gib, *price)).collect();
    types.sort_by(|a, b| a.name.cmp(&b.name));
    Catalog { node_class: "default".into(), region: "us-east-1".into(), price_region: "us-east-1".into(), types }
}

fn instance_type(name: &str, cores: i64, gib: i64, price: i64) -> InstanceType {
    let capacity = Resources::of(&[(CPU, cores * 1000), (MEMORY, gib * GIB), (PODS, 30)]);
    let mut allocatable = capacity.clone();
    allocatable.subtract(&Resources::of(&[(CPU, 100), (MEMORY, GIB / 2)]));
    let labels =
        [(keys::INSTANCE_TYPE, name), (keys::ARCH, "amd64"), (keys::OS, "linux")].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
    let mut offerings = Vec::new();
    for zone in ["us-east-1a", "us-east-1b"] {
        for (capacity_type, price) in [(CapacityType::Spot, price * 2 / 5), (CapacityType::OnDemand, price)] {
            offerings.push(Offering {
                zone: zone.into(),
                zone_id: String::new(),
                capacity_type,
                price: Micros(price),
                available: true,
                reservation: None,
            });
        }
    }
    InstanceType { name: name.into(), labels, requirements: Arc::default(), capacity, allocatable, offerings }
}

pub fn pool(name: &str, capacity_types: &[&str]) -> NodePool {
    NodePool {
        name: name.into(),
        uid: format!("uid-{name}"),
        template: Template {
            requirements: [Requirement::any_of(keys::CAPACITY_TYPE, capacity_types)].into_iter().collect(),
            node_class: "default".into(),
            ..Template::default()
        },
        disruption: Disruption { consolidate_after: Some(Duration::minutes(1)), ..Disruption::default() },
        ..NodePool::default()
    }
}

/// A pool whose nodes stay where they are.
pub fn steady(name: &str, capacity_types: &[&str]) -> NodePool {
    NodePool { disruption: Disruption { consolidate_after: None, ..Disruption::default() }, ..pool(name, capacity_types) }
}

pub fn limited(name: &str, limits: &[(&str, i64)]) -> NodePool {
    let amounts = limits.iter().map(|(name, amount)| ((*name).to_owned(), *amount)).collect();
    NodePool { limits: Limits { amounts }, ..pool(name, &["on-demand"]) }
}

pub fn template(namespace: &str, name: &str, milli: i64, mib: i64) -> Pod {
    Pod {
        key: PodKey::new(namespace, name),
        labels: Labels::from([("app".to_owned(), name.to_owned())]),
        requests: Resources::of(&[(CPU, milli), (MEMORY, mib << 20), (PODS, 1)]),
        ..Pod::default()
    }
}

pub fn workload(kind: WorkloadKind, name: &str, replicas: u32, milli: i64, mib: i64) -> Workload {
    let template = template("default", name, milli, mib);
    Workload {
        kind,
        key: template.key.clone(),
        replicas,
        completions: None,
        selector: LabelSelector::of_labels(&template.labels),
        template,
        ordered: kind == WorkloadKind::StatefulSet,
        claims: Vec::new(),
    }
}

pub fn deployment(name: &str, replicas: u32, milli: i64, mib: i64) -> ScenarioObject {
    ScenarioObject::Workload(Box::new(workload(WorkloadKind::Deployment, name, replicas, milli, mib)))
}

/// A daemon as those of the system are: it tolerates everything and goes first.
pub fn daemon_set(name: &str, milli: i64) -> ScenarioObject {
    let all = Toleration { key: None, exists: true, value: String::new(), effect: None };
    let template = Pod { tolerations: vec![all], priority: 2_000_001_000, ..template("kube-system", name, milli, 64) };
    ScenarioObject::DaemonSet(Box::new(DaemonSet { key: template.key.clone(), template, containers: None }))
}

/// The world of the pools and objects.
pub fn scenario(pools: Vec<NodePool>, objects: Vec<ScenarioObject>) -> Scenario {
    let class = NodeClass { name: "default".into(), not_ready: None, ..NodeClass::default() };
    let mut all = vec![ScenarioObject::NodeClass(class, Arc::new(catalog()), ComesTo::default())];
    all.extend(pools.into_iter().map(|p| ScenarioObject::NodePool(Box::new(p))));
    all.extend(objects);
    Scenario { objects: all, given: Given { prices: "five made-up types".into(), price_region: "us-east-1".into(), spot: "40 %".into() } }
}

/// Knows what a file of this name holds.
#[derive(Default)]
pub struct Files(pub Vec<(&'static str, Vec<ScenarioObject>)>);

impl Manifests for Files {
    fn load(&mut self, file: &str) -> Result<Vec<ScenarioObject>, String> {
        self.0.iter().find(|(name, _)| *name == file).map(|(_, objects)| objects.clone()).ok_or_else(|| format!("no file {file}"))
    }

    fn set(&mut self, object: &ObjectName, path: &str, _value: &str) -> Result<Vec<ScenarioObject>, String> {
        Err(format!("{object} has no {path}"))
    }
}

/// Writes down all it hears.
#[derive(Default)]
pub struct Record {
    pub lines: Vec<String>,
    pub json: Vec<String>,
}

impl Observer for Record {
    fn on(&mut self, at: Timestamp, event: &TimelineEvent) {
        self.lines.push(format!("{:>8} {event}", at.0));
        self.json.push(format!("{} {}", at.0, serde_json::to_string(event).expect("an event is plain data")));
    }
}

/// A run and what it left.
pub struct Run {
    pub simulation: Simulation,
    pub record: Record,
    pub ending: Result<Ending, RunError>,
    pub summary: Summary,
}

impl Run {
    pub fn text(&self) -> String {
        self.record.lines.join("\n")
    }

    pub fn has(&self, part: &str) -> bool {
        self.record.lines.iter().any(|line| line.contains(part))
    }
}

/// Plays a story in a simulation that was set up already.
pub fn play_on(mut simulation: Simulation, story: &str) -> Run {
    let mut record = Record::default();
    let story = Story::parse(story).expect("the story reads");
    let ending = simulation.run(&story, &mut Files::default(), &mut record);
    let summary = simulation.summary();
    Run { simulation, record, ending, summary }
}

pub fn play_in(scenario: Scenario, settings: Settings, seed: u64, weather: Weather, story: &str) -> Run {
    play_on(Simulation::new(scenario, settings, seed, weather), story)
}

pub fn play(scenario: Scenario, story: &str) -> Run {
    let run = play_in(scenario, Settings::default(), 1, Weather::calm(), story);
    assert!(run.ending.is_ok(), "{:?}\n{}", run.ending, run.text());
    run
}
