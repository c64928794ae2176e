//! `whittle simulate` and `whittle explain`: runs a story and shows what came of it.
//! What must not enter: what happens in it; that is the simulation's and the engine's.

mod json;
mod progress;
mod report;
mod timeline;

use std::io::Write;

use whittle_model::{Settings, Timestamp};
use whittle_sim::{Ending, Observer, RunError, Simulation, TimelineEvent, Weather};

use crate::args::{Explain, Simulate, World};
use crate::failure::{End, Failure};
use crate::input;
use crate::out::{WARN, styled, wrapped};
use json::Stream;
use progress::Progress;
use report::Report;
use timeline::Timeline;

/// Runs the story of a directory and prints the report, or the JSON lines.
///
/// # Errors
/// When the input is wrong, a line of the story cannot be done, or the answer cannot be written.
pub fn run(args: &Simulate, out: &mut dyn Write, err: &mut dyn Write) -> Result<End, Failure> {
    let input = input::read(&args.world)?;
    let (remarks, partial) = (input.remarks.clone(), input.partial);
    let mut timeline = Timeline::default();
    let mut stream = args.json.then(|| Stream::new(&mut *out));
    let (mut simulation, outcome) = play(&args.world, input, &mut |at, event| {
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
    conclude(outcome, &text, partial, err)
}

/// Runs the story of a directory and says why something in it is as it is.
///
/// # Errors
/// When the input is wrong, a line of the story cannot be done, or nothing has the name asked for.
pub fn explain(args: &Explain, out: &mut dyn Write, err: &mut dyn Write) -> Result<End, Failure> {
    let input = input::read(&args.world)?;
    let partial = input.partial;
    let (mut simulation, outcome) = play(&args.world, input, &mut |_, _| {});
    match outcome {
        // A pod that stays pending is the very thing that is asked about.
        Err(error @ RunError::Never { .. }) => writeln!(err, "{} {error}", styled(WARN, "note:"))?,
        Err(error) => return Err(Failure::Usage(error.to_string())),
        Ok(_) => {}
    }
    let subject = host(&simulation.summary(), &args.subject);
    for line in simulation.explain(&subject).map_err(Failure::Usage)? {
        for part in wrapped(&line, 0, 2) {
            writeln!(out, "{part}")?;
        }
    }
    Ok(if partial { End::Partial } else { End::Done })
}

/// The node whose host this names without its domain, or what was written.
fn host(summary: &whittle_sim::Summary, written: &str) -> String {
    let named = |name: &&str| name.split_once('.').is_some_and(|(host, _)| host == written);
    summary.nodes.iter().map(|node| node.name.as_str()).find(named).unwrap_or(written).to_owned()
}

/// A run, with the simulation as it stands at its end.
type Played = (Simulation, Result<Ending, RunError>);

fn play(world: &World, input: input::Input, hear: &mut dyn FnMut(Timestamp, &TimelineEvent)) -> Played {
    let settings = Settings {
        packing: world.packing.into(),
        nomination: world.nomination.into(),
        kubernetes_minor: world.kubernetes,
        compare_policies: input.chains.is_some(),
        ..Settings::default()
    };
    let mut library = input.library;
    let mut simulation = Simulation::new(input.scenario, settings, world.market.seed, Weather::calm());
    if let Some(chains) = input.chains {
        simulation = simulation.with_scorer(Box::new(chains));
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
