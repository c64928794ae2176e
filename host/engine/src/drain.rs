//! Emptying a node that goes: no new pods, then those it has leave in groups, then its volumes are let go. Asked for
//! politely until the grace period of its claim is nearly over, and then told.
//!
//! What must not enter: why it goes, and its instance.

use std::collections::{BTreeMap, BTreeSet};

use whittle_model::{Action, Duration, Effect, Event, Milestone, Node, NodeClaim, PodKey, Taint, Timestamp, keys};

use crate::ledger::{Ledger, Order};
use crate::lifecycle::update;
use crate::protection::{DoNotDisrupt, Eviction, do_not_disrupt, eviction};
use crate::report::ClaimStep;
use crate::round::Round;
use crate::world::{PodRecord, World};

/// As Karpenter: pods that were bound before the taint was seen are found within this time.
const AT_LEAST: Duration = Duration::seconds(5);
/// As Karpenter: a pod that is there so long after its time was over is not waited for.
const STUCK_AFTER: Duration = Duration::minutes(1);
/// With less, a pod's object would go before its containers, and a second of its name could run beside it.
const LEAST_GRACE: Duration = Duration::seconds(1);

/// Priority classes whose pods leave last.
const CRITICAL: [&str; 2] = ["system-cluster-critical", "system-node-critical"];

/// When the node of a claim ends whatever its pods do, if it ever does.
pub(crate) fn ends_at(claim: &NodeClaim) -> Option<Timestamp> {
    let noted = claim.annotations.get(keys::TERMINATION_TIMESTAMP).and_then(|text| Timestamp::parse_rfc3339(text));
    noted.or_else(|| Some(claim.deleted_at?.plus(claim.termination_grace_period?)))
}

/// Takes the drain of a claim's nodes one step further; true once pods and volumes are gone, or are not waited for.
pub(crate) fn advance(round: &mut Round<'_>, claim: &NodeClaim) -> bool {
    note_end(round, claim);
    // Before it is registered, a taint keeps all pods off a node.
    let nodes: Vec<String> = round.world.nodes_of(claim).filter(|node| registered(claim, node)).map(|node| node.name.clone()).collect();
    if nodes.is_empty() {
        return true;
    }
    let mut cordoned = true;
    for node in &nodes {
        let known = &round.world.nodes[node];
        let tainted = known.taints.contains(&disrupted());
        cordoned &= tainted;
        let whole = tainted && known.labels.contains_key(keys::EXCLUDED);
        if !whole && round.admit(&claim.name, Order::Cordon, node) {
            round.act(Action::CordonNode { node: node.clone() });
        }
    }
    if claim.status.drained == Milestone::Ahead {
        let now = round.now;
        update(round, &claim.name, |status| status.drained = Milestone::Since(now));
    }
    let mut holding = Holding::default();
    for node in nodes.iter().filter(|_| cordoned) {
        evict(round, claim, node, &mut holding);
    }
    let pinned = nodes.iter().any(|node| round.world.pinned(node));
    let emptied = cordoned && !pinned && holding.pods == 0 && drained_at_least(round, claim);
    if emptied && !matches!(drained(round.world, claim), Milestone::Done(_)) {
        let now = round.now;
        update(round, &claim.name, |status| status.drained = Milestone::Done(now));
    }
    let free = emptied && detached(round, claim, &nodes, &mut holding);
    say(round, claim, holding.why);
    free
}

/// What stands against the end of a drain.
#[derive(Default)]
struct Holding {
    pods: usize,
    why: BTreeSet<String>,
}

/// Says what a removal waits for whenever that changes.
fn say(round: &mut Round<'_>, claim: &NodeClaim, why: BTreeSet<String>) {
    let text = why.into_iter().collect::<Vec<_>>().join("; ");
    let before = round.ledger.held.get(&claim.name);
    if before.map_or("", String::as_str) == text {
        return;
    }
    if text.is_empty() {
        round.ledger.held.remove(&claim.name);
    } else {
        round.ledger.held.insert(claim.name.clone(), text.clone());
        round.step(&claim.name, ClaimStep::Held(text));
    }
}

fn registered(claim: &NodeClaim, node: &Node) -> bool {
    claim.status.registered.is_some() || node.labels.get(keys::REGISTERED).is_some_and(|v| v == "true")
}

fn disrupted() -> Taint {
    Taint::new(keys::DISRUPTED_TAINT, "", Effect::NoSchedule)
}

/// Others read from the claim when its node ends at the latest.
fn note_end(round: &mut Round<'_>, claim: &NodeClaim) {
    if claim.annotations.contains_key(keys::TERMINATION_TIMESTAMP) {
        return round.ledger.done(&claim.name, Order::Annotate, &claim.name);
    }
    if let Some(end) = ends_at(claim)
        && round.admit(&claim.name, Order::Annotate, &claim.name)
    {
        let annotations = [(keys::TERMINATION_TIMESTAMP.to_owned(), end.rfc3339())].into();
        round.act(Action::AnnotateClaim { claim: claim.name.clone(), annotations });
    }
}

fn drained(world: &World, claim: &NodeClaim) -> Milestone {
    world.claims.get(&claim.name).map_or(Milestone::Ahead, |known| known.status.drained)
}

fn drained_at_least(round: &Round<'_>, claim: &NodeClaim) -> bool {
    match drained(round.world, claim) {
        Milestone::Since(since) => since.plus(AT_LEAST) <= round.now,
        Milestone::Ahead => false,
        Milestone::GivenUp(_) | Milestone::Done(_) => true,
    }
}

/// Whether a pod must be gone before its node may go.
fn waited_for(world: &World, record: &PodRecord, now: Timestamp) -> bool {
    let stuck = record.deleting && record.ends_at.is_some_and(|end| end.plus(STUCK_AFTER) < now);
    let static_pod = world.identity_of(record).owner.as_ref().is_some_and(|owner| owner.kind == "Node");
    !stuck && !static_pod && !record.terminal() && !disrupted().tolerated_by(&world.shape_of(record).tolerations)
}

/// The group of a pod: those of lower numbers leave first.
fn group(world: &World, record: &PodRecord) -> usize {
    let critical = CRITICAL.contains(&world.shape_of(record).priority_class.as_str());
    let daemon = world.identity_of(record).owner.as_ref().is_some_and(|owner| owner.kind == "DaemonSet");
    usize::from(critical) * 2 + usize::from(daemon)
}

/// Whether a pod would outlast the node if it had all its time.
fn outlasts(record: &PodRecord, end: Timestamp, now: Timestamp) -> bool {
    if record.deleting {
        // Told again, it must have less time than it has.
        return record.ends_at.is_some_and(|at| at > end && at > now.plus(LEAST_GRACE));
    }
    now > end.plus(Duration(-record.grace.0))
}

fn waiting(world: &World, node: &str, now: Timestamp) -> Vec<PodKey> {
    let pods = world.usage.get(node).into_iter().flat_map(|usage| &usage.pods);
    pods.filter(|key| world.pods.get(*key).is_some_and(|record| waited_for(world, record, now))).cloned().collect()
}

/// Asks the pods of the first group to leave, and tells those whose time is up.
fn evict(round: &mut Round<'_>, claim: &NodeClaim, node: &str, holding: &mut Holding) {
    let end = ends_at(claim);
    let mut groups: BTreeMap<usize, Vec<PodKey>> = BTreeMap::new();
    let mut told = Vec::new();
    for key in waiting(round.world, node, round.now) {
        holding.pods += 1;
        let record = &round.world.pods[&key];
        let out_of_time = end.filter(|end| outlasts(record, *end, round.now));
        match out_of_time {
            Some(end) => {
                if tell(round, claim, &key, end) {
                    told.push(key);
                }
            }
            None => groups.entry(group(round.world, record)).or_default().push(key),
        }
    }
    if !told.is_empty() {
        round.step(&claim.name, ClaimStep::Deleting(told));
    }
    let mut asked = Vec::new();
    for key in groups.into_values().next().unwrap_or_default() {
        match objection(round, &key) {
            Some(why) => {
                holding.why.insert(why);
            }
            None if ask(round, claim, &key) => asked.push(key),
            None => {}
        }
    }
    if !asked.is_empty() {
        round.step(&claim.name, ClaimStep::Evicting(asked));
    }
}

/// Deletes a pod with what time is left.
fn tell(round: &mut Round<'_>, claim: &NodeClaim, key: &PodKey, end: Timestamp) -> bool {
    if !round.admit(&claim.name, Order::DeletePod, &key.to_string()) {
        return false;
    }
    let left = end.since(round.now).max(LEAST_GRACE);
    let uid = round.world.pods[key].uid.clone();
    round.act(Action::DeletePod { pod: key.clone(), uid, grace_seconds: left.as_seconds() });
    true
}

/// Asks a pod to leave; false when it was asked already, or is leaving.
fn ask(round: &mut Round<'_>, claim: &NodeClaim, key: &PodKey) -> bool {
    let record = &round.world.pods[key];
    if record.deleting {
        round.ledger.evicted(&claim.name, key);
        return false;
    }
    let uid = record.uid.clone();
    let budget = match eviction(round.world, record, |_| 0) {
        Eviction::Within(budget) | Eviction::Perhaps(budget) => Some(budget.key.clone()),
        Eviction::Free | Eviction::Spent(_) | Eviction::Several(_) => None,
    };
    if !round.admit(&claim.name, Order::Evict, &key.to_string()) {
        return false;
    }
    if let Some(budget) = budget {
        round.ledger.spend(budget, key.clone(), round.now);
    }
    round.act(Action::Evict { pod: key.clone(), uid });
    true
}

/// Why a pod is not asked to leave now.
fn objection(round: &Round<'_>, key: &PodKey) -> Option<String> {
    let record = &round.world.pods[key];
    if record.deleting {
        return None;
    }
    match do_not_disrupt(round.world, record, round.now) {
        DoNotDisrupt::Always | DoNotDisrupt::Unstarted(_) => return Some(format!("pod {key} is not to be disrupted")),
        DoNotDisrupt::Until(until) => return Some(format!("pod {key} is not to be disrupted before {}", until.rfc3339())),
        DoNotDisrupt::Free => {}
    }
    if round.ledger.spends(key, round.now) {
        return None; // it was asked, and its budget had room then
    }
    match eviction(round.world, record, |budget| round.ledger.spent(&budget.key, round.now)) {
        Eviction::Free | Eviction::Within(_) | Eviction::Perhaps(_) => None,
        Eviction::Spent(budget) => Some(format!("PodDisruptionBudget {} lets no pod go now", budget.key)),
        Eviction::Several(budgets) => {
            let names: Vec<String> = budgets.iter().map(|budget| budget.key.to_string()).collect();
            Some(format!("PodDisruptionBudgets {} all select pod {key}, and one at most may", names.join(" and ")))
        }
    }
}

/// Whether the volumes of a drained node are let go, or are not waited for any longer.
fn detached(round: &mut Round<'_>, claim: &NodeClaim, nodes: &[String], holding: &mut Holding) -> bool {
    let now = round.now;
    let held: Vec<String> = nodes.iter().flat_map(|node| attached(round.world, node, now)).collect();
    let known = round.world.claims.get(&claim.name).map_or(Milestone::Ahead, |known| known.status.volumes_detached);
    let over = ends_at(claim).is_some_and(|end| now > end);
    let next = match (held.is_empty(), over) {
        (true, _) => Milestone::Done(now),
        (false, true) => Milestone::GivenUp(now),
        (false, false) => Milestone::Since(now),
    };
    if std::mem::discriminant(&known) != std::mem::discriminant(&next) {
        update(round, &claim.name, |status| status.volumes_detached = next);
    }
    if !held.is_empty() && !over {
        holding.why.insert(format!("volumes are not detached: {}", held.join(", ")));
    }
    held.is_empty() || over
}

/// Volumes that a node still holds, without those of pods that stay to its end.
fn attached(world: &World, node: &str, now: Timestamp) -> Vec<String> {
    let of_node = world.storage.attachments.values().filter(|held| held.node == node && !held.volume.is_empty());
    let mut held: BTreeSet<String> = of_node.map(|held| held.volume.clone()).collect();
    if held.is_empty() {
        return Vec::new();
    }
    for (key, record) in world.usage.get(node).into_iter().flat_map(|usage| &usage.pods).filter_map(|key| Some((key, world.pods.get(key)?)))
    {
        if !waited_for(world, record, now) {
            for volume in &record.volumes {
                if let Some(claim) = world.storage.claims.get(&PodKey::new(&key.namespace, &volume.claim)) {
                    held.remove(&claim.volume);
                }
            }
        }
    }
    held.into_iter().collect()
}

/// When a claim that goes must be looked at although nothing happens to it.
pub(crate) fn due_at(world: &World, claim: &NodeClaim, now: Timestamp) -> Option<Timestamp> {
    let end = ends_at(claim);
    let mut times: Vec<Timestamp> = end.map(just_after).into_iter().collect();
    if let Milestone::Since(since) = claim.status.drained {
        times.push(since.plus(AT_LEAST));
    }
    for node in world.nodes_of(claim) {
        for record in waiting(world, &node.name, now).iter().map(|key| &world.pods[key]) {
            if record.deleting {
                times.extend(record.ends_at.map(|at| just_after(at.plus(STUCK_AFTER))));
                continue;
            }
            times.extend(end.map(|end| just_after(end.plus(Duration(-record.grace.0)))));
            if let DoNotDisrupt::Until(until) = do_not_disrupt(world, record, now) {
                times.push(until);
            }
        }
    }
    times.into_iter().filter(|at| *at > now).min()
}

/// Some limits have to be exceeded, not reached.
const fn just_after(at: Timestamp) -> Timestamp {
    at.plus(Duration(1))
}

/// A budget was told anew: of the pods that were asked to leave it counts those that are seen to go.
pub(crate) fn recount(world: &World, ledger: &mut Ledger, event: &Event) {
    if let Event::PodDisruptionBudget(budget) = event {
        ledger.recount(&budget.key, |pod| world.pods.get(pod).is_some_and(|record| !record.deleting));
    }
}

/// A pod is gone or ending: nothing is asked of it any more.
pub(crate) fn left(world: &World, ledger: &mut Ledger, node: Option<&String>, pod: &PodKey) {
    let claim = node.and_then(|name| world.nodes.get(name)).and_then(|node| world.claim_of(node));
    if let Some(claim) = claim.filter(|claim| claim.deleting) {
        ledger.evicted(&claim.name, pod);
    }
}

/// The milestone that is further on: a late read must not undo what is known.
pub(crate) fn later(new: Milestone, old: Milestone) -> Milestone {
    let rank = |milestone| match milestone {
        Milestone::Ahead => 0,
        Milestone::Since(_) => 1,
        Milestone::GivenUp(_) => 2,
        Milestone::Done(_) => 3,
    };
    if rank(new) < rank(old) { old } else { new }
}
