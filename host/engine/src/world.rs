//! The one picture of the cluster: what the events said, indexed for planning. It holds facts; it decides nothing.

mod objects;
mod pods;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use whittle_model::{
    Affinity, Catalog, DaemonSet, Duration, Event, HostPort, Labels, LimitRange, Node, NodeClaim, NodeClass, NodeOverlay, NodePool,
    OfferingKey, Owner, Pod, PodAffinityTerm, PodDisruptionBudget, PodKey, PodPhase, PodVolume, Preferences, Resources, Settings,
    Timestamp, Toleration, TopologySpread,
};

use crate::assigned::Assigned;
use crate::buffers::Buffers;
use crate::daemon_pods::DaemonPods;
use crate::drain;
use crate::intern::Interner;
use crate::interruptions::Interruptions;
use crate::learned::Learned;
use crate::overlays::{self, Overlaid, OverlayVerdict};
use crate::plan::stock::Stocks;
use crate::set_aside::SetAside;
use crate::storage::Storage;
pub(crate) use objects::WorldObjects;

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
    pub(crate) restarts: u32,
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
    /// The DaemonSets that have pods among them, by the number of their name, with the number of those.
    pub(crate) daemons: BTreeMap<u32, usize>,
    /// Pods that hold room, in order.
    pub(crate) pods: BTreeSet<PodKey>,
    /// How many of them are not daemons' and not static.
    pub(crate) workload: usize,
}

/// The picture.
#[derive(Debug, Clone, Default)]
pub struct World {
    pub(crate) settings: Settings,
    pub(crate) synced: bool,
    pub(crate) shapes: Interner<Shape>,
    pub(crate) identities: Interner<Identity>,
    /// Names of DaemonSets.
    pub(crate) set_names: Interner<PodKey>,
    pub(crate) pods: BTreeMap<PodKey, PodRecord>,
    /// Pods without a node that kube-scheduler could not place.
    pub(crate) pending: BTreeSet<PodKey>,
    pub(crate) usage: BTreeMap<String, Usage>,
    /// By shape and identity: how many pods that are not being deleted are on which node, by the number of its name.
    pub(crate) sorts: BTreeMap<(u32, u32), BTreeMap<u32, u32>>,
    /// Names of nodes.
    pub(crate) node_names: Interner<String>,
    /// By shape: pods on nodes that exclude others and are not being deleted.
    pub(crate) excluders: BTreeMap<u32, BTreeSet<PodKey>>,
    /// By namespace and controller: its pods that are neither ending nor ended.
    pub(crate) replicas: BTreeMap<(String, Owner), usize>,
    pub(crate) nodes: BTreeMap<String, Node>,
    /// Nodes by provider id: one each, unless something is wrong.
    pub(crate) nodes_by_provider: BTreeMap<String, BTreeSet<String>>,
    pub(crate) claims: BTreeMap<String, NodeClaim>,
    pub(crate) claim_by_provider: BTreeMap<String, String>,
    /// The same by instance id: messages of the queue may not name the zone.
    claim_by_instance: BTreeMap<String, String>,
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
    /// What pools can buy, as far as plans have found it out. Nothing follows from it but how long a plan takes.
    pub(crate) stocks: RefCell<Stocks>,
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
    /// Pods that have room on nodes in use by the last plan, and which: kube-scheduler is about to bind them there.
    pub(crate) seated: BTreeMap<PodKey, String>,
    /// How many pods without a node are nominated to each node.
    pub(crate) nominated: BTreeMap<String, usize>,
    /// How often spot capacity was taken back.
    pub(crate) interruptions: Interruptions,
    /// Claims whose instance EC2 advises to replace, and since when.
    pub(crate) advised: BTreeMap<String, Timestamp>,
    /// Claims that are being deleted.
    pub(crate) going: BTreeSet<String>,
    /// Claims whose removal was ordered and that the watch still shows alive.
    pub(crate) leaving: BTreeSet<String>,
    /// Claims that something happened to since the last round.
    pub(crate) touched: BTreeSet<String>,
    /// Claims whose instance is no longer what their node class asks for, with the reason.
    pub(crate) provider_drift: BTreeMap<String, Option<String>>,
    /// Objects that could not be read.
    pub(crate) aside: SetAside,
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
            restarts: record.restarts,
            priority: shape.priority,
            priority_class: shape.priority_class.clone(),
            unsupported: shape.unsupported.clone(),
        })
    }

    /// Names of all pods of the cluster, in order.
    pub fn pod_keys(&self) -> impl Iterator<Item = &PodKey> {
        self.pods.keys().filter(|pod| !self.buffers.holds(pod))
    }

    /// Pods of the cluster that kube-scheduler could not place, in the order of their names.
    pub fn pending(&self) -> impl Iterator<Item = &PodKey> {
        self.pending.iter().filter(|pod| !self.buffers.holds(pod))
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
        self.stocks.get_mut().clear();
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

    /// Offerings that are left alone for a while because they were sold out or taken back.
    pub fn sold_out(&self) -> impl Iterator<Item = &OfferingKey> {
        self.sold_out.keys()
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

    /// Marks the claims of a pool.
    pub(crate) fn touch_pool(&mut self, pool: &str) {
        self.touched.extend(self.claims.values().filter(|c| c.node_pool == pool).map(|c| c.name.clone()));
    }

    fn touch_claim_of(&mut self, provider_id: &str) {
        self.touched.extend(self.claim_by_provider.get(provider_id).cloned());
    }

    pub(crate) fn put_node(&mut self, node: Node) {
        self.drop_node(&node.name);
        self.touch_claim_of(&node.provider_id);
        if !node.provider_id.is_empty() {
            self.nodes_by_provider.entry(node.provider_id.clone()).or_default().insert(node.name.clone());
        }
        self.nodes.insert(node.name.clone(), node);
    }

    pub(crate) fn drop_node(&mut self, name: &str) {
        if let Some(node) = self.nodes.remove(name) {
            self.touch_claim_of(&node.provider_id);
            if let Some(names) = self.nodes_by_provider.get_mut(&node.provider_id) {
                names.remove(name);
                if names.is_empty() {
                    self.nodes_by_provider.remove(&node.provider_id);
                }
            }
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
                new.drained = drain::later(new.drained, old.drained);
                new.volumes_detached = drain::later(new.volumes_detached, old.volumes_detached);
                new.instance_terminating = new.instance_terminating.or(old.instance_terminating);
                new.inconsistent.clone_from(&old.inconsistent);
                new.registration_error.clone_from(&old.registration_error);
            }
            for (key, value) in &known.labels {
                claim.labels.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
        if !claim.status.provider_id.is_empty() {
            self.runs_on(&claim.name, &claim.status.provider_id);
        }
        self.touched.insert(claim.name.clone());
        if claim.deleting {
            self.going.insert(claim.name.clone());
        }
        self.claims.insert(claim.name.clone(), claim);
    }

    /// A claim's instance is known.
    pub(crate) fn runs_on(&mut self, claim: &str, provider_id: &str) {
        self.claim_by_provider.insert(provider_id.to_owned(), claim.to_owned());
        self.claim_by_instance.insert(instance_id(provider_id).to_owned(), claim.to_owned());
    }

    /// The claim of an instance, whatever zone its provider id names.
    pub(crate) fn claim_of_instance(&self, provider_id: &str) -> Option<&NodeClaim> {
        self.claims.get(self.claim_by_instance.get(instance_id(provider_id))?)
    }

    pub(crate) fn drop_claim(&mut self, name: &str) {
        if let Some(claim) = self.claims.remove(name) {
            self.claim_by_provider.remove(&claim.status.provider_id);
            self.claim_by_instance.remove(instance_id(&claim.status.provider_id));
        }
        self.going.remove(name);
        self.advised.remove(name);
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
            self.touched.extend(self.going.iter().cloned());
        } else if let Event::PodDisruptionBudgetGone(key) = event {
            self.budgets.remove(key);
            self.touched.extend(self.going.iter().cloned());
        } else if let Event::LimitRange(range) = event {
            self.limit_ranges.insert(range.key.clone(), (**range).clone());
        } else if let Event::LimitRangeGone(key) = event {
            self.limit_ranges.remove(key);
        } else if let Event::NodeOverlay(overlay) = event {
            self.overlays.insert(overlay.name.clone(), (**overlay).clone());
        } else if let Event::NodeOverlayGone(name) = event {
            self.overlays.remove(name);
        } else if let Event::ProviderDrift { claim, reason } = event {
            if self.claims.contains_key(claim) {
                self.provider_drift.insert(claim.clone(), reason.clone());
            }
        } else if let Event::CapacityBuffer(buffer) = event {
            self.buffers.put((**buffer).clone());
            self.fill_buffers();
        } else if let Event::CapacityBufferGone(key) = event {
            self.buffers.drop(key);
            self.fill_buffers();
        } else {
            if matches!(event, Event::VolumeAttachmentGone(_) | Event::VolumeClaim(_)) {
                self.touched.extend(self.going.iter().cloned());
            }
            self.storage.note(event);
        }
    }

    /// All nodes, by name, with what pods take of them.
    pub(crate) fn in_use(&self) -> impl Iterator<Item = (&Node, Option<&Usage>)> {
        let mut usages = self.usage.iter().peekable();
        self.nodes.values().map(move |node| {
            while usages.next_if(|(name, _)| **name < node.name).is_some() {}
            (node, usages.next_if(|(name, _)| **name == node.name).map(|(_, usage)| usage))
        })
    }

    /// The claim of a node, if it has one.
    pub(crate) fn claim_of(&self, node: &Node) -> Option<&NodeClaim> {
        self.claims.get(self.claim_by_provider.get(&node.provider_id)?)
    }

    /// The node of a claim, once it has joined; the first by name if there should be several.
    pub(crate) fn node_of(&self, claim: &NodeClaim) -> Option<&Node> {
        self.nodes_of(claim).next()
    }

    /// All nodes that say they are the instance of a claim.
    pub(crate) fn nodes_of(&self, claim: &NodeClaim) -> impl Iterator<Item = &Node> {
        let names = self.nodes_by_provider.get(&claim.status.provider_id);
        names.into_iter().flatten().filter_map(|name| self.nodes.get(name))
    }
}

/// The last part of a provider id.
fn instance_id(provider_id: &str) -> &str {
    provider_id.rsplit('/').next().unwrap_or(provider_id)
}
