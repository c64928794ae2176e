//! What holds for a plan before any pod has a place: the daemons that come along on every node, and the host ports and
//! volumes that are at stake.

use whittle_model::Resources;

use super::amounts::Dimensions;
use super::classes::Member;
use super::daemons::{Daemon, daemons};
use super::ports::Ports;
use super::volumes::Volumes;
use crate::world::World;

/// See the room.
#[derive(Debug)]
pub(crate) struct Premises<'w> {
    pub(crate) daemons: Vec<Daemon<'w>>,
    pub(crate) ports: Ports<'w>,
    pub(crate) volumes: Volumes<'w>,
}

impl<'w> Premises<'w> {
    /// The premises of placing `pods`.
    pub(crate) fn new(world: &'w World, pods: &[Member<'w>]) -> Self {
        Self { daemons: daemons(world), ports: Ports::new(world, pods), volumes: Volumes::new(world, pods) }
    }

    /// The dimensions in which pods with these requests are placed. A resource that only daemons name can fill a node too.
    pub(crate) fn dimensions<'a>(&'a self, requests: impl Iterator<Item = &'a Resources>) -> Dimensions {
        let daemons = self.daemons.iter().map(|daemon| daemon.requests.as_ref());
        Dimensions::of(requests.chain(daemons), self.volumes.attached().dimensions())
    }
}
