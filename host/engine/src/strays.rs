//! What AWS says of instances on its own account: which there are, and which will not stay. Instances without a
//! claim go, and claims whose instance is gone.
//!
//! What must not enter: the instances of others. Only those that carry the cluster's tag are ever told of.

use std::collections::{BTreeMap, BTreeSet};

use whittle_model::{Action, CapacityType, Duration, Instance, Interruption, Node, NodeClaim, ObjectKind, Timestamp, keys};

use crate::ledger::Ledger;
use crate::lifecycle;
use crate::report::{ClaimStep, Step};
use crate::round::Round;
use crate::world::World;

/// As Karpenter: a younger instance may belong to a claim whose record is still under way.
const YOUNG: Duration = Duration::seconds(30);
/// More garbage than this within an hour, and than this share of all, means that what is looked at is wrong.
const MOST_COLLECTED: usize = 5;
const MOST_COLLECTED_PERCENT: usize = 5;
/// EC2 lists a new instance a little after it answered the launch.
const LISTED_AFTER: Duration = Duration::minutes(1);

/// Compares the instances there are with the claims there are.
pub(crate) fn compare(round: &mut Round<'_>, instances: &[Instance]) {
    if !round.world.synced {
        return;
    }
    let listed: BTreeMap<&str, &Instance> = instances.iter().filter(|i| i.running).map(|i| (i.provider_id.as_str(), i)).collect();
    let most = MOST_COLLECTED.max((round.world.claims.len() * MOST_COLLECTED_PERCENT).div_ceil(100));
    let mut left = 0;
    if round.world.aside.none(ObjectKind::NodeClaim) {
        for provider_id in strays(round.world, &listed, round.now.plus(Duration(-YOUNG.0))) {
            if round.ledger.collect(&provider_id, most, round.now) {
                round.act(Action::TerminateStray { provider_id });
            } else {
                left += 1;
            }
        }
        for node in forsaken(round.world, &listed) {
            round.act(Action::ReleaseNode { node });
        }
    }
    let settled = round.now.plus(Duration(-LISTED_AFTER.0));
    let registered = |c: &&NodeClaim| !c.deleting && c.status.registered.is_some() && c.status.launched.is_some_and(|at| at < settled);
    let claims: Vec<NodeClaim> = round.world.claims.values().filter(registered).cloned().collect();
    for claim in claims {
        match listed.get(claim.status.provider_id.as_str()) {
            Some(instance) if instance.claim.as_deref() != Some(claim.name.as_str()) => lifecycle::tag(round, &claim.name),
            Some(_) => {}
            // A ready node is a running instance, whatever a list says.
            None if round.world.node_of(&claim).is_some_and(|node| node.ready) => {}
            // That the node is gone too is a second witness.
            None if round.world.node_of(&claim).is_none() || round.ledger.collect(&claim.name, most, round.now) => {
                lifecycle::condemn(round, &claim.name, "GarbageCollected");
            }
            None => left += 1,
        }
    }
    ended(round, &listed, settled);
    if left != std::mem::replace(&mut round.ledger.left, left) && left > 0 {
        round.report.steps.push(Step::CollectionStopped { left, most });
    }
}

/// Claims that go and whose instance is gone already are let go, however their drain stands: nothing of it runs.
fn ended(round: &mut Round<'_>, listed: &BTreeMap<&str, &Instance>, settled: Timestamp) {
    let world = &round.world;
    let over = |claim: &&NodeClaim| {
        let status = &claim.status;
        let launched = !status.provider_id.is_empty() && status.launched.is_some_and(|at| at < settled);
        launched && !listed.contains_key(status.provider_id.as_str()) && world.node_of(claim).is_none_or(|node| !node.ready)
    };
    let names: Vec<String> = world.going.iter().filter_map(|name| world.claims.get(name)).filter(over).map(|c| c.name.clone()).collect();
    for name in names {
        round.world.touched.insert(name.clone());
        round.ledger.ended.insert(name);
    }
}

/// Nodes that are deleted and that nobody will let go: their claim is gone, as when somebody took its finalizer away, and
/// so is their instance.
fn forsaken(world: &World, listed: &BTreeMap<&str, &Instance>) -> Vec<String> {
    let ours = |node: &&Node| node.deleting && node.labels.contains_key(keys::REGISTERED) && !node.provider_id.is_empty();
    let gone = |node: &&Node| !world.claim_by_provider.contains_key(&node.provider_id) && !listed.contains_key(node.provider_id.as_str());
    world.nodes.values().filter(ours).filter(gone).map(|node| node.name.clone()).collect()
}

/// Instances that no claim stands for, nor may come to stand for.
fn strays(world: &World, listed: &BTreeMap<&str, &Instance>, before: Timestamp) -> Vec<String> {
    let unlaunched = world.claims.values().filter(|c| c.status.provider_id.is_empty());
    let groups: BTreeSet<&str> = unlaunched.filter_map(|c| c.annotations.get(keys::LAUNCH_GROUP)).map(String::as_str).collect();
    let awaited = |instance: &Instance| instance.group.as_deref().is_some_and(|group| groups.contains(group));
    let stray = |i: &&&Instance| i.launched < before && !world.claim_by_provider.contains_key(&i.provider_id) && !awaited(i);
    listed.values().filter(stray).map(|i| i.provider_id.clone()).collect()
}

/// AWS says that an instance will not stay: its claim goes, and what was taken back is not asked for again soon.
pub(crate) fn interrupted(round: &mut Round<'_>, provider_id: &str, what: Interruption) {
    let Some(claim) = round.world.claim_of_instance(provider_id).cloned() else { return };
    let reason = match what {
        // Advice: the instance may live on for days.
        Interruption::RebalanceRecommendation => {
            if round.world.advised.insert(claim.name.clone(), round.now).is_none() {
                round.step(&claim.name, ClaimStep::RebalanceAdvised);
            }
            return;
        }
        Interruption::SpotInterrupted => "SpotInterrupted",
        Interruption::InstanceStopped => "InstanceStopped",
        Interruption::InstanceTerminated => "InstanceTerminated",
        Interruption::ScheduledChange => "ScheduledChange",
        Interruption::CapacityReservationInterrupted => "CapacityReservationInterrupted",
        Interruption::InstanceStatus => "InstanceStatus",
        Interruption::SystemStatus => "SystemStatus",
        Interruption::EventStatus => "EventStatus",
    };
    if round.ledger.interrupted.insert((claim.name.clone(), what)) {
        taken_back(round, &claim, what);
    }
    if !claim.deleting {
        lifecycle::condemn(round, &claim.name, reason);
    }
}

/// What was taken back is not asked for again soon, and is remembered for longer.
fn taken_back(round: &mut Round<'_>, claim: &NodeClaim, what: Interruption) {
    let status = &claim.status;
    let (Some(taken), Some(since)) = (status.offering(), status.launched) else { return };
    let spot = what == Interruption::SpotInterrupted;
    if spot {
        round.world.interruptions.note(&taken, since, round.now, true);
    }
    if spot || what == Interruption::CapacityReservationInterrupted {
        lifecycle::sold_out(round, &[taken]);
    }
}

/// A claim is gone: the hours that its spot instance ran count, unless they were counted when it was taken back.
pub(crate) fn ran(world: &mut World, ledger: &Ledger, claim: &str, now: Timestamp) {
    let Some(status) = world.claims.get(claim).map(|claim| &claim.status) else { return };
    let counted = ledger.interrupted.contains(&(claim.to_owned(), Interruption::SpotInterrupted));
    let spot = status.offering().filter(|bought| bought.capacity_type == CapacityType::Spot && !counted);
    if let (Some(bought), Some(since)) = (spot, status.launched) {
        world.interruptions.note(&bought, since, now, false);
    }
}
