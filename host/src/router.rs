//! From what the watches saw to those who want to know. What must not enter: what they make of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use whittle_cluster::hash;
use whittle_cluster::live::Seen;
use whittle_cluster::write::Writer;
use whittle_model::{Event, Node, NodeClaim, keys, resources};

use crate::brain::Inbox;
use crate::metrics::Metrics;
use crate::shelf::{PROFILE, Shelf};
use crate::{classes, policies};

/// Who wants to know.
pub struct Routes {
    /// The engine.
    pub inbox: mpsc::Sender<Inbox>,
    /// Who keeps EC2NodeClasses.
    pub classes: mpsc::Sender<classes::Told>,
    /// Who keeps policies.
    pub policies: mpsc::Sender<policies::Told>,
    /// Whether the first lists are in.
    pub synced: watch::Sender<bool>,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// Who writes, and need not read what was seen.
    pub writer: Arc<Writer>,
}

/// Passes on what is seen.
pub struct Router {
    shelf: Shelf,
    routes: Routes,
    /// Memory of nodes by name, until their claim is known to be registered.
    memory: BTreeMap<String, i64>,
    learned: BTreeSet<String>,
}

impl Router {
    /// Nothing has been seen yet.
    pub fn new(shelf: Shelf, routes: Routes) -> Self {
        Self { shelf, routes, memory: BTreeMap::new(), learned: BTreeSet::new() }
    }

    /// Works until nothing can be seen any more.
    pub async fn run(mut self, mut seen: mpsc::Receiver<Seen>) {
        while let Some(next) = seen.recv().await {
            self.pass(next).await;
        }
    }

    async fn pass(&mut self, seen: Seen) {
        match seen {
            Seen::Event(event) => self.event(event).await,
            Seen::NodeClass(object) => self.class(classes::Told::Object(object)).await,
            Seen::NodeClassGone(name) => self.class(classes::Told::Gone(name)).await,
            Seen::NodePool(pool) => {
                let name = pool.metadata.name.clone().unwrap_or_default();
                self.shelf.open().node_pools.insert(name, *pool);
            }
            Seen::NodePoolGone(name) => {
                self.shelf.open().node_pools.remove(&name);
            }
            Seen::NodeClaim(claim) => {
                let name = claim.metadata.name.clone().unwrap_or_default();
                let annotation = |key: &str| claim.metadata.annotations.as_ref().and_then(|all| all.get(key).cloned());
                let mut known = self.shelf.open();
                known.users.insert(name.clone(), (claim.spec.node_class_ref.name.clone(), annotation(PROFILE)));
                if annotation(hash::NODE_POOL_HASH_VERSION).is_some_and(|version| version != hash::NODE_POOL_VERSION)
                    || annotation(hash::NODE_CLASS_HASH_VERSION).is_some_and(|version| version != hash::NODE_CLASS_VERSION)
                {
                    known.outdated.insert(name, (*claim).clone());
                }
                drop(known);
                self.routes.writer.saw_claim(*claim);
            }
            Seen::NodeClaimGone(name) => {
                let mut known = self.shelf.open();
                known.users.remove(&name);
                known.claims.forget(&name);
                known.outdated.remove(&name);
                self.routes.writer.claim_gone(&name);
            }
            Seen::ScoringPolicy(object) => self.policy(policies::Told::Object(object)).await,
            Seen::ScoringPolicyGone(name) => {
                self.shelf.open().policies.remove(&name);
                self.policy(policies::Told::Gone(name)).await;
            }
            Seen::NodeOverlay(object) => {
                let name = object.metadata.name.clone().unwrap_or_default();
                self.shelf.open().node_overlays.insert(name, *object);
            }
            Seen::NodeOverlayGone(name) => {
                self.shelf.open().node_overlays.remove(&name);
            }
            Seen::CapacityBuffer(object) => {
                let told = self.shelf.open().buffers.put(*object);
                self.tell(told).await;
            }
            Seen::CapacityBufferGone(key) => {
                let told = self.shelf.open().buffers.gone(&key);
                self.tell(told).await;
            }
            Seen::BufferBase { namespace, source, base } => {
                let told = self.shelf.open().buffers.base(&namespace, &source, base.map(|base| *base));
                self.tell(told).await;
            }
            Seen::ConfigMap { name, data } => self.policy(policies::Told::ConfigMap(name, Some(data))).await,
            Seen::ConfigMapGone(name) => self.policy(policies::Told::ConfigMap(name, None)).await,
            Seen::Synced => {
                self.routes.metrics.synced.set(1);
                self.routes.synced.send_replace(true);
                tracing::info!("the first lists of all kinds are in");
            }
        }
    }

    async fn class(&self, told: classes::Told) {
        // The keeper ends only with the process.
        let _ = self.routes.classes.send(told).await;
    }

    async fn policy(&self, told: policies::Told) {
        // As above.
        let _ = self.routes.policies.send(told).await;
    }

    /// Events of node classes are not passed on: whoever resolves a class says whether it is ready.
    async fn event(&mut self, event: Event) {
        if matches!(event, Event::NodeClass(_) | Event::NodeClassGone(_)) {
            return;
        }
        if let Event::NodePool(pool) = &event {
            self.class(classes::Told::Pool(pool.clone())).await;
        } else if let Event::NodePoolGone(name) = &event {
            self.class(classes::Told::PoolGone(name.clone())).await;
        } else if let Event::Claim(claim) = &event {
            self.shelf.open().claims.put(claim);
            self.learn(claim).await;
        } else if let Event::Node(node) = &event {
            self.note(node);
        } else if let Event::NodeGone(name) = &event {
            self.memory.remove(name);
            self.routes.writer.node_gone(name);
        } else if let Event::Pod(pod) = &event {
            let mut known = self.shelf.open();
            match &pod.node {
                None => known.pods.insert(pod.key.clone(), pod.uid.clone()),
                Some(_) => known.pods.remove(&pod.key),
            };
        } else if let Event::PodGone(key) = &event {
            self.shelf.open().pods.remove(key);
        } else if let Event::SetAside { kind, name, why, .. } = &event {
            tracing::error!(kind = ?kind, name = name, reason = why, "an object cannot be read; what hangs on it stays as it is");
        }
        self.tell([event]).await;
    }

    async fn tell(&self, events: impl IntoIterator<Item = Event>) {
        for event in events {
            // The brain ends only with the process.
            let _ = self.routes.inbox.send(Inbox::Event(event)).await;
        }
    }

    fn note(&mut self, node: &Node) {
        let bytes = node.capacity.get(resources::MEMORY);
        if bytes > 0 && node.labels.contains_key(keys::NODE_POOL) {
            self.memory.insert(node.name.clone(), bytes);
        }
    }

    /// What a registered node really has of memory is told once for each image and type.
    async fn learn(&mut self, claim: &NodeClaim) {
        let status = &claim.status;
        if status.initialized.is_none() || status.image.is_empty() {
            return;
        }
        let Some(bytes) = self.memory.remove(&status.node) else { return };
        let (image, instance_type) = (status.image.clone(), status.instance_type.clone());
        if self.learned.insert(format!("{image} {instance_type} {bytes}")) {
            self.class(classes::Told::Memory { image, instance_type, bytes }).await;
        }
    }
}
