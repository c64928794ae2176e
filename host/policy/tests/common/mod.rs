//! Guests for tests: compiled from Rust, assembled from text, and native ones behind the same interface.
#![expect(dead_code, reason = "each test file uses its own part of it")]
#![expect(clippy::unwrap_used, reason = "what fails here fails the test, with its place")]

pub mod guests;
pub mod native;
pub mod tables;
