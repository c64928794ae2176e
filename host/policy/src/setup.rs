//! From the setup that a guest returns to one that is known to make sense. What must not enter: calls.

use whittle_model::policy::{AskerColumn, CandidateColumn, MoveColumn, MoveNodeColumn, MovePodColumn, MovePoolColumn, RoundColumn};
use whittle_model::policy::{
    Column, Hook, JudgingWants, MixRowColumn, MoveKind, PriceColumn, PricingWants, ScoreColumn, Setup, UnknownColumn, Wants,
};

use crate::bindings::scoring;
use crate::reason;

/// The most columns, of all tables together.
const MOST_COLUMNS: usize = 256;

/// The most reasons, and bytes in one.
const MOST_REASONS: (usize, usize) = (4096, 512);

/// The most mix keys: each multiplies the rows of the mix.
const MOST_MIX_KEYS: usize = 8;

/// A policy asks for what does not exist, or for too much.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// A column that this host does not have.
    #[error("it asks for what this version does not have: {0}")]
    Column(#[from] UnknownColumn),
    /// A table that does not belong to the hook, or twice.
    #[error("{hook} asks for table {table}, which it {why}")]
    Table {
        /// The hook.
        hook: Hook,
        /// The table.
        table: String,
        /// Why not.
        why: &'static str,
    },
    /// The hook asks for no rows to answer for.
    #[error("{hook} does not ask for table {table}, whose rows it is to answer for")]
    NoRows {
        /// The hook.
        hook: Hook,
        /// The table.
        table: &'static str,
    },
    /// It answers nothing, or twice the same, or not the rank or score.
    #[error("{hook} answers {found}; {wanted} must be among its answers, each once")]
    Answers {
        /// The hook.
        hook: Hook,
        /// What it says.
        found: String,
        /// What there must be.
        wanted: &'static str,
    },
    /// A kind of move that there is not.
    #[error("score-moves asks about moves of kind {0}; kinds are empty, underutilized, drifted, expired, rebalance")]
    Kind(String),
    /// A mix key that cannot be counted by.
    #[error("the mix cannot be counted by {0}; keys are node-pool, namespace, label:KEY")]
    MixKey(String),
    /// More than a host is willing to serve.
    #[error("it asks for {found} {what}, at most {most} are served")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many it asks for.
        found: usize,
        /// How many it may.
        most: usize,
    },
    /// A reason names a column that it did not ask for.
    #[error("reason {reason:?} names column {column}, which is not asked for")]
    Reason {
        /// The reason's text.
        reason: String,
        /// The column.
        column: String,
    },
}

/// A checked setup, and in which order the guest wants its tables.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Checked {
    pub(crate) setup: Setup,
    /// For `price-candidates`: places among candidates, askers, mix.
    pub(crate) pricing: Vec<usize>,
    /// For `score-moves`: places among moves, move-nodes, move-pods, move-pools, askers, mix.
    pub(crate) judging: Vec<usize>,
}

const PRICING: [&str; 3] = [CandidateColumn::TABLE, AskerColumn::TABLE, MixRowColumn::TABLE];
const JUDGING: [&str; 6] =
    [MoveColumn::TABLE, MoveNodeColumn::TABLE, MovePodColumn::TABLE, MovePoolColumn::TABLE, AskerColumn::TABLE, MixRowColumn::TABLE];

pub(crate) fn check(said: &scoring::Setup) -> Result<Checked, SetupError> {
    sizes(said)?;
    let mut checked = Checked::default();
    let setup = &mut checked.setup;
    setup.wants = Wants {
        round: Setup::columns::<RoundColumn>(&said.round)?,
        mix_keys: said.mix_keys.iter().map(mix_key).collect::<Result<_, _>>()?,
        depends_on_mix: said.depends_on_mix,
        ..Wants::default()
    };
    if let Some(hook) = &said.price_candidates {
        checked.pricing = places(Hook::PriceCandidates, hook, &PRICING)?;
        setup.wants.pricing = Some(PricingWants {
            candidates: wanted(hook, CandidateColumn::TABLE)?,
            askers: wanted(hook, AskerColumn::TABLE)?,
            mix: wanted(hook, MixRowColumn::TABLE)?,
        });
        setup.prices = answers(Hook::PriceCandidates, hook, &PriceColumn::RankMicros, "rank-micros")?;
    }
    if let Some(hook) = &said.score_moves {
        checked.judging = places(Hook::ScoreMoves, hook, &JUDGING)?;
        setup.kinds = kinds(&hook.kinds)?;
        setup.wants.judging = Some(JudgingWants {
            kinds: setup.kinds.clone(),
            moves: wanted(hook, MoveColumn::TABLE)?,
            nodes: wanted(hook, MoveNodeColumn::TABLE)?,
            pods: wanted(hook, MovePodColumn::TABLE)?,
            pools: wanted(hook, MovePoolColumn::TABLE)?,
            askers: wanted(hook, AskerColumn::TABLE)?,
            mix: wanted(hook, MixRowColumn::TABLE)?,
        });
        setup.scores = answers(Hook::ScoreMoves, hook, &ScoreColumn::Score, "score")?;
    }
    setup.reasons.clone_from(&said.reasons);
    said.reasons.iter().try_for_each(|text| reason::check(text, setup))?;
    Ok(checked)
}

fn sizes(said: &scoring::Setup) -> Result<(), SetupError> {
    let of_hook =
        |hook: &Option<scoring::Hook>| hook.iter().flat_map(|hook| &hook.tables).map(|table| table.columns.len().max(1)).sum::<usize>();
    let columns = said.round.len() + of_hook(&said.price_candidates) + of_hook(&said.score_moves);
    let longest = said.reasons.iter().map(String::len).max().unwrap_or(0);
    for (what, found, most) in [
        ("columns", columns, MOST_COLUMNS),
        ("reasons", said.reasons.len(), MOST_REASONS.0),
        ("bytes in one reason", longest, MOST_REASONS.1),
        ("mix keys", said.mix_keys.len(), MOST_MIX_KEYS),
    ] {
        if found > most {
            return Err(SetupError::TooMany { what, found, most });
        }
    }
    Ok(())
}

/// Where the guest's tables stand among those of the hook.
fn places(hook: Hook, said: &scoring::Hook, tables: &[&'static str]) -> Result<Vec<usize>, SetupError> {
    let mut places = Vec::new();
    for wanted in &said.tables {
        let refused = |why| SetupError::Table { hook, table: wanted.table.clone(), why };
        let place = tables.iter().position(|table| *table == wanted.table).ok_or_else(|| refused("is not given"))?;
        if places.contains(&place) {
            return Err(refused("asks for twice"));
        }
        places.push(place);
    }
    if places.contains(&0) { Ok(places) } else { Err(SetupError::NoRows { hook, table: tables[0] }) }
}

fn wanted<C: Column>(hook: &scoring::Hook, table: &str) -> Result<Vec<C>, UnknownColumn> {
    let names = hook.tables.iter().find(|wanted| wanted.table == table).map_or(&[][..], |wanted| &wanted.columns);
    Setup::columns(names)
}

fn answers<C: Column>(hook: Hook, said: &scoring::Hook, must: &C, wanted: &'static str) -> Result<Vec<C>, SetupError> {
    let columns: Vec<C> = Setup::columns(&said.answers)?;
    let twice = columns.iter().enumerate().any(|(at, column)| columns[..at].contains(column));
    if twice || !columns.contains(must) {
        let found = if said.answers.is_empty() { "nothing".to_owned() } else { said.answers.join(", ") };
        return Err(SetupError::Answers { hook, found, wanted });
    }
    Ok(columns)
}

fn kinds(said: &[String]) -> Result<Vec<MoveKind>, SetupError> {
    let kind = |name: &String| MoveKind::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| SetupError::Kind(name.clone()));
    let mut kinds = if said.is_empty() { MoveKind::ALL.to_vec() } else { said.iter().map(kind).collect::<Result<Vec<_>, _>>()? };
    kinds.sort_unstable();
    kinds.dedup();
    Ok(kinds)
}

fn mix_key(key: &String) -> Result<String, SetupError> {
    let label = key.strip_prefix("label:").is_some_and(|label| !label.is_empty());
    if label || key == "node-pool" || key == "namespace" { Ok(key.clone()) } else { Err(SetupError::MixKey(key.clone())) }
}
