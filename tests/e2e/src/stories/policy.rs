//! ScoringPolicies: one that is shipped, one that a user built and put into a ConfigMap, and a broken one.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use serde_json::json;

use crate::aws::Instance;
use crate::controller::NAMESPACE;
use crate::kube::{POLICIES, POOLS, condition, is_true, text};
use crate::process::output;
use crate::stage::Stage;
use crate::wait::until;

const POOL: &str = include_str!("../../manifests/pool-both.yaml");

pub(super) fn shipped(stage: &Stage<'_>) -> Result<()> {
    let controller = stage.controller()?;
    stage.apply(include_str!("../../manifests/class.yaml"))?;
    stage.apply(POOL)?;
    stage.apply(include_str!("../../manifests/inflate.yaml"))?;
    stage.bed.kube.scale("inflate", 4)?;
    stage.pods_run("inflate", 4, 90)?;
    let bought = stage.bed.aws.instances()?;
    ensure!(!bought.is_empty() && bought.iter().all(|i| i.spot), "without a policy not all is spot: {}", shown(&bought));

    stage.apply(include_str!("../../manifests/policy-no-spot.yaml"))?;
    until("the policy is ready", 60, || {
        let policy = stage.bed.kube.get(&format!("{POLICIES}/no-spot"))?;
        ensure!(text(&policy, "/status/digest").starts_with("sha256:"), "its digest is {}", policy["status"]["digest"]);
        ensure!(text(&policy, "/status/manifest/name") == "team-rules", "its manifest is {}", policy["status"]["manifest"]);
        is_true(&policy, "Ready")
    })?;
    obeys(stage, "no-spot")?;
    stage.bed.kube.scale("inflate", 40)?;
    stage.pods_run("inflate", 40, 90)?;
    let new = since(stage, &bought)?;
    ensure!(!new.is_empty() && new.iter().all(|i| !i.spot), "the policy forbids spot, bought is {}", shown(&new));
    ensure!(!controller.log().contains("a policy failed"), "the log says that a policy failed");
    until("the books balance", 30, || stage.books_balance(None))
}

pub(super) fn of_a_user(stage: &Stage<'_>) -> Result<()> {
    // The way of the documentation: a new crate, built to a component.
    let cli = stage.binaries().cli()?;
    let folder = stage.bed.dir.join("preference");
    output(Command::new(&cli).current_dir(&stage.bed.dir).args(["policy", "new", "preference"]))?;
    output(Command::new(&cli).current_dir(&stage.bed.dir).args(["policy", "build", "preference"]))?;
    let component = std::fs::read(folder.join("preference.wasm"))?;
    let put = |key: &str, bytes: &[u8]| config_map(stage, key, bytes);
    put("preference", &component)?;
    put("broken", b"this is no component")?;

    let controller = stage.controller()?;
    stage.apply(include_str!("../../manifests/class.yaml"))?;
    stage.apply(POOL)?;
    stage.apply(
        &include_str!("../../manifests/policy-config-map.yaml")
            .replace("NAME", "preference")
            .replace("CONFIG", r#"{"families": ["m7i"], "percent": 90}"#),
    )?;
    stage.apply(&include_str!("../../manifests/policy-config-map.yaml").replace("NAME", "broken").replace("CONFIG", "{}"))?;
    until("the policy of the ConfigMap is ready", 60, || is_true(&stage.bed.kube.get(&format!("{POLICIES}/preference"))?, "Ready"))?;
    until("the broken one says what is wrong with it", 60, || {
        let policy = stage.bed.kube.get(&format!("{POLICIES}/broken"))?;
        let ready = condition(&policy, "Ready").context("there is no condition Ready")?;
        ensure!(ready["status"] == "False" && ready["message"].as_str().is_some_and(|said| said.len() > 10), "{ready}");
        Ok(())
    })?;

    obeys(stage, "broken?,preference")?;
    stage.apply(include_str!("../../manifests/inflate.yaml"))?;
    stage.bed.kube.scale("inflate", 6)?;
    stage.pods_run("inflate", 6, 90).context("a policy that is broken and may be missing is gone around")?;
    let bought = stage.bed.aws.instances()?;
    ensure!(bought.iter().all(|i| i.instance_type.starts_with("m7i.")), "the policy prefers m7i, bought is {}", shown(&bought));

    // Put right, it serves; the one that serves goes on when its bytes are broken.
    put("preference", b"broken now, too")?;
    until("the policy says that its new bytes are broken", 60, || {
        let policy = stage.bed.kube.get(&format!("{POLICIES}/preference"))?;
        let ready = condition(&policy, "Ready").context("there is no condition Ready")?;
        ensure!(ready["status"] == "False", "{ready}");
        Ok(())
    })?;
    stage.bed.kube.scale("inflate", 40)?;
    stage.pods_run("inflate", 40, 90).context("what served goes on")?;
    let new = since(stage, &bought)?;
    ensure!(!new.is_empty() && new.iter().all(|i| i.instance_type.starts_with("m7i.")), "bought is {}", shown(&new));
    drop(controller);
    ["preference", "broken"].iter().try_for_each(|name| stage.bed.kube.delete(&format!("/api/v1/namespaces/{NAMESPACE}/configmaps/{name}")))
}

/// Names the policies of the pool, and waits until the pool is ready with them.
fn obeys(stage: &Stage<'_>, policies: &str) -> Result<()> {
    let pool = format!("{POOLS}/default");
    stage.bed.kube.patch(&pool, &json!({ "metadata": { "annotations": { "whittle.sh/policy": policies } } }))?;
    stage.pool_is_ready("default")
}

fn config_map(stage: &Stage<'_>, name: &str, bytes: &[u8]) -> Result<()> {
    let data = base64::engine::general_purpose::STANDARD.encode(bytes);
    let (all, one) = (format!("/api/v1/namespaces/{NAMESPACE}/configmaps"), format!("/api/v1/namespaces/{NAMESPACE}/configmaps/{name}"));
    let map = json!({ "metadata": { "name": name }, "binaryData": { "policy.wasm": data } });
    match stage.bed.kube.find(&one)? {
        Some(_) => stage.bed.kube.patch(&one, &map),
        None => stage.bed.kube.post(&all, &map).map(drop),
    }
}

fn since(stage: &Stage<'_>, before: &[Instance]) -> Result<Vec<Instance>> {
    Ok(stage.bed.aws.instances()?.into_iter().filter(|i| !before.iter().any(|old| old.id == i.id)).collect())
}

fn shown(instances: &[Instance]) -> String {
    instances.iter().map(|i| format!("{} {}", if i.spot { "spot" } else { "on-demand" }, i.instance_type)).collect::<Vec<_>>().join(", ")
}
