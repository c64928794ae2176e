//! A journal through the engine again: the same events, and the question whether the same actions come
//! out. What must not enter: what an answer means, and how policies are loaded.

use std::path::Path;

use serde::Serialize;
use sha2::{Digest, Sha256};
use whittle_engine::report::Step;
use whittle_engine::{Checkpoint, Engine, Report};
use whittle_model::{Action, Event, Scorer, Timestamp};

use crate::line::{hash_of, hex};
use crate::read::{Entry, Segment};
use crate::{Difference, JournalError, Modules, Policies, segments};

/// Who judges prices and moves in a replay.
pub trait Judges {
    /// These policies are in force from here on.
    ///
    /// # Errors
    /// Why they cannot be had.
    fn put(&mut self, policies: &Policies, modules: &Modules) -> Result<(), String>;

    /// Whom the engine asks.
    fn scorer(&mut self) -> &mut dyn Scorer;
}

/// Who watches a replay.
pub trait Witness {
    /// The engine was made from a checkpoint.
    fn restored(&mut self, at: Timestamp, engine: &Engine);

    /// The engine was told something.
    fn told(&mut self, at: Timestamp, event: &Event);

    /// The engine was polled, gave out these actions and reported this.
    fn polled(&mut self, at: Timestamp, actions: &[Action], reports: Vec<Report>, engine: &Engine);
}

/// How a replay ended.
#[derive(Debug)]
pub enum End {
    /// All was read, and all came out as recorded.
    Same,
    /// Something came out differently; nothing after it was looked at.
    Different(Box<Difference>),
    /// The journal cannot be read further.
    Unreadable(Box<JournalError>),
}

/// What a replay went through.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Segments that were begun.
    pub segments: u64,
    /// Number of the first.
    pub first_segment: u64,
    /// Time of the first entry, in milliseconds since the epoch.
    pub from: i64,
    /// Time of the last entry.
    pub to: i64,
    /// Events.
    pub events: u64,
    /// Polls that came out as recorded.
    pub polls: u64,
    /// Actions of these.
    pub actions: u64,
    /// Polls in which something was planned.
    pub plans: u64,
    /// Hash over the actions of all polls: two replays with the same hash decided the same.
    pub digest: String,
    /// Segments that end in a frame that is not whole, and where it begins, in bytes.
    pub cut: Vec<(u64, u64)>,
    /// Versions of whittle that wrote the journal.
    pub versions: Vec<String>,
}

/// What is left of a replay.
#[derive(Debug)]
pub struct Replayed {
    /// What it went through.
    pub summary: Summary,
    /// How it ended.
    pub end: End,
    /// The engine as it stands there.
    pub engine: Engine,
}

/// A replay under way.
pub struct Replay<'a> {
    judges: &'a mut dyn Judges,
    witness: &'a mut dyn Witness,
    modules: Modules,
    engine: Engine,
    /// The last segment, if all of it was read and no frame is missing.
    whole: Option<u64>,
    segment: u64,
    digest: Sha256,
    summary: Summary,
}

/// What ends a replay early.
enum Stop {
    Different(Difference),
    Unreadable(JournalError),
}

impl From<JournalError> for Stop {
    fn from(error: JournalError) -> Self {
        Self::Unreadable(error)
    }
}

impl<'a> Replay<'a> {
    /// Replays the journal of a folder, from a segment or from the first there is.
    ///
    /// # Errors
    /// When there is no journal, or no such segment.
    pub fn run(dir: &Path, from: Option<u64>, judges: &'a mut dyn Judges, witness: &'a mut dyn Witness) -> Result<Replayed, JournalError> {
        let all = segments(dir)?;
        let (Some((first, _)), Some((last, _))) = (all.first(), all.last()) else { return Err(JournalError::Empty(dir.to_owned())) };
        let begin = from.unwrap_or(*first);
        if !all.iter().any(|(number, _)| *number == begin) {
            return Err(JournalError::NoSegment { dir: dir.to_owned(), number: begin, first: *first, last: *last });
        }
        let modules = Modules::of(dir);
        let summary = Summary { first_segment: begin, ..Summary::default() };
        let mut replay =
            Replay { judges, witness, modules, engine: Engine::new(), whole: None, segment: begin, digest: Sha256::new(), summary };
        let mut rest = all.iter().filter(|(number, _)| *number >= begin);
        let end = match rest.try_for_each(|(number, path)| replay.segment(*number, path)) {
            Ok(()) => End::Same,
            Err(Stop::Different(difference)) => End::Different(Box::new(difference)),
            Err(Stop::Unreadable(error)) => End::Unreadable(Box::new(error)),
        };
        let Replay { engine, digest, mut summary, .. } = replay;
        summary.digest = hex(&digest.finalize()[..16]);
        Ok(Replayed { summary, end, engine })
    }

    fn segment(&mut self, number: u64, path: &Path) -> Result<(), Stop> {
        let mut segment = Segment::open(path)?;
        self.segment = number;
        self.summary.segments += 1;
        while let Some(entry) = segment.next() {
            self.entry(entry?, &segment, path)?;
        }
        if !self.summary.versions.iter().any(|version| version == segment.version()) && !segment.version().is_empty() {
            self.summary.versions.push(segment.version().to_owned());
        }
        match segment.cut() {
            Some(offset) => {
                self.summary.cut.push((number, offset));
                self.whole = None;
            }
            None => self.whole = Some(number),
        }
        Ok(())
    }

    fn entry(&mut self, entry: Entry, segment: &Segment, path: &Path) -> Result<(), Stop> {
        let at = match &entry {
            Entry::Checkpoint { at, .. } | Entry::Policies { at, .. } | Entry::Event { at, .. } | Entry::Poll { at, .. } => *at,
        };
        if self.summary.segments == 1 && self.summary.events == 0 && self.summary.polls == 0 {
            self.summary.from = at.0;
        }
        self.summary.to = at.0;
        match entry {
            Entry::Checkpoint { continues, checkpoint, .. } => self.checkpoint(at, continues, *checkpoint)?,
            Entry::Policies { policies, .. } => {
                let unloaded = |why| JournalError::Policies { path: path.to_owned(), offset: segment.offset(), why };
                self.judges.put(&policies, &self.modules).map_err(unloaded)?;
            }
            Entry::Event { event, .. } => {
                self.engine.handle(&event, at);
                self.summary.events += 1;
                self.witness.told(at, &event);
            }
            Entry::Poll { hash, actions, .. } => self.poll(at, &hash, &actions)?,
        }
        Ok(())
    }

    /// An engine that goes on must stand where the one that was recorded stood.
    fn checkpoint(&mut self, at: Timestamp, continues: bool, checkpoint: Checkpoint) -> Result<(), Stop> {
        if continues && self.whole.is_some_and(|last| last + 1 == self.segment) {
            let own = self.engine.checkpoint();
            if own == checkpoint {
                return Ok(());
            }
            let json = |of: &Checkpoint| serde_json::to_value(of).map_err(|source| JournalError::Encode { what: "a checkpoint", source });
            let polls = self.summary.polls;
            if let Some(difference) = Difference::of_values("checkpoint", &json(&checkpoint)?, &json(&own)?, self.segment, polls, at) {
                return Err(Stop::Different(difference));
            }
        }
        self.engine = Engine::restore(checkpoint);
        self.witness.restored(at, &self.engine);
        Ok(())
    }

    fn poll(&mut self, at: Timestamp, hash: &str, recorded: &[Action]) -> Result<(), Stop> {
        let actions = self.engine.poll(at, self.judges.scorer());
        let reports = self.engine.take_reports();
        self.summary.plans += u64::from(reports.iter().any(planned));
        self.witness.polled(at, &actions, reports, &self.engine);
        let nth = self.summary.polls + 1;
        if let Some(difference) = Difference::of_actions(recorded, &actions, self.segment, nth, at) {
            return Err(Stop::Different(difference));
        }
        let json = serde_json::to_vec(&actions).map_err(|source| JournalError::Encode { what: "actions", source })?;
        let own = hash_of(&json);
        // Actions of another version may read like ours and have been more.
        if own != hash {
            let (recorded, replayed) = (hash.into(), own.into());
            let place = "the hash of the actions, which read alike".to_owned();
            return Err(Stop::Different(Difference { segment: self.segment, poll: nth, at: at.0, place, recorded, replayed }));
        }
        self.digest.update(own.as_bytes());
        self.summary.polls = nth;
        self.summary.actions += actions.len() as u64;
        Ok(())
    }
}

/// Whether a plan was made in the round.
fn planned(report: &Report) -> bool {
    report.steps.iter().any(|step| matches!(step, Step::Planned(_) | Step::Placed { .. } | Step::Unplaced(_)))
}
