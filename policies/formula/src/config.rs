//! The configuration. What must not enter: what a formula means.

use whittle_sdk::prelude::*;

/// Rows of formulas, applied in order.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", crate = "whittle_sdk::serde")]
#[schemars(crate = "whittle_sdk::schemars")]
pub struct Config {
    /// The rows. All whose `when` holds apply, in order; each sees the rank and cost that those before it
    /// made.
    #[schemars(length(min = 1))]
    pub rows: Vec<Row>,
}

/// One row; at least one of `rank`, `cost` and `veto` is given.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", crate = "whittle_sdk::serde")]
#[schemars(crate = "whittle_sdk::schemars")]
pub struct Row {
    /// CEL, a bool: whether the row applies; always when left out.
    #[serde(default)]
    pub when: Option<String>,
    /// CEL, an int or a double, which is rounded: the rank in micro-dollars an hour.
    #[serde(default)]
    pub rank: Option<String>,
    /// CEL, an int or a double, which is rounded: the cost in micro-dollars an hour.
    #[serde(default)]
    pub cost: Option<String>,
    /// CEL, a bool: whether it must not be bought.
    #[serde(default)]
    pub veto: Option<String>,
    /// Why; `{column}` stands for the value of a column of the candidate. The text of `veto` when left out.
    #[serde(default)]
    pub reason: Option<String>,
}
