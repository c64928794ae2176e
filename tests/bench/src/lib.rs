//! Benchmarks of Whittle's engine: what they measure, what they measure it against, on which input.
//!
//! The room holds workloads, a plain reference of the documented greedy, an independent lower bound
//! on cost, and the clock. What must not enter: decisions the engine makes.

pub mod binding;
pub mod bound;
pub mod filter;
pub mod fixtures;
pub mod guests;
pub mod input;
pub mod markets;
pub mod measure;
pub mod ours;
pub mod reference;
pub mod runs;

pub use input::Input;
