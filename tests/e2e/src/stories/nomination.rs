//! Pods are bound where they were planned: the scheduler is told, and follows.

use std::process::Command;

use anyhow::{Result, ensure};

use crate::kube::name;
use crate::process::output;
use crate::stage::Stage;
use crate::wait::{patient, until};

const PODS: usize = 24;

pub(super) fn tell(stage: &Stage<'_>) -> Result<()> {
    let controller = stage.controller()?;
    stage.apply(include_str!("../../manifests/class.yaml"))?;
    // Sizes that fit each other's nodes, so that another scheduler's choice would be another one.
    stage.apply(include_str!("../../manifests/sizes.yaml"))?;
    until("all pods run", 120, || stage.bed.kube.all_run("story=sizes", PODS))?;
    until("the books balance", 30, || stage.books_balance(None))?;
    ensure!(stage.claims()?.len() > 1, "one node holds all pods; that tells nothing");
    let (pods, journal) = (stage.bed.kube.pods("story=sizes")?, controller.journal.clone());
    ensure!(controller.stop(), "the controller did not end when it was told to");
    let cli = stage.binaries().cli()?;
    let mut elsewhere = Vec::new();
    for pod in &pods {
        let told = output(Command::new(&cli).arg("explain").arg("--journal").arg(&journal).arg(name(pod)))?;
        if told.contains("kube-scheduler put it") || !told.contains(" on node ") {
            elsewhere.push(told);
        }
    }
    // On a machine that is busy enough kube-scheduler may still be trying pods when the next turn begins.
    let most = if patient(1) > 1 { PODS / 12 } else { 0 };
    ensure!(elsewhere.len() <= most, "{} of {PODS} pods are elsewhere:\n{}", elsewhere.len(), elsewhere.join("\n"));
    Ok(())
}
