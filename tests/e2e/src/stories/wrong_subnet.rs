//! An EC2NodeClass names a subnet that is not there: it says so itself, and nothing is launched; set right, it works.

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use crate::kube::{CLASSES, POOLS, condition};
use crate::stage::Stage;
use crate::wait::{stays, until};

pub(super) fn tell(stage: &Stage<'_>) -> Result<()> {
    let controller = stage.controller()?;
    let class = format!("{CLASSES}/default");
    stage.apply(&include_str!("../../manifests/walk-through.yaml").replacen(
        "karpenter.sh/discovery: \"${CLUSTER_NAME}\"",
        "Name: nowhere",
        1,
    ))?;
    stage.apply(include_str!("../../manifests/inflate.yaml"))?;
    stage.bed.kube.scale("inflate", 5)?;
    until("the class says that it has no subnets", 60, || {
        let class = stage.bed.kube.get(&class)?;
        for (kind, reason) in [("SubnetsReady", Some("SubnetsNotFound")), ("Ready", None)] {
            let found = condition(&class, kind).with_context(|| format!("there is no condition {kind}"))?;
            ensure!(found["status"] == "False" && reason.is_none_or(|reason| found["reason"] == reason), "{found}");
            ensure!(!found["message"].as_str().unwrap_or_default().is_empty(), "{found} has no message");
        }
        Ok(())
    })?;
    until("the pool says that its class is not ready", 30, || {
        let pool = stage.bed.kube.get(&format!("{POOLS}/default"))?;
        let ready = condition(&pool, "Ready").context("there is no condition Ready")?;
        ensure!(ready["status"] == "False", "{ready}");
        Ok(())
    })?;
    until("an event says so", 30, || {
        let events = stage.bed.kube.events("EC2NodeClass", "default")?;
        ensure!(events.iter().any(|event| event.to_lowercase().contains("subnet")), "the events are {events:?}");
        Ok(())
    })?;
    stays("nothing is launched", 8, || stage.is_empty())?;
    let calls = stage.bed.aws.calls()?;
    ensure!(!calls.contains_key("CreateFleet"), "CreateFleet was called {:?} times", calls.get("CreateFleet"));

    let right = json!({ "spec": { "subnetSelectorTerms": [{ "tags": { "karpenter.sh/discovery": crate::bed::CLUSTER } }] } });
    stage.bed.kube.patch(&class, &right)?;
    stage.pods_run("inflate", 5, 120)?;
    ensure!(!controller.log().is_empty(), "the controller says nothing");
    until("the books balance", 30, || stage.books_balance(None))
}
