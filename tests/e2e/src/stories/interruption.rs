//! EC2 warns of the end of a spot instance: its node is drained and replaced, by another offering. What else is on the queue
//! does no harm.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::bed::CLUSTER;
use crate::kube::{name, text};
use crate::stage::{Stage, last};
use crate::wait::{stays, until};

pub(super) fn tell(stage: &Stage<'_>) -> Result<()> {
    let controller = stage.controller()?;
    stage.apply(include_str!("../../manifests/class.yaml"))?;
    stage.apply(include_str!("../../manifests/pool-both.yaml"))?;
    stage.apply(include_str!("../../manifests/apart.yaml"))?;
    stage.bed.kube.scale("apart", 3)?;
    stage.pods_run("apart", 3, 90)?;
    until("the books balance", 30, || stage.books_balance(Some(3)))?;

    let claims = stage.claims()?;
    let (warned, kept) = claims.split_first().context("there are claims")?;
    let id = |claim: &Value| last(text(claim, "/status/providerID"));
    let before = stage.bed.aws.instances()?;

    // Garbage, strangers, and advice: nothing goes.
    let stranger = "i-0123456789abcdef0";
    for body in [
        "this is no message".to_owned(),
        json!({ "source": "aws.s3", "detail-type": "Object Created", "detail": {} }).to_string(),
        message("EC2 Spot Instance Interruption Warning", stranger, &json!({ "instance-id": stranger, "instance-action": "terminate" })),
        message("EC2 Instance Rebalance Recommendation", &id(&kept[0]), &json!({ "instance-id": id(&kept[0]) })),
        message("EC2 Instance State-change Notification", &id(&kept[0]), &json!({ "instance-id": id(&kept[0]), "state": "running" })),
    ] {
        stage.bed.aws.told(&json!({ "send": [CLUSTER, body] }))?;
    }
    queue_is_empty(stage)?;
    stays("what concerns nobody moves nobody", 5, || stage.books_balance(Some(3)))?;
    let events = stage.bed.kube.events("NodeClaim", name(&kept[0]))?;
    ensure!(events.iter().any(|event| event.starts_with("SpotRebalanceRecommendation: ")), "the events are {events:?}");

    let warning = json!({ "instance-id": id(warned), "instance-action": "terminate" });
    let warning = message("EC2 Spot Instance Interruption Warning", &id(warned), &warning);
    stage.bed.aws.told(&json!({ "send": [CLUSTER, warning] }))?;
    until("the instance that was warned of is gone", 60, || {
        let live = stage.bed.aws.instances()?;
        ensure!(!live.iter().any(|i| i.id == id(warned)), "{} still runs", id(warned));
        Ok(())
    })?;
    stage.pods_run("apart", 3, 90)?;
    until("the books balance", 60, || stage.books_balance(Some(3)))?;
    let others = stage.claims()?;
    ensure!(!others.iter().any(|claim| name(claim) == name(warned)), "{} is still there", name(warned));
    let left = kept.iter().filter(|claim| others.iter().any(|other| name(other) == name(claim))).count();
    ensure!(left == 2, "of the two nodes that were not warned of {left} are left");
    queue_is_empty(stage)?;

    // What was taken away is not bought again at once.
    let lost = before.iter().find(|i| i.id == id(warned)).context("it was there")?;
    let now = stage.bed.aws.instances()?;
    for new in now.iter().filter(|i| !before.iter().any(|old| old.id == i.id)) {
        let same = new.spot && new.instance_type == lost.instance_type && new.zone == lost.zone;
        ensure!(!same, "spot {} in {} was taken away, and is bought again", lost.instance_type, lost.zone);
    }
    let metrics = controller.metrics()?;
    for kind in ["spot_interrupted", "rebalance_recommendation"] {
        let counted = |line: &&str| line.starts_with("karpenter_interruption_received_messages_total") && line.contains(kind);
        ensure!(metrics.lines().any(|line| counted(&line)), "no metric counts {kind}");
    }
    Ok(())
}

fn queue_is_empty(stage: &Stage<'_>) -> Result<()> {
    until("the messages are off the queue", 30, || {
        let left = stage.bed.aws.told(&json!({ "show": true }))?["queued"].as_u64();
        ensure!(left == Some(0), "{left:?} messages are left");
        Ok(())
    })
}

/// As EventBridge sends it.
fn message(kind: &str, id: &str, detail: &Value) -> String {
    json!({
        "version": "0", "id": "7bf73129-1428-4cd3-a780-95db273d1602", "detail-type": kind, "source": "aws.ec2",
        "account": "123456789012", "time": "2026-01-01T00:00:00Z", "region": "us-east-1", "resources": [format!("arn:aws:ec2:us-east-1a:instance/{id}")],
        "detail": detail,
    })
    .to_string()
}
