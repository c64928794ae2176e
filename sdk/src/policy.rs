//! The trait that a policy implements. What must not enter: how it is called across the component's
//! border.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::columns::{Candidate, Move, Round};
use crate::{Price, Prices, Score, Scores, Setup, Tables};

/// What a policy says of itself.
///
/// ```
/// use whittle_sdk::About;
/// const ABOUT: About = About { name: "mine", version: env!("CARGO_PKG_VERSION"), documentation: "What it does." };
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct About {
    /// Its name: lower case letters, digits and `-`.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// What it does and how it is configured, in Markdown; `include_str!("../README.md")` is usual.
    pub documentation: &'static str,
}

/// A policy: a pure function from tables to verdicts. See the [crate](crate) for a whole one.
///
/// ```
/// # use whittle_sdk::prelude::*;
/// # #[derive(Deserialize, JsonSchema)]
/// # #[serde(crate = "whittle_sdk::serde")]
/// # #[schemars(crate = "whittle_sdk::schemars")]
/// # struct Config {}
/// struct OldestFirst;
///
/// impl Policy for OldestFirst {
///     type Config = Config;
///     const ABOUT: About = About { name: "oldest-first", version: "0.1.0", documentation: "Old nodes go first." };
///
///     fn configure(_: Config, setup: &mut Setup) -> Result<Self, String> {
///         setup.moves([]).move_nodes([MoveNodeColumn::AgeSeconds]);
///         Ok(Self)
///     }
///
///     fn score(&self, candidate: Move<'_>) -> Score {
///         Score::of(candidate.node_rows().map(|node| node.age_seconds()).max().unwrap_or(0))
///     }
/// }
/// ```
pub trait Policy: Sized {
    /// Its configuration. `#[serde(deny_unknown_fields)]` finds a user's typing errors.
    type Config: DeserializeOwned + JsonSchema;

    /// What it is.
    const ABOUT: About;

    /// Takes the configuration, asks for columns, and makes the reasons of its vetoes.
    ///
    /// # Errors
    /// Says what is wrong with the configuration, where the schema cannot.
    fn configure(config: Self::Config, setup: &mut Setup) -> Result<Self, String>;

    /// Begins a plan.
    fn open(&mut self, round: Round<'_>) {
        let _ = round;
    }

    /// Prices one candidate.
    fn price(&self, candidate: Candidate<'_>) -> Price {
        let _ = candidate;
        Price::unchanged()
    }

    /// Prices all candidates; by default one after the other. Implemented instead of
    /// [`price`](Self::price) by those that compare candidates, or work on whole columns.
    fn price_all(&mut self, tables: &Tables, prices: &mut Prices) {
        for candidate in tables.candidates() {
            prices.set(candidate, self.price(candidate));
        }
    }

    /// Scores one move.
    fn score(&self, candidate: Move<'_>) -> Score {
        let _ = candidate;
        Score::unchanged()
    }

    /// Scores all moves; by default one after the other.
    fn score_all(&mut self, tables: &Tables, scores: &mut Scores) {
        for candidate in tables.moves() {
            scores.set(candidate, self.score(candidate));
        }
    }

    /// The JSON schema of the configuration.
    #[must_use]
    fn schema() -> serde_json::Value {
        schemars::schema_for!(Self::Config).to_value()
    }
}
