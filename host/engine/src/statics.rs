//! Pools that keep a number of nodes whatever pods ask for (`replicas`): what is missing is bought bare, within the
//! limit on nodes; what is too much goes, the least useful first.

use whittle_model::{Duration, NodeClaim, Scorer, Timestamp};

use crate::disrupt::weights;
use crate::lifecycle;
use crate::plan;
use crate::protection::{self, DoNotDisrupt};
use crate::report::{PlannedClaim, Step};
use crate::round::Round;
use crate::world::World;

/// As Karpenter: a pool that may not grow now is looked at again by then.
const AGAIN: Duration = Duration::seconds(30);

/// Buys and removes what the static pools want. Answers when pools that could not have what they want are to be
/// looked at again.
pub(crate) fn keep(round: &mut Round<'_>, scorer: &mut dyn Scorer) -> Option<Timestamp> {
    if !round.world.settings.features.static_capacity {
        return None;
    }
    let kept = round.world.pools.values().filter(|pool| !pool.deleting);
    let pools: Vec<(String, usize)> = kept.filter_map(|p| Some((p.name.clone(), usize::try_from(p.replicas?).ok()?))).collect();
    let mut short = false;
    for (pool, replicas) in pools {
        let (running, disrupted) = census(round.world, &pool);
        if running > replicas {
            for claim in candidates(round.world, &pool, round.now).into_iter().take(running - replicas) {
                lifecycle::condemn(round, &claim, "ScaledDown");
            }
        } else if running + disrupted < replicas {
            short |= grow(round, &pool, replicas - running, scorer) < replicas - running;
        }
    }
    short.then(|| round.now.plus(AGAIN))
}

/// The claims of a pool that stay, and those that a move is about to take away and replace.
fn census(world: &World, pool: &str) -> (usize, usize) {
    let here = staying(world, pool);
    let (disrupted, running): (Vec<_>, Vec<_>) = here.partition(|claim| claim.status.disrupted.is_some());
    (running.len(), disrupted.len())
}

fn staying<'w>(world: &'w World, pool: &'w str) -> impl Iterator<Item = &'w NodeClaim> {
    world.claims.values().filter(move |claim| claim.node_pool == pool && !claim.deleting && !world.leaving.contains(&claim.name))
}

/// Plans `count` nodes and answers how many it could.
fn grow(round: &mut Round<'_>, pool: &str, count: usize, scorer: &mut dyn Scorer) -> usize {
    let nodes = match plan::bare(round.world, pool, count, scorer, round.now) {
        Ok(nodes) => nodes,
        Err(failure) => {
            round.report.failures.push(failure);
            return 0;
        }
    };
    round.report.policies.extend(scorer.close());
    let planned = nodes.len();
    for node in nodes {
        let name = node.claim.name.clone();
        round.report.steps.push(Step::Planned(Box::new(PlannedClaim::of(&node))));
        round.ledger.planned(name);
        round.world.put_claim(node.claim);
    }
    planned
}

/// The claims of a pool in the order in which they go: not launched, empty, without pods that must not be
/// disturbed, by what it costs to move their pods for the rest of their life.
fn candidates(world: &World, pool: &str, now: Timestamp) -> Vec<String> {
    let here = staying(world, pool).filter(|claim| claim.status.disrupted.is_none());
    let mut order: Vec<(bool, bool, bool, i64, &str)> = here
        .map(|claim| {
            let pods = || world.node_of(claim).and_then(|node| world.usage.get(&node.name)).into_iter().flat_map(|usage| usage.pods.iter());
            let records = || pods().filter_map(|key| world.pods.get(key));
            let protected =
                records().any(|record| !record.terminal() && protection::do_not_disrupt(world, record, now) != DoNotDisrupt::Free);
            let in_use = protected || records().any(|record| !world.tied_to_node(record));
            let cost = records()
                .filter(|record| !world.tied_to_node(record))
                .fold(0, |sum: i64, pod| sum.saturating_add(weights::eviction(world, pod)));
            let cost = i128::from(cost) * i128::from(lifetime_left(claim, now)) / 1_000_000;
            let cost = i64::try_from(cost).unwrap_or(i64::MAX);
            (!claim.status.provider_id.is_empty(), in_use, protected, cost, claim.name.as_str())
        })
        .collect();
    order.sort_unstable();
    order.into_iter().map(|(_, _, _, _, name)| name.to_owned()).collect()
}

/// The part of its life that a claim has before it, in millionths; all of it when it does not expire.
fn lifetime_left(claim: &NodeClaim, now: Timestamp) -> i64 {
    let Some(life) = claim.expire_after.map(|life| life.0).filter(|life| *life > 0) else { return 1_000_000 };
    let left = i128::from(life) - i128::from(now.since(claim.created).0);
    i64::try_from((left * 1_000_000 / i128::from(life)).clamp(0, 1_000_000)).unwrap_or(0)
}
