//! What a policy asks for and will answer. What must not enter: the answers themselves.

use crate::Hook;
use crate::columns::{
    AskerColumn, CandidateColumn, MixRowColumn, MoveColumn, MoveNodeColumn, MovePodColumn, MovePoolColumn, PriceColumn, RoundColumn,
    ScoreColumn,
};
use crate::table::{Column, Data, TABLES, Tables};

/// A reason for vetoes, made by [`Setup::reason`].
///
/// ```
/// use whittle_sdk::prelude::*;
/// let mut setup = Setup::default();
/// let reason: Reason = setup.reason("no Arm here");
/// assert_eq!(Price::veto(reason), Price::veto(reason));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reason(pub(crate) u32);

/// What a policy asks for and will answer. A hook is called when columns of its first table,
/// `candidates` or `moves`, are asked for.
///
/// ```
/// use whittle_sdk::prelude::*;
/// let mut setup = Setup::default();
/// setup.candidates([CandidateColumn::CapacityType]).mix_key("node-pool").mix([MixRowColumn::Pods]);
/// assert_eq!(setup.mix_keys(), ["node-pool"]);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Setup {
    wanted: [Vec<(String, Option<usize>)>; TABLES],
    mix_keys: Vec<String>,
    depends_on_mix: bool,
    answers_cost: bool,
    kinds: Vec<String>,
    reasons: Vec<String>,
}

macro_rules! asks {
    ($(#[$doc:meta])* $name:ident $column:ident $example:ident $($and:ident)?) => {
        $(#[$doc])*
        #[doc = concat!("\n\n```\n# use whittle_sdk::prelude::*;\nSetup::default().", stringify!($name), "([", stringify!($column), "::", stringify!($example), "]);\n```")]
        pub fn $name(&mut self, columns: impl IntoIterator<Item = $column>) -> &mut Self {
            $(self.want(&$column::$and);)?
            columns.into_iter().for_each(|column| self.want(&column));
            self
        }
    };
}

impl Setup {
    fn want<C: Column>(&mut self, column: &C) {
        let name = column.name();
        let wanted = &mut self.wanted[C::PLACE];
        if !wanted.iter().any(|(n, _)| *n == name) {
            wanted.push((name, column.number()));
        }
    }

    asks!(#[doc = "Asks for facts of the round, given to `open`."] round RoundColumn Region);
    asks!(#[doc = "Asks to price candidates, with these columns; the rank so far is always among them."] candidates CandidateColumn Zone RankMicros);
    asks!(#[doc = "Asks for the pods behind candidates or moves."] askers AskerColumn Namespace);
    asks!(#[doc = "Asks to score moves, with these columns; the score so far is always among them."] moves MoveColumn Kind Score);
    asks!(#[doc = "Asks for the nodes that moves remove."] move_nodes MoveNodeColumn AgeSeconds Move);
    asks!(#[doc = "Asks for the pods that moves evict."] move_pods MovePodColumn Count Move);
    asks!(#[doc = "Asks for the pools that moves touch."] move_pools MovePoolColumn Nodes Move);

    /// Asks for the mix: what the cluster is made of, counted by the mix keys. Prices are then asked
    /// again as a plan grows.
    ///
    /// ```
    /// # use whittle_sdk::prelude::*;
    /// Setup::default().mix([MixRowColumn::CapacityType, MixRowColumn::Pods]).mix_key("node-pool");
    /// ```
    pub fn mix(&mut self, columns: impl IntoIterator<Item = MixRowColumn>) -> &mut Self {
        self.depends_on_mix = true;
        self.want(&MixRowColumn::Mix);
        columns.into_iter().for_each(|column| self.want(&column));
        self
    }

    /// Counts the mix by this key too: `node-pool`, `namespace` or `label:KEY` of the pods.
    ///
    /// ```
    /// # use whittle_sdk::prelude::*;
    /// Setup::default().mix([MixRowColumn::Pods]).mix_key("label:team");
    /// ```
    pub fn mix_key(&mut self, key: impl Into<String>) -> &mut Self {
        self.mix_keys.push(key.into());
        self
    }

    /// Says that prices carry cost, real money, besides rank.
    ///
    /// ```
    /// # use whittle_sdk::prelude::*;
    /// Setup::default().candidates([CandidateColumn::ListMicros]).answers_cost();
    /// ```
    pub fn answers_cost(&mut self) -> &mut Self {
        self.answers_cost = true;
        self.want(&CandidateColumn::CostMicros);
        self
    }

    /// Is asked about moves of this kind: `empty`, `underutilized`, `drifted`, `expired`, `rebalance`.
    /// Without any it is asked about all.
    ///
    /// ```
    /// # use whittle_sdk::prelude::*;
    /// Setup::default().moves([MoveColumn::PdbSlack]).kind("drifted");
    /// ```
    pub fn kind(&mut self, kind: impl Into<String>) -> &mut Self {
        self.kinds.push(kind.into());
        self
    }

    /// A reason for vetoes. `{COLUMN}` in its text stands for the value of that column, which must be
    /// asked for, in the vetoed row.
    ///
    /// ```
    /// # use whittle_sdk::prelude::*;
    /// let mut setup = Setup::default();
    /// setup.candidates([CandidateColumn::InstanceType]);
    /// let reason = setup.reason("{instance-type} is for databases");
    /// ```
    pub fn reason(&mut self, text: impl Into<String>) -> Reason {
        let number = u32::try_from(self.reasons.len()).unwrap_or(u32::MAX);
        self.reasons.push(text.into());
        Reason(number)
    }

    /// The names of the round's columns.
    ///
    /// ```
    /// # use whittle_sdk::prelude::*;
    /// assert_eq!(Setup::default().round([RoundColumn::Region]).round_columns(), ["region"]);
    /// ```
    #[must_use]
    pub fn round_columns(&self) -> Vec<String> {
        self.names(RoundColumn::PLACE)
    }

    fn names(&self, place: usize) -> Vec<String> {
        self.wanted[place].iter().map(|(name, _)| name.clone()).collect()
    }

    /// The places of the tables of a hook, in the order they are sent; none when it is not asked for.
    pub(crate) fn places(&self, hook: Hook) -> Vec<usize> {
        let all: &[usize] = match hook {
            Hook::PriceCandidates => &[CandidateColumn::PLACE, AskerColumn::PLACE, MixRowColumn::PLACE],
            Hook::ScoreMoves => &[
                MoveColumn::PLACE,
                MoveNodeColumn::PLACE,
                MovePodColumn::PLACE,
                MovePoolColumn::PLACE,
                AskerColumn::PLACE,
                MixRowColumn::PLACE,
            ],
        };
        let asked = |place: &usize| !self.wanted[*place].is_empty();
        if all.first().is_some_and(asked) { all.iter().copied().filter(asked).collect() } else { Vec::new() }
    }

    /// The tables of a hook with the names of their columns; none when the hook is not asked for.
    ///
    /// ```
    /// # use whittle_sdk::prelude::*;
    /// let mut setup = Setup::default();
    /// setup.candidates([CandidateColumn::Zone]);
    /// let tables = setup.tables(whittle_sdk::Hook::PriceCandidates);
    /// assert_eq!(tables, [("candidates", vec!["rank-micros".to_owned(), "zone".to_owned()])]);
    /// ```
    #[must_use]
    pub fn tables(&self, hook: Hook) -> Vec<(&'static str, Vec<String>)> {
        self.places(hook).into_iter().map(|place| (NAMES[place], self.names(place))).collect()
    }

    /// The columns that a hook answers with.
    ///
    /// ```
    /// # use whittle_sdk::prelude::*;
    /// assert_eq!(Setup::default().answers(whittle_sdk::Hook::ScoreMoves), ["score"]);
    /// ```
    #[must_use]
    pub fn answers(&self, hook: Hook) -> Vec<String> {
        match hook {
            Hook::PriceCandidates if self.answers_cost => vec![PriceColumn::RankMicros.name(), PriceColumn::CostMicros.name()],
            Hook::PriceCandidates => vec![PriceColumn::RankMicros.name()],
            Hook::ScoreMoves => vec![ScoreColumn::Score.name()],
        }
    }

    /// Whether prices carry cost.
    pub(crate) const fn with_cost(&self) -> bool {
        self.answers_cost
    }

    /// By what the mix is counted.
    ///
    /// ```
    /// assert!(whittle_sdk::Setup::default().mix_keys().is_empty());
    /// ```
    #[must_use]
    pub fn mix_keys(&self) -> &[String] {
        &self.mix_keys
    }

    /// Whether prices change with the mix.
    ///
    /// ```
    /// assert!(!whittle_sdk::Setup::default().depends_on_mix());
    /// ```
    #[must_use]
    pub const fn depends_on_mix(&self) -> bool {
        self.depends_on_mix
    }

    /// The kinds of moves it is asked about.
    ///
    /// ```
    /// assert!(whittle_sdk::Setup::default().kinds().is_empty());
    /// ```
    #[must_use]
    pub fn kinds(&self) -> &[String] {
        &self.kinds
    }

    /// The reasons in order.
    ///
    /// ```
    /// assert!(whittle_sdk::Setup::default().reasons().is_empty());
    /// ```
    #[must_use]
    pub fn reasons(&self) -> &[String] {
        &self.reasons
    }

    /// Empty tables of the wanted columns; word 0 is empty.
    pub(crate) fn empty(&self) -> Tables {
        Tables { words: vec![String::new()], data: std::array::from_fn(|place| Data::of(&self.wanted[place])) }
    }
}

/// Names of the input tables by place.
const NAMES: [&str; TABLES] = [
    RoundColumn::TABLE,
    CandidateColumn::TABLE,
    AskerColumn::TABLE,
    MixRowColumn::TABLE,
    MoveColumn::TABLE,
    MoveNodeColumn::TABLE,
    MovePodColumn::TABLE,
    MovePoolColumn::TABLE,
];
