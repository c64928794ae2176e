//! Carries orders out. Orders about one object stay in order, others go side by side; what came of an order to buy or
//! to end goes back to the engine as an event. What must not enter: whether an order is wise.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc;
use whittle_cloud::CloudError;
use whittle_cloud::fleet::{Ended, Fleet, LaunchOrder, LaunchSettings};
use whittle_cluster::write::{EventKind, Gate, Recorder, WriteError, Writer, Written};
use whittle_model::{Action, Event, LaunchFailure, NodeClaim, OfferingKey, Outcome};

use crate::brain::Inbox;
use crate::clock;
use crate::metrics::Metrics;
use crate::orders::{self, Order};
use crate::shelf::{PROFILE, Shelf};
use crate::voice;

/// As many objects are written side by side: what a small API server answers without a queue.
const SIDE_BY_SIDE: usize = 32;
/// An ending instance is asked about this often, as Karpenter does.
const ASK_AGAIN: std::time::Duration = std::time::Duration::from_secs(5);

/// The doors, and what they need.
pub struct Doors {
    /// Writes to Kubernetes.
    pub writer: Arc<Writer>,
    /// Closed while another replica acts.
    pub gate: Gate,
    /// Kubernetes events.
    pub recorder: Recorder,
    /// Instances.
    pub fleet: Arc<Fleet>,
    /// What launches take from elsewhere.
    pub shelf: Shelf,
    /// Where outcomes go.
    pub inbox: mpsc::Sender<Inbox>,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// Settings that bear on launches.
    pub launch: LaunchSettings,
    /// Certificate bundle of the cluster, for hashes of classes.
    pub ca_bundle: Option<String>,
    /// Claims whose instance is being ended: an order that is given again waits for the first.
    pub ending: Mutex<BTreeSet<String>>,
}

/// Hands orders to the tasks that carry them out, until there are none any more.
pub async fn work(doors: Arc<Doors>, mut orders: mpsc::Receiver<Order>) {
    let shards: Vec<mpsc::Sender<Order>> = (0..SIDE_BY_SIDE).map(|_| shard(&doors)).collect();
    while let Some(order) = orders.recv().await {
        let mut hasher = DefaultHasher::new();
        order.object().hash(&mut hasher);
        let at = usize::try_from(hasher.finish() % SIDE_BY_SIDE as u64).unwrap_or(0);
        if shards[at].send(order).await.is_err() {
            return;
        }
    }
}

fn shard(doors: &Arc<Doors>) -> mpsc::Sender<Order> {
    let (sender, mut orders) = mpsc::channel(256);
    let doors = Arc::clone(doors);
    tokio::spawn(async move {
        while let Some(order) = orders.recv().await {
            doors.carry_out(order).await;
        }
    });
    sender
}

impl Doors {
    async fn carry_out(self: &Arc<Self>, order: Order) {
        let doors = Arc::clone(self);
        match order {
            Order::Cluster(action) => self.write(action).await,
            // Calls to AWS gather into batches while they wait, so none waits for another.
            Order::Launch { claim, adopt, taken, sold_out } => {
                tokio::spawn(async move { doors.launch(*claim, adopt, taken, sold_out).await });
            }
            Order::Terminate { claim, provider_id } => {
                tokio::spawn(async move { doors.terminate(claim, provider_id).await });
            }
            Order::Tag { claim, node, provider_id } => {
                tokio::spawn(async move {
                    let done = if doors.gate.is_open() { doors.fleet.tag(&provider_id, &node, &claim).await } else { Ok(()) };
                    doors.told("tag", &claim, done);
                });
            }
            Order::Stray { provider_id } => {
                tokio::spawn(async move {
                    tracing::warn!(provider_id = provider_id, "no NodeClaim stands for this instance; it is ended");
                    let done = if doors.gate.is_open() { doors.fleet.terminate(&provider_id).await.map(drop) } else { Ok(()) };
                    doors.told("terminate", &provider_id, done);
                });
            }
        }
    }

    async fn tell(&self, outcome: Outcome) {
        // The brain ends only with the process.
        let _ = self.inbox.send(Inbox::Event(Event::Outcome(Box::new(outcome)))).await;
    }

    fn told(&self, what: &'static str, object: &str, done: Result<(), CloudError>) {
        if let Err(error) = done {
            self.metrics.refused("cloud", what);
            tracing::warn!(object = object, error = %voice::chain(&error), "AWS did not do what was asked");
        }
    }

    async fn write(&self, mut action: Action) {
        if let Action::CreateClaim(claim) = &mut action
            && let Some(profile) = self.shelf.profile_of(&claim.node_class)
        {
            claim.annotations.insert(PROFILE.to_owned(), profile);
        }
        let stamps = self.shelf.stamps(&action, self.ca_bundle.as_deref());
        match self.writer.apply(&action, &stamps).await {
            Ok(Written::Blocked(why)) => {
                if let Action::Evict { pod, .. } = &action {
                    self.recorder.note(voice::about_pod(&self.shelf, pod, EventKind::Warning, "FailedDraining", &why));
                }
            }
            Ok(Written::Done | Written::Already | Written::Stale | Written::NotMine) | Err(WriteError::NotLeader { .. }) => {}
            Err(error) => {
                self.metrics.refused("cluster", orders::name(&action));
                tracing::warn!(error = %voice::chain(&error), "the API server did not do what was asked; it is asked again");
            }
        }
    }

    async fn launch(&self, claim: NodeClaim, adopt: bool, taken: BTreeSet<String>, sold_out: BTreeSet<OfferingKey>) {
        let name = claim.name.clone();
        let ready = self.shelf.open().classes.get(&claim.node_class).cloned();
        let Some(ready) = ready else {
            let why = format!("EC2NodeClass {} is not resolved yet", claim.node_class);
            let failure = LaunchFailure::Other("NodeClassReadinessUnknown".to_owned(), why);
            return self.tell(Outcome::LaunchFailed { claim: name, failure }).await;
        };
        if !self.gate.is_open() {
            return;
        }
        let (class, catalog) = (ready.class, ready.catalog);
        let order = LaunchOrder { claim, adopt, taken, class, catalog, sold_out, settings: self.launch };
        let outcome = self.fleet.launch(order, clock::now()).await;
        self.tell(outcome).await;
    }

    /// Ends an instance and waits until it has ended. A claim without a known instance has none that is its own: one
    /// whose answer was lost is found as a stray.
    async fn terminate(&self, claim: String, provider_id: String) {
        if !self.ending().insert(claim.clone()) {
            return;
        }
        let ended = self.end(&provider_id).await;
        self.ending().remove(&claim);
        match ended {
            Ok(true) => self.tell(Outcome::InstanceGone { claim }).await,
            Ok(false) => {}
            Err(error) => self.told("terminate", &claim, Err(error)),
        }
    }

    fn ending(&self) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
        // Each change is whole by itself.
        self.ending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the instance has ended; false when another replica leads by now.
    async fn end(&self, provider_id: &str) -> Result<bool, CloudError> {
        while !provider_id.is_empty() {
            if !self.gate.is_open() {
                return Ok(false);
            }
            match self.fleet.terminate(provider_id).await? {
                Ended::Gone => break,
                Ended::Going => tokio::time::sleep(ASK_AGAIN).await,
            }
        }
        Ok(true)
    }
}
