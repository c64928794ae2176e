//! Pods are bound where they were planned: the scheduler is told, and follows.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};

use crate::kube::{name, text};
use crate::stage::Stage;
use crate::wait::until;

const PODS: usize = 24;

pub(super) fn tell(stage: &Stage<'_>) -> Result<()> {
    let _controller = stage.controller()?;
    stage.apply(include_str!("../../manifests/class.yaml"))?;
    // Sizes that fit each other's nodes, so that another scheduler's choice would be another one.
    stage.apply(include_str!("../../manifests/sizes.yaml"))?;
    until("all pods run", 120, || stage.bed.kube.all_run("story=sizes", PODS))?;
    until("the books balance", 30, || stage.books_balance(None))?;

    let claims = stage.claims()?;
    let nodes: BTreeMap<String, &str> =
        claims.iter().map(|claim| (format!("nodeclaim/{}", name(claim)), text(claim, "/status/nodeName"))).collect();
    ensure!(nodes.len() > 1, "one node holds all pods; that tells nothing");
    let mut elsewhere = Vec::new();
    for pod in stage.bed.kube.pods("story=sizes")? {
        let events = stage.bed.kube.events("Pod", name(&pod))?;
        let planned = events.iter().find_map(|event| event.strip_prefix("Nominated: Pod should schedule on: "));
        let planned = planned.with_context(|| format!("pod {} was not nominated: {events:?}", name(&pod)))?;
        let bound = text(&pod, "/spec/nodeName");
        let wanted = nodes.get(planned).copied().unwrap_or_else(|| planned.trim_start_matches("node/"));
        if bound != wanted {
            elsewhere.push(format!("{} was planned on {planned} ({wanted}) and is on {bound}", name(&pod)));
        }
    }
    ensure!(elsewhere.is_empty(), "{} of {PODS} pods are elsewhere: {}", elsewhere.len(), elsewhere.join("; "));
    Ok(())
}
