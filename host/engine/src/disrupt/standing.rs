//! What claims say of themselves: whether they have drifted, and whether they may be consolidated.

use whittle_model::{NodeClaim, Timestamp};

use super::{candidates, drift, in_use};
use crate::lifecycle;
use crate::round::Round;
use crate::world::World;

/// Brings what claims say up to date; each change is one write.
pub(super) fn refresh(round: &mut Round<'_>) {
    let now = round.now;
    let changes: Vec<(String, Standing)> = round
        .world
        .claims
        .values()
        .filter(|claim| !claim.deleting && !round.world.stays(claim))
        .filter_map(|claim| change(round.world, claim, now))
        .collect();
    for (name, standing) in changes {
        lifecycle::update(round, &name, |status| {
            status.drifted = standing.drifted;
            status.consolidatable = standing.consolidatable;
        });
    }
}

#[derive(PartialEq, Eq)]
struct Standing {
    drifted: Option<(String, Timestamp)>,
    consolidatable: Option<Timestamp>,
}

fn change(world: &World, claim: &NodeClaim, now: Timestamp) -> Option<(String, Standing)> {
    let before = Standing { drifted: claim.status.drifted.clone(), consolidatable: claim.status.consolidatable };
    let since = before.drifted.as_ref().map_or(now, |(_, since)| *since);
    let due = world.pools.get(&claim.node_pool).filter(|_| in_use(claim)).and_then(|pool| candidates::consolidatable_at(pool, claim));
    let after = Standing {
        drifted: drift::reason(world, claim, now).map(|reason| (reason, since)),
        consolidatable: due.filter(|at| *at <= now).map(|_| before.consolidatable.unwrap_or(now)),
    };
    (after != before).then(|| (claim.name.clone(), after))
}
