//! One round of a chain: every judge opened once, then asked in order. What must not enter: what to do
//! when a judge fails; the round ends and says whose failure it was.

use std::sync::Arc;

use whittle_model::policy::{
    CandidateColumn, Column, Hook, Judging, JudgingWants, MoveColumn, PriceColumn, Pricing, PricingWants, RoundFacts, ScoreColumn, Table,
    Words,
};

use super::reasons::Reasons;
use super::{Chain, ChainError, Member, Mode, Outcome, Priced, Scored, Standing, Step, Veto, subset};
use crate::answers::{Asked, Vetoed, hash};
use crate::{Call, Failure, Judge, Sitting, View};

/// A chain in one round.
pub struct Round {
    chain: Chain,
    seats: Vec<Seat>,
}

/// A judge in its round; those observed may have failed already.
struct Seat {
    member: Member,
    judge: Arc<dyn Judge>,
    sitting: Result<Box<dyn Sitting>, Failure>,
    name: Arc<str>,
    /// Why candidates, and why moves are vetoed: their texts quote different columns.
    reasons: [Reasons; 2],
}

impl Chain {
    /// Begins a round: every judge that is ready is opened. `facts` has a value for each column of
    /// `wants().round`.
    ///
    /// # Errors
    /// When a judge whose answers count fails.
    pub fn open(&self, words: &Words, facts: &RoundFacts) -> Result<Round, ChainError> {
        let mut seats = Vec::new();
        for member in self.members() {
            let Standing::Ready(judge) = &member.standing else { continue };
            let of = |column| self.wants().round.iter().position(|c| c == column).and_then(|place| facts.facts.get(place)).copied();
            let own: Vec<i64> = judge.setup().wants.round.iter().map(|column| of(column).unwrap_or(0)).collect();
            let sitting = judge.open(words, &own);
            if let (Err(failure), Mode::Enforce) = (&sitting, member.mode) {
                return Err(ChainError { policy: member.name.clone(), failure: failure.clone() });
            }
            let name = Arc::from(member.name.as_str());
            seats.push(Seat { member: member.clone(), judge: Arc::clone(judge), sitting, name, reasons: <[Reasons; 2]>::default() });
        }
        Ok(Round { chain: self.clone(), seats })
    }
}

/// What a judge is shown of a table: its own columns, some of them replaced by what stands now.
fn view<'t, C: Column>(table: &'t Table, union: &[C], own: &[C], now: &[(C, &'t [i64])]) -> View<'t> {
    let column = |column: &C| {
        let replaced = now.iter().find(|(c, _)| c == column).map(|(_, values)| *values);
        let place = union.iter().position(|c| c == column);
        replaced.or_else(|| place.and_then(|place| table.columns.get(place)).map(Vec::as_slice)).unwrap_or_default()
    };
    View { rows: table.rows, columns: own.iter().map(column).collect() }
}

fn column<C: Column>(table: &Table, union: &[C], column: &C) -> Vec<i64> {
    let place = union.iter().position(|c| c == column);
    place.and_then(|place| table.columns.get(place)).cloned().unwrap_or_else(|| vec![0; table.rows])
}

fn changed(before: &[i64], after: &[i64]) -> usize {
    before.iter().zip(after).filter(|(before, after)| before != after).count()
}

/// An answer that was checked: what stands after it.
struct Read {
    values: Vec<i64>,
    costs: Vec<i64>,
    vetoes: Vec<Vetoed>,
    hash: u64,
}

impl Seat {
    fn fuel(&self) -> u64 {
        self.sitting.as_ref().map_or(0, |sitting| sitting.fuel())
    }

    fn price(&mut self, words: &Words, views: &[View<'_>; 3], mut values: Vec<i64>, mut costs: Vec<i64>) -> Result<Read, Failure> {
        let setup = self.judge.setup();
        let asked = Asked { call: Call::PriceCandidates, columns: &setup.prices, rows: views[0].rows, reasons: setup.reasons.len() };
        let answer = self.sitting.as_mut().map_err(|failure| failure.clone())?.price(words, views)?;
        asked.size(&answer)?;
        let ranks = asked.values(&answer, &PriceColumn::RankMicros).unwrap_or_default();
        let vetoes = asked.verdicts(&PriceColumn::RankMicros, ranks, &mut values, 1)?;
        if let Some(answered) = asked.values(&answer, &PriceColumn::CostMicros) {
            asked.costs(&PriceColumn::CostMicros, answered, &vetoes, &mut costs)?;
        }
        Ok(Read { values, costs, vetoes, hash: hash(&answer) })
    }

    fn score(&mut self, words: &Words, views: &[View<'_>; 6], mut values: Vec<i64>) -> Result<Read, Failure> {
        let setup = self.judge.setup();
        let asked = Asked { call: Call::ScoreMoves, columns: &setup.scores, rows: views[0].rows, reasons: setup.reasons.len() };
        let answer = self.sitting.as_mut().map_err(|failure| failure.clone())?.score(words, views)?;
        asked.size(&answer)?;
        let scores = asked.values(&answer, &ScoreColumn::Score).unwrap_or_default();
        let vetoes = asked.verdicts(&ScoreColumn::Score, scores, &mut values, 0)?;
        Ok(Read { values, costs: Vec::new(), vetoes, hash: hash(&answer) })
    }

    /// The record of a call; a failure of a judge whose answers count ends the round instead.
    fn step(&self, fuel: u64, before: (&[i64], &[i64]), read: &Result<Read, Failure>) -> Result<Step, ChainError> {
        let mut step = Step {
            policy: self.member.name.clone(),
            mode: self.member.mode,
            fuel: self.fuel().saturating_sub(fuel),
            hash: 0,
            values: Vec::new(),
            costs: Vec::new(),
            ranked: 0,
            priced: 0,
            vetoed: 0,
            failure: None,
        };
        match read {
            Ok(read) => {
                let rows = |now: &[i64], before: &[i64]| if now == before { Vec::new() } else { now.to_vec() };
                step.hash = read.hash;
                step.values = rows(&read.values, before.0);
                step.costs = rows(&read.costs, before.1);
                step.ranked = changed(before.0, &read.values);
                step.priced = changed(before.1, &read.costs);
                step.vetoed = read.vetoes.len();
            }
            Err(failure) if self.member.mode == Mode::Observe => step.failure = Some(failure.clone()),
            Err(failure) => return Err(ChainError { policy: self.member.name.clone(), failure: failure.clone() }),
        }
        Ok(step)
    }

    fn vetoes<C: Column>(&mut self, hook: Hook, found: &[Vetoed], columns: &[C], view: &View<'_>, words: &Words) -> Vec<Veto> {
        let texts = &self.judge.setup().reasons;
        let reasons = &mut self.reasons[usize::from(hook == Hook::ScoreMoves)];
        let mut reason = |veto: &Vetoed| reasons.text(veto, texts, columns, view, words);
        found.iter().map(|veto| Veto { row: veto.row, policy: Arc::clone(&self.name), reason: reason(veto) }).collect()
    }
}

impl Round {
    fn held<T>(&self, hook: Hook) -> Option<Outcome<T>> {
        let (policy, why) = self.chain.held(hook)?;
        Some(Outcome::Held { policy: policy.to_owned(), why: why.to_owned() })
    }

    /// Fuel of all judges so far.
    #[must_use]
    pub fn fuel(&self) -> u64 {
        self.seats.iter().map(Seat::fuel).sum()
    }

    /// Prices candidates: every judge that prices, in order. Columns are those of the chain's wants;
    /// `words` may have grown since the round began.
    ///
    /// # Errors
    /// When a judge whose answers count fails. The round is over then.
    pub fn price(&mut self, words: &Words, tables: &Pricing) -> Result<Outcome<Priced>, ChainError> {
        if let Some(held) = self.held(Hook::PriceCandidates) {
            return Ok(held);
        }
        let none = PricingWants::default();
        let union = self.chain.wants().pricing.as_ref().unwrap_or(&none);
        let mut ranks = column(&tables.candidates, &union.candidates, &CandidateColumn::RankMicros);
        let mut costs = column(&tables.candidates, &union.candidates, &CandidateColumn::CostMicros);
        let (mut vetoes, mut steps) = (Vec::new(), Vec::new());
        for seat in &mut self.seats {
            let judge = Arc::clone(&seat.judge);
            let Some(own) = &judge.setup().wants.pricing else { continue };
            if tables.candidates.rows == 0 {
                continue;
            }
            let now = [(CandidateColumn::RankMicros, ranks.as_slice()), (CandidateColumn::CostMicros, costs.as_slice())];
            let views = [
                view(&tables.candidates, &union.candidates, &own.candidates, &now),
                view(&tables.askers, &union.askers, &own.askers, &[]),
                view(&tables.mix, &union.mix, &own.mix, &[]),
            ];
            let fuel = seat.fuel();
            let read = seat.price(words, &views, ranks.clone(), costs.clone());
            steps.push(seat.step(fuel, (&ranks, &costs), &read)?);
            if let (Ok(read), Mode::Enforce) = (read, seat.member.mode) {
                vetoes.extend(seat.vetoes(Hook::PriceCandidates, &read.vetoes, &own.candidates, &views[0], words));
                (ranks, costs) = (read.values, read.costs);
            }
        }
        vetoes.sort_by_key(|veto: &Veto| veto.row);
        Ok(Outcome::Answered(Priced { ranks, costs, vetoes, steps }))
    }

    /// Scores moves: every judge that scores, in order, each asked only about the kinds it wants.
    ///
    /// # Errors
    /// When a judge whose answers count fails. The round is over then.
    pub fn score(&mut self, words: &Words, tables: &Judging) -> Result<Outcome<Scored>, ChainError> {
        if let Some(held) = self.held(Hook::ScoreMoves) {
            return Ok(held);
        }
        let none = JudgingWants::default();
        let union = self.chain.wants().judging.as_ref().unwrap_or(&none);
        let mut scored = Scored { scores: column(&tables.moves, &union.moves, &MoveColumn::Score), ..Scored::default() };
        let kinds = column(&tables.moves, &union.moves, &MoveColumn::Kind);
        for seat in &mut self.seats {
            let judge = Arc::clone(&seat.judge);
            let Some(own) = &judge.setup().wants.judging else { continue };
            let wanted = |kind: i64| seat.judge.setup().kinds.iter().any(|k| k.name() == words.text(kind));
            let rows: Vec<usize> = kinds.iter().enumerate().filter(|(_, kind)| wanted(**kind)).map(|(row, _)| row).collect();
            if rows.is_empty() {
                continue;
            }
            let part;
            let shown = if rows.len() == tables.moves.rows {
                tables
            } else {
                part = subset::subset(tables, union, &rows);
                &part
            };
            let before: Vec<i64> = rows.iter().map(|row| scored.scores[*row]).collect();
            let views = judging_views(shown, union, own, &before);
            let fuel = seat.fuel();
            let read = seat.score(words, &views, before.clone());
            scored.steps.push(seat.step(fuel, (&before, &[]), &read)?);
            if let (Ok(read), Mode::Enforce) = (read, seat.member.mode) {
                let vetoes = seat.vetoes(Hook::ScoreMoves, &read.vetoes, &own.moves, &views[0], words);
                scored.vetoes.extend(vetoes.into_iter().map(|veto| Veto { row: rows[veto.row], ..veto }));
                rows.iter().zip(read.values).for_each(|(row, value)| scored.scores[*row] = value);
            }
        }
        scored.vetoes.sort_by_key(|veto| veto.row);
        Ok(Outcome::Answered(scored))
    }
}

fn judging_views<'t>(shown: &'t Judging, union: &JudgingWants, own: &JudgingWants, scores: &'t [i64]) -> [View<'t>; 6] {
    [
        view(&shown.moves, &union.moves, &own.moves, &[(MoveColumn::Score, scores)]),
        view(&shown.nodes, &union.nodes, &own.nodes, &[]),
        view(&shown.pods, &union.pods, &own.pods, &[]),
        view(&shown.pools, &union.pools, &own.pools, &[]),
        view(&shown.askers, &union.askers, &own.askers, &[]),
        view(&shown.mix, &union.mix, &own.mix, &[]),
    ]
}
