//! B10, the contract: what a row, a call, an instance, a compilation and a trap cost, against a native
//! loop and against lists of records.

use std::time::Duration;

use serde_json::json;
use whittle_guest_kernel::Kernel;
use whittle_model::policy::Words;
use whittle_policy::{Configured, Judge, Limits, Loader, View};
use whittle_sdk::Loaded;

use super::policies::{SHIPPED, Shipped};
use super::{BenchError, Line};
use crate::filter::Filter;
use crate::guests::{self, Records, Rows};
use crate::measure::{Micros, Millis, Times, alternate, in_turn, repeated, timed};

/// Rows of a call: of one asker, of a handful, and of the diverse mix whole.
const ROWS: [usize; 3] = [400, 4_000, 60_000];

/// Rows that a run passes over in all, so that it is long against the clock's grain.
const PASSED: usize = 240_000;

/// Quick things are done this often in a row.
const REPEATED: u32 = 200;

/// B10/row, B10/call, B10/instance, B10/compile and the first part of B10/trap.
///
/// # Errors
/// When a guest cannot be built or fails.
pub fn b10(filter: &Filter, line: Line<'_>) -> Result<(), BenchError> {
    for rows in ROWS {
        let name = format!("B10/row/{rows}");
        if filter.wants(&name) {
            line(row_line(&name, rows)?);
        }
    }
    if filter.wants("B10/call") {
        line(call_line()?);
    }
    let kernel = Shipped { name: "kernel", package: "whittle-guest-kernel", config: r#"{"columns": true}"# };
    for policy in [kernel].iter().chain(&SHIPPED) {
        let name = format!("B10/instance/{}", policy.name);
        if filter.wants(&name) {
            line(instance_line(&name, &policy.configured(&Loader::new(None)?)?)?);
        }
    }
    for policy in [kernel].iter().chain(&SHIPPED) {
        let name = format!("B10/compile/{}", policy.name);
        if filter.wants(&name) {
            line(compile_line(&name, &policy.component()?)?);
        }
    }
    if filter.wants("B10/trap") {
        line(trap_line()?);
    }
    Ok(())
}

fn kernel(config: &serde_json::Value) -> Result<Configured, BenchError> {
    let module = Loader::new(None)?.load(&guests::component("whittle-guest-kernel")?)?;
    Ok(module.configure("kernel", config, Limits::default())?)
}

fn row_line(name: &str, rows: usize) -> Result<String, BenchError> {
    let columns = guests::columns(rows);
    let views = [View { rows, columns: columns.iter().map(Vec::as_slice).collect() }, View::default(), View::default()];
    let words = Words::default();
    let mut by_columns = kernel(&json!({"columns": true}))?.open(&words, &[])?;
    let mut by_rows = kernel(&json!({}))?.open(&words, &[])?;
    let mut records = Records::new().map_err(BenchError::records)?;
    let mut numbers = Records::new().map_err(BenchError::records)?;
    let of_records = Rows::new(&columns);
    let candidates = of_records.candidates();
    let expected = guests::native(&columns);
    let alike = [by_columns.price(&words, &views)?, by_rows.price(&words, &views)?].iter().all(|answer| *answer == expected)
        && records.price(&candidates).map_err(BenchError::records)? == expected;
    let mut policy = native_policy()?;
    let times = u32::try_from(PASSED / rows).unwrap_or(1);
    let all = in_turn([
        &mut || repeated(times, || by_columns.price(&words, &views)),
        &mut || repeated(times, || by_rows.price(&words, &views)),
        &mut || repeated(times, || guests::native(&columns)),
        &mut || repeated(times, || ask(&mut policy, &columns)),
        &mut || repeated(times, || records.price(&candidates)),
        &mut || repeated(times, || numbers.price_numbers(&of_records)),
    ]);
    Ok(told(name, rows, &all) + if alike { "" } else { " DISAGREES: the kernels do not answer alike" })
}

/// The policy compiled natively, as a round begins.
fn native_policy() -> Result<Loaded<Kernel>, BenchError> {
    let mut loaded = Loaded::<Kernel>::configure(r#"{"columns": true}"#).map_err(whittle_policy::Failure::Refused)?;
    loaded.open(vec![String::new()], Vec::new());
    Ok(loaded)
}

/// Asked as the host asks a component: its tables are copies.
fn ask(policy: &mut Loaded<Kernel>, columns: &[Vec<i64>; 9]) -> Vec<i64> {
    policy.price(Vec::new(), vec![(columns[0].len(), columns.concat())])
}

fn told(name: &str, rows: usize, all: &[Times; 6]) -> String {
    let rows = u32::try_from(rows).map_or(1.0, f64::from);
    let of_row = |times: &Times| times.seconds() * 1e9 / rows;
    let [columns, accessors, native, policy, records, numbers] = all.each_ref().map(of_row);
    format!(
        "{name}: {columns:.1} ns a row by columns, {accessors:.1} by row accessors; native loop {native:.1} (columns {:.1} x), native policy \
         with copies {policy:.1} ({:.1} x); list<record> {records:.0} ({:.1} x columns), without its texts {numbers:.0} ({:.1} x) \
         (by columns {})",
        columns / native,
        columns / policy,
        records / columns,
        numbers / columns,
        all[0].spread_in(Micros),
    )
}

fn call_line() -> Result<String, BenchError> {
    let columns = guests::columns(1);
    let views = [View { rows: 1, columns: columns.iter().map(Vec::as_slice).collect() }, View::default(), View::default()];
    let words = Words::default();
    let judge = kernel(&json!({"columns": true}))?;
    let mut sitting = judge.open(&words, &[])?;
    let mut policy = native_policy()?;
    let many = 10 * REPEATED;
    let (call, native) = alternate(|| repeated(many, || sitting.price(&words, &views)), || repeated(many, || ask(&mut policy, &columns)));
    Ok(format!(
        "B10/call: {} a call with one row ({}); native policy {}",
        Micros(call.median()),
        call.spread_in(Micros),
        Micros(native.median())
    ))
}

fn instance_line(name: &str, judge: &Configured) -> Result<String, BenchError> {
    let (words, facts) = (Words::default(), vec![0; judge.setup().wants.round.len()]);
    judge.open(&words, &facts)?;
    let (open, _) = alternate(|| repeated(REPEATED, || judge.open(&words, &facts)), || Duration::ZERO);
    Ok(format!("{name}: {} to start, configure and open ({})", Micros(open.median()), open.spread_in(Micros)))
}

fn compile_line(name: &str, component: &[u8]) -> Result<String, BenchError> {
    let folder = std::env::temp_dir().join(format!("whittle-bench-{}", std::process::id()));
    let load = |cache: Option<&std::path::Path>| {
        let loader = Loader::new(cache)?;
        let (time, module) = timed(|| loader.load(component));
        module.map(|_| time).map_err(BenchError::from)
    };
    let mut failure = None;
    let mut time = |cache| {
        load(cache).unwrap_or_else(|error| {
            failure = Some(error);
            Duration::ZERO
        })
    };
    let time = std::cell::RefCell::new(&mut time);
    let (cold, cached) = alternate(|| (time.borrow_mut())(None), || (time.borrow_mut())(Some(&folder)));
    // Only the compiled code of this run lies there; if it stays behind, no figure is wrong.
    let _ = std::fs::remove_dir_all(&folder);
    if let Some(error) = failure {
        return Err(error);
    }
    Ok(format!(
        "{name}: {} to load {} KB, {} from cache ({}; {})",
        Millis(cold.median()),
        component.len() / 1000,
        Millis(cached.median()),
        cold.spread(),
        cached.spread()
    ))
}

fn trap_line() -> Result<String, BenchError> {
    let columns = guests::columns(400);
    let views = [View { rows: 400, columns: columns.iter().map(Vec::as_slice).collect() }, View::default(), View::default()];
    let words = Words::default();
    let (failing, fine) = (kernel(&json!({"fails": true}))?, kernel(&json!({"columns": true}))?);
    let call = |judge: &Configured| judge.open(&words, &[])?.price(&words, &views);
    let trapped = call(&failing);
    call(&fine)?;
    let (trap, whole) = alternate(|| repeated(REPEATED, || call(&failing)), || repeated(REPEATED, || call(&fine)));
    let wrong = if trapped.is_err() { "" } else { " DISAGREES: it did not trap" };
    Ok(format!(
        "B10/trap: {} to open and call one that traps at 400 rows, {} one that does not ({}){wrong}",
        Micros(trap.median()),
        Micros(whole.median()),
        trap.spread_in(Micros)
    ))
}
