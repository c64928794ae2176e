//! EC2 warns of the end of a spot instance: its node is drained and replaced.

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use crate::bed::CLUSTER;
use crate::kube::{name, text};
use crate::stage::{Stage, last};
use crate::wait::until;

pub(super) fn tell(stage: &Stage<'_>) -> Result<()> {
    let _controller = stage.controller()?;
    stage.apply(include_str!("../../manifests/class.yaml"))?;
    stage.apply(include_str!("../../manifests/pool-both.yaml"))?;
    stage.apply(include_str!("../../manifests/apart.yaml"))?;
    stage.bed.kube.scale("apart", 3)?;
    stage.pods_run("apart", 3, 90)?;
    until("the books balance", 30, || stage.books_balance(Some(3)))?;

    let claims = stage.claims()?;
    let warned = claims.first().context("there are claims")?;
    let id = last(text(warned, "/status/providerID"));
    stage.bed.aws.told(&json!({ "send": [CLUSTER, warning(&id)] }))?;
    until("the instance that was warned of is gone", 60, || {
        let live = stage.bed.aws.instances()?;
        ensure!(!live.iter().any(|i| i.id == id), "{id} still runs");
        Ok(())
    })?;
    stage.pods_run("apart", 3, 90)?;
    until("the books balance", 60, || stage.books_balance(Some(3)))?;
    let others = stage.claims()?;
    ensure!(!others.iter().any(|claim| name(claim) == name(warned)), "{} is still there", name(warned));
    let kept = claims.iter().skip(1).filter(|claim| others.iter().any(|other| name(other) == name(claim))).count();
    ensure!(kept == 2, "of the two nodes that were not warned of {kept} are left");
    until("the message is off the queue", 30, || {
        let left = stage.bed.aws.told(&json!({ "show": true }))?["queued"].as_u64();
        ensure!(left == Some(0), "{left:?} messages are left");
        Ok(())
    })
}

/// As EventBridge sends it.
fn warning(id: &str) -> String {
    json!({
        "version": "0", "id": "7bf73129-1428-4cd3-a780-95db273d1602", "detail-type": "EC2 Spot Instance Interruption Warning", "source": "aws.ec2",
        "account": "123456789012", "time": "2026-01-01T00:00:00Z", "region": "us-east-1", "resources": [format!("arn:aws:ec2:us-east-1a:instance/{id}")],
        "detail": { "instance-id": id, "instance-action": "terminate" },
    })
    .to_string()
}
