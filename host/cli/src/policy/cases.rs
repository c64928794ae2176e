//! Cases: a configuration, tables by hand, and the verdicts that are expected. What must not enter:
//! asking a policy.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use whittle_cluster::yaml::closest;
use whittle_model::policy::{Column, Judging, JudgingWants, Kind, Pricing, PricingWants, RoundFacts, Table, Wants, Words};

/// A row by the names of its columns; what is not said is 0, or empty.
pub type Row = BTreeMap<String, Value>;

/// One case.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Case {
    /// What it shows.
    pub name: String,
    /// The policy's configuration; `{}` when absent.
    pub config: Option<Value>,
    /// Table `round`: its only row.
    pub round: Row,
    /// Table `candidates`.
    pub candidates: Vec<Row>,
    /// Table `askers`.
    pub askers: Vec<Row>,
    /// Table `mix`.
    pub mix: Vec<Row>,
    /// Table `moves`.
    pub moves: Vec<Row>,
    /// Table `move-nodes`.
    pub move_nodes: Vec<Row>,
    /// Table `move-pods`.
    pub move_pods: Vec<Row>,
    /// Table `move-pools`.
    pub move_pools: Vec<Row>,
    /// What is expected of each candidate.
    pub prices: Vec<Value>,
    /// What is expected of each move.
    pub scores: Vec<Value>,
    /// Part of what the policy says against the configuration.
    pub refused: Option<String>,
}

/// What is expected of a row; what is not said may be anything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Expected {
    /// The rank or score.
    pub value: Option<i64>,
    /// Rank and cost, or score, stay as they were.
    pub unchanged: bool,
    /// The cost.
    pub cost: Option<i64>,
    /// Part of the reason of a veto; `None` when it must not be vetoed.
    pub veto: Option<String>,
}

impl Expected {
    /// Reads `unchanged`, a number, `{rank: N, cost: N}`, `{score: N}` or `{veto: TEXT}`.
    ///
    /// # Errors
    /// Says what would be right.
    pub fn read(written: &Value, value_name: &str) -> Result<Self, String> {
        let wrong = || format!("{written} is no verdict: write unchanged, a number, {{{value_name}: N}} or {{veto: PART OF THE REASON}}");
        let integer = |value: &Value| value.as_i64().ok_or_else(wrong);
        match written {
            Value::String(word) if word == "unchanged" => Ok(Self { unchanged: true, ..Self::default() }),
            Value::Number(_) => Ok(Self { value: Some(integer(written)?), ..Self::default() }),
            Value::Object(fields) if !fields.is_empty() => {
                let mut expected = Self::default();
                for (key, value) in fields {
                    match key.as_str() {
                        "cost" if value_name == "rank" => expected.cost = Some(integer(value)?),
                        "veto" => expected.veto = Some(value.as_str().ok_or_else(wrong)?.to_owned()),
                        key if key == value_name => expected.value = Some(integer(value)?),
                        _ => return Err(wrong()),
                    }
                }
                Ok(expected)
            }
            Value::String(_) | Value::Object(_) | Value::Null | Value::Bool(_) | Value::Array(_) => Err(wrong()),
        }
    }
}

/// A case's tables as a chain wants them.
#[derive(Debug, Default)]
pub struct Tables {
    /// All words.
    pub words: Words,
    /// The round.
    pub round: RoundFacts,
    /// For pricing.
    pub pricing: Pricing,
    /// For scoring.
    pub judging: Judging,
}

impl Case {
    /// The tables with the wanted columns. Columns that nobody wants are checked and left out.
    ///
    /// # Errors
    /// Names the row and the column that is wrong.
    pub fn tables(&self, wants: &Wants) -> Result<Tables, String> {
        let words = &mut Words::default();
        let round = table(std::slice::from_ref(&self.round), &wants.round, words)?;
        let facts = round.columns.iter().filter_map(|column| column.first().copied()).collect();
        let (pricing, judging) = (PricingWants::default(), JudgingWants::default());
        let pricing = wants.pricing.as_ref().unwrap_or(&pricing);
        let judging = wants.judging.as_ref().unwrap_or(&judging);
        let pricing = Pricing {
            candidates: table(&self.candidates, &pricing.candidates, words)?,
            askers: table(&self.askers, &pricing.askers, words)?,
            mix: table(&self.mix, &pricing.mix, words)?,
        };
        let judging = Judging {
            moves: table(&self.moves, &judging.moves, words)?,
            nodes: table(&self.move_nodes, &judging.nodes, words)?,
            pods: table(&self.move_pods, &judging.pods, words)?,
            pools: table(&self.move_pools, &judging.pools, words)?,
            askers: table(&self.askers, &judging.askers, words)?,
            mix: table(&self.mix, &judging.mix, words)?,
        };
        Ok(Tables { words: words.clone(), round: RoundFacts { facts }, pricing, judging })
    }
}

fn table<C: Column>(rows: &[Row], columns: &[C], words: &mut Words) -> Result<Table, String> {
    let mut table = Table::of(columns.len());
    for (number, row) in rows.iter().enumerate() {
        let at = |column: &str, why: &str| format!("{}[{number}].{column}: {why}", C::TABLE);
        let mut values = Vec::new();
        for name in row.keys() {
            if C::parse(name).is_none() {
                let known = C::names();
                let why = match closest(name, known.iter().map(String::as_str)) {
                    Some(meant) => format!("there is no such column; did you mean {meant}?"),
                    None => format!("there is no such column; the table has {}", known.join(", ")),
                };
                return Err(at(name, &why));
            }
        }
        for column in columns {
            let name = column.name();
            values.push(row.get(&name).map_or(Ok(0), |value| cell(value, column.kind(), words)).map_err(|why| at(&name, &why))?);
        }
        table.push(values);
    }
    Ok(table)
}

fn cell(value: &Value, kind: Kind, words: &mut Words) -> Result<i64, String> {
    match (kind, value) {
        (_, Value::Null) => Ok(0),
        (Kind::Word, Value::String(word)) => Ok(words.intern(word)),
        (Kind::Bool, Value::Bool(truth)) => Ok(i64::from(*truth)),
        (Kind::Int | Kind::Row, Value::Number(number)) => number.as_i64().ok_or_else(|| format!("{number} is no whole number")),
        (Kind::Word, _) => Err(format!("wants a text, {value} is none")),
        (Kind::Bool, _) => Err(format!("wants true or false, not {value}")),
        (Kind::Int, _) => Err(format!("wants a whole number, not {value}")),
        (Kind::Row, _) => Err(format!("wants the number of a row, counted from 0, not {value}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use whittle_model::policy::CandidateColumn;

    use super::*;

    fn row(value: Value) -> Row {
        value.as_object().unwrap().clone().into_iter().collect()
    }

    #[test]
    fn verdicts_are_read_as_people_write_them() {
        let read = |value: Value| Expected::read(&value, "rank");
        assert_eq!(read(json!("unchanged")).unwrap(), Expected { unchanged: true, ..Expected::default() });
        assert_eq!(read(json!(5)).unwrap(), Expected { value: Some(5), ..Expected::default() });
        assert_eq!(read(json!({"rank": 5, "cost": 6})).unwrap(), Expected { value: Some(5), cost: Some(6), ..Expected::default() });
        assert_eq!(read(json!({"veto": "big"})).unwrap().veto.as_deref(), Some("big"));
        for bad in [json!("no"), json!({}), json!({"score": 5}), json!({"rank": "5"}), json!(0.5), json!([5])] {
            assert!(read(bad.clone()).unwrap_err().contains("is no verdict: write unchanged"), "{bad}");
        }
        assert!(Expected::read(&json!({"cost": 1}), "score").is_err());
    }

    #[test]
    fn tables_are_built_and_what_is_wrong_is_named() {
        let columns = [CandidateColumn::Zone, CandidateColumn::Burstable, CandidateColumn::RankMicros];
        let mut words = Words::default();
        let rows = [row(json!({"zone": "a", "burstable": true, "rank-micros": 7})), row(json!({"family": "m7i"}))];
        let made = table(&rows, &columns, &mut words).unwrap();
        assert_eq!(made.columns, [vec![1, 0], vec![1, 0], vec![7, 0]]);
        for (bad, why) in [
            (json!({"zon": "a"}), "candidates[0].zon: there is no such column; did you mean zone?"),
            (json!({"zone": 1}), "candidates[0].zone: wants a text, 1 is none"),
            (json!({"burstable": "yes"}), "candidates[0].burstable: wants true or false, not \"yes\""),
            (json!({"rank-micros": 0.5}), "candidates[0].rank-micros: 0.5 is no whole number"),
        ] {
            assert_eq!(table(&[row(bad)], &columns, &mut words).unwrap_err(), why);
        }
    }
}
