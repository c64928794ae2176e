//! What many nodes take. What must not enter: whether that is much.

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::{Result, ensure};
use serde_json::json;

use crate::audit::Write;
use crate::controller::Start;
use crate::stage::Stage;
use crate::wait::until;

/// Asks for `nodes` pods that exclude each other, then for none, and answers with the figures.
///
/// # Errors
/// When they do not come or go.
pub(crate) fn figures(stage: &Stage<'_>, nodes: u32, budget: &str) -> Result<Vec<String>> {
    stage.open("scale");
    let controller = stage.controller_with(&Start { environment: &[("DISABLE_LEADER_ELECTION", "true")] })?;
    stage.apply(include_str!("../manifests/class.yaml"))?;
    stage.apply(&include_str!("../manifests/pool-scale.yaml").replace("BUDGET", budget))?;
    stage.pool_is_ready("default")?;
    stage.apply(include_str!("../manifests/apart.yaml"))?;
    stage.bed.aws.told(&json!({ "zero": true }))?;
    let (audit, began, cpu) = (stage.bed.audit(), Instant::now(), controller.cpu_seconds());
    stage.bed.kube.scale("apart", nodes)?;
    let wanted = nodes as usize;
    stage.pods_run("apart", wanted, 600)?;
    let ready = began.elapsed();
    until("the books balance", 60, || stage.books_balance(Some(wanted)))?;
    let mut lines = vec![format!(
        "{nodes} pods ready after {:.1} s; controller {:.1} s CPU, {} MB memory at most",
        ready.as_secs_f32(),
        controller.cpu_seconds() - cpu,
        controller.peak_memory()? >> 20
    )];
    lines.push(writes(&audit.writes()?, nodes));
    lines.push(conflicts(&audit.conflicts()?));
    let calls = stage.bed.aws.calls()?;
    lines.push(format!("EC2 calls, with those of the joiner: {}", shown(calls.iter().map(|(call, n)| (call.as_str(), *n)))));
    let (began, cpu) = (Instant::now(), controller.cpu_seconds());
    stage.bed.kube.scale("apart", 0)?;
    until("the nodes are gone", 1200, || {
        let left = stage.bed.kube.nodes()?.len();
        ensure!(left == 0, "{left} are left");
        Ok(())
    })?;
    lines.push(format!(
        "back to no nodes after {:.0} s (budget {budget}, consolidateAfter 10 s); controller {:.1} s CPU, {} MB memory at most",
        began.elapsed().as_secs_f32(),
        controller.cpu_seconds() - cpu,
        controller.peak_memory()? >> 20
    ));
    Ok(lines)
}

fn writes(writes: &[Write], nodes: u32) -> String {
    let (events, others): (Vec<_>, Vec<_>) = writes.iter().filter(|write| write.code != 409).partition(|write| write.resource == "events");
    let a_node = |all: usize| all as f64 / f64::from(nodes.max(1));
    let kinds = |all: &[&Write]| {
        let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
        all.iter().for_each(|write| *kinds.entry(format!("{} {}", write.verb, write.resource)).or_default() += 1);
        shown(kinds.iter().map(|(kind, n)| (kind.as_str(), *n)))
    };
    let (writes, events) = (a_node(others.len()), a_node(events.len()));
    format!("API writes a node {writes:.1}: {}; events {events:.1}", kinds(&others))
}

/// A conflict with a writer of our own is our fault; one with others is theirs to make.
fn conflicts(all: &[(Write, String)]) -> String {
    let own = all.iter().filter(|(write, before)| *before == write.user).count();
    let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
    for (write, before) in all {
        let before = if before.is_empty() { "a writer that is not noted" } else { before };
        *kinds.entry(format!("{} {} after {before}", write.verb, write.resource)).or_default() += 1;
    }
    format!("conflicts {}, with writes of our own {own}: {}", all.len(), shown(kinds.iter().map(|(kind, n)| (kind.as_str(), *n))))
}

fn shown<'k>(counts: impl Iterator<Item = (&'k str, u64)>) -> String {
    let mut all: Vec<(&str, u64)> = counts.collect();
    all.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    all.iter().map(|(kind, n)| format!("{n} {kind}")).collect::<Vec<_>>().join(", ")
}
