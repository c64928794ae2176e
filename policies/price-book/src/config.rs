//! The configuration. What must not enter: rows and columns.

use whittle_sdk::prelude::*;
use whittle_sdk::{Decimal, Dollars};

/// Discounts, fees and commitments.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", crate = "whittle_sdk::serde")]
#[schemars(crate = "whittle_sdk::schemars")]
pub struct Config {
    /// Percentages off; all that fit apply, one after the other, in this order. At most 64.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub discounts: Vec<Discount>,
    /// Flat fees for each node; all that fit are added, after discounts and commitments. At most 64.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub fees: Vec<Fee>,
    /// Spend that is paid whether it is used or not, used up in this order.
    #[serde(default)]
    pub commitments: Vec<Commitment>,
}

/// Which offerings: of each list that is given, an entry must fit. `*` and `?` stand for any characters
/// and any character.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", crate = "whittle_sdk::serde")]
#[schemars(crate = "whittle_sdk::schemars")]
pub struct Which {
    /// Instance types, such as `m7g.*`.
    #[serde(default)]
    pub instance_types: Vec<String>,
    /// Families, such as `m7g`.
    #[serde(default)]
    pub families: Vec<String>,
    /// Categories, such as `m`.
    #[serde(default)]
    pub categories: Vec<String>,
    /// Availability zones, such as `us-east-1a`.
    #[serde(default)]
    pub zones: Vec<String>,
    /// `spot`, `on-demand` or `reserved`.
    #[serde(default)]
    pub capacity_types: Vec<String>,
}

/// A percentage off.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", crate = "whittle_sdk::serde")]
#[schemars(crate = "whittle_sdk::schemars")]
pub struct Discount {
    /// Percent off, such as `12.5`; below 0 it is a surcharge. At least -1000, at most 100.
    pub percent: Decimal<3>,
    /// On which offerings; all when left out.
    #[serde(default)]
    pub on: Which,
}

/// A flat fee.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", crate = "whittle_sdk::serde")]
#[schemars(crate = "whittle_sdk::schemars")]
pub struct Fee {
    /// Dollars an hour for each node.
    pub per_hour: Dollars,
    /// On which offerings; all when left out.
    #[serde(default)]
    pub on: Which,
}

/// Committed spend, as of a Savings Plan.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", crate = "whittle_sdk::serde")]
#[schemars(crate = "whittle_sdk::schemars")]
pub struct Commitment {
    /// Dollars an hour that are paid anyhow.
    pub per_hour: Dollars,
    /// Percent off the list price for what it covers, such as `27`. At least 0, below 100.
    #[serde(default)]
    pub percent: Decimal<3>,
    /// Families it covers, such as `m7*`; all when empty.
    #[serde(default)]
    pub families: Vec<String>,
    /// Zones it covers; all when empty.
    #[serde(default)]
    pub zones: Vec<String>,
    /// Capacity types it covers; on demand alone when left out, which is what Savings Plans cover.
    #[serde(default = "on_demand")]
    pub capacity_types: Vec<String>,
}

fn on_demand() -> Vec<String> {
    vec!["on-demand".to_owned()]
}
