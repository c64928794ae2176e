//! The simulated cluster at work, on a tiny catalogue.

mod common;
mod disks;
mod faults;
mod mixes;
mod moody;
mod peer;
mod stories;
mod storms;
