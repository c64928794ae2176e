//! The benches by their numbers. Each answers one line that starts with its number and size; what
//! is printed, and when, is up to the caller.

pub mod contract;
pub mod interruptions;
pub mod moves;
pub mod packing;
pub mod policies;
pub mod speed;
pub mod standing;

/// Where finished lines go.
pub type Line<'a> = &'a mut dyn FnMut(String);

/// Why a bench could not be run.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A workload cannot be read.
    #[error(transparent)]
    Fixture(#[from] crate::fixtures::FixtureError),
    /// The compiled-in catalogue cannot be built.
    #[error(transparent)]
    Catalog(#[from] whittle_catalog::CatalogError),
    /// A guest cannot be built.
    #[error(transparent)]
    Build(#[from] whittle_component::BuildError),
    /// This machine cannot run WebAssembly.
    #[error(transparent)]
    Machine(#[from] whittle_policy::MachineError),
    /// A guest cannot be loaded.
    #[error(transparent)]
    Load(#[from] whittle_policy::LoadError),
    /// The configuration of a policy is no JSON.
    #[error("read the bench's configuration of {policy}: {error}")]
    Config {
        /// The policy.
        policy: &'static str,
        /// Why.
        error: serde_json::Error,
    },
    /// A policy does not accept its configuration.
    #[error(transparent)]
    Configure(#[from] whittle_policy::ConfigureError),
    /// A policy failed.
    #[error(transparent)]
    Failed(#[from] whittle_policy::Failure),
    /// The guest that is given records failed.
    #[error("run the guest that is given records: {0}")]
    Records(String),
}

impl BenchError {
    fn records(error: wasmtime::Error) -> Self {
        Self::Records(format!("{error:#}"))
    }
}
