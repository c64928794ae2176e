//! The one picture of the cluster: what the events said, indexed for planning. It holds facts and
//! what was learned from answers; it decides nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use whittle_model::{
    Affinity, CapacityBuffer, Catalog, DaemonSet, Duration, Event, HostPort, Labels, LimitRange, Node, NodeClaim, NodeClass, NodeOverlay,
    NodePool, OfferingKey, Owner, Pod, PodAffinityTerm, PodDisruptionBudget, PodKey, PodPhase, PodVolume, Preferences, Resources, Settings,
    Timestamp, Toleration, TopologySpread,
};

use crate::assigned::Assigned;
use crate::buffers::Buffers;
use crate::daemon_pods::DaemonPods;
use crate::intern::Interner;
use crate::learned::{Learned, Shortfall};
use crate::overlays::{self, Overlaid, OverlayVerdict};
use crate::set_aside::SetAside;
use crate::storage::{Storage, StorageObjects};

/// Everything of a pod that decides where it may go; pods of a workload share one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Shape {
    pub(crate) requests: Resources,
    pub(crate) affinity: Affinity,
    pub(crate) tolerations: Vec<Toleration>,
    pub(crate) spread: Vec<TopologySpread>,
    pub(crate) pod_affinity: Vec<PodAffinityTerm>,
    pub(crate) anti_affinity: Vec<PodAffinityTerm>,
    pub(crate) preferences: Preferences,
    pub(crate) host_ports: Vec<HostPort>,
    pub(crate) resource_claims: bool,
    pub(crate) unsupported: Vec<String>,
    pub(crate) priority: i32,
    pub(crate) priority_class: String,
}

/// What many pods have in common besides their shape.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Identity {
    pub(crate) namespace: String,
    pub(crate) labels: Labels,
    pub(crate) annotations: Labels,
    pub(crate) owner: Option<Owner>,
}

/// A pod: two numbers, and what is its own.
#[derive(Debug, Clone)]
pub(crate) struct PodRecord {
    pub(crate) uid: String,
    pub(crate) shape: u32,
    pub(crate) identity: u32,
    pub(crate) created: Timestamp,
    pub(crate) phase: PodPhase,
    pub(crate) node: Option<String>,
    pub(crate) nominated: Option<String>,
    pub(crate) unschedulable: bool,
    pub(crate) deleting: bool,
    pub(crate) ready: bool,
    pub(crate) volumes: Box<[PodVolume]>,
    pub(crate) started: Option<Timestamp>,
    pub(crate) grace: Duration,
    pub(crate) ends_at: Option<Timestamp>,
}

impl PodRecord {
    pub(crate) fn terminal(&self) -> bool {
        matches!(self.phase, PodPhase::Succeeded | PodPhase::Failed)
    }
}

/// What pods on one node take of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Usage {
    /// All pods that hold room.
    pub(crate) total: Resources,
    /// The DaemonSets that have pods among them, with the number of those.
    pub(crate) daemons: BTreeMap<PodKey, usize>,
    /// Pods that hold room, in order.
    pub(crate) pods: BTreeSet<PodKey>,
    /// How many of them are not daemons' and not static.
    pub(crate) workload: usize,
}

/// The DaemonSet that owns a pod, if one does.
fn daemon_set_of(namespace: &str, owner: Option<&Owner>) -> Option<PodKey> {
    owner.filter(|o| o.kind == "DaemonSet").map(|o| PodKey::new(namespace, &o.name))
}

/// The picture.
#[derive(Debug, Clone, Default)]
pub struct World {
    pub(crate) settings: Settings,
    pub(crate) synced: bool,
    pub(crate) shapes: Interner<Shape>,
    pub(crate) identities: Interner<Identity>,
    pub(crate) pods: BTreeMap<PodKey, PodRecord>,
    /// Pods without a node that kube-scheduler could not place.
    pub(crate) pending: BTreeSet<PodKey>,
    pub(crate) usage: BTreeMap<String, Usage>,
    pub(crate) nodes: BTreeMap<String, Node>,
    pub(crate) node_by_provider: BTreeMap<String, String>,
    pub(crate) claims: BTreeMap<String, NodeClaim>,
    pub(crate) claim_by_provider: BTreeMap<String, String>,
    pub(crate) pools: BTreeMap<String, NodePool>,
    pub(crate) node_classes: BTreeMap<String, NodeClass>,
    pub(crate) daemon_sets: BTreeMap<PodKey, DaemonSet>,
    pub(crate) daemon_pods: DaemonPods,
    /// Claims, volumes, classes, limits and attachments.
    pub(crate) storage: Storage,
    pub(crate) budgets: BTreeMap<PodKey, PodDisruptionBudget>,
    pub(crate) limit_ranges: BTreeMap<PodKey, LimitRange>,
    pub(crate) overlays: BTreeMap<String, NodeOverlay>,
    pub(crate) buffers: Buffers,
    pub(crate) catalogs: BTreeMap<String, Arc<Catalog>>,
    /// What overlays make of catalogues.
    pub(crate) overlaid: Overlaid,
    /// Labels of namespaces.
    pub(crate) namespaces: BTreeMap<String, Labels>,
    /// Offerings that answered "sold out", and until when they are left alone.
    pub(crate) sold_out: BTreeMap<OfferingKey, Timestamp>,
    /// When offerings last answered "sold out", for a day.
    pub(crate) sold_out_log: BTreeMap<OfferingKey, Timestamp>,
    /// By how much nodes had less than computed.
    pub(crate) learned: Learned,
    /// Which claim each planned pod is meant for.
    pub(crate) assigned: Assigned,
    /// How many pods without a node are nominated to each node.
    pub(crate) nominated: BTreeMap<String, usize>,
    /// Claims whose removal was ordered and that the watch still shows alive.
    pub(crate) leaving: BTreeSet<String>,
    /// Claims that something happened to since the last round.
    pub(crate) touched: BTreeSet<String>,
    /// Claims whose instance is no longer what their node class asks for, with the reason.
    pub(crate) provider_drift: BTreeMap<String, String>,
    /// Objects that could not be read.
    pub(crate) aside: SetAside,
}

/// The objects of a [`World`], for a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WorldObjects {
    settings: Settings,
    synced: bool,
    pods: Vec<Pod>,
    nodes: Vec<Node>,
    claims: Vec<NodeClaim>,
    pools: Vec<NodePool>,
    node_classes: Vec<NodeClass>,
    daemon_sets: Vec<DaemonSet>,
    storage: StorageObjects,
    budgets: Vec<PodDisruptionBudget>,
    limit_ranges: Vec<LimitRange>,
    overlays: Vec<NodeOverlay>,
    buffers: Vec<CapacityBuffer>,
    catalogs: Vec<Arc<Catalog>>,
    namespaces: BTreeMap<String, Labels>,
    sold_out: Vec<(OfferingKey, Timestamp)>,
    sold_out_log: Vec<(OfferingKey, Timestamp)>,
    learned: Vec<Shortfall>,
    assigned: Vec<(PodKey, String)>,
    provider_drift: BTreeMap<String, String>,
    aside: SetAside,
}

impl World {
    /// The pod of this name, whole.
    #[must_use]
    pub fn pod(&self, key: &PodKey) -> Option<Pod> {
        let record = self.pods.get(key)?;
        let (shape, identity) = (self.shapes.value(record.shape), self.identities.value(record.identity));
        Some(Pod {
            key: key.clone(),
            uid: record.uid.clone(),
            labels: identity.labels.clone(),
            annotations: identity.annotations.clone(),
            owner: identity.owner.clone(),
            created: record.created,
            phase: record.phase,
            node: record.node.clone(),
            nominated: record.nominated.clone(),
            unschedulable: record.unschedulable,
            deleting: record.deleting,
            requests: shape.requests.clone(),
            affinity: shape.affinity.clone(),
            tolerations: shape.tolerations.clone(),
            spread: shape.spread.clone(),
            pod_affinity: shape.pod_affinity.clone(),
            anti_affinity: shape.anti_affinity.clone(),
            preferences: shape.preferences.clone(),
            host_ports: shape.host_ports.clone(),
            resource_claims: shape.resource_claims,
            ready: record.ready,
            volumes: record.volumes.to_vec(),
            started: record.started,
            grace: record.grace,
            ends_at: record.ends_at,
            priority: shape.priority,
            priority_class: shape.priority_class.clone(),
            unsupported: shape.unsupported.clone(),
        })
    }

    /// Names of all pods, in order.
    pub fn pod_keys(&self) -> impl Iterator<Item = &PodKey> {
        self.pods.keys()
    }

    /// Pods that kube-scheduler could not place, in the order of their names.
    pub fn pending(&self) -> impl Iterator<Item = &PodKey> {
        self.pending.iter()
    }

    /// All nodes, by name.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.values()
    }

    /// The node of this name.
    #[must_use]
    pub fn node(&self, name: &str) -> Option<&Node> {
        self.nodes.get(name)
    }

    /// All claims, by name.
    pub fn claims(&self) -> impl Iterator<Item = &NodeClaim> {
        self.claims.values()
    }

    /// The claim of this name.
    #[must_use]
    pub fn claim(&self, name: &str) -> Option<&NodeClaim> {
        self.claims.get(name)
    }

    /// The pool of this name.
    #[must_use]
    pub fn pool(&self, name: &str) -> Option<&NodePool> {
        self.pools.get(name)
    }

    /// All pools, by name.
    pub fn pools(&self) -> impl Iterator<Item = &NodePool> {
        self.pools.values()
    }

    /// All DaemonSets, by name.
    pub fn daemon_sets(&self) -> impl Iterator<Item = &DaemonSet> {
        self.daemon_sets.values()
    }

    /// What a node class can buy.
    #[must_use]
    pub fn catalog(&self, node_class: &str) -> Option<&Catalog> {
        self.catalogs.get(node_class).map(Arc::as_ref)
    }

    /// What a claim can become, with what overlays make of that.
    pub(crate) fn catalog_of(&self, claim: &NodeClaim) -> Option<&Catalog> {
        let faces = self.overlaid.faces.get(&claim.node_pool);
        let face = faces.into_iter().flatten().find(|face| face.holds(&claim.requirements));
        face.map(|face| &*face.catalog).or_else(|| self.catalog(&claim.node_class))
    }

    /// What became of each overlay, by name; empty while overlays are switched off.
    #[must_use]
    pub const fn overlay_verdicts(&self) -> &BTreeMap<String, OverlayVerdict> {
        &self.overlaid.verdicts
    }

    /// Counts an instance that was launched into a capacity reservation, until catalogues say so themselves.
    pub(crate) fn launched_into(&mut self, reservation: &str) {
        let is = |o: &whittle_model::Offering| o.reservation.as_ref().is_some_and(|r| r.id == reservation);
        let has = |catalog: &Arc<Catalog>| catalog.types.iter().any(|t| t.offerings.iter().any(is));
        for catalog in self.catalogs.values_mut().filter(|catalog| has(catalog)) {
            for offering in Arc::make_mut(catalog).types.iter_mut().flat_map(|t| &mut t.offerings).filter(|o| is(o)) {
                if let Some(reservation) = &mut offering.reservation {
                    reservation.left = reservation.left.saturating_sub(1);
                    offering.available &= reservation.left > 0;
                }
            }
        }
        self.overlay();
    }

    /// Looks anew at what overlays make of catalogues.
    pub(crate) fn overlay(&mut self) {
        self.overlaid = overlays::derive(self);
    }

    /// Names of the pods that hold room on a node.
    pub fn pods_on(&self, node: &str) -> impl Iterator<Item = &PodKey> {
        self.usage.get(node).into_iter().flat_map(|usage| usage.pods.iter())
    }

    /// Until when an offering is left alone because it was sold out.
    #[must_use]
    pub fn sold_out_until(&self, offering: &OfferingKey) -> Option<Timestamp> {
        self.sold_out.get(offering).copied()
    }

    /// Seconds since an offering last answered that it is sold out; -1 when that is not remembered.
    pub(crate) fn sold_out_ago(&self, offering: &OfferingKey, now: Timestamp) -> i64 {
        self.sold_out_log.get(offering).map_or(-1, |at| now.since(*at).as_seconds().max(0))
    }

    /// The settings in force.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn shape_of(&self, record: &PodRecord) -> &Shape {
        self.shapes.value(record.shape)
    }

    pub(crate) fn identity_of(&self, record: &PodRecord) -> &Identity {
        self.identities.value(record.identity)
    }

    /// Whether a pod comes and goes with its node: a daemon's, or a static one.
    pub(crate) fn tied_to_node(&self, record: &PodRecord) -> bool {
        self.identity_of(record).owner.as_ref().is_some_and(|o| o.kind == "DaemonSet" || o.kind == "Node")
    }

    pub(crate) fn put_pod(&mut self, pod: &Pod) {
        self.drop_pod(&pod.key, false);
        let shape = self.shapes.number(Shape {
            requests: pod.requests.clone(),
            affinity: pod.affinity.clone(),
            tolerations: pod.tolerations.clone(),
            spread: pod.spread.clone(),
            pod_affinity: pod.pod_affinity.clone(),
            anti_affinity: pod.anti_affinity.clone(),
            preferences: pod.preferences.clone(),
            host_ports: pod.host_ports.clone(),
            resource_claims: pod.resource_claims,
            unsupported: pod.unsupported.clone(),
            priority: pod.priority,
            priority_class: pod.priority_class.clone(),
        });
        let identity = self.identities.number(Identity {
            namespace: pod.key.namespace.clone(),
            labels: pod.labels.clone(),
            annotations: pod.annotations.clone(),
            owner: pod.owner.clone(),
        });
        let record = PodRecord {
            uid: pod.uid.clone(),
            shape,
            identity,
            created: pod.created,
            phase: pod.phase,
            node: pod.node.clone(),
            nominated: pod.nominated.clone(),
            unschedulable: pod.unschedulable,
            deleting: pod.deleting,
            ready: pod.ready,
            volumes: pod.volumes.clone().into_boxed_slice(),
            started: pod.started,
            grace: pod.grace,
            ends_at: pod.ends_at,
        };
        if record.node.is_some() || record.terminal() || record.deleting {
            self.assigned.clear(&pod.key);
        }
        if record.node.is_none() && record.unschedulable && !record.deleting && !record.terminal() && !pod.tied_to_node() {
            self.pending.insert(pod.key.clone());
        }
        if pod.holds_room()
            && let Some(node) = &pod.node
        {
            let usage = self.usage.entry(node.clone()).or_default();
            usage.total.add(&pod.requests);
            usage.pods.insert(pod.key.clone());
            usage.workload += usize::from(!pod.tied_to_node());
            if let Some(set) = daemon_set_of(&pod.key.namespace, pod.owner.as_ref()) {
                *usage.daemons.entry(set).or_default() += 1;
            }
        }
        if let Some(node) = record.nominated.as_ref().filter(|_| record.node.is_none()) {
            *self.nominated.entry(node.clone()).or_default() += 1;
        }
        if pod.phase == PodPhase::Running
            && !pod.deleting
            && let Some(set) = daemon_set_of(&pod.key.namespace, pod.owner.as_ref())
        {
            self.daemon_pods.insert(set, pod.created, &pod.key.name);
        }
        self.pods.insert(pod.key.clone(), record);
        self.touch_claims_of(&pod.key);
    }

    /// What a pod that waits for a place asks for: who it is and what decides where it may go.
    pub(crate) fn wants(&self, key: &PodKey) -> Option<(String, u32, u32)> {
        let record = self.pods.get(key).filter(|_| self.pending.contains(key))?;
        Some((record.uid.clone(), record.shape, record.identity))
    }

    /// Marks the claims that a pod concerns: that of its node, of its nomination, of its plan.
    fn touch_claims_of(&mut self, key: &PodKey) {
        let Some(record) = self.pods.get(key) else { return };
        let nodes = record.node.iter().chain(&record.nominated).filter_map(|name| self.nodes.get(name));
        let claims = nodes.filter_map(|node| self.claim_by_provider.get(&node.provider_id)).chain(self.assigned.claim(key));
        self.touched.extend(claims.cloned());
    }

    /// Marks the claims of a pool.
    pub(crate) fn touch_pool(&mut self, pool: &str) {
        self.touched.extend(self.claims.values().filter(|c| c.node_pool == pool).map(|c| c.name.clone()));
    }

    fn touch_claim_of(&mut self, provider_id: &str) {
        self.touched.extend(self.claim_by_provider.get(provider_id).cloned());
    }

    /// Forgets a pod; `for_good` also forgets what was planned for it.
    pub(crate) fn drop_pod(&mut self, key: &PodKey, for_good: bool) {
        self.touch_claims_of(key);
        if for_good {
            self.assigned.clear(key);
        }
        let Some(record) = self.pods.remove(key) else { return };
        self.pending.remove(key);
        if let Some(node) = record.nominated.as_ref().filter(|_| record.node.is_none())
            && let Some(count) = self.nominated.get_mut(node)
        {
            *count -= 1;
            if *count == 0 {
                self.nominated.remove(node);
            }
        }
        let tied = self.tied_to_node(&record);
        let set = daemon_set_of(&key.namespace, self.identity_of(&record).owner.as_ref());
        if let Some(set) = &set {
            self.daemon_pods.remove(set, record.created, &key.name);
        }
        let requests = self.shapes.value(record.shape).requests.clone();
        let Some(name) = record.node.as_ref().filter(|_| !record.terminal()) else { return };
        if let Some(usage) = self.usage.get_mut(name)
            && usage.pods.remove(key)
        {
            usage.total.subtract(&requests);
            usage.workload -= usize::from(!tied);
            if let Some((set, count)) = set.and_then(|set| usage.daemons.get_mut(&set).map(|count| (set, count))) {
                *count -= 1;
                if *count == 0 {
                    usage.daemons.remove(&set);
                }
            }
            if usage.pods.is_empty() {
                self.usage.remove(name);
            }
        }
    }

    pub(crate) fn put_node(&mut self, node: Node) {
        self.drop_node(&node.name);
        self.touch_claim_of(&node.provider_id);
        if !node.provider_id.is_empty() {
            self.node_by_provider.insert(node.provider_id.clone(), node.name.clone());
        }
        self.nodes.insert(node.name.clone(), node);
    }

    pub(crate) fn drop_node(&mut self, name: &str) {
        if let Some(node) = self.nodes.remove(name) {
            self.touch_claim_of(&node.provider_id);
            self.node_by_provider.remove(&node.provider_id);
        }
    }

    /// Takes a claim as the watch shows it. What this engine already knows of it and the watch has
    /// not shown yet stays: a late read must not undo a launch.
    pub(crate) fn put_claim(&mut self, mut claim: NodeClaim) {
        if let Some(known) = self.claims.get(&claim.name) {
            let (new, old) = (&mut claim.status, &known.status);
            if new.provider_id.is_empty() && !old.provider_id.is_empty() {
                *new = old.clone();
            } else {
                new.registered = new.registered.or(old.registered);
                new.initialized = new.initialized.or(old.initialized);
                new.last_pod_event = new.last_pod_event.max(old.last_pod_event);
            }
            for (key, value) in &known.labels {
                claim.labels.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
        if !claim.status.provider_id.is_empty() {
            self.claim_by_provider.insert(claim.status.provider_id.clone(), claim.name.clone());
        }
        self.touched.insert(claim.name.clone());
        self.claims.insert(claim.name.clone(), claim);
    }

    pub(crate) fn drop_claim(&mut self, name: &str) {
        if let Some(claim) = self.claims.remove(name) {
            self.claim_by_provider.remove(&claim.status.provider_id);
        }
        self.leaving.remove(name);
        self.provider_drift.remove(name);
        self.assigned.clear_claim(name);
    }

    /// Takes in objects that nothing waits for.
    pub(crate) fn note(&mut self, event: &Event) {
        if let Event::DaemonSet(set) = event {
            self.daemon_sets.insert(set.key.clone(), (**set).clone());
        } else if let Event::DaemonSetGone(key) = event {
            self.daemon_sets.remove(key);
        } else if let Event::Namespace(name, labels) = event {
            self.namespaces.insert(name.clone(), labels.clone());
        } else if let Event::NamespaceGone(name) = event {
            self.namespaces.remove(name);
        } else if let Event::NodePoolGone(name) = event {
            self.pools.remove(name);
        } else if let Event::NodeClassGone(name) = event {
            self.node_classes.remove(name);
        } else if let Event::PodDisruptionBudget(budget) = event {
            self.budgets.insert(budget.key.clone(), (**budget).clone());
        } else if let Event::PodDisruptionBudgetGone(key) = event {
            self.budgets.remove(key);
        } else if let Event::LimitRange(range) = event {
            self.limit_ranges.insert(range.key.clone(), (**range).clone());
        } else if let Event::LimitRangeGone(key) = event {
            self.limit_ranges.remove(key);
        } else if let Event::NodeOverlay(overlay) = event {
            self.overlays.insert(overlay.name.clone(), (**overlay).clone());
        } else if let Event::NodeOverlayGone(name) = event {
            self.overlays.remove(name);
        } else if let Event::ProviderDrift { claim, reason } = event {
            match reason.as_ref().filter(|_| self.claims.contains_key(claim)) {
                Some(reason) => self.provider_drift.insert(claim.clone(), reason.clone()),
                None => self.provider_drift.remove(claim),
            };
        } else if let Event::CapacityBuffer(buffer) = event {
            self.buffers.put((**buffer).clone());
            self.fill_buffers();
        } else if let Event::CapacityBufferGone(key) = event {
            self.buffers.drop(key);
            self.fill_buffers();
        } else {
            self.storage.note(event);
        }
    }

    /// The claim of a node, if it has one.
    pub(crate) fn claim_of(&self, node: &Node) -> Option<&NodeClaim> {
        self.claims.get(self.claim_by_provider.get(&node.provider_id)?)
    }

    /// The node of a claim, once it has joined.
    pub(crate) fn node_of(&self, claim: &NodeClaim) -> Option<&Node> {
        self.nodes.get(self.node_by_provider.get(&claim.status.provider_id)?)
    }

    pub(crate) fn objects(&self) -> WorldObjects {
        WorldObjects {
            settings: self.settings.clone(),
            synced: self.synced,
            pods: self.pods.keys().filter(|key| !self.buffers.holds(key)).filter_map(|key| self.pod(key)).collect(),
            nodes: self.nodes.values().cloned().collect(),
            claims: self.claims.values().cloned().collect(),
            pools: self.pools.values().cloned().collect(),
            node_classes: self.node_classes.values().cloned().collect(),
            daemon_sets: self.daemon_sets.values().cloned().collect(),
            storage: self.storage.objects(),
            budgets: self.budgets.values().cloned().collect(),
            limit_ranges: self.limit_ranges.values().cloned().collect(),
            overlays: self.overlays.values().cloned().collect(),
            buffers: self.buffers.objects(),
            catalogs: self.catalogs.values().cloned().collect(),
            namespaces: self.namespaces.clone(),
            sold_out: self.sold_out.iter().map(|(k, v)| (k.clone(), *v)).collect(),
            sold_out_log: self.sold_out_log.iter().map(|(k, v)| (k.clone(), *v)).collect(),
            learned: self.learned.objects(),
            assigned: self.assigned.iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
            provider_drift: self.provider_drift.clone(),
            aside: self.aside.clone(),
        }
    }

    pub(crate) fn of_objects(objects: WorldObjects) -> Self {
        let mut world = Self { settings: objects.settings, synced: objects.synced, ..Self::default() };
        for pod in &objects.pods {
            world.put_pod(pod);
        }
        for node in objects.nodes {
            world.put_node(node);
        }
        for claim in objects.claims {
            world.put_claim(claim);
        }
        world.pools = objects.pools.into_iter().map(|p| (p.name.clone(), p)).collect();
        world.node_classes = objects.node_classes.into_iter().map(|c| (c.name.clone(), c)).collect();
        world.daemon_sets = objects.daemon_sets.into_iter().map(|d| (d.key.clone(), d)).collect();
        world.storage = Storage::of_objects(objects.storage);
        world.budgets = objects.budgets.into_iter().map(|b| (b.key.clone(), b)).collect();
        world.limit_ranges = objects.limit_ranges.into_iter().map(|l| (l.key.clone(), l)).collect();
        objects.buffers.into_iter().for_each(|buffer| world.buffers.put(buffer));
        world.fill_buffers();
        world.overlays = objects.overlays.into_iter().map(|o| (o.name.clone(), o)).collect();
        world.catalogs = objects.catalogs.into_iter().map(|c| (c.node_class.clone(), c)).collect();
        world.namespaces = objects.namespaces;
        world.sold_out = objects.sold_out.into_iter().collect();
        world.sold_out_log = objects.sold_out_log.into_iter().collect();
        world.learned = Learned::of_objects(objects.learned);
        world.provider_drift = objects.provider_drift;
        world.aside = objects.aside;
        for (pod, claim) in objects.assigned {
            world.assigned.set(pod, &claim);
        }
        world.overlay();
        world
    }
}
