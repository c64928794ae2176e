//! ScoringPolicy objects into policies that can be asked: where their components come from, loading them off the hot
//! path, and what their status says. What must not enter: asking them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use tokio::sync::mpsc;
use whittle_cluster::api;
use whittle_cluster::{ModuleSource, PolicyMode, PolicyStance, ScoringPolicyObject};
use whittle_journal::{Policy as Entry, PolicyMode as EntryMode, PolicyStance as EntryStance, PolicyStanding};
use whittle_policy::{Configured, Limits, Loader, Member, Mode, OnFailure, Stance, Standing};

use crate::brain::{Inbox, Policy};

/// What is told of policies and of what they are made of.
pub enum Told {
    /// A ScoringPolicy is as given.
    Object(Box<api::ScoringPolicy>),
    /// A ScoringPolicy is gone.
    Gone(String),
    /// A ConfigMap of the controller's namespace is as given, or gone.
    ConfigMap(String, Option<BTreeMap<String, Vec<u8>>>),
}

/// What became of a ScoringPolicy, for its status.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// The object as it was judged.
    pub object: api::ScoringPolicy,
    /// The module that can be asked, be it that of an earlier spec.
    pub serves: Option<Loaded>,
    /// Why the spec as it is cannot be loaded, if so.
    pub why: Option<String>,
}

/// A module that can be asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// `sha256:` and the hash of its component.
    pub digest: String,
    /// What it says of itself.
    pub manifest: serde_json::Value,
}

/// A policy that can be asked, and what it was made of.
struct Serving {
    spec: api::ScoringPolicySpec,
    component: Arc<[u8]>,
    loaded: Loaded,
}

/// Keeps policies loaded. Lives on a task of its own; compiling happens on threads for blocking work.
pub struct Policies {
    loader: Arc<Loader>,
    objects: BTreeMap<String, api::ScoringPolicy>,
    config_maps: BTreeMap<String, BTreeMap<String, Vec<u8>>>,
    /// Policies that can be asked, with what they were made of: a spec that did not change is not loaded again.
    serving: BTreeMap<String, Serving>,
    inbox: mpsc::Sender<Inbox>,
    verdicts: mpsc::Sender<Verdict>,
}

impl Policies {
    /// Keeps compiled code in the folder `cache`, when given.
    ///
    /// # Errors
    /// When this machine cannot run WebAssembly, or the folder cannot be used.
    pub fn new(cache: Option<&Path>, inbox: mpsc::Sender<Inbox>, verdicts: mpsc::Sender<Verdict>) -> anyhow::Result<Self> {
        let loader = Arc::new(Loader::new(cache)?);
        Ok(Self { loader, objects: BTreeMap::new(), config_maps: BTreeMap::new(), serving: BTreeMap::new(), inbox, verdicts })
    }

    /// Works until nobody tells it anything any more.
    pub async fn run(mut self, mut told: mpsc::Receiver<Told>) {
        while let Some(next) = told.recv().await {
            match next {
                Told::Object(object) => {
                    let name = object.metadata.name.clone().unwrap_or_default();
                    self.objects.insert(name.clone(), *object);
                    self.load(&name).await;
                }
                Told::Gone(name) => {
                    self.objects.remove(&name);
                    self.serving.remove(&name);
                    self.tell(&name, None).await;
                }
                Told::ConfigMap(name, data) => {
                    match data {
                        Some(data) => self.config_maps.insert(name.clone(), data),
                        None => self.config_maps.remove(&name),
                    };
                    let made_of = |object: &&api::ScoringPolicy| object.spec.module.config_map.as_ref().is_some_and(|map| map.name == name);
                    let names: Vec<String> = self.objects.values().filter(made_of).filter_map(|o| o.metadata.name.clone()).collect();
                    for name in names {
                        self.load(&name).await;
                    }
                }
            }
        }
    }

    async fn tell(&self, name: &str, policy: Option<Policy>) {
        // The brain ends only with the process.
        let _ = self.inbox.send(Inbox::Policy { name: name.to_owned(), policy: policy.map(Box::new) }).await;
    }

    /// Loads a policy and lets it take the place of the one before, which serves until then, and on when the new one
    /// is no good.
    async fn load(&mut self, name: &str) {
        let Some(object) = self.objects.get(name).cloned() else { return };
        let component = match whittle_cluster::live::scoring_policy(&object) {
            Err(why) => return self.refuse(object, None, why).await,
            Ok(read) => match self.component(&read).await {
                Err(why) => return self.refuse(object, Some(read), why).await,
                Ok(bytes) => (read, bytes),
            },
        };
        let (read, bytes) = component;
        if self.serving.get(name).is_some_and(|serving| serving.spec == object.spec && serving.component == bytes) {
            return;
        }
        let (loader, given, code) = (Arc::clone(&self.loader), read.clone(), Arc::clone(&bytes));
        let configured = tokio::task::spawn_blocking(move || configure(&loader, &given, &code)).await;
        match configured.unwrap_or_else(|error| Err(format!("loading it ended early: {error}"))) {
            Err(why) => self.refuse(object, Some(read), why).await,
            Ok(policy) => {
                let digest = policy.module().digest().to_owned();
                let manifest = policy.module().manifest();
                let manifest = serde_json::json!({ "name": manifest.name, "version": manifest.version });
                let serves = Loaded { digest: digest.clone(), manifest };
                self.serving
                    .insert(name.to_owned(), Serving { spec: object.spec.clone(), component: Arc::clone(&bytes), loaded: serves.clone() });
                self.tell(name, Some(asked(&read, Arc::new(policy), &digest, bytes))).await;
                let _ = self.verdicts.send(Verdict { object, serves: Some(serves), why: None }).await;
            }
        }
    }

    /// A policy cannot be loaded. One that serves goes on; one that never did counts as missing.
    async fn refuse(&self, object: api::ScoringPolicy, read: Option<ScoringPolicyObject>, why: String) {
        let name = object.metadata.name.clone().unwrap_or_default();
        tracing::warn!(ScoringPolicy = name, reason = why, "a policy cannot be loaded");
        if !self.serving.contains_key(&name) {
            self.tell(&name, Some(missing(&name, read.as_ref(), &why))).await;
        }
        let serves = self.serving.get(&name).map(|serving| serving.loaded.clone());
        let _ = self.verdicts.send(Verdict { object, serves, why: Some(why) }).await;
    }

    async fn component(&self, read: &ScoringPolicyObject) -> Result<Arc<[u8]>, String> {
        match read.module.as_ref().ok_or("spec.module names no source")? {
            ModuleSource::Builtin(name) => {
                let shipped = || whittle_builtin::ALL.iter().map(|b| b.name).collect::<Vec<_>>().join(", ");
                let found = whittle_builtin::find(name)
                    .ok_or_else(|| format!("spec.module.builtin: {name:?} is not shipped; there are {}", shipped()))?;
                Ok(found.component.into())
            }
            ModuleSource::ConfigMap { name, key } => {
                let map = self
                    .config_maps
                    .get(name)
                    .ok_or_else(|| format!("spec.module.configMap: there is no ConfigMap {name} in the controller's namespace"))?;
                let bytes = map.get(key).ok_or_else(|| {
                    format!("spec.module.configMap: ConfigMap {name} has no key {key}; put the component below binaryData")
                })?;
                Ok(bytes.as_slice().into())
            }
            ModuleSource::File(path) => {
                let bytes = tokio::fs::read(path).await.map_err(|error| format!("spec.module.file: cannot read {path}: {error}"))?;
                Ok(bytes.into())
            }
            ModuleSource::Oci { image, .. } => {
                Err(format!("spec.module.oci: {image}: registries are not supported yet; put the component into a ConfigMap or a file"))
            }
        }
    }
}

fn limits(read: &ScoringPolicyObject) -> Limits {
    let default = Limits::default();
    Limits { fuel: read.fuel.unwrap_or(default.fuel), memory: read.memory.unwrap_or(default.memory) }
}

/// Compiles and configures, and asks once, so that what serves has served.
fn configure(loader: &Loader, read: &ScoringPolicyObject, bytes: &[u8]) -> Result<Configured, String> {
    let module = loader.load(bytes).map_err(|error| error.to_string())?;
    let policy = module.configure(&read.name, &read.config, limits(read)).map_err(|error| format!("spec.config: {error}"))?;
    policy.smoke().map_err(|error| format!("it failed on a trial table: {error}"))?;
    Ok(policy)
}

fn stances(read: &ScoringPolicyObject) -> (OnFailure, EntryStance, EntryStance) {
    let both = |stance| match stance {
        PolicyStance::Ignore => (Stance::Ignore, EntryStance::Ignore),
        PolicyStance::Closed => (Stance::Closed, EntryStance::Closed),
    };
    let ((candidates, noted_candidates), (moves, noted_moves)) = (both(read.candidates), both(read.moves));
    (OnFailure { candidates, moves }, noted_candidates, noted_moves)
}

fn place(read: &ScoringPolicyObject, standing: Standing, noted: PolicyStanding, component: Arc<[u8]>) -> Policy {
    let (on_failure, candidates, moves) = stances(read);
    let (mode, noted_mode) = match read.mode {
        PolicyMode::Enforce => (Mode::Enforce, EntryMode::Enforce),
        PolicyMode::Observe => (Mode::Observe, EntryMode::Observe),
    };
    Policy {
        member: Member { name: read.name.clone(), standing, on_failure, mode },
        entry: Entry { name: read.name.clone(), mode: noted_mode, candidates, moves, standing: noted, failures: 0, rests_until: None },
        component,
    }
}

fn asked(read: &ScoringPolicyObject, policy: Arc<Configured>, digest: &str, component: Arc<[u8]>) -> Policy {
    let Limits { fuel, memory } = limits(read);
    let noted = PolicyStanding::Ready { digest: digest.to_owned(), config: read.config.clone(), fuel, memory };
    place(read, Standing::Ready(policy), noted, component)
}

fn missing(name: &str, read: Option<&ScoringPolicyObject>, why: &str) -> Policy {
    let standing = Standing::Missing { why: why.to_owned() };
    let noted = PolicyStanding::Missing { why: why.to_owned() };
    match read {
        Some(read) => place(read, standing, noted, [].into()),
        None => Policy {
            member: Member { name: name.to_owned(), standing, on_failure: OnFailure::default(), mode: Mode::Enforce },
            entry: Entry {
                name: name.to_owned(),
                mode: EntryMode::Enforce,
                candidates: EntryStance::Closed,
                moves: EntryStance::Closed,
                standing: noted,
                failures: 0,
                rests_until: None,
            },
            component: [].into(),
        },
    }
}
