//! The election: keeps a [`Candidate`] going against the API server, and the gate open exactly while it leads.
//!
//! What must not enter: who may lead ([`super::lease`] says that), what a leader does.

use std::future::Future;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff;
use kube::Client;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::door::{Answer, Call, Door};
use super::gate::Gate;
use super::lease::{Candidate, LeaseRecord, LeaseTimes, Next};

/// One candidate in the election of the controller that writes.
pub struct Election {
    door: Door,
    gate: Gate,
    namespace: String,
    name: String,
    candidate: Candidate,
    times: LeaseTimes,
    start: Instant,
    complaint: String,
}

impl Election {
    /// A candidate on `host` for the Lease `namespace`/`name`; `gate` is opened while it leads. Karpenter's name is
    /// `karpenter-leader-election`: with it the two never lead at once.
    #[must_use]
    pub fn new(client: Client, gate: Gate, namespace: &str, name: &str, host: &str, times: LeaseTimes) -> Self {
        Self {
            door: Door::new(client, gate.clone(), "whittle"),
            gate,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            candidate: Candidate::new(&identity(host), times),
            times,
            start: Instant::now(),
            complaint: String::new(),
        }
    }

    /// Stands for election until `stop`. Then it closes the gate, waits for `settled`, when nothing is under way
    /// any more ([`super::Writer::settled`]), and lets go of the lease, so that another need not wait for its end.
    pub async fn run(mut self, stop: impl Future<Output = ()>, settled: impl Future<Output = ()>) {
        {
            let standing = self.stand();
            tokio::pin!(standing, stop);
            tokio::select! {
                () = &mut standing => {}
                () = &mut stop => {}
            }
        }
        self.gate.close();
        let in_time = timeout(self.patience(), settled).await.is_ok();
        if let Some((record, version)) = self.candidate.release().filter(|_| in_time) {
            let call = Call::merge(self.path(), json!({ "metadata": { "resourceVersion": version }, "spec": spec(&record) }));
            // Whether or not it succeeds, the lease ends by itself.
            let _ = timeout(self.times.retry, self.door.once(&call)).await;
        }
    }

    async fn stand(&mut self) {
        loop {
            let now = self.start.elapsed();
            let next = self.candidate.next(now);
            let again = match next {
                Next::Read => self.read().await,
                Next::Create(record) => {
                    let record = dated(record);
                    let body = json!(Lease {
                        metadata: ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() },
                        spec: Some(spec(&record)),
                    });
                    self.write(now, record, Call::create(self.all(), body)).await
                }
                Next::Write { record, version } => {
                    let record = dated(record);
                    let patch = json!({ "metadata": { "resourceVersion": version }, "spec": spec(&record) });
                    self.write(now, record, Call::merge(self.path(), patch)).await
                }
                Next::Wait => false,
            };
            self.turn_gate();
            if !again {
                self.guarded(sleep(self.times.retry)).await;
            }
        }
    }

    /// Whether something is to be done with what was read.
    async fn read(&mut self) -> bool {
        let path = self.path();
        let door = self.door.clone();
        let answer = self.guarded(timeout(self.patience(), door.read_once(&path))).await;
        let now = self.start.elapsed();
        match self.plain("read", answer) {
            Some(Ok(lease)) => {
                let seen = known(lease);
                let readable = seen.is_some();
                if readable {
                    self.candidate.saw(now, seen);
                }
                readable
            }
            Some(Err(status)) if status.is_not_found() => {
                self.candidate.saw(now, None);
                true
            }
            Some(Err(status)) => self.complain("read", &status.message),
            None => false,
        }
    }

    /// False: after a write, whatever came of it, there is a pause.
    async fn write(&mut self, sent: Duration, record: LeaseRecord, call: Call) -> bool {
        let door = self.door.clone();
        let answer = self.guarded(timeout(self.patience(), door.once(&call))).await;
        match self.plain("write", answer) {
            Some(Ok(lease)) => match known(lease) {
                Some((_, version)) => self.candidate.wrote(sent, record, version),
                None => self.candidate.failed(),
            },
            Some(Err(status)) => {
                self.candidate.failed();
                if !status.is_conflict() && !status.is_already_exists() {
                    self.complain("write", &status.message);
                }
            }
            None => self.candidate.failed(),
        }
        false
    }

    /// Does `work`, and closes the gate in between if leading ends meanwhile.
    async fn guarded<T>(&self, work: impl Future<Output = T>) -> T {
        let end = self.candidate.leads_until().map(|end| self.start + end);
        tokio::pin!(work);
        if let Some(end) = end {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = sleep_until(end) => self.lost(),
            }
        }
        work.await
    }

    fn turn_gate(&mut self) {
        let end = self.candidate.leads_until().map(|end| self.start + end).filter(|end| *end > Instant::now());
        let Some(end) = end else { return self.lost() };
        if !self.gate.is_open() {
            tracing::info!(lease = %self.name, namespace = %self.namespace, "leading");
            self.complaint.clear();
        }
        self.gate.open_until(end);
    }

    fn lost(&self) {
        if self.gate.close() {
            tracing::warn!(lease = %self.name, namespace = %self.namespace, "no longer leading");
        }
    }

    /// The answer, if there is one; otherwise the reason is told.
    fn plain(&mut self, attempt: &str, answer: Result<Result<Answer, kube::Error>, tokio::time::error::Elapsed>) -> Option<Answer> {
        match answer {
            Ok(Ok(answer)) => return Some(answer),
            Ok(Err(error)) => self.complain(attempt, &error.to_string()),
            Err(_) => self.complain(attempt, "no answer in time"),
        };
        None
    }

    /// Tells why the lease could not be had, once for each reason.
    fn complain(&mut self, attempt: &str, why: &str) -> bool {
        if self.complaint != why {
            why.clone_into(&mut self.complaint);
            tracing::warn!(lease = %self.name, namespace = %self.namespace, "cannot {attempt} the lease: {why}; tried again");
        }
        false
    }

    /// Half the time in which a leader must renew: one request that hangs leaves room for another.
    fn patience(&self) -> Duration {
        self.times.renew_deadline / 2
    }

    fn all(&self) -> String {
        format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", self.namespace)
    }

    fn path(&self) -> String {
        format!("{}/{}", self.all(), self.name)
    }
}

/// `<host>_<uuid>`, different each time.
fn identity(host: &str) -> String {
    // The standard library seeds its hash keys from the system's randomness.
    let random = || RandomState::new().build_hasher().finish();
    let (high, low) = (random(), random());
    format!(
        "{host}_{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xfff,
        low >> 48 & 0x3fff | 0x8000,
        low & 0xffff_ffff_ffff
    )
}

fn dated(mut record: LeaseRecord) -> LeaseRecord {
    let now = jiff::Timestamp::now().to_string();
    if record.acquired.is_empty() {
        record.acquired.clone_from(&now);
    }
    record.renewed = now;
    record
}

fn spec(record: &LeaseRecord) -> LeaseSpec {
    let time = |text: &str| text.parse().ok().map(MicroTime);
    LeaseSpec {
        holder_identity: Some(record.holder.clone()),
        lease_duration_seconds: i32::try_from(record.duration.as_secs()).ok(),
        lease_transitions: Some(record.transitions),
        acquire_time: time(&record.acquired),
        renew_time: time(&record.renewed),
        ..LeaseSpec::default()
    }
}

/// What a Lease says, and its version.
fn known(lease: Value) -> Option<(LeaseRecord, String)> {
    let lease: Lease = serde_json::from_value(lease).ok()?;
    let spec = lease.spec.unwrap_or_default();
    let time = |at: Option<MicroTime>| at.map(|at| at.0.to_string()).unwrap_or_default();
    let record = LeaseRecord {
        holder: spec.holder_identity.unwrap_or_default(),
        duration: Duration::from_secs(u64::try_from(spec.lease_duration_seconds.unwrap_or(0)).unwrap_or(0)),
        transitions: spec.lease_transitions.unwrap_or(0),
        acquired: time(spec.acquire_time),
        renewed: time(spec.renew_time),
    };
    Some((record, lease.metadata.resource_version?))
}
