//! `whittle policy run`: cases against a component. What must not enter: how cases are written.

use std::io::Write;
use std::sync::Arc;

use serde_json::Value;
use whittle_model::policy::{CandidateColumn, MoveColumn, Table, Wants};
use whittle_policy::chain::{Outcome, Veto};
use whittle_policy::{Chain, Limits, Member, Module};

use super::cases::{Case, Expected, Tables};
use super::source::{self, Modules};
use crate::args::RunPolicy;
use crate::failure::{End, Failure};
use crate::out::{BAD, GOOD, styled};

/// Runs all cases and tells which passed.
///
/// # Errors
/// When the component or the cases cannot be read.
pub fn run(args: &RunPolicy, out: &mut dyn Write) -> Result<End, Failure> {
    let module = Modules::new()?.named(&args.policy)?;
    let cases: Vec<Case> = source::read(&args.cases)?;
    let (mut passed, mut failed) = (0, 0);
    for (number, case) in cases.iter().enumerate() {
        let name = if case.name.is_empty() { format!("case {}", number + 1) } else { case.name.clone() };
        let faults = faults(&module, case).unwrap_or_else(|why| vec![why]);
        if faults.is_empty() {
            passed += 1;
            writeln!(out, "{}    {name}", styled(GOOD, "ok"))?;
        } else {
            failed += 1;
            writeln!(out, "{}  {name}", styled(BAD, "FAIL"))?;
        }
        for fault in faults {
            writeln!(out, "        {fault}")?;
        }
    }
    writeln!(out, "{passed} passed, {failed} failed")?;
    Ok(if failed == 0 { End::Done } else { End::Untrue })
}

/// What is not as expected.
fn faults(module: &Module, case: &Case) -> Result<Vec<String>, String> {
    let config = case.config.clone().unwrap_or_else(|| Value::Object(serde_json::Map::new()));
    let policy = match (module.configure(&module.manifest().name, &config, Limits::default()), &case.refused) {
        (Ok(policy), None) => policy,
        (Ok(_), Some(part)) => return Ok(vec![format!("the config is taken; expected to be refused with {part:?}")]),
        (Err(error), None) => return Err(error.to_string()),
        (Err(error), Some(part)) if error.to_string().contains(part) => return Ok(Vec::new()),
        (Err(error), Some(part)) => return Ok(vec![format!("{error}; expected to be refused with {part:?}")]),
    };
    if case.prices.is_empty() && case.scores.is_empty() {
        return Err("nothing is expected: write prices, scores or refused".to_owned());
    }
    let chain = Chain::new(vec![Member::ready(Arc::new(policy))]);
    let tables = case.tables(chain.wants())?;
    let mut round = chain.open(&tables.words, &tables.round).map_err(|error| error.to_string())?;
    let mut faults = Vec::new();
    if !case.prices.is_empty() {
        let answer = match round.price(&tables.words, &tables.pricing).map_err(|error| error.to_string())? {
            Outcome::Answered(priced) => Answer { values: priced.ranks, costs: priced.costs, vetoes: priced.vetoes },
            Outcome::Held { why, .. } => return Err(why),
        };
        let before = Before::of_candidates(chain.wants(), &tables);
        compare("candidate", "rank", &case.prices, &before, &answer, &mut faults)?;
    }
    if !case.scores.is_empty() {
        let answer = match round.score(&tables.words, &tables.judging).map_err(|error| error.to_string())? {
            Outcome::Answered(scored) => Answer { values: scored.scores, costs: Vec::new(), vetoes: scored.vetoes },
            Outcome::Held { why, .. } => return Err(why),
        };
        let before = Before::of_moves(chain.wants(), &tables);
        compare("move", "score", &case.scores, &before, &answer, &mut faults)?;
    }
    Ok(faults)
}

/// What a policy answered about a table.
struct Answer {
    values: Vec<i64>,
    costs: Vec<i64>,
    vetoes: Vec<Veto>,
}

/// What stood before it.
struct Before {
    rows: usize,
    values: Vec<i64>,
    costs: Vec<i64>,
}

fn column<C: PartialEq>(table: &Table, columns: &[C], column: &C) -> Vec<i64> {
    let place = columns.iter().position(|c| c == column);
    place.and_then(|place| table.columns.get(place)).cloned().unwrap_or_default()
}

impl Before {
    fn of_candidates(wants: &Wants, tables: &Tables) -> Self {
        let (columns, table) = (wants.pricing.as_ref().map_or(&[][..], |wants| &wants.candidates), &tables.pricing.candidates);
        let values = column(table, columns, &CandidateColumn::RankMicros);
        Self { rows: table.rows, values, costs: column(table, columns, &CandidateColumn::CostMicros) }
    }

    fn of_moves(wants: &Wants, tables: &Tables) -> Self {
        let (columns, table) = (wants.judging.as_ref().map_or(&[][..], |wants| &wants.moves), &tables.judging.moves);
        Self { rows: table.rows, values: column(table, columns, &MoveColumn::Score), costs: Vec::new() }
    }
}

fn compare(row: &str, value: &str, wanted: &[Value], before: &Before, answer: &Answer, faults: &mut Vec<String>) -> Result<(), String> {
    if wanted.len() != before.rows {
        return Err(format!("{} verdicts are expected of {} {row}s: write one for each", wanted.len(), before.rows));
    }
    for (at, written) in wanted.iter().enumerate() {
        let expected = Expected::read(written, value)?;
        let veto = answer.vetoes.iter().find(|veto| veto.row == at).map(|veto| &*veto.reason);
        let (now, cost) = (answer.values.get(at).copied(), answer.costs.get(at).copied());
        let same = now == before.values.get(at).copied() && cost == before.costs.get(at).copied();
        let right = match (&expected.veto, veto) {
            (Some(part), Some(reason)) => reason.contains(part),
            (None, None) => {
                (!expected.unchanged || same)
                    && expected.value.is_none_or(|value| now == Some(value))
                    && expected.cost.is_none_or(|value| cost == Some(value))
            }
            (Some(_), None) | (None, Some(_)) => false,
        };
        if !right {
            let number = |number: Option<i64>| number.map_or_else(|| "none".to_owned(), |number| number.to_string());
            let costs = expected.cost.is_some() || (expected.unchanged && now == before.values.get(at).copied());
            let found = match veto {
                Some(reason) => format!("vetoed: {reason}"),
                None if costs => format!("{value} {}, cost {}", number(now), number(cost)),
                None => format!("{value} {}", number(now)),
            };
            faults.push(format!("{row} {at}: {found}; expected {}", written.to_string().trim_matches('"')));
        }
    }
    Ok(())
}
