//! A loaded module, and a policy made of it by a configuration. What must not enter: reading files and
//! compiling, which is loading.

use std::sync::Arc;

use wasmtime::Engine;
use whittle_model::policy::{Setup, Words};

use crate::bindings::{PolicyPre, scoring};
use crate::round::{Instance, State};
use crate::schema::Schema;
use crate::setup::{Checked, check};
use crate::{Call, ConfigError, Failure, Judge, Limits, SetupError, Sitting, View};

/// What a module says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What it does, in Markdown.
    pub documentation: String,
    /// The JSON schema of its configuration, as text.
    pub schema: String,
}

/// A module that was compiled and whose manifest makes sense. Cheap to clone.
#[derive(Clone)]
pub struct Module(Arc<Inner>);

struct Inner {
    engine: Engine,
    pre: PolicyPre<State>,
    digest: String,
    manifest: Manifest,
    schema: Schema,
}

/// A configuration that makes no policy.
#[derive(Debug, thiserror::Error)]
pub enum ConfigureError {
    /// The module's schema does not accept it.
    #[error("policy {policy}: {source}")]
    Config {
        /// The module's name.
        policy: String,
        /// Where and why.
        source: ConfigError,
    },
    /// The module itself does not accept it.
    #[error("policy {policy} refuses its config: {why}")]
    Refused {
        /// The module's name.
        policy: String,
        /// In its words.
        why: String,
    },
    /// It asks for what this host does not serve.
    #[error("policy {policy}: {source}")]
    Setup {
        /// The module's name.
        policy: String,
        /// What it is.
        source: SetupError,
    },
    /// It failed.
    #[error("policy {policy} failed when it was configured: {source}")]
    Failed {
        /// The module's name.
        policy: String,
        /// How.
        source: Failure,
    },
}

impl std::fmt::Debug for Module {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Module").field("manifest", &self.0.manifest.name).field("digest", &self.0.digest).finish_non_exhaustive()
    }
}

/// Why a manifest is not believed.
pub(crate) fn read_manifest(said: scoring::About) -> Result<(Manifest, Schema), String> {
    let plain = |name: &str| name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    if said.name.is_empty() || said.name.len() > 63 || !plain(&said.name) {
        return Err(format!(
            "its name {:?} is not 1 to 63 lower case letters, digits and -",
            said.name.chars().take(80).collect::<String>()
        ));
    }
    if said.version.is_empty() || said.version.len() > 64 {
        return Err(format!("its version has {} bytes, 1 to 64 are right", said.version.len()));
    }
    if said.documentation.len() > 256 << 10 {
        return Err(format!("its documentation has {} bytes, at most 256 KiB are right", said.documentation.len()));
    }
    let schema = Schema::read(&said.config_schema).map_err(|why| format!("its config schema is none: {why}"))?;
    let manifest = Manifest { name: said.name, version: said.version, documentation: said.documentation, schema: said.config_schema };
    Ok((manifest, schema))
}

impl Module {
    pub(crate) fn new(engine: Engine, pre: PolicyPre<State>, digest: String, manifest: Manifest, schema: Schema) -> Self {
        Self(Arc::new(Inner { engine, pre, digest, manifest, schema }))
    }

    /// What it says of itself.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.0.manifest
    }

    /// `sha256:` and the hash of the module's bytes.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.0.digest
    }

    /// A policy of this configuration, JSON. The module is asked once, so that what it wants is known;
    /// every round asks a fresh instance again.
    ///
    /// # Errors
    /// When the schema, the module or this host does not accept it, or the module fails.
    pub fn configure(&self, name: &str, config: &serde_json::Value, limits: Limits) -> Result<Configured, ConfigureError> {
        let policy = || self.0.manifest.name.clone();
        self.0.schema.check(config).map_err(|source| ConfigureError::Config { policy: policy(), source })?;
        let config = config.to_string();
        let failed = |source| ConfigureError::Failed { policy: policy(), source };
        let mut instance = Instance::new(&self.0.engine, &self.0.pre, limits).map_err(failed)?;
        let said = instance.configure(&config).map_err(failed)?;
        let said = said.map_err(|why| ConfigureError::Refused { policy: policy(), why: why.chars().take(500).collect() })?;
        let checked = check(&said).map_err(|source| ConfigureError::Setup { policy: policy(), source })?;
        let fuel = instance.fuel();
        Ok(Configured { name: name.to_owned(), module: self.clone(), config, limits, checked, fuel })
    }
}

/// A module with its configuration: a judge whose every round is a fresh instance.
#[derive(Debug, Clone)]
pub struct Configured {
    name: String,
    module: Module,
    config: String,
    limits: Limits,
    checked: Checked,
    fuel: u64,
}

impl Configured {
    /// The module it is made of.
    #[must_use]
    pub const fn module(&self) -> &Module {
        &self.module
    }

    /// Fuel that starting and configuring took.
    #[must_use]
    pub const fn configure_fuel(&self) -> u64 {
        self.fuel
    }

    /// Tries every hook on tables of one row, all zero, as a round would: what fails here fails in the
    /// first plan. A veto or an odd answer is not looked at.
    ///
    /// # Errors
    /// How it failed.
    pub fn smoke(&self) -> Result<u64, Failure> {
        let words = Words::default();
        let wants = &self.checked.setup.wants;
        let mut sitting = self.open(&words, &vec![0; wants.round.len()])?;
        let zero = [0];
        let view = |columns: usize| View { rows: 1, columns: vec![&zero[..]; columns] };
        if let Some(pricing) = &wants.pricing {
            sitting.price(&words, &[view(pricing.candidates.len()), view(pricing.askers.len()), view(pricing.mix.len())])?;
        }
        if let Some(judging) = &wants.judging {
            let sizes = [
                &judging.moves.len(),
                &judging.nodes.len(),
                &judging.pods.len(),
                &judging.pools.len(),
                &judging.askers.len(),
                &judging.mix.len(),
            ];
            sitting.score(&words, &sizes.map(|columns| view(*columns)))?;
        }
        Ok(sitting.fuel())
    }
}

impl Judge for Configured {
    fn name(&self) -> &str {
        &self.name
    }

    fn setup(&self) -> &Setup {
        &self.checked.setup
    }

    fn open(&self, words: &Words, facts: &[i64]) -> Result<Box<dyn Sitting>, Failure> {
        let mut instance = Instance::new(&self.module.0.engine, &self.module.0.pre, self.limits)?;
        let said = instance.configure(&self.config)?.map_err(|why| Failure::Refused(why.chars().take(500).collect()))?;
        if check(&said).ok().as_ref() != Some(&self.checked) {
            return Err(Failure::Changed);
        }
        instance.open(words, facts)?;
        Ok(Box::new(Seated { instance, pricing: self.checked.pricing.clone(), judging: self.checked.judging.clone() }))
    }
}

/// An instance in its round.
struct Seated {
    instance: Instance,
    pricing: Vec<usize>,
    judging: Vec<usize>,
}

impl Sitting for Seated {
    fn price(&mut self, words: &Words, views: &[View<'_>; 3]) -> Result<Vec<i64>, Failure> {
        self.instance.call(Call::PriceCandidates, words, views, &self.pricing)
    }

    fn score(&mut self, words: &Words, views: &[View<'_>; 6]) -> Result<Vec<i64>, Failure> {
        self.instance.call(Call::ScoreMoves, words, views, &self.judging)
    }

    fn fuel(&self) -> u64 {
        self.instance.fuel()
    }
}
