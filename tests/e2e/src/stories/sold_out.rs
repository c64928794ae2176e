//! EC2 has no capacity, or no time: the first is remembered and gone around, the second is waited for and never taken
//! for the first.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use crate::kube::EVENTS;
use crate::stage::Stage;
use crate::wait::until;

pub(super) fn no_capacity(stage: &Stage<'_>) -> Result<()> {
    let _controller = stage.controller()?;
    stage.walk_through()?;
    stage.apply(include_str!("../../manifests/inflate.yaml"))?;
    stage.bed.kube.scale("inflate", 5)?;
    stage.pods_run("inflate", 5, 90)?;
    let first = stage.bed.aws.instances()?.pop().context("an instance was bought")?.instance_type;

    // What was chosen first is gone in all zones, and so is what each fleet fell back to, three times.
    let mut gone = BTreeSet::from([first]);
    for replicas in [10, 15, 20] {
        let pools: Vec<_> = gone.iter().map(|kind| ["*", kind.as_str(), "*"]).collect();
        stage.bed.aws.told(&json!({ "ice": pools }))?;
        stage.bed.kube.scale("inflate", replicas)?;
        stage.pods_run("inflate", replicas as usize, 90).with_context(|| format!("sold out are {gone:?}"))?;
        let bought: BTreeSet<String> = stage.bed.aws.instances()?.into_iter().map(|i| i.instance_type).collect();
        gone.extend(bought);
    }
    until("the books balance", 30, || stage.books_balance(None))?;

    // Nothing at all is left of what a pool allows: pods wait, nothing is lost, and they come when there is capacity.
    stage.bed.aws.told(&json!({ "ice": [["*", "*", "*"]] }))?;
    stage.bed.kube.scale("inflate", 40)?;
    until("a claim says that there is no capacity", 60, || {
        let events = stage.bed.kube.list(&format!("{EVENTS}?fieldSelector=reason=InsufficientCapacityError"))?;
        ensure!(!events.is_empty(), "there is no event InsufficientCapacityError");
        Ok(())
    })?;
    stage.bed.aws.told(&json!({ "ice": [] }))?;
    // What is sold out is left alone for three minutes; of the many types that the pool allows some never failed.
    stage.pods_run("inflate", 40, 260)?;
    until("the books balance", 30, || stage.books_balance(None))
}

pub(super) fn throttled(stage: &Stage<'_>) -> Result<()> {
    let controller = stage.controller()?;
    stage.walk_through()?;
    stage.apply(include_str!("../../manifests/inflate.yaml"))?;
    stage.bed.aws.told(&json!({ "zero": true, "faults": [{ "action": "CreateFleet", "n": 6, "code": "RequestLimitExceeded" }] }))?;
    stage.bed.kube.scale("inflate", 5)?;
    stage.pods_run("inflate", 5, 120)?;
    until("the books balance", 30, || stage.books_balance(None))?;
    let calls = stage.bed.aws.calls()?.get("CreateFleet").copied().unwrap_or_default();
    ensure!((7..=14).contains(&calls), "six refusals took {calls} calls of CreateFleet");
    let events = stage.bed.kube.list(&format!("{EVENTS}?fieldSelector=reason=InsufficientCapacityError"))?;
    ensure!(events.is_empty(), "throttling was taken for lack of capacity: {}", events[0]["message"]);
    ensure!(!controller.log().contains("sold out;"), "throttling made something sold out");
    Ok(())
}
