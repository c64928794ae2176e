//! `whittle simulate` and `whittle explain`: runs a story and shows what came of it.
//! What must not enter: what happens in it; that is the simulation's and the engine's.

mod against;
mod compare;
mod figures;
mod json;
mod progress;
mod report;
mod timeline;

use std::io::Write;

use whittle_journal::Limits;
use whittle_model::{Scorer, Settings, Timestamp};
use whittle_sim::{Ending, History, Observer, Recorder, RunError, Sight, Simulation, TimelineEvent, Weather};

use crate::args::{Explain, Simulate, World};
use crate::failure::{End, Failure};
use crate::input;
use crate::journal::Recording;
use crate::out::{WARN, styled, wrapped};
use against::Against;
use json::Stream;
use progress::Progress;
use report::Report;
use timeline::Timeline;

/// Runs the story of a directory and prints the report, or the JSON lines.
///
/// # Errors
/// When the input is wrong, a line of the story cannot be done, or the answer cannot be written.
pub fn run(args: &Simulate, out: &mut dyn Write, err: &mut dyn Write) -> Result<End, Failure> {
    if args.compare.is_some() || args.seeds.is_some() {
        return compare::run(args, out, err);
    }
    let mut input = input::read(&args.world)?;
    let (remarks, partial) = (input.remarks.clone(), input.partial);
    let mut timeline = Timeline::default();
    let mut stream = args.json.then(|| Stream::new(&mut *out));
    let (company, recording) = recorded(args, &mut input)?;
    let (mut simulation, outcome) = play(&args.world, input, company, &mut |at, event| {
        timeline.take(at, event);
        if let Some(stream) = &mut stream {
            stream.event(at, event);
        }
    });
    if let Some(failure) = stream.and_then(Stream::failure) {
        return Err(failure.into());
    }
    if let Err(RunError::Never { within, why, .. }) = &outcome {
        timeline.fail(simulation.now(), &format!("not true within {within}: {why}"));
    }
    let summary = simulation.summary();
    let report = Report { timeline: timeline.lines(), now: simulation.now(), summary: &summary, remarks: &remarks, partial };
    let text = report.text(&args.world)?;
    if args.json {
        json::summary(out, &summary, &remarks, partial)?;
    } else {
        out.write_all(&text)?;
    }
    out.flush()?;
    recording.map_or(Ok(()), Recording::close)?;
    conclude(outcome, &text, partial, err)
}

/// Runs the story of a directory and says why something in it is as it is.
///
/// # Errors
/// When the input is wrong, a line of the story cannot be done, or nothing has the name asked for.
pub fn explain(args: &Explain, out: &mut dyn Write, err: &mut dyn Write) -> Result<End, Failure> {
    let mut input = input::read(&args.world)?;
    let partial = input.partial;
    let against = args.not.as_deref().map(Against::new);
    let recorder = against.clone().map(|against| Box::new(against) as Box<dyn Recorder>);
    let company = Company { scorer: scorer(input.chains.take()), recorder };
    let (mut simulation, outcome) = play(&args.world, input, company, &mut |_, _| {});
    match outcome {
        // A pod that stays pending is the very thing that is asked about.
        Err(error @ RunError::Never { .. }) => writeln!(err, "{} {error}", styled(WARN, "note:"))?,
        Err(error) => return Err(Failure::Usage(error.to_string())),
        Ok(_) => {}
    }
    let subject = host(&simulation.summary(), &args.subject);
    let mut lines = simulation.explain(&subject).map_err(Failure::Usage)?;
    if let Some((against, instance_type)) = against.as_ref().zip(args.not.as_deref()) {
        lines.push(why_not(simulation.history(), &simulation, &subject, instance_type, &|claim| against.of(claim)));
    }
    write_lines(&lines, out)?;
    Ok(if partial { End::Partial } else { End::Done })
}

/// Writes what is told, in lines that fit.
///
/// # Errors
/// When it cannot be written.
pub fn write_lines(lines: &[String], out: &mut dyn Write) -> std::io::Result<()> {
    lines.iter().flat_map(|line| wrapped(line, 0, 2)).try_for_each(|line| writeln!(out, "{line}"))
}

/// Why the claim of a subject was not planned for an instance type, when `against` tells of it.
#[must_use]
pub fn why_not(
    history: &History,
    sight: &dyn Sight,
    subject: &str,
    instance_type: &str,
    against: &dyn Fn(&str) -> Option<String>,
) -> String {
    let claim = history.claim_behind(sight, subject);
    let why = claim.as_deref().and_then(against);
    match (why, claim.as_deref().and_then(|claim| history.choice(claim))) {
        (Some(why), Some((offering, price))) => format!("why not {instance_type}: {why}; the plan counted on {offering} at {price}/h"),
        (Some(why), None) => format!("why not {instance_type}: {why}"),
        (None, _) => format!("why not {instance_type}: {subject} has no node that was planned here"),
    }
}

/// The node whose host this names without its domain, or what was written.
fn host(summary: &whittle_sim::Summary, written: &str) -> String {
    let named = |name: &&str| name.split_once('.').is_some_and(|(host, _)| host == written);
    summary.nodes.iter().map(|node| node.name.as_str()).find(named).unwrap_or(written).to_owned()
}

/// A run, with the simulation as it stands at its end.
type Played = (Simulation, Result<Ending, RunError>);

/// Who is asked and who listens in a simulation.
struct Company {
    scorer: Option<Box<dyn Scorer>>,
    recorder: Option<Box<dyn Recorder>>,
}

fn scorer<S: Scorer + 'static>(scorer: Option<S>) -> Option<Box<dyn Scorer>> {
    scorer.map(|scorer| Box::new(scorer) as Box<dyn Scorer>)
}

/// Who takes part, and the journal if one is written.
fn recorded(args: &Simulate, input: &mut input::Input) -> Result<(Company, Option<Recording>), Failure> {
    let chains = input.chains.take();
    let Some(dir) = &args.journal else { return Ok((Company { scorer: scorer(chains), recorder: None }, None)) };
    let limits = Limits { segment_bytes: args.journal_segment, ..Limits::default() };
    let (recording, chains) = Recording::open(dir, limits, chains, std::mem::take(&mut input.policies))?;
    Ok((Company { scorer: scorer(chains), recorder: Some(Box::new(recording.clone())) }, Some(recording)))
}

/// What the arguments say.
fn settings(world: &World) -> Settings {
    let settings = Settings {
        packing: world.packing.into(),
        nomination: world.nomination.into(),
        kubernetes_minor: world.kubernetes,
        ..Settings::default()
    };
    world.gates.set(settings)
}

fn play(world: &World, input: input::Input, company: Company, hear: &mut dyn FnMut(Timestamp, &TimelineEvent)) -> Played {
    let settings = Settings { compare_policies: company.scorer.is_some(), ..settings(world) };
    let mut library = input.library;
    let mut simulation = Simulation::new(input.scenario, settings, world.market.seed, Weather::calm());
    if let Some(scorer) = company.scorer {
        simulation = simulation.with_scorer(scorer);
    }
    if let Some(recorder) = company.recorder {
        simulation = simulation.with_recorder(recorder);
    }
    let mut ear = Ear { hear, progress: Progress::new() };
    let outcome = simulation.run(&input.story, &mut library, &mut ear);
    ear.progress.clear();
    (simulation, outcome)
}

/// Hears what happens and shows how far the story has come.
struct Ear<'a> {
    hear: &'a mut dyn FnMut(Timestamp, &TimelineEvent),
    progress: Progress,
}

impl Observer for Ear<'_> {
    fn on(&mut self, at: Timestamp, event: &TimelineEvent) {
        (self.hear)(at, event);
    }

    fn progress(&mut self, now: Timestamp, nth: usize, lines: usize) {
        self.progress.show(now, nth, lines);
    }
}

/// The exit code, and on standard error what went against the story.
fn conclude(outcome: Result<Ending, RunError>, text: &[u8], partial: bool, err: &mut dyn Write) -> Result<End, Failure> {
    let done = if partial { End::Partial } else { End::Done };
    let ending = match outcome {
        Ok(ending) => ending,
        Err(error @ RunError::Line { .. }) => return Err(Failure::Usage(error.to_string())),
        Err(error @ (RunError::Never { .. } | RunError::Unsafe { .. })) => {
            writeln!(err, "{} {error}", styled(crate::out::BAD, "error:"))?;
            return Ok(End::Untrue);
        }
    };
    let plain = anstream::adapter::strip_bytes(text).into_vec();
    let plain = String::from_utf8_lossy(&plain);
    let shown = |text: &str| plain.lines().any(|line| !line.contains("> ") && line.contains(text));
    let missed: Vec<_> = ending.unmet.iter().filter(|expectation| !shown(&expectation.text)).collect();
    for expectation in &missed {
        let line = expectation.number;
        writeln!(err, "{} story line {line}: nothing says {:?}", styled(crate::out::BAD, "error:"), expectation.text)?;
    }
    Ok(if missed.is_empty() { done } else { End::Untrue })
}
