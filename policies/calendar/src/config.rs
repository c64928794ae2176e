//! The configuration. What must not enter: what day it is.

use whittle_sdk::prelude::*;

/// Windows in which moves are forbidden, or outside which they are.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", crate = "whittle_sdk::serde")]
#[schemars(crate = "whittle_sdk::schemars")]
pub struct Config {
    /// Whose clock windows go by: `UTC`, an offset such as `+05:30`, or a name such as `Europe/Berlin`.
    #[serde(default = "utc")]
    pub time_zone: String,
    /// The windows, at most 64.
    #[schemars(length(min = 1, max = 64))]
    pub windows: Vec<Window>,
}

/// One window.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", crate = "whittle_sdk::serde")]
#[schemars(crate = "whittle_sdk::schemars")]
pub struct Window {
    /// Its name, which every veto mentions.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Whose clock it goes by; that of all windows when left out.
    #[serde(default)]
    pub time_zone: Option<String>,
    /// Days on which it begins; every day when empty.
    #[serde(default)]
    pub days: Vec<Day>,
    /// First and last date on which it begins, such as `2026-11-23`, or `12-20` for each year; any date when left out.
    #[serde(default)]
    pub dates: Option<Dates>,
    /// Local time at which it opens, such as `08:00`.
    #[serde(default = "midnight")]
    pub from: String,
    /// Local time at which it shuts, such as `18:00`; on the next day when it is not after `from`.
    #[serde(default = "end")]
    pub to: String,
    /// NodePools it speaks of; `*` and `?` stand for any characters and any character. All when empty.
    #[serde(default)]
    pub node_pools: Vec<String>,
    /// Reasons for which nothing moves while it is open.
    #[serde(default)]
    pub forbid: Vec<Kind>,
    /// Reasons for which nodes move only while it, or another window that allows them, is open.
    #[serde(default)]
    pub allow: Vec<Kind>,
}

/// Two dates, both of which belong to it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", crate = "whittle_sdk::serde")]
#[schemars(crate = "whittle_sdk::schemars")]
pub struct Dates {
    /// The first.
    pub from: String,
    /// The last.
    pub to: String,
}

/// A day of the week.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(crate = "whittle_sdk::serde")]
#[schemars(crate = "whittle_sdk::schemars")]
pub enum Day {
    /// Monday.
    Mon,
    /// Tuesday.
    Tue,
    /// Wednesday.
    Wed,
    /// Thursday.
    Thu,
    /// Friday.
    Fri,
    /// Saturday.
    Sat,
    /// Sunday.
    Sun,
}

/// Why nodes move, in the words of disruption budgets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(crate = "whittle_sdk::serde")]
#[schemars(crate = "whittle_sdk::schemars")]
pub enum Kind {
    /// Nothing runs there.
    Empty,
    /// What runs there fits elsewhere for less.
    Underutilized,
    /// It is no longer what its NodePool or EC2NodeClass asks for.
    Drifted,
    /// It has reached its age.
    Expired,
    /// EC2 advises to leave it.
    Rebalance,
}

impl Kind {
    /// All of them.
    pub(crate) const ALL: [Self; 5] = [Self::Empty, Self::Underutilized, Self::Drifted, Self::Expired, Self::Rebalance];

    /// Its word in table `moves`.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Underutilized => "underutilized",
            Self::Drifted => "drifted",
            Self::Expired => "expired",
            Self::Rebalance => "rebalance",
        }
    }
}

fn utc() -> String {
    "UTC".to_owned()
}

fn midnight() -> String {
    "00:00".to_owned()
}

fn end() -> String {
    "24:00".to_owned()
}
