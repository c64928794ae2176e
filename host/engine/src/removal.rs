//! How nodes go: every claim that is being deleted, step by step: drain, terminate, let go.

use std::collections::BTreeSet;

use whittle_model::{Action, NodeClaim};

use crate::drain;
use crate::ledger::Order;
use crate::lifecycle;
use crate::report::ClaimStep;
use crate::round::Round;

/// Takes claims that are being deleted one step further.
pub(crate) fn advance(round: &mut Round<'_>, names: &BTreeSet<String>) {
    for name in names {
        let Some(claim) = round.world.claims.get(name).filter(|c| c.deleting).cloned() else { continue };
        round.ledger.done(&claim.name, Order::Delete, &claim.name);
        if round.world.hides_node(&claim) {
            continue; // what is on it is not known, and without its claim nobody would let it go
        }
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
    if !nodes.is_empty() || round.world.may_hide_node(claim) {
        return;
    }
    if round.admit(&claim.name, Order::ReleaseClaim, &claim.name) {
        round.act(Action::ReleaseClaim { claim: claim.name.clone() });
        round.step(&claim.name, ClaimStep::Removed);
    }
}
