//! NodePools: what may be bought, in which order, up to which limit.

use serde::{Deserialize, Serialize};

use crate::{Duration, Labels, Requirements, Resources, Taint};

/// A NodePool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct NodePool {
    /// Its name.
    pub name: String,
    /// Unique for all time.
    pub uid: String,
    /// Its annotations.
    pub annotations: Labels,
    /// Higher goes first; 0 when not set.
    pub weight: i32,
    /// What its nodes look like.
    pub template: Template,
    /// How much it may own.
    pub limits: Limits,
    /// When its nodes may go.
    pub disruption: Disruption,
    /// How many nodes it keeps whatever pods ask for; `None` for a pool that follows the pods.
    pub replicas: Option<u32>,
    /// Why no node may be launched from it, if so.
    pub not_ready: Option<String>,
    /// Whether it is being deleted.
    pub deleting: bool,
}

/// What nodes of a pool look like.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Template {
    /// Labels every node gets.
    pub labels: Labels,
    /// Annotations every node gets.
    pub annotations: Labels,
    /// Taints every node keeps.
    pub taints: Vec<Taint>,
    /// Taints that something removes while the node starts.
    pub startup_taints: Vec<Taint>,
    /// What instance types, zones and capacity types are allowed; without the pool's own labels.
    pub requirements: Requirements,
    /// Name of the EC2NodeClass.
    pub node_class: String,
    /// How long a node lives; `None` is for ever.
    pub expire_after: Option<Duration>,
    /// How long a drain may take; `None` is for ever.
    pub termination_grace_period: Option<Duration>,
}

/// The most a pool may own. Resources that are not named are free.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Limits {
    /// Limits by resource, `nodes` among them. An amount of zero is a limit too, so this is a list
    /// and not [`Resources`], which drops zeros. Ordered by name.
    pub amounts: Vec<(String, i64)>,
}

impl Limits {
    /// The first limit that usage `used` plus one more node of `added` would cross: its name and
    /// by how much.
    #[must_use]
    pub fn crossed_by(&self, used: &Resources, added: &Resources) -> Option<(&str, i64)> {
        self.amounts.iter().find_map(|(name, limit)| {
            let over = used.get(name).saturating_add(added.get(name)).saturating_sub(*limit);
            (over > 0).then_some((name.as_str(), over))
        })
    }
}

/// When nodes of a pool may go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disruption {
    /// How long a node must be left alone before it is consolidated; `None` is for ever.
    pub consolidate_after: Option<Duration>,
    /// `WhenEmpty`, `WhenEmptyOrUnderutilized` or `Balanced`.
    pub policy: String,
    /// How many nodes may go at once.
    pub budgets: Vec<DisruptionBudget>,
}

impl Default for Disruption {
    fn default() -> Self {
        Self { consolidate_after: Some(Duration(0)), policy: "WhenEmptyOrUnderutilized".to_owned(), budgets: Vec::new() }
    }
}

/// One disruption budget, as written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DisruptionBudget {
    /// A count or a percentage.
    pub nodes: String,
    /// Cron schedule of its windows; `None` is always.
    pub schedule: Option<String>,
    /// Length of a window.
    pub duration: Option<Duration>,
    /// The reasons it binds; empty is all.
    pub reasons: Vec<String>,
}
