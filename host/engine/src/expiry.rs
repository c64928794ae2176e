//! Why a claim goes although nothing is wrong with it: its time is over, or somebody deleted its node.
//!
//! What must not enter: replacements. These are forceful: no budget is asked, and pods find their new place as they go.

use whittle_model::{NodeClaim, Timestamp};

use crate::world::World;

/// When a claim's time is over. What cannot be read stays.
pub(crate) fn expires_at(world: &World, claim: &NodeClaim) -> Option<Timestamp> {
    let life = claim.expire_after.filter(|_| !claim.deleting)?;
    (!world.stays(claim)).then(|| claim.created.plus(life))
}

/// The reason for which a claim goes now, if there is one.
pub(crate) fn reason(world: &World, claim: &NodeClaim, now: Timestamp) -> Option<&'static str> {
    if world.nodes_of(claim).any(|node| node.deleting) {
        return Some("NodeDeleted");
    }
    expires_at(world, claim).filter(|at| *at <= now).map(|_| "Expired")
}
