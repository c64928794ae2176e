//! What a policy answers, and the walks over tables that it answers from.

use crate::columns::{Asker, Candidate, MixRow, Move, MoveNode, MovePod, MovePool};
use crate::{CandidateColumn, Column, MixRowColumn, MoveColumn, MoveNodeColumn, MovePodColumn, MovePoolColumn, Reason, Tables};

/// What a candidate is worth.
///
/// ```
/// use whittle_sdk::Price;
/// assert_ne!(Price::rank(85_000), Price::rank(85_000).cost(80_000));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Price {
    rank: Option<i64>,
    cost: Option<i64>,
}

impl Price {
    /// No opinion: rank and cost stay as they are.
    ///
    /// ```
    /// assert_eq!(whittle_sdk::Price::unchanged(), whittle_sdk::Price::unchanged());
    /// ```
    #[must_use]
    #[inline]
    pub const fn unchanged() -> Self {
        Self { rank: None, cost: None }
    }

    /// What choice minimises, in micro-dollars an hour; below 0 counts as 0.
    ///
    /// ```
    /// assert_eq!(whittle_sdk::Price::rank(-5), whittle_sdk::Price::rank(0));
    /// ```
    #[must_use]
    #[inline]
    pub const fn rank(micros: i64) -> Self {
        Self { rank: Some(if micros < 0 { 0 } else { micros }), cost: None }
    }

    /// Real money too, in micro-dollars an hour. Counts only after [`Setup::answers_cost`](crate::Setup::answers_cost).
    ///
    /// ```
    /// let price = whittle_sdk::Price::unchanged().cost(72_000);
    /// assert_ne!(price, whittle_sdk::Price::unchanged());
    /// ```
    #[must_use]
    #[inline]
    pub const fn cost(self, micros: i64) -> Self {
        Self { rank: self.rank, cost: Some(micros) }
    }

    /// It must not be bought.
    ///
    /// ```
    /// let mut setup = whittle_sdk::Setup::default();
    /// let price = whittle_sdk::Price::veto(setup.reason("not here"));
    /// ```
    #[must_use]
    #[inline]
    pub const fn veto(reason: Reason) -> Self {
        Self { rank: Some(veto(reason)), cost: None }
    }
}

const fn veto(reason: Reason) -> i64 {
    -1 - reason.0 as i64
}

/// What a move is worth.
///
/// ```
/// use whittle_sdk::Score;
/// assert_ne!(Score::of(3), Score::unchanged());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Score(Option<i64>);

impl Score {
    /// No opinion.
    ///
    /// ```
    /// assert_eq!(whittle_sdk::Score::unchanged(), whittle_sdk::Score::unchanged());
    /// ```
    #[must_use]
    pub const fn unchanged() -> Self {
        Self(None)
    }

    /// Higher goes first; below 0 counts as 0.
    ///
    /// ```
    /// assert_eq!(whittle_sdk::Score::of(-1), whittle_sdk::Score::of(0));
    /// ```
    #[must_use]
    pub const fn of(value: i64) -> Self {
        Self(Some(if value < 0 { 0 } else { value }))
    }

    /// It must not be made.
    ///
    /// ```
    /// let mut setup = whittle_sdk::Setup::default();
    /// let score = whittle_sdk::Score::veto(setup.reason("too young"));
    /// ```
    #[must_use]
    pub const fn veto(reason: Reason) -> Self {
        Self(Some(veto(reason)))
    }
}

/// The prices of all candidates; at first all unchanged.
///
/// ```
/// use whittle_sdk::prelude::*;
/// /// Doubles every rank, on the whole column.
/// fn double(prices: &mut Prices) {
///     prices.ranks().iter_mut().for_each(|rank| *rank *= 2);
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prices {
    rows: usize,
    /// Ranks, and behind them costs when they are answered.
    cells: Vec<i64>,
}

impl Prices {
    pub(crate) fn unchanged(tables: &Tables, with_cost: bool) -> Self {
        let ranks = tables.column(&CandidateColumn::RankMicros);
        let costs = if with_cost { tables.column(&CandidateColumn::CostMicros) } else { &[] };
        Self { rows: ranks.len(), cells: [ranks, costs].concat() }
    }

    /// Prices one candidate.
    ///
    /// ```
    /// # use whittle_sdk::prelude::*;
    /// # fn example(tables: &Tables, prices: &mut Prices) {
    /// for candidate in tables.candidates() {
    ///     prices.set(candidate, Price::rank(candidate.list_micros()));
    /// }
    /// # }
    /// ```
    #[inline]
    pub fn set(&mut self, candidate: Candidate<'_>, price: Price) {
        if let Some(rank) = price.rank {
            self.cells[candidate.row] = rank;
        }
        if let (Some(cost), Some(place)) = (price.cost, self.cells.get_mut(self.rows + candidate.row)) {
            *place = cost;
        }
    }

    /// The ranks, to be worked on as a whole.
    ///
    /// ```
    /// # fn example(prices: &mut whittle_sdk::Prices) {
    /// prices.ranks().fill(1);
    /// # }
    /// ```
    #[inline]
    pub fn ranks(&mut self) -> &mut [i64] {
        &mut self.cells[..self.rows]
    }

    pub(crate) fn into_cells(self) -> Vec<i64> {
        self.cells
    }
}

/// The scores of all moves; at first all unchanged.
///
/// ```
/// # use whittle_sdk::prelude::*;
/// fn none(tables: &Tables, scores: &mut Scores, why: Reason) {
///     tables.moves().for_each(|row| scores.set(row, Score::veto(why)));
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scores(Vec<i64>);

impl Scores {
    pub(crate) fn unchanged(tables: &Tables) -> Self {
        Self(tables.column(&MoveColumn::Score).to_vec())
    }

    /// Scores one move.
    ///
    /// ```
    /// # use whittle_sdk::prelude::*;
    /// # fn example(row: Move<'_>, scores: &mut Scores) {
    /// scores.set(row, Score::of(row.savings_cost_micros()));
    /// # }
    /// ```
    pub fn set(&mut self, row: Move<'_>, score: Score) {
        if let Some(score) = score.0 {
            self.0[row.row] = score;
        }
    }

    pub(crate) fn into_cells(self) -> Vec<i64> {
        self.0
    }
}

impl Tables {
    /// All candidates.
    ///
    /// ```
    /// # fn example(tables: &whittle_sdk::Tables) {
    /// let new = tables.candidates().filter(|candidate| !candidate.exists()).count();
    /// # }
    /// ```
    #[inline]
    pub fn candidates(&self) -> impl Iterator<Item = Candidate<'_>> {
        (0..self.data[CandidateColumn::PLACE].rows()).map(|row| Candidate { tables: self, row })
    }

    /// All classes of pods.
    ///
    /// ```
    /// # fn example(tables: &whittle_sdk::Tables) {
    /// let pods: i64 = tables.askers().map(|asker| asker.count()).sum();
    /// # }
    /// ```
    pub fn askers(&self) -> impl Iterator<Item = Asker<'_>> {
        (0..self.data[crate::AskerColumn::PLACE].rows()).map(|row| Asker { tables: self, row })
    }

    /// All moves.
    ///
    /// ```
    /// # fn example(tables: &whittle_sdk::Tables) {
    /// let saved: i64 = tables.moves().map(|row| row.savings_cost_micros()).sum();
    /// # }
    /// ```
    pub fn moves(&self) -> impl Iterator<Item = Move<'_>> {
        (0..self.data[MoveColumn::PLACE].rows()).map(|row| Move { tables: self, row })
    }

    fn mix_rows(&self, mix: i64) -> impl Iterator<Item = MixRow<'_>> {
        const MIX: usize = 0;
        let rows = self.data[MixRowColumn::PLACE].run(MIX, mix);
        rows.map(|row| MixRow { tables: self, row })
    }
}

impl<'a> Candidate<'a> {
    /// The rows of the mix that this candidate is priced against.
    ///
    /// ```
    /// # fn example(candidate: whittle_sdk::Candidate<'_>) {
    /// let spot: i64 = candidate.mix_rows().filter(|row| row.capacity_type() == "spot").map(|row| row.pods()).sum();
    /// # }
    /// ```
    pub fn mix_rows(self) -> impl Iterator<Item = MixRow<'a>> {
        self.tables.mix_rows(self.mix())
    }
}

macro_rules! children {
    ($name:ident $column:ident $row:ident $what:literal) => {
        #[doc = concat!($what, "\n\n```\n# fn example(row: whittle_sdk::Move<'_>) {\nlet count = row.", stringify!($name), "().count();\n# }\n```")]
        pub fn $name(self) -> impl Iterator<Item = $row<'a>> {
            const MOVE: usize = 0;
            let rows = self.tables.data[$column::PLACE].run(MOVE, i64::try_from(self.row).unwrap_or(i64::MAX));
            rows.map(move |row| $row { tables: self.tables, row })
        }
    };
}

impl<'a> Move<'a> {
    /// The rows of the mix that this move is judged against.
    ///
    /// ```
    /// # fn example(row: whittle_sdk::Move<'_>) {
    /// let nodes: i64 = row.mix_rows().map(|row| row.nodes()).sum();
    /// # }
    /// ```
    pub fn mix_rows(self) -> impl Iterator<Item = MixRow<'a>> {
        self.tables.mix_rows(self.mix())
    }

    children!(node_rows MoveNodeColumn MoveNode "The nodes it removes.");
    children!(pod_rows MovePodColumn MovePod "The pods it evicts.");
    children!(pool_rows MovePoolColumn MovePool "The pools it touches.");
}
