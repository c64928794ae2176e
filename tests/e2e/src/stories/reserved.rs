//! Capacity that is paid for: two of three nodes are launched into a capacity reservation that holds two.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use serde_json::json;

use crate::kube::{label, text};
use crate::stage::Stage;
use crate::wait::until;

const RESERVATION: &str = "cr-0a1b2c3d4e5f60718";
const ID: &str = "karpenter.k8s.aws/capacity-reservation-id";
const CAPACITY: &str = "karpenter.sh/capacity-type";

pub(super) fn tell(stage: &Stage<'_>) -> Result<()> {
    stage.bed.aws.told(&json!({ "reserve": { RESERVATION: ["m5.2xlarge", "us-east-1b", 2] } }))?;
    let controller = stage.controller()?;
    stage.apply(include_str!("../../manifests/reserved.yaml"))?;
    stage.pods_run("paid-for", 3, 120)?;
    until("the books balance", 30, || stage.books_balance(None))?;
    spread_as_paid(stage, 2)?;

    let class = stage.bed.kube.get("/apis/karpenter.k8s.aws/v1/ec2nodeclasses/reserved")?;
    let listed = text(&class, "/status/capacityReservations/0/id");
    ensure!(listed == RESERVATION, "the class's status lists the reservation {listed:?}");
    let planned = controller.log().matches("computed new NodeClaims").count();
    ensure!(planned == 1, "it took {planned} plans: a reservation was counted on twice");

    // One that is full is no place for more.
    stage.bed.kube.scale("paid-for", 4)?;
    stage.pods_run("paid-for", 4, 120)?;
    spread_as_paid(stage, 2)
}

/// So many instances are in the reservation, each with the labels of it; the others cost money.
fn spread_as_paid(stage: &Stage<'_>, inside: usize) -> Result<()> {
    let instances = stage.bed.aws.instances()?;
    let held = instances.iter().filter(|instance| instance.reservation.as_deref() == Some(RESERVATION)).count();
    ensure!(held == inside, "{held} of {} instances are in the reservation", instances.len());
    let by_id: BTreeMap<&str, Option<&str>> = instances.iter().map(|i| (i.id.as_str(), i.reservation.as_deref())).collect();
    for node in stage.bed.kube.nodes()? {
        let id = text(&node, "/spec/providerID").rsplit('/').next().unwrap_or_default().to_owned();
        let Some(reservation) = by_id.get(id.as_str()) else { continue };
        let wanted = if reservation.is_some() { "reserved" } else { "on-demand" };
        let said = (label(&node, CAPACITY), label(&node, ID));
        ensure!(said == (wanted, reservation.unwrap_or_default()), "a node in reservation {reservation:?} says {said:?}");
    }
    Ok(())
}
