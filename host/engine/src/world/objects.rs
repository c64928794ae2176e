//! What of the picture goes into a checkpoint, as lists of whole objects: numbers of interned things mean nothing elsewhere.
//!
//! What must not enter: what can be made anew from these.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use whittle_model::{
    CapacityBuffer, Catalog, DaemonSet, Labels, LimitRange, Node, NodeClaim, NodeClass, NodeOverlay, NodePool, OfferingKey, Pod,
    PodDisruptionBudget, PodKey, Settings, Timestamp,
};

use super::World;
use crate::interruptions::{Interruptions, SeenList};
use crate::learned::{Learned, Shortfall};
use crate::set_aside::SetAside;
use crate::storage::{Storage, StorageObjects};

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
    interruptions: SeenList,
    advised: BTreeMap<String, Timestamp>,
    assigned: Vec<(PodKey, String)>,
    #[serde(default)]
    seated: Vec<(PodKey, String)>,
    provider_drift: BTreeMap<String, Option<String>>,
    aside: SetAside,
}

impl World {
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
            interruptions: self.interruptions.list(),
            advised: self.advised.clone(),
            assigned: self.assigned.iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
            seated: self.seated.iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
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
        world.provider_drift = objects.provider_drift;
        world.learned = Learned::of_objects(objects.learned);
        world.interruptions = Interruptions::of_list(objects.interruptions);
        world.advised = objects.advised;
        world.aside = objects.aside;
        for (pod, claim) in objects.assigned {
            world.assigned.set(pod, &claim);
        }
        world.seated = objects.seated.into_iter().collect();
        world.overlay();
        world
    }
}
