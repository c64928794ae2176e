//! Writing a journal. What must not enter: reading one, and when to poll.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use whittle_engine::Checkpoint;
use whittle_model::{Action, Catalog, Event, Timestamp};

use crate::folder::{Modules, segment_path, segments, shrink};
use crate::frame::Framer;
use crate::line::{Begin, Line, hash_of, hash_of_large};
use crate::{JournalError, Policies};

/// Lines wait for the next poll up to this many bytes: the first lists of a large cluster are some
/// megabytes, and one frame of all of them would hold the thread for long.
const MOST_WAITING: usize = 256 << 10;

/// How large a journal may grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes after which a segment asks for the next.
    pub segment_bytes: u64,
    /// Bytes of all segments together; the oldest are removed. Modules of policies come on top, and
    /// go with the last segment that needs them.
    pub total_bytes: u64,
}

impl Default for Limits {
    /// 16 and 256 MiB: some hours to days of a cluster of 500 nodes.
    fn default() -> Self {
        Self { segment_bytes: 16 << 20, total_bytes: 256 << 20 }
    }
}

/// A journal that is written. All calls write to the operating system's memory only and do not wait for
/// the disk. After an error the journal waits for a checkpoint and drops what it is told before, so
/// whoever writes reports the error and goes on.
pub struct Journal {
    dir: PathBuf,
    limits: Limits,
    modules: Modules,
    /// The segment under way; `None` before the first checkpoint and after a write that failed.
    open: Option<Open>,
    next: u64,
}

/// A segment under way.
struct Open {
    number: u64,
    path: PathBuf,
    file: File,
    /// Lines that the next frame takes.
    waiting: BufWriter<Framer>,
    written: u64,
    /// Hashes of the catalogues it holds.
    catalogs: BTreeSet<String>,
    /// The last catalogue, so that the same one again is not hashed again.
    last: Option<(Arc<Catalog>, String)>,
}

impl std::fmt::Debug for Journal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let segment = self.open.as_ref().map(|open| open.number);
        f.debug_struct("Journal").field("dir", &self.dir).field("limits", &self.limits).field("segment", &segment).finish_non_exhaustive()
    }
}

impl Journal {
    /// A journal in this folder, which is made when it is not there. Segments that are there stay, and
    /// count. Nothing is written before the first checkpoint.
    ///
    /// # Errors
    /// When the folder cannot be made or read.
    pub fn open(dir: &Path, limits: Limits) -> Result<Self, JournalError> {
        fs::create_dir_all(dir).map_err(JournalError::io("make", dir))?;
        let next = segments(dir)?.last().map_or(1, |(number, _)| number.saturating_add(1));
        Ok(Self { dir: dir.to_owned(), limits, modules: Modules::of(dir), open: None, next })
    }

    /// Whether a checkpoint is due: at the beginning, when a segment is full, after an error. It is made
    /// between polls, right after one was written.
    #[must_use]
    pub fn wants_checkpoint(&self) -> bool {
        self.open.as_ref().is_none_or(|open| open.written >= self.limits.segment_bytes)
    }

    /// Ends the segment and opens the next with this checkpoint and the policies in force, and removes
    /// segments beyond the bound.
    ///
    /// # Errors
    /// When the segment cannot be written; the journal then waits for another checkpoint.
    pub fn checkpoint(&mut self, at: Timestamp, checkpoint: &Checkpoint, policies: &Policies) -> Result<(), JournalError> {
        let continues = self.finish()?;
        self.begin(at, checkpoint, policies, continues)
    }

    /// The same for an engine that is not the one of the segment before.
    ///
    /// # Errors
    /// As of [`Journal::checkpoint`].
    pub fn restart(&mut self, at: Timestamp, checkpoint: &Checkpoint, policies: &Policies) -> Result<(), JournalError> {
        self.finish()?;
        self.begin(at, checkpoint, policies, false)
    }

    fn begin(&mut self, at: Timestamp, checkpoint: &Checkpoint, policies: &Policies, continues: bool) -> Result<(), JournalError> {
        // Room for the segment is made before it is written, so that the bound holds at all times.
        let first = shrink(&self.dir, self.limits.total_bytes.saturating_sub(self.limits.segment_bytes))?.unwrap_or(self.next);
        let number = self.next;
        // A number whose file cannot be made is not tried again.
        self.next += 1;
        self.modules.needed(policies.digests(), number)?;
        self.modules.forget(first)?;
        let mut open = Open::new(&self.dir, number)?;
        if let Err(error) = open.opening(at, checkpoint, policies, continues) {
            // What remained of it would only count against the bound, one file for each attempt.
            let _ = fs::remove_file(&open.path);
            return Err(error);
        }
        self.open = Some(open);
        Ok(())
    }

    /// Writes what the engine is told.
    ///
    /// # Errors
    /// When it cannot be written, or a checkpoint is due after an error.
    pub fn event(&mut self, at: Timestamp, event: &Event) -> Result<(), JournalError> {
        self.write("an event", |open| open.event(at, event))
    }

    /// Writes that the engine was polled and what it gave out, and hands all lines to the operating
    /// system. To be called before the actions are carried out.
    ///
    /// # Errors
    /// As of [`Journal::event`].
    pub fn poll(&mut self, at: Timestamp, actions: &[Action]) -> Result<(), JournalError> {
        self.write("a poll", |open| {
            let json = serde_json::to_vec(actions).map_err(|source| JournalError::Encode { what: "actions", source })?;
            open.line("a poll", &Line::Poll(at, hash_of(&json).into(), actions.into()))?;
            open.flush()
        })
    }

    /// Writes which policies are in force from here on, when they changed or failed. Their modules are
    /// to be kept before, by [`Journal::module`].
    ///
    /// # Errors
    /// As of [`Journal::event`].
    pub fn policies(&mut self, at: Timestamp, policies: &Policies) -> Result<(), JournalError> {
        let modules = self.modules.clone();
        self.write("policies", |open| {
            modules.needed(policies.digests(), open.number)?;
            open.line("policies", &Line::Policies(at, Cow::Borrowed(policies)))
        })
    }

    /// Keeps the module of a policy under its hash; its digest, `sha256:` and the hash. A module that is
    /// there already is not written again.
    ///
    /// # Errors
    /// When it cannot be written; the journal goes on, but without it no replay asks the policy.
    pub fn module(&mut self, bytes: &[u8]) -> Result<String, JournalError> {
        self.modules.keep(bytes)
    }

    /// Ends the journal and waits until it is on disk.
    ///
    /// # Errors
    /// When something cannot be written.
    pub fn close(mut self) -> Result<(), JournalError> {
        let Some(mut open) = self.open.take() else { return Ok(()) };
        open.flush()?;
        open.file.sync_all().map_err(JournalError::io("sync", &open.path))
    }

    /// Ends the segment under way; whether the next continues it.
    fn finish(&mut self) -> Result<bool, JournalError> {
        let Some(mut open) = self.open.take() else { return Ok(false) };
        open.flush()?;
        // On a thread of its own: a disk may take seconds, and whoever writes must not wait for it.
        std::thread::spawn(move || open.file.sync_data());
        Ok(true)
    }

    fn write(&mut self, what: &'static str, write: impl FnOnce(&mut Open) -> Result<(), JournalError>) -> Result<(), JournalError> {
        let open = self.open.as_mut().ok_or(JournalError::NoCheckpoint(what))?;
        let written = write(open);
        if written.is_err() {
            // Half a frame may have been written, and nothing can be read behind it.
            self.open = None;
        }
        written
    }
}

impl Open {
    fn new(dir: &Path, number: u64) -> Result<Self, JournalError> {
        let path = segment_path(dir, number);
        let making = || JournalError::io("begin", &path);
        let mut file = File::options().write(true).create_new(true).open(&path).map_err(making())?;
        let head = Framer::head();
        file.write_all(&head).map_err(making())?;
        let waiting = BufWriter::new(Framer::new().map_err(making())?);
        let written = head.len() as u64;
        Ok(Self { number, path, file, waiting, written, catalogs: BTreeSet::new(), last: None })
    }

    /// What every segment begins with.
    fn opening(&mut self, at: Timestamp, checkpoint: &Checkpoint, policies: &Policies, continues: bool) -> Result<(), JournalError> {
        let begin = Begin { version: env!("CARGO_PKG_VERSION").to_owned(), continues };
        self.line("the head of a segment", &Line::Begin(Cow::Owned(begin)))?;
        self.line("a checkpoint", &Line::Checkpoint(at, Box::new(Cow::Borrowed(checkpoint))))?;
        self.line("policies", &Line::Policies(at, Cow::Borrowed(policies)))?;
        self.flush()
    }

    fn line(&mut self, what: &'static str, line: &Line<'_>) -> Result<(), JournalError> {
        serde_json::to_writer(&mut self.waiting, line).map_err(|source| JournalError::Encode { what, source })?;
        self.waiting.write_all(b"\n").map_err(JournalError::io("write", &self.path))?;
        if self.waiting.get_ref().length() < MOST_WAITING { Ok(()) } else { self.flush() }
    }

    fn event(&mut self, at: Timestamp, event: &Event) -> Result<(), JournalError> {
        let Event::Catalog(catalog) = event else {
            return self.line("an event", &Line::Event(at, Box::new(Cow::Borrowed(event))));
        };
        let hash = match &self.last {
            Some((last, hash)) if Arc::ptr_eq(last, catalog) => hash.clone(),
            Some(_) | None => hash_of_large(catalog).map_err(|source| JournalError::Encode { what: "a catalogue", source })?,
        };
        self.last = Some((Arc::clone(catalog), hash.clone()));
        if self.catalogs.insert(hash.clone()) {
            self.line("a catalogue", &Line::Catalog(at, hash.into(), Arc::clone(catalog)))
        } else {
            self.line("a catalogue", &Line::Again(at, hash.into()))
        }
    }

    /// Makes a frame of the lines that wait.
    fn flush(&mut self) -> Result<(), JournalError> {
        let writing = || JournalError::io("write", &self.path);
        self.waiting.flush().map_err(writing())?;
        let framer = self.waiting.get_mut();
        if framer.length() == 0 {
            return Ok(());
        }
        let frame = framer.frame().map_err(writing())?;
        self.file.write_all(&frame).map_err(writing())?;
        self.written += frame.len() as u64;
        Ok(())
    }
}
