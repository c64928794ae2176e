//! What the author of a Whittle policy imports. A policy says what an instance is worth to this cluster,
//! and whether a move is worth it; Whittle packs, checks and buys.
//!
//! What must not enter: crates of the host, clocks, randomness, files, network. A policy is a pure
//! function of the tables it is given.
//!
//! ```
//! use whittle_sdk::prelude::*;
//!
//! /// Percent added to the price of burstable types; above the limit they are refused.
//! #[derive(Deserialize, JsonSchema)]
//! #[serde(deny_unknown_fields, crate = "whittle_sdk::serde")]
//! #[schemars(crate = "whittle_sdk::schemars")]
//! struct Config {
//!     percent: i64,
//!     most_milli: i64,
//! }
//!
//! struct Steady {
//!     config: Config,
//!     too_big: Reason,
//! }
//!
//! impl Policy for Steady {
//!     type Config = Config;
//!     const ABOUT: About = About { name: "steady", version: "0.1.0", documentation: "Burstable types cost more." };
//!
//!     fn configure(config: Config, setup: &mut Setup) -> Result<Self, String> {
//!         setup.candidates([CandidateColumn::RankMicros, CandidateColumn::Burstable, CandidateColumn::CpuMilli]);
//!         let too_big = setup.reason(format!("burstable with {{cpu-milli}} mCPU, at most {} are allowed", config.most_milli));
//!         Ok(Self { config, too_big })
//!     }
//!
//!     fn price(&self, candidate: Candidate<'_>) -> Price {
//!         match (candidate.burstable(), candidate.cpu_milli() > self.config.most_milli) {
//!             (false, _) => Price::unchanged(),
//!             (true, true) => Price::veto(self.too_big),
//!             (true, false) => Price::rank(candidate.rank_micros() * (100 + self.config.percent) / 100),
//!         }
//!     }
//! }
//!
//! whittle_sdk::export!(Steady);
//!
//! let answers = Case::new(json!({"percent": 10, "most_milli": 2000}))
//!     .candidate([(CandidateColumn::RankMicros, 500.into()), (CandidateColumn::Burstable, true.into())])
//!     .candidate([(CandidateColumn::CpuMilli, 8000.into()), (CandidateColumn::Burstable, true.into())])
//!     .price::<Steady>()
//!     .unwrap();
//! assert_eq!(answers[0], Verdict::Answer { value: 550, cost: None });
//! assert_eq!(answers[1], Verdict::Veto("burstable with 8000 mCPU, at most 2000 are allowed".into()));
//! ```

pub mod bindings;
pub mod case;
mod columns;
mod decimal;
mod loaded;
mod per_word;
mod policy;
mod setup;
mod table;
mod verdict;

pub use case::{Case, Cell, Verdict};
pub use columns::{
    Asker, AskerColumn, Candidate, CandidateColumn, MixRow, MixRowColumn, Move, MoveColumn, MoveNode, MoveNodeColumn, MovePod,
    MovePodColumn, MovePool, MovePoolColumn, PriceColumn, Round, RoundColumn, ScoreColumn,
};
pub use decimal::{Decimal, Dollars};
pub use loaded::{Hook, Loaded};
pub use per_word::PerWord;
pub use policy::{About, Policy};
pub use schemars;
pub use serde;
pub use serde_json;
pub use setup::{Reason, Setup};
pub use table::{Cells, Column, Tables};
pub use verdict::{Price, Prices, Score, Scores};

/// All that a policy usually needs: `use whittle_sdk::prelude::*`.
///
/// ```
/// use whittle_sdk::prelude::*;
/// assert_eq!(Price::rank(5), Price::rank(5));
/// ```
pub mod prelude {
    pub use crate::{
        About, Asker, AskerColumn, Candidate, CandidateColumn, Case, MixRow, MixRowColumn, Move, MoveColumn, MoveNode, MoveNodeColumn,
        MovePod, MovePodColumn, MovePool, MovePoolColumn, PerWord, Policy, Price, Prices, Reason, Round, RoundColumn, Score, Scores, Setup,
        Tables, Verdict,
    };
    pub use schemars::JsonSchema;
    pub use serde::Deserialize;
    pub use serde_json::json;
}

/// Makes the exports of a component from a [`Policy`]. Compiled natively it does nothing.
///
/// ```
/// # use whittle_sdk::prelude::*;
/// # #[derive(Deserialize, JsonSchema)]
/// # #[serde(crate = "whittle_sdk::serde")]
/// # #[schemars(crate = "whittle_sdk::schemars")]
/// # struct Config {}
/// struct Idle;
///
/// impl Policy for Idle {
///     type Config = Config;
///     const ABOUT: About = About { name: "idle", version: "0.1.0", documentation: "Has no opinion." };
///
///     fn configure(_: Config, _: &mut Setup) -> Result<Self, String> {
///         Ok(Self)
///     }
/// }
///
/// whittle_sdk::export!(Idle);
/// ```
#[macro_export]
macro_rules! export {
    ($policy:ty) => {
        #[cfg(target_family = "wasm")]
        const _: () = {
            use $crate::bindings::exports::whittle::policy::scoring;

            ::std::thread_local! {
                static LOADED: ::std::cell::RefCell<::std::option::Option<$crate::Loaded<$policy>>> =
                    const { ::std::cell::RefCell::new(::std::option::Option::None) };
            }

            struct Component;

            impl scoring::Guest for Component {
                fn manifest() -> scoring::About {
                    $crate::bindings::manifest::<$policy>()
                }

                fn configure(
                    config: ::std::string::String,
                    _: scoring::HostInfo,
                ) -> ::std::result::Result<scoring::Setup, ::std::string::String> {
                    let loaded = $crate::Loaded::<$policy>::configure(&config)?;
                    let setup = $crate::bindings::setup(loaded.setup());
                    LOADED.set(::std::option::Option::Some(loaded));
                    ::std::result::Result::Ok(setup)
                }

                fn open(round: scoring::Round) {
                    LOADED.with_borrow_mut(|loaded| $crate::bindings::open(loaded, round));
                }

                fn price_candidates(
                    words: ::std::vec::Vec<::std::string::String>,
                    tables: ::std::vec::Vec<scoring::Table>,
                ) -> ::std::vec::Vec<i64> {
                    LOADED.with_borrow_mut(|loaded| $crate::bindings::price(loaded, words, tables))
                }

                fn score_moves(
                    words: ::std::vec::Vec<::std::string::String>,
                    tables: ::std::vec::Vec<scoring::Table>,
                ) -> ::std::vec::Vec<i64> {
                    LOADED.with_borrow_mut(|loaded| $crate::bindings::score(loaded, words, tables))
                }
            }

    $crate::bindings::export_component!(Component with_types_in $crate::bindings);
        };
    };
}
