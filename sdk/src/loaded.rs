//! A configured policy with its tables: what the component's exports, the test kit and a host that
//! runs a policy natively all call. What must not enter: the canonical ABI.

use crate::table::Column;
use crate::{Policy, Prices, Round, RoundColumn, Scores, Setup, Tables};

/// A hook of the contract.
///
/// ```
/// assert_ne!(whittle_sdk::Hook::PriceCandidates, whittle_sdk::Hook::ScoreMoves);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    /// Prices offerings and nodes.
    PriceCandidates,
    /// Scores moves.
    ScoreMoves,
}

/// A configured policy. Authors do not need it; it is how a policy is called without WebAssembly.
///
/// ```
/// # use whittle_sdk::prelude::*;
/// # #[derive(Deserialize, JsonSchema)]
/// # #[serde(crate = "whittle_sdk::serde")]
/// # #[schemars(crate = "whittle_sdk::schemars")]
/// # struct Config {}
/// # struct Double;
/// # impl Policy for Double {
/// #     type Config = Config;
/// #     const ABOUT: About = About { name: "double", version: "0.1.0", documentation: "Doubles." };
/// #     fn configure(_: Config, setup: &mut Setup) -> Result<Self, String> {
/// #         setup.candidates([]);
/// #         Ok(Self)
/// #     }
/// #     fn price(&self, candidate: Candidate<'_>) -> Price {
/// #         Price::rank(candidate.rank_micros() * 2)
/// #     }
/// # }
/// let mut loaded = whittle_sdk::Loaded::<Double>::configure("{}").unwrap();
/// loaded.open(vec![String::new()], vec![]);
/// assert_eq!(loaded.price(vec![], vec![(2, vec![10, 20])]), [20, 40]);
/// ```
#[derive(Debug)]
pub struct Loaded<P> {
    policy: P,
    setup: Setup,
    tables: Tables,
}

impl<P: Policy> Loaded<P> {
    /// Reads the configuration, JSON, and configures the policy.
    ///
    /// # Errors
    /// Says what is wrong with the configuration.
    ///
    /// ```
    /// # use whittle_sdk::{Loaded, Policy};
    /// fn refused<P: Policy>() -> Option<String> {
    ///     Loaded::<P>::configure("no JSON").err()
    /// }
    /// ```
    pub fn configure(config: &str) -> Result<Self, String> {
        let config = serde_json::from_str(config).map_err(|error| error.to_string())?;
        let mut setup = Setup::default();
        let policy = P::configure(config, &mut setup)?;
        let tables = setup.empty();
        Ok(Self { policy, setup, tables })
    }

    /// What it asked for.
    ///
    /// ```
    /// # use whittle_sdk::{Loaded, Policy};
    /// fn reasons<P: Policy>(loaded: &Loaded<P>) -> usize {
    ///     loaded.setup().reasons().len()
    /// }
    /// ```
    #[must_use]
    pub const fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Begins a round with all words, the first of them empty, and the facts asked for.
    ///
    /// # Panics
    /// When the facts are not those asked for.
    ///
    /// ```
    /// # use whittle_sdk::{Loaded, Policy};
    /// fn begin<P: Policy>(loaded: &mut Loaded<P>) {
    ///     loaded.open(vec![String::new()], vec![]);
    /// }
    /// ```
    pub fn open(&mut self, words: Vec<String>, facts: Vec<i64>) {
        self.tables.words = words;
        self.tables.data[RoundColumn::PLACE].fill(1, facts);
        self.policy.open(Round { tables: &self.tables, row: 0 });
    }

    fn take(&mut self, hook: Hook, words: Vec<String>, tables: Vec<(usize, Vec<i64>)>) {
        self.tables.words.extend(words);
        let places = self.setup.places(hook);
        assert!(places.len() == tables.len(), "the host did not send the tables that were asked for");
        for (place, (rows, cells)) in places.into_iter().zip(tables) {
            self.tables.data[place].fill(rows, cells);
        }
    }

    /// Prices candidates: the tables in the order of [`Setup::tables`], as rows and cells,
    /// column after column; answers cells likewise.
    ///
    /// # Panics
    /// When the tables are not those asked for.
    ///
    /// ```
    /// # use whittle_sdk::{Loaded, Policy};
    /// fn ranks<P: Policy>(loaded: &mut Loaded<P>, rank: Vec<i64>) -> Vec<i64> {
    ///     loaded.price(vec![], vec![(rank.len(), rank)])
    /// }
    /// ```
    pub fn price(&mut self, words: Vec<String>, tables: Vec<(usize, Vec<i64>)>) -> Vec<i64> {
        self.take(Hook::PriceCandidates, words, tables);
        let mut prices = Prices::unchanged(&self.tables, self.setup.with_cost());
        self.policy.price_all(&self.tables, &mut prices);
        prices.into_cells()
    }

    /// Scores moves, likewise.
    ///
    /// # Panics
    /// When the tables are not those asked for.
    ///
    /// ```
    /// # use whittle_sdk::{Loaded, Policy};
    /// fn scores<P: Policy>(loaded: &mut Loaded<P>, score: Vec<i64>) -> Vec<i64> {
    ///     loaded.score(vec![], vec![(score.len(), score)])
    /// }
    /// ```
    pub fn score(&mut self, words: Vec<String>, tables: Vec<(usize, Vec<i64>)>) -> Vec<i64> {
        self.take(Hook::ScoreMoves, words, tables);
        let mut scores = Scores::unchanged(&self.tables);
        self.policy.score_all(&self.tables, &mut scores);
        scores.into_cells()
    }
}
