//! The controller is killed at ten moments of a scale-up, and each time another takes its place: no instance is lost,
//! none is bought twice.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use crate::controller::Start;
use crate::stage::Stage;
use crate::wait::until;

/// From the first claim of a round to the end of the controller: before, in, and behind the call to EC2, which takes half a
/// second here, then around registration and initialization.
const MOMENTS: [u64; 10] = [0, 40, 120, 250, 400, 550, 700, 1000, 2200, 3000];
/// Nodes of a round.
const NODES: usize = 2;

pub(super) fn tell(stage: &Stage<'_>) -> Result<()> {
    // One replica: it need not wait until the lease of the one before has ended.
    let start = Start { environment: &[("DISABLE_LEADER_ELECTION", "true")] };
    stage.bed.aws.told(&json!({ "faults": [{ "action": "CreateFleet", "n": 10_000, "delay": 0.5 }] }))?;
    let mut controller = stage.controller_with(&start)?;
    stage.walk_through()?;
    stage.apply(include_str!("../../manifests/apart.yaml"))?;
    for (round, moment) in MOMENTS.into_iter().enumerate() {
        let before = stage.claims()?.len();
        let wanted = NODES * (round + 1);
        stage.bed.kube.scale("apart", u32::try_from(wanted)?)?;
        until("there is a new claim", 60, || {
            let claims = stage.claims()?.len();
            ensure!(claims > before, "there are still {claims} claims");
            Ok(())
        })?;
        std::thread::sleep(Duration::from_millis(moment));
        controller.crash();
        controller = stage.controller_with(&start)?;
        let told = || format!("killed {moment} ms behind the first claim");
        stage.pods_run("apart", wanted, 90).with_context(told)?;
        until("the books balance", 45, || stage.books_balance(Some(wanted))).with_context(told)?;
    }
    // What was taken for lost would be ended by and by.
    crate::wait::stays("the books balance", 20, || stage.books_balance(Some(NODES * MOMENTS.len())))?;
    controller.is_alive()
}
