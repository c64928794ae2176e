//! From what a claim allows to the offerings that EC2 is asked for: the filters, the cut, the capacity type.
//!
//! What must not enter: AWS types, subnets, images. The order here is EC2's to use, not a plan of its own: what a chain of
//! policies has listed is taken as it is.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use whittle_model::{
    CapacityType, Catalog, InstanceType, ListedOffer, Micros, NodeClaim, Offering, OfferingKey, Requirement, Requirements, keys,
};

use crate::image::Reservation;

/// More types than this leave the request no smaller and the choice no better (as Karpenter).
pub(crate) const MOST_TYPES: usize = 60;
/// Annotation of a claim whose prices an overlay changed: EC2 does not know them, so it must keep our order.
const PRICE_OVERLAY: &str = "karpenter.sh/price-overlay-applied";
/// Resources that only dear types have; who asks for none should not get one.
const EXOTIC: [&str; 5] = ["nvidia.com/gpu", "amd.com/gpu", "aws.amazon.com/neuron", "aws.amazon.com/neuroncore", "habana.ai/gaudi"];
const SIZE: &str = "karpenter.k8s.aws/instance-size";

/// What EC2 may choose from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Selection {
    /// All picks are of this capacity type.
    pub(crate) capacity_type: CapacityType,
    /// Who ranks the picks.
    pub(crate) ranking: Ranking,
    /// What to ask for, best first.
    pub(crate) picks: Vec<Pick>,
}

/// Who ranks what EC2 may choose from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum Ranking {
    /// EC2 weighs price and capacity itself.
    Ec2,
    /// EC2 must go by our prices.
    Prices,
    /// EC2 must go by the list of a chain.
    List,
}

/// One type in one zone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pick {
    pub(crate) instance_type: String,
    pub(crate) zone: String,
    /// The capacity reservation to launch into.
    pub(crate) reservation: Option<Reservation>,
    /// Lower goes first: the place in the list of a chain, or else the price in micro-dollars.
    pub(crate) priority: i64,
}

impl Pick {
    fn new(instance_type: &InstanceType, offering: &Offering, priority: i64) -> Self {
        let reservation = offering.reservation.as_ref();
        Self {
            instance_type: instance_type.name.clone(),
            zone: offering.zone.clone(),
            reservation: reservation.map(|r| Reservation { id: r.id.clone(), capacity_block: r.block, interruptible: r.interruptible }),
            priority,
        }
    }

    pub(crate) fn key(&self, capacity_type: CapacityType) -> OfferingKey {
        OfferingKey { instance_type: self.instance_type.clone(), zone: self.zone.clone(), capacity_type }
    }
}

/// A type with those of its offerings that will do.
#[derive(Debug, Clone)]
struct Candidate<'a> {
    instance_type: &'a InstanceType,
    offerings: Vec<&'a Offering>,
}

impl Candidate<'_> {
    fn price(&self) -> Option<Micros> {
        self.offerings.iter().map(|o| o.price).min()
    }

    fn is_exotic(&self) -> bool {
        let metal = self.instance_type.labels.get(SIZE).is_some_and(|size| size.contains("metal"));
        metal || EXOTIC.iter().any(|name| self.instance_type.capacity.get(name) > 0)
    }

    /// Keeps the offerings that `keep` admits; `None` when none is left.
    fn narrowed(mut self, keep: impl Fn(&Offering) -> bool) -> Option<Self> {
        self.offerings.retain(|offering| keep(offering));
        (!self.offerings.is_empty()).then_some(self)
    }
}

/// What to ask EC2 for, for this claim; `None` when nothing is left. `bootable` says which types an image exists for.
pub(crate) fn select(
    claim: &NodeClaim,
    catalog: &Catalog,
    sold_out: &BTreeSet<OfferingKey>,
    bootable: &dyn Fn(&InstanceType) -> bool,
) -> Option<Selection> {
    let mut candidates = compatible(claim, catalog, sold_out);
    candidates.retain(|candidate| bootable(candidate.instance_type));
    candidates = of_one_kind(candidates);
    if let Some(listed) = claim.listed_offers() {
        return listed_offers(&candidates, &listed);
    }
    if !claim.requirements.iter().any(|r| r.min_values().is_some()) {
        candidates = without_exotic(candidates);
        candidates = without_dear_spot(candidates);
    }
    let candidates = cheapest(candidates, &claim.requirements)?;
    let capacity_type = best_capacity_type(&candidates)?;
    let picks = candidates.iter().flat_map(|candidate| {
        let of_type = candidate.offerings.iter().filter(|o| o.capacity_type == capacity_type);
        of_type.map(|o| Pick::new(candidate.instance_type, o, o.price.0))
    });
    let mut picks: Vec<Pick> = picks.collect();
    picks.sort_by(|a, b| (a.priority, a).cmp(&(b.priority, b)));
    let ranking = if claim.annotations.contains_key(PRICE_OVERLAY) { Ranking::Prices } else { Ranking::Ec2 };
    Some(Selection { capacity_type, ranking, picks })
}

/// Everything for sale that the claim allows, whether or not an image exists for it.
pub(crate) fn allowed(claim: &NodeClaim, catalog: &Catalog, sold_out: &BTreeSet<OfferingKey>) -> Vec<OfferingKey> {
    let of = |candidate: Candidate<'_>| candidate.offerings.iter().map(|o| candidate.instance_type.key(o)).collect::<Vec<_>>();
    compatible(claim, catalog, sold_out).into_iter().flat_map(of).collect()
}

/// Types whose labels meet the requirements and that have room, with their offerings that are for sale.
fn compatible<'a>(claim: &NodeClaim, catalog: &'a Catalog, sold_out: &BTreeSet<OfferingKey>) -> Vec<Candidate<'a>> {
    let wanted = |key: &str, value: &str| claim.requirements.get(key).is_none_or(|r| r.allows(value));
    if !wanted(keys::REGION, &catalog.region) {
        return Vec::new();
    }
    let for_sale = |instance_type: &InstanceType, o: &Offering| {
        let key = instance_type.key(o);
        let in_reservation = |key: &&str| match o.reservation.as_ref().and_then(|held| held.label(key)) {
            Some(value) => wanted(key, value),
            None => claim.requirements.get(key).is_none_or(Requirement::admits_absence),
        };
        o.available
            && wanted(keys::ZONE, &o.zone)
            && (o.zone_id.is_empty() || wanted(keys::ZONE_ID, &o.zone_id))
            && wanted(keys::CAPACITY_TYPE, o.capacity_type.name())
            && keys::OF_RESERVATIONS.iter().all(in_reservation)
            && !sold_out.contains(&key)
    };
    let suits = |instance_type: &&InstanceType| {
        claim.requests.fit_in(&instance_type.allocatable)
            && meets(&claim.requirements, instance_type)
            && wanted(keys::INSTANCE_TYPE, &instance_type.name)
    };
    catalog
        .types
        .iter()
        .filter(suits)
        .filter_map(|instance_type| {
            let all = Candidate { instance_type, offerings: instance_type.offerings.iter().collect() };
            all.narrowed(|offering| for_sale(instance_type, offering))
        })
        .collect()
}

/// Whether a node of this type can meet the requirements, those on its offering aside.
fn meets(requirements: &Requirements, instance_type: &InstanceType) -> bool {
    requirements.iter().all(|want| match (instance_type.labels.get(want.key()), want.key()) {
        (_, keys::ZONE | keys::ZONE_ID | keys::CAPACITY_TYPE | keys::INSTANCE_TYPE | keys::REGION | keys::NODE_POOL) => true,
        (_, key) if keys::OF_RESERVATIONS.contains(&key) => true,
        (Some(value), _) => want.allows(value),
        (None, key) => match instance_type.requirements.get(key) {
            Some(have) => have.intersects(want) || (have.admits_absence() && want.admits_absence()),
            // What the type does not define the node gets from the claim's labels.
            None => want.admits_absence() || !keys::well_known(key),
        },
    })
}

/// One call launches into reservations of one kind: of that which holds the cheapest, those that nobody takes back before
/// others, and of a block into that one alone. Of reservations of one type in one zone, which EC2's answer does not tell
/// apart, that with most instances left remains.
fn of_one_kind(mut candidates: Vec<Candidate<'_>>) -> Vec<Candidate<'_>> {
    let rank = |held: &whittle_model::Reservation| (Reverse(held.left), held.id.clone());
    let all = candidates.iter().flat_map(|candidate| &candidate.offerings);
    let reserved = all.filter_map(|offering| Some((offering.price, offering.reservation.as_ref()?)));
    let Some((_, best)) = reserved.min_by_key(|(price, held)| (*price, held.kind(), rank(held))) else { return candidates };
    let stays = |of_type: &[&Offering], offering: &Offering| match &offering.reservation {
        None => true,
        Some(held) if best.block => held.id == best.id,
        Some(held) => {
            let in_zone = of_type.iter().filter(|rival| rival.zone == offering.zone);
            let mut rivals = in_zone.filter_map(|rival| rival.reservation.as_ref()).filter(|rival| rival.kind() == best.kind());
            held.kind() == best.kind() && rivals.all(|rival| rank(held) <= rank(rival))
        }
    };
    for candidate in &mut candidates {
        let of_type = candidate.offerings.clone();
        candidate.offerings.retain(|offering| stays(&of_type, offering));
    }
    candidates.retain(|candidate| !candidate.offerings.is_empty());
    candidates
}

/// Metal and accelerators go when plain types remain.
fn without_exotic(candidates: Vec<Candidate<'_>>) -> Vec<Candidate<'_>> {
    let (exotic, plain): (Vec<_>, Vec<_>) = candidates.into_iter().partition(Candidate::is_exotic);
    if plain.is_empty() { exotic } else { plain }
}

/// Spot that costs more than the cheapest on-demand goes.
fn without_dear_spot(candidates: Vec<Candidate<'_>>) -> Vec<Candidate<'_>> {
    let of = |wanted: CapacityType| candidates.iter().flat_map(|c| &c.offerings).filter(move |o| o.capacity_type == wanted);
    let Some(limit) = of(CapacityType::OnDemand).map(|o| o.price).min() else { return candidates };
    if of(CapacityType::Spot).next().is_none() {
        return candidates;
    }
    let fair = |offering: &Offering| offering.capacity_type != CapacityType::Spot || offering.price <= limit;
    candidates.into_iter().filter_map(|candidate| candidate.narrowed(fair)).collect()
}

/// The cheapest [`MOST_TYPES`] types that still offer as many distinct values as the requirements ask for; `None` when
/// no such list exists.
fn cheapest<'a>(mut candidates: Vec<Candidate<'a>>, requirements: &Requirements) -> Option<Vec<Candidate<'a>>> {
    candidates.sort_by(|a, b| (a.price(), &a.instance_type.name).cmp(&(b.price(), &b.instance_type.name)));
    let mut kept = vec![false; candidates.len()];
    for want in requirements.iter() {
        let Some(least) = want.min_values() else { continue };
        let mut seen = BTreeSet::new();
        // Types kept for another key count for this one, whatever their price.
        for (candidate, _) in candidates.iter().zip(&kept).filter(|(_, kept)| **kept) {
            seen.extend(values(candidate, want.key()));
        }
        for (at, candidate) in candidates.iter().enumerate() {
            if seen.len() >= least as usize {
                break;
            }
            let before = seen.len();
            seen.extend(values(candidate, want.key()).into_iter().filter(|value| want.allows(value)));
            kept[at] |= seen.len() > before;
        }
        if seen.len() < least as usize {
            return None;
        }
    }
    let mut room = MOST_TYPES.checked_sub(kept.iter().filter(|kept| **kept).count())?;
    for kept in &mut kept {
        if !*kept && room > 0 {
            *kept = true;
            room -= 1;
        }
    }
    let kept = candidates.into_iter().zip(kept).filter_map(|(candidate, kept)| kept.then_some(candidate));
    Some(kept.collect())
}

fn values(candidate: &Candidate<'_>, key: &str) -> BTreeSet<String> {
    match key {
        keys::INSTANCE_TYPE => [candidate.instance_type.name.clone()].into(),
        keys::ZONE => candidate.offerings.iter().map(|o| o.zone.clone()).collect(),
        keys::ZONE_ID => candidate.offerings.iter().map(|o| o.zone_id.clone()).collect(),
        keys::CAPACITY_TYPE => candidate.offerings.iter().map(|o| o.capacity_type.name().to_owned()).collect(),
        key => candidate.instance_type.labels.get(key).cloned().into_iter().collect(),
    }
}

/// Reserved before spot before on-demand, as far as offered.
fn best_capacity_type(candidates: &[Candidate<'_>]) -> Option<CapacityType> {
    candidates.iter().flat_map(|c| &c.offerings).map(|o| o.capacity_type).min()
}

/// Exactly what is listed and for sale, in that order.
fn listed_offers(candidates: &[Candidate<'_>], listed: &[ListedOffer]) -> Option<Selection> {
    let by_name: BTreeMap<&str, &Candidate<'_>> = candidates.iter().map(|c| (c.instance_type.name.as_str(), c)).collect();
    let offered = |(name, zone, _): &ListedOffer| {
        let of_type = by_name.get(name.as_str()).copied();
        let offerings = of_type.into_iter().flat_map(|c| c.offerings.iter().map(|o| (c.instance_type, *o)));
        offerings.filter(|(_, o)| o.zone == *zone).collect::<Vec<_>>()
    };
    // The plan fixes one capacity type; should two remain, the better one is asked for.
    let capacity_type = listed.iter().flat_map(offered).map(|(_, o)| o.capacity_type).min()?;
    let picks = listed.iter().filter_map(|one| offered(one).into_iter().find(|(_, o)| o.capacity_type == capacity_type));
    let picks = picks.zip(0..).map(|((instance_type, offering), priority)| Pick::new(instance_type, offering, priority));
    Some(Selection { capacity_type, ranking: Ranking::List, picks: picks.collect() })
}

#[cfg(test)]
#[path = "../../tests_unit/fleet_select.rs"]
mod tests;
