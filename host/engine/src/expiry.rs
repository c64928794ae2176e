//! Why a claim goes although nothing is wrong with it: its time is over, or somebody deleted its node.
//!
//! What must not enter: replacements. These are forceful: no budget is asked, and pods find their new place as they go.

use whittle_model::{Duration, NodeClaim, Timestamp};

use crate::world::World;

/// When a claim's time is over. What cannot be read stays.
pub(crate) fn expires_at(world: &World, claim: &NodeClaim) -> Option<Timestamp> {
    let life = claim.expire_after.filter(|_| !claim.deleting)?;
    (!world.stays(claim)).then(|| claim.created.plus(life))
}

/// Policies may have a node exchanged within the last part of its life, one in so many: of the usual thirty days the last
/// week, so that a window which opens once a week lies in it.
const LAST_PART: i64 = 4;
const LAST_DAYS: Duration = Duration::hours(8 * 24);

/// From when on policies may have a claim's node exchanged before its time is over. What they say keeps none for longer.
pub(crate) fn nears_its_end(world: &World, claim: &NodeClaim) -> Option<Timestamp> {
    let (end, life) = (expires_at(world, claim)?, claim.expire_after?);
    Some(end.plus(Duration(-(life.0 / LAST_PART).min(LAST_DAYS.0))))
}

/// The reason for which a claim goes now, if there is one.
pub(crate) fn reason(world: &World, claim: &NodeClaim, now: Timestamp) -> Option<&'static str> {
    if world.nodes_of(claim).any(|node| node.deleting) {
        return Some("NodeDeleted");
    }
    expires_at(world, claim).filter(|at| *at <= now).map(|_| "Expired")
}
