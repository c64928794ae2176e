//! Guests for tests: compiled from Rust, assembled from text, and native ones behind the same interface.
#![expect(dead_code, reason = "each test file uses its own part of it")]

pub mod guests;
pub mod native;
pub mod tables;
