//! What claims say of themselves: whether they have drifted, and whether they may be consolidated.

use whittle_model::{Duration, NodeClaim, Timestamp};

use super::{candidates, drift, in_use};
use crate::lifecycle;
use crate::round::Round;
use crate::world::World;

/// While nodes are on their way that were asked for less than this ago, others are not written to that may go: that is
/// news for nobody, and a scale-up has writes enough.
const FRESH: Duration = Duration::minutes(1);

/// Brings what claims say up to date; each change is one write.
pub(super) fn refresh(round: &mut Round<'_>) {
    let now = round.now;
    let on_its_way = |claim: &NodeClaim| claim.status.initialized.is_none() && !claim.deleting && now.since(claim.created) < FRESH;
    let growing = round.world.claims.values().any(on_its_way);
    let changes: Vec<(String, Standing)> = round
        .world
        .claims
        .values()
        .filter(|claim| !claim.deleting && !round.world.stays(claim))
        .filter_map(|claim| change(round.world, claim, now, growing))
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

fn change(world: &World, claim: &NodeClaim, now: Timestamp, growing: bool) -> Option<(String, Standing)> {
    let before = Standing { drifted: claim.status.drifted.clone(), consolidatable: claim.status.consolidatable };
    let since = before.drifted.as_ref().map_or(now, |(_, since)| *since);
    let due = world.pools.get(&claim.node_pool).filter(|_| in_use(claim)).and_then(|pool| candidates::consolidatable_at(pool, claim));
    let after = Standing {
        drifted: drift::reason(world, claim, now).map(|reason| (reason, since)),
        consolidatable: due.filter(|at| *at <= now).and_then(|_| before.consolidatable.or_else(|| (!growing).then_some(now))),
    };
    (after != before).then(|| (claim.name.clone(), after))
}
