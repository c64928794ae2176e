//! Rule `ports`: no two pods on a place want one port of it, the daemons to come among them.

use std::collections::BTreeMap;

use whittle_model::{HostPort, Protocol};

use super::Findings;
use super::ground::{Face, Ground, Spot};
use super::places;
use crate::world::World;

pub(super) fn check(ground: &Ground<'_>, found: &mut Findings) {
    let asks = |spot: &&Spot<'_>| spot.arriving.iter().any(|g| !ground.world.shapes.value(g.shape).host_ports.is_empty());
    for spot in ground.spots.iter().filter(asks) {
        let mut taken = Taken::default();
        // Those that share a port already are not the plan's doing.
        for group in spot.present.iter().chain(&spot.parting) {
            ground.world.shapes.value(group.shape).host_ports.iter().for_each(|port| _ = taken.take(port));
        }
        for port in daemons(ground.world, spot) {
            taken.take(port);
        }
        for group in &spot.arriving {
            for port in &ground.world.shapes.value(group.shape).host_ports {
                if taken.take(port) || group.count > 1 {
                    found.object("ports", format!("{} is for two pods with port {} {:?}", spot.name, port.port, port.protocol));
                }
            }
        }
    }
}

/// The ports of a place that somebody has.
#[derive(Debug, Default)]
struct Taken<'w>(BTreeMap<(u16, Protocol), Vec<&'w HostPort>>);

impl<'w> Taken<'w> {
    /// Takes a port, and says whether it was taken before.
    fn take(&mut self, port: &'w HostPort) -> bool {
        let others = self.0.entry((port.port, port.protocol)).or_default();
        let clashes = others.iter().any(|other| port.collides(other));
        others.push(port);
        clashes
    }
}

/// The ports of daemons that are not there and might come.
fn daemons<'w>(world: &'w World, spot: &Spot<'w>) -> Vec<&'w HostPort> {
    let there = places::daemons_on(world, &spot.present);
    let comes = |set: &&whittle_model::DaemonSet| {
        let pod = &set.template;
        let tolerated = spot.taints().iter().all(|t| !t.repels() || t.tolerated_by(&pod.tolerations));
        let welcome = match &spot.face {
            Face::Settled(_) => spot.accepted_by(&pod.affinity, true),
            Face::Open(..) => spot.accepted_by(&pod.affinity, false),
        };
        tolerated && welcome && !there.contains(&(set.key.namespace.as_str(), set.key.name.as_str()))
    };
    world.daemon_sets.values().filter(comes).flat_map(|set| &set.template.host_ports).collect()
}
