//! The configuration. What must not enter: rows and columns.

use whittle_sdk::prelude::*;

use crate::share::Target;

/// The share, in the words of an Auto Scaling group.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", crate = "whittle_sdk::serde")]
#[schemars(crate = "whittle_sdk::schemars")]
pub struct Config {
    /// The first so many units are on demand: pods, vCPUs or nodes.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub on_demand_base_capacity: u32,
    /// Percent of what is above the base that is on demand; 100 when left out, as for an Auto Scaling group.
    #[serde(default = "all")]
    #[schemars(range(min = 0, max = 100))]
    pub on_demand_percentage_above_base_capacity: u8,
    /// How far the on-demand share of all units may be off, in percentage points. Within it price decides.
    #[serde(default = "five")]
    #[schemars(range(min = 0, max = 100))]
    pub tolerance_percent: u8,
    /// What is counted.
    #[serde(default)]
    pub unit: Unit,
    /// What the share holds for: `nodepool`, or `label:KEY` for pods of each value of a label.
    #[serde(default = "nodepool")]
    #[schemars(regex(pattern = "^(nodepool|label:.+)$"))]
    pub by: String,
}

const fn all() -> u8 {
    100
}

const fn five() -> u8 {
    5
}

fn nodepool() -> String {
    "nodepool".to_owned()
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", crate = "whittle_sdk::serde")]
#[schemars(crate = "whittle_sdk::schemars")]
pub enum Unit {
    /// Pods, without those of DaemonSets.
    #[default]
    Pods,
    /// The CPU that those pods request.
    Cpu,
    /// Nodes.
    Nodes,
}

impl Unit {
    pub(crate) const fn column(self) -> MixRowColumn {
        match self {
            Self::Pods => MixRowColumn::Pods,
            Self::Cpu => MixRowColumn::CpuMilli,
            Self::Nodes => MixRowColumn::Nodes,
        }
    }
}

/// What the share holds for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum By {
    NodePool,
    Label(String),
}

impl By {
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "nodepool" => Ok(Self::NodePool),
            Some(("label", key)) if !key.is_empty() => Ok(Self::Label(key.to_owned())),
            Some(_) | None => Err(format!("by: {text:?} is neither \"nodepool\" nor \"label:KEY\"")),
        }
    }

    /// The mix key.
    pub(crate) fn key(&self) -> String {
        match self {
            Self::NodePool => "node-pool".to_owned(),
            Self::Label(key) => format!("label:{key}"),
        }
    }
}

impl Config {
    pub(crate) fn target(&self) -> Target {
        let thousandths = if self.unit == Unit::Cpu { 1000 } else { 1 };
        Target {
            base: i64::from(self.on_demand_base_capacity) * thousandths,
            percent: i64::from(self.on_demand_percentage_above_base_capacity.min(100)),
            tolerance: i64::from(self.tolerance_percent.min(100)),
        }
    }
}
