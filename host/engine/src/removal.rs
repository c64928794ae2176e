//! How nodes go: empty ones after their pool's `consolidateAfter`, and every claim that is being
//! deleted, step by step: drain, terminate, let go.

use std::collections::BTreeSet;

use whittle_model::scorer::MoveVerdict;
use whittle_model::{Action, Micros, NodeClaim, Scorer, Timestamp, keys};

use crate::drain;
use crate::judging;
use crate::ledger::Order;
use crate::lifecycle;
use crate::report::ClaimStep;
use crate::round::Round;
use crate::world::World;

/// Takes claims that are being deleted one step further.
pub(crate) fn advance(round: &mut Round<'_>, names: &BTreeSet<String>) {
    for name in names {
        let Some(claim) = round.world.claims.get(name).filter(|c| c.deleting).cloned() else { continue };
        round.ledger.done(&claim.name, Order::Delete, &claim.name);
        let unlaunched = claim.status.provider_id.is_empty();
        if round.ledger.ended.contains(&claim.name) || (unlaunched && round.ledger.refused(&claim.name)) {
            release(round, &claim);
        } else if unlaunched && round.ledger.under_way(&claim.name, Order::Launch, &claim.name, round.now) {
            // The answer may name an instance, which must not be forgotten.
        } else if drain::advance(round, &claim) && round.admit(&claim.name, Order::Terminate, &claim.name) {
            let now = round.now;
            if claim.status.instance_terminating.is_none() && !unlaunched {
                lifecycle::update(round, &claim.name, |status| status.instance_terminating = Some(now));
            }
            round.act(Action::Terminate { claim: claim.name.clone() });
        }
    }
}

fn release(round: &mut Round<'_>, claim: &NodeClaim) {
    let nodes: Vec<String> = round.world.nodes_of(claim).map(|n| n.name.clone()).collect();
    // The claim stays until its nodes are gone: without it nobody would ask again.
    for node in &nodes {
        if round.admit(&claim.name, Order::ReleaseNode, node) {
            round.act(Action::ReleaseNode { node: node.clone() });
        }
    }
    if !nodes.is_empty() {
        return;
    }
    if round.admit(&claim.name, Order::ReleaseClaim, &claim.name) {
        round.act(Action::ReleaseClaim { claim: claim.name.clone() });
        round.step(&claim.name, ClaimStep::Removed);
    }
}

/// Removes nodes that have been empty long enough, those first that save most.
pub(crate) fn empty_nodes(round: &mut Round<'_>, names: &BTreeSet<String>, scorer: &mut dyn Scorer) {
    for name in names {
        // A removal that was lost is thought over again: the node may be in use by now.
        if round.world.claims.get(name).is_some_and(|claim| empty_until(round.world, claim).is_none())
            && !round.ledger.condemned.contains_key(name)
            && !round.ledger.under_way(name, Order::Delete, name, round.now)
        {
            round.world.leaving.remove(name);
            round.ledger.done(name, Order::Delete, name);
        }
    }
    let due: Vec<(String, String, Micros)> = names
        .iter()
        .filter_map(|name| round.world.claims.get(name))
        .filter(|claim| empty_until(round.world, claim).is_some_and(|at| at <= round.now))
        .map(|claim| (claim.name.clone(), claim.status.node.clone(), claim.status.price))
        .collect();
    if due.is_empty() {
        return;
    }
    let mut ranked: Vec<(i64, String)> = Vec::new();
    let names: Vec<String> = due.into_iter().map(|(claim, _, _)| claim).collect();
    for (claim, verdict) in judging::empty_moves(round.world, &names, scorer, round.now, &mut round.report.failures) {
        match verdict {
            MoveVerdict::Score(score) => ranked.push((score, claim)),
            MoveVerdict::Vetoed(reason) => {
                let why = scorer.reason(reason);
                round.step(&claim, ClaimStep::Kept(why));
            }
        }
    }
    round.report.policies.extend(scorer.close());
    ranked.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    for (_, claim) in ranked {
        lifecycle::delete(round, &claim, "Empty");
    }
}

/// When an empty node of ours may go; `None` when it is not empty, or must stay.
pub(crate) fn empty_until(world: &World, claim: &NodeClaim) -> Option<Timestamp> {
    let initialized = claim.status.initialized.filter(|_| !claim.deleting && !world.stays(claim))?;
    let pool = world.pools.get(&claim.node_pool).filter(|pool| pool.replicas.is_none())?;
    let after = pool.disruption.consolidate_after?;
    let node = world.node_of(claim)?;
    let in_use = world.usage.get(&node.name).is_some_and(|u| u.workload > 0);
    let expected = world.assigned.expects(&claim.name) || world.nominated.contains_key(&node.name);
    let protected = |labels: &whittle_model::Labels| labels.get(keys::DO_NOT_DISRUPT).is_some_and(|v| v == "true");
    if in_use || expected || protected(&node.annotations) || protected(&claim.annotations) {
        return None;
    }
    Some(claim.status.last_pod_event.map_or(initialized, |last| last.max(initialized)).plus(after))
}
