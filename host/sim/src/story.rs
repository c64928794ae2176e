//! Stories: what people do to a cluster, one verb a line. Read whole before anything runs; an error
//! names the line and what would be right.
//!
//! What must not enter: what a verb does (the simulation's), files.

mod words;

use whittle_model::{CapacityType, Duration, Micros};

use crate::scenario::ObjectName;
use words::Words;
pub(crate) use words::duration;

/// The verbs, for messages.
const VERBS: &str = "apply, delete, scale, set, wait, until, sold-out, interrupt, advise, price, reserve, boot, crash, expect";

/// An `until` that names no limit waits this long.
const PATIENCE: Duration = Duration::minutes(60);

/// A story.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Story {
    /// Its lines, in order; comments and empty lines are not among them.
    pub lines: Vec<Line>,
}

/// One line of a story.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Its number in the file, from one.
    pub number: usize,
    /// Its text, without comment.
    pub text: String,
    /// What it says.
    pub verb: Verb,
}

/// What a line says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verb {
    /// Create or replace the objects of files.
    Apply(Vec<String>),
    /// Delete an object.
    Delete(ObjectName),
    /// Change how many pods a workload has.
    Scale(ObjectName, u32),
    /// Change one field of an object.
    Set {
        /// The object.
        object: ObjectName,
        /// The field's path, such as `spec.limits.cpu`.
        path: String,
        /// Its new value.
        value: String,
    },
    /// Let time pass.
    Wait(Duration),
    /// Let time pass until something is true.
    Until {
        /// What.
        condition: Condition,
        /// For how long at most.
        within: Duration,
    },
    /// Offerings cannot be bought.
    SoldOut {
        /// Of this capacity type.
        capacity_type: CapacityType,
        /// Of this type; all when `None`.
        instance_type: Option<String>,
        /// In this zone; all when `None`.
        zone: Option<String>,
        /// For how long; for ever when `None`.
        lasting: Option<Duration>,
    },
    /// EC2 takes an instance back, two minutes from now.
    Interrupt(Target),
    /// EC2 recommends to leave an instance.
    Advise(Target),
    /// A price changes.
    Price {
        /// Of this capacity type.
        capacity_type: CapacityType,
        /// Of this type.
        instance_type: String,
        /// In this zone.
        zone: String,
        /// The new price of an hour.
        price: Micros,
    },
    /// A capacity reservation holds so many instances.
    Reserve {
        /// `cr-…`.
        id: String,
        /// How many, those that run in it among them.
        instances: u32,
    },
    /// How long instances bought from now on take to join; `None` is never.
    Boot(Option<Duration>),
    /// The controller stops at once and starts again, knowing nothing.
    Crash,
    /// The output must have a line with this text.
    Expect(String),
}

/// What an `until` waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// Every workload has all its pods and every pod runs or has ended.
    PodsRunning,
    /// Exactly so many pods have no node.
    PodsPending(usize),
    /// Exactly so many nodes are there.
    Nodes(usize),
    /// Nothing is pending that fits, nothing in flight, the plan is empty, no timer is due.
    Settled,
}

impl std::fmt::Display for Condition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::PodsRunning => f.write_str("pods running"),
            Self::PodsPending(count) => write!(f, "pods pending {count}"),
            Self::Nodes(count) => write!(f, "nodes {count}"),
            Self::Settled => f.write_str("settled"),
        }
    }
}

/// Whose instance is taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The node of this name.
    Node(String),
    /// The oldest node.
    Oldest,
    /// The oldest node of this capacity type.
    Capacity(CapacityType),
}

/// A line that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("story line {number}: cannot read {text:?}: {why}")]
pub struct StoryError {
    /// The line's number, from one.
    pub number: usize,
    /// Its text.
    pub text: String,
    /// What is wrong and what would be right.
    pub why: String,
}

impl Story {
    /// Reads a story.
    ///
    /// # Errors
    /// On the first line that says nothing a story can say.
    pub fn parse(text: &str) -> Result<Self, StoryError> {
        let mut lines = Vec::new();
        for (at, raw) in text.lines().enumerate() {
            let text = without_comment(raw).trim();
            if text.is_empty() {
                continue;
            }
            let verb = verb(text).map_err(|why| StoryError { number: at + 1, text: text.to_owned(), why })?;
            lines.push(Line { number: at + 1, text: text.to_owned(), verb });
        }
        Ok(Self { lines })
    }

    /// The story of a directory without one: apply these files and wait until all is settled.
    #[must_use]
    pub fn apply_all(files: &[String]) -> Self {
        let until = Verb::Until { condition: Condition::Settled, within: PATIENCE };
        let verbs = [(format!("apply {}", files.join(" ")), Verb::Apply(files.to_vec())), ("until settled".to_owned(), until)];
        let lines = verbs.into_iter().enumerate().map(|(at, (text, verb))| Line { number: at + 1, text, verb }).collect();
        Self { lines }
    }
}

/// A comment starts the line or stands behind a space, so that `#` may be part of a word.
fn without_comment(line: &str) -> &str {
    let mut before = ' ';
    for (at, char) in line.char_indices() {
        if char == '#' && before.is_whitespace() {
            return &line[..at];
        }
        before = char;
    }
    line
}

fn verb(text: &str) -> Result<Verb, String> {
    let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let mut words = Words::new(rest);
    let verb = match first {
        "apply" => Verb::Apply(words.files()?),
        "delete" => Verb::Delete(words.object("delete deployment/inflate")?),
        "scale" => {
            let object = words.object("scale deployment/inflate 5")?;
            if !matches!(object.kind, crate::scenario::ObjectKind::Workload(_)) {
                return Err(format!("a {} cannot be scaled; scale a workload, such as deployment/inflate", object.kind.name()));
            }
            Verb::Scale(object, words.count("how many pods", "scale deployment/inflate 5")?)
        }
        "set" => words.set()?,
        "wait" => Verb::Wait(words.duration("wait 90s")?),
        "until" => words.until(PATIENCE)?,
        "sold-out" => words.sold_out()?,
        "interrupt" => Verb::Interrupt(words.target("interrupt oldest")?),
        "advise" => Verb::Advise(words.target("advise spot")?),
        "price" => words.price()?,
        "reserve" => words.reserve()?,
        "boot" => Verb::Boot(words.boot()?),
        "crash" => Verb::Crash,
        "expect" => return words.expect(),
        other => return Err(format!("{other:?} is no verb; a line begins with one of {VERBS}")),
    };
    words.end()?;
    Ok(verb)
}

#[cfg(test)]
#[path = "../tests_unit/story.rs"]
mod tests;
