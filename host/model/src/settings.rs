//! Settings a plan reads.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Duration;

/// How pods are packed onto new nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub enum Packing {
    /// The cheapest of a portfolio, never dearer than the greedy.
    #[default]
    Cost,
    /// Karpenter's documented greedy alone.
    Greedy,
}

/// Whether planned pods are nominated to their nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub enum Nomination {
    /// Where the server keeps nominations of others (Kubernetes 1.35 and later).
    #[default]
    Auto,
    /// Never.
    Off,
}

/// What policies are told of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Cluster {
    /// Its name.
    pub name: String,
    /// AWS account; empty when unknown.
    pub account: String,
    /// Numbers its owner publishes, by name.
    pub signals: BTreeMap<String, i64>,
}

/// Settings; the defaults are Karpenter's where it has the setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// A batch closes when no new pod came for this long.
    pub batch_idle: Duration,
    /// A batch closes at the latest after this long.
    pub batch_max: Duration,
    /// How pods are packed.
    pub packing: Packing,
    /// Whether planned pods are nominated.
    pub nomination: Nomination,
    /// Kubernetes minor version of the server: 36 for 1.36.
    pub kubernetes_minor: u32,
    /// Name of the cluster, AWS account, and numbers its owner publishes for policies.
    pub cluster: Cluster,
    /// Whether each plan under policies also says what it would cost without them. It is planned
    /// twice for that.
    pub compare_policies: bool,
    /// Whether actions are only said and never carried out: each poll then thinks on a copy of the world, so that
    /// nothing counts as ordered.
    pub observe: bool,
    /// Budget of the improvement phase, in steps; a step is about a hundred comparisons.
    pub improvement_steps: u64,
}

impl Settings {
    /// Whether kube-scheduler of this server honours a nomination that it did not make itself.
    #[must_use]
    pub fn nominates(&self) -> bool {
        self.nomination == Nomination::Auto && self.kubernetes_minor >= 35
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            batch_idle: Duration::seconds(1),
            batch_max: Duration::seconds(10),
            packing: Packing::Cost,
            nomination: Nomination::Auto,
            kubernetes_minor: 36,
            cluster: Cluster::default(),
            compare_policies: false,
            observe: false,
            improvement_steps: 1_000_000,
        }
    }
}
