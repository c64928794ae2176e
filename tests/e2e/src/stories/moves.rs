//! Nodes that cost more than they need to, or are no longer what their pool says, are exchanged or go; what asks to stay
//! does.

use std::cell::Cell;
use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::audit::Write;
use crate::controller::Controller;
use crate::kube::{CLASSES, NODES, POOLS, is_true, label, name, text};
use crate::stage::Stage;
use crate::wait::{stays, until};

const POOL: &str = include_str!("../../manifests/pool-moves.yaml");
const CLASS: &str = include_str!("../../manifests/class.yaml");
const APART: &str = include_str!("../../manifests/apart.yaml");
const INFLATE: &str = include_str!("../../manifests/inflate.yaml");
/// `consolidateAfter`, the second look, and as much again.
const LONGER_THAN_A_MOVE_TAKES: u64 = 40;

/// A controller, a pool that consolidates, and `pods` of a manifest that run.
fn begin(stage: &Stage<'_>, pool: &str, manifest: &str, app: &str, pods: u32) -> Result<Controller> {
    begin_with(stage, CLASS, pool, manifest, app, pods)
}

fn begin_with(stage: &Stage<'_>, class: &str, pool: &str, manifest: &str, app: &str, pods: u32) -> Result<Controller> {
    let controller = stage.controller()?;
    stage.apply(class)?;
    stage.apply(pool)?;
    stage.pool_is_ready("default")?;
    stage.apply(manifest)?;
    stage.bed.kube.scale(app, pods)?;
    stage.pods_run(app, pods as usize, 90)?;
    until("the books balance", 30, || stage.books_balance(None))?;
    Ok(controller)
}

fn names(stage: &Stage<'_>) -> Result<BTreeSet<String>> {
    Ok(stage.claims()?.iter().map(|claim| name(claim).to_owned()).collect())
}

/// Claims whose nodes hold pods of a Deployment: of several nodes some may be empty.
fn claims_of(stage: &Stage<'_>, app: &str) -> Result<BTreeSet<String>> {
    let pods = stage.bed.kube.pods(&format!("app={app}"))?;
    let nodes: BTreeSet<&str> = pods.iter().map(|pod| text(pod, "/spec/nodeName")).collect();
    let claims = stage.claims()?;
    Ok(claims.iter().filter(|claim| nodes.contains(text(claim, "/status/nodeName"))).map(|claim| name(claim).to_owned()).collect())
}

/// What runs costs, in millionths of a dollar an hour.
fn cost(stage: &Stage<'_>) -> Result<u64> {
    Ok(stage.bed.aws.instances()?.iter().map(|instance| instance.price).sum())
}

/// Waits until none of some claims is left and the books balance.
fn all_gone(stage: &Stage<'_>, what: &str, seconds: u64, claims: &BTreeSet<String>) -> Result<()> {
    until(what, seconds, || {
        let left: Vec<String> = names(stage)?.intersection(claims).cloned().collect();
        ensure!(left.is_empty(), "left are {left:?}");
        stage.books_balance(None)
    })
}

pub(super) fn consolidation(stage: &Stage<'_>) -> Result<()> {
    let audit = stage.bed.audit();
    let _controller = begin(stage, POOL, INFLATE, "inflate", 12)?;
    let (large, dear) = (names(stage)?, cost(stage)?);

    stage.bed.kube.scale("inflate", 1)?;
    stage.pods_run("inflate", 1, 30)?;
    let held = claims_of(stage, "inflate")?;
    all_gone(stage, "what is too large is replaced", 120, &large)?;
    stage.pods_run("inflate", 1, 30)?;
    let (small, cheap) = (names(stage)?, cost(stage)?);
    ensure!(small.len() == 1 && cheap * 2 < dear, "{} nodes at {cheap} took the place of {} at {dear}", small.len(), large.len());
    comes_before_it_goes(&audit.writes()?, &small, &held)?;
    for claim in &held {
        let events = stage.bed.kube.events("NodeClaim", claim)?;
        let told = |event: &String| event.starts_with("DisruptionTerminating: ") && event.contains("Underutilized");
        ensure!(events.iter().any(told), "the events of {claim} are {events:?}");
    }

    // Two pods that exclude each other bring a second node. When the one on the first node goes, the other finds room there.
    stage.apply(APART)?;
    stage.bed.kube.scale("apart", 2)?;
    stage.pods_run("apart", 2, 90)?;
    until("the books balance", 30, || stage.books_balance(Some(2)))?;
    let (two, first) = (names(stage)?, stage.claims()?);
    let first = first.iter().find(|claim| small.contains(name(claim))).map(|claim| text(claim, "/status/nodeName"));
    let first = first.context("the node of before is still there")?;
    for pod in stage.bed.kube.pods("app=apart")? {
        let cost = if text(&pod, "/spec/nodeName") == first { "-100" } else { "100" };
        let path = format!("/api/v1/namespaces/default/pods/{}", name(&pod));
        stage.bed.kube.patch(&path, &json!({ "metadata": { "annotations": { "controller.kubernetes.io/pod-deletion-cost": cost } } }))?;
    }
    stage.bed.kube.scale("apart", 1)?;
    until("the second node is deleted", 120, || stage.books_balance(Some(1)))?;
    ensure!(names(stage)?.is_subset(&two), "two nodes were replaced by one where one of them was enough");
    stage.pods_run("apart", 1, 30)?;
    stage.pods_run("inflate", 1, 30)
}

/// Every new claim was asked for before any of the old was given up.
fn comes_before_it_goes(writes: &[Write], new: &BTreeSet<String>, old: &BTreeSet<String>) -> Result<()> {
    let of = |verb: &str, names: &BTreeSet<String>| {
        let right = |write: &&Write| write.resource == "nodeclaims" && write.verb == verb && names.contains(&write.name);
        writes.iter().filter(right).map(|write| write.at.clone()).collect::<Vec<_>>()
    };
    let (came, went) = (of("create", new), of("delete", old));
    let (last, first) = (came.iter().max(), went.iter().min());
    ensure!(last.is_some() && first.is_some(), "the audit log tells of no new claims {came:?} or of no deletions {went:?}");
    ensure!(last < first, "the last of the new claims came at {last:?}, the first of the old ones went at {first:?}");
    Ok(())
}

/// Nodes a changed pool takes one after another.
const DRIFTING: u32 = 3;

pub(super) fn drift(stage: &Stage<'_>) -> Result<()> {
    let _controller = begin(stage, &POOL.replace("nodes: 100%", "nodes: \"1\""), APART, "apart", DRIFTING)?;
    let pool = format!("{POOLS}/default");
    for (what, spec, reason) in [
        ("labels", json!({ "metadata": { "labels": { "example.com/generation": "two" } } }), "NodePoolDrifted"),
        ("requirements", json!({ "spec": { "requirements": other_categories(stage)? } }), "RequirementsDrifted"),
    ] {
        let old = names(stage)?;
        stage.bed.kube.patch(&pool, &json!({ "spec": { "template": spec } }))?;
        exchanged(stage, what, reason, &old)?;
    }
    for node in stage.bed.kube.nodes()? {
        ensure!(label(&node, "example.com/generation") == "two", "node {} has not the label of its pool", name(&node));
    }
    Ok(())
}

pub(super) fn image(stage: &Stage<'_>) -> Result<()> {
    let image = |kernel: &str| json!([{ "name": format!("al2023-ami-2023*-kernel-{kernel}-x86_64"), "owner": "amazon" }]);
    // The family is named from the beginning: it is part of what a node is made of, the image is not.
    let terms = format!("amiFamily: AL2023\n  amiSelectorTerms: {}", image("6.1"));
    let class = CLASS.replace("amiSelectorTerms:\n    - alias: al2023@latest", &terms);
    let _controller = begin_with(stage, &class, &POOL.replace("nodes: 100%", "nodes: \"1\""), APART, "apart", DRIFTING)?;
    let images = || Ok::<_, anyhow::Error>(stage.bed.aws.instances()?.into_iter().map(|i| i.image).collect::<BTreeSet<_>>());
    let (old, before) = (names(stage)?, images()?);
    stage.bed.kube.patch(&format!("{CLASSES}/default"), &json!({ "spec": { "amiSelectorTerms": image("6.18") } }))?;
    exchanged(stage, "image", "AMIDrift", &old)?;
    ensure!(images()?.is_disjoint(&before), "of the old image {before:?} some are left: {:?}", images()?);
    let class = stage.bed.kube.get(&format!("{CLASSES}/default"))?;
    let known: BTreeSet<&str> = class["status"]["amis"].as_array().into_iter().flatten().map(|ami| text(ami, "/id")).collect();
    ensure!(images()?.iter().all(|image| known.contains(image.as_str())), "the class names {known:?}, instances have {:?}", images()?);
    Ok(())
}

/// Waits until nodes that drift for this reason are exchanged, one at a time, pods never fewer than the budget allows.
fn exchanged(stage: &Stage<'_>, what: &str, reason: &str, old: &BTreeSet<String>) -> Result<()> {
    until("a claim says that it drifted", 60, || {
        let all = stage.claims()?;
        let drifted = all.iter().find(|claim| is_true(claim, "Drifted").is_ok()).context("no claim has drifted")?;
        let why = crate::kube::condition(drifted, "Drifted").map(|condition| text(condition, "/reason").to_owned());
        ensure!(why.as_deref() == Some(reason), "{} drifted because of {why:?}", name(drifted));
        Ok(())
    })?;
    let (running, most) = (Cell::new(usize::MAX), Cell::new(0));
    until(&format!("nodes of the old {what} are gone"), 240, || {
        let pods = stage.bed.kube.pods("app=apart")?;
        let run = |pod: &&Value| text(pod, "/status/phase") == "Running" && text(pod, "/metadata/deletionTimestamp").is_empty();
        running.set(running.get().min(pods.iter().filter(run).count()));
        let claims = stage.claims()?;
        // What ends no longer counts for the budget.
        most.set(most.get().max(claims.iter().filter(|claim| is_true(claim, "InstanceTerminating").is_err()).count()));
        let left: Vec<&str> = claims.iter().map(name).filter(|claim| old.contains(*claim)).collect();
        ensure!(left.is_empty(), "left are {left:?}");
        stage.books_balance(Some(DRIFTING as usize))
    })?;
    stage.pods_run("apart", DRIFTING as usize, 30)?;
    let (running, most) = (running.get(), most.get());
    ensure!(running + 1 >= DRIFTING as usize, "at a time only {running} of {DRIFTING} pods ran, the budget is one node");
    ensure!(most <= DRIFTING as usize + 1, "there were {most} claims that do not end, the budget is one node");
    Ok(())
}

/// The requirements of the pool, without the category of instances that there is now.
fn other_categories(stage: &Stage<'_>) -> Result<Value> {
    let held: BTreeSet<String> = stage.bed.aws.instances()?.iter().map(|i| i.instance_type.chars().take(1).collect()).collect();
    let others: Vec<&str> = ["c", "m", "r"].into_iter().filter(|category| !held.contains(*category)).collect();
    ensure!(!others.is_empty(), "nodes of all categories were bought: {held:?}");
    let mut requirements = stage.bed.kube.get(&format!("{POOLS}/default"))?["spec"]["template"]["spec"]["requirements"].take();
    let all = requirements.as_array_mut().context("the pool has requirements")?;
    let category = all.iter_mut().find(|requirement| requirement["key"] == "karpenter.k8s.aws/instance-category");
    category.context("the pool names categories")?["values"] = json!(others);
    Ok(requirements)
}

/// How long nodes of the story may live.
const LIFE: i64 = 45;

pub(super) fn expiry(stage: &Stage<'_>) -> Result<()> {
    let audit = stage.bed.audit();
    let _controller = begin(stage, &POOL.replace("expireAfter: Never", &format!("expireAfter: {LIFE}s")), APART, "apart", 2)?;
    let first = stage.claims()?;
    let old = first.iter().map(|claim| name(claim).to_owned()).collect();
    until("what is too old is gone", 120, || {
        let left: Vec<String> = names(stage)?.intersection(&old).cloned().collect();
        ensure!(left.is_empty(), "left are {left:?}");
        Ok(())
    })?;
    stage.pods_run("apart", 2, 60).context("what expired is replaced")?;
    let writes = audit.writes()?;
    for claim in &first {
        let made: jiff::Timestamp = text(claim, "/metadata/creationTimestamp").parse()?;
        let gone = writes.iter().find(|write| write.verb == "delete" && write.resource == "nodeclaims" && write.name == name(claim));
        let gone: jiff::Timestamp = gone.with_context(|| format!("nobody deleted {}", name(claim)))?.at.parse()?;
        let lived = gone.duration_since(made).as_secs();
        // The server writes whole seconds for creation.
        ensure!((LIFE - 1..LIFE + 30).contains(&lived), "{} was deleted after {lived} s, it expires after {LIFE} s", name(claim));
    }
    Ok(())
}

pub(super) fn kept(stage: &Stage<'_>) -> Result<()> {
    const KEEP: &str = "karpenter.sh/do-not-disrupt";
    let _controller = begin(stage, POOL, INFLATE, "inflate", 10)?;
    let keep = |path: &str, value: Value| stage.bed.kube.patch(path, &json!({ "metadata": { "annotations": { KEEP: value } } }));
    let paths = |of: &str, all: Vec<Value>| all.iter().map(|one| format!("{of}/{}", name(one))).collect::<Vec<_>>();
    for pod in paths("/api/v1/namespaces/default/pods", stage.bed.kube.pods("app=inflate")?) {
        keep(&pod, json!("true"))?;
    }

    stage.bed.kube.scale("inflate", 1)?;
    stage.pods_run("inflate", 1, 30)?;
    let before = claims_of(stage, "inflate")?;
    stays("nodes whose pods ask for it stay", LONGER_THAN_A_MOVE_TAKES, || {
        ensure!(names(stage)?.is_superset(&before), "there were {before:?}, now there are {:?}", names(stage)?);
        Ok(())
    })?;
    let mut told = Vec::new();
    for claim in &before {
        told.extend(stage.bed.kube.events("NodeClaim", claim)?);
    }
    ensure!(told.iter().any(|event| event.starts_with("DisruptionBlocked: ") && event.contains(KEEP)), "the events are {told:?}");
    for pod in paths("/api/v1/namespaces/default/pods", stage.bed.kube.pods("app=inflate")?) {
        keep(&pod, Value::Null)?;
    }
    all_gone(stage, "a node that nothing keeps is replaced", 120, &before)?;

    let before = names(stage)?;
    for node in paths(NODES, stage.bed.kube.nodes()?) {
        keep(&node, json!("true"))?;
    }
    stage.bed.kube.scale("inflate", 0)?;
    stays("an empty node that asks for it stays", LONGER_THAN_A_MOVE_TAKES, || {
        ensure!(names(stage)? == before, "there were {before:?}, now there are {:?}", names(stage)?);
        Ok(())
    })?;
    for node in paths(NODES, stage.bed.kube.nodes()?) {
        keep(&node, Value::Null)?;
    }
    until("an empty node that nothing keeps is gone", 90, || stage.is_empty())
}
