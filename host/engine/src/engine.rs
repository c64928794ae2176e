//! The state machine: events in, actions out.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use whittle_model::{Action, Duration, Event, Outcome, PodKey, Scorer, Timestamp};

use crate::agenda::{Agenda, Deadline, Timer};
use crate::batch::Batch;
use crate::disrupt::Disrupt;
use crate::drain;
use crate::ledger::{Ledger, Order};
use crate::lifecycle;
use crate::plan::{self, Plan, Yardstick};
use crate::provision::{nominate, provision};
use crate::removal;
use crate::repair;
use crate::report::Report;
use crate::round::Round;
use crate::statics;
use crate::strays;
use crate::world::{World, WorldObjects};

/// What is due and was not done is looked at again, but not at once.
const DECLINED_FOR: Duration = Duration::minutes(1);

/// Everything an engine needs to go on where another stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    objects: WorldObjects,
    batch: Batch,
    ledger: Ledger,
    disrupt: Disrupt,
    orders: Vec<Action>,
}

/// The engine.
#[derive(Debug, Clone, Default)]
pub struct Engine {
    world: World,
    batch: Batch,
    ledger: Ledger,
    disrupt: Disrupt,
    /// Actions that follow from events, given out at the next poll.
    orders: Vec<Action>,
    /// Steps that follow from events, reported at the next poll.
    pending: Report,
    reports: Vec<Report>,
    /// When claims must be looked at although nothing happened to them.
    agenda: Agenda,
    /// When static pools that lack nodes are looked at again.
    replicas: Option<Timestamp>,
}

impl Engine {
    /// An engine that knows nothing yet. It plans nothing before [`Event::Synced`].
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The picture of the cluster.
    #[must_use]
    pub const fn world(&self) -> &World {
        &self.world
    }

    /// Takes an event in.
    pub fn handle(&mut self, event: &Event, now: Timestamp) {
        let short = self.world.takes_room(event);
        self.disrupt.note(&self.world, event, now);
        self.take_in(event, now);
        if short {
            self.supply(now);
        }
        if let Event::Settings(_)
        | Event::Catalog(_)
        | Event::NodePool(_)
        | Event::NodePoolGone(_)
        | Event::NodeOverlay(_)
        | Event::NodeOverlayGone(_) = event
        {
            self.world.overlay();
        }
    }

    fn take_in(&mut self, event: &Event, now: Timestamp) {
        if self.world.read(event) {
            self.supply(now);
        }
        match event {
            Event::Settings(settings) => {
                self.world.settings = settings.clone();
                self.world.fill_buffers();
            }
            Event::Catalog(catalog) => {
                self.world.put_catalog(catalog);
                self.supply(now);
            }
            Event::Price(offering, price) => self.price(offering, *price, now),
            Event::Synced => self.world.synced = true,
            Event::Pod(pod) => self.pod(pod, now),
            Event::PodGone(key) => self.pod_gone(key, now),
            Event::Node(node) => self.world.put_node((**node).clone()),
            Event::NodeGone(name) => {
                self.world.drop_node(name);
                self.supply(now);
            }
            Event::Claim(claim) => self.claim(claim),
            Event::ClaimGone(name) => self.claim_gone(name, now),
            Event::NodePool(pool) => {
                self.world.pools.insert(pool.name.clone(), (**pool).clone());
                self.world.touch_pool(&pool.name);
                self.supply(now);
            }
            Event::NodeClass(class) => {
                self.world.node_classes.insert(class.name.clone(), class.clone());
                self.supply(now);
            }
            Event::VolumeClaim(_)
            | Event::Volume(_)
            | Event::StorageClass(_)
            | Event::VolumeLimits(_)
            | Event::PodDisruptionBudget(_)
            | Event::NodeOverlay(_)
            | Event::NodeOverlayGone(_)
            | Event::CapacityBuffer(_)
            | Event::CapacityBufferGone(_) => {
                self.world.note(event);
                drain::recount(&self.world, &mut self.ledger, event);
                self.supply(now);
            }
            Event::VolumeClaimGone(_)
            | Event::VolumeGone(_)
            | Event::StorageClassGone(_)
            | Event::VolumeLimitsGone(_)
            | Event::VolumeAttachment(_)
            | Event::VolumeAttachmentGone(_)
            | Event::PodDisruptionBudgetGone(_)
            | Event::LimitRange(_)
            | Event::LimitRangeGone(_)
            | Event::NodePoolGone(_)
            | Event::NodeClassGone(_)
            | Event::DaemonSet(_)
            | Event::DaemonSetGone(_)
            | Event::Namespace(..)
            | Event::NamespaceGone(_)
            | Event::ProviderDrift { .. } => self.world.note(event),
            Event::Outcome(outcome) => self.outcome(outcome, now),
            Event::PolicyLoaded { .. } => self.supply(now),
            Event::SetAside { kind, name, node, .. } => self.world.set_aside(*kind, name, node.as_deref()),
            Event::Instances(_) | Event::Interrupted { .. } if self.world.settings.observe => {}
            Event::Instances(instances) => self.round(now, |round| strays::compare(round, instances)),
            Event::Interrupted { provider_id, what } => self.round(now, |round| strays::interrupted(round, provider_id, *what)),
        }
    }

    fn claim(&mut self, claim: &whittle_model::NodeClaim) {
        self.ledger.unseen.remove(&claim.name);
        self.ledger.done(&claim.name, Order::Create, &claim.name);
        self.world.put_claim(claim.clone());
    }

    fn pod_gone(&mut self, key: &PodKey, now: Timestamp) {
        self.touch(key, now);
        let node = self.world.pods.get(key).and_then(|record| record.node.as_ref());
        drain::left(&self.world, &mut self.ledger, node, key);
        if let Some(claim) = self.world.assigned.claim(key) {
            self.ledger.done(claim, Order::Nominate, &key.to_string());
        }
        self.world.drop_pod(key, true);
        self.batch.trust(key);
        self.room(now);
    }

    fn claim_gone(&mut self, name: &str, now: Timestamp) {
        strays::ran(&mut self.world, &self.ledger, name, now);
        self.world.drop_claim(name);
        self.ledger.forget(name);
        self.agenda.set(name, None);
        self.supply(now);
    }

    /// Runs what follows from an event at once; its actions and steps come out at the next poll.
    fn round(&mut self, now: Timestamp, follow: impl FnOnce(&mut Round<'_>)) {
        let (mut actions, mut report) = (Vec::new(), Report::default());
        follow(&mut Round { world: &mut self.world, ledger: &mut self.ledger, now, actions: &mut actions, report: &mut report });
        self.orders.extend(actions);
        self.pending.steps.extend(report.steps);
    }

    /// Plans if it is time, and gives out what is to be done. Under the setting `observe` it gives out what would be
    /// done, and remembers only that it has thought about it.
    pub fn poll(&mut self, now: Timestamp, scorer: &mut dyn Scorer) -> Vec<Action> {
        if !self.world.settings.observe {
            return self.act(now, scorer);
        }
        let mut other = self.clone();
        let actions = other.act(now, scorer);
        self.world.touched.clear();
        self.world.sold_out = other.world.sold_out;
        self.orders.clear();
        self.pending = Report::default();
        other.agenda.retain(|claim| self.world.claims.contains_key(claim));
        (self.batch, self.agenda, self.reports, self.replicas) = (other.batch, other.agenda, other.reports, other.replicas);
        self.disrupt = other.disrupt.observed();
        actions
    }

    fn act(&mut self, now: Timestamp, scorer: &mut dyn Scorer) -> Vec<Action> {
        let mut actions = std::mem::take(&mut self.orders);
        let mut report = std::mem::take(&mut self.pending);
        report.at = now;
        if self.world.synced {
            self.forget_sold_out(now);
            let due = self.batch.shut(&self.world.settings, now);
            let names = self.concerned(now);
            let mut round = Round { world: &mut self.world, ledger: &mut self.ledger, now, actions: &mut actions, report: &mut report };
            removal::advance(&mut round, &names);
            if due {
                let left = provision(&mut round, scorer);
                self.batch.hungry = left.hungry;
                self.batch.doubt(left.expected.into_iter(), now);
                self.batch.ask_again(left.ask_again);
            }
            self.replicas = statics::keep(&mut round, scorer);
            let mut names = names;
            names.append(&mut std::mem::take(&mut round.world.touched));
            names.extend(round.ledger.turns.waiting().cloned());
            round.ledger.turns.advance(round.world, names.iter(), now);
            nominate(&mut round, &names);
            let claims = round.world.claims.len();
            lifecycle::advance(&mut round, &names);
            repair::advance(&mut round, &names);
            let forgotten = round.world.claims.len() < claims;
            self.disrupt.advance(&mut round, &names, scorer);
            self.disrupt.sign(&self.world, &mut actions, now);
            if forgotten {
                self.supply(now);
            }
            self.doubt(&names, now);
            self.schedule(&names, now);
        }
        if !report.steps.is_empty() || !report.objections.is_empty() {
            self.reports.push(report);
        }
        actions
    }

    /// Pods that are meant for a node in use should be bound to it soon.
    fn doubt(&mut self, names: &BTreeSet<String>, now: Timestamp) {
        for name in names {
            if self.world.claims.get(name).is_some_and(|c| c.status.initialized.is_some() && !c.deleting) {
                let real = self.world.assigned.pods(name).filter(|pod| !self.world.buffers.holds(pod));
                self.batch.doubt(real.cloned(), now);
            }
        }
    }

    /// When to poll again; `None` when only an event can change anything.
    #[must_use]
    pub fn deadline(&self, now: Timestamp) -> Option<Deadline> {
        if !self.orders.is_empty() {
            return Some(Deadline { at: now, why: Timer::Retry });
        }
        if !self.world.synced {
            return None; // nothing is done before then, whatever is due
        }
        let batch = self.batch.closes(&self.world.settings).map(|at| Deadline { at, why: Timer::Batch });
        let retry = self.ledger.next().map(|at| Deadline { at, why: Timer::Retry });
        let sold_out = self.world.sold_out.values().min().filter(|_| self.batch.hungry).map(|at| Deadline { at: *at, why: Timer::SoldOut });
        let claims = self.agenda.next().map(|(at, why)| Deadline { at, why });
        let why = |sure| if sure { Timer::Move } else { Timer::Turn };
        let moves = self.disrupt.deadline(&self.world).map(|(at, sure)| Deadline { at, why: why(sure) });
        let replicas = self.replicas.map(|at| Deadline { at, why: Timer::Replicas });
        let judged = self.batch.asked_again().map(|at| Deadline { at, why: Timer::Turn });
        batch.into_iter().chain(judged).chain(retry).chain(sold_out).chain(claims).chain(replicas).chain(moves).min()
    }

    /// What the rounds since the last call have to say.
    pub fn take_reports(&mut self) -> Vec<Report> {
        std::mem::take(&mut self.reports)
    }

    /// A plan for the world as it is, without acting on it.
    pub fn plan(&self, now: Timestamp, scorer: &mut dyn Scorer) -> Plan {
        plan::plan(&self.world, scorer, now)
    }

    /// What the running pods would cost packed from nothing.
    pub fn yardstick(&self, now: Timestamp) -> Yardstick {
        plan::yardstick(&self.world, now)
    }

    /// Everything another engine needs to go on from here.
    #[must_use]
    pub fn checkpoint(&self) -> Checkpoint {
        Checkpoint {
            objects: self.world.objects(),
            batch: self.batch.clone(),
            ledger: self.ledger.clone(),
            disrupt: self.disrupt.clone(),
            orders: self.orders.clone(),
        }
    }

    /// An engine that goes on where the checkpoint was made.
    #[must_use]
    pub fn restore(checkpoint: Checkpoint) -> Self {
        let mut world = World::of_objects(checkpoint.objects);
        world.touched = world.claims.keys().cloned().collect();
        world.leaving = checkpoint.ledger.leaving().map(str::to_owned).collect();
        world.leaving.extend(checkpoint.disrupt.leaving().cloned());
        let Checkpoint { batch, ledger, disrupt, orders, .. } = checkpoint;
        Self { world, batch, ledger, disrupt, orders, ..Self::default() }
    }

    /// Claims to be looked at: touched since the last round, or due.
    fn concerned(&mut self, now: Timestamp) -> BTreeSet<String> {
        let mut names = std::mem::take(&mut self.world.touched);
        names.extend(self.ledger.take_due(now));
        names.extend(self.agenda.due(now).map(str::to_owned));
        names
    }

    /// Notes when the claims that were looked at must be looked at again.
    fn schedule(&mut self, names: &BTreeSet<String>, now: Timestamp) {
        for name in names {
            let claim = self.world.claims.get(name);
            // A drain that waits for a budget which others spend may hear of nothing when it is free again.
            let spending = self.ledger.spending_until(now).filter(|_| self.ledger.held.contains_key(name));
            let going = claim.filter(|claim| claim.deleting);
            let going = going.and_then(|claim| drain::due_at(&self.world, claim, now).into_iter().chain(spending).min());
            let stays = claim.filter(|claim| !claim.deleting && !self.ledger.outstanding(name, Order::Delete, name));
            let when = going.map(|at| (at, Timer::Drain)).or_else(|| {
                let claim = stays?;
                let overdue = lifecycle::due_at(&self.world, &self.ledger, claim, now).map(|at| (at, Timer::Overdue));
                overdue.into_iter().chain(lifecycle::ends_at(&self.world, claim).map(|at| (at, Timer::End))).min()
            });
            let when = when.map(|(at, why)| (if at <= now { now.plus(DECLINED_FOR) } else { at }, why));
            self.agenda.set(name, when);
        }
    }

    fn pod(&mut self, pod: &whittle_model::Pod, now: Timestamp) {
        let asked = self.world.wants(&pod.key);
        let before = self.world.pods.get(&pod.key).and_then(|r| r.node.clone());
        let held = self.world.pods.get(&pod.key).is_some_and(|r| r.node.is_some() && !r.terminal());
        let meant = self.world.assigned.claim(&pod.key).cloned();
        self.world.put_pod(pod);
        if before != pod.node || held != pod.holds_room() {
            self.touch(&pod.key, now);
            if held && !pod.holds_room() {
                self.room(now);
            }
        }
        if let Some(claim) = meant {
            if pod.node.is_some() {
                self.ledger.done(&claim, Order::Nominate, &pod.key.to_string());
            } else if pod.nominated.is_some() {
                self.ledger.nominated(&claim, &pod.key, now);
            }
        }
        if self.world.pending.contains(&pod.key) {
            // A pod that waits and is told again as it was, or nominated, asks for nothing new.
            if asked != self.world.wants(&pod.key) {
                self.batch.pod(&pod.uid, now);
            }
        } else {
            self.batch.trust(&pod.key);
        }
    }

    /// Notes on the claim of a pod's node that a pod came or went.
    fn touch(&mut self, key: &PodKey, now: Timestamp) {
        let Some(record) = self.world.pods.get(key) else { return };
        if self.world.tied_to_node(record) {
            return;
        }
        let claim = record
            .node
            .as_ref()
            .and_then(|name| self.world.nodes.get(name))
            .and_then(|node| self.world.claim_by_provider.get(&node.provider_id))
            .cloned();
        if let Some(claim) = claim.and_then(|name| self.world.claims.get_mut(&name)) {
            claim.status.last_pod_event = Some(now);
        }
    }

    /// New things can be bought, or something bought is gone: pods that wait are planned again.
    fn supply(&mut self, now: Timestamp) {
        if !self.world.pending.is_empty() {
            self.batch.change(now);
        }
    }

    /// Room may have been set free.
    fn room(&mut self, now: Timestamp) {
        if self.batch.hungry {
            self.supply(now);
        }
    }

    fn price(&mut self, key: &whittle_model::OfferingKey, price: whittle_model::Micros, now: Timestamp) {
        self.world.stocks.get_mut().clear();
        for catalog in self.world.catalogs.values_mut() {
            let Ok(at) = catalog.types.binary_search_by(|t| t.name.cmp(&key.instance_type)) else { continue };
            let catalog = std::sync::Arc::make_mut(catalog);
            for offering in &mut catalog.types[at].offerings {
                if offering.zone == key.zone && offering.capacity_type == key.capacity_type {
                    offering.price = price;
                }
            }
        }
        for face in self.world.overlaid.faces.values_mut().flatten() {
            face.list_price(key, price);
        }
        self.room(now);
    }

    fn outcome(&mut self, outcome: &Outcome, now: Timestamp) {
        match outcome {
            Outcome::Launched(launched) => {
                self.round(now, |round| lifecycle::sold_out(round, &launched.sold_out));
                self.orders.extend(lifecycle::launched(&mut self.world, &mut self.ledger, launched, now));
                self.pending.steps.push(lifecycle::launched_step(launched));
                self.room(now);
            }
            Outcome::LaunchFailed { claim, failure } => self.round(now, |round| lifecycle::launch_failed(round, claim, failure)),
            Outcome::InstanceGone { claim } => {
                self.ledger.done(claim, Order::Terminate, claim);
                self.ledger.done(claim, Order::Launch, claim);
                if let Some(known) = self.world.claims.get(claim) {
                    if !known.deleting {
                        self.ledger.condemned.insert(claim.clone(), "InstanceGone".to_owned());
                    }
                    self.ledger.ended.insert(claim.clone());
                    self.world.touched.insert(claim.clone());
                }
            }
        }
    }

    fn forget_sold_out(&mut self, now: Timestamp) {
        let before = self.world.sold_out.len();
        self.world.sold_out.retain(|_, until| *until > now);
        if self.world.sold_out.len() < before {
            self.room(now);
        }
    }
}
