//! `whittle simulate --compare` and `--seeds`: a story played by each side, with one seed or many, and what it came to.
//!
//! What must not enter: what a side does, and how figures look.

use std::io::Write;

use whittle_model::{Duration, Settings, Timestamp};
use whittle_sim::{Figures, RunError, Sample, Simulation, Story, Weather, karpenter};

use super::figures::{Seed, Side, say, seed_line, summary_line};
use super::{scorer, settings};
use crate::args::{Simulate, World};
use crate::failure::{End, Failure};
use crate::input::{self, Files, Input};
use crate::out::{BAD, styled};

/// How long a cluster is given to come to rest after the story.
const REST: &str = "until settled within 4h";

/// So many samples show the course of a run.
const SAMPLES: i64 = 8;

/// One side as it stands.
struct Run {
    simulation: Simulation,
    /// What of the story did not come true, line by line.
    untrue: Vec<String>,
}

/// Plays the story and prints the table, or the JSON lines.
///
/// # Errors
/// When the input is wrong, a line of the story cannot be done, or the answer cannot be written.
pub fn run(args: &Simulate, out: &mut dyn Write, err: &mut dyn Write) -> Result<End, Failure> {
    let files = Files::read(&args.world.dir)?;
    let (mut seeds, mut remarks, mut partial, mut assumptions) = (Vec::new(), Vec::new(), false, None);
    for seed in (args.world.market.seed..).take(usize::try_from(args.seeds.unwrap_or(1)).unwrap_or(usize::MAX)) {
        let mut world = args.world.clone();
        world.market.seed = seed;
        let input = input::judge(files.clone(), &world)?;
        (remarks, partial) = (input.remarks.clone(), input.partial);
        let mut ours = ours(&world, input)?;
        let peer = args.compare.map(|_| peer(&world, input::judge(files.clone(), &world)?)).transpose()?;
        assumptions.get_or_insert_with(|| ours.simulation.summary().assumptions);
        let seed = measured(seed, ours, peer)?;
        if args.json {
            seed_line(out, &seed)?;
        }
        seeds.push(seed);
    }
    if args.json {
        summary_line(out, &seeds, &remarks, partial)?;
    } else if let Some(assumptions) = &assumptions {
        say(out, &args.world, assumptions, &seeds, &remarks)?;
    }
    out.flush()?;
    let untrue: Vec<String> =
        seeds.iter().flat_map(|seed| seed.ours.untrue.iter().map(|why| format!("seed {}: {why}", seed.seed))).collect();
    for why in &untrue {
        writeln!(err, "{} {why}", styled(BAD, "error:"))?;
    }
    Ok(match (untrue.is_empty(), partial) {
        (false, _) => End::Untrue,
        (true, true) => End::Partial,
        (true, false) => End::Done,
    })
}

fn ours(world: &World, mut input: Input) -> Result<Run, Failure> {
    let chains = scorer(input.chains.take());
    let with = |simulation: Simulation| match chains {
        Some(chains) => simulation.with_scorer(chains),
        None => simulation,
    };
    let play = Play { settings: settings(world), seed: world.market.seed, strict: true };
    play.run(input, with)
}

/// Karpenter knows no policies, and a line that names what only our run has is no mistake of the story.
fn peer(world: &World, input: Input) -> Result<Run, Failure> {
    let play = Play { settings: karpenter(&settings(world)), seed: world.market.seed, strict: false };
    play.run(input, |simulation| simulation)
}

/// How a story is played.
struct Play {
    settings: Settings,
    seed: u64,
    /// Whether a line that cannot be done ends it.
    strict: bool,
}

impl Play {
    /// Plays every line of a story, also after one that does not come true, and lets things come to rest.
    fn run(self, input: Input, with: impl FnOnce(Simulation) -> Simulation) -> Result<Run, Failure> {
        let Input { scenario, story, mut library, .. } = input;
        let mut run = Run { simulation: with(Simulation::new(scenario, self.settings, self.seed, Weather::calm())), untrue: Vec::new() };
        for line in story.lines {
            match run.simulation.run(&Story { lines: vec![line] }, &mut library, &mut ()) {
                Ok(_) => {}
                Err(error @ RunError::Never { .. }) => run.untrue.push(error.to_string()),
                Err(error @ RunError::Line { .. }) if !self.strict => run.untrue.push(error.to_string()),
                Err(error) => return Err(Failure::Usage(error.to_string())),
            }
        }
        let rest = Story::parse(REST).map_err(|error| Failure::Usage(error.to_string()))?;
        match run.simulation.run(&rest, &mut library, &mut ()) {
            Ok(_) => {}
            Err(RunError::Never { within, why, .. }) => run.untrue.push(format!("it did not come to rest within {within}: {why}")),
            Err(error) => return Err(Failure::Usage(error.to_string())),
        }
        Ok(run)
    }
}

/// The figures of both at the later of their ends.
fn measured(seed: u64, mut ours: Run, mut peer: Option<Run>) -> Result<Seed, Failure> {
    let end = peer.as_ref().map_or(ours.simulation.now(), |peer| peer.simulation.now().max(ours.simulation.now()));
    // Whole seconds that divide into samples, so that the course ends where the figures do.
    let every = Duration::seconds((end.0 + 1000 * SAMPLES - 1).div_euclid(1000 * SAMPLES).max(1));
    let end = Timestamp(every.0 * SAMPLES);
    let ours = side(&mut ours, end, every)?;
    let peer = peer.as_mut().map(|run| side(run, end, every)).transpose()?;
    Ok(Seed { seed, end, ours, peer })
}

fn side(run: &mut Run, end: Timestamp, every: Duration) -> Result<Side, Failure> {
    run.simulation.advance(end).map_err(|error| Failure::Usage(error.to_string()))?;
    let figures: Figures = run.simulation.figures();
    let course: Vec<Sample> = run.simulation.samples(every, SAMPLES);
    Ok(Side { figures, course, untrue: std::mem::take(&mut run.untrue) })
}
