//! Reading a segment, entry by entry. What must not enter: writing, and what is made of the entries.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use whittle_engine::Checkpoint;
use whittle_model::{Action, Catalog, Event, Timestamp};

use crate::frame::Frames;
use crate::line::Line;
use crate::{JournalError, Policies};

/// Something that was written.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    /// First of a segment: where the engine stood.
    Checkpoint {
        /// When.
        at: Timestamp,
        /// Whether the engine is the one of the segment before, from which nothing is missing.
        continues: bool,
        /// The engine.
        checkpoint: Box<Checkpoint>,
    },
    /// The policies in force from here on.
    Policies {
        /// When.
        at: Timestamp,
        /// Which.
        policies: Policies,
    },
    /// The engine was told something.
    Event {
        /// When.
        at: Timestamp,
        /// What.
        event: Event,
    },
    /// The engine was polled.
    Poll {
        /// When.
        at: Timestamp,
        /// Hash of the JSON of what it gave out, as the version that wrote it has it.
        hash: String,
        /// What it gave out.
        actions: Vec<Action>,
    },
}

/// A segment that is read: an iterator of its entries. After an error there are no more.
pub struct Segment {
    path: PathBuf,
    frames: Frames<io::BufReader<File>>,
    version: String,
    continues: bool,
    opened: bool,
    failed: bool,
    /// Lines of the frame under way, and where it begins.
    lines: VecDeque<Vec<u8>>,
    at: u64,
    catalogs: BTreeMap<String, Arc<Catalog>>,
}

impl std::fmt::Debug for Segment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Segment").field("path", &self.path).field("version", &self.version).finish_non_exhaustive()
    }
}

impl Segment {
    /// Opens a segment.
    ///
    /// # Errors
    /// When it cannot be read, is none, or is of another format.
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        let frames = Frames::open(path)?;
        Ok(Self {
            path: path.to_owned(),
            frames,
            version: String::new(),
            continues: false,
            opened: false,
            failed: false,
            lines: VecDeque::new(),
            at: 0,
            catalogs: BTreeMap::new(),
        })
    }

    /// Where its last whole frame ends, if something that is not whole follows. Known once all entries
    /// are read.
    #[must_use]
    pub fn cut(&self) -> Option<u64> {
        self.frames.cut.then_some(self.frames.offset)
    }

    /// The version that wrote it; empty before the first entry.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Where the frame of the last entry begins, in bytes.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.at
    }

    fn entry(&mut self) -> Result<Option<Entry>, JournalError> {
        loop {
            let Some(line) = self.lines.pop_front() else {
                let begins = self.frames.offset;
                let Some(bytes) = self.frames.next(&self.path)? else { return Ok(None) };
                self.at = begins;
                self.lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect();
                continue;
            };
            let line = serde_json::from_slice(&line).map_err(|source| JournalError::Foreign {
                path: self.path.clone(),
                offset: self.at,
                version: if self.version.is_empty() { "of an unknown version".to_owned() } else { self.version.clone() },
                source,
            })?;
            if let Some(entry) = self.read(line)? {
                return Ok(Some(entry));
            }
        }
    }

    /// What a line says; `None` of the head.
    fn read(&mut self, line: Line<'_>) -> Result<Option<Entry>, JournalError> {
        if let Line::Begin(begin) = line {
            let begin = begin.into_owned();
            (self.version, self.continues) = (begin.version, begin.continues);
            return Ok(None);
        }
        if !self.opened && !matches!(line, Line::Checkpoint(..)) {
            return Err(self.damaged("it does not open with a checkpoint"));
        }
        self.opened = true;
        Ok(Some(match line {
            Line::Begin(_) => return Ok(None),
            Line::Checkpoint(at, checkpoint) => {
                Entry::Checkpoint { at, continues: self.continues, checkpoint: Box::new((*checkpoint).into_owned()) }
            }
            Line::Policies(at, policies) => Entry::Policies { at, policies: policies.into_owned() },
            Line::Event(at, event) => Entry::Event { at, event: (*event).into_owned() },
            Line::Catalog(at, hash, catalog) => {
                self.catalogs.insert(hash.into_owned(), Arc::clone(&catalog));
                Entry::Event { at, event: Event::Catalog(catalog) }
            }
            Line::Again(at, hash) => {
                let known = self.catalogs.get(&*hash).cloned();
                let catalog = known.ok_or_else(|| self.damaged(&format!("it does not hold the catalogue {hash} that it names")))?;
                Entry::Event { at, event: Event::Catalog(catalog) }
            }
            Line::Poll(at, hash, actions) => Entry::Poll { at, hash: hash.into_owned(), actions: actions.into_owned() },
        }))
    }

    fn damaged(&self, what: &str) -> JournalError {
        JournalError::Damaged { path: self.path.clone(), offset: self.at, what: what.to_owned() }
    }
}

impl Iterator for Segment {
    type Item = Result<Entry, JournalError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let entry = self.entry();
        self.failed = entry.is_err();
        entry.transpose()
    }
}
