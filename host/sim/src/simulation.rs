//! The run: time goes to whatever comes next in the world or is due in the engine, news go in,
//! orders come out, and after every step the invariants are looked at.
//!
//! What must not enter: what the world does by itself (`reality`), what the engine decides.

mod perform;

use std::collections::BTreeMap;

use whittle_engine::report::{MoveStage, Step};
use whittle_engine::{Engine, Report, Timer};
use whittle_model::{Action, Duration, Event, ListPrice, PodKey, Scorer, Settings, Timestamp};

use crate::history::History;
use crate::reality::{Happening, Reality};
use crate::recorder::Recorder;
use crate::scenario::{Given, Scenario};
use crate::story::Condition;
use crate::timeline::{Observer, TimelineEvent};
use crate::weather::Weather;

/// A crashed controller is back after so long: its lease has to run out.
const DOWN: Duration = Duration::seconds(15);

/// Why a run ended before its story.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// A line asks for what cannot be done.
    #[error("story line {number}: {text:?} cannot be done: {why}")]
    Line {
        /// The line's number.
        number: usize,
        /// Its text.
        text: String,
        /// Why.
        why: String,
    },
    /// An `until` did not come true in time.
    #[error("story line {number}: {text:?} was not true within {within}: {why}")]
    Never {
        /// The line's number.
        number: usize,
        /// Its text.
        text: String,
        /// How long was waited.
        within: Duration,
        /// What stood against it.
        why: String,
    },
    /// Something happened that must never happen; a bug.
    #[error("at {at} a safety rule was broken: {what}")]
    Unsafe {
        /// Time of the story.
        at: Duration,
        /// What.
        what: String,
    },
}

/// A text the story expects that the timeline has not shown. The rest of the output may still show
/// it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expectation {
    /// The line's number.
    pub number: usize,
    /// The text.
    pub text: String,
}

/// How a story ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ending {
    /// Expectations that the timeline has not met.
    pub unmet: Vec<Expectation>,
}

/// A removal that is lost is thought over again by then: without a sign of it the node is not on its way out.
const THOUGHT_OVER: Duration = Duration::seconds(20);

/// A world, an engine, and the way between them.
pub struct Simulation {
    pub(crate) engine: Engine,
    pub(crate) reality: Reality,
    pub(crate) scorer: Box<dyn Scorer>,
    pub(crate) history: History,
    pub(crate) given: Given,
    pub(crate) weather: Weather,
    pub(crate) seed: u64,
    settings: Settings,
    /// Whether the controller is down.
    down: bool,
    wake: Option<Timestamp>,
    recorder: Option<Box<dyn Recorder>>,
    /// Lines of the timeline, for expectations.
    lines: Vec<String>,
    /// Claims whose move this life of the controller has begun, and when.
    moving: BTreeMap<String, Timestamp>,
}

impl Simulation {
    /// A world with a controller that has just started.
    #[must_use]
    pub fn new(scenario: Scenario, settings: Settings, seed: u64, weather: Weather) -> Self {
        let mut reality = Reality::new(seed, settings.clone(), weather);
        reality.apply(scenario.objects).expect("an empty world has no pod that could change");
        let mut simulation = Self {
            engine: Engine::new(),
            reality,
            scorer: Box::new(ListPrice),
            history: History::default(),
            given: scenario.given,
            weather,
            seed,
            settings,
            down: false,
            wake: None,
            recorder: None,
            lines: Vec::new(),
            moving: BTreeMap::new(),
        };
        simulation.start();
        simulation
    }

    /// The same with another judge of prices and moves.
    #[must_use]
    pub fn with_scorer(mut self, scorer: Box<dyn Scorer>) -> Self {
        self.scorer = scorer;
        self
    }

    /// The same, with everything that the engine is told and answers from here on written down.
    #[must_use]
    pub fn with_recorder(mut self, mut recorder: Box<dyn Recorder>) -> Self {
        recorder.begins(self.reality.now, &self.engine);
        self.recorder = Some(recorder);
        self
    }

    /// Time of the story.
    #[must_use]
    pub const fn now(&self) -> Timestamp {
        self.reality.now
    }

    /// The engine as it stands.
    #[must_use]
    pub const fn engine(&self) -> &Engine {
        &self.engine
    }

    /// What the engine reported.
    #[must_use]
    pub const fn history(&self) -> &History {
        &self.history
    }

    /// Goes on to the next thing that happens, not beyond `limit`; false when nothing does until
    /// then.
    ///
    /// # Errors
    /// When a safety rule is broken.
    pub fn step(&mut self, limit: Timestamp, observer: &mut dyn Observer) -> Result<bool, RunError> {
        let wake = self.wake.filter(|_| !self.down);
        let next = [self.reality.queue.next(), wake].into_iter().flatten().min();
        let Some(at) = next.filter(|at| *at <= limit) else {
            self.reality.now = self.reality.now.max(limit);
            return Ok(false);
        };
        self.reality.now = self.reality.now.max(at);
        let mut heard = wake.is_some_and(|wake| wake <= at);
        while let Some(happening) = self.reality.queue.due(at) {
            heard |= self.happen(happening);
        }
        self.flush(observer);
        if heard && !self.down {
            self.poll(observer);
        }
        self.check()?;
        Ok(true)
    }

    /// Goes on to `limit`.
    ///
    /// # Errors
    /// When a safety rule is broken.
    pub fn advance(&mut self, limit: Timestamp) -> Result<(), RunError> {
        while self.step(limit, &mut ())? {}
        self.check_books()
    }

    /// Lets something happen; true when the engine heard of it.
    fn happen(&mut self, happening: Happening) -> bool {
        match happening {
            Happening::Tell { event, life } => {
                let heard = !self.down && life == self.reality.life();
                if heard {
                    self.tell(&event);
                }
                return heard;
            }
            Happening::Crash => self.crash(),
            Happening::Restart => {
                if let Some(back) = self.reality.back() {
                    self.reality.queue.put(back, Happening::Restart);
                    return false;
                }
                self.reality.notes.push(TimelineEvent::Restarted {});
                self.down = false;
                self.start();
                return true;
            }
            Happening::Order(_)
            | Happening::Cycle
            | Happening::Flush
            | Happening::Start(_)
            | Happening::Finish(_)
            | Happening::Vanish(..)
            | Happening::Join(_)
            | Happening::Ready(_)
            | Happening::Untaint(_)
            | Happening::Ended(_)
            | Happening::Reclaim(_)
            | Happening::TakeBack(_)
            | Happening::DeleteOne(_)
            | Happening::Provision(_)
            | Happening::Detach(_)
            | Happening::Count
            | Happening::Restock
            | Happening::CountHeld
            | Happening::Outage(_)
            | Happening::Readable(..)
            | Happening::Drought(_)
            | Happening::Reread(_) => self.reality.happen(happening),
        }
        false
    }

    /// The controller stops at once; its orders that are on their way arrive.
    pub(crate) fn crash(&mut self) {
        if self.down {
            return;
        }
        self.down = true;
        self.engine = Engine::new();
        self.wake = None;
        self.moving.clear();
        self.reality.hang_up();
        self.reality.notes.push(TimelineEvent::Crashed {});
        let back = self.reality.now.plus(DOWN);
        self.reality.queue.put(back, Happening::Restart);
    }

    /// A controller that knows nothing reads everything.
    fn start(&mut self) {
        self.reality.hang_up();
        let now = self.reality.now;
        if let Some(recorder) = &mut self.recorder {
            recorder.begins(now, &self.engine);
        }
        self.tell(&Event::Settings(self.settings.clone()));
        for event in self.reality.read_all() {
            self.tell(&event);
        }
        self.tell(&Event::Synced);
        self.wake = Some(now);
    }

    fn tell(&mut self, event: &Event) {
        let now = self.reality.now;
        if let Some(recorder) = &mut self.recorder {
            recorder.told(now, event);
        }
        self.engine.handle(event, now);
    }

    fn poll(&mut self, observer: &mut dyn Observer) {
        let now = self.reality.now;
        if let Some(recorder) = &mut self.recorder {
            recorder.polls(now);
        }
        let actions = self.engine.poll(now, self.scorer.as_mut());
        if let Some(recorder) = &mut self.recorder {
            recorder.polled(now, &actions, &self.engine);
        }
        for action in &actions {
            if let Action::Terminate { claim } = action {
                self.moving.remove(claim);
            }
        }
        if actions.iter().any(|action| matches!(action, Action::Launch { .. })) {
            self.reality.ec2.avoided = self.engine.world().sold_out().cloned().collect();
        }
        let whole = actions.len();
        let sent = self.reality.broken_off(whole).unwrap_or(whole);
        for action in actions.into_iter().take(sent) {
            self.reality.order(action);
        }
        let reports = self.engine.take_reports();
        for report in reports {
            self.watch_moves(&report);
            let reality = &self.reality;
            let node_of = |claim: &str| reality.node_of_claim(claim).map(|n| n.name.clone()).unwrap_or_default();
            let said = self.history.take(report, &node_of, &|pod| reality.workload_of(pod));
            for event in said {
                self.say(&event, observer);
            }
        }
        if sent < whole {
            return self.crash();
        }
        // An engine that asks to be polled for the past would be polled without end.
        self.wake = self.engine.deadline(now).map(|d| d.at.max(now.plus(Duration(1))));
    }

    /// Moves keep to the budgets of their pools, however many are begun.
    fn watch_moves(&mut self, report: &Report) {
        for step in &report.steps {
            let Step::Move(step) = step else { continue };
            match &step.stage {
                MoveStage::Begun => self.moving.extend(step.claims.iter().map(|claim| (claim.clone(), self.reality.now))),
                MoveStage::RolledBack(_) => self.moving.retain(|claim, _| !step.claims.contains(claim)),
                MoveStage::Found | MoveStage::Rejected(_) | MoveStage::Ready => continue,
            }
            let reality = &self.reality;
            self.moving.retain(|claim, begun| begun.plus(THOUGHT_OVER) > reality.now || reality.goes(claim));
            let crossed = self.reality.crossed(self.moving.keys());
            self.reality.violations.extend(crossed);
        }
    }

    fn flush(&mut self, observer: &mut dyn Observer) {
        if self.reality.notes.is_empty() {
            return;
        }
        for event in std::mem::take(&mut self.reality.notes) {
            self.say(&event, observer);
        }
    }

    pub(crate) fn say(&mut self, event: &TimelineEvent, observer: &mut dyn Observer) {
        self.lines.push(event.to_string());
        observer.on(self.reality.now, event);
    }

    /// Safety: what must hold after every step.
    fn check(&self) -> Result<(), RunError> {
        if !self.weather.is_calm() {
            self.check_books()?;
        }
        let broken = self.reality.violations.first().cloned();
        let objection = self.history.objections.first().map(|what| format!("the auditor objects to a plan: {what}"));
        let doubled = || self.reality.twice().map(|claim| format!("claim {claim} has two instances"));
        match broken.or(objection).or_else(doubled) {
            Some(what) => Err(RunError::Unsafe { at: self.now().since(Timestamp(0)), what }),
            None => Ok(()),
        }
    }

    /// The slower half of safety, looked at when the story comes to a rest.
    pub(crate) fn check_books(&self) -> Result<(), RunError> {
        match self.reality.lost() {
            Some(what) => Err(RunError::Unsafe { at: self.now().since(Timestamp(0)), what }),
            None => Ok(()),
        }
    }

    /// Whether `condition` holds; what stands against it when not.
    pub(crate) fn holds(&mut self, condition: Condition) -> Result<(), String> {
        match condition {
            Condition::PodsRunning if self.reality.all_run() => Ok(()),
            Condition::PodsRunning => Err(self.what_does_not_run()),
            Condition::PodsPending(wanted) => match self.reality.pending().count() {
                count if count == wanted => Ok(()),
                count => Err(format!("{count} pods are pending")),
            },
            Condition::Nodes(wanted) => match self.reality.api.nodes.len() {
                count if count == wanted => Ok(()),
                count => Err(format!("there are {count} nodes")),
            },
            Condition::Settled => self.settled(),
        }
    }

    fn settled(&mut self) -> Result<(), String> {
        if self.down {
            return Err("the controller is down".to_owned());
        }
        if self.reality.queue.busy() {
            return Err("something is still under way".to_owned());
        }
        let now = self.now();
        if let Some(deadline) = self.engine.deadline(now) {
            let due = match deadline.why {
                Timer::Batch => "pods wait for a plan",
                Timer::Retry => "an order is given again when it shows no effect",
                Timer::Overdue => "a claim waits for its node",
                Timer::Move => "a node may be moved",
                Timer::Drain => "a node is drained",
                // Every node ends some day.
                Timer::End => "",
                // Offerings that are sold out for ever give no reason to wait.
                Timer::SoldOut if self.reality.restocks(self.engine.world()) => "offerings that were sold out are asked for again",
                // Windows of budgets open again and again.
                Timer::SoldOut | Timer::Turn => "",
                Timer::Replicas => "a static pool has fewer nodes than it keeps",
            };
            if !due.is_empty() {
                return Err(format!("{due} in {}", deadline.at.since(now)));
            }
        }
        let plan = self.engine.plan(now, self.scorer.as_mut());
        if let Some(node) = plan.nodes.first() {
            return Err(format!("the plan is not empty: it wants claim {} of nodepool {}", node.claim.name, node.claim.node_pool));
        }
        // Those that only stand for pods to come are bound nowhere.
        let real = |pods: &[PodKey]| pods.iter().filter(|pod| !self.engine.world().keeps_room(pod)).count();
        let placed = plan.placed.iter().map(|(on, pods)| (on, real(pods)));
        if let Some((on, pods)) = placed.into_iter().find(|(_, pods)| *pods > 0) {
            return Err(format!("the plan is not empty: {pods} pods have room on {on} and are not bound to it"));
        }
        Ok(())
    }

    fn what_does_not_run(&self) -> String {
        let mut waiting = self.reality.pending();
        let Some(first) = waiting.next() else { return "pods are starting or not made yet".to_owned() };
        let count = waiting.count() + 1;
        let (reasons, nearest) = self.why_pending(first);
        let nearest = nearest.map(|n| format!("; nearest: {n}")).unwrap_or_default();
        format!("{count} pods are pending; {first}: {}{nearest}", reasons.join("; "))
    }
}
