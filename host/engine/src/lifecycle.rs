//! A claim's way from intent to a node in use: launch, registration, initialization, and what
//! happens when one of them does not come.

use std::collections::BTreeSet;

use whittle_model::{
    Action, ClaimStatus, Duration, InstanceType, Labels, LaunchFailure, Launched, Node, NodeClaim, OfferingKey, Resources, Timestamp, keys,
};

use crate::drain;
use crate::expiry;
use crate::ledger::{Ledger, Order};
use crate::overlays;
use crate::repair;
use crate::report::{ClaimStep, Step};
use crate::round::Round;
use crate::turns;
use crate::world::World;

/// As Karpenter: a launch that has not come by then will not.
pub(crate) const LAUNCH_TIMEOUT: Duration = Duration::minutes(5);
/// As Karpenter: a kubelet that has not joined by then will not.
pub(crate) const REGISTRATION_TIMEOUT: Duration = Duration::minutes(15);
/// Ours: drivers of accelerators take up to a quarter of an hour; twice that is a broken node.
pub(crate) const INITIALIZATION_TIMEOUT: Duration = Duration::minutes(30);
/// As Karpenter: how long an offering that was sold out is left alone.
pub(crate) const SOLD_OUT_FOR: Duration = Duration::minutes(3);

/// Takes living claims one step further.
pub(crate) fn advance(round: &mut Round<'_>, names: &BTreeSet<String>) {
    for name in names {
        let Some(claim) = round.world.claims.get(name).filter(|c| !c.deleting) else { continue };
        if let Some(reason) = round.ledger.condemned.get(name).cloned() {
            if round.ledger.unseen.contains(name) && round.ledger.lapsed(name, Order::Delete, name, round.now) {
                forget(round, name);
            } else {
                delete(round, name, &reason);
            }
            continue;
        }
        if let Some(reason) = expiry::reason(round.world, claim, round.now) {
            condemn(round, name, reason);
            continue;
        }
        let claim = claim.clone();
        if claim.status.initialized.is_some() {
            upkeep(round, &claim);
            continue;
        }
        match (claim.status.launched, claim.status.registered) {
            (None, _) => launch(round, &claim),
            (Some(_), None) => register(round, &claim),
            (Some(_), Some(_)) => initialize(round, &claim),
        }
    }
}

/// When the claim's next milestone is overdue.
pub(crate) fn overdue_at(claim: &NodeClaim) -> Option<Timestamp> {
    let status = &claim.status;
    match (status.launched, status.registered, status.initialized) {
        (None, _, _) => Some(claim.created.plus(LAUNCH_TIMEOUT)),
        (Some(since), None, _) => Some(since.plus(REGISTRATION_TIMEOUT)),
        (Some(_), Some(since), None) => Some(since.plus(INITIALIZATION_TIMEOUT)),
        (Some(_), Some(_), Some(_)) => None,
    }
}

fn overdue(claim: &NodeClaim, now: Timestamp) -> bool {
    overdue_at(claim).is_some_and(|at| at <= now)
}

fn launch(round: &mut Round<'_>, claim: &NodeClaim) {
    if overdue(claim, round.now) {
        return condemn(round, &claim.name, "LaunchTimeout");
    }
    if round.ledger.unseen.contains(&claim.name) {
        // Money is spent only on a claim that the watch has shown.
        if round.admit(&claim.name, Order::Create, &claim.name) {
            round.act(Action::CreateClaim(Box::new(claim.clone())));
        }
        return;
    }
    if round.admit(&claim.name, Order::Launch, &claim.name) {
        let adopt = round.ledger.may_be_launched(&claim.name);
        round.act(Action::Launch { claim: claim.name.clone(), adopt });
        round.step(&claim.name, ClaimStep::Launching);
    }
}

/// A claim that the watch never showed, and whose removal shows nothing either: somebody was faster than the watch. No
/// instance was bought for it.
fn forget(round: &mut Round<'_>, name: &str) {
    round.world.drop_claim(name);
    round.ledger.forget(name);
    round.step(name, ClaimStep::Removed);
}

/// What is looked after in a node that is in use.
fn upkeep(round: &mut Round<'_>, claim: &NodeClaim) {
    let class = claim.labels.get(keys::NODE_CLASS);
    if class.is_none() && !claim.node_class.is_empty() {
        hydrate(round, claim);
    }
    let Some(node) = round.world.node_of(claim) else { return };
    let short = shortfall(claim, node);
    if short.as_ref() != claim.status.inconsistent.as_ref().map(|(why, _)| why) {
        let now = round.now;
        update(round, &claim.name, |status| status.inconsistent = short.clone().map(|why| (why, now)));
        if let Some(why) = short {
            round.step(&claim.name, ClaimStep::Inconsistent(why));
        }
    }
}

/// Claims and nodes of older versions lack a label that newer ones have.
fn hydrate(round: &mut Round<'_>, claim: &NodeClaim) {
    let labels = Labels::from([(keys::NODE_CLASS.to_owned(), claim.node_class.clone())]);
    if let Some(known) = round.world.claims.get_mut(&claim.name) {
        known.labels.extend(labels.clone());
    }
    update(round, &claim.name, |_| {});
    let bare = round.world.node_of(claim).filter(|node| !node.labels.contains_key(keys::NODE_CLASS)).map(|node| node.name.clone());
    if let Some(node) = bare {
        round.act(Action::LabelNode { node, labels });
    }
}

/// What a node has less of than nine tenths of what was bought, if pods asked for it.
fn shortfall(claim: &NodeClaim, node: &Node) -> Option<String> {
    let short = claim.requests.iter().find_map(|(name, _)| {
        let (bought, there) = (claim.status.capacity.get(name), node.capacity.get(name));
        (i128::from(there) * 10 < i128::from(bought) * 9).then_some((name, bought, there))
    });
    short.map(|(name, bought, there)| {
        let text = |amount| whittle_model::resources::format_amount(name, amount);
        format!("expected {} of {name}, but found {}", text(bought), text(there))
    })
}

fn register(round: &mut Round<'_>, claim: &NodeClaim) {
    if several_nodes(round, claim) {
        return;
    }
    let Some(node) = round.world.node_of(claim).cloned() else {
        if overdue(claim, round.now) {
            condemn(round, &claim.name, "RegistrationTimeout");
        }
        return;
    };
    if node.labels.get(keys::REGISTERED).is_some_and(|v| v == "true") {
        round.ledger.done(&claim.name, Order::Register, &node.name);
        let now = round.now;
        update(round, &claim.name, |status| {
            status.registered = Some(now);
            status.node.clone_from(&node.name);
        });
        round.world.learn_from(&claim.name, now);
        round.step(&claim.name, ClaimStep::Registered(node.name.clone()));
        tag(round, &claim.name);
        if let Some(claim) = round.world.claims.get(&claim.name).cloned() {
            initialize(round, &claim);
        }
        return;
    }
    if turns::held_until(round.world, &round.ledger.turns, claim, &node, round.now).is_some() {
        return;
    }
    if round.admit(&claim.name, Order::Register, &node.name) {
        let mut labels = claim.labels.clone();
        labels.insert(keys::REGISTERED.to_owned(), "true".to_owned());
        if claim.startup_taints.is_empty() && turns::usable(claim, &node) {
            labels.insert(keys::INITIALIZED.to_owned(), "true".to_owned());
        }
        let mut taints: Vec<_> = node.taints.iter().filter(|t| t.key != keys::UNREGISTERED_TAINT).cloned().collect();
        for taint in claim.taints.iter().chain(&claim.startup_taints) {
            if !taints.iter().any(|t| t.key == taint.key && t.effect == taint.effect) {
                taints.push(taint.clone());
            }
        }
        round.act(Action::RegisterNode { node: node.name, claim: claim.name.clone(), labels, taints });
    }
}

/// Whether more than one node says that it is the instance of a claim. Then none is taken for it.
fn several_nodes(round: &mut Round<'_>, claim: &NodeClaim) -> bool {
    let names: Vec<&str> = round.world.nodes_of(claim).map(|node| node.name.as_str()).collect();
    let error =
        (names.len() > 1).then(|| ("MultipleNodesFound".to_owned(), format!("several nodes have its provider id: {}", names.join(", "))));
    if claim.status.registration_error != error {
        if let Some((_, why)) = &error {
            round.step(&claim.name, ClaimStep::Inconsistent(why.clone()));
        }
        let error = error.clone();
        update(round, &claim.name, |status| status.registration_error = error);
    }
    if error.is_some() && overdue(claim, round.now) {
        condemn(round, &claim.name, "RegistrationTimeout");
    }
    error.is_some()
}

/// When the claim must be looked at next although nothing happens to it, and whether something is overdue then.
pub(crate) fn due_at(world: &World, ledger: &Ledger, claim: &NodeClaim, now: Timestamp) -> Option<Timestamp> {
    let joined = claim.status.launched.is_some() && claim.status.registered.is_none();
    let node = world.node_of(claim).filter(|node| joined && !node.labels.contains_key(keys::REGISTERED));
    let held = node.and_then(|node| turns::held_until(world, &ledger.turns, claim, node, now));
    held.into_iter().chain(overdue_at(claim)).min()
}

/// When a claim goes although nothing happens to it.
pub(crate) fn ends_at(world: &World, claim: &NodeClaim) -> Option<Timestamp> {
    expiry::expires_at(world, claim).into_iter().chain(repair::due_at(world, claim)).min()
}

/// Names of claim and node are tags of the instance once both exist.
pub(crate) fn tag(round: &mut Round<'_>, claim: &str) {
    if round.admit(claim, Order::Tag, claim) {
        round.act(Action::TagInstance { claim: claim.to_owned() });
        // Nothing answers; a tag that was lost is seen as missing when instances are listed.
        round.ledger.done(claim, Order::Tag, claim);
    }
}

fn initialize(round: &mut Round<'_>, claim: &NodeClaim) {
    let Some(node) = round.world.node_of(claim).cloned() else { return };
    if node.labels.get(keys::INITIALIZED).is_some_and(|v| v == "true") {
        round.ledger.done(&claim.name, Order::Initialize, &node.name);
        let now = round.now;
        update(round, &claim.name, |status| status.initialized = Some(now));
        return round.step(&claim.name, ClaimStep::Initialized(node.name));
    }
    if turns::usable(claim, &node) {
        if round.admit(&claim.name, Order::Initialize, &node.name) {
            round.act(Action::InitializeNode { node: node.name });
        }
    } else if overdue(claim, round.now) {
        condemn(round, &claim.name, "InitializationTimeout");
    }
}

/// Orders the removal of a claim that failed: there is no way back.
pub(crate) fn condemn(round: &mut Round<'_>, claim: &str, reason: &str) {
    if !round.world.claims.contains_key(claim) {
        return; // a late answer
    }
    round.ledger.condemned.insert(claim.to_owned(), reason.to_owned());
    delete(round, claim, reason);
}

/// Reasons that leave pods no time: what they run on is broken.
const FORCEFUL: [&str; 3] = ["Unhealthy", "InstanceStatus", "SystemStatus"];

/// Whether a claim is known to end now. If not it is noted on the claim first: who takes the drain up after a crash must
/// know of it.
fn ends_now(round: &mut Round<'_>, name: &str) -> bool {
    let Some(claim) = round.world.claims.get(name) else { return true };
    if claim.status.launched.is_none() || drain::ends_at(claim).is_some_and(|at| at <= round.now) {
        round.ledger.done(name, Order::Annotate, name);
        return true;
    }
    if round.admit(name, Order::Annotate, name) {
        let annotations = Labels::from([(keys::TERMINATION_TIMESTAMP.to_owned(), round.now.rfc3339())]);
        round.act(Action::AnnotateClaim { claim: name.to_owned(), annotations });
    }
    false
}

/// Orders a claim's removal. From now on nothing is planned on it.
pub(crate) fn delete(round: &mut Round<'_>, claim: &str, reason: &str) {
    if FORCEFUL.contains(&reason) && !ends_now(round, claim) {
        return;
    }
    if round.admit(claim, Order::Delete, claim) {
        round.world.leaving.insert(claim.to_owned());
        round.act(Action::DeleteClaim { claim: claim.to_owned(), reason: reason.to_owned() });
        round.step(claim, ClaimStep::Removing(reason.to_owned()));
    }
}

/// Changes what is known of a claim and orders it written.
pub(crate) fn update(round: &mut Round<'_>, name: &str, change: impl FnOnce(&mut ClaimStatus)) {
    let Some(claim) = round.world.claims.get_mut(name) else { return };
    change(&mut claim.status);
    let (labels, status) = (claim.labels.clone(), Box::new(claim.status.clone()));
    round.act(Action::UpdateClaim { claim: name.to_owned(), labels, status });
}

/// An instance was bought for a claim. Labels of its type join those of the claim; the claim's own
/// win.
pub(crate) fn launched(world: &mut World, ledger: &mut Ledger, launched: &Launched, now: Timestamp) -> Option<Action> {
    ledger.done(&launched.claim, Order::Launch, &launched.claim);
    let node_class = world.claims.get(&launched.claim)?.node_class.clone();
    let expected = world.expected(&node_class, &launched.instance_type, &launched.allocatable);
    let overlaid = world.claims.get(&launched.claim).and_then(|claim| overlays::more(world, claim, &launched.instance_type));
    let claim = world.claims.get_mut(&launched.claim)?;
    if !claim.status.provider_id.is_empty() {
        return None; // a repeated answer
    }
    let catalog = world.catalogs.get(&claim.node_class);
    if let Some(instance_type) = catalog.and_then(|c| c.get(&launched.instance_type)) {
        for (key, value) in labels_of(instance_type, claim, launched) {
            claim.labels.entry(key).or_insert(value);
        }
    }
    for (key, value) in [
        (keys::ZONE, launched.zone.as_str()),
        (keys::CAPACITY_TYPE, launched.capacity_type.name()),
        (keys::INSTANCE_TYPE, &launched.instance_type),
    ] {
        claim.labels.insert(key.to_owned(), value.to_owned());
    }
    let status = &mut claim.status;
    status.launched = Some(now);
    status.provider_id.clone_from(&launched.provider_id);
    status.instance_type.clone_from(&launched.instance_type);
    status.zone.clone_from(&launched.zone);
    status.capacity_type = Some(launched.capacity_type);
    status.price = launched.price;
    status.image.clone_from(&launched.image);
    status.capacity = launched.capacity.clone();
    status.allocatable = expected;
    for (name, amount) in overlaid.iter().flat_map(Resources::iter) {
        status.capacity.set(name, amount);
        status.allocatable.set(name, amount);
    }
    status.launch_error = None;
    if let Some(reservation) = claim.labels.get(keys::RESERVATION_ID).cloned() {
        world.launched_into(&reservation);
    }
    world.runs_on(&launched.claim, &launched.provider_id);
    let claim = world.claims.get(&launched.claim)?;
    world.touched.insert(launched.claim.clone());
    Some(Action::UpdateClaim { claim: launched.claim.clone(), labels: claim.labels.clone(), status: Box::new(claim.status.clone()) })
}

/// The labels that an instance brings: those of its type, the one it has of several that its type
/// may have, and the id of its zone.
fn labels_of(instance_type: &InstanceType, claim: &NodeClaim, launched: &Launched) -> Labels {
    let mut labels = instance_type.labels.clone();
    for may in instance_type.requirements.iter() {
        let left = claim.requirements.get(may.key()).map_or_else(|| may.clone(), |asked| may.intersect(asked));
        // EC2 gives what it calls default to those who do not insist on something else.
        let value = left.values().get("default").or_else(|| left.values().first()).filter(|v| left.allows(v));
        if let Some(value) = value {
            labels.entry(may.key().to_owned()).or_insert_with(|| value.clone());
        }
    }
    let bought = instance_type.offerings.iter().find(|o| o.zone == launched.zone && !o.zone_id.is_empty());
    if let Some(offering) = bought {
        labels.insert(keys::ZONE_ID.to_owned(), offering.zone_id.clone());
    }
    let mut reserved = instance_type.offerings.iter().filter_map(|o| o.reservation.as_ref());
    if let Some(reservation) = reserved.find(|r| Some(&r.id) == launched.reservation.as_ref()) {
        for key in keys::OF_RESERVATIONS {
            labels.extend(reservation.label(key).map(|value| (key.to_owned(), value.to_owned())));
        }
    }
    labels
}

/// The step that reports a launch.
pub(crate) fn launched_step(launched: &Launched) -> Step {
    let offering =
        OfferingKey { instance_type: launched.instance_type.clone(), zone: launched.zone.clone(), capacity_type: launched.capacity_type };
    Step::Claim { claim: launched.claim.clone(), what: ClaimStep::Launched { offering, price: launched.price } }
}

/// Remembers what answered that it is sold out.
pub(crate) fn sold_out(round: &mut Round<'_>, offerings: &[OfferingKey]) {
    let until = round.now.plus(SOLD_OUT_FOR);
    for offering in offerings {
        round.world.sold_out.insert(offering.clone(), until);
        round.world.sold_out_log.insert(offering.clone(), round.now);
        round.report.steps.push(Step::SoldOut { offering: offering.clone(), until });
    }
}

/// Nothing could be bought for a claim. Sold-out offerings are remembered and the claim goes; its
/// pods are planned for again. Anything else is tried again until the launch is overdue.
pub(crate) fn launch_failed(round: &mut Round<'_>, claim: &str, failure: &LaunchFailure) {
    if round.world.claims.contains_key(claim) {
        round.ledger.launch_failed(claim, round.now);
    }
    let message = match failure {
        LaunchFailure::InsufficientCapacity(offerings) => {
            sold_out(round, offerings);
            condemn(round, claim, "InsufficientCapacity");
            format!("sold out: {}", offerings.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
        }
        LaunchFailure::NodeClassNotReady(why) => {
            condemn(round, claim, "NodeClassNotReady");
            why.clone()
        }
        LaunchFailure::Other(reason, message) => {
            let error = Some((reason.clone(), message.clone()));
            if round.world.claims.get(claim).is_some_and(|c| c.status.launch_error != error) {
                update(round, claim, |status| status.launch_error = error);
            }
            format!("{reason}: {message}")
        }
    };
    round.step(claim, ClaimStep::LaunchFailed(message));
}
