//! DaemonSets as a plan sees them: what each of their pods asks for, and the nodes it goes to.

use std::borrow::Cow;

use whittle_model::{DaemonSet, HostPort, Requirements, Resources, Taint, Toleration, keys};

use super::tables::alternatives_of;
use crate::world::World;

/// One DaemonSet.
#[derive(Debug)]
pub(crate) struct Daemon<'w> {
    /// The number of its name, if a pod of it was ever seen on a node.
    pub(crate) number: Option<u32>,
    pub(crate) requests: Cow<'w, Resources>,
    pub(crate) tolerations: &'w [Toleration],
    pub(crate) ports: &'w [HostPort],
    /// The sets of requirements any one of which a node has to meet.
    pub(crate) wanted: Vec<Requirements>,
    /// The same for a node that is to come: by the time its daemons do, it is registered and initialized.
    pub(crate) wanted_ahead: Vec<Requirements>,
}

impl Daemon<'_> {
    /// Whether it ignores the taints that keep others away.
    pub(crate) fn tolerates<'t>(&self, taints: impl IntoIterator<Item = &'t Taint>) -> bool {
        taints.into_iter().all(|t| !t.repels() || t.tolerated_by(self.tolerations))
    }
}

/// All DaemonSets of a world, by name.
pub(crate) fn daemons(world: &World) -> Vec<Daemon<'_>> {
    world.daemon_sets.values().map(|set| daemon(world, set)).collect()
}

/// As documented: what admission made of the newest running pod counts before the template; the required node affinity
/// is the template's, since each pod's own names its node.
fn daemon<'w>(world: &'w World, set: &'w DaemonSet) -> Daemon<'w> {
    let template = &set.template;
    let live = world.daemon_pods.newest(&set.key).and_then(|key| world.pods.get(&key)).map(|record| world.shape_of(record));
    let requests = live.map_or_else(|| of_template(world, set), |shape| Cow::Borrowed(&shape.requests));
    let mut affinity = template.affinity.clone();
    if let Some(shape) = live {
        affinity.node_selector = shape.affinity.node_selector.clone();
    }
    let wanted = alternatives_of(&affinity);
    Daemon {
        number: world.set_names.known(&set.key),
        requests,
        tolerations: live.map_or(&template.tolerations, |shape| &shape.tolerations),
        ports: live.map_or(&template.host_ports, |shape| &shape.host_ports),
        wanted_ahead: wanted.iter().filter_map(ahead).collect(),
        wanted,
    }
}

/// What a node to come has to meet besides being registered and initialized; `None` when it must not be.
fn ahead(wanted: &Requirements) -> Option<Requirements> {
    let mut rest = wanted.clone();
    let reached = [keys::REGISTERED, keys::INITIALIZED].iter().all(|key| rest.remove(key).is_none_or(|r| r.allows("true")));
    reached.then_some(rest)
}

/// Where no pod of the set runs yet: the template, with the defaults of its namespace for containers that say nothing.
fn of_template<'w>(world: &'w World, set: &'w DaemonSet) -> Cow<'w, Resources> {
    let mut defaults = Resources::default();
    for range in world.limit_ranges.values().filter(|range| range.key.namespace == set.key.namespace) {
        for (name, amount) in range.requests.iter() {
            if defaults.get(name) == 0 {
                defaults.set(name, amount);
            }
        }
    }
    match &set.containers {
        Some(containers) if defaults.iter().next().is_some() => Cow::Owned(containers.requests(&defaults)),
        _ => Cow::Borrowed(&set.template.requests),
    }
}
