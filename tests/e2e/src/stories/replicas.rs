//! Two replicas: one acts, the other takes over when it is killed, and the two never write at the same time.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};

use crate::controller::Controller;
use crate::stage::Stage;
use crate::wait::{until, within};

/// A lease lasts fifteen seconds; looked at every two.
const TAKEN_OVER: u64 = 30;

pub(super) fn tell(stage: &Stage<'_>) -> Result<()> {
    let audit = stage.bed.audit();
    let (first, second) = (stage.controller()?, stage.controller()?);
    let (leader, other) = leader_of(first, second)?;
    stage.walk_through()?;
    stage.apply(include_str!("../../manifests/inflate.yaml"))?;
    stage.bed.kube.scale("inflate", 5)?;
    stage.pods_run("inflate", 5, 90)?;

    let (gone, heir) = (leader.credential.clone(), other.credential.clone());
    leader.crash();
    stage.bed.kube.scale("inflate", 30)?;
    until("the other replica takes over", TAKEN_OVER, || other.leads())?;
    stage.pods_run("inflate", 30, 90)?;
    until("the books balance", 30, || stage.books_balance(None))?;

    // Asked to end, a leader lets go at once.
    let third = stage.controller()?;
    ensure!(third.leads().is_err(), "a third replica acts beside the leader");
    ensure!(other.stop(), "the leader does not end when it is asked to");
    within("the third takes over at once", 8, || third.leads())?;
    stage.bed.kube.scale("inflate", 45)?;
    stage.pods_run("inflate", 45, 90)?;
    until("the books balance", 30, || stage.books_balance(None))?;
    took_turns(&audit.writes()?, &[gone, heir, third.credential.clone()])
}

fn leader_of(first: Controller, second: Controller) -> Result<(Controller, Controller)> {
    let acts = || if first.leads().is_ok() { Some(true) } else { second.leads().ok().map(|()| false) };
    let first_leads = until("a replica acts", TAKEN_OVER, || acts().context("none says so"))?;
    let both = first.leads().is_ok() && second.leads().is_ok();
    ensure!(!both, "both replicas act");
    Ok(if first_leads { (first, second) } else { (second, first) })
}

/// Each replica's writes, but for the lease itself, end before those of the next begin.
fn took_turns(writes: &[crate::audit::Write], order: &[String]) -> Result<()> {
    let mut spans: BTreeMap<&str, (&str, &str)> = BTreeMap::new();
    for write in writes.iter().filter(|write| write.resource != "leases") {
        let span = spans.entry(&write.credential).or_insert((&write.at, &write.at));
        *span = (span.0.min(&write.at), span.1.max(&write.at));
    }
    let spans = order.iter().map(|one| spans.get(one.as_str()).copied().with_context(|| format!("{one} wrote nothing")));
    let spans = spans.collect::<Result<Vec<_>>>()?;
    for pair in spans.windows(2) {
        ensure!(pair[0].1 < pair[1].0, "a replica wrote until {}, the next one from {} on", pair[0].1, pair[1].0);
    }
    Ok(())
}
