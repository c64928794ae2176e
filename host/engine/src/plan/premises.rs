//! What holds for a plan before any pod has a place: the daemons that come along on every node, and the host ports and
//! volumes that are at stake.

use whittle_model::{Node, NodeClaim, Resources};

use super::amounts::Dimensions;
use super::classes::Member;
use super::daemons::{Daemon, daemons};
use super::ports::Ports;
use super::volumes::Volumes;
use crate::intern::Lookup;
use crate::world::World;

/// See the room.
#[derive(Debug)]
pub(crate) struct Premises<'w> {
    pub(crate) daemons: Vec<Daemon<'w>>,
    pub(crate) ports: Ports<'w>,
    pub(crate) volumes: Volumes<'w>,
    pub(crate) holders: Holders<'w>,
}

/// Whose node each is, asked of all nodes and claims at once.
#[derive(Debug)]
pub(crate) struct Holders<'w> {
    claims: Lookup<&'w str, &'w NodeClaim>,
    nodes: Lookup<&'w str, ()>,
}

impl<'w> Holders<'w> {
    fn new(world: &'w World) -> Self {
        let mut claims: Lookup<&str, &NodeClaim> = Lookup::with_capacity(world.claims.len());
        for claim in world.claims.values().filter(|claim| !claim.status.provider_id.is_empty()) {
            let id = claim.status.provider_id.as_str();
            // Of two that say they are one instance the one that said so last is believed.
            let rival = claims.get(id).and_then(|_| world.claims.get(world.claim_by_provider.get(id)?));
            claims.insert(id, rival.unwrap_or(claim));
        }
        let mut nodes = Lookup::with_capacity(world.nodes.len());
        let ids = world.nodes.values().map(|node| node.provider_id.as_str()).filter(|id| !id.is_empty());
        ids.for_each(|id| nodes.insert(id, ()));
        Self { claims, nodes }
    }

    /// The claim of a node, if it has one: as [`World::claim_of`].
    pub(crate) fn claim_of(&self, node: &Node) -> Option<&'w NodeClaim> {
        self.claims.get(node.provider_id.as_str()).copied()
    }

    /// Whether the node of a claim has joined: as [`World::node_of`].
    pub(crate) fn joined(&self, claim: &NodeClaim) -> bool {
        self.nodes.get(claim.status.provider_id.as_str()).is_some()
    }
}

impl<'w> Premises<'w> {
    /// The premises of placing `pods`.
    pub(crate) fn new(world: &'w World, pods: &[Member<'w>]) -> Self {
        Self { daemons: daemons(world), ports: Ports::new(world, pods), volumes: Volumes::new(world, pods), holders: Holders::new(world) }
    }

    /// The dimensions in which pods with these requests are placed. A resource that only daemons name can fill a node too.
    pub(crate) fn dimensions<'a>(&'a self, requests: impl Iterator<Item = &'a Resources>) -> Dimensions {
        let daemons = self.daemons.iter().map(|daemon| daemon.requests.as_ref());
        Dimensions::of(requests.chain(daemons), self.volumes.attached().dimensions())
    }
}
