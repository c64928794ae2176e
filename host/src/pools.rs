//! Keeps what NodePools, NodeOverlays, CapacityBuffers and ScoringPolicies say of themselves. What must not enter: decisions about nodes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use whittle_cluster::api;
use whittle_cluster::live::node_overlay_fault;
use whittle_cluster::write::{
    BufferFound, BufferStanding, ClassState, Gate, OverlayState, PolicyCounts, PolicyFound, PolicyState, PoolUsage, RegistrationHealth,
    Writer, capacity_buffer_patch, node_overlay_patch, node_pool_patch, scoring_policy_patch,
};
use whittle_engine::{BufferRoom, OverlayVerdict};
use whittle_model::{PodKey, Quantity, keys, resources};
use whittle_policy::chain::names;

use crate::brain::Totals;
use crate::metrics::Metrics;
use crate::policies::Verdict;
use crate::shelf::{Known, Shelf};
use crate::{clock, status};

/// A change of a pool or its class is answered about this fast.
const LOOK: Duration = Duration::from_secs(1);
/// As Karpenter: totals of pools are counted about every five seconds.
const TOTALS: i64 = 5_000;
/// Counts of a policy's calls are for people: a write a minute is enough.
const COUNTS: i64 = 60_000;

/// Keeps them.
pub struct Pools {
    /// Writes to Kubernetes.
    pub writer: Arc<Writer>,
    /// What is known of pools, classes, claims and policies.
    pub shelf: Shelf,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// Closed while another replica acts.
    pub gate: Gate,
    /// Policies that stand before every chain.
    pub required: String,
    /// Certificate bundle of the cluster, for hashes of classes.
    pub ca_bundle: Option<String>,
    /// Policies, by name.
    pub policies: BTreeMap<String, Kept>,
}

/// What the engine shows of itself.
pub struct Views {
    /// What pools own, by name.
    pub totals: watch::Receiver<BTreeMap<String, Totals>>,
    /// How NodeOverlays stand, by name.
    pub overlays: watch::Receiver<BTreeMap<String, OverlayVerdict>>,
    /// How much room there is for CapacityBuffers.
    pub rooms: watch::Receiver<BTreeMap<PodKey, BufferRoom>>,
}

/// What is kept of a policy.
pub struct Kept {
    verdict: Verdict,
    /// What its status says of its calls, and since when; `None` before it says anything.
    said: Option<(PolicyCounts, i64)>,
}

impl Pools {
    /// Works until the engine's thread ends.
    pub async fn run(mut self, views: Views, mut judged: mpsc::Receiver<Verdict>) {
        let mut shown: BTreeMap<String, Totals> = BTreeMap::new();
        let mut counted = 0;
        loop {
            tokio::select! {
                verdict = judged.recv() => match verdict {
                    Some(verdict) => self.judged(verdict),
                    None => return,
                },
                () = tokio::time::sleep(LOOK) => {
                    let now = clock::now().0;
                    if now - counted >= TOTALS {
                        counted = now;
                        shown.clone_from(&views.totals.borrow());
                        self.measure(&shown);
                    }
                    // Before the first lists are in, totals are too low.
                    if self.gate.is_open() && self.metrics.synced.get() == 1 {
                        self.restamp().await;
                        self.pools(&shown).await;
                        let (verdicts, rooms) = (views.overlays.borrow().clone(), views.rooms.borrow().clone());
                        self.overlays(&verdicts).await;
                        self.buffers(&rooms).await;
                        self.policies(now).await;
                    }
                }
            }
        }
    }

    async fn pools(&self, totals: &BTreeMap<String, Totals>) {
        let pools: Vec<api::NodePool> = self.shelf.open().node_pools.values().cloned().collect();
        for pool in pools {
            let name = pool.metadata.name.clone().unwrap_or_default();
            let class = self.shelf.open().node_classes.get(&pool.spec.template.spec.node_class_ref.name).cloned();
            let total = totals.get(&name).cloned().unwrap_or_default();
            let usage = PoolUsage { resources: total.resources, nodes: total.nodes };
            let chain = self.chain(&pool);
            let state = ClassState::of(class.as_ref());
            let health = self.health(&name, &pool, class.as_ref());
            if let Some(patch) = node_pool_patch(&pool, &state, &usage, &chain, &health, clock::now()) {
                status::said(self.writer.keep_node_pool(&pool.metadata, &patch).await.map(drop));
            }
        }
    }

    /// Whether launches from the pool, as it and its class are now, come to nodes. Pools that are gone are forgotten.
    fn health(&self, name: &str, pool: &api::NodePool, class: Option<&api::EC2NodeClass>) -> RegistrationHealth {
        let version =
            (pool.metadata.uid.clone().unwrap_or_default(), pool.metadata.generation, class.and_then(|class| class.metadata.generation));
        let mut known = self.shelf.open();
        let Known { health, node_pools, .. } = &mut *known;
        health.retain(|pool, _| node_pools.contains_key(pool));
        health.entry(name.to_owned()).or_default().verdict(version, registers(pool))
    }

    /// Says of each NodeOverlay how it stands; nothing while the engine has not looked at it.
    async fn overlays(&self, verdicts: &BTreeMap<String, OverlayVerdict>) {
        let overlays: Vec<api::NodeOverlay> = self.shelf.open().node_overlays.values().cloned().collect();
        for overlay in overlays {
            let verdict = verdicts.get(overlay.metadata.name.as_deref().unwrap_or_default());
            let state = match (node_overlay_fault(&overlay), verdict) {
                (Some(why), _) => OverlayState::Invalid(why),
                (None, Some(OverlayVerdict::Applied)) => OverlayState::Applied,
                (None, Some(OverlayVerdict::Invalid(why))) => OverlayState::Invalid(why.clone()),
                (None, Some(OverlayVerdict::Conflict(other))) => OverlayState::Conflict(other.clone()),
                (None, None) => continue,
            };
            if let Some(patch) = node_overlay_patch(&overlay, &state, clock::now()) {
                status::said(self.writer.keep_node_overlay(&overlay.metadata, &patch).await.map(drop));
            }
        }
    }

    /// Says of each CapacityBuffer what it is for, and whether there is room.
    async fn buffers(&self, rooms: &BTreeMap<PodKey, BufferRoom>) {
        let buffers: Vec<(PodKey, api::CapacityBuffer, BufferFound)> =
            self.shelf.open().buffers.found().map(|(key, live, found)| (key.clone(), live.clone(), found.clone())).collect();
        for (key, live, mut found) in buffers {
            if let BufferFound::Resolved { standing, .. } = &mut found {
                let room = rooms.get(&key);
                *standing = room.map(|room| BufferStanding { ready: room.ready, coming: room.coming, missing: room.missing });
            }
            if let Some(patch) = capacity_buffer_patch(&live, &found, clock::now()) {
                status::said(self.writer.keep_capacity_buffer(&live.metadata, &patch).await.map(drop));
            }
        }
    }

    /// How the chain that a pool names stands.
    fn chain(&self, pool: &api::NodePool) -> PolicyState {
        let text = pool.metadata.annotations.as_ref().and_then(|all| all.get(keys::POLICY)).map_or("", String::as_str);
        let named = names(&self.required, text);
        if named.is_empty() {
            return PolicyState::None;
        }
        let known = self.shelf.open();
        let why = |name: &str| match known.policies.get(name) {
            None => Some(format!("there is no ScoringPolicy {name}; make one, or write {name}? to go on without it")),
            Some(state) => state.as_ref().map(|why| format!("ScoringPolicy {name} cannot be asked: {why}")),
        };
        let missing: Vec<String> = named.iter().filter(|named| !named.optional).filter_map(|named| why(&named.name)).collect();
        if missing.is_empty() {
            PolicyState::Ready
        } else {
            PolicyState::NotReady { reason: "PolicyNotReady".to_owned(), message: missing.join("; ") }
        }
    }

    /// Brings claims whose hashes were made by another version to the present one.
    async fn restamp(&self) {
        let outdated: Vec<api::NodeClaim> = std::mem::take(&mut self.shelf.open().outdated).into_values().collect();
        for claim in outdated {
            let pool = claim.metadata.labels.as_ref().and_then(|all| all.get(keys::NODE_POOL)).cloned().unwrap_or_default();
            let stamps = (self.shelf.pool_stamp(&pool), self.shelf.class_stamp(&claim.spec.node_class_ref.name, self.ca_bundle.as_deref()));
            status::said(self.writer.restamp(&claim, stamps.0.as_ref(), stamps.1.as_ref()).await.map(drop));
        }
    }

    fn judged(&mut self, verdict: Verdict) {
        let name = verdict.object.metadata.name.clone().unwrap_or_default();
        let missing = verdict.why.clone().filter(|_| verdict.serves.is_none());
        self.shelf.open().policies.insert(name.clone(), missing);
        self.policies.insert(name, Kept { verdict, said: None });
    }

    /// Writes what is new of policies: how their modules stand at once, how their calls went each minute.
    async fn policies(&mut self, now: i64) {
        let shelf = self.shelf.clone();
        self.policies.retain(|name, _| shelf.open().policies.contains_key(name));
        for (name, kept) in &mut self.policies {
            let counts = shelf.open().counts.get(name).copied().unwrap_or_default();
            if kept.said.is_some_and(|(said, at)| said == counts || now - at < COUNTS) {
                continue;
            }
            let Verdict { serves, why, .. } = &kept.verdict;
            let said = |why: &String| match serves {
                Some(_) => format!("{why}; the module before it serves on"),
                None => why.clone(),
            };
            let not_ready = why.as_ref().map(|why| ("ModuleNotReady".to_owned(), said(why)));
            let (digest, manifest) = serves.clone().map_or_else(Default::default, |loaded| (loaded.digest, Some(loaded.manifest)));
            let found = PolicyFound { not_ready, digest, manifest, counts };
            let live = &kept.verdict.object;
            let written = match scoring_policy_patch(live, &found, clock::now()) {
                Some(patch) => self.writer.keep_scoring_policy(&live.metadata, &patch).await.map(drop),
                None => Ok(()),
            };
            if written.is_ok() {
                kept.said = Some((counts, now));
            }
            status::said(written);
        }
    }

    fn measure(&self, totals: &BTreeMap<String, Totals>) {
        for (name, total) in totals {
            for (resource, amount) in total.resources.iter() {
                Metrics::set(&self.metrics.usage, name, resource, whole(resource, amount));
            }
            Metrics::set(&self.metrics.usage, name, "nodes", total.nodes);
        }
        for (name, pool) in &self.shelf.open().node_pools {
            for (resource, limit) in pool.spec.limits.iter().flatten() {
                let limit = Quantity::parse(&limit.0).map(|quantity| quantity.units_ceil());
                if let Ok(limit) = limit {
                    Metrics::set(&self.metrics.limits, name, resource, limit);
                }
            }
        }
    }
}

/// What a pool says of its launches, while it is what they were launched from.
fn registers(pool: &api::NodePool) -> Option<bool> {
    let conditions = pool.status.as_ref()?.conditions.as_deref()?;
    let said = conditions.iter().find(|c| c.type_ == "NodeRegistrationHealthy" && c.observed_generation == pool.metadata.generation)?;
    match said.status.as_str() {
        "True" => Some(true),
        "False" => Some(false),
        _ => None,
    }
}

/// Units, where the model counts in thousandths.
fn whole(resource: &str, amount: i64) -> i64 {
    if resource == resources::CPU { amount / 1000 } else { amount }
}
