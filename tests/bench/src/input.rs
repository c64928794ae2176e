//! What a bench solves: pods that need nodes, and what can be bought for them. One input is given
//! to the engine and to the reference alike. No cluster state: every solve starts from nothing.

use std::sync::Arc;

use whittle_model::{Catalog, DaemonSet, NodePool, Pod};

/// One problem.
#[derive(Debug, Clone, Default)]
pub struct Input {
    /// What the node classes sell; a pool finds its own by `node_class`.
    pub catalogs: Vec<Arc<Catalog>>,
    /// The pools, in any order.
    pub pools: Vec<NodePool>,
    /// What every matching node runs besides.
    pub daemon_sets: Vec<DaemonSet>,
    /// The pods, in any order.
    pub pods: Vec<Pod>,
}

impl Input {
    /// The same market with other pods.
    #[must_use]
    pub fn with_pods(&self, pods: Vec<Pod>) -> Self {
        Self { pods, ..self.clone() }
    }
}
