//! What claims say of themselves: whether they have drifted, and whether they may be consolidated.

use whittle_model::{Duration, NodeClaim, Timestamp};

use super::{candidates, drift, in_use};
use crate::lifecycle;
use crate::round::Round;
use crate::world::World;

/// While nodes are on their way that were asked for less than this ago, others are not written to that may go: that is
/// news for nobody, and a scale-up has writes enough.
const FRESH: Duration = Duration::minutes(1);

/// Brings what claims say up to date; each change is one write. Says when what is left unsaid is due.
pub(super) fn refresh(round: &mut Round<'_>) -> Option<Timestamp> {
    let now = round.now;
    let on_its_way = |claim: &&NodeClaim| claim.status.initialized.is_none() && !claim.deleting;
    let growing = round.world.claims.values().filter(on_its_way).map(|claim| claim.created.plus(FRESH)).filter(|over| *over > now).max();
    let mut unsaid = false;
    let changes: Vec<(String, Standing)> = round
        .world
        .claims
        .values()
        .filter(|claim| !claim.deleting && !round.world.stays(claim))
        .filter_map(|claim| {
            let mut standing = due(round.world, claim, now);
            if growing.is_some() && claim.status.consolidatable.is_none() && standing.consolidatable.is_some() {
                (standing.consolidatable, unsaid) = (None, true);
            }
            (standing != Standing::of(claim)).then(|| (claim.name.clone(), standing))
        })
        .collect();
    for (name, standing) in changes {
        lifecycle::update(round, &name, |status| {
            status.drifted = standing.drifted;
            status.consolidatable = standing.consolidatable;
        });
    }
    growing.filter(|_| unsaid)
}

#[derive(PartialEq, Eq)]
struct Standing {
    drifted: Option<(String, Timestamp)>,
    consolidatable: Option<Timestamp>,
}

impl Standing {
    fn of(claim: &NodeClaim) -> Self {
        Self { drifted: claim.status.drifted.clone(), consolidatable: claim.status.consolidatable }
    }
}

fn due(world: &World, claim: &NodeClaim, now: Timestamp) -> Standing {
    let before = Standing::of(claim);
    let since = before.drifted.as_ref().map_or(now, |(_, since)| *since);
    let due = world.pools.get(&claim.node_pool).filter(|_| in_use(claim)).and_then(|pool| candidates::consolidatable_at(pool, claim));
    Standing {
        drifted: drift::reason(world, claim, now).map(|reason| (reason, since)),
        consolidatable: due.filter(|at| *at <= now).map(|_| before.consolidatable.unwrap_or(now)),
    }
}
