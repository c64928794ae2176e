//! The thinking of Whittle: a deterministic state machine that is told events and says what to do.
//!
//! [`Engine::handle`] changes the [`World`], [`Engine::poll`] plans and gives out actions,
//! [`Engine::deadline`] says when to poll again. Same events, same actions, on any machine.
//!
//! What must not enter: clocks, randomness, async, logging, metrics, hash order, Kubernetes or AWS
//! types. The engine's only voice is its [`Report`].

mod agenda;
mod assigned;
pub mod audit;
mod batch;
mod buffers;
mod daemon_pods;
mod disrupt;
mod drain;
mod engine;
mod expiry;
mod intern;
mod interruptions;
mod judging;
mod learned;
mod ledger;
mod lifecycle;
mod overlays;
pub mod pack;
pub mod plan;
mod protection;
mod provision;
mod removal;
mod repair;
pub mod report;
mod round;
pub mod scheduler;
mod set_aside;
mod statics;
mod storage;
mod strays;
mod turns;
mod world;

pub use agenda::{Deadline, Timer};
pub use audit::{Objection, audit};
pub use buffers::BufferRoom;
pub use engine::{Checkpoint, Engine};
pub use overlays::OverlayVerdict;
pub use plan::{Plan, PlannedNode, Yardstick};
pub use report::Report;
pub use storage::Storage;
pub use world::World;
