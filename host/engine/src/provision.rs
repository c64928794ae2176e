//! Plans carried out: claims are ordered for pods without a place, and pods are nominated to nodes that have joined.
//!
//! What must not enter: how a plan is made.

use std::collections::BTreeSet;

use whittle_model::{Action, Duration, ListPrice, PodKey, Scorer, Timestamp};

use crate::audit::audit;
use crate::ledger::Order;
use crate::plan;
use crate::plan::classes::Member;
use crate::report::{PlannedClaim, Step};
use crate::round::Round;
use crate::world::World;

/// A policy that vetoes what pods need may think otherwise later, and no event says so: it is asked again after so long.
const VETO_HOLDS: Duration = Duration::minutes(5);
/// One that failed is asked again sooner.
const FAILURE_HOLDS: Duration = Duration::minutes(1);

/// What a plan leaves to be looked after.
#[derive(Debug, Default)]
pub(crate) struct Provisioned {
    /// Whether pods fit nowhere.
    pub(crate) hungry: bool,
    /// When policies are to be asked again that may be the reason.
    pub(crate) ask_again: Option<Timestamp>,
    /// Pods that have room on nodes in use.
    pub(crate) expected: Vec<PodKey>,
}

/// Plans for pods without a place and orders the claims.
pub(crate) fn provision(round: &mut Round<'_>, scorer: &mut dyn Scorer) -> Provisioned {
    let plan = plan::plan(round.world, scorer, round.now);
    let judged = round.world.settings.compare_policies && !plan.policies.is_empty();
    let without = judged.then(|| plan::plan(round.world, &mut ListPrice, round.now).nodes.iter().map(|n| n.cost).sum());
    let objections = audit(round.world, &plan, round.now);
    if !objections.is_empty() {
        // A plan that the auditor objects to is a bug: nothing is bought on its word.
        round.report.objections.extend(objections.iter().map(ToString::to_string));
        return Provisioned { hungry: true, ..Provisioned::default() };
    }
    let ask_again = if plan.failures.is_empty() { (!plan.at_list).then_some(VETO_HOLDS) } else { Some(FAILURE_HOLDS) };
    round.report.policies = plan.policies;
    round.report.failures = plan.failures;
    // What lies in a pod itself no new supply can mend.
    let hungry = plan.unplaced.iter().any(|unplaced| unplaced.reasons.iter().any(|reason| reason.place != "pod"));
    let mut expected = Vec::new();
    round.world.hold_room(&plan.placed);
    round.world.seated.clear();
    for (on, mut pods) in plan.placed {
        pods.retain(|pod| !round.world.buffers.holds(pod));
        let starting = |node| round.world.claim_of(node).is_some_and(|claim| claim.status.initialized.is_none());
        if round.world.nodes.get(&on).is_some_and(|node| !starting(node)) {
            expected.extend(pods.iter().cloned());
            round.world.seated.extend(pods.iter().map(|pod| (pod.clone(), on.clone())));
        }
        let meant_here =
            |pod: &PodKey| Member::known(round.world, pod).and_then(|pod| plan::bins::meant_for(round.world, &pod)) == Some(&on);
        let pods: Vec<PodKey> = pods.into_iter().filter(|pod| !meant_here(pod)).collect();
        if !pods.is_empty() {
            assign(round.world, &on, &pods);
            round.report.steps.push(Step::Placed { on, pods });
        }
    }
    let mut kept = 0;
    for node in plan.nodes {
        let name = node.claim.name.clone();
        for pod in &node.pods {
            round.world.assigned.set(pod.clone(), &name);
        }
        let mut planned = PlannedClaim::of(&node);
        let all = planned.pods.len();
        planned.pods.retain(|pod| !round.world.buffers.holds(pod));
        planned.room = all - planned.pods.len();
        kept += planned.room;
        round.report.steps.push(Step::Planned(Box::new(planned)));
        round.ledger.planned(name);
        round.world.put_claim(node.claim);
    }
    for mut unplaced in plan.unplaced {
        for pod in &unplaced.pods {
            round.world.assigned.clear(pod); // what an earlier plan meant them for is not theirs any more
        }
        unplaced.pods.retain(|pod| !round.world.buffers.holds(pod));
        if !unplaced.pods.is_empty() {
            round.report.steps.push(Step::Unplaced(Box::new(unplaced)));
        }
    }
    round.report.choice = plan.choice;
    if let Some(choice) = &mut round.report.choice {
        choice.without_policies = without;
        (choice.pods, choice.room) = (choice.pods.saturating_sub(kept), kept);
    }
    Provisioned { hungry, ask_again: ask_again.filter(|_| hungry).map(|span| round.now.plus(span)), expected }
}

/// Pods that were given room on a node of ours that is still starting wait for that node; those that were given room
/// on one in use wait for none.
fn assign(world: &mut World, on: &str, pods: &[PodKey]) {
    let claim = match world.nodes.get(on) {
        Some(node) => world.claim_of(node).filter(|c| c.status.initialized.is_none()).map(|c| c.name.clone()),
        None => Some(on.to_owned()),
    };
    for pod in pods {
        match &claim {
            Some(claim) => world.assigned.set(pod.clone(), claim),
            None => world.assigned.clear(pod),
        }
    }
    world.touched.extend(claim);
}

/// Nominates planned pods to their nodes when these are about to open (see [`turns`](crate::turns)): when a node can take
/// pods, its own must be known to kube-scheduler, or others take their room. Nominations that were lost are given again.
pub(crate) fn nominate(round: &mut Round<'_>, names: &BTreeSet<String>) {
    if !round.world.settings.nominates() {
        return;
    }
    for name in names {
        let Some(claim) = round.world.claims.get(name).filter(|c| !c.deleting) else { continue };
        let open = |node: &&whittle_model::Node| node.labels.contains_key(whittle_model::keys::REGISTERED) || round.ledger.turns.has(name);
        let Some(node) = round.world.node_of(claim).filter(open).map(|node| node.name.clone()) else { continue };
        let waits = |pod: &&PodKey| {
            let record = round.world.pods.get(*pod).filter(|_| !round.world.buffers.holds(pod));
            record.is_some_and(|r| r.node.is_none() && r.nominated.as_ref() != Some(&node))
        };
        let planned: Vec<PodKey> = round.world.assigned.pods(name).filter(waits).cloned().collect();
        let pods: Vec<PodKey> = planned.into_iter().filter(|pod| round.admit(name, Order::Nominate, &pod.to_string())).collect();
        for pod in &pods {
            round.act(Action::Nominate { pod: pod.clone(), node: node.clone() });
        }
        if !pods.is_empty() {
            round.report.steps.push(Step::Nominated { node, pods });
        }
    }
}
