//! Components to measure, and the ways around the contract that it is measured against: a native loop,
//! and a guest that is given lists of records. What must not enter: what is timed.

use std::path::Path;

use wasmtime::component::{Component, Linker};
use wasmtime::{Config, Engine, PoolingAllocationConfig, Store};
use whittle_component::{Build, BuildError};
use wit_component::{StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

use bindings::exports::bench::records::scoring;

mod bindings {
    //! The generated bindings of the guest that is given records.
    wasmtime::component::bindgen!({
        path: "../policy-guests/records/wit",
        world: "records",
        ownership: Borrowing { duplicate_if_necessary: true },
    });
}

/// The component of a crate of this workspace; cargo builds it when it has to.
///
/// # Errors
/// When it cannot be built.
pub fn component(package: &str) -> Result<Vec<u8>, BuildError> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let build = Build { package: Some(package.to_owned()), target_dir: Some(root.join("target/bench-guests")), locked: true };
    build.run(&root)
}

/// The component that is given records.
///
/// # Errors
/// When its text or its interface cannot be read.
fn records() -> wasmtime::Result<Vec<u8>> {
    let mut module = wat::parse_str(include_str!("../../policy-guests/records/records.wat"))?;
    let mut resolve = Resolve::default();
    let package = resolve.push_str("records.wit", include_str!("../../policy-guests/records/wit/records.wit")).map_err(failed)?;
    let world = resolve.select_world(&[package], Some("records")).map_err(failed)?;
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).map_err(failed)?;
    Ok(whittle_component::from_core(&module)?)
}

fn failed(error: impl std::fmt::Display) -> wasmtime::Error {
    wasmtime::Error::msg(format!("{error:#}"))
}

/// Rows of the reference kernel, column by column: rank, CPU, memory, GPUs, network, interruptions,
/// hours of exposure, CPU and memory of daemons. All different, none negative.
#[must_use]
pub fn columns(rows: usize) -> [Vec<i64>; 9] {
    let up_to = |most: usize, prime: usize| (0..rows).map(|row| i64::try_from(row * prime % most).unwrap_or(0)).collect();
    [
        up_to(40_000_000, 7919),
        up_to(192_000, 6007),
        up_to(1_500_000, 5003),
        up_to(8, 3),
        up_to(100_000, 4001),
        up_to(40, 7),
        up_to(5_000, 13),
        up_to(900, 11),
        up_to(1_800, 17),
    ]
}

/// The kernel as a native loop over the same columns.
#[must_use]
pub fn native(columns: &[Vec<i64>; 9]) -> Vec<i64> {
    let rows = columns[0].len();
    let [a, b, c, d, e, f, g, h, i] = columns.each_ref().map(|column| &column[..rows]);
    (0..rows).map(|row| whittle_guest_kernel::rank([a[row], b[row], c[row], d[row], e[row], f[row], g[row], h[row], i[row]])).collect()
}

/// The guest that is given records, in an engine with the settings of the policy host.
pub struct Records {
    store: Store<()>,
    guest: bindings::Records,
}

impl std::fmt::Debug for Records {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Records").finish_non_exhaustive()
    }
}

/// Candidates as that guest is given them: with the texts of type and zone, and without.
#[derive(Debug, Clone)]
pub struct Rows {
    whole: Vec<(String, String)>,
    numbers: Vec<scoring::Numbers>,
}

impl Rows {
    /// The rows of these columns, of 400 types in three zones.
    #[must_use]
    pub fn new(columns: &[Vec<i64>; 9]) -> Self {
        let narrow = |column: usize, row: usize| u32::try_from(columns[column][row]).unwrap_or(u32::MAX);
        let numbers = |row: usize| scoring::Numbers {
            rank_micros: columns[0][row],
            cpu_milli: narrow(1, row),
            memory_mib: narrow(2, row),
            gpus: narrow(3, row),
            network_mbps: narrow(4, row),
            interruptions: narrow(5, row),
            exposure_hours: narrow(6, row),
            daemon_cpu_milli: narrow(7, row),
            daemon_memory_mib: narrow(8, row),
            burstable: row.is_multiple_of(2),
        };
        let rows = columns[0].len();
        let named = |row: usize| (format!("m7i-flex.{}xlarge", row % 400), format!("us-east-1{}", ["a", "b", "c"][row % 3]));
        Self { whole: (0..rows).map(named).collect(), numbers: (0..rows).map(numbers).collect() }
    }
}

impl Records {
    /// An instance of it.
    ///
    /// # Errors
    /// When it cannot be made, or this machine cannot run it.
    pub fn new() -> wasmtime::Result<Self> {
        let mut config = Config::new();
        config.consume_fuel(true).cranelift_nan_canonicalization(true).concurrency_support(false).wasm_backtrace_max_frames(None);
        config.allocation_strategy(PoolingAllocationConfig::new());
        let engine = Engine::new(&config)?;
        let mut store = Store::new(&engine, ());
        store.set_fuel(u64::MAX)?;
        let component = Component::from_binary(&engine, &records()?)?;
        let guest = bindings::Records::instantiate(&mut store, &component, &Linker::new(&engine))?;
        Ok(Self { store, guest })
    }

    /// The kernel's answers for candidates with their texts, as they are borrowed from `rows`.
    ///
    /// # Errors
    /// When the guest fails.
    pub fn price(&mut self, rows: &[scoring::Candidate<'_>]) -> wasmtime::Result<Vec<i64>> {
        self.guest.bench_records_scoring().call_price(&mut self.store, rows)
    }

    /// The kernel's answers without texts.
    ///
    /// # Errors
    /// When the guest fails.
    pub fn price_numbers(&mut self, rows: &Rows) -> wasmtime::Result<Vec<i64>> {
        self.guest.bench_records_scoring().call_price_numbers(&mut self.store, &rows.numbers)
    }
}

impl Rows {
    /// The rows with their texts.
    #[must_use]
    pub fn candidates(&self) -> Vec<scoring::Candidate<'_>> {
        let all = self.whole.iter().zip(&self.numbers);
        all.map(|((instance_type, zone), numbers)| scoring::Candidate { instance_type, zone, numbers: *numbers }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_and_the_native_loop_answer_alike() {
        let mut records = Records::new().unwrap();
        let columns = columns(500);
        let rows = Rows::new(&columns);
        let native = native(&columns);
        assert_eq!(records.price(&rows.candidates()).unwrap(), native);
        assert_eq!(records.price_numbers(&rows).unwrap(), native);
        assert!(native.iter().any(|rank| *rank > 1000) && native[0] != native[499]);
    }
}
