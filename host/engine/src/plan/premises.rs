//! What holds for a plan before any pod has a place: the daemons that come along on every node, and the host ports and
//! volumes that are at stake.

use whittle_model::PodKey;

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
    pub(crate) fn new(world: &'w World, pods: &[&'w PodKey]) -> Self {
        Self { daemons: daemons(world), ports: Ports::new(world, pods), volumes: Volumes::new(world, pods) }
    }
}
