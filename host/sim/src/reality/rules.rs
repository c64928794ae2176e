//! What no order of the engine may ever do, looked at when the order arrives. Limits and doubled instances are looked at
//! where instances are bought.

use std::collections::BTreeMap;

use whittle_model::{Action, Duration, PodKey, keys};

use super::Reality;

impl Reality {
    /// Notes what is wrong with an order.
    pub(super) fn judge(&mut self, action: &Action) {
        let wrong = match action {
            Action::Evict { pod, uid } => self.protected(pod, uid),
            Action::DeletePod { pod, uid, .. } => self.not_out_of_time(pod, uid),
            Action::ReleaseClaim { claim } => {
                let runs = self.ec2.running().find(|i| i.claim == *claim);
                runs.map(|i| format!("claim {claim} is let go while its instance {} runs", i.provider_id))
            }
            Action::ReleaseNode { node } => {
                let runs = self.ec2.running().any(|i| i.node == *node && self.api.nodes.contains_key(node));
                runs.then(|| format!("node {node} is let go while its instance runs"))
            }
            Action::CreateClaim(_)
            | Action::Launch { .. }
            | Action::UpdateClaim { .. }
            | Action::RegisterNode { .. }
            | Action::InitializeNode { .. }
            | Action::Nominate { .. }
            | Action::AnnotateClaim { .. }
            | Action::LabelNode { .. }
            | Action::DeleteClaim { .. }
            | Action::CordonNode { .. }
            | Action::TaintNode { .. }
            | Action::UncordonNode { .. }
            | Action::Terminate { .. }
            | Action::TagInstance { .. }
            | Action::TerminateStray { .. } => None,
        };
        self.violations.extend(wrong);
    }

    /// Whether the annotation of a pod that is to be evicted forbids that.
    fn protected(&self, key: &PodKey, uid: &str) -> Option<String> {
        let pod = self.api.pods.get(key).filter(|pod| pod.uid == uid && !pod.deleting && !pod.terminal())?;
        let value = pod.annotations.get(keys::DO_NOT_DISRUPT)?;
        let still = match Duration::parse(value) {
            Some(span) => pod.started.is_none_or(|started| started.plus(span) > self.now),
            None => value == "true",
        };
        still.then(|| format!("pod {key} is evicted against its annotation {}: {value}", keys::DO_NOT_DISRUPT))
    }

    /// Whether a pod is deleted although the claim of its node leaves it all the time it wants.
    fn not_out_of_time(&self, key: &PodKey, uid: &str) -> Option<String> {
        let node = self.api.pods.get(key).filter(|pod| pod.uid == uid)?.node.as_ref()?;
        let instance = self.ec2.instances.iter().rev().find(|i| i.node == *node)?;
        let claim = self.api.claims.get(&instance.claim)?;
        let limited = claim.termination_grace_period.is_some() || claim.annotations.contains_key(keys::TERMINATION_TIMESTAMP);
        (!limited).then(|| format!("pod {key} is deleted although claim {} has no grace period that ends", claim.name))
    }

    /// Whether anybody can see that a claim's node is on its way out.
    pub(crate) fn goes(&self, claim: &str) -> bool {
        let tainted = self.node_of_claim(claim).is_some_and(|node| node.taints.iter().any(|taint| taint.key == keys::DISRUPTED_TAINT));
        self.api.claims.get(claim).is_some_and(|claim| claim.deleting || tainted)
    }

    /// The pool whose disruption budget moves of these claims cross, if any does. Only budgets that are plain counts for
    /// all times and reasons are looked at.
    pub(crate) fn crossed<'a>(&self, moving: impl Iterator<Item = &'a String>) -> Option<String> {
        let mut going: BTreeMap<&str, usize> = BTreeMap::new();
        for claim in moving.filter_map(|name| self.api.claims.get(name)) {
            *going.entry(&claim.node_pool).or_default() += 1;
        }
        going.into_iter().find_map(|(name, count)| {
            let budgets = self.api.pools.get(name)?.disruption.budgets.iter();
            let plain = budgets.filter(|budget| budget.reasons.is_empty() && budget.schedule.is_none());
            let most = plain.filter_map(|budget| budget.nodes.parse::<usize>().ok()).min()?;
            (count > most).then(|| format!("{count} nodes of nodepool {name} are moved at once, and its budget is {most}"))
        })
    }
}
