//! `whittle policy check`: what a component is, wants, and whether it runs.

use std::io::{self, Write};

use serde_json::Value;
use whittle_model::policy::{AskerColumn, Column, Hook, MixRowColumn, MoveKind, Setup};
use whittle_policy::{Configured, Judge, Limits, Module};

use super::docs;
use super::source::{self, Modules};
use crate::args::CheckPolicy;
use crate::failure::{End, Failure};
use crate::out::{GOOD, HEAD, WARN, styled, wrapped};

/// Loads a component, configures it and tries it once.
///
/// # Errors
/// When it is no policy, does not take the configuration, or fails.
pub fn run(args: &CheckPolicy, out: &mut dyn Write) -> Result<End, Failure> {
    let module = Modules::new()?.named(&args.policy)?;
    let manifest = module.manifest();
    writeln!(out, "{}", styled(HEAD, &format!("{} {}", manifest.name, manifest.version)))?;
    field(out, "digest", module.digest())?;
    field(out, "imports", "none: it is a pure function of its tables")?;
    field(out, "about", &docs::first_sentence(&manifest.documentation))?;
    let config = source::config(args.config.as_deref())?;
    match (configure(&module, &config), &args.config) {
        (Ok(policy), _) => tried(&policy, args.config.is_some(), out)?,
        (Err(error), Some(path)) => return Err(Failure::Usage(format!("{}: {error}", path.display()))),
        (Err(error), None) => {
            let why = format!("it does not run with an empty config ({error}): give one by --config FILE to see what it asks for");
            field(out, "not tried", &styled(WARN, &why))?;
        }
    }
    writeln!(out, "\n{}", styled(HEAD, "Configuration (JSON schema)"))?;
    docs::schema(&manifest.schema, out)?;
    Ok(End::Done)
}

fn configure(module: &Module, config: &Value) -> Result<Configured, String> {
    module.configure(&module.manifest().name, config, Limits::default()).map_err(|error| error.to_string())
}

fn field(out: &mut dyn Write, name: &str, text: &str) -> io::Result<()> {
    for line in wrapped(&format!("{name:<10} {text}"), 2, 13) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn names<C: Column>(columns: &[C]) -> String {
    columns.iter().map(Column::name).collect::<Vec<_>>().join(", ")
}

/// What a configured policy asks for, and one round of it.
fn tried(policy: &Configured, configured: bool, out: &mut dyn Write) -> Result<(), Failure> {
    let setup = policy.setup();
    for (table, columns) in wanted(setup) {
        field(out, "wants", &format!("of {table}: {columns}"))?;
    }
    if !setup.wants.mix_keys.is_empty() {
        field(out, "mix keys", &setup.wants.mix_keys.join(", "))?;
    }
    if setup.wants.pricing.is_some() {
        let again = if setup.wants.depends_on_mix { "; asked again as a plan grows" } else { "" };
        field(out, "answers", &format!("{}: {}{again}", Hook::PriceCandidates, names(&setup.prices)))?;
    }
    if setup.wants.judging.is_some() {
        let kinds = if setup.kinds.len() == MoveKind::ALL.len() {
            "of every kind".to_owned()
        } else {
            format!("of kind {}", setup.kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", "))
        };
        field(out, "answers", &format!("{}: {}, moves {kinds}", Hook::ScoreMoves, names(&setup.scores)))?;
    }
    for reason in &setup.reasons {
        field(out, "may veto", reason)?;
    }
    let fuel = policy.smoke().map_err(|failure| Failure::Usage(format!("a round over one row of zeros failed: {failure}")))?;
    let (most, with) = (Limits::default().fuel, if configured { "this config" } else { "an empty config" });
    let percent = fuel.saturating_mul(100).div_ceil(most);
    field(out, "smoke run", &format!("{}, with {with}", styled(GOOD, "passed")))?;
    field(
        out,
        "fuel",
        &format!("{} to configure, {fuel} for the whole round: {percent} % of the {most} granted", policy.configure_fuel()),
    )?;
    Ok(())
}

/// Tables and the columns wanted of them.
fn wanted(setup: &Setup) -> Vec<(&'static str, String)> {
    let wants = &setup.wants;
    let mut all = vec![("round", names(&wants.round))];
    let (mut askers, mut mix): (Vec<AskerColumn>, Vec<MixRowColumn>) = (Vec::new(), Vec::new());
    if let Some(pricing) = &wants.pricing {
        all.push(("candidates", names(&pricing.candidates)));
        askers.extend(pricing.askers.iter().cloned());
        mix.extend(pricing.mix.iter().cloned());
    }
    if let Some(judging) = &wants.judging {
        all.push(("moves", names(&judging.moves)));
        all.push(("move-nodes", names(&judging.nodes)));
        all.push(("move-pods", names(&judging.pods)));
        all.push(("move-pools", names(&judging.pools)));
        askers.extend(judging.askers.iter().filter(|column| !askers.contains(column)).cloned().collect::<Vec<_>>());
        mix.extend(judging.mix.iter().filter(|column| !mix.contains(column)).cloned().collect::<Vec<_>>());
    }
    all.push(("askers", names(&askers)));
    all.push(("mix", names(&mix)));
    all.retain(|(_, columns)| !columns.is_empty());
    all
}
