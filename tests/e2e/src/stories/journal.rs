//! What every controller of the run wrote down: run again, it comes to the same actions.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};
use serde_json::Value;

use crate::kube::text;
use crate::process::output;
use crate::stage::Stage;

pub(super) fn tell(stage: &Stage<'_>) -> Result<()> {
    if stage.journals().is_empty() {
        // Asked for alone: something must have happened.
        super::inflate::come(stage)?;
    }
    let cli = stage.binaries().cli()?;
    let mut wrong = Vec::new();
    for journal in stage.journals() {
        let replayed = output(Command::new(&cli).arg("replay").arg(&journal));
        let name = journal.file_name().unwrap_or_default().to_string_lossy().into_owned();
        wrong.extend(replayed.err().map(|why| format!("{name}: {why:#}")));
    }
    ensure!(wrong.is_empty(), "{} of {} journals replay otherwise:\n  {}", wrong.len(), stage.journals().len(), wrong.join("\n  "));
    stage.journals().iter().try_for_each(|journal| explains(stage, &cli, journal))
}

/// Every claim that was made has its story in the journal.
fn explains(stage: &Stage<'_>, cli: &Path, journal: &Path) -> Result<()> {
    let name = journal.file_name().unwrap_or_default().to_string_lossy();
    let log = std::fs::read_to_string(stage.bed.dir.join(format!("{name}.log")))?;
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    for line in lines.filter(|line| line["message"] == "created nodeclaim") {
        let claim = text(&line, "/NodeClaim");
        let told = output(Command::new(cli).arg("explain").arg("--journal").arg(journal).arg(claim))?;
        ensure!(told.contains(claim), "whittle explain {claim} of {name} does not speak of it:\n{told}");
    }
    Ok(())
}
