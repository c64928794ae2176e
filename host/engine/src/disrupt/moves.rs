//! A move: nodes that go together and what is bought for them first; and which types a replacement may become so that
//! the move saves money whichever of them is bought.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use whittle_model::{
    CapacityType, Catalog, InstanceType, ListedOffer, Micros, NodeClaim, Offering, OfferingKey, Requirement, Timestamp, keys,
};

use super::candidates::Candidate;
use super::reason::Reason;
use crate::plan::PlannedNode;
use crate::plan::states::{offering_allows, type_allows};
use crate::plan::tables::for_sale;
use crate::plan::write;
use crate::report::{MoveStage, MoveStep};
use crate::world::World;

/// As Karpenter: with fewer cheaper types than this EC2 would walk down to the pool with the least capacity.
pub(super) const SPOT_TYPES: usize = 15;

/// A move.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Move {
    pub(crate) reason: Reason,
    /// The claims that go, in the order in which they were chosen.
    pub(crate) claims: Vec<String>,
    /// Their pools, one for each.
    pub(crate) pools: Vec<String>,
    pub(crate) replacements: Vec<PlannedNode>,
    /// What it saves an hour by list price.
    pub(crate) saves: Micros,
    /// When it was found.
    pub(crate) found: Timestamp,
    /// Whether more nodes may be bought than one.
    pub(crate) reshapes: bool,
}

impl Move {
    /// A move of these nodes, with nothing bought yet.
    pub(super) fn of(reason: Reason, candidates: &[&Candidate], now: Timestamp) -> Self {
        Self {
            reason,
            claims: candidates.iter().map(|c| c.claim.clone()).collect(),
            pools: candidates.iter().map(|c| c.pool.clone()).collect(),
            replacements: Vec::new(),
            saves: candidates.iter().map(|c| c.price).sum(),
            found: now,
            reshapes: false,
        }
    }

    /// The same with what is bought for it.
    pub(super) fn buying(self, replacements: Vec<PlannedNode>) -> Self {
        let spent: Micros = replacements.iter().map(|r| r.list).sum();
        Self { saves: self.saves - spent, replacements, ..self }
    }

    /// What it is worth before policies are asked: what it saves, and nothing where only they can want it.
    pub(crate) const fn score(&self) -> i64 {
        if self.reason.is_advice() { 0 } else { self.saves.0 }
    }

    /// What the report says of it.
    pub(super) fn step(&self, stage: MoveStage) -> MoveStep {
        MoveStep {
            reason: self.reason.name().to_owned(),
            claims: self.claims.clone(),
            replacements: self.replacements.iter().map(|r| r.claim.name.clone()).collect(),
            saves: self.saves,
            stage,
        }
    }
}

/// Leaves a replacement only the types that cost less than the nodes that go, whichever is bought.
///
/// # Errors
/// Says why nothing is left.
pub(super) fn trim(
    world: &World,
    candidates: &[&Candidate],
    planned: PlannedNode,
    cap: Micros,
    alone: bool,
    now: Timestamp,
) -> Result<PlannedNode, String> {
    let cut = cut(world, candidates, &planned.claim, cap, alone, now)?;
    narrow(planned, &cut, now)
}

/// What is left of a claim.
#[derive(Debug, Clone)]
pub(super) struct Cut {
    types: Vec<String>,
    ways: Vec<CapacityType>,
    /// What is for sale of that, the cheapest first.
    offers: Vec<(Micros, OfferingKey)>,
}

/// What costs less than `cap` of what a claim may become.
///
/// # Errors
/// Says why that is nothing.
pub(super) fn cut(
    world: &World,
    candidates: &[&Candidate],
    claim: &NodeClaim,
    cap: Micros,
    alone: bool,
    now: Timestamp,
) -> Result<Cut, String> {
    let catalog = world.catalog(&claim.node_class).ok_or("its instance types are not known")?;
    let mut market = Market { world, catalog, claim, ways: Vec::new(), now };
    let all = market.types();
    market.ways = [CapacityType::Reserved, CapacityType::Spot, CapacityType::OnDemand]
        .into_iter()
        .filter(|way| all.iter().any(|t| market.offerings(t).any(|o| o.capacity_type == *way)))
        .collect();
    let spot_to_spot = candidates.iter().all(|c| c.spot()) && market.ways.contains(&CapacityType::Spot);
    if spot_to_spot {
        if !world.settings.features.spot_to_spot {
            return Err("the feature gate SpotToSpotConsolidation is off: a spot node is not replaced by another".to_owned());
        }
        market.ways = vec![CapacityType::Spot];
    }
    let mut kept: Vec<(Micros, &InstanceType)> =
        all.iter().filter_map(|t| market.worst(t).filter(|worst| *worst < cap).map(|worst| (worst, *t))).collect();
    if alone && candidates.len() > 1 {
        let cap = twin_price(candidates, &kept);
        kept.retain(|(worst, _)| cap.is_none_or(|cap| *worst < cap));
    }
    if market.ways.contains(&CapacityType::Spot) {
        // What is cheaper as spot must not become a dearer on-demand node because spot is sold out.
        let spot = |t: &InstanceType| market.offerings(t).any(|o| o.capacity_type == CapacityType::Spot);
        if kept.iter().any(|(_, t)| spot(t)) {
            kept.retain(|(_, t)| spot(t));
            market.ways.retain(|way| *way != CapacityType::OnDemand);
        }
    }
    if kept.is_empty() {
        return Err("nothing that is cheaper would do".to_owned());
    }
    // To and fro is no way to save.
    kept.retain(|(_, t)| candidates.iter().all(|candidate| !candidate.came_from.contains(&t.name)));
    if kept.is_empty() {
        return Err("its pods were moved off all that is cheaper within a day".to_owned());
    }
    kept.sort_by(|a, b| (a.0, &a.1.name).cmp(&(b.0, &b.1.name)));
    if spot_to_spot && (candidates.len() == 1 || !alone) {
        if kept.len() < SPOT_TYPES {
            return Err(format!("{} of {SPOT_TYPES} spot types that are cheaper: too few to replace a spot node", kept.len()));
        }
        let least = (SPOT_TYPES..=kept.len()).find(|n| enough(claim, &kept[..*n])).unwrap_or(kept.len());
        kept.truncate(least);
    }
    if !enough(claim, &kept) {
        return Err("the types that are cheaper are fewer than minValues asks for".to_owned());
    }
    let types: Vec<&InstanceType> = kept.into_iter().map(|(_, t)| t).collect();
    let offers = market.best_first(&types);
    Ok(Cut { types: types.into_iter().map(|t| t.name.clone()).collect(), ways: market.ways, offers })
}

/// What the replacement of several nodes by one must cost less than when it may be of a type that one of them has: else
/// that one had better stay.
fn twin_price(candidates: &[&Candidate], kept: &[(Micros, &InstanceType)]) -> Option<Micros> {
    let twins = candidates.iter().filter(|c| c.offering.as_ref().is_some_and(|o| kept.iter().any(|(_, t)| t.name == o.instance_type)));
    twins.map(|c| c.price).min()
}

/// Whether these types have as many values as the claim asks for.
fn enough(claim: &NodeClaim, kept: &[(Micros, &InstanceType)]) -> bool {
    claim.requirements.iter().all(|requirement| {
        let Some(least) = requirement.min_values() else { return true };
        let values: BTreeSet<&String> = kept.iter().filter_map(|(_, t)| t.labels.get(requirement.key())).collect();
        values.len() >= least as usize
    })
}

/// What a claim may be bought as.
struct Market<'a> {
    world: &'a World,
    catalog: &'a Catalog,
    claim: &'a NodeClaim,
    /// Ways to pay that are open; all when empty.
    ways: Vec<CapacityType>,
    now: Timestamp,
}

impl<'a> Market<'a> {
    fn types(&self) -> Vec<&'a InstanceType> {
        let named = self.claim.requirements.get(keys::INSTANCE_TYPE);
        let may = |t: &&InstanceType| named.is_none_or(|named| named.allows(&t.name)) && type_allows(t, &self.claim.requirements);
        self.catalog.types.iter().filter(may).collect()
    }

    /// The offerings of a type that are for sale now.
    fn offerings(&self, of: &'a InstanceType) -> impl Iterator<Item = &'a Offering> {
        of.offerings.iter().filter(move |offering| {
            let open = self.ways.is_empty() || self.ways.contains(&offering.capacity_type);
            open && offering_allows(offering, &self.claim.requirements) && for_sale(self.world, of, offering, self.now)
        })
    }

    /// The most that a launch of this type may cost: the dearest offering of the way that is preferred.
    fn worst(&self, of: &'a InstanceType) -> Option<Micros> {
        let preferred = self.offerings(of).map(|o| o.capacity_type).min()?;
        self.offerings(of).filter(|o| o.capacity_type == preferred).map(|o| o.price).max()
    }

    /// What is for sale of these types, the cheapest first.
    fn best_first(&self, types: &[&'a InstanceType]) -> Vec<(Micros, OfferingKey)> {
        let mut all: Vec<(Micros, OfferingKey)> = types.iter().flat_map(|t| self.offerings(t).map(|o| (o.price, t.key(o)))).collect();
        all.sort_by(|a, b| (a.0, a.1.capacity_type, &a.1).cmp(&(b.0, b.1.capacity_type, &b.1)));
        all
    }
}

/// The planned node with what is left of its claim alone.
///
/// # Errors
/// Says why that is nothing.
pub(super) fn narrow(mut planned: PlannedNode, cut: &Cut, now: Timestamp) -> Result<PlannedNode, String> {
    let names: Vec<&str> = cut.types.iter().map(String::as_str).collect();
    let (ways, offers): (Vec<&str>, _) = (cut.ways.iter().map(|way| way.name()).collect(), &cut.offers);
    let listed = planned.claim.listed_offers();
    planned.claim.requirements.add(Requirement::any_of(keys::INSTANCE_TYPE, &names));
    planned.claim.requirements.add(Requirement::any_of(keys::CAPACITY_TYPE, &ways));
    let mut best = offers.first().cloned().ok_or("nothing of it is for sale")?;
    if let Some(mut listed) = listed {
        // Policies say what is bought, offering by offering: what is left of their list.
        let sold = |(of, zone, _): &ListedOffer| offers.iter().find(|(_, o)| o.instance_type == *of && o.zone == *zone);
        listed.retain(|entry| sold(entry).is_some());
        best = listed.first().and_then(sold).cloned().ok_or("policies allow none of what is cheaper")?;
        planned.claim.list_offers(listed.iter().map(|(of, zone, rank)| (&**of, &**zone, *rank)));
    } else {
        (planned.rank, planned.cost) = (best.0, best.0);
    }
    planned.runner_up = offers.iter().find(|(_, o)| o.instance_type != best.1.instance_type).map(|(price, o)| (o.clone(), *price));
    (planned.list, planned.choice) = best;
    write::regroup(&mut planned.claim, now);
    Ok(planned)
}
