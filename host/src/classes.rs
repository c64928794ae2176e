//! Keeps EC2NodeClasses resolved: what each comes to in AWS, what it can buy, and what its status says. The engine is
//! told whether a class is ready and what it sells. What must not enter: how a class is resolved.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::mpsc;
use whittle_cloud::Aws;
use whittle_cloud::class::{ClassInput, Classes, ConditionKind, Resolved, Surroundings};
use whittle_cloud::fleet::{Fleet, LaunchClass};
use whittle_cloud::image::ClusterFacts;
use whittle_cloud::market::{Market, Told as Prices};
use whittle_cluster::api;
use whittle_cluster::write::{Gate, Recorder, Writer};
use whittle_model::{Catalog, Event, InstanceType, Labels, Micros, NodeClass, NodePool, Timestamp, keys, roughly};

use crate::brain::Inbox;
use crate::clock;
use crate::settings::Mode;
use crate::shelf::{Ready, Shelf};
use crate::{status, voice};

/// Nothing is looked at more often than this, whatever asks for it.
const AT_LEAST: std::time::Duration = std::time::Duration::from_millis(200);
/// How soon it is seen that this replica leads.
const AT_MOST: std::time::Duration = std::time::Duration::from_secs(1);
/// A class that goes waits for its claims; it is looked at this often.
const WAITING: whittle_model::Duration = whittle_model::Duration::seconds(10);
/// The label of dedicated hosts.
const TENANCY: &str = "karpenter.k8s.aws/instance-tenancy";
/// Types that validation tries.
const CANDIDATES: usize = 20;

/// By zone the addresses that are free in the subnets of a class.
fn free_addresses(resolved: &Resolved) -> BTreeMap<String, i64> {
    let mut free: BTreeMap<String, i64> = BTreeMap::new();
    for subnet in &resolved.subnets {
        *free.entry(subnet.zone.clone()).or_default() += subnet.free_addresses;
    }
    free.into_iter().map(|(zone, count)| (zone, roughly(count))).collect()
}

/// What is told of classes.
pub enum Told {
    /// An EC2NodeClass is as given.
    Object(Box<api::EC2NodeClass>),
    /// An EC2NodeClass is gone.
    Gone(String),
    /// A NodePool is as given.
    Pool(Box<NodePool>),
    /// A NodePool is gone.
    PoolGone(String),
    /// A registered node that booted from an image has this much memory.
    Memory {
        /// The image.
        image: String,
        /// The node's type.
        instance_type: String,
        /// Bytes.
        bytes: i64,
    },
}

/// Keeps them.
pub struct Keeper {
    /// AWS.
    pub aws: Arc<Aws>,
    /// What was found of classes.
    pub classes: Arc<Classes>,
    /// What can be bought.
    pub market: Market,
    /// Instances and launch templates.
    pub fleet: Arc<Fleet>,
    /// The cluster that nodes join.
    pub cluster: ClusterFacts,
    /// Version of Kubernetes.
    pub kubernetes: String,
    /// Where what was found is put.
    pub shelf: Shelf,
    /// Where events go.
    pub inbox: mpsc::Sender<Inbox>,
    /// Writes to Kubernetes.
    pub writer: Arc<Writer>,
    /// Kubernetes events.
    pub recorder: Recorder,
    /// Closed while another replica acts.
    pub gate: Gate,
    /// Whether anything is written.
    pub mode: Mode,
    /// What the engine was told of what can be bought.
    pub prices: Prices,
    /// What is kept of each class.
    pub kept: BTreeMap<String, Kept>,
    /// NodePools, by name.
    pub pools: BTreeMap<String, NodePool>,
    /// When types and prices are read again.
    pub refresh: Timestamp,
    /// Whether this replica led at the last look.
    pub leads: bool,
}

/// What is kept of a class.
#[derive(Debug, Clone)]
pub struct Kept {
    object: api::EC2NodeClass,
    next: Timestamp,
    told: Option<NodeClass>,
}

impl Keeper {
    /// Works until nobody tells it anything any more.
    pub async fn run(mut self, mut told: mpsc::Receiver<Told>) {
        loop {
            let wait = self.next().since(clock::now()).0.max(0);
            let wait = std::time::Duration::from_millis(u64::try_from(wait).unwrap_or(0)).clamp(AT_LEAST, AT_MOST);
            match tokio::time::timeout(wait, told.recv()).await {
                Ok(None) => return,
                Ok(Some(next)) => self.take(next).await,
                Err(_) => {}
            }
            while let Ok(next) = told.try_recv() {
                self.take(next).await;
            }
            self.work().await;
        }
    }

    fn next(&self) -> Timestamp {
        self.kept.values().map(|kept| kept.next).chain([self.refresh]).min().unwrap_or(self.refresh)
    }

    async fn take(&mut self, told: Told) {
        match told {
            Told::Object(object) => {
                let name = object.metadata.name.clone().unwrap_or_default();
                self.shelf.open().node_classes.insert(name.clone(), (*object).clone());
                let known = self.kept.get(&name);
                let changed = known.is_none_or(|kept| asks(&kept.object) != asks(&object));
                let next = if changed { Timestamp(0) } else { known.map_or(Timestamp(0), |kept| kept.next) };
                let told = known.and_then(|kept| kept.told.clone());
                let hashed = told.clone().map(|class| NodeClass { annotations: annotations(&object), ..class });
                self.kept.insert(name.clone(), Kept { object: *object, next, told });
                if let Some(class) = hashed {
                    self.say(&name, class).await;
                }
            }
            Told::Gone(name) => {
                self.kept.remove(&name);
                self.prices.forget(&name);
                self.market.forget(&name);
                self.shelf.forget_class(&name);
                self.event(Event::NodeClassGone(name)).await;
            }
            Told::Pool(pool) => {
                self.pools.insert(pool.name.clone(), *pool);
            }
            Told::PoolGone(name) => {
                self.pools.remove(&name);
            }
            Told::Memory { image, instance_type, bytes } => {
                if self.market.learn_memory(&image, &instance_type, bytes, clock::now()) {
                    self.all_due();
                }
            }
        }
    }

    fn all_due(&mut self) {
        for kept in self.kept.values_mut() {
            kept.next = Timestamp(0);
        }
    }

    async fn event(&self, event: Event) {
        // The brain ends only with the process.
        let _ = self.inbox.send(Inbox::Event(event)).await;
    }

    async fn work(&mut self) {
        let now = clock::now();
        let leads = self.gate.is_open();
        if leads != std::mem::replace(&mut self.leads, leads) {
            self.all_due(); // a follower makes no profiles, and tries nothing
        }
        if self.refresh <= now {
            let refreshed = self.market.refresh(&self.aws, now).await;
            for failure in &refreshed.failures {
                tracing::warn!(error = %voice::chain(failure), "what can be bought was not read anew; what was known stays");
            }
            self.refresh = clock::now().plus(refreshed.next);
            if refreshed.changed {
                self.all_due();
            }
        }
        let due: Vec<String> = self.kept.iter().filter(|(_, kept)| kept.next <= now).map(|(name, _)| name.clone()).collect();
        for name in due {
            self.resolve(&name).await;
        }
    }

    async fn resolve(&mut self, name: &str) {
        let Some(kept) = self.kept.get(name).cloned() else { return };
        if kept.object.metadata.deletion_timestamp.is_some() {
            return self.leave(name, &kept).await;
        }
        let input = input(&kept.object);
        let first = !self.shelf.open().classes.contains_key(name);
        let candidates = self.candidates(name);
        let may_write = self.mode == Mode::Enforce && self.gate.is_open();
        let around = Surroundings {
            cluster: &self.cluster,
            kubernetes: &self.kubernetes,
            candidates: &candidates,
            dedicated: self.dedicated(name),
            may_write,
        };
        let resolved = self.classes.resolve(&self.aws, &input, &around, clock::now()).await;
        for note in &resolved.notes {
            tracing::warn!(EC2NodeClass = name, note = note, "resolving a class");
        }
        let catalog = self.market.catalog(&kept.object.spec, &resolved);
        if let Err(error) = &catalog {
            tracing::warn!(EC2NodeClass = name, error = %voice::chain(error), "no catalogue");
        }
        let catalog = catalog.ok();
        let not_ready = self.not_ready(&resolved);
        if self.mode == Mode::Enforce && self.gate.is_open() {
            status::class(&self.writer, &self.recorder, &kept.object, &resolved, &self.cluster).await;
        }
        let next = resolved.next;
        self.tell(name, not_ready, catalog, resolved, &kept).await;
        if let Some(kept) = self.kept.get_mut(name) {
            // Types that validation can try are known only after the first catalogue.
            kept.next = if first && self.shelf.open().classes.contains_key(name) { Timestamp(0) } else { next };
        }
    }

    /// Why the engine must not buy from a class. An observer does not make instance profiles, so it does not miss them.
    fn not_ready(&self, resolved: &Resolved) -> Option<String> {
        let profile = resolved.condition(ConditionKind::InstanceProfileReady);
        let mut others = resolved.clone();
        if self.mode == Mode::Observe && profile.is_some() {
            others.conditions.retain(|c| c.kind != ConditionKind::InstanceProfileReady && c.kind != ConditionKind::ValidationSucceeded);
        }
        others.not_ready()
    }

    async fn tell(&mut self, name: &str, not_ready: Option<String>, catalog: Option<Arc<Catalog>>, resolved: Resolved, kept: &Kept) {
        let free_addresses = free_addresses(&resolved);
        if let Some(catalog) = catalog {
            let class = LaunchClass { resolved, spec: kept.object.spec.clone(), cluster: self.cluster.clone() };
            self.shelf.open().classes.insert(name.to_owned(), Ready { class: Arc::new(class), catalog: Arc::clone(&catalog) });
            for event in self.prices.tell(&[catalog]) {
                self.event(event).await;
            }
        }
        self.say(name, NodeClass { name: name.to_owned(), not_ready, annotations: annotations(&kept.object), free_addresses }).await;
    }

    /// Tells the engine of a class, if that is news.
    async fn say(&mut self, name: &str, class: NodeClass) {
        let Some(kept) = self.kept.get_mut(name).filter(|kept| kept.told.as_ref() != Some(&class)) else { return };
        kept.told = Some(class.clone());
        self.event(Event::NodeClass(class)).await;
    }

    /// A class goes once no claim uses it: what was made for it is deleted, then its finalizer.
    async fn leave(&mut self, name: &str, kept: &Kept) {
        let uid = kept.object.metadata.uid.clone().unwrap_or_default();
        let not_ready = Some("it is being deleted".to_owned());
        let free_addresses = BTreeMap::new();
        self.say(name, NodeClass { name: name.to_owned(), not_ready, annotations: annotations(&kept.object), free_addresses }).await;
        if let Some(kept) = self.kept.get_mut(name) {
            kept.next = clock::now().plus(WAITING);
        }
        if self.mode == Mode::Observe || !self.gate.is_open() {
            return;
        }
        let users = self.shelf.users_of(name);
        if users > 0 {
            let message = format!("{users} NodeClaims still use this class; it goes when they are gone");
            return self.recorder.note(voice::about_class(name, &uid, "WaitingOnNodeClaimTermination", &message));
        }
        let templates = self.fleet.delete_templates(name).await;
        let profiles = self.classes.delete(&self.aws, name, &uid).await;
        if let Err(error) = templates.and(profiles) {
            tracing::warn!(EC2NodeClass = name, error = %voice::chain(&error), "what was made for a class was not deleted; it is tried again");
            return;
        }
        status::release_class(&self.writer, &kept.object).await;
    }

    /// Whether a NodePool of a class insists on dedicated hosts.
    fn dedicated(&self, name: &str) -> bool {
        let insists = |r: &whittle_model::Requirement| r.allows("dedicated") && !r.allows("default");
        let mut pools = self.pools.values().filter(|pool| pool.template.node_class == name);
        pools.any(|pool| pool.template.requirements.get(TENANCY).is_some_and(insists))
    }

    /// Types that the NodePools of a class may buy, the cheapest first.
    fn candidates(&self, name: &str) -> Vec<InstanceType> {
        let Some(catalog) = self.shelf.open().classes.get(name).map(|ready| Arc::clone(&ready.catalog)) else { return Vec::new() };
        let pools: Vec<&NodePool> = self.pools.values().filter(|pool| pool.template.node_class == name).collect();
        let meets = |kind: &&InstanceType| pools.is_empty() || pools.iter().any(|pool| may_buy(pool, kind));
        let price = |kind: &InstanceType| kind.offerings.iter().filter(|o| o.available).map(|o| o.price).min();
        let mut priced: Vec<(Micros, &InstanceType)> =
            catalog.types.iter().filter(meets).filter_map(|kind| Some((price(kind)?, kind))).collect();
        priced.sort_by(|a, b| (a.0, &a.1.name).cmp(&(b.0, &b.1.name)));
        priced.into_iter().take(CANDIDATES).map(|(_, kind)| kind.clone()).collect()
    }
}

/// What of an object bears on what it comes to.
fn asks(object: &api::EC2NodeClass) -> impl PartialEq + use<'_> {
    let meta = &object.metadata;
    (
        meta.generation,
        meta.annotations.as_ref().map(|all| all.iter().filter(|(key, _)| !key.contains("hash")).collect::<Vec<_>>()),
        meta.deletion_timestamp.is_some(),
    )
}

/// The hash of its spec is among them: claims that carry another have drifted.
fn annotations(object: &api::EC2NodeClass) -> Labels {
    object.metadata.annotations.clone().unwrap_or_default()
}

fn input(object: &api::EC2NodeClass) -> ClassInput {
    let meta = &object.metadata;
    ClassInput {
        name: meta.name.clone().unwrap_or_default(),
        uid: meta.uid.clone().unwrap_or_default(),
        generation: meta.generation.unwrap_or_default(),
        annotations: meta.annotations.clone().unwrap_or_default(),
        spec: object.spec.clone(),
        status_profile: object.status.as_ref().and_then(|status| status.instance_profile.clone()),
    }
}

fn may_buy(pool: &NodePool, kind: &InstanceType) -> bool {
    let name = pool.template.requirements.get(keys::INSTANCE_TYPE).is_none_or(|r| r.allows(&kind.name));
    name && pool.template.requirements.iter().all(|r| kind.labels.get(r.key()).is_none_or(|value| r.allows(value)))
}
