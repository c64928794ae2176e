//! The reference kernel of the benchmarks over lists of records: what columns are measured against. What
//! must not enter: anything that the kernel over columns does not do.
#![expect(missing_docs, reason = "the generated items are documented in records.wit")]

use exports::bench::records::scoring::{Candidate, Guest, Numbers};

wit_bindgen::generate!({ path: "wit", world: "records" });

struct Kernel;

#[inline]
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "prices and sizes stay far below 2^53")]
fn rank(of: &Numbers) -> i64 {
    let risk = f64::from(of.interruptions) / (i64::from(of.exposure_hours) + 1) as f64;
    let free = i64::from(of.cpu_milli) - i64::from(of.daemon_cpu_milli) + i64::from(of.memory_mib) - i64::from(of.daemon_memory_mib);
    let per_cpu = of.rank_micros as f64 / free.max(1) as f64;
    (per_cpu + risk + (i64::from(of.gpus) + i64::from(of.network_mbps)) as f64) as i64
}

impl Guest for Kernel {
    fn price(candidates: Vec<Candidate>) -> Vec<i64> {
        candidates.iter().map(|candidate| rank(&candidate.numbers)).collect()
    }

    fn price_numbers(candidates: Vec<Numbers>) -> Vec<i64> {
        candidates.iter().map(rank).collect()
    }
}

export!(Kernel);
