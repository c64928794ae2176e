//! What a configured policy asks for and answers, checked: names have become columns.

use serde::{Deserialize, Serialize};

use super::{
    AskerColumn, CandidateColumn, Column, MixRowColumn, MoveColumn, MoveNodeColumn, MovePodColumn, MovePoolColumn, PriceColumn,
    RoundColumn, ScoreColumn,
};

/// A hook of the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hook {
    /// Prices offerings and nodes.
    PriceCandidates,
    /// Scores moves.
    ScoreMoves,
}

impl std::fmt::Display for Hook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::PriceCandidates => "price-candidates",
            Self::ScoreMoves => "score-moves",
        })
    }
}

/// A kind of move that policies are asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MoveKind {
    /// A node without pods goes.
    Empty,
    /// Nodes go, or are exchanged for cheaper ones.
    Underutilized,
    /// A node that no longer matches its configuration is exchanged.
    Drifted,
    /// A node whose time will soon be over is exchanged before; it goes then at the latest, whatever policies say.
    Expired,
    /// A node is exchanged because EC2 advises to leave it.
    Rebalance,
}

impl MoveKind {
    /// All kinds.
    pub const ALL: [Self; 5] = [Self::Empty, Self::Underutilized, Self::Drifted, Self::Expired, Self::Rebalance];

    /// Its word in tables and setups.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Underutilized => "underutilized",
            Self::Drifted => "drifted",
            Self::Expired => "expired",
            Self::Rebalance => "rebalance",
        }
    }
}

/// The columns wanted of the tables that candidates are priced by.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PricingWants {
    /// Of table `candidates`.
    pub candidates: Vec<CandidateColumn>,
    /// Of table `askers`.
    pub askers: Vec<AskerColumn>,
    /// Of table `mix`.
    pub mix: Vec<MixRowColumn>,
}

/// The columns wanted of the tables that moves are scored by.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JudgingWants {
    /// The kinds of moves that some policy is asked about, sorted: of advice nobody else is to be asked.
    pub kinds: Vec<MoveKind>,
    /// Of table `moves`.
    pub moves: Vec<MoveColumn>,
    /// Of table `move-nodes`.
    pub nodes: Vec<MoveNodeColumn>,
    /// Of table `move-pods`.
    pub pods: Vec<MovePodColumn>,
    /// Of table `move-pools`.
    pub pools: Vec<MovePoolColumn>,
    /// Of table `askers`.
    pub askers: Vec<AskerColumn>,
    /// Of table `mix`.
    pub mix: Vec<MixRowColumn>,
}

/// All that tables are to be built of; for a chain the union over its policies.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wants {
    /// Of table `round`.
    pub round: Vec<RoundColumn>,
    /// For pricing; `None` when nobody prices.
    pub pricing: Option<PricingWants>,
    /// For scoring; `None` when nobody scores.
    pub judging: Option<JudgingWants>,
    /// By what the mix is counted: `node-pool`, `namespace`, `label:KEY`.
    pub mix_keys: Vec<String>,
    /// Whether prices change with the mix.
    pub depends_on_mix: bool,
}

/// What a configured policy needs and answers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Setup {
    /// What it wants to be given.
    pub wants: Wants,
    /// What it answers about candidates; empty when it does not price.
    pub prices: Vec<PriceColumn>,
    /// What it answers about moves; empty when it does not score.
    pub scores: Vec<ScoreColumn>,
    /// The kinds of moves it is asked about, sorted.
    pub kinds: Vec<MoveKind>,
    /// Why something is vetoed; `{COLUMN}` stands for a value of the vetoed row.
    pub reasons: Vec<String>,
}

/// A column that this host does not know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("table {table} has no column {column}; it has {}", known.join(", "))]
pub struct UnknownColumn {
    /// The table.
    pub table: &'static str,
    /// The name that was asked for.
    pub column: String,
    /// The columns there are.
    pub known: Vec<String>,
}

impl Setup {
    /// Reads the names of columns of one table; a name that comes twice is given twice.
    ///
    /// # Errors
    /// Names the first column that the table lacks.
    pub fn columns<C: Column>(names: &[String]) -> Result<Vec<C>, UnknownColumn> {
        let read = |name: &String| C::parse(name).ok_or_else(|| UnknownColumn { table: C::TABLE, column: name.clone(), known: C::names() });
        names.iter().map(read).collect()
    }
}

/// Adds the elements of `more` that `all` lacks at its end.
fn unite<T: Clone + PartialEq>(all: &mut Vec<T>, more: &[T]) {
    for one in more {
        if !all.contains(one) {
            all.push(one.clone());
        }
    }
}

impl Wants {
    /// Adds what `other` wants: its new columns come last, those that are there keep their place.
    pub fn unite(&mut self, other: &Self) {
        unite(&mut self.round, &other.round);
        unite(&mut self.mix_keys, &other.mix_keys);
        self.depends_on_mix |= other.depends_on_mix;
        if let Some(more) = &other.pricing {
            let all = self.pricing.get_or_insert_default();
            unite(&mut all.candidates, &more.candidates);
            unite(&mut all.askers, &more.askers);
            unite(&mut all.mix, &more.mix);
        }
        if let Some(more) = &other.judging {
            let all = self.judging.get_or_insert_default();
            unite(&mut all.moves, &more.moves);
            unite(&mut all.nodes, &more.nodes);
            unite(&mut all.pods, &more.pods);
            unite(&mut all.pools, &more.pools);
            unite(&mut all.askers, &more.askers);
            unite(&mut all.mix, &more.mix);
            unite(&mut all.kinds, &more.kinds);
            all.kinds.sort_unstable();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_columns_and_an_unknown_one_is_named() {
        let names = ["rank-micros".to_owned(), "label:team".to_owned()];
        let columns = Setup::columns::<CandidateColumn>(&names).unwrap();
        assert_eq!(columns, [CandidateColumn::RankMicros, CandidateColumn::Label("team".to_owned())]);
        assert_eq!(columns.iter().map(Column::name).collect::<Vec<_>>(), names);
        for unknown in ["colour", "label", "label:", "rank-micros:x", "LABEL:x"] {
            let error = Setup::columns::<CandidateColumn>(&[unknown.to_owned()]).unwrap_err();
            assert!(error.to_string().starts_with(&format!("table candidates has no column {unknown}; it has asker, ")), "{error}");
        }
    }

    #[test]
    fn a_union_keeps_places_and_adds_what_is_new() {
        let pricing = |columns: &[CandidateColumn]| Wants {
            pricing: Some(PricingWants { candidates: columns.to_vec(), ..PricingWants::default() }),
            ..Wants::default()
        };
        let mut wants = pricing(&[CandidateColumn::Zone, CandidateColumn::Arch]);
        wants.unite(&pricing(&[CandidateColumn::Gpus, CandidateColumn::Zone]));
        assert_eq!(wants, pricing(&[CandidateColumn::Zone, CandidateColumn::Arch, CandidateColumn::Gpus]));
        assert_eq!(wants.judging, None);
    }
}
