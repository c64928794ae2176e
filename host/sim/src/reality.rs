//! What is true in a simulated cluster, and how it goes on by itself: API objects, the controllers
//! of workloads, kube-scheduler, kubelets, EC2. It hears the engine's orders and tells it what a
//! watch would show; what it knows beyond that stays here.
//!
//! What must not enter: the engine, plans, reports.

mod books;
mod budgets;
mod buffers;
mod daemons;
mod drift;
mod ec2;
mod faults;
mod market;
mod nodes;
mod objects;
mod orders;
mod queue;
mod rules;
mod scheduling;
mod storage;
mod strokes;
mod toll;
mod workloads;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use whittle_engine::scheduler::Scheduler;
use whittle_model::{
    Catalog, DaemonSet, Duration, Event, Labels, LimitRange, Node, NodeClaim, NodeClass, NodeOverlay, NodePool, Pod, PodKey, Settings,
    Timestamp,
};

use crate::random::Seed;
use crate::timeline::TimelineEvent;
use crate::weather::Weather;
use budgets::Budgets;
use buffers::Buffers;
pub(crate) use ec2::{Ec2, Instance};
use faults::Faults;
pub(crate) use market::SoldOut;
pub(crate) use queue::Happening;
use queue::Queue;
use storage::Disks;
use toll::Toll;
use workloads::{Managed, WorkloadId};

/// Objects as the API server has them.
#[derive(Debug, Default)]
pub(crate) struct Api {
    pub(crate) pods: BTreeMap<PodKey, Pod>,
    pub(crate) nodes: BTreeMap<String, Node>,
    pub(crate) claims: BTreeMap<String, NodeClaim>,
    pub(crate) pools: BTreeMap<String, NodePool>,
    pub(crate) node_classes: BTreeMap<String, NodeClass>,
    pub(crate) catalogs: BTreeMap<String, Arc<Catalog>>,
    pub(crate) daemon_sets: BTreeMap<PodKey, DaemonSet>,
    pub(crate) namespaces: BTreeMap<String, Labels>,
    pub(crate) limit_ranges: BTreeMap<PodKey, LimitRange>,
    pub(crate) overlays: BTreeMap<String, NodeOverlay>,
}

/// How long instances take from launch to joining.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Boot {
    /// Drawn for each instance.
    Usual,
    /// This long; never when `None`.
    Told(Option<Duration>),
}

/// The world.
#[derive(Debug)]
pub(crate) struct Reality {
    pub(crate) now: Timestamp,
    pub(crate) api: Api,
    pub(crate) ec2: Ec2,
    pub(crate) boot: Boot,
    /// What to show, in order.
    pub(crate) notes: Vec<TimelineEvent>,
    /// Broken invariants.
    pub(crate) violations: Vec<String>,
    /// What the run has cost people so far.
    pub(crate) toll: Toll,
    pub(crate) queue: Queue,
    /// Why kube-scheduler found no node for a pod, at its last try.
    pub(crate) refusals: BTreeMap<PodKey, String>,
    disks: Disks,
    budgets: Budgets,
    buffers: Buffers,
    seed: Seed,
    settings: Settings,
    faults: Faults,
    scheduler: Scheduler,
    workloads: BTreeMap<WorkloadId, Managed>,
    member_of: BTreeMap<PodKey, WorkloadId>,
    on_node: BTreeMap<String, BTreeSet<PodKey>>,
    /// Pods without a node, with the time they entered kube-scheduler's queue.
    waiting: BTreeMap<PodKey, Timestamp>,
    /// Those of them that kube-scheduler tries next: the others wait for something that may help them.
    queued: BTreeSet<PodKey>,
    /// Whether a flush is to come.
    flushes: bool,
    /// Pods of DaemonSets, by set and node.
    daemons: BTreeMap<(PodKey, String), PodKey>,
    /// The node that a daemon's pod is made for.
    pinned: BTreeMap<PodKey, String>,
    made: u64,
    hosts: u32,
}

impl Reality {
    /// An empty world.
    pub(crate) fn new(seed: u64, settings: Settings, weather: Weather) -> Self {
        let trunk = Seed::new(seed);
        let mut reality = Self {
            now: Timestamp(0),
            api: Api::default(),
            ec2: Ec2::default(),
            boot: Boot::Usual,
            notes: Vec::new(),
            violations: Vec::new(),
            toll: Toll::default(),
            queue: Queue::default(),
            refusals: BTreeMap::new(),
            disks: Disks::default(),
            budgets: Budgets::default(),
            buffers: Buffers::default(),
            seed: trunk,
            faults: Faults::new(trunk.of("faults"), weather),
            scheduler: Scheduler::of_version(trunk.of("scheduler").word(), settings.kubernetes_minor)
                .with_default_spread(&settings.default_spread),
            settings,
            workloads: BTreeMap::new(),
            member_of: BTreeMap::new(),
            on_node: BTreeMap::new(),
            waiting: BTreeMap::new(),
            queued: BTreeSet::new(),
            flushes: false,
            daemons: BTreeMap::new(),
            pinned: BTreeMap::new(),
            made: 0,
            hosts: 0,
        };
        for (at, stroke) in reality.faults.strokes() {
            reality.queue.put(at, stroke);
        }
        reality
    }

    /// Lets one thing happen that is not the engine's to hear.
    pub(crate) fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Order(action) => self.carry(&action),
            Happening::Cycle => self.cycle(),
            Happening::Flush => self.flush(),
            Happening::Start(pod) => self.start(&pod),
            Happening::Finish(pod) => self.finish(&pod),
            Happening::Vanish(pod, uid) => self.vanish(&pod, &uid),
            Happening::Join(claim) => self.join(&claim),
            Happening::Ready(node) => self.ready(&node),
            Happening::Untaint(node) => self.untaint(&node),
            Happening::Ended(claim) => self.ended(&claim),
            Happening::Reclaim(claim) => self.reclaimed(&claim),
            Happening::TakeBack(time) => self.take_back(time),
            Happening::DeleteOne(time) => self.delete_one(time),
            Happening::Provision(claim) => self.provision(&claim),
            Happening::Detach(attachment) => self.detach(&attachment),
            Happening::Count => self.count_budgets(),
            Happening::Restock => self.restock(),
            Happening::CountHeld => self.count_held(),
            Happening::Reread(kind) => self.reread(kind),
            Happening::Outage(end) => self.outage(end),
            Happening::Readable(kind, name) => self.readable(kind, &name),
            Happening::Drought(end) => self.drought(end),
            // The controller's, not the world's.
            Happening::Tell { .. } | Happening::Crash | Happening::Restart => {}
        }
    }

    /// Everything a controller reads when it starts.
    pub(crate) fn lists(&self) -> Vec<Event> {
        let api = &self.api;
        let mut events: Vec<Event> = api.node_classes.values().cloned().map(Event::NodeClass).collect();
        let counted =
            |catalog: &std::sync::Arc<whittle_model::Catalog>| self.counted(catalog).unwrap_or_else(|| std::sync::Arc::clone(catalog));
        events.extend(api.catalogs.values().map(|catalog| Event::Catalog(counted(catalog))));
        events.extend(api.namespaces.iter().map(|(name, labels)| Event::Namespace(name.clone(), labels.clone())));
        events.extend(api.pools.values().cloned().map(|p| Event::NodePool(Box::new(p))));
        events.extend(api.daemon_sets.values().cloned().map(|d| Event::DaemonSet(Box::new(d))));
        events.extend(api.limit_ranges.values().cloned().map(|range| Event::LimitRange(Box::new(range))));
        events.extend(api.overlays.values().cloned().map(|overlay| Event::NodeOverlay(Box::new(overlay))));
        events.extend(self.disks.lists());
        events.extend(self.budgets.lists());
        events.extend(self.buffers.lists());
        events.extend(api.claims.values().cloned().map(|c| Event::Claim(Box::new(c))));
        events.extend(self.drifts());
        events.extend(api.nodes.values().cloned().map(|n| Event::Node(Box::new(n))));
        events.extend(api.pods.values().cloned().map(|p| Event::Pod(Box::new(p))));
        events
    }

    /// The workload of a pod as the timeline names it; the pod itself when it has none.
    pub(crate) fn workload_of(&self, pod: &PodKey) -> String {
        if let Some((_, key)) = self.member_of.get(pod) {
            return key.to_string();
        }
        let owner = self.api.pods.get(pod).and_then(|p| p.owner.as_ref());
        owner.map_or_else(|| pod.to_string(), |owner| PodKey::new(&pod.namespace, &owner.name).to_string())
    }

    /// The node of a claim, once it has joined.
    pub(crate) fn node_of_claim(&self, claim: &str) -> Option<&Node> {
        let instance = self.ec2.of_claim(claim)?;
        self.api.nodes.get(&instance.node)
    }

    /// Pods on a node that hold room.
    pub(crate) fn pods_on(&self, node: &str) -> impl Iterator<Item = &Pod> {
        self.on_node.get(node).into_iter().flatten().filter_map(|key| self.api.pods.get(key))
    }

    /// Pods without a node.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &PodKey> {
        self.waiting.keys()
    }

    /// Pods without a node that are no daemons'.
    pub(crate) fn pending(&self) -> impl Iterator<Item = &PodKey> {
        self.waiting.keys().filter(|key| !self.pinned.contains_key(*key))
    }

    /// Whether the server keeps nominations, and the engine makes them.
    pub(crate) fn nominates(&self) -> bool {
        self.settings.nominates()
    }

    /// Kubernetes minor version of the server.
    pub(crate) const fn minor(&self) -> u32 {
        self.settings.kubernetes_minor
    }

    /// What the clock of the API server shows.
    pub(crate) fn clock(&self) -> Timestamp {
        self.now.plus(self.faults.skew())
    }

    fn later(&mut self, span: Duration, happening: Happening) {
        self.queue.put(self.now.plus(span), happening);
    }
}
