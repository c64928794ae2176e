//! The configuration. What must not enter: rows and columns.

use whittle_sdk::prelude::*;

/// Below which use a node may be consolidated.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", crate = "whittle_sdk::serde")]
#[schemars(crate = "whittle_sdk::schemars")]
pub struct Config {
    /// A node that is used to so many percent or more stays.
    #[serde(default = "half")]
    #[schemars(range(min = 0, max = 101))]
    pub floor_percent: u8,
    /// Which use counts.
    #[serde(default)]
    pub of: Of,
    /// Other floors for nodes of some NodePools; the first that fits counts. At most 64.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub node_pools: Vec<Pool>,
    /// Which move goes first.
    #[serde(default)]
    pub order: Order,
}

/// The floor of some NodePools.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", crate = "whittle_sdk::serde")]
#[schemars(crate = "whittle_sdk::schemars")]
pub struct Pool {
    /// Names; `*` and `?` stand for any characters and any character.
    #[schemars(length(min = 1))]
    pub names: Vec<String>,
    /// A node of theirs that is used to so many percent or more stays; 101 lets all go.
    #[schemars(range(min = 0, max = 101))]
    pub floor_percent: u8,
}

/// Which use of a node counts: what its pods request of what they could.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(crate = "whittle_sdk::serde")]
#[schemars(crate = "whittle_sdk::schemars")]
pub enum Of {
    /// The larger of CPU and memory.
    #[default]
    Larger,
    /// The smaller of them.
    Smaller,
    /// CPU.
    Cpu,
    /// Memory.
    Memory,
}

/// Which move goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(crate = "whittle_sdk::serde")]
#[schemars(crate = "whittle_sdk::schemars")]
pub enum Order {
    /// The one that saves most, as without this policy.
    #[default]
    Savings,
    /// The one whose fullest node is emptiest; of equals the one that saves most.
    Emptiest,
}

const fn half() -> u8 {
    50
}
