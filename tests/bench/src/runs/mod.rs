//! The benches by their numbers. Each answers one line that starts with its number and size; what
//! is printed, and when, is up to the caller.

pub mod packing;
pub mod speed;

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
}
