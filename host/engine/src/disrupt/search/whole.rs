//! The cluster planned as a whole. Moves that are found one after the other fill nodes that had better go, and take away
//! nodes that the others would need; where the bound says that there is more to save, the cheapest cluster for all pods is
//! asked which nodes it would have. The others go first, and take no pods until they have had their turn.
//!
//! What must not enter: how a single move is found.

use std::collections::BTreeSet;

use whittle_model::Micros;
use whittle_model::scorer::ScorerFailure;

use super::{STEPS_A_NODE, Search, float, less_the_trouble, nodes};
use crate::disrupt::candidates::Candidate;
use crate::disrupt::moves::Move;

/// Steps of the packer in all.
const MOST_STEPS: u64 = 200_000;

impl<'a> Search<'a> {
    /// The moves towards the cheapest cluster, if they lead to one that is enough cheaper than what `first` leads to.
    pub(super) fn as_a_whole(&mut self, first: &[Move]) -> Result<Option<Vec<Move>>, ScorerFailure> {
        let cost: Micros = self.all.iter().map(|c| c.price).sum();
        let after = cost - saved(first);
        let least = self.study.value(&self.study.counts(&nodes(&self.all)));
        if least >= less_the_trouble(self.world, after) {
            return Ok(None);
        }
        self.study.start_over();
        self.rest.clone_from(&self.all);
        let going = self.going();
        if going.is_empty() {
            return Ok(None);
        }
        self.study.close(&nodes(&going), true);
        self.deletes(going.clone());
        let still: BTreeSet<&str> = self.rest.iter().map(|c| c.claim.as_str()).collect();
        self.reshape(going.iter().copied().filter(|c| still.contains(c.claim.as_str())).collect())?;
        self.study.close(&nodes(&going), false);
        self.one_after_the_other()?;
        let found = std::mem::take(&mut self.found);
        let better = float(cost - saved(&found)) < less_the_trouble(self.world, after);
        Ok(better.then_some(found))
    }

    /// The nodes that the cheapest cluster would not have, those first that are worth least for their price.
    fn going(&mut self) -> Vec<&'a Candidate> {
        let pool_and_type = |c: &'a Candidate| c.offering.as_ref().map_or("", |offering| offering.instance_type.as_str());
        let named: Vec<(&str, &str, &str)> = self.all.iter().map(|c| (c.node.as_str(), c.pool.as_str(), pool_and_type(c))).collect();
        let steps = MOST_STEPS.min(STEPS_A_NODE * u64::try_from(named.len()).unwrap_or(1));
        let kept = self.study.kept(&named, self.world.settings.disruption.reshape_permille, steps);
        let values = self.study.values(&nodes(&self.all));
        let mut going: Vec<(f64, &Candidate)> = Vec::new();
        for ((candidate, kept), value) in self.all.iter().zip(kept).zip(values) {
            if !kept {
                going.push((value / float(candidate.price).max(1.0), candidate));
            }
        }
        going.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.claim.cmp(&b.1.claim)));
        going.into_iter().map(|(_, candidate)| candidate).collect()
    }
}

fn saved(moves: &[Move]) -> Micros {
    moves.iter().map(|what| what.saves).sum()
}
