//! What AWS says of instances on its own account: which there are, and which will not stay. Instances without a
//! claim go, and claims whose instance is gone.
//!
//! What must not enter: the instances of others. Only those that carry the cluster's tag are ever told of.

use std::collections::{BTreeMap, BTreeSet};

use whittle_model::{Action, Duration, Instance, Interruption, NodeClaim, ObjectKind, OfferingKey, keys};

use crate::lifecycle;
use crate::round::Round;
use crate::world::World;

/// As Karpenter: a younger instance may belong to a claim whose record is still under way.
const YOUNG: Duration = Duration::seconds(30);
/// EC2 lists a new instance a little after it answered the launch.
const LISTED_AFTER: Duration = Duration::minutes(1);

/// Compares the instances there are with the claims there are.
pub(crate) fn compare(round: &mut Round<'_>, instances: &[Instance]) {
    if !round.world.synced {
        return;
    }
    let listed: BTreeMap<&str, &Instance> = instances.iter().filter(|i| i.running).map(|i| (i.provider_id.as_str(), i)).collect();
    if round.world.aside.none(ObjectKind::NodeClaim) {
        for provider_id in strays(round.world, &listed, round.now.plus(Duration(-YOUNG.0))) {
            round.act(Action::TerminateStray { provider_id });
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
            None => lifecycle::condemn(round, &claim.name, "GarbageCollected"),
        }
    }
}

/// Instances that no claim stands for, nor may come to stand for.
fn strays(world: &World, listed: &BTreeMap<&str, &Instance>, before: whittle_model::Timestamp) -> Vec<String> {
    let unlaunched = world.claims.values().filter(|c| c.status.provider_id.is_empty());
    let groups: BTreeSet<&str> = unlaunched.filter_map(|c| c.annotations.get(keys::LAUNCH_GROUP)).map(String::as_str).collect();
    let awaited = |instance: &Instance| instance.group.as_deref().is_some_and(|group| groups.contains(group));
    let stray = |i: &&&Instance| i.launched < before && !world.claim_by_provider.contains_key(&i.provider_id) && !awaited(i);
    listed.values().filter(stray).map(|i| i.provider_id.clone()).collect()
}

/// AWS says that an instance will not stay: its claim goes, and what was taken back is not asked for again soon.
pub(crate) fn interrupted(round: &mut Round<'_>, provider_id: &str, what: Interruption) {
    let id = provider_id.rsplit('/').next().unwrap_or(provider_id);
    let ours = |c: &&NodeClaim| !c.status.provider_id.is_empty() && c.status.provider_id.rsplit('/').next() == Some(id);
    let Some(claim) = round.world.claims.values().find(ours).cloned() else { return };
    let reason = match what {
        Interruption::RebalanceRecommendation => return, // advice; the instance may live on for days
        Interruption::SpotInterrupted => "SpotInterrupted",
        Interruption::InstanceStopped => "InstanceStopped",
        Interruption::InstanceTerminated => "InstanceTerminated",
        Interruption::ScheduledChange => "ScheduledChange",
        Interruption::CapacityReservationInterrupted => "CapacityReservationInterrupted",
        Interruption::InstanceStatus => "InstanceStatus",
        Interruption::SystemStatus => "SystemStatus",
        Interruption::EventStatus => "EventStatus",
    };
    if let (Interruption::SpotInterrupted, Some(capacity_type)) = (what, claim.status.capacity_type) {
        let status = &claim.status;
        let taken = OfferingKey { instance_type: status.instance_type.clone(), zone: status.zone.clone(), capacity_type };
        lifecycle::sold_out(round, &[taken]);
    }
    if !claim.deleting {
        lifecycle::condemn(round, &claim.name, reason);
    }
}
