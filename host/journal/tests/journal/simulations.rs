//! Whole lives of clusters, in any weather: what the engine did comes out again.

use std::cell::RefCell;
use std::rc::Rc;

use whittle_engine::Engine;
use whittle_journal::{End, Journal, Limits, Policies, segments};
use whittle_model::{
    Action, ComesTo, DaemonSet, Disruption, Duration, Event, LabelSelector, Labels, NodeClass, Pod, PodKey, Settings, Timestamp, Toleration,
};
use whittle_sim::{Given, Manifests, ObjectName, Recorder, Scenario, ScenarioObject, Simulation, Story, Weather, Workload, WorkloadKind};

use crate::common::{Folder, catalog, pod, pool, replay};

/// Writes a journal beside a simulation.
#[derive(Clone)]
struct Desk(Rc<RefCell<Option<Journal>>>);

impl Desk {
    fn journal<T>(&self, f: impl FnOnce(&mut Journal) -> T) -> T {
        f(self.0.borrow_mut().as_mut().unwrap())
    }
}

impl Recorder for Desk {
    fn begins(&mut self, at: Timestamp, engine: &Engine) {
        self.journal(|journal| journal.restart(at, &engine.checkpoint(), &Policies::default()).unwrap());
    }

    fn told(&mut self, at: Timestamp, event: &Event) {
        self.journal(|journal| journal.event(at, event).unwrap());
    }

    fn polls(&mut self, _at: Timestamp) {}

    fn polled(&mut self, at: Timestamp, actions: &[Action], engine: &Engine) {
        self.journal(|journal| {
            journal.poll(at, actions).unwrap();
            if journal.wants_checkpoint() {
                journal.checkpoint(at, &engine.checkpoint(), &Policies::default()).unwrap();
            }
        });
    }
}

/// Stories here apply nothing.
struct NoFiles;

impl Manifests for NoFiles {
    fn load(&mut self, file: &str) -> Result<Vec<ScenarioObject>, String> {
        Err(format!("there is no {file}"))
    }

    fn set(&mut self, object: &ObjectName, path: &str, _value: &str) -> Result<Vec<ScenarioObject>, String> {
        Err(format!("{object} has no {path}"))
    }
}

fn deployment(name: &str, replicas: u32, milli: i64) -> ScenarioObject {
    let key = PodKey::new("default", name);
    let labels = Labels::from([("app".to_owned(), name.to_owned())]);
    let template = Pod { key: key.clone(), labels: labels.clone(), unschedulable: false, uid: String::new(), ..pod(0, milli) };
    let (kind, selector) = (WorkloadKind::Deployment, LabelSelector::of_labels(&labels));
    ScenarioObject::Workload(Box::new(Workload {
        kind,
        key,
        replicas,
        completions: None,
        template,
        selector,
        ordered: false,
        claims: Vec::new(),
    }))
}

fn world() -> Scenario {
    let mut pool = pool();
    pool.disruption = Disruption { consolidate_after: Some(Duration::minutes(1)), ..Disruption::default() };
    let all = vec![Toleration { key: None, exists: true, value: String::new(), effect: None }];
    let key = PodKey::new("kube-system", "agent");
    let agent = Pod { key: key.clone(), tolerations: all, priority: 1_000, uid: String::new(), unschedulable: false, ..pod(0, 100) };
    let class = NodeClass { name: "default".into(), not_ready: None, ..NodeClass::default() };
    let objects = vec![
        ScenarioObject::NodeClass(class, catalog(40_000), ComesTo::default()),
        ScenarioObject::NodePool(Box::new(pool)),
        ScenarioObject::DaemonSet(Box::new(DaemonSet { key, template: agent, containers: None })),
        deployment("web", 5, 900),
        deployment("api", 4, 1_500),
    ];
    Scenario { objects, given: Given { prices: String::new(), price_region: String::new(), spot: String::new() } }
}

/// A day without capacity may come.
const LIFE: &str = "wait 3m\nscale deployment/web 9\nwait 3m\nscale deployment/api 1\nwait 4m\n\
    until pods running within 30h\nuntil settled within 30h\ndelete deployment/web\ndelete deployment/api\n\
    until nodes 0 within 30h\nuntil settled within 30h";

#[test]
fn a_life_in_any_weather_is_replayed_from_wherever_one_begins() {
    let (mut begun, mut crashed) = (0, 0);
    for seed in 0..12 {
        let folder = Folder::new();
        let limits = Limits { segment_bytes: 2 << 10, total_bytes: 64 << 20 };
        let desk = Desk(Rc::new(RefCell::new(Some(Journal::open(&folder.0, limits).unwrap()))));
        let weather = Weather::drawn(seed);
        let simulation = Simulation::new(world(), Settings::default(), seed, weather);
        let mut simulation = simulation.with_recorder(Box::new(desk.clone()));
        simulation.run(&Story::parse(LIFE).unwrap(), &mut NoFiles, &mut ()).unwrap();
        desk.0.take().unwrap().close().unwrap();
        let end = simulation.engine().checkpoint();
        let all = segments(&folder.0).unwrap();
        // From the first, the last, and some between: all of all would be thousands.
        for (number, _) in all.iter().step_by(all.len() / 5 + 1).chain(all.last()) {
            let replayed = replay(&folder.0, Some(*number)).unwrap();
            assert!(matches!(replayed.end, End::Same), "seed {seed}, weather {weather}, from {number}: {:?}", replayed.end);
            assert_eq!(replayed.engine.checkpoint(), end, "seed {seed}, weather {weather}, from {number}");
        }
        begun += all.len();
        crashed += u32::from(weather.crashes);
    }
    assert!(begun > 100 && crashed > 0, "{begun} segments, {crashed} crashes");
}
