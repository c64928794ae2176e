//! The walk-through: NodePool, EC2NodeClass and Deployment as published; a node comes, is right in EC2 and in the
//! cluster, and goes.

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::aws::Instance;
use crate::bed::CLUSTER;
use crate::controller::Controller;
use crate::kube::{self, is_true, label, name, text};
use crate::stage::{Stage, last};
use crate::wait::until;

pub(super) fn tell(stage: &Stage<'_>) -> Result<()> {
    let controller = come(stage)?;

    let claims = stage.claims()?;
    for instance in stage.bed.aws.instances()? {
        let owns = |claim: &&Value| last(text(claim, "/status/providerID")) == instance.id;
        let claim = claims.iter().find(owns).context("every instance has its claim")?;
        claim_is_right(claim, &instance)?;
        until("the instance is tagged", 20, || tags_are_right(stage, claim, &instance.id))?;
        user_data_is_right(stage, &instance)?;
        node_is_right(stage, claim, &instance)?;
    }
    templates_are_ours(stage)?;
    one_fleet_was_asked_for(stage, claims.len())?;
    metrics_are_right(&controller, claims.len())?;

    stage.bed.kube.kubectl(&["delete", "deployment", "inflate"])?;
    // A minute of consolidateAfter, and the drain.
    until("nodes and instances are gone", 150, || stage.is_empty())?;
    templates_are_ours(stage)
}

/// The pods come; answers with who made their nodes.
pub(super) fn come(stage: &Stage<'_>) -> Result<Controller> {
    let controller = stage.controller()?;
    stage.walk_through()?;
    stage.apply(include_str!("../../manifests/inflate.yaml"))?;
    stage.bed.kube.scale("inflate", 5)?;
    stage.pods_run("inflate", 5, 90)?;
    until("the books balance", 30, || stage.books_balance(None))?;
    Ok(controller)
}

/// What the pool of the walk-through allows, and the conditions of a node that is up.
fn claim_is_right(claim: &Value, instance: &Instance) -> Result<()> {
    ["Launched", "Registered", "Initialized", "Ready"].iter().try_for_each(|kind| is_true(claim, kind))?;
    let kind = label(claim, "node.kubernetes.io/instance-type");
    ensure!(kind == instance.instance_type, "the claim says {kind}, the instance is {}", instance.instance_type);
    let (family, generation) = kind.split_at(1);
    let generation: u32 = generation.chars().take_while(char::is_ascii_digit).collect::<String>().parse().context("a generation")?;
    ensure!(["c", "m", "r"].contains(&family) && generation > 2, "{kind} is not c, m or r of a generation above 2");
    ensure!(!instance.spot && label(claim, "karpenter.sh/capacity-type") == "on-demand", "{} is not on demand", name(claim));
    ensure!(label(claim, "topology.kubernetes.io/zone") == instance.zone, "{} is not in {}", name(claim), instance.zone);
    ensure!(text(claim, "/status/imageID") == instance.image, "{} has not the image {}", name(claim), instance.image);
    ensure!(name(claim).starts_with("default-"), "{} is not named after its pool", name(claim));
    let owner = claim.pointer("/metadata/ownerReferences/0").context("the claim has an owner")?;
    ensure!(text(owner, "/kind") == "NodePool" && text(owner, "/name") == "default", "{owner} is not the pool");
    let finalizers = claim["metadata"]["finalizers"].to_string();
    ensure!(finalizers.contains("karpenter.sh/termination"), "finalizers are {finalizers}");
    ensure!(!text(claim, "/status/nodeName").is_empty(), "{} has no node name", name(claim));
    Ok(())
}

fn tags_are_right(stage: &Stage<'_>, claim: &Value, id: &str) -> Result<()> {
    let instance = stage.bed.aws.instances()?.into_iter().find(|i| i.id == id).context("the instance is there")?;
    let cluster = format!("kubernetes.io/cluster/{CLUSTER}");
    for (key, wanted) in [
        (cluster.as_str(), "owned"),
        ("eks:eks-cluster-name", CLUSTER),
        ("karpenter.sh/nodepool", "default"),
        ("karpenter.k8s.aws/ec2nodeclass", "default"),
        ("karpenter.sh/nodeclaim", name(claim)),
        ("Name", text(claim, "/status/nodeName")),
    ] {
        let found = instance.tags.get(key).map_or("nothing", String::as_str);
        ensure!(found == wanted, "tag {key} of {id} is {found}, it should be {wanted}");
    }
    let volume = instance.volumes.first().context("the instance has a volume")?;
    ensure!(volume.get("karpenter.sh/nodepool").is_some_and(|pool| pool == "default"), "the volume's tags are {volume:?}");
    ensure!(instance.groups.len() == 2, "the security groups are {:?}, two are tagged for discovery", instance.groups);
    Ok(())
}

fn user_data_is_right(stage: &Stage<'_>, instance: &Instance) -> Result<()> {
    let data = &instance.user_data;
    let endpoint = stage.bed.endpoint();
    for wanted in [
        "application/node.eks.aws",
        "kind: NodeConfig",
        CLUSTER,
        endpoint.as_str(),
        "certificateAuthority",
        "karpenter.sh/nodepool=default",
        "karpenter.sh/unregistered",
    ] {
        ensure!(data.contains(wanted), "the user data has no {wanted:?}:\n{data}");
    }
    Ok(())
}

fn node_is_right(stage: &Stage<'_>, claim: &Value, instance: &Instance) -> Result<()> {
    let node = stage.bed.kube.get(&format!("{}/{}", kube::NODES, text(claim, "/status/nodeName")))?;
    for (key, wanted) in [
        ("karpenter.sh/registered", "true"),
        ("karpenter.sh/initialized", "true"),
        ("karpenter.sh/nodepool", "default"),
        ("karpenter.sh/capacity-type", "on-demand"),
        ("karpenter.k8s.aws/ec2nodeclass", "default"),
        ("node.kubernetes.io/instance-type", &instance.instance_type),
    ] {
        ensure!(label(&node, key) == wanted, "label {key} of node {} is {:?}, it should be {wanted}", name(&node), label(&node, key));
    }
    ensure!(!node["spec"]["taints"].to_string().contains("karpenter.sh/unregistered"), "the node is still tainted as unregistered");
    let owner = node.pointer("/metadata/ownerReferences/0").context("the node has an owner")?;
    ensure!(text(owner, "/kind") == "NodeClaim" && text(owner, "/name") == name(claim), "{owner} is not the claim");
    let finalizers = node["metadata"]["finalizers"].to_string();
    ensure!(finalizers.contains("karpenter.sh/termination"), "finalizers of the node are {finalizers}");
    Ok(())
}

/// Each node is one fleet of many types, so that EC2 can choose.
fn one_fleet_was_asked_for(stage: &Stage<'_>, nodes: usize) -> Result<()> {
    let fleets = stage.bed.aws.fleets()?;
    ensure!(fleets.len() <= nodes, "{} fleets were asked for {nodes} nodes", fleets.len());
    for fleet in fleets {
        let types = fleet["offered"].as_array().map_or(0, Vec::len);
        ensure!((5..=60).contains(&types), "a fleet was offered {types} types");
    }
    Ok(())
}

fn metrics_are_right(controller: &Controller, nodes: usize) -> Result<()> {
    let metrics = controller.metrics()?;
    for name in ["karpenter_nodeclaims_created_total", "karpenter_nodes_created_total"] {
        let lines = metrics.lines().filter(|line| line.starts_with(name) && line.contains("nodepool=\"default\""));
        let sum: f64 = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum();
        ensure!(sum == nodes as f64, "{name} of the pool is {sum}, there are {nodes} nodes");
    }
    Ok(())
}

/// Every launch template in the account is one of this cluster's.
fn templates_are_ours(stage: &Stage<'_>) -> Result<()> {
    let templates = stage.bed.aws.templates()?;
    ensure!(!templates.is_empty(), "there is no launch template");
    for template in templates {
        let (name, tags) = (&template.name, &template.tags);
        ensure!(name.starts_with("karpenter.k8s.aws/"), "a launch template is named {name}");
        ensure!(tags.get("eks:eks-cluster-name").is_some_and(|cluster| cluster == CLUSTER), "{name} has the tags {tags:?}");
        ensure!(tags.get("karpenter.k8s.aws/ec2nodeclass").is_some_and(|class| class == "default"), "{name} has the tags {tags:?}");
        ensure!(template.data["MetadataOptions"].to_string().contains("required"), "{name} does not require tokens: {}", template.data);
    }
    Ok(())
}
