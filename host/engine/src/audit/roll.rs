//! Rule `once`: every pod that needs a place is named once, and nobody else is.

use std::collections::BTreeMap;

use whittle_model::{Duration, PodKey, Timestamp, keys};

use super::{Findings, places};
use crate::intern::Lookup;
use crate::plan::Plan;
use crate::world::{PodRecord, World};

/// Pods of one shape and identity on one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) shape: u32,
    pub(super) identity: u32,
    pub(super) count: usize,
}

/// What the plan puts on each place.
#[derive(Debug, Default)]
pub(super) struct Loads {
    /// On new claims, in the order of the plan.
    pub(super) nodes: Vec<Vec<Group>>,
    /// On what exists, in the order of the plan.
    pub(super) placed: Vec<Vec<Group>>,
}

/// A pod that needs a place, and where the plan named it.
struct Need<'w> {
    record: &'w PodRecord,
    key: &'w PodKey,
    named: Option<&'w str>,
}

/// Checks the roll, and groups the pods of each place.
pub(super) fn call<'w>(world: &'w World, plan: &'w Plan, now: Timestamp, found: &mut Findings) -> Loads {
    let going = going(world);
    let waiting = world.pods.iter().filter(|(_, record)| needs_place(world, record, &going, now));
    let mut needs: Vec<Need<'w>> = waiting.map(|(key, record)| Need { record, key, named: None }).collect();
    let mut numbers: Lookup<&PodKey, usize> = Lookup::with_capacity(needs.len());
    for (number, need) in needs.iter().enumerate() {
        numbers.insert(need.key, number);
    }
    let mut loads = Loads::default();
    for node in &plan.nodes {
        if node.pods.is_empty() {
            found.object("once", format!("claim {} is for no pod", node.claim.name));
        }
        loads.nodes.push(name_all(world, &mut needs, &numbers, &node.claim.name, &node.pods, found));
    }
    for (on, pods) in &plan.placed {
        loads.placed.push(name_all(world, &mut needs, &numbers, on, pods, found));
    }
    for key in plan.unplaced.iter().flat_map(|u| &u.pods) {
        name(&mut needs, &numbers, "the list of pods that fit nowhere", key, found);
    }
    for forgotten in needs.iter().filter(|need| need.named.is_none()) {
        found.object("once", format!("pod {} needs a place and is not in the plan", forgotten.key));
    }
    loads
}

/// Nodes that are on their way out, by name: those being deleted, and as Karpenter counts them also those that a move
/// takes or that were told to go, though the watch shows them alive.
fn going(world: &World) -> BTreeMap<&str, ()> {
    let leaves =
        |node: &&whittle_model::Node| node.deleting || places::claim_of(world, node).is_some_and(|claim| places::leaves(world, claim));
    world.nodes.values().filter(leaves).map(|node| (node.name.as_str(), ())).collect()
}

/// A pod that kube-scheduler could not place, or whose node is going and that can move.
fn needs_place(world: &World, record: &PodRecord, going: &BTreeMap<&str, ()>, now: Timestamp) -> bool {
    if record.terminal() || world.tied_to_node(record) {
        return false;
    }
    match &record.node {
        None => record.unschedulable && !record.deleting,
        Some(node) => !going.is_empty() && going.contains_key(node.as_str()) && moves(world, record, now),
    }
}

/// Whether a pod on a node that goes will need another: it is not ending (a StatefulSet makes it anew, under its name),
/// its annotation does not hold it now, and no budget holds it for ever.
fn moves(world: &World, record: &PodRecord, now: Timestamp) -> bool {
    let identity = world.identity_of(record);
    let never = |budget: &whittle_model::PodDisruptionBudget| {
        budget.never && budget.key.namespace == identity.namespace && budget.selector.matches(&identity.labels)
    };
    if world.budgets.values().any(never) {
        return false;
    }
    if record.deleting {
        return identity.owner.as_ref().is_some_and(|owner| owner.kind == "StatefulSet");
    }
    let asks = identity.annotations.get(keys::DO_NOT_DISRUPT).map(String::as_str);
    let span = asks.and_then(Duration::parse).filter(|span| span.0 > 0);
    let over = |span: Duration| record.started.is_some_and(|started| now.since(started) >= span);
    asks != Some("true") && span.is_none_or(over)
}

fn name<'w>(needs: &mut [Need<'w>], numbers: &Lookup<&PodKey, usize>, place: &'w str, key: &PodKey, found: &mut Findings) -> Option<usize> {
    let Some(number) = numbers.get(&key).copied() else {
        found.object("once", format!("pod {key} on {place} needs no place"));
        return None;
    };
    let need = &mut needs[number];
    match need.named {
        Some(first) => {
            found.object("once", format!("pod {key} is on {first} and on {place}"));
            None
        }
        None => {
            need.named = Some(place);
            Some(number)
        }
    }
}

fn name_all<'w>(
    world: &World,
    needs: &mut [Need<'w>],
    numbers: &Lookup<&PodKey, usize>,
    place: &'w str,
    pods: &[PodKey],
    found: &mut Findings,
) -> Vec<Group> {
    let mut kinds: Vec<(u32, u32)> = Vec::with_capacity(pods.len());
    for key in pods {
        let Some(number) = name(needs, numbers, place, key, found) else { continue };
        let record = needs[number].record;
        kinds.push((record.shape, record.identity));
    }
    let groups = gather(kinds);
    for group in &groups {
        let shape = world.shapes.value(group.shape);
        let unknown = &shape.unsupported;
        if shape.resource_claims {
            found.object("once", format!("{place} is for a pod that asks for devices by resource claims"));
        }
        if !unknown.is_empty() {
            found.object("once", format!("{place} is for a pod that is not understood ({})", unknown.join(", ")));
        }
    }
    groups
}

/// Counts equal pairs.
pub(super) fn gather(mut kinds: Vec<(u32, u32)>) -> Vec<Group> {
    kinds.sort_unstable();
    let mut groups: Vec<Group> = Vec::new();
    for (shape, identity) in kinds {
        match groups.last_mut() {
            Some(last) if (last.shape, last.identity) == (shape, identity) => last.count += 1,
            _ => groups.push(Group { shape, identity, count: 1 }),
        }
    }
    groups
}
