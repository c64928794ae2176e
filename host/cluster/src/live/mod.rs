//! The live door, reading side: a client, and the watches that feed the engine. One task a kind lists in pages, follows the
//! watch, and sends what changed as events; of each object it keeps a name and three hashes.
//!
//! What must not enter: writes, decisions, stores of API objects. An object that cannot be read is told and set aside, and
//! the stream of the others goes on.

mod about;
mod buffers;
mod connect;
mod follow;
mod gate;
mod kinds;
mod known;
mod pace;
mod raw;
mod read;
mod seen;

use std::sync::Arc;

use kube::runtime::watcher;
use tokio::{sync::mpsc, task::JoinSet};

use crate::{CapacityBufferObject, ScoringPolicyObject, api, from};
pub use about::{About, AboutError, about, ca_bundle};
pub use buffers::BufferBase;
pub use connect::{ClientOptions, ConnectError, client, connect};
pub use kube::Client;
pub use seen::Seen;

/// For a log's filter: the libraries below say at each try what the watches say once.
pub const QUIET: &str = "kube_client=off,kube_runtime=off";

/// What is watched, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchOptions {
    /// The controller's own namespace.
    pub namespace: String,
    /// Objects a page of a first list; not 0.
    pub page_size: u32,
    /// Whether ConfigMaps of the own namespace are watched: modules of policies may lie in them.
    pub config_maps: bool,
    /// Whether capacity buffers are watched, and what they can be for.
    pub capacity_buffers: bool,
}

impl WatchOptions {
    /// Everything but capacity buffers, with pages of 500 as other clients take them.
    #[must_use]
    pub fn new(namespace: &str) -> Self {
        Self { namespace: namespace.to_owned(), page_size: 500, config_maps: true, capacity_buffers: false }
    }
}

/// Why the watches ended although somebody listened.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// A task came to an end that has none.
    #[error("watching the cluster: a watch stopped by itself; start the controller again")]
    Stopped(#[source] tokio::task::JoinError),
}

/// Watches all kinds that plans read and sends what is seen. Runs until the receiver is dropped. A failing watch is logged and
/// tried again for ever; the channel's bound is the only buffer.
///
/// # Errors
/// When a task of a watch panicked.
pub async fn watch(client: Client, options: WatchOptions, to: mpsc::Sender<Seen>) -> Result<(), WatchError> {
    let wanted = |kind: &&kinds::Kind| {
        (options.config_maps || kind.scope == kinds::Scope::Everywhere) && (options.capacity_buffers || !kind.for_buffers)
    };
    let kinds: Vec<_> = kinds::KINDS.iter().filter(wanted).collect();
    let gate = Arc::new(gate::Gate::new(kinds.iter().map(|kind| kind.name)));
    let config = watcher::Config::default().page_size(options.page_size);
    let mut tasks = JoinSet::new();
    for kind in kinds {
        let api = kind.api(client.clone(), &options.namespace);
        tasks.spawn(follow::follow(kind, api, config.clone(), Arc::clone(&gate), to.clone()));
    }
    tokio::select! {
        () = to.closed() => Ok(()),
        () = gate.complain() => Ok(()),
        ended = tasks.join_next() => ended.transpose().map_or_else(|error| Err(WatchError::Stopped(error)), |_| Ok(())),
    }
}

/// A ScoringPolicy as its rules read it.
///
/// # Errors
/// The rules it breaks, with the fields.
pub fn scoring_policy(written: &api::ScoringPolicy) -> Result<ScoringPolicyObject, String> {
    let mut cx = from::Cx::new(true);
    let policy = from::scoring_policy(written, &mut cx);
    read::faultless(&cx).map(|()| policy)
}

/// The rules that a NodeOverlay breaks, with the fields.
#[must_use]
pub fn node_overlay_fault(written: &api::NodeOverlay) -> Option<String> {
    let mut cx = from::Cx::new(true);
    from::node_overlay(written, &mut cx);
    read::faultless(&cx).err()
}

/// A CapacityBuffer as its rules read it.
///
/// # Errors
/// The rules it breaks, with the fields.
pub fn capacity_buffer(written: &api::CapacityBuffer) -> Result<CapacityBufferObject, String> {
    let mut cx = from::Cx::new(true);
    let object = from::capacity_buffer(written, &mut cx);
    read::faultless(&cx).map(|()| object)
}
