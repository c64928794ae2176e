//! What a person should know of how their files were read.

use std::collections::{BTreeMap, BTreeSet};

use whittle_cluster::{Located, Object};
use whittle_model::{BufferSource, BufferSpec, Features, PodKey};
use whittle_sim::ScenarioObject;

/// Objects that are named before the rest are counted.
const NAMED: usize = 3;

/// Each field (or kind) that would change where pods run and is not acted on yet, with its places.
#[must_use]
pub fn refused(objects: &[&Located<Object>]) -> Vec<String> {
    let mut places: Vec<(&str, Vec<String>)> = Vec::new();
    for located in objects {
        for field in located.refused() {
            put(&mut places, field, format!("{}:{}: {}", located.file, located.line, located.name));
        }
    }
    let mut said = Vec::new();
    for (field, places) in places {
        said.extend(places.iter().take(NAMED).map(|place| format!("{place}: {field}")));
        if places.len() > NAMED {
            said.push(format!("and {} more objects: {field}", places.len() - NAMED));
        }
    }
    said
}

/// What is accepted and not acted on, each thing once with the objects it stands in.
fn not_acted_on(objects: &[&Located<Object>]) -> Vec<String> {
    let mut places: Vec<(&str, Vec<String>)> = Vec::new();
    for located in objects {
        for what in &located.not_acted_on {
            put(&mut places, what, located.name.clone());
        }
    }
    let told = places.into_iter().map(|(what, names)| {
        let more = names.len().saturating_sub(NAMED);
        let named = names[..names.len() - more].join(", ");
        if more == 0 { format!("{named}: {what}") } else { format!("{named} and {more} more: {what}") }
    });
    told.collect()
}

fn put<'a>(places: &mut Vec<(&'a str, Vec<String>)>, what: &'a str, place: String) {
    match places.iter_mut().find(|(known, _)| *known == what) {
        Some((_, all)) => all.push(place),
        None => places.push((what, vec![place])),
    }
}

/// Everything else worth knowing, one line each.
#[must_use]
pub fn of(
    objects: &[&Located<Object>],
    unused: &BTreeSet<String>,
    assumed: &[(String, ScenarioObject)],
    refused: &[String],
) -> Vec<String> {
    let mut lines = Vec::new();
    if !assumed.is_empty() {
        let names: Vec<&str> = assumed.iter().map(|(name, _)| name.as_str()).collect();
        lines.push(format!("no EC2NodeClass is given: {} assumed, with AL2023 in every zone", names.join(", ")));
    }
    lines.extend(classes(objects));
    lines.extend(refused.iter().map(|field| format!("PARTIAL, not acted on: {field}")));
    lines.extend(not_acted_on(objects));
    lines.extend(buffers(objects));
    lines.extend(skipped(objects));
    if !unused.is_empty() {
        let names: Vec<&str> = unused.iter().map(String::as_str).collect();
        lines.push(format!("the story applies no {}", names.join(", ")));
    }
    lines
}

/// What has no effect because its feature gate is off.
#[must_use]
pub fn gated(objects: &[&Located<Object>], features: &Features) -> Vec<String> {
    let (mut overlays, mut pools, mut buffers) = (Vec::new(), Vec::new(), Vec::new());
    for located in objects {
        if let Object::NodeOverlay(overlay) = &located.object {
            overlays.push(overlay.name.as_str());
        } else if let Object::NodePool(pool) = &located.object
            && pool.replicas.is_some()
        {
            pools.push(pool.name.as_str());
        } else if let Object::CapacityBuffer(buffer) = &located.object
            && buffer.active
        {
            buffers.push(buffer.spec.key.name.as_str());
        }
    }
    let say = |kind: &str, names: &[&str], effect: &str, gate: &str| {
        format!("{kind} {}: {effect}, as the feature gate {gate} is off; --feature-gates {gate}=true switches it on", names.join(", "))
    };
    let overlays =
        (!features.node_overlay && !overlays.is_empty()).then(|| say("NodeOverlay", &overlays, "changes nothing", "NodeOverlay"));
    let pools = (!features.static_capacity && !pools.is_empty())
        .then(|| say("NodePool", &pools, "with spec.replicas buys nothing", "StaticCapacity"));
    let buffers =
        (!features.capacity_buffer && !buffers.is_empty()).then(|| say("CapacityBuffer", &buffers, "keeps no room", "CapacityBuffer"));
    overlays.into_iter().chain(pools).chain(buffers).collect()
}

/// Buffers that keep no room because of what they are for.
fn buffers(objects: &[&Located<Object>]) -> Vec<String> {
    let template_of = |spec: &BufferSpec| {
        objects.iter().find_map(|located| match (&located.object, &spec.of) {
            (Object::PodTemplate(pod), BufferSource::PodTemplate(name)) => {
                (pod.key == PodKey::new(&spec.key.namespace, name)).then(|| (pod.as_ref(), None))
            }
            (Object::Workload(workload), BufferSource::Scalable(kind, name)) => {
                let meant = workload.kind.name() == kind.name() && workload.key == PodKey::new(&spec.key.namespace, name);
                meant.then_some((&workload.template, Some(workload.replicas)))
            }
            _ => None,
        })
    };
    let mut lost = Vec::new();
    for located in objects {
        let Object::CapacityBuffer(buffer) = &located.object else { continue };
        let spec = &buffer.spec;
        let why = match template_of(spec) {
            None => format!("there is no {} in namespace {}", spec.of, spec.key.namespace),
            Some((template, scale)) => match spec.filled(template, scale) {
                Ok(_) => continue,
                Err(why) => why,
            },
        };
        lost.push(format!("{}: keeps no room: {why}", located.name));
    }
    lost
}

/// Node classes whose zones are assumed, and pools whose class is not there.
fn classes(objects: &[&Located<Object>]) -> Vec<String> {
    let (mut names, mut zoneless, mut held, mut lost) = (BTreeSet::new(), Vec::new(), Vec::new(), Vec::new());
    for located in objects {
        if let Object::NodeClass(class) = &located.object {
            names.insert(class.class.name.as_str());
            zoneless.extend(class.subnets.is_empty().then_some(class.class.name.as_str()));
            held.extend(class.held.iter().map(|one| one.reservation.id.as_str()));
        }
    }
    for located in objects {
        if let Object::NodePool(pool) = &located.object
            && !names.is_empty()
            && !names.contains(pool.template.node_class.as_str())
        {
            lost.push(format!("NodePool {}: there is no EC2NodeClass {}, so it buys nothing", pool.name, pool.template.node_class));
        }
    }
    if !zoneless.is_empty() {
        lost.push(format!("EC2NodeClass {}: no status lists its subnets, one in every zone is assumed", zoneless.join(", ")));
    }
    if !held.is_empty() {
        lost.push(format!(
            "capacity reservations {}: no status tells how many instances they hold, a story's `reserve` does",
            held.join(", ")
        ));
    }
    lost
}

fn skipped(objects: &[&Located<Object>]) -> Option<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for located in objects {
        if let Object::Skipped { kind, .. } = &located.object
            && located.refused().is_empty()
        {
            *counts.entry(kind).or_default() += 1;
        }
    }
    let counted: Vec<String> = counts.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    (!counted.is_empty()).then(|| format!("skipped, as they bear on no plan: {}", counted.join(", ")))
}

#[cfg(test)]
mod tests {
    use whittle_cluster::{Strictness, manifest};

    use super::*;

    #[test]
    fn many_objects_of_one_kind_are_counted_not_listed() {
        let pod = |n: usize| {
            format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: p{n}}}\nspec: {{runtimeClassName: x, containers: [{{name: a}}]}}\n")
        };
        let text: Vec<String> = (0..5).map(pod).collect();
        let read = manifest::read(&text.join("---\n"), "pods.yaml", Strictness::Strict).unwrap();
        let said = refused(&read.iter().collect::<Vec<_>>());
        assert_eq!(said.len(), 4, "{said:?}");
        assert_eq!(said[0], "pods.yaml:1: Pod p0: spec.runtimeClassName");
        assert_eq!(said[3], "and 2 more objects: spec.runtimeClassName");
    }
}
