//! Mode Observe: it plans and journals, and writes nothing anywhere, while somebody else makes the nodes.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::controller::{NAMESPACE, RELEASE};
use crate::kube::{NODES, name};
use crate::stage::Stage;
use crate::wait::{stays, until};

const WRITES: [&str; 9] = [
    "CreateFleet",
    "RunInstances",
    "TerminateInstances",
    "CreateTags",
    "CreateLaunchTemplate",
    "DeleteLaunchTemplate",
    "CreateInstanceProfile",
    "AddRoleToInstanceProfile",
    "AmazonSQS.DeleteMessage",
];

pub(super) fn tell(stage: &Stage<'_>) -> Result<()> {
    stage.install(&["--set", "mode=Observe"])?;
    nothing_may_be_written(stage)?;
    let audit = stage.bed.audit();
    stage.bed.aws.told(&json!({ "zero": true }))?;
    let controller = stage.controller()?;
    stage.apply(include_str!("../../manifests/walk-through.yaml"))?;
    stage.apply(include_str!("../../manifests/inflate.yaml"))?;
    stage.bed.kube.scale("inflate", 5)?;
    until("it plans", 60, || {
        ensure!(controller.log().contains("computed new NodeClaims to fit pods"), "its log does not say so");
        Ok(())
    })?;

    // Another autoscaler brings a node, and takes it again.
    let size = json!({ "cpu": "8", "memory": "16Gi", "pods": "50" });
    let labels = json!({ "kubernetes.io/hostname": "of-another", "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "node.kubernetes.io/instance-type": "c6a.2xlarge",
        "karpenter.sh/nodepool": "default", "karpenter.sh/capacity-type": "on-demand", "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true" });
    stage.bed.kube.post(
        NODES,
        &json!({
            "metadata": { "name": "of-another", "labels": labels, "annotations": { "kwok.x-k8s.io/node": "fake" } },
            "spec": { "providerID": "aws:///us-east-1a/i-00000000000000001" },
            "status": { "capacity": size, "allocatable": size },
        }),
    )?;
    stage.pods_run("inflate", 5, 60)?;
    stage.bed.kube.delete(&format!("{NODES}/of-another"))?;
    stage.bed.kube.scale("inflate", 8)?;

    stays("nothing is written", 15, || {
        let writes = audit.writes()?;
        ensure!(writes.is_empty(), "{} writes, the first is {}", writes.len(), writes[0].shown());
        let calls = stage.bed.aws.calls()?;
        let written: Vec<_> = WRITES.iter().filter(|call| calls.contains_key(**call)).collect();
        ensure!(written.is_empty(), "it called {written:?}");
        Ok(())
    })?;
    let journal = controller.journal.clone();
    let plans = controller.log().matches("computed new NodeClaims").count();
    ensure!(controller.stop(), "it does not end when it is asked to");
    let bytes: u64 = std::fs::read_dir(&journal)?.filter_map(|entry| entry.ok()?.metadata().ok()).map(|file| file.len()).sum();
    ensure!(bytes > 1000, "{plans} plans left {bytes} bytes in the journal");
    Ok(())
}

/// The roles that the chart makes have no verb that writes.
fn nothing_may_be_written(stage: &Stage<'_>) -> Result<()> {
    let mut roles = stage.bed.kube.list("/apis/rbac.authorization.k8s.io/v1/clusterroles")?;
    roles.extend(stage.bed.kube.list(&format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/roles"))?);
    let ours: Vec<&Value> = roles.iter().filter(|role| name(role).starts_with(RELEASE)).collect();
    ensure!(ours.len() >= 2, "the chart made {} roles", ours.len());
    for role in ours {
        let verbs = role["rules"].as_array().into_iter().flatten().flat_map(|rule| rule["verbs"].as_array().into_iter().flatten());
        let writing: Vec<_> = verbs.filter(|verb| !["get", "list", "watch"].contains(&verb.as_str().unwrap_or_default())).collect();
        // Aggregated roles are for people, not for the controller.
        let aggregated = role["metadata"]["labels"].to_string().contains("aggregate-to");
        ensure!(writing.is_empty() || aggregated, "in mode Observe role {} may {writing:?}", name(role));
    }
    Ok(())
}
