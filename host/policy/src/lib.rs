//! Loads, limits and calls the WebAssembly components that say what an instance and a move are worth,
//! and runs them in chains. Native judges stand behind the same interface.
//!
//! What must not enter: Kubernetes, AWS, the engine, and any decision about what is bought or moved.
//! A clock is read here only to bound how long a module may take to compile.

pub mod answers;
pub mod chain;
pub mod chains;
pub mod failure;
pub mod judge;
pub mod limits;
pub mod load;
pub mod module;
pub mod native;
pub mod rest;
pub mod schema;

mod bindings;
mod machine;
mod reason;
mod round;
mod setup;

pub use chain::{Chain, ChainError, Member, Mode, OnFailure, Stance, Standing};
pub use chains::Chains;
pub use failure::{Call, Failure};
pub use judge::{Judge, Sitting, View};
pub use limits::Limits;
pub use load::{LoadError, Loader};
pub use machine::MachineError;
pub use module::{ConfigureError, Configured, Manifest, Module};
pub use native::{Balanced, WhenEmptyOrUnderutilized};
pub use rest::Rest;
pub use schema::ConfigError;
pub use setup::SetupError;
