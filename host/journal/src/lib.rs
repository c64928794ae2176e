//! Events on disk, checkpoints, and their replay: what the engine was told and what it answered, so
//! that another engine can be told the same, be held to the same answers, and be asked why.
//!
//! A journal is a folder of segments. Each opens with a checkpoint of the engine and the policies in
//! force, so that replay may begin at any of them and the oldest can be removed. A segment is a row of
//! frames with a length and a checksum each, compressed as one stream; one frame is written, and handed
//! to the operating system, at each poll. What a killed process loses is therefore at most what no poll
//! had answered yet. A segment is synced to disk when it is complete and when the journal is closed; a
//! power cut may cost the tail of the last one. A torn tail ends its segment and is no error; a wrong
//! byte is, and names its place.
//!
//! ```no_run
//! # fn main() -> Result<(), whittle_journal::JournalError> {
//! # use whittle_journal::{Journal, Limits, Policies};
//! # use whittle_engine::Engine;
//! # use whittle_model::{Event, ListPrice, Timestamp};
//! # let (mut engine, now, policies) = (Engine::new(), Timestamp(0), Policies::default());
//! let mut journal = Journal::open("journal".as_ref(), Limits::default())?;
//! journal.checkpoint(now, &engine.checkpoint(), &policies)?; // whenever `wants_checkpoint`
//! journal.event(now, &Event::Synced)?;
//! engine.handle(&Event::Synced, now);
//! let actions = engine.poll(now, &mut ListPrice);
//! journal.poll(now, &actions)?; // before the actions are carried out
//! # journal.close()
//! # }
//! ```
//!
//! What must not enter: Kubernetes and AWS clients, wasmtime, decisions. Policies are bytes and plain
//! descriptions here; whoever replays loads them.

mod difference;
mod error;
mod folder;
mod frame;
mod line;
mod policies;
mod read;
mod replay;
mod write;

pub use difference::Difference;
pub use error::JournalError;
pub use folder::{Modules, segments};
pub use policies::{Policies, Policy, PolicyMode, PolicyStance, PolicyStanding};
pub use read::{Entry, Segment};
pub use replay::{End, Judges, Replay, Replayed, Summary, Witness};
pub use write::{Journal, Limits};
