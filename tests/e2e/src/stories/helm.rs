//! The chart comes and goes, and the nodes stay.

use std::collections::BTreeSet;

use anyhow::{Result, bail, ensure};

use crate::controller::{NAMESPACE, RELEASE};
use crate::kube::{label, name};
use crate::stage::Stage;
use crate::wait::{stays, until};

/// Nodes that stay while the chart goes.
const NODES: usize = 20;

pub(super) fn tell(stage: &Stage<'_>) -> Result<()> {
    let controller = stage.controller()?;
    stage.walk_through()?;
    stage.apply(include_str!("../../manifests/apart.yaml"))?;
    stage.bed.kube.scale("apart", u32::try_from(NODES)?)?;
    stage.pods_run("apart", NODES, 180)?;
    until("the books balance", 60, || stage.books_balance(Some(NODES)))?;
    let before = instances(stage)?;

    stage.bed.helm(&["uninstall", RELEASE, "--namespace", NAMESPACE, "--wait"])?;
    drop(controller);
    stays("nodes stay without the chart", 5, || stage.books_balance(Some(NODES)))?;
    ensure!(instances(stage)? == before, "instances changed when the chart went");
    made_by_the_chart(stage)?;
    stage.bed.helm(&["uninstall", "whittle-crd", "--namespace", NAMESPACE, "--wait"])?;
    stays("definitions and their objects stay", 2, || stage.books_balance(Some(NODES)))?;

    stage.install_crds()?;
    stage.install(&[])?;
    let _controller = stage.controller()?;
    stays("a new installation takes up what is there", 15, || {
        ensure!(instances(stage)? == before, "instances changed when the chart came back");
        stage.books_balance(Some(NODES))
    })?;
    stage.bed.kube.scale("apart", u32::try_from(NODES + 2)?)?;
    stage.pods_run("apart", NODES + 2, 120)?;
    until("the books balance", 60, || stage.books_balance(Some(NODES + 2)))?;
    ensure!(instances(stage)?.is_superset(&before), "nodes were replaced");
    refusals(stage)
}

fn instances(stage: &Stage<'_>) -> Result<BTreeSet<String>> {
    Ok(stage.bed.aws.instances()?.into_iter().map(|i| i.id).collect())
}

/// Nothing that Helm made is left, and no Deployment, account or role of that name.
fn made_by_the_chart(stage: &Stage<'_>) -> Result<()> {
    let namespaced =
        ["apis/apps/v1", "api/v1", "api/v1", "apis/rbac.authorization.k8s.io/v1", "apis/rbac.authorization.k8s.io/v1", "apis/policy/v1"];
    let kinds = ["deployments", "serviceaccounts", "services", "roles", "rolebindings", "poddisruptionbudgets"];
    let mut paths: Vec<String> =
        namespaced.iter().zip(kinds).map(|(group, kind)| format!("/{group}/namespaces/{NAMESPACE}/{kind}")).collect();
    paths.extend(["clusterroles", "clusterrolebindings"].map(|kind| format!("/apis/rbac.authorization.k8s.io/v1/{kind}")));
    for path in paths {
        for object in stage.bed.kube.list(&path)? {
            ensure!(label(&object, "app.kubernetes.io/instance") != RELEASE, "{path}/{} is left of the chart", name(&object));
        }
    }
    Ok(())
}

/// Wrong values are refused with words that name them.
fn refusals(stage: &Stage<'_>) -> Result<()> {
    let chart = stage.bed.repository("charts/whittle").display().to_string();
    for (values, wanted) in [
        (vec![], "settings.clusterName is not set"),
        (vec!["settings.clusterName=demo", "mode=Maybe"], "mode"),
        (vec!["settings.clusterName=demo", "settings.clusterNaem=demo"], "clusterNaem"),
        (vec!["settings.clusterName=demo", "settings.batchIdleDuration=soon"], "batchIdleDuration"),
        (vec!["settings.clusterName=demo", "settings.enableZonalShift=true"], "settings.enableZonalShift=true is not supported"),
        (vec!["settings.clusterName=demo", "replicas=-1"], "replicas"),
    ] {
        // Helm that was built from source takes the cluster for an old one.
        let mut args = vec!["template", RELEASE, chart.as_str(), "--kube-version", "1.36.3"];
        values.iter().for_each(|value| args.extend(["--set", *value]));
        match stage.bed.helm(&args) {
            Ok(_) => bail!("helm template with {values:?} is not refused"),
            Err(why) => {
                ensure!(format!("{why:#}").contains(wanted), "helm template with {values:?} is refused without {wanted:?}: {why:#}")
            }
        }
    }
    Ok(())
}
