//! What is asked of AWS again and again: which instances there are, and whether they still are what their classes come to, whether they are well, messages of the interruption
//! queue, launch templates and profiles out of use. What must not enter: what follows from the answers.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use whittle_cloud::Aws;
use whittle_cloud::class::Classes;
use whittle_cloud::fleet::{Fleet, InstanceFacts};
use whittle_cloud::queue::{Queue, instance_problems};
use whittle_cluster::write::Gate;
use whittle_model::{Event, Interruption};

use crate::brain::Inbox;
use crate::clock;
use crate::drifts::Drifts;
use crate::metrics::Metrics;
use crate::shelf::Shelf;
use crate::voice;

/// As Karpenter: every ten seconds at first, when a crash may have left instances without claims, then every two minutes.
const LIST_EARLY: Duration = Duration::from_secs(10);
const EARLY_LISTS: u32 = 20;
const LIST_LATE: Duration = Duration::from_secs(120);
const STATUS_EVERY: Duration = Duration::from_secs(60);
const SWEEP_EVERY: Duration = Duration::from_secs(300);
/// A queue that cannot be found or read is tried again after this long.
const QUEUE_AGAIN: Duration = Duration::from_secs(60);

/// What all of these tasks need.
#[derive(Clone)]
pub struct Upkeep {
    /// AWS.
    pub aws: Arc<Aws>,
    /// Instances.
    pub fleet: Arc<Fleet>,
    /// EC2NodeClasses.
    pub classes: Arc<Classes>,
    /// What is in use.
    pub shelf: Shelf,
    /// Where events go.
    pub inbox: mpsc::Sender<Inbox>,
    /// Open while this replica acts.
    pub gate: Gate,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// Whether capacity reservations are used.
    pub reservations: bool,
}

impl Upkeep {
    /// Starts all of them.
    pub fn start(&self, queue: &str) {
        tokio::spawn(self.clone().instances());
        tokio::spawn(self.clone().status());
        tokio::spawn(self.clone().sweep());
        if !queue.is_empty() {
            tokio::spawn(self.clone().interruptions(queue.to_owned()));
        }
    }

    async fn event(&self, event: Event) {
        // The brain ends only with the process.
        let _ = self.inbox.send(Inbox::Event(event)).await;
    }

    async fn instances(self) {
        self.gate.opened().await;
        if let Err(error) = self.fleet.hydrate(clock::now()).await {
            tracing::warn!(error = %voice::chain(&error), "launch templates of an earlier life are not known");
        }
        let (mut lists, mut drifts) = (0, Drifts::new(self.reservations));
        loop {
            self.gate.opened().await;
            match self.fleet.list().await {
                Ok(instances) => {
                    self.event(Event::Instances(instances.iter().map(InstanceFacts::listed).collect())).await;
                    for news in drifts.news(&instances, &self.shelf) {
                        self.event(news).await;
                    }
                }
                Err(error) => tracing::warn!(error = %voice::chain(&error), "instances were not listed"),
            }
            lists += 1;
            tokio::time::sleep(if lists < EARLY_LISTS { LIST_EARLY } else { LIST_LATE }).await;
        }
    }

    async fn status(self) {
        loop {
            tokio::time::sleep(STATUS_EVERY).await;
            self.gate.opened().await;
            match instance_problems(&self.aws, clock::now()).await {
                Ok(problems) => {
                    for problem in problems {
                        self.event(problem.event()).await;
                    }
                }
                Err(error) => tracing::warn!(error = %voice::chain(&error), "the status of instances was not read"),
            }
        }
    }

    async fn sweep(self) {
        loop {
            tokio::time::sleep(SWEEP_EVERY).await;
            self.gate.opened().await;
            if let Err(error) = self.fleet.sweep_templates(clock::now()).await {
                tracing::warn!(error = %voice::chain(&error), "launch templates out of use were not deleted");
            }
            if self.classes.next_collection(clock::now()).is_some_and(|at| at <= clock::now()) {
                let collected = self.classes.collect_profiles(&self.aws, &self.shelf.profiles(), clock::now()).await;
                if let Err(error) = collected {
                    tracing::warn!(error = %voice::chain(&error), "instance profiles out of use were not deleted");
                }
            }
        }
    }

    async fn interruptions(self, name: String) {
        let queue = loop {
            self.gate.opened().await;
            match Queue::find(Arc::clone(&self.aws), &name).await {
                Ok(queue) => break queue,
                Err(error) => {
                    tracing::error!(error = %voice::chain(&error), "the interruption queue was not found; it is looked for again")
                }
            }
            tokio::time::sleep(QUEUE_AGAIN).await;
        };
        loop {
            self.gate.opened().await;
            let messages = match queue.receive().await {
                Ok(messages) => messages,
                Err(error) => {
                    tracing::warn!(error = %voice::chain(&error), "the interruption queue was not read");
                    tokio::time::sleep(QUEUE_AGAIN).await;
                    continue;
                }
            };
            let count = messages.len();
            for _ in 0..messages.other + messages.garbage {
                self.metrics.message("no_op");
            }
            for event in messages.events.clone() {
                if let Event::Interrupted { what, .. } = &event {
                    self.metrics.message(kind(*what));
                }
                self.event(event).await;
            }
            match queue.delete(&messages).await {
                Ok(()) => {
                    self.metrics.deleted.inc_by(count as u64);
                }
                Err(error) => tracing::warn!(error = %voice::chain(&error), "handled messages come again"),
            }
        }
    }
}

/// Kinds as Karpenter's metric has them.
const fn kind(what: Interruption) -> &'static str {
    match what {
        Interruption::SpotInterrupted => "spot_interrupted",
        Interruption::RebalanceRecommendation => "rebalance_recommendation",
        Interruption::InstanceStopped => "instance_stopped",
        Interruption::InstanceTerminated => "instance_terminated",
        Interruption::ScheduledChange => "scheduled_change",
        Interruption::CapacityReservationInterrupted => "capacity_reservation_interrupted",
        Interruption::InstanceStatus => "instance_status",
        Interruption::SystemStatus => "system_status",
        Interruption::EventStatus => "event_status",
    }
}
