//! Rules `price` and `bound`: what the plan says of money is what the catalogue says, and adds up.

use std::collections::BTreeMap;

use whittle_model::{CapacityType, Micros, OfferingKey};

use super::Findings;
use super::presence::{Facts, Kinds, catalog_of};
use crate::plan::{Plan, PlannedNode};
use crate::report::Choice;
use crate::world::World;

pub(super) fn check<'w>(world: &'w World, plan: &'w Plan, kinds: &mut Kinds<'w>, found: &mut Findings) {
    for node in &plan.nodes {
        any_price(node, found);
        if plan.at_list && node.choice.capacity_type != CapacityType::Reserved {
            list_price(world, node, &kinds.of(&node.claim), found);
        }
    }
    match &plan.choice {
        Some(choice) => bound(world, plan, choice, found),
        None if plan.nodes.is_empty() => {}
        None => found.object("bound", format!("{} nodes are bought and no choice is named", plan.nodes.len())),
    }
}

/// What holds of any scorer's prices.
fn any_price(node: &PlannedNode, found: &mut Findings) {
    let name = &node.claim.name;
    if node.cost < Micros(0) || node.rank < Micros(1) {
        found.object("price", format!("claim {name} costs {} at rank {}", node.cost, node.rank.0));
    }
    if let Some((key, _)) = node.runner_up.as_ref().filter(|(key, _)| key.instance_type == node.choice.instance_type) {
        found.object("price", format!("claim {name} has runner-up {key}, which is of the type of its choice {}", node.choice));
    }
}

/// What holds when every offering counts at its list price.
fn list_price(world: &World, node: &PlannedNode, facts: &[&Facts<'_>], found: &mut Findings) {
    let name = &node.claim.name;
    let listed = |key: &OfferingKey| catalog_of(world, &node.claim).and_then(|c| c.offering(key)).map(|o| o.price);
    let paid = std::iter::once((&node.choice, node.cost)).chain(std::iter::once((&node.choice, node.rank)));
    for (key, price) in paid.chain(node.runner_up.iter().map(|(key, rank)| (key, *rank))) {
        if listed(key).is_some_and(|list| list != price) {
            found.object("price", format!("claim {name} counts {key} at {price}, which is not its list price"));
        }
    }
    // Under policies ranks may change with every node that is settled; at list prices they do not.
    if let Some((key, rank)) = node.runner_up.as_ref().filter(|(_, rank)| *rank < node.rank) {
        found.object(
            "price",
            format!("claim {name} has runner-up {key} at rank {}, its choice is {} at {}", rank.0, node.choice, node.rank.0),
        );
    }
    let best = |of: &dyn Fn(&Facts<'_>) -> bool| facts.iter().filter(|f| of(f)).filter_map(|f| f.cheapest).map(|o| o.price).min();
    if best(&|_| true).is_some_and(|price| price < node.rank) {
        found.object("price", format!("claim {name} counts on {} although it allows a cheaper offering", node.choice));
    }
    let second = best(&|f| f.instance_type.name != node.choice.instance_type);
    if second != node.runner_up.as_ref().map(|(_, rank)| *rank) {
        found.object("price", format!("claim {name} does not name the best offering of another type as its runner-up"));
    }
}

/// Counts and sums of the choice, and that it lies between bound and greedy.
fn bound(world: &World, plan: &Plan, choice: &Choice, found: &mut Findings) {
    let cost: Micros = plan.nodes.iter().map(|n| n.cost).sum();
    let pods: usize = plan.nodes.iter().map(|n| n.pods.len()).sum();
    let mut mix: BTreeMap<CapacityType, usize> = BTreeMap::new();
    for node in &plan.nodes {
        *mix.entry(node.choice.capacity_type).or_default() += 1;
    }
    let right = [
        ("pods", choice.pods == pods),
        ("nodes", choice.nodes == plan.nodes.len()),
        ("cost", choice.cost == cost),
        ("capacity types", choice.mix.iter().copied().eq(mix)),
    ];
    for (what, _) in right.iter().filter(|(_, right)| !right) {
        found.object("bound", format!("the choice does not say the {what} of the nodes that are bought"));
    }
    let complete = plan.unplaced.iter().all(|u| u.reasons.iter().all(|r| r.place == "pod"));
    // Without nomination packings are compared as kube-scheduler would bind them, not as planned.
    let dearer = choice.cost > choice.greedy && world.settings.nominates();
    if complete && plan.at_list && (choice.bound > choice.cost || dearer) {
        let Choice { cost, greedy, bound, .. } = choice;
        found.object("bound", format!("cost {cost} does not lie between the bound {bound} and the greedy's {greedy}"));
    }
}
