//! The way between the world and the controller: how long news and orders take, and what the
//! weather does to them.

use std::collections::{BTreeMap, BTreeSet};

use whittle_model::{Action, Duration, Event, ObjectKind, PodKey, Timestamp};

use super::{Happening, Reality};
use crate::random::Seed;
use crate::weather::Weather;

/// News reach the controller at the next tick of this length: a watch delivers in small bunches.
const TICK: Duration = Duration(100);

/// How long a call to the API server or to EC2 takes to arrive.
const CALL: Duration = Duration(20);

/// The weather and what it has done so far.
#[derive(Debug)]
pub(super) struct Faults {
    pub(super) seed: Seed,
    pub(super) weather: Weather,
    rolls: BTreeMap<&'static str, u64>,
    /// No news of a kind arrive before this time.
    not_before: BTreeMap<&'static str, Timestamp>,
    /// No order about an object arrives before this time.
    orders: BTreeMap<String, Timestamp>,
    /// Kinds whose watch is broken, with the objects that went meanwhile.
    pub(super) broken: BTreeMap<&'static str, BTreeSet<String>>,
    /// A watch does not break while it is being mended.
    mending: bool,
    life: u32,
    /// When the API server is away.
    outages: Vec<(Timestamp, Timestamp)>,
    /// How often the controller has crashed in the middle of a round.
    pub(super) broken_rounds: u8,
}

impl Faults {
    pub(super) fn new(seed: Seed, weather: Weather) -> Self {
        let (rolls, not_before) = (BTreeMap::new(), BTreeMap::new());
        let span = |n: u64| Duration::seconds(seed.of("api restarts for").nth(n).between(5, 60));
        let outages = times(seed, weather, "api restarts", weather.api_restarts).map(|(n, at)| (at, at.plus(span(n)))).collect();
        Self {
            seed,
            weather,
            rolls,
            not_before,
            orders: BTreeMap::new(),
            broken: BTreeMap::new(),
            mending: false,
            life: 0,
            outages,
            broken_rounds: 0,
        }
    }

    /// When the controller crashes by itself, spot capacity is taken back, and claims are deleted.
    pub(super) fn strokes(&self) -> Vec<(Timestamp, Happening)> {
        let times = |purpose: &str, count: u8| times(self.seed, self.weather, purpose, count);
        let crashes = times("crashes", self.weather.crashes).map(|(_, at)| (at, Happening::Crash));
        let taken = times("interruptions", self.weather.interruptions).map(|(n, at)| (at, Happening::TakeBack(n)));
        let deleted = times("deletions", self.weather.deletions).map(|(n, at)| (at, Happening::DeleteOne(n)));
        let away = self.outages.iter().map(|(from, to)| (*from, Happening::Outage(*to)));
        let hours = Duration::minutes(60 * i64::from(self.weather.drought));
        let dry = times("drought", self.weather.drought.min(1)).map(|(_, at)| (at, Happening::Drought(at.plus(hours))));
        crashes.chain(taken).chain(deleted).chain(away).chain(dry).collect()
    }

    /// By how much the clock of the API server is ahead.
    pub(super) fn skew(&self) -> Duration {
        Duration::seconds(i64::from(self.weather.skew))
    }

    /// When the API server is there again, if it is away at `at`.
    pub(super) fn away(&self, at: Timestamp) -> Option<Timestamp> {
        self.outages.iter().find(|(from, to)| *from <= at && at < *to).map(|(_, to)| *to)
    }

    /// How long a kubelet takes to join beyond the usual.
    pub(super) fn slow_join(&mut self, now: Timestamp) -> Duration {
        let slow = self.strikes("slow joins", self.weather.slow_kubelets, now);
        if slow { self.up_to("slow joins by", Duration::minutes(20)) } else { Duration(0) }
    }

    /// How long a node that has joined takes to be ready beyond the usual.
    pub(super) fn slow_ready(&mut self, now: Timestamp) -> Duration {
        let slow = self.strikes("slow to be ready", self.weather.slow_kubelets, now);
        if slow { self.up_to("slow to be ready by", Duration::minutes(5)) } else { Duration(0) }
    }

    /// How long a pod takes to stop beyond the usual.
    pub(super) fn slow_stop(&mut self, now: Timestamp) -> Option<Duration> {
        let slow = self.strikes("slow stops", self.weather.slow_stops, now);
        slow.then(|| self.up_to("slow stops by", Duration::minutes(3)))
    }

    /// The next throw of this purpose.
    pub(super) fn throw(&mut self, purpose: &'static str) -> Seed {
        let count = self.rolls.entry(purpose).or_default();
        *count += 1;
        self.seed.of(purpose).nth(*count)
    }

    /// Whether a fault strikes now.
    pub(super) fn strikes(&mut self, purpose: &'static str, percent: u8, now: Timestamp) -> bool {
        percent > 0 && now.0 < self.weather.lasting.0 && self.throw(purpose).percent(percent)
    }

    pub(super) fn up_to(&mut self, purpose: &'static str, most: Duration) -> Duration {
        Duration(self.throw(purpose).between(0, most.0))
    }

    /// Whether a launch is refused by the weather: `throttled` or `sold out`.
    pub(super) fn launch(&mut self, now: Timestamp) -> Option<&'static str> {
        if self.strikes("throttled", self.weather.throttled, now) {
            return Some("throttled");
        }
        self.strikes("no capacity", self.weather.no_capacity, now).then_some("sold out")
    }
}

/// As many times within the bad weather, drawn for this purpose.
fn times(seed: Seed, weather: Weather, purpose: &str, count: u8) -> impl Iterator<Item = (u64, Timestamp)> + use<> {
    let (branch, last) = (seed.of(purpose), weather.lasting.as_seconds() * 1000);
    (0..u64::from(count)).map(move |n| (n, Timestamp(branch.nth(n).between(0, last))))
}

/// The kind of an event's object and its name; answers have a kind of their own.
fn about(event: &Event) -> (&'static str, String) {
    match event {
        Event::Pod(pod) => ("pods", pod.key.to_string()),
        Event::PodGone(key) => ("pods", key.to_string()),
        Event::Node(node) => ("nodes", node.name.clone()),
        Event::NodeGone(name) => ("nodes", name.clone()),
        Event::Claim(claim) => ("claims", claim.name.clone()),
        Event::ClaimGone(name) => ("claims", name.clone()),
        Event::Outcome(_) => ("answers", String::new()),
        Event::Interrupted { provider_id, .. } => ("messages", provider_id.clone()),
        Event::VolumeClaim(claim) => ("volume claims", claim.key.to_string()),
        Event::VolumeClaimGone(key) => ("volume claims", key.to_string()),
        Event::Volume(volume) => ("volumes", volume.name.clone()),
        Event::VolumeGone(name) => ("volumes", name.clone()),
        Event::VolumeAttachment(attachment) => ("attachments", attachment.name.clone()),
        Event::VolumeAttachmentGone(name) => ("attachments", name.clone()),
        Event::PodDisruptionBudget(budget) => ("budgets", budget.key.to_string()),
        Event::PodDisruptionBudgetGone(key) => ("budgets", key.to_string()),
        Event::SetAside { kind: ObjectKind::Pod, name, .. } => ("pods", name.clone()),
        Event::SetAside { kind: ObjectKind::Node, name, .. } => ("nodes", name.clone()),
        Event::SetAside { kind: ObjectKind::NodeClaim, name, .. } => ("claims", name.clone()),
        Event::SetAside { .. }
        | Event::NodePool(_)
        | Event::StorageClass(_)
        | Event::StorageClassGone(_)
        | Event::VolumeLimits(_)
        | Event::VolumeLimitsGone(_)
        | Event::LimitRange(_)
        | Event::LimitRangeGone(_)
        | Event::NodeOverlay(_)
        | Event::NodeOverlayGone(_)
        | Event::CapacityBuffer(_)
        | Event::CapacityBufferGone(_)
        | Event::NodePoolGone(_)
        | Event::NodeClass(_)
        | Event::NodeClassGone(_)
        | Event::DaemonSet(_)
        | Event::DaemonSetGone(_)
        | Event::Namespace(..)
        | Event::NamespaceGone(_)
        | Event::Catalog(_)
        | Event::Price(..)
        | Event::Settings(_)
        | Event::PolicyLoaded { .. }
        | Event::Instances(_)
        | Event::ProviderDrift { .. }
        | Event::Synced => ("settings", String::new()),
    }
}

/// The object an order is about, and whether the engine gives it again when nothing comes of it.
fn aim(action: &Action) -> (String, bool) {
    match action {
        Action::CreateClaim(claim) => (claim.name.clone(), true),
        Action::UpdateClaim { claim, .. } => (claim.clone(), false),
        Action::TerminateStray { provider_id } => (provider_id.clone(), true),
        Action::Launch { claim, .. }
        | Action::AnnotateClaim { claim, .. }
        | Action::DeleteClaim { claim, .. }
        | Action::Terminate { claim }
        | Action::TagInstance { claim }
        | Action::ReleaseClaim { claim } => (claim.clone(), true),
        Action::RegisterNode { node, .. }
        | Action::InitializeNode { node }
        | Action::CordonNode { node }
        | Action::LabelNode { node, .. }
        | Action::TaintNode { node }
        | Action::UncordonNode { node }
        | Action::ReleaseNode { node } => (node.clone(), true),
        Action::Nominate { pod, .. } | Action::Evict { pod, .. } | Action::DeletePod { pod, .. } => (pod.to_string(), true),
    }
}

/// Whether an order goes to the API server; the others go to EC2.
fn to_the_api(action: &Action) -> bool {
    let ec2 =
        matches!(action, Action::Launch { .. } | Action::Terminate { .. } | Action::TagInstance { .. } | Action::TerminateStray { .. });
    !ec2
}

impl Reality {
    /// Has the controller hear of something.
    pub(super) fn tell(&mut self, event: Event) {
        self.tell_after(CALL, event);
    }

    /// Has the controller hear of something that takes a while.
    pub(super) fn tell_after(&mut self, span: Duration, event: Event) {
        if matches!(event, Event::Pod(_) | Event::PodGone(_)) {
            self.count_later();
        }
        let (kind, name) = about(&event);
        if let Some(gone) = self.faults.broken.get_mut(kind) {
            if matches!(event, Event::PodGone(_) | Event::NodeGone(_) | Event::ClaimGone(_)) {
                gone.insert(name);
            } else {
                gone.remove(&name);
            }
            return;
        }
        let weather = self.faults.weather;
        if kind == "answers" && self.faults.strikes("lost answers", weather.lost_answers, self.now) {
            return;
        }
        let event = self.as_read(event);
        let mut delay = span;
        if self.faults.strikes("late events", weather.late_events, self.now) {
            delay = Duration(span.0 + self.faults.up_to("late events by", Duration::seconds(20)).0);
        }
        let not_before = self.faults.not_before.entry(kind).or_default();
        let tick = TICK.0;
        let at = Timestamp((self.now.plus(delay).0 + tick - 1).div_euclid(tick) * tick).max(*not_before);
        *not_before = at;
        let life = self.faults.life;
        if self.faults.strikes("doubled events", weather.doubled_events, self.now) {
            self.queue.put(at, Happening::Tell { event: Box::new(event.clone()), life });
        }
        self.queue.put(at, Happening::Tell { event: Box::new(event), life });
        let breakable = matches!(kind, "pods" | "nodes" | "claims") && !self.faults.mending;
        if breakable && self.faults.strikes("broken watches", weather.broken_watches, self.now) {
            self.faults.broken.insert(kind, BTreeSet::new());
            let span = self.faults.up_to("broken watches for", Duration::seconds(30));
            self.later(span, Happening::Reread(kind));
        }
    }

    /// A broken watch is mended: what is there is told, and what is not there any more.
    pub(super) fn reread(&mut self, kind: &'static str) {
        if let Some(end) = self.faults.away(self.now) {
            return self.queue.put(end, Happening::Reread(kind));
        }
        let gone = self.faults.broken.remove(kind).unwrap_or_default();
        self.faults.mending = true;
        let lists = self.lists();
        for event in lists.into_iter().filter(|event| about(event).0 == kind) {
            self.tell(event);
        }
        for name in gone {
            let event = match kind {
                "pods" => name.split_once('/').map(|(namespace, name)| Event::PodGone(PodKey::new(namespace, name))),
                "nodes" => Some(Event::NodeGone(name)),
                _ => Some(Event::ClaimGone(name)),
            };
            if let Some(event) = event {
                self.tell(event);
            }
        }
        self.faults.mending = false;
    }

    /// Sends an order of the engine on its way.
    pub(crate) fn order(&mut self, action: Action) {
        let weather = self.faults.weather;
        let (object, again) = aim(&action);
        if again && self.faults.strikes("lost orders", weather.lost_orders, self.now) {
            return;
        }
        let mut delay = CALL;
        if self.faults.strikes("late orders", weather.late_orders, self.now) {
            delay = self.faults.up_to("late orders by", Duration::seconds(20));
        }
        let not_before = self.faults.orders.get(&object).copied().unwrap_or_default();
        let mut at = self.now.plus(delay).max(not_before);
        if let Some(end) = self.faults.away(at).filter(|_| to_the_api(&action)) {
            if again {
                return;
            }
            at = end.plus(CALL);
        }
        self.faults.orders.insert(object, at);
        // Two launches at once are one to EC2: they have the same client token.
        let once = matches!(action, Action::Launch { .. });
        if !once && self.faults.strikes("doubled orders", weather.doubled_orders, self.now) {
            self.queue.put(at, Happening::Order(Box::new(action.clone())));
        }
        self.queue.put(at, Happening::Order(Box::new(action)));
    }

    /// The life of the controller that is listening.
    pub(crate) const fn life(&self) -> u32 {
        self.faults.life
    }

    /// The controller is gone: nobody hears what was on its way, and all watches begin anew.
    pub(crate) fn hang_up(&mut self) {
        self.faults.life += 1;
        self.faults.broken.clear();
        self.faults.not_before.clear();
    }
}
