//! The controller: wires the doors, the engine and the policies together, and keeps the loop.
//!
//! What must not enter: any decision. What is bought, moved or ended is the engine's to say.

mod brain;
mod census;
mod claims;
mod classes;
mod clock;
mod drifts;
mod hands;
mod health;
mod http;
mod logs;
mod metrics;
mod orders;
mod policies;
mod pools;
mod process;
mod router;
mod run;
mod settings;
mod shelf;
mod status;
mod upkeep;
mod voice;

use std::process::ExitCode;

use clap::Parser as _;

use settings::Settings;

/// The commit this was built from, as the build was told.
const COMMIT: &str = match option_env!("WHITTLE_COMMIT") {
    Some(commit) => commit,
    None => "unknown",
};

fn main() -> ExitCode {
    let settings = Settings::parse();
    if let Err(why) = settings.check() {
        return refuse(&why);
    }
    let started = logs::start(&settings.log_level, settings.log_output_paths.contains("stderr"));
    if let Err(error) = started {
        return refuse(&format!("{error:#}"));
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return refuse(&format!("cannot start threads: {error}")),
    };
    match runtime.block_on(run::run(settings)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = voice::chain(error.as_ref()), "the controller ends");
            ExitCode::FAILURE
        }
    }
}

/// Says why nothing is started, where a person or a container's log sees it.
#[expect(clippy::print_stderr, reason = "there is no log yet")]
fn refuse(why: &str) -> ExitCode {
    eprintln!("whittle-controller: {why}");
    ExitCode::from(2)
}
