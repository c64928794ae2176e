//! API objects into the model's nouns, wholly or not at all: every rule of the API that planning
//! relies on is checked here, and what this version cannot read is listed by its path.
//!
//! What must not enter: text and lines (they are the manifest reader's), decisions.

mod affinity;
mod amounts;
mod capacity_buffer;
mod daemon_set;
mod disruption;
mod disruption_budget;
mod host_ports;
mod kubelet;
mod limit_range;
mod names;
mod node;
mod node_claim;
mod node_class;
mod node_class_rules;
mod node_overlay;
mod node_pool;
mod others;
mod pod;
mod pod_affinity;
mod pod_limits;
mod pod_volumes;
mod requests;
mod requirement;
mod scoring_policy;
mod selector;
mod spread;
mod storage;
mod taints;
mod workload;

pub(crate) use amounts::parse_duration;
pub use capacity_buffer::CapacityBufferObject;
#[cfg(feature = "client")]
pub(crate) use capacity_buffer::buffer_template;
pub(crate) use capacity_buffer::{capacity_buffer, pod_template};
pub(crate) use daemon_set::daemon_set;
pub use disruption_budget::DisruptionBudgetObject;
pub(crate) use disruption_budget::disruption_budget;
#[cfg(feature = "client")]
pub(crate) use disruption_budget::live_disruption_budget;
pub(crate) use limit_range::limit_range;
pub(crate) use node::node;
pub(crate) use node_claim::node_claim;
#[cfg(feature = "schema")]
pub(crate) use node_class::FAMILIES;
pub(crate) use node_class::node_class;
pub use node_class::{Kubelet, NodeClassObject};
pub(crate) use node_overlay::node_overlay;
pub(crate) use node_pool::node_pool;
pub use others::{NamespaceObject, PriorityClassObject};
pub(crate) use others::{namespace, priority_class};
pub(crate) use pod::pod;
pub(crate) use scoring_policy::scoring_policy;
pub use scoring_policy::{ModuleSource, PolicyMode, PolicyStance, ScoringPolicyObject};
pub(crate) use spread::spread;
pub(crate) use storage::{storage_class, volume, volume_attachment, volume_claim, volume_limits};
pub use workload::{VolumeClaimTemplate, Workload, WorkloadKind};
pub(crate) use workload::{deployment, job, replica_set, replication_controller, stateful_set};

use crate::yaml::{Path, Segment, closest};

/// What a conversion has found so far, and where in the object it stands.
#[derive(Debug, Default)]
pub(crate) struct Cx {
    path: Path,
    /// Whether the object came from a server: admission has completed it.
    pub live: bool,
    /// Broken rules, by place.
    pub problems: Vec<(Path, String)>,
    /// Fields that would change where pods may run and that this version cannot read.
    pub unsupported: Vec<String>,
    /// Fields that are accepted and not acted on by this version.
    pub not_acted_on: Vec<String>,
}

impl Cx {
    /// At the root of an object; `live` when a server wrote it.
    pub fn new(live: bool) -> Self {
        Self { live, ..Self::default() }
    }

    /// Goes down into `key` for the time of `f`.
    pub fn key<R>(&mut self, key: &str, f: impl FnOnce(&mut Self) -> R) -> R {
        self.path.push(Segment::Key(key.to_owned()));
        let result = f(self);
        self.path.pop();
        result
    }

    /// Goes down a chain of keys for the time of `f`.
    pub fn keys<R>(&mut self, keys: &[&str], f: impl FnOnce(&mut Self) -> R) -> R {
        for key in keys {
            self.path.push(Segment::Key((*key).to_owned()));
        }
        let result = f(self);
        for _ in keys {
            self.path.pop();
        }
        result
    }

    /// Goes through the items of the list `key`.
    pub fn each<T>(&mut self, key: &str, items: &[T], mut f: impl FnMut(&mut Self, &T)) {
        self.key(key, |cx| {
            for (at, item) in items.iter().enumerate() {
                cx.path.push(Segment::Index(at));
                f(cx, item);
                cx.path.pop();
            }
        });
    }

    /// A rule broken here.
    pub fn broken(&mut self, what: impl Into<String>) {
        self.problems.push((self.path.clone(), what.into()));
    }

    /// A rule broken at `key`.
    pub fn broken_at(&mut self, key: &str, what: impl Into<String>) {
        self.key(key, |cx| cx.broken(what));
    }

    /// Reads what an object can do without. In an object that a server took, what breaks a rule of ours is left out.
    pub fn unless_odd<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> Option<R> {
        let before = self.problems.len();
        let read = f(self);
        if !self.live || self.problems.len() == before {
            return Some(read);
        }
        self.problems.truncate(before);
        None
    }

    /// What stands at `key` cannot be read by this version.
    pub fn cannot_read(&mut self, key: &str) {
        let path = self.key(key, |cx| cx.path.to_string());
        self.unsupported.push(path);
    }

    /// What stands at `key` is accepted and not acted on.
    pub fn set_aside(&mut self, key: &str, why: &str) {
        let path = self.key(key, |cx| cx.path.to_string());
        self.not_acted_on.push(format!("{path}: {why}"));
    }

    /// Checks that `written` is one of `words`.
    pub fn one_of(&mut self, key: &str, written: &str, words: &[&str]) -> bool {
        if words.contains(&written) {
            return true;
        }
        self.broken_at(key, not_one_of(written, words));
        false
    }
}

/// The text for a word that is none of those allowed.
pub(crate) fn not_one_of(written: &str, words: &[&str]) -> String {
    match closest(written, words.iter().copied()) {
        Some(meant) => format!("{written:?} is not known; did you mean {meant}?"),
        None => format!("{written:?} is not known; write one of {}", words.join(", ")),
    }
}
