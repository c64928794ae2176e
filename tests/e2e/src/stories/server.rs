//! The API server ends in the midst of a scale-up and comes back, or has forgotten where a watch stood: the controller goes
//! on, the books balance.

use std::time::Duration;

use anyhow::{Result, ensure};

use crate::controller::Start;
use crate::stage::Stage;
use crate::wait::until;

pub(super) fn restart(stage: &Stage<'_>) -> Result<()> {
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

/// While the controller hangs, the cluster changes and the API server starts anew: its history begins after the revision at
/// which the controller's watches stood.
pub(super) fn expired(stage: &Stage<'_>) -> Result<()> {
    let mut controller = stage.controller_with(&Start { environment: &[("DISABLE_LEADER_ELECTION", "true")] })?;
    stage.walk_through()?;
    stage.apply(include_str!("../../manifests/apart.yaml"))?;
    stage.bed.kube.scale("apart", 3)?;
    stage.pods_run("apart", 3, 120)?;
    until("the books balance", 45, || stage.books_balance(Some(3)))?;

    controller.halt(true);
    stage.apply(include_str!("../../manifests/inflate.yaml"))?;
    stage.bed.kube.scale("inflate", 1)?;
    stage.bed.kube.scale("apart", 1)?;
    let pods = |app: &str, wanted: usize| {
        let found = stage.bed.kube.pods(&format!("app={app}"))?.len();
        ensure!(found == wanted, "there are {found} pods of {app}");
        Ok(())
    };
    until("pods came and went unseen", 60, || pods("inflate", 1).and_then(|()| pods("apart", 1)))?;
    stage.bed.restart_api_server(Duration::from_secs(1))?;
    stage.bed.kube.scale("apart", 5)?;
    until("more pods came unseen", 60, || pods("apart", 5))?;
    controller.halt(false);

    stage.pods_run("apart", 5, 180)?;
    stage.pods_run("inflate", 1, 60)?;
    until("the books balance", 60, || stage.books_balance(None))?;
    controller.is_alive()
}
