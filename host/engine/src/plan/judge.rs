//! Which of two packings is better once pods are bound. With nomination the plan is kept and its
//! own price decides. Without, kube-scheduler binds as it likes: each packing is bound by the model
//! of it, and what is left over is priced by a second round.

use whittle_model::scorer::ScorerFailure;
use whittle_model::{Labels, Micros, Node, Pod, keys};

use super::Seats;
use super::classes::runs;
use super::finish::{Finished, Priced, finish};
use super::greedy::{Bench, Ground, Manner, pack};
use super::standing::Start;
use crate::scheduler::{Scheduler, queue_order};
use crate::world::World;

/// The seed of the model's ties: any value will do, as long as it is the same for every packing
/// that is compared.
const TIES: u64 = 1;

/// The better of the greedy's packing and another: never dearer than the greedy.
pub(crate) fn better(bench: &mut Bench<'_, '_>, start: Start<'_>, greedy: Priced, other: Priced) -> Result<Priced, ScorerFailure> {
    Ok(if is_better(bench, start, &greedy, &other)? { other } else { greedy })
}

/// Whether another packing than the greedy's is the better one.
pub(crate) fn is_better(bench: &mut Bench<'_, '_>, start: Start<'_>, greedy: &Priced, other: &Priced) -> Result<bool, ScorerFailure> {
    if start.world.settings.nominates() {
        return Ok(other.better_than(greedy));
    }
    let of_greedy = (greedy.missing(), bound_rank(bench, start, greedy)?);
    let of_other = (other.missing(), bound_rank(bench, start, other)?);
    Ok(of_other < of_greedy)
}

/// The rank of a packing once its pods are bound: its own, and that of the nodes bought in a second
/// round for pods that the first left over.
fn bound_rank(bench: &mut Bench<'_, '_>, start: Start<'_>, priced: &Priced) -> Result<Micros, ScorerFailure> {
    let Start { world, seats, tally, remaining, .. } = start;
    let settings = &world.settings;
    let mut scheduler = Scheduler::of_version(TIES, settings.kubernetes_minor).with_default_spread(&settings.default_spread);
    let by_default = settings.default_spread.iter().any(|constraint| constraint.required);
    let waiting = waiting(world, bench, seats, priced);
    settle_existing(world, &waiting, &mut scheduler);
    let mut queue: Vec<(&Pod, whittle_model::Timestamp)> = waiting.iter().map(|(_, pod)| (pod, pod.created)).collect();
    queue_order(&mut queue);
    let class_of: std::collections::BTreeMap<&whittle_model::PodKey, usize> =
        waiting.iter().map(|(class, pod)| (&pod.key, *class)).collect();
    let mut left: Vec<(usize, &Pod)> = queue.into_iter().map(|(pod, _)| (class_of[&pod.key], pod)).collect();
    for (number, claim) in priced.claims.iter().enumerate() {
        scheduler.apply_node(&node_of(bench, claim, number));
        bind_all(&mut scheduler, &mut left, bench.classes.len(), by_default);
    }
    let mut counts = vec![0; bench.classes.len()];
    for (class, _) in left {
        counts[class] += 1;
    }
    let remaining = super::reserved::after(remaining, &priced.claims);
    let mut ground = Ground { bins: None, tally: &mut tally.clone(), remaining: &mut remaining.clone(), manner: Manner::default() };
    let second = pack(bench, &mut ground, &runs(bench.classes, &counts));
    Ok(priced.rank + finish(bench, second, "greedy", remaining)?.rank)
}

/// Binds what can be bound. A pod that found no place is tried again only when one was bound that it may have waited for.
fn bind_all(scheduler: &mut Scheduler, left: &mut Vec<(usize, &Pod)>, classes: usize, by_default: bool) {
    let awaits_others = |pod: &Pod| by_default || awaits_others(pod);
    let mut refused = vec![None; classes];
    let mut bound = 0_usize;
    loop {
        let before = bound;
        left.retain(|(class, pod)| {
            let hopeless = refused[*class].is_some_and(|at| at == bound || !awaits_others(pod));
            if hopeless {
                return true;
            }
            if scheduler.schedule_and_bind(pod).is_ok() {
                bound += 1;
                return false;
            }
            // What a claim of its own keeps from a node keeps no other of its class.
            refused[*class] = Some(bound).filter(|_| pod.volumes.is_empty());
            true
        });
        if bound == before || !left.iter().any(|(_, pod)| awaits_others(pod)) {
            return;
        }
    }
}

/// Whether other pods that are bound may be what a pod waits for; to all others they only take room.
fn awaits_others(pod: &Pod) -> bool {
    !pod.pod_affinity.is_empty() || pod.spread.iter().any(|constraint| constraint.required)
}

/// Nodes that exist, with the pods bound to them, and what the waiting pods must know of the cluster besides.
fn settle_existing(world: &World, waiting: &[(usize, Pod)], scheduler: &mut Scheduler) {
    for (name, labels) in &world.namespaces {
        scheduler.apply_namespace(name, labels);
    }
    if waiting.iter().any(|(_, pod)| !pod.volumes.is_empty()) {
        scheduler.adopt_storage(&world.storage);
    }
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
    let name = format!("{number:06}");
    labels.insert(keys::HOSTNAME.to_owned(), name.clone());
    labels.insert(keys::ZONE.to_owned(), claim.choice.zone.clone());
    labels.insert(keys::CAPACITY_TYPE.to_owned(), claim.choice.capacity_type.name().to_owned());
    for requirement in claim.menu.requirements.iter() {
        if let Some(value) = requirement.single() {
            labels.entry(requirement.key().to_owned()).or_insert_with(|| value.to_owned());
        }
    }
    let mut node = Node { name, ready: true, taints: table.pool.template.taints.clone(), ..Node::default() };
    if let Some(row) = table.rows.iter().find(|row| row.instance_type.name == claim.choice.instance_type) {
        labels.extend(row.instance_type.labels.iter().map(|(k, v)| (k.clone(), v.clone())));
        node.capacity = row.instance_type.capacity.clone();
        node.allocatable = row.instance_type.allocatable.clone();
        node.allocatable.subtract(row.daemons());
    }
    node.labels = labels;
    node
}
