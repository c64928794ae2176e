//! The engine on a thread of its own: events in, orders out, and everything it was told into the journal first.
//! What must not enter: waiting for a door; orders leave through a bounded queue and their outcomes come back as events.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration as Span, Instant};

use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use whittle_engine::{BufferRoom, Engine, OverlayVerdict, Report};
use whittle_journal::{Journal, PolicyStanding};
use whittle_model::{Action, Event, NodeClaim, PodKey, Resources, Timestamp};
use whittle_policy::{Chains, Member};

use crate::census;
use crate::clock;
use crate::metrics::Metrics;
use crate::orders::{self, Order};
use crate::settings::Mode;

/// Events of one burst are taken together: two watches show what one write did within this time.
const BURST: Span = Span::from_millis(10);
/// The most events that are taken before orders are given out.
const MOST_AT_ONCE: usize = 10_000;
/// Totals of pools are written for people, who look every few seconds.
const TOTALS_EVERY: i64 = 1_000;
/// A checkpoint is large; where one cannot be written the next try waits.
const CHECKPOINT_AGAIN: i64 = 5_000;

/// What the engine's thread is told.
pub enum Inbox {
    /// Something happened.
    Event(Event),
    /// A policy is there, is another, or is gone.
    Policy {
        /// Its name.
        name: String,
        /// Itself, and as the journal has it; `None` when it is gone.
        policy: Option<Box<Policy>>,
    },
    /// Whether this replica may act.
    Leading(bool),
    /// Somebody asks what the cluster is made of: series for Prometheus, those of single nodes and pods if `details`.
    Census {
        /// Whether single nodes and pods are wanted.
        details: bool,
        /// Where the text is awaited.
        reply: std::sync::mpsc::SyncSender<String>,
    },
    /// It is time to end.
    Stop,
}

/// A policy as the brain asks it.
pub struct Policy {
    /// Its place in chains.
    pub member: Member,
    /// As the journal has it.
    pub entry: whittle_journal::Policy,
    /// Its component, for replays; empty when it could not be read.
    pub component: Arc<[u8]>,
}

/// What a pool owns.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Totals {
    /// Sum of the capacity of its nodes and of claims on their way.
    pub resources: Resources,
    /// Its nodes and claims on their way.
    pub nodes: i64,
}

/// What leaves the engine's thread.
pub struct Outlets {
    /// What is to be done.
    pub orders: mpsc::Sender<Order>,
    /// What was done and why.
    pub reports: mpsc::Sender<Vec<Report>>,
    /// What pools own, by name.
    pub totals: watch::Sender<BTreeMap<String, Totals>>,
    /// How NodeOverlays stand, by name.
    pub overlays: watch::Sender<BTreeMap<String, OverlayVerdict>>,
    /// How much room there is for CapacityBuffers, as far as plans have looked at them.
    pub rooms: watch::Sender<BTreeMap<PodKey, BufferRoom>>,
    /// How long the engine thinks.
    pub metrics: Arc<Metrics>,
}

/// The engine with what surrounds it.
pub struct Brain {
    engine: Engine,
    chains: Chains,
    journal: Option<Journal>,
    policies: whittle_journal::Policies,
    mode: Mode,
    leading: bool,
    stopping: bool,
    outlets: Outlets,
    counted: Timestamp,
    checkpointed: Timestamp,
}

impl Brain {
    /// A brain that knows nothing yet and acts only once it leads.
    pub fn new(required: &str, mode: Mode, journal: Option<Journal>, outlets: Outlets) -> Self {
        let policies = whittle_journal::Policies { required: required.to_owned(), ..Default::default() };
        Self {
            engine: Engine::new(),
            chains: Chains::new(required),
            journal,
            policies,
            mode,
            leading: false,
            stopping: false,
            outlets,
            counted: Timestamp(0),
            checkpointed: Timestamp(0),
        }
    }

    /// Works until nobody can tell it anything any more.
    pub fn run(mut self, runtime: &Handle, mut inbox: mpsc::Receiver<Inbox>) {
        self.checkpoint(clock::now()); // a new engine: nothing it is told is missed
        loop {
            let first = runtime.block_on(async { tokio::time::timeout(self.patience(), inbox.recv()).await });
            match first {
                Ok(None) => break,
                Ok(Some(first)) => {
                    self.take(first);
                    std::thread::sleep(BURST);
                    for _ in 0..MOST_AT_ONCE {
                        let Ok(next) = inbox.try_recv() else { break };
                        self.take(next);
                    }
                }
                Err(_) => {}
            }
            if self.stopping || self.turn().is_err() {
                break;
            }
        }
        if let Some(journal) = self.journal.take()
            && let Err(error) = journal.close()
        {
            tracing::warn!(error = %error, "the journal was not closed");
        }
    }

    /// How long nothing has to be done unless something happens.
    fn patience(&self) -> Span {
        const REST: Span = Span::from_secs(5);
        let now = clock::now();
        let due = self.engine.deadline(now).filter(|_| self.leading || self.mode == Mode::Observe);
        due.map_or(REST, |d| Span::from_millis(u64::try_from(d.at.since(now).0).unwrap_or(0)).min(REST))
    }

    fn take(&mut self, told: Inbox) {
        match told {
            Inbox::Event(event) => self.event(&event),
            Inbox::Leading(leading) => self.leading = leading,
            Inbox::Stop => self.stopping = true,
            Inbox::Census { details, reply } => {
                // Whoever asked may have given up.
                let _ = reply.try_send(census::text(self.engine.world(), clock::now(), details));
            }
            Inbox::Policy { name, policy } => self.policy(&name, policy),
        }
    }

    fn policy(&mut self, name: &str, policy: Option<Box<Policy>>) {
        self.policies.policies.retain(|known| known.name != name);
        let mut digest = String::new();
        match policy {
            None => self.chains.remove(name),
            Some(policy) => {
                if let PolicyStanding::Ready { digest: of_module, .. } = &policy.entry.standing {
                    digest.clone_from(of_module);
                    self.note(|journal, _| journal.module(&policy.component).map(drop));
                }
                self.policies.policies.push(policy.entry);
                self.chains.put(name, policy.member);
            }
        }
        let policies = self.policies.clone();
        self.note(|journal, at| journal.policies(at, &policies));
        self.event(&Event::PolicyLoaded { name: name.to_owned(), digest });
    }

    fn event(&mut self, event: &Event) {
        let now = clock::now();
        self.note(|journal, _| journal.event(now, event));
        self.engine.handle(event, now);
    }

    /// Opens a segment of the journal where one is due.
    fn checkpoint(&mut self, now: Timestamp) {
        if self.journal.as_ref().is_some_and(Journal::wants_checkpoint) && now.since(self.checkpointed).0 >= CHECKPOINT_AGAIN {
            self.checkpointed = now;
            let (checkpoint, policies) = (self.engine.checkpoint(), self.policies.clone());
            self.note(|journal, _| journal.checkpoint(now, &checkpoint, &policies));
        }
    }

    /// One round: what the engine wants done leaves, and what it has to say. Fails when nobody listens any more.
    fn turn(&mut self) -> Result<(), ()> {
        let now = clock::now();
        self.checkpoint(now);
        if self.mode == Mode::Observe || self.leading {
            let begun = Instant::now();
            let actions = self.engine.poll(now, &mut self.chains);
            self.outlets.metrics.thinking.observe(begun.elapsed().as_secs_f64());
            self.note(|journal, _| journal.poll(now, &actions));
            self.rests();
            for action in actions {
                match self.mode {
                    Mode::Enforce => self.give(action)?,
                    Mode::Observe => {
                        let name = orders::name(&action);
                        tracing::info!(action = name, object = Order::Cluster(action).object(), "would act");
                    }
                }
            }
        }
        let reports = self.engine.take_reports();
        if !reports.is_empty() {
            self.outlets.reports.blocking_send(reports).map_err(drop)?;
        }
        if now.since(self.counted).0 >= TOTALS_EVERY {
            self.counted = now;
            self.count();
        }
        Ok(())
    }

    /// Notes which policies rest after failures: whether they are asked depends on it.
    fn rests(&mut self) {
        let mut changed = false;
        for (name, rest) in self.chains.rests() {
            if let Some(known) = self.policies.policies.iter_mut().find(|known| known.name == name) {
                let (failures, rests_until) = (rest.failures(), rest.until());
                changed |= (known.failures, known.rests_until) != (failures, rests_until);
                (known.failures, known.rests_until) = (failures, rests_until);
            }
        }
        if changed {
            let policies = self.policies.clone();
            self.note(|journal, at| journal.policies(at, &policies));
        }
    }

    fn give(&mut self, action: Action) -> Result<(), ()> {
        match orders::order(action, self.engine.world()) {
            Some(order) => self.outlets.orders.blocking_send(order).map_err(drop),
            None => Ok(()),
        }
    }

    fn note(&mut self, write: impl FnOnce(&mut Journal, Timestamp) -> Result<(), whittle_journal::JournalError>) {
        let Some(journal) = &mut self.journal else { return };
        if let Err(error) = write(journal, clock::now()) {
            tracing::warn!(error = %error, "the journal misses what happens until its next checkpoint");
        }
    }

    fn count(&self) {
        let world = self.engine.world();
        let mut totals: BTreeMap<String, Totals> = world.pools().map(|pool| (pool.name.clone(), Totals::default())).collect();
        for claim in world.claims().filter(|claim| !claim.node_pool.is_empty()) {
            let total = totals.entry(claim.node_pool.clone()).or_default();
            total.resources.add(capacity(world.node(&claim.status.node), claim));
            total.nodes += 1;
        }
        show(&self.outlets.totals, totals);
        show(&self.outlets.overlays, world.overlay_verdicts().clone());
        show(&self.outlets.rooms, world.buffer_rooms());
    }
}

/// Lets others see what is new.
fn show<T: PartialEq>(outlet: &watch::Sender<T>, now: T) {
    outlet.send_if_modified(|known| {
        let changed = *known != now;
        *known = now;
        changed
    });
}

/// What a node has, or what its claim was promised.
fn capacity<'a>(node: Option<&'a whittle_model::Node>, claim: &'a NodeClaim) -> &'a Resources {
    node.filter(|node| !node.capacity.is_empty()).map_or(&claim.status.capacity, |node| &node.capacity)
}
