//! What pods ask of a place: their sum, and the taints they must bear; and which namespaces their terms
//! look at.

use whittle_model::{Labels, PodAffinityTerm, Resources, Taint};

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

/// Whether a term looks at the pods of a namespace.
pub(super) fn reaches(world: &World, term: &PodAffinityTerm, namespace: &str) -> bool {
    if term.namespaces.iter().any(|name| name == namespace) {
        return true;
    }
    let none = Labels::new();
    let labels = world.namespaces.get(namespace).unwrap_or(&none);
    term.namespace_selector.as_ref().is_some_and(|selector| selector.matches(labels))
}
