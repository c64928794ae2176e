//! Settings a plan reads.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Duration, TopologySpread};

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

/// Feature gates, with Karpenter's names and defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a gate of its own")]
pub struct Features {
    /// `ReservedCapacity`: capacity reservations are bought into.
    pub reserved_capacity: bool,
    /// `SpotToSpotConsolidation`: spot nodes may be exchanged for cheaper spot nodes.
    pub spot_to_spot: bool,
    /// `NodeOverlay`: overlays change prices and capacity.
    pub node_overlay: bool,
    /// `StaticCapacity`: pools with `replicas` keep that many nodes.
    pub static_capacity: bool,
    /// `NodeRepair`: nodes that stay unhealthy are replaced.
    pub node_repair: bool,
    /// `CapacityBuffer`: room is kept free for pods to come.
    pub capacity_buffer: bool,
}

impl Features {
    /// Their names, as Karpenter has them.
    pub const NAMES: [&str; 6] =
        ["ReservedCapacity", "SpotToSpotConsolidation", "NodeOverlay", "StaticCapacity", "NodeRepair", "CapacityBuffer"];

    /// The gate of this name.
    pub fn gate(&mut self, name: &str) -> Option<&mut bool> {
        Some(match name {
            "ReservedCapacity" => &mut self.reserved_capacity,
            "SpotToSpotConsolidation" => &mut self.spot_to_spot,
            "NodeOverlay" => &mut self.node_overlay,
            "StaticCapacity" => &mut self.static_capacity,
            "NodeRepair" => &mut self.node_repair,
            "CapacityBuffer" => &mut self.capacity_buffer,
            _ => return None,
        })
    }
}

impl Default for Features {
    fn default() -> Self {
        Self {
            reserved_capacity: true,
            spot_to_spot: false,
            node_overlay: false,
            static_capacity: false,
            node_repair: false,
            capacity_buffer: false,
        }
    }
}

/// How nodes are moved for their price or their configuration, besides what NodePools say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DisruptionSettings {
    /// How many nodes of the whole cluster may be on their way out at once, a count or a percentage; `None` leaves it to
    /// the budgets of the pools.
    pub cluster_budget: Option<String>,
    /// How long a move has to look right before it is begun.
    pub validation: Duration,
    /// The least time between two looks for moves.
    pub every: Duration,
    /// Whether nodes are also exchanged for several others (1 to k, m to k), where nominations are honoured.
    pub reshape: bool,
    /// What such an exchange has to save, in thousandths of what its nodes cost.
    pub reshape_permille: u32,
    /// How long moves that save money start slowly after a change of policies, overlays, list prices or settings; zero is
    /// not at all.
    pub soak: Duration,
    /// How many nodes move within that time at most.
    pub soak_nodes: usize,
    /// Whether a look finds one move, as Karpenter's does, and the next look waits for it: for comparison.
    #[serde(default)]
    pub one_by_one: bool,
}

impl Default for DisruptionSettings {
    fn default() -> Self {
        Self {
            cluster_budget: None,
            validation: Duration::seconds(15),
            every: Duration::seconds(10),
            reshape: true,
            reshape_permille: 50,
            soak: Duration::minutes(60),
            soak_nodes: 5,
            one_by_one: false,
        }
    }
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
    /// Whether preferences of pods count (`PREFERENCE_POLICY`): if not, they are left out from the start.
    pub respect_preferences: bool,
    /// Whether a claim may have fewer values than its pool's `minValues` when no types have more (`MIN_VALUES_POLICY=BestEffort`).
    pub relax_min_values: bool,
    /// Spread constraints for pods that have none (`SCHEDULER_CONFIG`); their selectors are those of the pod's controller and Services.
    pub default_spread: Vec<TopologySpread>,
    /// How nodes are moved.
    pub disruption: DisruptionSettings,
    /// What is switched on besides.
    pub features: Features,
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
            respect_preferences: true,
            relax_min_values: false,
            default_spread: Vec::new(),
            disruption: DisruptionSettings::default(),
            features: Features::default(),
            improvement_steps: 1_000_000,
        }
    }
}
