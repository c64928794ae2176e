//! Journals that are written, cut, damaged, rotated and replayed.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod common;
mod damage;
mod replays;
mod rotation;
mod round_trip;
mod simulations;
