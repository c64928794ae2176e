//! Policy `formula`: rank, cost and veto written in CEL, without a compiler. What must not enter: what a
//! formula says; that is the configuration.

mod check;
mod columns;
mod config;
mod run;
mod typed;

pub use config::{Config, Row};

use columns::{Columns, Sheet};
use run::Outcome;
use typed::{Bool, Number};
use whittle_sdk::prelude::*;

/// The highest rank and cost that make sense: a million dollars an hour.
const MOST: i64 = 1_000_000_000_000;

/// A row of the configuration, checked. A fault in a formula vetoes what it was asked about: its price
/// is not known.
#[derive(Debug)]
struct Checked {
    when: Option<(Bool, Reason)>,
    veto: Option<(Bool, Reason, Reason)>,
    rank: Option<(Number, Reason)>,
    cost: Option<(Number, Reason)>,
}

/// The policy.
#[derive(Debug)]
pub struct Formula {
    rows: Vec<Checked>,
    columns: Columns,
}

impl Policy for Formula {
    type Config = Config;
    const ABOUT: About = About { name: "formula", version: env!("CARGO_PKG_VERSION"), documentation: include_str!("../README.md") };

    fn configure(config: Config, setup: &mut Setup) -> Result<Self, String> {
        let mut columns = Columns::default();
        let mut rows = Vec::new();
        setup.candidates([]);
        for (number, row) in config.rows.iter().enumerate() {
            rows.push(checked(number, row, &mut columns, setup)?);
        }
        if rows.iter().any(|row| row.cost.is_some()) {
            setup.answers_cost();
        }
        columns.ask(setup);
        Ok(Self { rows, columns })
    }

    fn open(&mut self, round: Round<'_>) {
        self.columns.open(round);
    }

    fn price_all(&mut self, tables: &Tables, prices: &mut Prices) {
        let mut sheet = self.columns.sheet(tables);
        for (at, candidate) in tables.candidates().enumerate() {
            prices.set(candidate, price(&self.rows, &mut sheet, at));
        }
    }
}

/// The price of one candidate: all rows whose `when` holds, in order, each seeing what those before made
/// of rank and cost.
fn price(rows: &[Checked], sheet: &mut Sheet<'_>, at: usize) -> Price {
    let (mut rank, mut cost) = (None, None);
    for row in rows {
        match row.apply(sheet, at) {
            Err(reason) => return Price::veto(reason),
            Ok((new_rank, new_cost)) => {
                rank = new_rank.or(rank);
                cost = new_cost.or(cost);
                sheet.set(at, new_rank, new_cost);
            }
        }
    }
    let price = rank.map_or_else(Price::unchanged, Price::rank);
    cost.map_or(price, |cost| price.cost(cost))
}

impl Checked {
    fn apply(&self, sheet: &Sheet<'_>, at: usize) -> Result<(Option<i64>, Option<i64>), Reason> {
        if let Some((when, fault)) = &self.when
            && !when.run(sheet, at).or_reason(*fault)?
        {
            return Ok((None, None));
        }
        if let Some((veto, reason, fault)) = &self.veto
            && veto.run(sheet, at).or_reason(*fault)?
        {
            return Err(*reason);
        }
        let money = |formula: &Option<(Number, Reason)>| match formula {
            None => Ok(None),
            Some((formula, fault)) => formula.micros(sheet, at).or_reason(*fault).map(|value| Some(value.clamp(0, MOST))),
        };
        Ok((money(&self.rank)?, money(&self.cost)?))
    }
}

fn checked(number: usize, row: &Row, columns: &mut Columns, setup: &mut Setup) -> Result<Checked, String> {
    if row.rank.is_none() && row.cost.is_none() && row.veto.is_none() {
        return Err(format!("rows[{number}] says nothing: give it rank, cost or veto"));
    }
    let mut fault =
        |field: &str| setup.reason(format!("rows[{number}].{field} cannot be computed: a division by zero or a number too large"));
    let place = |field: &str| format!("rows[{number}].{field}");
    let mut number_of = |text: &Option<String>, field: &str| -> Result<Option<(Number, Reason)>, String> {
        let Some(text) = text else { return Ok(None) };
        let formula = check::number(text, columns).map_err(|error| format!("{}: {error}", place(field)))?;
        Ok(Some((formula, fault(field))))
    };
    let (rank, cost) = (number_of(&row.rank, "rank")?, number_of(&row.cost, "cost")?);
    let mut bool_of = |text: &Option<String>, field: &str| -> Result<Option<(Bool, Reason)>, String> {
        let Some(text) = text else { return Ok(None) };
        let formula = check::boolean(text, columns).map_err(|error| format!("{}: {error}", place(field)))?;
        Ok(Some((formula, fault(field))))
    };
    let (when, veto) = (bool_of(&row.when, "when")?, bool_of(&row.veto, "veto")?);
    if row.reason.is_some() && veto.is_none() {
        return Err(format!("rows[{number}].reason: there is no veto that it could explain"));
    }
    let text = row.reason.clone().or_else(|| row.veto.clone()).unwrap_or_default();
    let in_reason = columns::named_in(&text, columns).map_err(|error| format!("{}: {error}", place("reason")))?;
    let veto = veto.map(|(formula, fault)| (formula, setup.reason(in_reason), fault));
    Ok(Checked { when, veto, rank, cost })
}

whittle_sdk::export!(Formula);
