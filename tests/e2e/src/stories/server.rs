//! The API server ends in the midst of a scale-up and comes back: the controller goes on, the books balance.

use std::time::Duration;

use anyhow::{Result, ensure};

use crate::stage::Stage;
use crate::wait::until;

pub(super) fn tell(stage: &Stage<'_>) -> Result<()> {
    let mut controller = stage.controller()?;
    stage.walk_through()?;
    stage.apply(include_str!("../../manifests/apart.yaml"))?;
    stage.bed.kube.scale("apart", 6)?;
    until("there is a claim", 60, || {
        ensure!(!stage.claims()?.is_empty(), "there is no claim");
        Ok(())
    })?;
    stage.bed.restart_api_server(Duration::from_secs(2))?;
    // A leader that cannot renew its lease for ten seconds ends; then kubelet starts it again.
    if controller.is_alive().is_err() {
        ensure!(controller.log().contains("no longer leading"), "it ended for another reason: {}", controller.log());
        controller = stage.controller()?;
    }
    stage.pods_run("apart", 6, 120)?;
    until("the books balance", 45, || stage.books_balance(Some(6)))?;
    stage.bed.kube.scale("apart", 8)?;
    stage.pods_run("apart", 8, 90)?;
    until("the books balance", 45, || stage.books_balance(Some(8)))?;
    controller.is_alive()
}
