//! What the watches tell. What must not enter: types of the client.

use std::collections::BTreeMap;

use whittle_model::{BufferSource, Event, PodKey};

use super::BufferBase;
use crate::api;

/// What the watches saw.
#[derive(Debug, Clone, PartialEq)]
pub enum Seen {
    /// For the engine.
    Event(Event),
    /// A live EC2NodeClass, besides its event.
    NodeClass(Box<api::EC2NodeClass>),
    /// An EC2NodeClass is gone.
    NodeClassGone(String),
    /// A live NodePool, besides its event.
    NodePool(Box<api::NodePool>),
    /// A NodePool is gone.
    NodePoolGone(String),
    /// A live NodeClaim, besides its event.
    NodeClaim(Box<api::NodeClaim>),
    /// A NodeClaim is gone.
    NodeClaimGone(String),
    /// A live ScoringPolicy.
    ScoringPolicy(Box<api::ScoringPolicy>),
    /// A ScoringPolicy is gone.
    ScoringPolicyGone(String),
    /// A live NodeOverlay.
    NodeOverlay(Box<api::NodeOverlay>),
    /// A NodeOverlay is gone.
    NodeOverlayGone(String),
    /// A live CapacityBuffer.
    CapacityBuffer(Box<api::CapacityBuffer>),
    /// A CapacityBuffer is gone.
    CapacityBufferGone(PodKey),
    /// What capacity buffers can be for.
    BufferBase {
        /// Its namespace.
        namespace: String,
        /// Its kind and name.
        source: BufferSource,
        /// Itself, or why it cannot be read; `None` when it is gone.
        base: Option<Box<Result<BufferBase, String>>>,
    },
    /// A ConfigMap of the own namespace: texts and binary data alike.
    ConfigMap {
        /// Its name.
        name: String,
        /// Bytes by key.
        data: BTreeMap<String, Vec<u8>>,
    },
    /// A ConfigMap of the own namespace is gone.
    ConfigMapGone(String),
    /// The first lists of all kinds are in. Said once, right after [`Event::Synced`].
    Synced,
}
