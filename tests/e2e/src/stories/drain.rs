//! A node that is told to go waits for what its pods are owed: PodDisruptionBudgets, until there is a deadline.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::audit::Audit;
use crate::kube::{CLAIMS, POOLS, name, text};
use crate::stage::Stage;
use crate::wait::{stays, until};

/// How long a pod may hold its node once there is a deadline.
const GRACE: u64 = 20;

pub(super) fn tell(stage: &Stage<'_>) -> Result<()> {
    let audit = stage.bed.audit();
    let _controller = stage.controller()?;
    stage.apply(include_str!("../../manifests/class.yaml"))?;
    stage.apply(include_str!("../../manifests/pool-moves.yaml"))?;
    stage.apply(include_str!("../../manifests/pdb-of-apart.yaml"))?;
    stage.apply(include_str!("../../manifests/apart.yaml"))?;
    stage.bed.kube.scale("apart", 2)?;
    stage.pods_run("apart", 2, 90)?;
    until("the books balance", 30, || stage.books_balance(Some(2)))?;

    // A person deletes the node; the budget allows no eviction.
    let (node, claim, pod) = victim(stage)?;
    stage.bed.kube.kubectl(&["delete", "node", &node, "--wait=false"])?;
    until("the claim goes with its node", 30, || {
        let claim = stage.bed.kube.get(&format!("{CLAIMS}/{claim}"))?;
        ensure!(!text(&claim, "/metadata/deletionTimestamp").is_empty(), "{} is not being deleted", name(&claim));
        Ok(())
    })?;
    stays("the pod stays while its budget says so", 20, || still_runs(stage, &pod))?;
    let events = stage.bed.kube.events("NodeClaim", &claim)?;
    ensure!(events.iter().any(|event| event.starts_with("FailedDraining: ")), "the events of {claim} are {events:?}");
    nothing_was_refused(&audit)?;
    let budget = "/apis/policy/v1/namespaces/default/poddisruptionbudgets/apart";
    stage.bed.kube.patch(budget, &json!({ "spec": { "minAvailable": 1 } }))?;
    is_gone(stage, &claim, &pod, 60)?;
    nothing_was_refused(&audit)?;

    // A claim that has a deadline does not wait beyond it.
    stage.bed.kube.patch(budget, &json!({ "spec": { "minAvailable": 2 } }))?;
    // That makes the other nodes drift, which is another story.
    let grace = json!({ "spec": {
        "template": { "spec": { "terminationGracePeriod": format!("{GRACE}s") } },
        "disruption": { "budgets": [{ "nodes": "0" }] },
    } });
    stage.bed.kube.patch(&format!("{POOLS}/default"), &grace)?;
    stage.bed.kube.scale("apart", 3)?;
    stage.pods_run("apart", 3, 90)?;
    until("the books balance", 60, || stage.books_balance(Some(3)))?;
    let all = stage.claims()?;
    let new = all.iter().find(|claim| text(claim, "/spec/terminationGracePeriod") == format!("{GRACE}s"));
    let new = name(new.context("the new claim has a deadline")?).to_owned();
    let pod = pod_of(stage, text(&stage.bed.kube.get(&format!("{CLAIMS}/{new}"))?, "/status/nodeName"))?;
    stage.bed.kube.patch(budget, &json!({ "spec": { "minAvailable": 3 } }))?;
    stage.bed.kube.kubectl(&["delete", "nodeclaim", &new, "--wait=false"])?;
    stays("the pod stays while there is time", GRACE / 2, || still_runs(stage, &pod))?;
    is_gone(stage, &new, &pod, GRACE + 40)?;
    nothing_was_refused(&audit)
}

/// A node, its claim, and the pod on it.
fn victim(stage: &Stage<'_>) -> Result<(String, String, Value)> {
    let claims = stage.claims()?;
    let claim = claims.first().context("there are claims")?;
    let node = text(claim, "/status/nodeName").to_owned();
    let pod = pod_of(stage, &node)?;
    Ok((node, name(claim).to_owned(), pod))
}

fn pod_of(stage: &Stage<'_>, node: &str) -> Result<Value> {
    let pods = stage.bed.kube.pods("app=apart")?;
    pods.into_iter().find(|pod| text(pod, "/spec/nodeName") == node).with_context(|| format!("no pod is on {node}"))
}

fn found(stage: &Stage<'_>, pod: &Value) -> Result<Option<Value>> {
    stage.bed.kube.find(&format!("/api/v1/namespaces/default/pods/{}", name(pod)))
}

fn still_runs(stage: &Stage<'_>, pod: &Value) -> Result<()> {
    let now = found(stage, pod)?.with_context(|| format!("{} is gone", name(pod)))?;
    ensure!(text(&now, "/metadata/deletionTimestamp").is_empty(), "{} is being deleted", name(pod));
    Ok(())
}

/// The pod goes, then its node; another takes its place.
fn is_gone(stage: &Stage<'_>, claim: &str, pod: &Value, seconds: u64) -> Result<()> {
    let wanted = stage.bed.kube.pods("app=apart")?.len();
    until(&format!("{claim} is gone"), seconds, || {
        ensure!(found(stage, pod)?.is_none(), "{} is still there", name(pod));
        ensure!(stage.bed.kube.find(&format!("{CLAIMS}/{claim}"))?.is_none(), "{claim} is still there");
        Ok(())
    })?;
    stage.pods_run("apart", wanted, 60)?;
    until("the books balance", 60, || stage.books_balance(Some(wanted)))
}

/// An eviction that a budget forbids is not asked for.
fn nothing_was_refused(audit: &Audit) -> Result<()> {
    let writes = audit.writes()?;
    let refused: Vec<_> = writes.iter().filter(|write| write.resource == "pods/eviction" && write.code == 429).collect();
    ensure!(refused.is_empty(), "{} evictions were refused, the first is {}", refused.len(), refused[0].shown());
    Ok(())
}
