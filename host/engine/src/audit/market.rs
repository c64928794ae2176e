//! In which domains nodes could be bought.

use std::collections::{BTreeMap, BTreeSet};

use whittle_model::{Affinity, NodeClaim, Requirement, Toleration, keys};

use super::claims::closed;
use super::presence::Kinds;
use crate::world::World;

/// A claim of each pool that is open, as wide as the pool.
pub(super) fn widest(world: &World) -> Vec<NodeClaim> {
    let open = world.pools.values().filter(|pool| closed(world, pool).is_none());
    open.map(|pool| {
        let template = &pool.template;
        let mut claim = NodeClaim {
            node_pool: pool.name.clone(),
            node_class: template.node_class.clone(),
            labels: template.labels.clone(),
            taints: template.taints.clone(),
            requirements: template.requirements.clone(),
            ..NodeClaim::default()
        };
        claim.labels.insert(keys::NODE_POOL.to_owned(), pool.name.clone());
        claim.labels.insert(keys::NODE_CLASS.to_owned(), template.node_class.clone());
        if claim.requirements.get(keys::INSTANCE_TYPE).is_none_or(|r| r.values().is_empty()) {
            let names: Vec<&str> = world.catalog(&template.node_class).iter().flat_map(|c| &c.types).map(|t| t.name.as_str()).collect();
            claim.requirements.add(Requirement::any_of(keys::INSTANCE_TYPE, &names));
        }
        claim
    })
    .collect()
}

/// All that is for sale.
pub(super) struct Market<'w> {
    claims: &'w [NodeClaim],
    known: BTreeMap<(Affinity, Vec<Toleration>, String), BTreeSet<String>>,
    kinds: Kinds<'w>,
}

impl<'w> Market<'w> {
    pub(super) fn new(claims: &'w [NodeClaim], kinds: Kinds<'w>) -> Self {
        Self { claims, known: BTreeMap::new(), kinds }
    }

    /// The values of `key` among the nodes that a pod with this affinity and these tolerations
    /// could have bought for it, its size aside.
    pub(super) fn domains(&mut self, affinity: &Affinity, tolerations: &[Toleration], key: &str) -> BTreeSet<String> {
        let asked = (affinity.clone(), tolerations.to_vec(), key.to_owned());
        if let Some(known) = self.known.get(&asked) {
            return known.clone();
        }
        let mut domains: BTreeSet<String> = BTreeSet::new();
        let tolerated = |claim: &&NodeClaim| claim.taints.iter().all(|t| !t.repels() || t.tolerated_by(tolerations));
        for outcome in self.claims.iter().filter(tolerated).flat_map(|claim| self.kinds.imaginable(claim)) {
            let values = outcome.values(key);
            // Most sell what another sells too.
            let new = values.iter().any(|value| !domains.contains(*value));
            if new && self.kinds.is_sold(&outcome) && outcome.may_welcome(affinity) {
                domains.extend(values.into_iter().map(str::to_owned));
            }
        }
        self.known.insert(asked, domains.clone());
        domains
    }
}
