//! A policy that changes its mind: every three minutes it likes, vetoes and fears something else, and now and then it
//! fails, until it comes to its senses and takes prices for what they are.

use std::sync::Arc;

use whittle_model::policy::{
    CandidateColumn, Judging, JudgingWants, MoveColumn, MoveKind, Pricing, PricingWants, RoundFacts, Wants, Words,
};
use whittle_model::scorer::{MoveVerdict, PolicyRecord, ScorerFailure, Verdict};
use whittle_model::{Duration, Micros, Scorer, Timestamp};

/// The chain it stands in.
pub const CHAIN: &str = "moody";

/// A mood lasts so long.
const MOOD: Duration = Duration::minutes(3);

pub struct Moody {
    seed: u64,
    calm: Timestamp,
    now: Timestamp,
}

impl Moody {
    /// Moods drawn from a seed, none from `calm` on.
    pub fn new(seed: u64, calm: Timestamp) -> Self {
        Self { seed, calm, now: Timestamp(0) }
    }

    fn draw(&self, what: u64) -> u64 {
        let mood = u64::try_from(self.now.0 / MOOD.0).expect("a story begins at zero");
        let word = (self.seed ^ mood.rotate_left(20) ^ what.rotate_left(40)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (word ^ (word >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 33
    }

    fn moody(&self) -> bool {
        self.now < self.calm
    }

    fn failure(&self) -> Option<ScorerFailure> {
        let fails = self.moody() && self.draw(1).is_multiple_of(8);
        let why = "it cannot make up its mind".to_owned();
        fails.then(|| ScorerFailure { policy: CHAIN.to_owned(), chain: CHAIN.to_owned(), why, closed: true })
    }
}

impl Scorer for Moody {
    fn chain(&mut self, chain: &str, now: Timestamp) -> Result<Option<Arc<Wants>>, ScorerFailure> {
        self.now = now;
        if chain != CHAIN {
            return Ok(None);
        }
        let pricing = PricingWants { candidates: vec![CandidateColumn::ListMicros], askers: Vec::new(), mix: Vec::new() };
        let judging = JudgingWants { kinds: MoveKind::ALL.to_vec(), moves: vec![MoveColumn::Kind], ..JudgingWants::default() };
        Ok(Some(Arc::new(Wants { pricing: Some(pricing), judging: Some(judging), ..Wants::default() })))
    }

    fn open(&mut self, _chain: &str, _words: &Words, _facts: &RoundFacts) -> Result<(), ScorerFailure> {
        self.failure().map_or(Ok(()), Err)
    }

    fn price(&mut self, _chain: &str, _words: &Words, tables: &Pricing) -> Result<Vec<Verdict>, ScorerFailure> {
        let verdict = |list: &i64| {
            // By its price an offering is known from one plan to the next.
            let whim = self.draw(u64::try_from(*list).expect("prices are not negative") + 10);
            match whim % 10 {
                _ if !self.moody() => Verdict::Priced { rank: Micros(*list), cost: Micros(*list) },
                0..3 => Verdict::Vetoed(1),
                3..6 => Verdict::Priced { rank: Micros(*list * 3), cost: Micros(*list) },
                _ => Verdict::Priced { rank: Micros(*list), cost: Micros(*list) },
            }
        };
        Ok(tables.candidates.columns[0].iter().map(verdict).collect())
    }

    fn judge(&mut self, _chain: &str, _words: &Words, tables: &Judging) -> Result<Vec<MoveVerdict>, ScorerFailure> {
        let verdict = |row: usize| match self.draw(100 + row as u64) % 3 {
            0 if self.moody() => MoveVerdict::Vetoed(2),
            score => MoveVerdict::Score(i64::try_from(score).expect("a remainder")),
        };
        Ok((0..tables.moves.rows).map(verdict).collect())
    }

    fn reason(&self, number: u32) -> String {
        format!("{CHAIN}: whim {number}")
    }

    fn close(&mut self) -> Vec<PolicyRecord> {
        Vec::new()
    }
}
