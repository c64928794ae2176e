//! The writing side of the door: what the engine decided, carried out with as few requests as will do, by the
//! one controller that leads. "Already so" is success and writes nothing; writes to one object wait for each
//! other, so that they never conflict among themselves.
//!
//! What must not enter: decisions, watches, AWS.

mod capacity_buffer;
mod claim;
mod claim_status;
mod conditions;
mod door;
mod election;
mod error;
mod gate;
mod keep;
mod lanes;
mod lease;
mod node;
mod node_class;
mod node_overlay;
mod node_pool;
mod nodes;
mod patch;
mod pod;
mod recorder;
mod scoring_policy;
mod seen;
mod time;
mod writer;

pub use capacity_buffer::{BufferFound, BufferStanding, FoundBase, capacity_buffer_patch};
pub use conditions::{ConditionStatus, Standing};
pub use election::Election;
pub use error::WriteError;
pub use gate::{Gate, Term};
pub use lease::{Candidate, LeaseRecord, LeaseTimes, Next};
pub use node_class::{ClassFound, node_class_patch, node_class_release};
pub use node_overlay::{OverlayState, node_overlay_patch};
pub use node_pool::{ClassState, PolicyState, PoolUsage, RegistrationHealth, node_pool_patch};
pub use patch::ObjectPatch;
pub use recorder::{EventKind, Note, Recorder, Subject};
pub use scoring_policy::{PolicyCounts, PolicyFound, scoring_policy_patch};
pub use writer::{Stamps, Writer, Written};

/// Hash and version of an object that claims are launched from, as [`crate::hash`] makes them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HashStamp {
    /// UID of the object.
    pub uid: String,
    /// Its hash.
    pub hash: String,
    /// How the hash was made.
    pub version: String,
}
