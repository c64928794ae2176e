//! The lease: one leads, the other takes over, and at no time two.

use std::time::Duration;

use proptest::prelude::*;
use tokio::sync::oneshot;
use tokio::time::sleep;
use whittle_cluster::write::{Candidate, Election, Gate, LeaseRecord, LeaseTimes, Next};

use super::fake::{Fake, status};

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/karpenter-leader-election";

struct Controller {
    gate: Gate,
    stop: Option<oneshot::Sender<()>>,
    task: tokio::task::JoinHandle<()>,
}

fn start(fake: &Fake, host: &str) -> Controller {
    let gate = Gate::new();
    let election = Election::new(fake.client(), gate.clone(), "kube-system", "karpenter-leader-election", host, LeaseTimes::default());
    let (stop, stopped) = oneshot::channel();
    let stopped = async {
        let _ = stopped.await;
    };
    let task = tokio::spawn(election.run(stopped, async {}));
    Controller { gate, stop: Some(stop), task }
}

fn holder(fake: &Fake) -> String {
    let lease = fake.get(LEASE).unwrap_or_default();
    lease["spec"]["holderIdentity"].as_str().unwrap_or_default().split('_').next().unwrap_or_default().to_owned()
}

async fn seconds(seconds: u64) {
    sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn the_first_leads_and_hands_over_when_it_stops() {
    let fake = Fake::default();
    let mut a = start(&fake, "a");
    seconds(5).await;
    let b = start(&fake, "b");
    seconds(60).await;
    assert!(a.gate.is_open() && !b.gate.is_open());
    assert_eq!(holder(&fake), "a");
    let spec = fake.get(LEASE).unwrap()["spec"].clone();
    assert_eq!((spec["leaseDurationSeconds"].as_i64(), spec["leaseTransitions"].as_i64()), (Some(15), Some(0)));
    a.stop.take().unwrap().send(()).unwrap();
    a.task.await.unwrap();
    assert!(!a.gate.is_open());
    assert_eq!(holder(&fake), "");
    seconds(3).await;
    assert!(b.gate.is_open(), "what was let go need not be waited for");
    assert_eq!(fake.get(LEASE).unwrap()["spec"]["leaseTransitions"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_dies_is_followed_after_its_time() {
    let fake = Fake::default();
    let a = start(&fake, "a");
    seconds(5).await;
    let b = start(&fake, "b");
    seconds(5).await;
    a.task.abort();
    seconds(10).await;
    assert!(!b.gate.is_open(), "the record is respected for 15 s");
    seconds(9).await;
    assert!(b.gate.is_open());
    assert_eq!(holder(&fake), "b");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_stops_in_time_and_comes_back() {
    let fake = Fake::default();
    let a = start(&fake, "a");
    seconds(5).await;
    let term = a.gate.opened().await;
    for _ in 0..8 {
        fake.answer_next(Some(status(503, "ServiceUnavailable", "away")));
    }
    seconds(8).await;
    assert!(a.gate.is_open());
    seconds(3).await;
    assert!(!a.gate.is_open(), "10 s after the last renewal");
    a.gate.ended(term).await;
    seconds(10).await;
    assert!(a.gate.is_open());
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_sees_another_stops_at_once() {
    let fake = Fake::default();
    let a = start(&fake, "a");
    seconds(5).await;
    let mut lease = fake.get(LEASE).unwrap();
    lease["spec"]["holderIdentity"] = "karpenter_1".into();
    fake.put(LEASE, lease);
    seconds(5).await;
    assert!(!a.gate.is_open());
    assert_eq!(holder(&fake), "karpenter");
}

/// Two candidates, a server, and messages that are late or lost. Clocks start at different times.
struct World {
    now: u64,
    lease: Option<(LeaseRecord, u64)>,
    version: u64,
    twins: [Twin; 2],
}

struct Twin {
    candidate: Candidate,
    clock: u64,
    request: Option<(Duration, Next)>,
    reply: Option<(Duration, Next, Reply)>,
    strays: Vec<Next>,
}

enum Reply {
    Saw(Option<(LeaseRecord, String)>),
    Wrote(Option<String>),
}

#[derive(Debug, Clone, Copy)]
enum Happens {
    Time(u64),
    Ask(usize),
    Arrive(usize),
    Answer(usize),
    GiveUp(usize),
    Stray(usize),
    Release(usize),
}

impl World {
    fn new(clock: u64) -> Self {
        let twin = |name: &str, clock| Twin {
            candidate: Candidate::new(name, LeaseTimes::default()),
            clock,
            request: None,
            reply: None,
            strays: Vec::new(),
        };
        Self { now: 0, lease: None, version: 0, twins: [twin("a", 0), twin("b", clock)] }
    }

    fn happens(&mut self, what: Happens) {
        let now = self.now;
        match what {
            Happens::Time(span) => self.now += span,
            Happens::Ask(who) => {
                let twin = &mut self.twins[who];
                if twin.request.is_none() && twin.reply.is_none() {
                    let local = twin.local(now);
                    let next = twin.candidate.next(local);
                    twin.request = (next != Next::Wait).then_some((local, next));
                }
            }
            Happens::Arrive(who) => {
                if let Some((sent, next)) = self.twins[who].request.take() {
                    let reply = self.serve(&next);
                    self.twins[who].reply = Some((sent, next, reply));
                }
            }
            Happens::Answer(who) => {
                let twin = &mut self.twins[who];
                if let Some((sent, next, reply)) = twin.reply.take() {
                    let local = twin.local(now);
                    match (reply, next) {
                        (Reply::Saw(lease), _) => twin.candidate.saw(local, lease),
                        (Reply::Wrote(Some(version)), Next::Create(record) | Next::Write { record, .. }) => {
                            twin.candidate.wrote(sent, record, version);
                        }
                        (Reply::Wrote(_), _) => twin.candidate.failed(),
                    }
                }
            }
            Happens::GiveUp(who) => {
                // Nobody waits for the answer any more, but the request may still arrive.
                let twin = &mut self.twins[who];
                twin.candidate.failed();
                twin.reply = None;
                twin.strays.extend(twin.request.take().map(|(_, next)| next));
            }
            Happens::Stray(who) => {
                if let Some(next) = self.twins[who].strays.pop() {
                    self.serve(&next);
                }
            }
            Happens::Release(who) => {
                if self.twins[who].request.is_none()
                    && let Some((record, version)) = self.twins[who].candidate.release()
                {
                    self.serve(&Next::Write { record, version });
                }
            }
        }
    }

    fn serve(&mut self, next: &Next) -> Reply {
        let (record, allowed) = match next {
            Next::Read | Next::Wait => {
                return Reply::Saw(self.lease.as_ref().map(|(record, version)| (record.clone(), version.to_string())));
            }
            Next::Create(record) => (record, self.lease.is_none()),
            Next::Write { record, version } => (record, self.lease.as_ref().is_some_and(|(_, live)| live.to_string() == *version)),
        };
        if !allowed {
            return Reply::Wrote(None);
        }
        self.version += 1;
        self.lease = Some((record.clone(), self.version));
        Reply::Wrote(Some(self.version.to_string()))
    }

    fn leaders(&self) -> usize {
        self.twins.iter().filter(|twin| twin.candidate.leads(twin.local(self.now))).count()
    }
}

impl Twin {
    fn local(&self, now: u64) -> Duration {
        Duration::from_millis(now + self.clock)
    }
}

fn happens() -> impl Strategy<Value = Happens> {
    let who = 0..2usize;
    prop_oneof![
        4 => (1..3000u64).prop_map(Happens::Time),
        1 => (3000..20_000u64).prop_map(Happens::Time),
        6 => who.clone().prop_map(Happens::Ask),
        6 => who.clone().prop_map(Happens::Arrive),
        6 => who.clone().prop_map(Happens::Answer),
        1 => who.clone().prop_map(Happens::GiveUp),
        1 => who.clone().prop_map(Happens::Stray),
        1 => who.prop_map(Happens::Release),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn two_never_lead_at_once(clock in 0..1_000_000u64, all in proptest::collection::vec(happens(), 1..200)) {
        let mut world = World::new(clock);
        for what in all {
            world.happens(what);
            prop_assert!(world.leaders() < 2, "{what:?} at {}", world.now);
        }
    }

    #[test]
    fn once_all_is_well_somebody_leads(clock in 0..1_000_000u64, all in proptest::collection::vec(happens(), 1..200)) {
        let mut world = World::new(clock);
        for what in all {
            world.happens(what);
        }
        for _ in 0..20 {
            for who in [0, 1] {
                for _ in 0..2 {
                    for what in [Happens::Arrive(who), Happens::Answer(who), Happens::Ask(who), Happens::Arrive(who), Happens::Answer(who)] {
                        world.happens(what);
                    }
                }
            }
            world.happens(Happens::Time(2000));
        }
        prop_assert_eq!(world.leaders(), 1);
    }
}
