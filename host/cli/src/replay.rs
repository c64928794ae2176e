//! `whittle replay`, and `whittle explain` over a journal. What must not enter: how a journal is read,
//! and whether what came out was right.

use std::io::Write;
use std::path::Path;

use serde::Serialize;
use whittle_engine::{Engine, Report};
use whittle_journal::{Difference, End as Outcome, Replay, Replayed, Summary, Witness};
use whittle_model::{Action, Event, Timestamp};

use crate::args::{Explain, Replay as Args};
use crate::failure::{End, Failure};
use crate::journal::{Loaded, Memory, clock, span};
use crate::out::{BAD, GOOD, HEAD, WARN, count, styled};
use crate::simulate::{why_not, write_lines};

/// Replays a journal and says whether the same actions came out.
///
/// # Errors
/// When the journal cannot be read, or the answer cannot be written.
pub fn run(args: &Args, out: &mut dyn Write) -> Result<End, Failure> {
    let mut judges = Loaded::default();
    let Replayed { summary, end, .. } = Replay::run(&args.dir, args.from, &mut judges, &mut Nobody)?;
    if args.json {
        json(&summary, &end, out)?
    } else {
        text(&args.dir, &summary, &end, out)?
    }
    match end {
        Outcome::Same => Ok(End::Done),
        Outcome::Different(_) => Ok(End::Untrue),
        Outcome::Unreadable(error) => {
            out.flush()?;
            Err((*error).into())
        }
    }
}

/// Says from a journal why something is as it is, or was.
///
/// # Errors
/// When the journal cannot be read at all, or nothing has the name asked for.
pub fn explain(args: &Explain, out: &mut dyn Write, err: &mut dyn Write) -> Result<End, Failure> {
    let mut memory = Memory::asking(args.not.as_deref());
    let mut judges = Loaded::default();
    let Replayed { summary, end, engine } = Replay::run(&args.world.dir, None, &mut judges, &mut memory)?;
    memory.end(engine);
    let until = clock(Timestamp(summary.to));
    match end {
        Outcome::Same => {}
        // What was told up to there is still true.
        Outcome::Different(difference) => {
            writeln!(
                err,
                "{} the replay parts from the journal at {until}, so this is as of then: {}",
                styled(WARN, "note:"),
                difference.place
            )?;
        }
        Outcome::Unreadable(error) => writeln!(err, "{} as of {until}, because {error}", styled(WARN, "note:"))?,
    }
    let subject = memory.host(&args.subject);
    let mut lines = memory.history.explain(&memory, &subject).map_err(|why| Failure::Usage(format!("{why} in the journal")))?;
    if let Some(instance_type) = &args.not {
        let against = |claim: &str| memory.against(claim).map(str::to_owned);
        lines.push(why_not(&memory.history, &memory, &subject, instance_type, &against));
    }
    write_lines(&lines, out)?;
    Ok(End::Done)
}

/// Nobody watches.
struct Nobody;

impl Witness for Nobody {
    fn restored(&mut self, _at: Timestamp, _engine: &Engine) {}

    fn told(&mut self, _at: Timestamp, _event: &Event) {}

    fn polled(&mut self, _at: Timestamp, _actions: &[Action], _reports: Vec<Report>, _engine: &Engine) {}
}

/// The answer for programs. A contract: names and units stay.
#[derive(Serialize)]
struct Answer<'a> {
    /// `same`, `different` or `unreadable`.
    end: &'a str,
    difference: Option<&'a Difference>,
    error: Option<String>,
    #[serde(flatten)]
    summary: &'a Summary,
}

fn json(summary: &Summary, end: &Outcome, out: &mut dyn Write) -> Result<(), Failure> {
    let (end, difference, error) = match end {
        Outcome::Same => ("same", None, None),
        Outcome::Different(difference) => ("different", Some(&**difference), None),
        Outcome::Unreadable(error) => ("unreadable", None, Some(error.to_string())),
    };
    let answer = Answer { end, difference, error, summary };
    serde_json::to_writer(&mut *out, &answer).map_err(|error| Failure::Write(error.into()))?;
    Ok(writeln!(out)?)
}

fn text(dir: &Path, summary: &Summary, end: &Outcome, out: &mut dyn Write) -> Result<(), Failure> {
    let last = summary.first_segment + summary.segments.saturating_sub(1);
    let which =
        if last == summary.first_segment { format!("segment {last}") } else { format!("segments {} to {last}", summary.first_segment) };
    let by = summary.versions.join(", ");
    let by = if by.is_empty() { String::new() } else { format!(", written by whittle {by}") };
    writeln!(out, "{} {which}, {}{by}", styled(HEAD, &format!("Journal {}:", dir.display())), span(summary.from, summary.to))?;
    let number = |number: u64, what: &str| count(usize::try_from(number).unwrap_or(usize::MAX), what);
    writeln!(
        out,
        "  {}, {}, {}, {}; decisions {}",
        number(summary.events, "event"),
        number(summary.polls, "poll"),
        number(summary.actions, "action"),
        number(summary.plans, "plan"),
        summary.digest
    )?;
    for (segment, byte) in &summary.cut {
        let note = format!("segment {segment} ends at byte {byte}: what follows was not written whole");
        writeln!(out, "  {}", styled(WARN, &note))?;
    }
    match end {
        Outcome::Same => writeln!(out, "  {}", styled(GOOD, "the same actions came out at every poll"))?,
        Outcome::Different(difference) => {
            let place = format!(
                "segment {}, poll {} at {}: {} differs",
                difference.segment,
                difference.poll,
                clock(Timestamp(difference.at)),
                difference.place
            );
            writeln!(out, "  {}", styled(BAD, &place))?;
            writeln!(out, "    recorded  {}", difference.recorded)?;
            writeln!(out, "    came out  {}", difference.replayed)?;
        }
        Outcome::Unreadable(_) => writeln!(out, "  {}", styled(WARN, "up to there the same actions came out"))?,
    }
    Ok(())
}
