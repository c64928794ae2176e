//! The native judges of `consolidationPolicy`: `WhenEmpty` lets no node go that has pods, `WhenEmptyOrUnderutilized` lets
//! every move save money, `Balanced` weighs the share of the pool's cost that a move saves against the share of its pods
//! that it disturbs, and asks for half of it at least. Source: Karpenter's consolidation with k = 2.

use std::collections::BTreeMap;

use whittle_model::{Micros, NodePool};

use super::candidates::Candidate;
use super::moves::Move;
use super::weights;
use crate::world::World;

/// What all nodes of each pool cost, and what disrupting all of them would.
#[derive(Debug, Clone, Default)]
pub(super) struct Totals(BTreeMap<String, Total>);

#[derive(Debug, Clone, Copy, Default)]
struct Total {
    cost: Micros,
    weight: i64,
}

impl Totals {
    /// The totals of the pools that are weighed.
    pub(super) fn new(world: &World) -> Self {
        let mut totals = Self::default();
        if !world.pools.values().any(balanced) {
            return totals;
        }
        for claim in world.claims.values().filter(|c| world.pools.get(&c.node_pool).is_some_and(balanced)) {
            let total = totals.0.entry(claim.node_pool.clone()).or_default();
            total.cost = total.cost + weights::price(world, claim);
            total.weight += world.node_of(claim).map_or(0, |node| weights::of_node(world, &node.name));
        }
        totals
    }

    /// Whether moving a node could be worth it if all it costs were saved.
    pub(super) fn could_pass(&self, candidate: &Candidate) -> bool {
        self.0.get(&candidate.pool).is_none_or(|total| passes(candidate.price, 1, 1, candidate.weight, *total))
    }

    /// Why a move is not worth it, if so: every pool that is weighed must approve.
    pub(super) fn objection(&self, found: &Move, candidates: &BTreeMap<&str, &Candidate>) -> Option<String> {
        let all: Vec<&Candidate> = found.claims.iter().filter_map(|claim| candidates.get(claim.as_str()).copied()).collect();
        let whole: Micros = all.iter().map(|c| c.price).sum();
        self.0.iter().find_map(|(pool, total)| {
            let of_pool: Vec<&&Candidate> = all.iter().filter(|c| c.pool == *pool).collect();
            if of_pool.is_empty() {
                return None;
            }
            let (cost, weight): (Micros, i64) = (of_pool.iter().map(|c| c.price).sum(), of_pool.iter().map(|c| c.weight).sum());
            let (part, of) = if cost == whole { (1, 1) } else { (cost.0, whole.0) };
            let fine = passes(found.saves, part, of, weight, *total);
            let share = |part: i128, of: i128| if of > 0 { part * 100 / of } else { 0 };
            (!fine).then(|| {
                let saved = share(i128::from(found.saves.0) * i128::from(part) / i128::from(of.max(1)), i128::from(total.cost.0));
                let disturbed = share(i128::from(weight), i128::from(total.weight));
                format!("Balanced: it would save {saved} % of what nodepool {pool} costs and disturb {disturbed} % of it")
            })
        })
    }
}

pub(super) fn balanced(pool: &NodePool) -> bool {
    pool.disruption.policy == "Balanced"
}

/// Whether `saves * part / of` of the cost is at least half as large a share as `weight` is of the weight.
fn passes(saves: Micros, part: i64, of: i64, weight: i64, total: Total) -> bool {
    if saves.0 <= 0 || total.cost.0 <= 0 || total.weight <= 0 {
        return false;
    }
    let gain = 2 * i128::from(saves.0) * i128::from(part) * i128::from(total.weight);
    gain >= i128::from(weight) * i128::from(total.cost.0) * i128::from(of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_the_share_is_enough() {
        let total = Total { cost: Micros(1_000_000), weight: 100 };
        for (saves, weight, fine) in [(100_000, 20, true), (100_000, 21, false), (0, 1, false), (-5, 1, false), (1_000_000, 100, true)] {
            assert_eq!(passes(Micros(saves), 1, 1, weight, total), fine, "{saves} for {weight}");
        }
        assert!(passes(Micros(200_000), 1, 2, 20, total) && !passes(Micros(200_000), 1, 2, 21, total), "a pool's share of a move");
        assert!(!passes(Micros(1), 1, 1, 1, Total::default()), "nothing to weigh against");
    }
}
