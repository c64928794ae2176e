//! How nodes go: every claim that is being deleted, step by step: cordon, evict, terminate, let go.

use std::collections::BTreeSet;

use whittle_model::{Action, NodeClaim, keys};

use crate::ledger::Order;
use crate::report::ClaimStep;
use crate::round::Round;

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
        } else if drained(round, &claim) && round.admit(&claim.name, Order::Terminate, &claim.name) {
            round.act(Action::Terminate { claim: claim.name.clone() });
        }
    }
}

/// Cordons the node and asks its pods to leave; true when none is left to wait for.
fn drained(round: &mut Round<'_>, claim: &NodeClaim) -> bool {
    let Some(node) = round.world.node_of(claim).map(|n| n.name.clone()) else { return true };
    if !round.world.nodes[&node].taints.iter().any(|t| t.key == keys::DISRUPTED_TAINT) {
        if round.admit(&claim.name, Order::Cordon, &node) {
            round.act(Action::CordonNode { node: node.clone() });
        }
        return false;
    }
    let Some(usage) = round.world.usage.get(&node) else { return true };
    let pods: Vec<_> =
        usage.pods.iter().filter(|key| round.world.pods.get(*key).is_some_and(|r| !round.world.tied_to_node(r))).cloned().collect();
    for pod in &pods {
        let record = &round.world.pods[pod];
        let protected = round.world.identity_of(record).annotations.get(keys::DO_NOT_DISRUPT).is_some_and(|v| v == "true");
        if !record.deleting && !protected && round.admit(&claim.name, Order::Evict, &pod.to_string()) {
            round.act(Action::Evict { pod: pod.clone() });
        }
    }
    pods.is_empty() && !round.world.pinned(&node)
}

fn release(round: &mut Round<'_>, claim: &NodeClaim) {
    if let Some(node) = round.world.node_of(claim).map(|n| n.name.clone()) {
        // The claim stays until its node is gone: without it nobody would ask again.
        if round.admit(&claim.name, Order::ReleaseNode, &node) {
            round.act(Action::ReleaseNode { node });
        }
        return;
    }
    if round.admit(&claim.name, Order::ReleaseClaim, &claim.name) {
        round.act(Action::ReleaseClaim { claim: claim.name.clone() });
        round.step(&claim.name, ClaimStep::Removed);
    }
}
