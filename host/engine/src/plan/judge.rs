//! Which of two packings is better once pods are bound. With nomination the plan is kept and its
//! own price decides. Without, kube-scheduler binds as it likes: each packing is bound by the model
//! of it, and what is left over is priced by a second round.

use whittle_model::scorer::ScorerFailure;
use whittle_model::{Labels, Micros, Node, Pod, keys};

use super::Seats;
use super::classes::runs;
use super::finish::{Finished, Priced, finish};
use super::greedy::{Bench, Ground, pack};
use super::limits::Remaining;
use super::topology::tally::Tally;
use crate::scheduler::{Scheduler, queue_order};
use crate::world::World;

/// The seed of the model's ties: any value will do, as long as it is the same for every packing
/// that is compared.
const TIES: u64 = 1;

/// The better of the greedy's packing and another: never dearer than the greedy.
pub(crate) fn better(
    world: &World,
    bench: &mut Bench<'_, '_>,
    seats: &Seats<'_>,
    greedy: Priced,
    other: Priced,
    tally: &Tally,
    remaining: &Remaining,
) -> Result<Priced, ScorerFailure> {
    if world.settings.nominates() {
        return Ok(if other.better_than(&greedy) { other } else { greedy });
    }
    let of_greedy = (greedy.missing(), bound_rank(world, bench, seats, &greedy, tally, remaining)?);
    let of_other = (other.missing(), bound_rank(world, bench, seats, &other, tally, remaining)?);
    Ok(if of_other < of_greedy { other } else { greedy })
}

/// The rank of a packing once its pods are bound: its own, and that of the nodes bought in a second
/// round for pods that the first left over.
fn bound_rank(
    world: &World,
    bench: &mut Bench<'_, '_>,
    seats: &Seats<'_>,
    priced: &Priced,
    tally: &Tally,
    remaining: &Remaining,
) -> Result<Micros, ScorerFailure> {
    let mut scheduler = Scheduler::of_version(TIES, world.settings.kubernetes_minor);
    settle_existing(world, &mut scheduler);
    let waiting = waiting(world, bench, seats, priced);
    let mut queue: Vec<(&Pod, whittle_model::Timestamp)> = waiting.iter().map(|(_, pod)| (pod, pod.created)).collect();
    queue_order(&mut queue);
    let class_of: std::collections::BTreeMap<&whittle_model::PodKey, usize> =
        waiting.iter().map(|(class, pod)| (&pod.key, *class)).collect();
    let mut left: Vec<(usize, &Pod)> = queue.into_iter().map(|(pod, _)| (class_of[&pod.key], pod)).collect();
    let mut refused = vec![false; bench.classes.len()];
    for (number, claim) in priced.claims.iter().enumerate() {
        scheduler.apply_node(&node_of(bench, claim, number));
        refused.fill(false);
        left.retain(|(class, pod)| {
            if refused[*class] {
                return true;
            }
            refused[*class] = scheduler.schedule_and_bind(pod).is_err();
            refused[*class]
        });
    }
    let mut counts = vec![0; bench.classes.len()];
    for (class, _) in left {
        counts[class] += 1;
    }
    let mut ground = Ground { bins: None, tally: &mut tally.clone(), remaining: &mut remaining.clone() };
    let second = pack(bench, &mut ground, &runs(bench.classes, &counts));
    Ok(priced.rank + finish(bench, second, "greedy", remaining.clone())?.rank)
}

/// Nodes that exist, with the pods bound to them.
fn settle_existing(world: &World, scheduler: &mut Scheduler) {
    for node in world.nodes.values() {
        scheduler.apply_node(node);
        for key in world.pods_on(&node.name) {
            if let Some(pod) = world.pod(key) {
                scheduler.bind(&pod, &node.name);
            }
        }
    }
}

/// The pods that the packing has a node for, with their class.
fn waiting(world: &World, bench: &Bench<'_, '_>, seats: &Seats<'_>, priced: &Priced) -> Vec<(usize, Pod)> {
    let mut counts = vec![0; bench.classes.len()];
    for (class, count) in priced.claims.iter().flat_map(|c| &c.content) {
        counts[*class] += count;
    }
    let keys = counts.iter().enumerate().flat_map(|(class, count)| seats.standing(class)[..*count].iter().map(move |key| (class, *key)));
    keys.filter_map(|(class, key)| world.pod(key).map(|pod| (class, Pod { nominated: None, node: None, ..pod }))).collect()
}

/// The node that a claim is expected to become, less what daemons take of it.
fn node_of(bench: &Bench<'_, '_>, claim: &Finished, number: usize) -> Node {
    let table = &bench.tables.pools[claim.pool];
    let mut labels: Labels = table.pool.template.labels.clone();
    labels.insert(keys::NODE_POOL.to_owned(), table.pool.name.clone());
    labels.insert(keys::ZONE.to_owned(), claim.choice.zone.clone());
    labels.insert(keys::CAPACITY_TYPE.to_owned(), claim.choice.capacity_type.name().to_owned());
    for requirement in claim.requirements.iter() {
        if let Some(value) = requirement.single() {
            labels.entry(requirement.key().to_owned()).or_insert_with(|| value.to_owned());
        }
    }
    let mut node = Node { name: format!("{number:06}"), ready: true, taints: table.pool.template.taints.clone(), ..Node::default() };
    if let Some(row) = table.rows.iter().find(|row| row.instance_type.name == claim.choice.instance_type) {
        labels.extend(row.instance_type.labels.iter().map(|(k, v)| (k.clone(), v.clone())));
        node.capacity = row.instance_type.capacity.clone();
        node.allocatable = row.instance_type.allocatable.clone();
        node.allocatable.subtract(&row.daemons);
    }
    node.labels = labels;
    node
}
