//! Whatever answers are lost, orders repeated and controllers killed: no claim gets two instances, and in the end each
//! has one.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use proptest::prelude::*;
use whittle_cloud::fleet::{Fleet, LaunchOrder};
use whittle_model::Outcome;

use super::{
    ec2::{Ec2, Fault},
    orders::{NOW, fleet, order},
};

/// What happens in one run.
#[derive(Debug, Clone)]
enum Step {
    /// The engine orders these claims, by number.
    Order(Vec<usize>),
    /// The next fleets go wrong.
    Fail(Fault),
    /// Time passes.
    Wait(u64),
    /// The controller is killed and starts again.
    Crash,
}

fn step() -> impl Strategy<Value = Step> {
    let fault = prop_oneof![
        3 => Just(Fault::AnswerLost),
        2 => Just(Fault::RequestLost),
        1 => Just(Fault::Refused("RequestLimitExceeded")),
        1 => Just(Fault::Refused("InvalidParameterValue")),
    ];
    prop_oneof![
        4 => proptest::collection::vec(0..CLAIMS, 1..4).prop_map(Step::Order),
        3 => fault.prop_map(Step::Fail),
        1 => (0..60u64).prop_map(Step::Wait),
        2 => Just(Step::Crash),
    ]
}

const CLAIMS: usize = 4;

/// A controller: what it wrote down outlives it.
struct Controller {
    runtime: tokio::runtime::Runtime,
    fleet: Arc<Fleet>,
    /// Claims that this life has ordered before.
    ordered: BTreeSet<usize>,
    restarted: bool,
}

type Record = Arc<Mutex<BTreeMap<usize, String>>>;

impl Controller {
    fn start(ec2: &Ec2, restarted: bool) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let fleet = Arc::new(runtime.block_on(fleet(ec2)));
        Self { runtime, fleet, ordered: BTreeSet::new(), restarted }
    }

    /// As the engine: a claim that may have been ordered before is looked for first.
    fn order(&mut self, claim: usize, record: &Record) -> tokio::task::JoinHandle<()> {
        let adopt = !self.ordered.insert(claim) || self.restarted;
        let taken = record.lock().unwrap().iter().filter(|(other, _)| **other != claim).map(|(_, id)| id.clone()).collect();
        let order = LaunchOrder { adopt, taken, ..order(&format!("c-{claim}")) };
        let (fleet, record) = (self.fleet.clone(), record.clone());
        self.runtime.spawn(async move {
            if let Outcome::Launched(launched) = fleet.launch(order, NOW).await {
                record.lock().unwrap().entry(claim).or_insert(launched.provider_id);
            }
        })
    }
}

fn run(steps: &[Step], hidden: u32) {
    let ec2 = Ec2::start();
    ec2.with(|state| state.hidden = hidden);
    let record: Record = Arc::default();
    let mut controller = Controller::start(&ec2, false);
    for step in steps {
        match step {
            Step::Order(claims) => {
                for claim in claims.iter().filter(|claim| !record.lock().unwrap().contains_key(claim)).collect::<Vec<_>>() {
                    controller.order(*claim, &record);
                }
            }
            Step::Fail(fault) => ec2.fail("CreateFleet", fault.clone()),
            Step::Wait(millis) => std::thread::sleep(Duration::from_millis(*millis)),
            Step::Crash => {
                controller.runtime.shutdown_background();
                controller = Controller::start(&ec2, true);
            }
        }
    }
    ec2.with(|state| state.faults.clear());
    for _ in 0..10 {
        let open: Vec<usize> = (0..CLAIMS).filter(|claim| !record.lock().unwrap().contains_key(claim)).collect();
        let waiting: Vec<_> = open.into_iter().map(|claim| controller.order(claim, &record)).collect();
        for task in waiting {
            controller.runtime.block_on(task).unwrap();
        }
    }
    controller.runtime.shutdown_background();
    let owned: BTreeSet<String> = record.lock().unwrap().values().cloned().collect();
    let running: BTreeSet<String> = ec2.running().iter().map(|machine| format!("aws:///{}/{}", machine.zone, machine.id)).collect();
    assert_eq!(owned.len(), CLAIMS, "each claim has one of its own: {record:?}");
    assert_eq!(running, owned, "and there is no other");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_claim_gets_two_instances(steps in proptest::collection::vec(step(), 1..14), hidden in 0..2u32) {
        run(&steps, hidden);
    }
}
