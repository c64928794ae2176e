//! The command `whittle`: reads manifests, runs the engine in a simulated world, and shows what comes
//! of it; lists instance types; converts old manifests; writes CRDs; makes and tries scoring policies.
//!
//! What must not enter: AWS and Kubernetes clients, decisions. What is decided is the engine's; here
//! words go in and words come out.

mod args;
mod convert;
mod crds;
mod failure;
mod gates;
mod input;
mod journal;
mod market;
mod out;
mod policy;
mod replay;
mod simulate;
mod types;

use std::io::{BufWriter, Write};
use std::process::ExitCode;

use anstream::{AutoStream, ColorChoice};
use clap::Parser;

use crate::args::{Cli, Command};
use crate::failure::{BAD_INPUT, End, Failure};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let choice = if cli.no_color { ColorChoice::Never } else { ColorChoice::Auto };
    let mut stdout = BufWriter::new(AutoStream::new(std::io::stdout().lock(), choice));
    let mut stderr = AutoStream::new(std::io::stderr().lock(), choice);
    let answer = run(&cli.command, &mut stdout, &mut stderr).and_then(|end| Ok(stdout.flush().map(|()| end)?));
    match answer {
        Ok(end) => end.into(),
        Err(failure) if failure.is_closed_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            // When even this cannot be told, the exit code is all that is left to say.
            let _ = stdout.flush();
            let _ = writeln!(stderr, "{} {failure}", out::styled(out::BAD, "error:"));
            ExitCode::from(BAD_INPUT)
        }
    }
}

fn run(command: &Command, out: &mut dyn Write, err: &mut dyn Write) -> Result<End, Failure> {
    match command {
        Command::Types(args) => types::run(args, out),
        Command::Convert(args) => convert::run(args, out, err),
        Command::Crds(args) => crds::run(args, out, err),
        Command::Simulate(args) => simulate::run(args, out, err),
        Command::Explain(args) if args.journal => replay::explain(args, out, err),
        Command::Explain(args) => simulate::explain(args, out, err),
        Command::Replay(args) => replay::run(args, out),
        Command::Policy(command) => policy::run(command, out, err),
    }
}
