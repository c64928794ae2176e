//! What a policy may use: fuel, memory, tables. What must not enter: wall-clock limits; the same input
//! is cut off at the same instruction on every machine.

use wasmtime::ResourceLimiter;

/// What a policy may use in one round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Fuel for `configure` and `open`, about one an instruction. What is left serves the calls too.
    pub fuel: u64,
    /// Bytes of linear memory, all memories of the component together.
    pub memory: u64,
}

impl Default for Limits {
    /// 50 million and 64 MiB: a hundred times what a policy in Rust needs, enough for one in JavaScript.
    fn default() -> Self {
        Self { fuel: 50_000_000, memory: 64 << 20 }
    }
}

/// Fuel that each row of a call adds: a policy that looks at a row a few hundred instructions long stays
/// within a sixth of it.
pub const FUEL_PER_ROW: u64 = 2_000;

/// The most memory that limits can grant; slots of the pool are this large.
pub const MOST_MEMORY: u64 = 1 << 30;

/// The most elements a table may have; toolchains of interpreters use some ten thousand.
pub const MOST_TABLE_ELEMENTS: usize = 100_000;

/// The most bytes a module may have; the largest common toolchain makes 18 MB.
pub const MOST_MODULE_BYTES: usize = 32 << 20;

/// The most bytes of text and lists that one answer may be copied out to, beyond columns of integers.
pub(crate) const MOST_COPIED: usize = 64 << 20;

/// Why a store refused to grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Beyond {
    #[error("memory of {0} bytes is not granted")]
    Memory(u64),
    #[error("a table of {0} elements is not granted")]
    Table(u64),
}

/// Holds a store to its limits; growth beyond them ends the call instead of answering -1, so that the
/// failure has its true name.
#[derive(Debug)]
pub(crate) struct Ceiling {
    limit: u64,
    used: u64,
}

impl Ceiling {
    pub(crate) const fn new(limit: u64) -> Self {
        Self { limit, used: 0 }
    }
}

impl ResourceLimiter for Ceiling {
    fn memory_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        let wanted = self.used.saturating_add((desired as u64).saturating_sub(current as u64));
        if wanted > self.limit {
            return Err(wasmtime::Error::from(Beyond::Memory(wanted)));
        }
        self.used = wanted;
        Ok(true)
    }

    fn table_growing(&mut self, _current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        if desired > MOST_TABLE_ELEMENTS {
            return Err(wasmtime::Error::from(Beyond::Table(desired as u64)));
        }
        Ok(true)
    }
}
