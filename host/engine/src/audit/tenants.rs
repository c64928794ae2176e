//! What pods ask of a place: their sum, the taints they must bear, and whom they exclude (rule
//! `affinity`).

use whittle_model::{Resources, Taint};

use super::Findings;
use super::roll::Group;
use crate::world::World;

/// What the pods of a load ask for together.
pub(super) fn sum(world: &World, load: &[Group]) -> Resources {
    let mut sum = Resources::default();
    for group in load {
        let count = i64::try_from(group.count).unwrap_or(i64::MAX);
        for (name, amount) in world.shapes.value(group.shape).requests.iter() {
            sum.set(name, sum.get(name).saturating_add(amount.saturating_mul(count)));
        }
    }
    sum
}

/// Shapes of a load, each once.
pub(super) fn shapes(load: &[Group]) -> Vec<u32> {
    let mut shapes: Vec<u32> = load.iter().map(|g| g.shape).collect();
    shapes.dedup();
    shapes
}

/// Rule `taints`: every pod tolerates what its place carries.
pub(super) fn taints(world: &World, place: &str, taints: &[&Taint], load: &[Group], found: &mut Findings) {
    if taints.is_empty() {
        return;
    }
    for shape in shapes(load) {
        let tolerations = &world.shapes.value(shape).tolerations;
        for taint in taints.iter().filter(|t| t.repels() && !t.tolerated_by(tolerations)) {
            found.object("taints", format!("{place} has taint {taint}, which a pod planned for it does not tolerate"));
        }
    }
}

/// Rule `affinity`: no pod of the load shares the place with one that either excludes, be that a
/// pod of the load or one that is there already.
pub(super) fn affinity(world: &World, place: &str, load: &[Group], present: &[Group], found: &mut Findings) {
    for (at, group) in load.iter().enumerate() {
        if group.count > 1 && excludes(world, group, group) {
            found.object("affinity", format!("{place} is for {} pods that exclude each other", group.count));
        }
        for other in load[at + 1..].iter().chain(present) {
            if excludes(world, group, other) || excludes(world, other, group) {
                let names = [group, other].map(|g| world.identities.value(g.identity).namespace.as_str());
                found.object("affinity", format!("{place} is for pods of {} and {} that exclude each other", names[0], names[1]));
            }
        }
    }
}

/// Whether a term of `one` selects `other`.
fn excludes(world: &World, one: &Group, other: &Group) -> bool {
    let terms = &world.shapes.value(one.shape).anti_affinity;
    if terms.is_empty() {
        return false;
    }
    let other = world.identities.value(other.identity);
    terms.iter().any(|term| term.namespaces.contains(&other.namespace) && term.selector.matches(&other.labels))
}
