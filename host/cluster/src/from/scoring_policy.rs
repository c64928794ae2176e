//! Scoring policies. What must not enter: reading modules, and what a configuration means.

use serde_json::Value;
use whittle_model::Quantity;

use super::{Cx, names};
use crate::api;

/// Where the component of a policy comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModuleSource {
    /// Shipped under this name.
    Builtin(String),
    /// A key of a ConfigMap in the controller's namespace.
    ConfigMap {
        /// The ConfigMap.
        name: String,
        /// The key.
        key: String,
    },
    /// An artifact in a registry.
    Oci {
        /// Registry, repository and tag.
        image: String,
        /// The digest it must have.
        digest: Option<String>,
        /// The Secret to pull it with.
        pull_secret: Option<String>,
    },
    /// A file, its path as written.
    File(String),
}

impl ModuleSource {
    /// The field that says it, below `spec.module`.
    #[must_use]
    pub const fn field(&self) -> &'static str {
        match self {
            Self::Builtin(_) => "builtin",
            Self::ConfigMap { .. } => "configMap",
            Self::Oci { .. } => "oci",
            Self::File(_) => "file",
        }
    }
}

/// Whether a policy's answers count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PolicyMode {
    /// They do.
    Enforce,
    /// They are recorded beside the real decision.
    Observe,
}

/// What happens without a policy that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PolicyStance {
    /// It is gone on without.
    Ignore,
    /// What it would have judged is held back.
    Closed,
}

/// A ScoringPolicy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScoringPolicyObject {
    /// Its name, by which NodePools name it.
    pub name: String,
    /// Where its component comes from; `None` only beside a fault.
    pub module: Option<ModuleSource>,
    /// Its configuration.
    pub config: Value,
    /// Whether its answers count.
    pub mode: PolicyMode,
    /// What happens to purchases without it.
    pub candidates: PolicyStance,
    /// What happens to moves without it.
    pub moves: PolicyStance,
    /// Fuel for configuring and opening; the host's own limit when absent.
    pub fuel: Option<u64>,
    /// Bytes of memory; the host's own limit when absent.
    pub memory: Option<u64>,
}

const STANCES: [&str; 2] = ["Ignore", "Closed"];

/// A ScoringPolicy.
pub(crate) fn scoring_policy(written: &api::ScoringPolicy, cx: &mut Cx) -> ScoringPolicyObject {
    let name = names::object_name(&written.metadata, cx);
    let spec = &written.spec;
    cx.key("spec", |cx| {
        let limits = spec.limits.clone().unwrap_or_default();
        let on_failure = spec.on_failure.clone().unwrap_or_default();
        let (candidates, moves) = cx.key("onFailure", |cx| {
            let candidates = stance("candidates", on_failure.candidates.as_deref(), PolicyStance::Ignore, cx);
            (candidates, stance("moves", on_failure.moves.as_deref(), PolicyStance::Closed, cx))
        });
        let (fuel, memory) = cx.key("limits", |cx| (fuel(limits.fuel, cx), memory(limits.memory.as_ref().map(|m| m.0.as_str()), cx)));
        ScoringPolicyObject {
            name,
            module: cx.key("module", |cx| module(&spec.module, cx)),
            config: spec.config.clone().unwrap_or_else(|| Value::Object(serde_json::Map::new())),
            mode: mode(spec.mode.as_deref(), cx),
            candidates,
            moves,
            fuel,
            memory,
        }
    })
}

fn module(written: &api::PolicyModule, cx: &mut Cx) -> Option<ModuleSource> {
    let said = [
        written.builtin.clone().map(ModuleSource::Builtin),
        written.config_map.clone().map(|map| ModuleSource::ConfigMap { name: map.name, key: map.key }),
        written.oci.clone().map(|oci| ModuleSource::Oci { image: oci.image, digest: oci.digest, pull_secret: oci.pull_secret }),
        written.file.clone().map(|file| ModuleSource::File(file.path)),
    ];
    let mut said: Vec<ModuleSource> = said.into_iter().flatten().collect();
    match said.len() {
        1 => said.pop(),
        0 => {
            cx.broken("says no source: write one of builtin, file, configMap, oci");
            None
        }
        _ => {
            let fields: Vec<&str> = said.iter().map(ModuleSource::field).collect();
            cx.broken(format!("{} exclude each other; keep one of them", fields.join(" and ")));
            None
        }
    }
}

fn mode(written: Option<&str>, cx: &mut Cx) -> PolicyMode {
    match written {
        Some("Observe") => PolicyMode::Observe,
        Some(word) => {
            cx.one_of("mode", word, &["Enforce", "Observe"]);
            PolicyMode::Enforce
        }
        None => {
            cx.broken_at("mode", "is missing: write Enforce, or Observe to see beside the real decision what it would change");
            PolicyMode::Enforce
        }
    }
}

fn stance(key: &str, written: Option<&str>, otherwise: PolicyStance, cx: &mut Cx) -> PolicyStance {
    match written {
        None => otherwise,
        Some("Closed") => PolicyStance::Closed,
        Some(word) => {
            cx.one_of(key, word, &STANCES);
            PolicyStance::Ignore
        }
    }
}

fn fuel(written: Option<i64>, cx: &mut Cx) -> Option<u64> {
    let fuel = written.map(u64::try_from)?;
    let fuel = fuel.ok().filter(|fuel| *fuel > 0);
    if fuel.is_none() {
        cx.broken_at("fuel", "a policy cannot run without fuel; write at least 1, or leave it out for 50000000");
    }
    fuel
}

fn memory(written: Option<&str>, cx: &mut Cx) -> Option<u64> {
    /// The most that the host grants.
    const MOST: u64 = 1 << 30;
    let text = written?;
    match Quantity::parse(text).map(|quantity| u64::try_from(quantity.units_ceil()).unwrap_or(0)) {
        Ok(bytes) if (1..=MOST).contains(&bytes) => Some(bytes),
        Ok(_) => {
            cx.broken_at("memory", format!("{text} is out of range; write up to 1Gi, such as 64Mi"));
            None
        }
        Err(error) => {
            cx.broken_at("memory", error.to_string());
            None
        }
    }
}
