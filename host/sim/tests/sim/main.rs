//! The simulated cluster at work, on a tiny catalogue.

mod common;
mod faults;
mod mixes;
mod stories;
mod storms;
