//! The WebAssembly engine: which features exist, how memory is laid out, where compiled code is kept.
//! What must not enter: anything about policies.

use std::path::{Path, PathBuf};

use wasmtime::{Cache, CacheConfig, Config, Engine, OptLevel, PoolingAllocationConfig, WasmFeatures};

use crate::limits::{MOST_MEMORY, MOST_TABLE_ELEMENTS};

/// Instances that may live at once: 40 chains of three policies. Each slot reserves 4 GiB of addresses,
/// not of memory, so that guests need no bounds checks.
const INSTANCES: u32 = 128;

/// Core instances of one component; components of interpreters link a dozen.
const CORES: u32 = 32;

/// Stack of a guest: enough for an interpreter, and far below the host's own.
const STACK: usize = 512 << 10;

/// The WebAssembly engine could not be made.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// This platform lacks what is needed.
    #[error("starting the WebAssembly engine: {0}")]
    Engine(String),
    /// The folder for compiled code cannot be used.
    #[error("using {folder} for compiled policies: {why}")]
    Cache {
        /// The folder.
        folder: PathBuf,
        /// Why.
        why: String,
    },
}

/// An engine whose compiled code is kept in `cache`, when given.
pub(crate) fn engine(cache: Option<&Path>) -> Result<Engine, MachineError> {
    let mut config = Config::new();
    config.consume_fuel(true).cranelift_nan_canonicalization(true).cranelift_opt_level(OptLevel::Speed);
    config.max_wasm_stack(STACK).concurrency_support(false).wasm_backtrace_max_frames(None);
    features(&mut config);
    config.allocation_strategy(pool());
    if let Some(folder) = cache {
        config.cache(Some(kept_in(folder)?));
    }
    Engine::new(&config).map_err(|error| MachineError::Engine(format!("{error:#}")))
}

/// Pinned one by one, so that a newer wasmtime does not widen what modules may do.
fn features(config: &mut Config) {
    let on = WasmFeatures::WASM2
        | WasmFeatures::COMPONENT_MODEL
        | WasmFeatures::EXTENDED_CONST
        | WasmFeatures::TAIL_CALL
        | WasmFeatures::MULTI_MEMORY;
    for (name, feature) in WasmFeatures::all().iter_names() {
        // Not proposals but the toggles of the validator itself, and what wasmtime was compiled without.
        if name == "GC_TYPES" || name == "FLOATS" || name == "CM_ASYNC" {
            continue;
        }
        config.wasm_features(feature, on.contains(feature));
    }
}

fn pool() -> PoolingAllocationConfig {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(INSTANCES).total_core_instances(INSTANCES * 4).max_core_instances_per_component(CORES);
    pool.total_memories(INSTANCES + 4).max_memories_per_component(4);
    pool.total_tables(INSTANCES * 2).max_tables_per_component(CORES).max_tables_per_module(8);
    pool.max_memory_size(usize::try_from(MOST_MEMORY).unwrap_or(usize::MAX)).table_elements(MOST_TABLE_ELEMENTS);
    // Touched pages are kept and zeroed instead of being given back: it halves the cost of an instance.
    pool.linear_memory_keep_resident(256 << 10).table_keep_resident(16 << 10).max_unused_warm_slots(16);
    pool
}

fn kept_in(folder: &Path) -> Result<Cache, MachineError> {
    let mut config = CacheConfig::new();
    config.with_directory(folder);
    Cache::new(config).map_err(|error| MachineError::Cache { folder: folder.to_owned(), why: format!("{error:#}") })
}
