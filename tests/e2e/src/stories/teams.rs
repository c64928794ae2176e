//! Two teams with a pool each: taints keep their pods apart.

use anyhow::{Result, ensure};

use crate::kube::{label, name, text};
use crate::stage::Stage;
use crate::wait::until;

const TEAMS: [&str; 2] = ["team-a", "team-b"];

pub(super) fn tell(stage: &Stage<'_>) -> Result<()> {
    let _controller = stage.controller()?;
    stage.apply(include_str!("../../manifests/class.yaml"))?;
    for team in TEAMS {
        stage.apply(&include_str!("../../manifests/team.yaml").replace("TEAM", team))?;
    }
    for team in TEAMS {
        stage.pods_run(&format!("work-of-{team}"), 3, 90)?;
    }
    until("the books balance", 30, || stage.books_balance(None))?;

    let nodes = stage.bed.kube.nodes()?;
    for team in TEAMS {
        for pod in stage.bed.kube.pods(&format!("app=work-of-{team}"))? {
            let node = nodes.iter().find(|node| name(node) == text(&pod, "/spec/nodeName"));
            let pool = node.map(|node| label(node, "karpenter.sh/nodepool")).unwrap_or_default();
            ensure!(pool == team, "pod {} of {team} runs on a node of {pool:?}", name(&pod));
        }
    }
    for node in &nodes {
        let team = label(node, "karpenter.sh/nodepool");
        ensure!(label(node, "example.com/team") == team, "node {} of {team} has not the label of its team", name(node));
        let taints = node["spec"]["taints"].to_string();
        ensure!(taints.contains("example.com/team") && taints.contains(team), "node {} of {team} has the taints {taints}", name(node));
    }
    Ok(())
}
