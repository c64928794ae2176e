//! The reference kernel of the benchmarks: two divisions and three additions over nine columns. What
//! must not enter: anything that would make its time incomparable with earlier runs.

use whittle_sdk::prelude::*;

/// Nothing to be told.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, crate = "whittle_sdk::serde")]
#[schemars(crate = "whittle_sdk::schemars")]
pub struct Config {
    /// Whether whole columns are walked instead of rows.
    #[serde(default)]
    pub columns: bool,
    /// Whether every call ends in a trap.
    #[serde(default)]
    pub fails: bool,
}

/// The kernel.
#[derive(Debug)]
pub struct Kernel {
    columns: bool,
    fails: bool,
}

/// What a candidate is worth to the kernel: two divisions and three additions of doubles, which come
/// out the same everywhere.
#[inline]
#[must_use]
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "prices and sizes stay far below 2^53")]
pub fn rank(values: [i64; 9]) -> i64 {
    let [rank, cpu, memory, gpus, network, interruptions, hours, daemon_cpu, daemon_memory] = values;
    let risk = interruptions as f64 / (hours + 1) as f64;
    let per_cpu = rank as f64 / (cpu - daemon_cpu + memory - daemon_memory).max(1) as f64;
    (per_cpu + risk + (gpus + network) as f64) as i64
}

const COLUMNS: [CandidateColumn; 9] = [
    CandidateColumn::RankMicros,
    CandidateColumn::CpuMilli,
    CandidateColumn::MemoryMib,
    CandidateColumn::Gpus,
    CandidateColumn::NetworkMbps,
    CandidateColumn::Interruptions,
    CandidateColumn::ExposureHours,
    CandidateColumn::DaemonCpuMilli,
    CandidateColumn::DaemonMemoryMib,
];

impl Policy for Kernel {
    type Config = Config;
    const ABOUT: About = About { name: "kernel", version: env!("CARGO_PKG_VERSION"), documentation: "Measures the contract." };

    fn configure(config: Config, setup: &mut Setup) -> Result<Self, String> {
        setup.candidates(COLUMNS);
        Ok(Self { columns: config.columns, fails: config.fails })
    }

    fn price(&self, c: Candidate<'_>) -> Price {
        Price::rank(rank([
            c.rank_micros(),
            c.cpu_milli(),
            c.memory_mib(),
            c.gpus(),
            c.network_mbps(),
            c.interruptions(),
            c.exposure_hours(),
            c.daemon_cpu_milli(),
            c.daemon_memory_mib(),
        ]))
    }

    fn price_all(&mut self, tables: &Tables, prices: &mut Prices) {
        assert!(!self.fails, "it was told to fail");
        if !self.columns {
            return tables.candidates().for_each(|candidate| prices.set(candidate, self.price(candidate)));
        }
        let columns = COLUMNS.map(|column| tables.column(&column));
        let ranks = prices.ranks();
        let rows = ranks.len();
        let [a, b, c, d, e, f, g, h, i] = columns.map(|column| &column[..rows]);
        for row in 0..rows {
            ranks[row] = rank([a[row], b[row], c[row], d[row], e[row], f[row], g[row], h[row], i[row]]);
        }
    }
}

whittle_sdk::export!(Kernel);
