//! Stories on real servers: a Kubernetes control plane, an AWS server, and the controller as it is shipped.
//!
//! What must not enter: what the controller's crates know of themselves; everything is seen from outside.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "printing is what this program is for")]

mod audit;
mod aws;
mod bed;
mod controller;
mod iam;
mod kube;
mod measure;
mod process;
mod scale;
mod stage;
mod stories;
mod wait;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use clap::{Parser, Subcommand};

use bed::{Bed, NotToBeHad};
use controller::Binaries;
use iam::Judge;
use stage::Stage;
use stories::{STORIES, Story};

/// Stories of the controller on a real Kubernetes control plane and an AWS server, all on this machine.
#[derive(Debug, Parser)]
#[command(name = "whittle-e2e", version, disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// Seconds from an instance to its Node
    #[arg(long, global = true, default_value_t = 2)]
    boot: u32,
    /// By what limits are multiplied: more than 1 on a slow or busy machine
    #[arg(long, global = true, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    patience: u64,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Tell the stories, one after another; one that fails is told once more, and that is said
    Run {
        /// Some of them; all when empty
        names: Vec<String>,
        /// Keep the folder of the bed also when all is well
        #[arg(long)]
        keep: bool,
        /// Tell no story again
        #[arg(long)]
        once: bool,
    },
    /// Build the servers where they are missing; exit code 3 when this machine cannot have them
    Build,
    /// Print the names of the stories
    List,
    /// Start a bed, leave it running, and print its environment
    Up {
        /// Where it keeps its data; below the folder for temporary files when not given
        dir: Option<PathBuf>,
    },
    /// End a bed that `up` left running
    Down {
        /// The folder of `up`
        dir: Option<PathBuf>,
    },
    /// Ask for N pods on a node each, and print what that takes
    Scale {
        /// How many nodes
        nodes: u32,
        /// How many may go at a time; the default is that of a NodePool that says nothing
        #[arg(long, default_value = "10%")]
        budget: String,
    },
    /// Play stories of the simulation in real time, and lay what they came to beside the simulation's model of Karpenter
    Measure {
        /// Folders with a `story` of `apply`, `scale`, `delete` and `wait`, as `whittle simulate` takes them
        #[arg(required = true)]
        stories: Vec<PathBuf>,
        /// The controller that plays; Whittle's own when not given
        #[arg(long)]
        program: Option<PathBuf>,
    },
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("whittle-e2e: {error:#}");
            ExitCode::from(if error.is::<NotToBeHad>() { 3 } else { 2 })
        }
    }
}

fn say(what: &str) {
    eprintln!("whittle-e2e: {what}");
}

fn standing(dir: &Option<PathBuf>) -> PathBuf {
    dir.clone().unwrap_or_else(|| std::env::temp_dir().join("whittle-bed"))
}

fn passing() -> PathBuf {
    std::env::temp_dir().join(format!("whittle-e2e-{}", std::process::id()))
}

fn run(arguments: &Arguments) -> Result<bool> {
    process::end_all_when_told()?;
    wait::be_patient(arguments.patience);
    match &arguments.command {
        Command::List => STORIES.iter().for_each(|story| println!("{:12} {}", story.name, story.tells)),
        Command::Run { names, keep, once } => return tell(&chosen(names)?, arguments.boot, *keep, *once),
        Command::Build => Bed::build(&say)?,
        Command::Up { dir } => {
            let dir = standing(dir);
            ensure!(!Bed::is_left(&dir), "a bed runs already in {}; `down` ends it", dir.display());
            for (name, value) in Bed::start(&dir, arguments.boot, &say)?.leave()? {
                println!("export {name}={value}");
            }
        }
        Command::Down { dir } => {
            let dir = standing(dir);
            Bed::end_left(&dir)?;
            std::fs::remove_dir_all(&dir)?;
        }
        Command::Scale { nodes, budget } => {
            figures(arguments.boot, |stage| {
                scale::figures(stage, *nodes, budget).map(|lines| lines.iter().for_each(|line| println!("{line}")))
            })?;
        }
        Command::Measure { stories, program } => figures(arguments.boot, |stage| {
            let program = program.clone().unwrap_or_else(|| stage.binaries().controller.clone());
            measure::all(stage, stories, &program.canonicalize()?, &|line| println!("{line}"))
        })?,
    }
    Ok(true)
}

/// Measures something on a bed of its own.
fn figures(boot: u32, take: impl FnOnce(&Stage<'_>) -> Result<()>) -> Result<()> {
    let dir = passing();
    let bed = Bed::start(&dir, boot, &say)?;
    let stage = Stage::set(&bed, Binaries::find(&bed)?)?;
    take(&stage).with_context(|| format!("logs are in {}", dir.display()))?;
    drop(bed);
    Ok(std::fs::remove_dir_all(&dir)?)
}

fn chosen(names: &[String]) -> Result<Vec<&'static Story>> {
    if names.is_empty() {
        return Ok(STORIES.iter().collect());
    }
    let find = |name: &String| match STORIES.iter().find(|story| story.name == name) {
        Some(story) => Ok(story),
        None => bail!("there is no story {name:?}; `list` prints their names"),
    };
    names.iter().map(find).collect()
}

/// Tells stories on one bed. Says whether all are true.
fn tell(stories: &[&Story], boot: u32, keep: bool, once: bool) -> Result<bool> {
    let dir = passing();
    let started = Instant::now();
    let bed = Bed::start(&dir, boot, &say)?;
    let stage = Stage::set(&bed, Binaries::find(&bed)?)?;
    println!("{:14} ok     {:5.0} s", "bed", started.elapsed().as_secs_f32());
    let mut judge = Judge::new(&bed.repository("examples/aws/policies"))?;
    let (mut failed, mut again) = (0, Vec::new());
    for story in stories {
        if told(&stage, story, story.name, &mut judge) {
            continue;
        }
        // These are many programs on a few cores: only what fails twice is taken for wrong, and what failed once is named.
        // When one has, the run has failed, and others need not be told twice.
        again.push(story.name);
        if once || failed > 0 || !told(&stage, story, &format!("{}-again", story.name), &mut judge) {
            failed += 1;
        }
    }
    if !permissions(&judge, stories.len() == STORIES.len()) {
        failed += 1;
    }
    drop(bed);
    println!("{} stories, {failed} FAILED, {:.0} s", stories.len(), started.elapsed().as_secs_f32());
    if !again.is_empty() {
        println!("failed at the first telling: {}", again.join(" "));
    }
    if !again.is_empty() || keep {
        println!("logs, journals and the audit log are in {}", dir.display());
    } else {
        std::fs::remove_dir_all(&dir)?;
    }
    Ok(failed == 0)
}

/// Whether a whole run needed every statement of the shipped IAM policies.
fn permissions(judge: &Judge, whole: bool) -> bool {
    let unused = judge.unused();
    let ok = !whole || unused.is_empty();
    let unused = if unused.is_empty() { "all used".to_owned() } else { format!("not used: {}", unused.join(", ")) };
    println!("{:14} {} {} questions; statements {unused}", "permissions", if ok { "ok    " } else { "FAILED" }, judge.judged());
    ok
}

/// Tells a story under a name, by which its logs are called, and clears the stage.
fn told(stage: &Stage<'_>, story: &Story, name: &str, judge: &mut Judge) -> bool {
    let started = Instant::now();
    stage.open(name);
    // A story that panics is a story that failed; the bed goes on.
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (story.run)(stage)));
    let outcome = outcome.unwrap_or_else(|_| Err(anyhow::anyhow!("it panicked")));
    let outcome = outcome.and_then(|()| judge.judge(&stage.bed.aws.records()?));
    let seconds = started.elapsed().as_secs_f32();
    match &outcome {
        Ok(()) => println!("{name:14} ok     {seconds:5.0} s"),
        Err(error) => println!("{name:14} FAILED {seconds:5.0} s  {error:#}"),
    }
    if outcome.is_err() {
        note(stage, name);
    }
    if let Err(error) = stage.clear() {
        println!("{name:14} the stage could not be cleared: {error:#}");
        return false;
    }
    outcome.is_ok()
}

/// Writes down what the cluster and AWS looked like when a story failed.
fn note(stage: &Stage<'_>, name: &str) {
    let dir: &Path = &stage.bed.dir;
    let objects = stage.bed.kube.kubectl(&[
        "get",
        "nodepools,ec2nodeclasses,scoringpolicies,nodeclaims,nodes,pods,events",
        "-A",
        "-o",
        "yaml",
        "--ignore-not-found",
    ]);
    let _ = std::fs::write(dir.join(format!("{name}-objects.yaml")), objects.unwrap_or_else(|error| format!("{error:#}")));
    let held = stage.bed.aws.told(&serde_json::json!({ "show": true }));
    let _ =
        std::fs::write(dir.join(format!("{name}-aws.json")), held.map_or_else(|error| format!("{error:#}"), |held| format!("{held:#}")));
}
