//! The thinking of Whittle: a deterministic state machine that is told events and says what to do.
//!
//! `handle(event, now)` changes the [`World`](crate::world), `poll(now)` plans and answers actions,
//! `deadline()` says when to poll again. Same events, same actions, on any machine.
//!
//! What must not enter: clocks, randomness, async, logging, metrics, hash order, Kubernetes or AWS
//! types. The engine's only voice is its [`Report`].

pub mod pack;
pub mod report;

pub use report::Report;
