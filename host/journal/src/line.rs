//! The lines that frames hold: one JSON value each. What must not enter: files.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use whittle_engine::Checkpoint;
use whittle_model::{Action, Catalog, Event, Timestamp};

use crate::Policies;

/// A line. Written from borrowed values, read into owned ones.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Line<'a> {
    /// First of a segment: who wrote it.
    Begin(Cow<'a, Begin>),
    /// Second: where the engine stood.
    Checkpoint(Timestamp, Box<Cow<'a, Checkpoint>>),
    /// The policies in force from here on.
    Policies(Timestamp, Cow<'a, Policies>),
    /// The engine was told something.
    Event(Timestamp, Box<Cow<'a, Event>>),
    /// It was told of a catalogue that this segment does not hold yet, of this hash.
    Catalog(Timestamp, Cow<'a, str>, Arc<Catalog>),
    /// It was told of a catalogue that this segment holds.
    Again(Timestamp, Cow<'a, str>),
    /// It was polled, with the hash of what it gave out.
    Poll(Timestamp, Cow<'a, str>, Cow<'a, [Action]>),
}

/// Who wrote a segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Begin {
    /// Version of whittle.
    pub(crate) version: String,
    /// Whether the engine is the one of the segment before, which nothing is missing from.
    pub(crate) continues: bool,
}

/// Hash of a value by its JSON: the first 16 bytes of its SHA-256, as hex.
pub(crate) fn hash_of(json: &[u8]) -> String {
    hex(&Sha256::digest(json)[..16])
}

/// The same of a value whose JSON is too large to be held for that.
pub(crate) fn hash_of_large(value: &impl Serialize) -> Result<String, serde_json::Error> {
    let mut hashed = Hashed(Sha256::new());
    serde_json::to_writer(&mut hashed, value)?;
    Ok(hex(&hashed.0.finalize()[..16]))
}

/// Where bytes are hashed that go nowhere.
struct Hashed(Sha256);

impl std::io::Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
