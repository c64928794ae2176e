//! NodeOverlays: what they make of catalogues, pool by pool. The world derives this whenever an overlay, a pool or
//! a catalogue changes, so that plans read overlaid prices and capacity as if the catalogue said so.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use whittle_model::overlay::{NodeOverlay, PriceChange};
use whittle_model::resources::{CPU, EPHEMERAL_STORAGE, MEMORY, PODS};
use whittle_model::{
    Catalog, InstanceType, Micros, NodeClaim, NodePool, Offering, OfferingKey, Operator, Requirement, Requirements, Resources, keys,
};

use crate::world::World;

/// A pool is taken apart into at most so many faces; overlays that would need more do not apply to it.
const MOST_FACES: usize = 8;

/// What became of an overlay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum OverlayVerdict {
    /// It is in force, wherever it matches.
    Applied,
    /// Another of the same weight says something of the same offering's price or the same resource: nothing of this
    /// one applies. The other's name.
    Conflict(String),
    /// It asks for what no overlay may: why. Nothing of it applies.
    Invalid(String),
}

/// A part of a pool for which the same overlays hold: all of it, or the nodes with some values of a label that the
/// pool leaves open.
#[derive(Debug, Clone)]
pub(crate) struct Face {
    /// What tells its nodes from others of the pool; nothing when the pool has one face.
    pub(crate) narrowed: Requirements,
    pub(crate) catalog: Arc<Catalog>,
    /// Overlaid prices, by index of type and offering.
    prices: BTreeMap<(usize, usize), PriceChange>,
    /// Indices of the types that have more than the catalogue says.
    sized: BTreeSet<usize>,
}

/// What overlays make of all pools.
#[derive(Debug, Clone, Default)]
pub(crate) struct Overlaid {
    pub(crate) faces: BTreeMap<String, Vec<Face>>,
    pub(crate) verdicts: BTreeMap<String, OverlayVerdict>,
}

impl Face {
    fn whole(catalog: &Arc<Catalog>) -> Self {
        Self { narrowed: Requirements::default(), catalog: Arc::clone(catalog), prices: BTreeMap::new(), sized: BTreeSet::new() }
    }

    /// Whether an overlay made the price of an offering.
    pub(crate) fn priced(&self, of_type: usize, offering: usize) -> bool {
        self.prices.contains_key(&(of_type, offering))
    }

    /// Whether an overlay added to what a type has.
    pub(crate) fn sized(&self, of_type: usize) -> bool {
        self.sized.contains(&of_type)
    }

    /// Takes in the list price of an offering.
    pub(crate) fn list_price(&mut self, key: &OfferingKey, list: Micros) {
        let Ok(at) = self.catalog.types.binary_search_by(|t| t.name.cmp(&key.instance_type)) else { return };
        let catalog = Arc::make_mut(&mut self.catalog);
        for (number, offering) in catalog.types[at].offerings.iter_mut().enumerate() {
            if offering.zone == key.zone && offering.capacity_type == key.capacity_type {
                offering.price = self.prices.get(&(at, number)).map_or(list, |change| changed(list, *change));
            }
        }
    }

    /// Whether a claim with these requirements is of this face.
    pub(crate) fn holds(&self, claim: &Requirements) -> bool {
        self.narrowed.iter().all(|narrow| claim.get(narrow.key()).is_some_and(|have| have.intersects(narrow)))
    }
}

/// What a change makes of a price.
fn changed(list: Micros, change: PriceChange) -> Micros {
    let price = match change {
        PriceChange::Absolute(price) => price.0,
        PriceChange::Add(more) => list.0.saturating_add(more.0),
        PriceChange::Scale(millionths) => {
            let change = i128::from(list.0) * i128::from(millionths);
            // Half away from zero, as amounts of money are.
            let rounded = (change + change.signum() * 500_000) / 1_000_000;
            list.0.saturating_add(i64::try_from(rounded).unwrap_or(i64::MAX))
        }
    };
    Micros(price.max(0))
}

/// What the overlays of `world` make of its pools.
pub(crate) fn derive(world: &World) -> Overlaid {
    let mut all = Overlaid::default();
    if !world.settings.features.node_overlay || world.overlays.is_empty() {
        return all;
    }
    let mut order: Vec<&NodeOverlay> = world.overlays.values().collect();
    order.sort_by(|a, b| b.weight.cmp(&a.weight).then_with(|| b.name.cmp(&a.name)));
    let invalid = |overlay: &NodeOverlay| refused(overlay).map(|why| (overlay.name.clone(), OverlayVerdict::Invalid(why)));
    all.verdicts = order.iter().filter_map(|overlay| invalid(overlay)).collect();
    order.retain(|overlay| !all.verdicts.contains_key(&overlay.name));
    let mut pools: Vec<Scope<'_>> = Vec::new();
    for pool in world.pools.values() {
        if let Some(catalog) = world.catalogs.get(&pool.template.node_class) {
            pools.extend(faces(pool, &order, catalog).into_iter().map(|face| Scope::new(pool, face)));
        }
    }
    for overlay in order {
        let matches: Vec<Match> = pools.iter().map(|scope| scope.matching(overlay)).collect();
        let rival = pools.iter().zip(&matches).find_map(|(scope, found)| scope.rival(overlay, found));
        let verdict = rival.map_or(OverlayVerdict::Applied, OverlayVerdict::Conflict);
        if verdict == OverlayVerdict::Applied {
            pools.iter_mut().zip(&matches).for_each(|(scope, found)| scope.apply(overlay, found));
        }
        all.verdicts.insert(overlay.name.clone(), verdict);
    }
    for scope in pools {
        all.faces.entry(scope.pool.name.clone()).or_default().push(scope.finish());
    }
    // A pool that no overlay is about is what its catalogue says.
    all.faces.retain(|_, faces| faces.len() > 1 || faces.iter().any(|face| !face.prices.is_empty() || !face.sized.is_empty()));
    all
}

/// What overlays say that a claim's instance of this type has, as the cloud does not know it.
pub(crate) fn more(world: &World, claim: &NodeClaim, instance_type: &str) -> Option<Resources> {
    let overlaid = world.overlaid.faces.get(&claim.node_pool)?.iter().find(|face| face.holds(&claim.requirements))?;
    let at = overlaid.catalog.types.binary_search_by(|t| t.name.as_str().cmp(instance_type)).ok().filter(|at| overlaid.sized(*at))?;
    let (listed, of_type) = (world.catalog(&claim.node_class)?.get(instance_type)?, &overlaid.catalog.types[at]);
    let mut more = Resources::default();
    for (name, amount) in of_type.capacity.iter().filter(|(name, amount)| listed.capacity.get(name) != *amount) {
        more.set(name, amount);
    }
    Some(more)
}

/// Why an overlay is never applied.
fn refused(overlay: &NodeOverlay) -> Option<String> {
    let key = overlay.requirements.iter().find_map(|r| keys::restricted(r.key()).map(|why| format!("{}: {why}", r.key())));
    let standard = || [CPU, MEMORY, EPHEMERAL_STORAGE, PODS].into_iter().find(|name| overlay.capacity.get(name) != 0);
    key.or_else(|| standard().map(|name| format!("capacity {name} is the instance type's own")))
}

/// The faces of a pool: one, unless an overlay asks for some values of a label that the pool leaves open.
fn faces(pool: &NodePool, overlays: &[&NodeOverlay], catalog: &Arc<Catalog>) -> Vec<Face> {
    let mut faces = vec![Face::whole(catalog)];
    for want in overlays.iter().flat_map(|overlay| overlay.requirements.iter()) {
        if !left_open(pool, want) {
            continue;
        }
        let Some(rest) = opposite(want) else { continue };
        let mut next = Vec::new();
        for face in faces.iter() {
            let have = known(pool, face, want.key());
            let parts = have.filter(|have| have.intersects(want) && have.intersects(&rest));
            if parts.is_none() || faces.len() + next.len() >= 2 * MOST_FACES {
                next.push(face.clone());
                continue;
            }
            // Those whom the overlay is not about come first: pods that do not care go there.
            for part in [&rest, want] {
                let mut part_of = face.clone();
                part_of.narrowed.add(part.clone());
                next.push(part_of);
            }
        }
        if next.len() <= MOST_FACES {
            faces = next;
        }
    }
    faces
}

/// Whether a pool lets its nodes have one of several values of the key.
fn left_open(pool: &NodePool, want: &Requirement) -> bool {
    let key = want.key();
    !keys::well_known(key) && !pool.template.labels.contains_key(key) && pool.template.requirements.get(key).is_some()
}

/// What is known of a key on all nodes of a face.
fn known(pool: &NodePool, face: &Face, key: &str) -> Option<Requirement> {
    let of_pool = pool.template.requirements.get(key);
    match (of_pool, face.narrowed.get(key)) {
        (Some(a), Some(b)) => Some(a.intersect(b)),
        (Some(one), None) | (None, Some(one)) => Some(one.clone()),
        (None, None) => None,
    }
}

/// The values that do not meet a requirement, as far as one requirement can say so.
fn opposite(want: &Requirement) -> Option<Requirement> {
    let values: Vec<String> = want.values().iter().cloned().collect();
    if want.bounds() != (None, None) || values.is_empty() {
        return None;
    }
    match want.operator() {
        Operator::In => Requirement::new(want.key(), Operator::NotIn, &values).ok(),
        Operator::NotIn => Requirement::new(want.key(), Operator::In, &values).ok(),
        Operator::Exists | Operator::DoesNotExist | Operator::Gt | Operator::Lt | Operator::Gte | Operator::Lte => None,
    }
}

/// What an overlay is about in a face: indices of types, each with those of its offerings.
type Match = Vec<(usize, Vec<usize>)>;

/// A face while overlays are applied to it, highest weight first.
struct Scope<'w> {
    pool: &'w NodePool,
    face: Face,
    /// The last overlay that had a say on an offering's price: its weight and name.
    spoke: BTreeMap<(usize, usize), (i32, &'w str)>,
    /// The same of a resource of a type.
    added: BTreeMap<(usize, &'w str), (i32, &'w str)>,
}

impl<'w> Scope<'w> {
    fn new(pool: &'w NodePool, face: Face) -> Self {
        Self { pool, face, spoke: BTreeMap::new(), added: BTreeMap::new() }
    }

    fn matching(&self, overlay: &NodeOverlay) -> Match {
        let types = self.face.catalog.types.iter().enumerate().filter(|(_, of_type)| self.type_matches(of_type, overlay));
        types
            .filter_map(|(at, of_type)| {
                let offerings = of_type.offerings.iter().enumerate().filter(|(_, o)| offering_matches(o, overlay));
                let found: Vec<usize> = offerings.map(|(at, _)| at).collect();
                (!found.is_empty()).then_some((at, found))
            })
            .collect()
    }

    /// Whether nodes of this type meet an overlay, zone and capacity type aside. Keys that neither pool nor type
    /// define do not match.
    fn type_matches(&self, of_type: &InstanceType, overlay: &NodeOverlay) -> bool {
        overlay.requirements.iter().all(|want| match want.key() {
            keys::ZONE | keys::ZONE_ID | keys::CAPACITY_TYPE => true,
            keys::NODE_POOL => want.allows(&self.pool.name),
            key => match (self.pool.template.labels.get(key), of_type.labels.get(key), of_type.requirements.get(key)) {
                (Some(value), _, _) | (None, Some(value), _) => want.allows(value),
                (None, None, Some(may)) => may.intersects(want) || (may.admits_absence() && want.admits_absence()),
                (None, None, None) => {
                    let settled = known(self.pool, &self.face, key).map(|have| have.intersects(want) && have.intersect(want) == have);
                    settled.unwrap_or_else(|| want.admits_absence())
                }
            },
        })
    }

    /// Another overlay of the same weight that had its say already on something of `found`.
    fn rival(&self, overlay: &NodeOverlay, found: &Match) -> Option<String> {
        let of_weight = |(weight, name): &(i32, &str)| (*weight == overlay.weight).then(|| (*name).to_owned());
        let prices = || {
            let offers = found.iter().flat_map(|(of_type, offers)| offers.iter().map(move |offer| (*of_type, *offer)));
            offers.filter_map(|offer| self.spoke.get(&offer)).find_map(of_weight)
        };
        let resources = || {
            let of_type = |of_type: usize| overlay.capacity.iter().filter_map(move |(name, _)| self.added.get(&(of_type, name)));
            found.iter().flat_map(|(at, _)| of_type(*at)).find_map(of_weight)
        };
        overlay.price.and_then(|_| prices()).or_else(resources)
    }

    fn apply(&mut self, overlay: &'w NodeOverlay, found: &Match) {
        let who = (overlay.weight, overlay.name.as_str());
        for (of_type, offers) in found {
            for offer in offers.iter().filter(|_| overlay.price.is_some()) {
                self.spoke.insert((*of_type, *offer), who);
                if let Some(change) = overlay.price {
                    self.face.prices.entry((*of_type, *offer)).or_insert(change);
                }
            }
            for (name, amount) in overlay.capacity.iter() {
                if self.added.insert((*of_type, name), who).is_none() {
                    let one = &mut Arc::make_mut(&mut self.face.catalog).types[*of_type];
                    one.capacity.set(name, amount);
                    one.allocatable.set(name, amount);
                    self.face.sized.insert(*of_type);
                }
            }
        }
    }

    /// The face with its prices.
    fn finish(mut self) -> Face {
        for ((of_type, offer), change) in self.face.prices.clone() {
            let price = &mut Arc::make_mut(&mut self.face.catalog).types[of_type].offerings[offer].price;
            *price = changed(*price, change);
        }
        self.face
    }
}

fn offering_matches(offering: &Offering, overlay: &NodeOverlay) -> bool {
    overlay.requirements.iter().all(|want| match want.key() {
        keys::ZONE => want.allows(&offering.zone),
        keys::ZONE_ID => offering.zone_id.is_empty() || want.allows(&offering.zone_id),
        keys::CAPACITY_TYPE => want.allows(offering.capacity_type.name()),
        _ => true,
    })
}
