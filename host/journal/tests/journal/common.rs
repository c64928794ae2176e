//! A cluster in a few words, an engine that is told of it with a journal beside it, and folders.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use whittle_engine::{Engine, Report};
use whittle_journal::{Entry, Journal, JournalError, Judges, Limits, Modules, Policies, Replay, Replayed, Segment, Witness, segments};
use whittle_model::resources::{CPU, MEMORY, PODS};
use whittle_model::{
    Action, CapacityType, Catalog, Event, InstanceType, Labels, ListPrice, Micros, NodeClass, NodePool, Offering, Outcome, Pod, PodKey,
    Requirement, Resources, Scorer, Settings, Template, Timestamp, keys,
};

/// A folder that is gone when dropped.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("whittle-journal-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// The files of the segments.
    pub fn segments(&self) -> Vec<PathBuf> {
        segments(&self.0).unwrap().into_iter().map(|(_, path)| path).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn catalog(price: i64) -> Arc<Catalog> {
    let types = [("c1.large", 2), ("c1.xlarge", 4)].map(|(name, cores)| InstanceType {
        name: name.into(),
        labels: Labels::from([
            (keys::INSTANCE_TYPE.into(), name.into()),
            (keys::ARCH.into(), "amd64".into()),
            (keys::OS.into(), "linux".into()),
        ]),
        requirements: Arc::default(),
        capacity: Resources::of(&[(CPU, cores * 1000), (MEMORY, cores << 31), (PODS, 20)]),
        allocatable: Resources::of(&[(CPU, cores * 1000 - 100), (MEMORY, cores << 31), (PODS, 20)]),
        offerings: vec![Offering {
            zone: "us-east-1a".into(),
            zone_id: String::new(),
            capacity_type: CapacityType::OnDemand,
            price: Micros(price * cores),
            available: true,
            reservation: None,
        }],
    });
    Arc::new(Catalog { node_class: "default".into(), region: "us-east-1".into(), price_region: "us-east-1".into(), types: types.into() })
}

pub fn pool() -> NodePool {
    let requirements = [Requirement::any_of(keys::CAPACITY_TYPE, &["on-demand"])].into_iter().collect();
    NodePool {
        name: "default".into(),
        uid: "uid-default".into(),
        template: Template { requirements, node_class: "default".into(), ..Template::default() },
        ..NodePool::default()
    }
}

pub fn pod(number: usize, milli: i64) -> Pod {
    Pod {
        key: PodKey::new("default", &format!("pod-{number}")),
        uid: format!("uid-{number}"),
        unschedulable: true,
        requests: Resources::of(&[(CPU, milli), (MEMORY, 64 << 20), (PODS, 1)]),
        ..Pod::default()
    }
}

/// What a controller reads when it starts.
pub fn beginning() -> Vec<Event> {
    let class = NodeClass { name: "default".into(), not_ready: None, ..NodeClass::default() };
    let pool = Event::NodePool(Box::new(pool()));
    vec![Event::Settings(Settings::default()), Event::NodeClass(class), Event::Catalog(catalog(40_000)), pool, Event::Synced]
}

/// An engine with a journal beside it.
pub struct Desk {
    pub engine: Engine,
    pub journal: Journal,
    pub now: Timestamp,
    pub polls: usize,
    pub actions: usize,
}

impl Desk {
    pub fn new(dir: &Path, limits: Limits) -> Self {
        let mut journal = Journal::open(dir, limits).unwrap();
        let (engine, now) = (Engine::new(), Timestamp(1_000));
        assert!(journal.wants_checkpoint());
        journal.checkpoint(now, &engine.checkpoint(), &Policies::default()).unwrap();
        Self { engine, journal, now, polls: 0, actions: 0 }
    }

    pub fn tell(&mut self, event: &Event) {
        self.journal.event(self.now, event).unwrap();
        self.engine.handle(event, self.now);
    }

    /// Time passes, the engine is polled, and what it wants of claims is answered at once.
    pub fn pass(&mut self, millis: i64) {
        self.now = Timestamp(self.now.0 + millis);
        let actions = self.engine.poll(self.now, &mut ListPrice);
        self.engine.take_reports();
        self.journal.poll(self.now, &actions).unwrap();
        self.polls += 1;
        self.actions += actions.len();
        if self.journal.wants_checkpoint() {
            self.journal.checkpoint(self.now, &self.engine.checkpoint(), &Policies::default()).unwrap();
        }
        for action in actions {
            if let Action::CreateClaim(claim) = action {
                self.tell(&Event::Claim(claim));
            } else if let Action::Launch { claim, .. } = action {
                let failure = whittle_model::LaunchFailure::Other("Throttled".into(), "later".into());
                self.tell(&Event::Outcome(Box::new(Outcome::LaunchFailed { claim, failure })));
            }
        }
    }

    /// A cluster that grows by a pod of changing size at each of `rounds`.
    pub fn grow(&mut self, rounds: usize) {
        for event in beginning() {
            self.tell(&event);
        }
        for number in 0..rounds {
            self.tell(&Event::Pod(Box::new(pod(number, 300 + 70 * (i64::try_from(number).unwrap() % 11)))));
            if number % 7 == 3 {
                self.tell(&Event::Catalog(catalog(40_000 + i64::try_from(number % 3).unwrap())));
            }
            if number % 5 == 4 {
                self.tell(&Event::PodGone(PodKey::new("default", &format!("pod-{}", number - 3))));
            }
            self.pass(1_500);
        }
    }
}

/// A grown cluster's journal.
pub fn grown(limits: Limits, rounds: usize) -> (Folder, Desk) {
    let folder = Folder::new();
    let mut desk = Desk::new(&folder.0, limits);
    desk.grow(rounds);
    (folder, desk)
}

/// All of a segment, or its error.
pub fn read(path: &Path) -> Result<(Vec<Entry>, Option<u64>), JournalError> {
    let mut segment = Segment::open(path)?;
    let entries = segment.by_ref().collect::<Result<Vec<Entry>, JournalError>>()?;
    Ok((entries, segment.cut()))
}

/// List prices decide.
#[derive(Default)]
pub struct Plain(ListPrice);

impl Judges for Plain {
    fn put(&mut self, _policies: &Policies, _modules: &Modules) -> Result<(), String> {
        Ok(())
    }

    fn scorer(&mut self) -> &mut dyn Scorer {
        &mut self.0
    }
}

/// Counts what it sees.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub restored: usize,
    pub told: usize,
    pub polled: usize,
    pub reports: usize,
}

impl Witness for Count {
    fn restored(&mut self, _at: Timestamp, _engine: &Engine) {
        self.restored += 1;
    }

    fn told(&mut self, _at: Timestamp, _event: &Event) {
        self.told += 1;
    }

    fn polled(&mut self, _at: Timestamp, _actions: &[Action], reports: Vec<Report>, _engine: &Engine) {
        self.polled += 1;
        self.reports += reports.len();
    }
}

pub fn replay(dir: &Path, from: Option<u64>) -> Result<Replayed, JournalError> {
    Replay::run(dir, from, &mut Plain::default(), &mut Count::default())
}
