//! What a claim may become: each type and offering that it leaves open, with the labels such a node
//! would show and the daemons that would run on it.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use whittle_model::{
    Affinity, CapacityType, Catalog, InstanceType, Labels, NodeClaim, Offering, OfferingKey, Operator, Requirement, Requirements,
    Resources, Taint, Timestamp, keys,
};

use crate::world::World;

/// What a node shows under a key.
enum Shown<'a> {
    /// This value.
    Value(&'a str),
    /// Some value that this admits; which one is settled at launch.
    Among(Requirement),
    /// Nothing.
    Absent,
}

/// A node that a claim may become.
#[derive(Clone, Copy)]
pub(super) struct Outcome<'a> {
    pub(super) claim: &'a NodeClaim,
    pub(super) instance_type: &'a InstanceType,
    pub(super) offering: &'a Offering,
}

impl<'a> Outcome<'a> {
    fn shown(&self, key: &str) -> Shown<'a> {
        match key {
            keys::ZONE => return Shown::Value(&self.offering.zone),
            keys::CAPACITY_TYPE => return Shown::Value(self.offering.capacity_type.name()),
            keys::INSTANCE_TYPE => return Shown::Value(&self.instance_type.name),
            keys::ZONE_ID if !self.offering.zone_id.is_empty() => return Shown::Value(&self.offering.zone_id),
            keys::RESERVATION_ID | keys::RESERVATION_TYPE | keys::RESERVATION_INTERRUPTIBLE => {
                return self.offering.reservation.as_ref().and_then(|r| r.label(key)).map_or(Shown::Absent, Shown::Value);
            }
            _ => {}
        }
        if let Some(value) = self.claim.labels.get(key).or_else(|| self.instance_type.labels.get(key)) {
            return Shown::Value(value);
        }
        let asked = self.claim.requirements.get(key);
        match (self.instance_type.requirements.get(key), asked) {
            (Some(may), Some(asked)) => settled(may.intersect(asked)),
            (Some(may), None) => settled(may.clone()),
            // The zone's id is not known here, only what the claim lets it be.
            (None, Some(asked)) if key == keys::ZONE_ID => settled(asked.clone()),
            (None, _) => Shown::Absent,
        }
    }

    /// The values that the node may show under `key`.
    pub(super) fn values(&self, key: &str) -> Vec<&'a str> {
        let listed = |requirement: Option<&'a Requirement>| requirement.into_iter().flat_map(|r| r.values().iter().map(String::as_str));
        match self.shown(key) {
            Shown::Value(value) => vec![value],
            Shown::Among(have) => {
                let all = listed(self.instance_type.requirements.get(key)).chain(listed(self.claim.requirements.get(key)));
                all.filter(|value| have.allows(value)).collect()
            }
            Shown::Absent => Vec::new(),
        }
    }

    /// Whether the node will certainly meet `wanted`.
    fn meets(&self, wanted: &Requirement) -> bool {
        match self.shown(wanted.key()) {
            Shown::Value(value) => wanted.allows(value),
            Shown::Among(have) => narrower(&have, wanted),
            Shown::Absent => wanted.admits_absence(),
        }
    }

    /// Whether the node might meet `wanted`.
    fn may_meet(&self, wanted: &Requirement) -> bool {
        match self.shown(wanted.key()) {
            Shown::Value(value) => wanted.allows(value),
            Shown::Among(have) => have.intersects(wanted) || (have.admits_absence() && wanted.admits_absence()),
            Shown::Absent => wanted.admits_absence(),
        }
    }

    /// Whether the claim's requirements allow it. The type's name is in a list that is looked at by
    /// itself.
    fn keeps_within_requirements(&self) -> bool {
        self.claim.requirements.iter().filter(|r| r.key() != keys::INSTANCE_TYPE).all(|r| self.may_meet(r))
    }

    /// Whether a pod with this affinity may run there, whatever is still open.
    pub(super) fn welcomes(&self, affinity: &Affinity) -> bool {
        let terms = &affinity.node_terms;
        affinity.node_selector.iter().all(|r| self.meets(r))
            && (terms.is_empty() || terms.iter().any(|term| term.iter().all(|r| self.meets(r))))
    }

    /// Whether a pod with this affinity might run there, however what is open is settled.
    pub(super) fn may_welcome(&self, affinity: &Affinity) -> bool {
        let may = |term: Option<&Requirements>| {
            // One value has to suit the selector and the term.
            let mut both = affinity.node_selector.clone();
            term.iter().for_each(|term| both.add_all(term));
            both.iter().all(|r| self.may_meet(r))
        };
        let terms = &affinity.node_terms;
        if terms.is_empty() { may(None) } else { terms.iter().any(|term| may(Some(term))) }
    }
}

fn settled<'a>(have: Requirement) -> Shown<'a> {
    if have.operator() == Operator::DoesNotExist { Shown::Absent } else { Shown::Among(have) }
}

/// Whether everything that `have` admits satisfies `wanted`.
pub(super) fn narrower(have: &Requirement, wanted: &Requirement) -> bool {
    match have.operator() {
        Operator::In => have.values().iter().all(|value| wanted.allows(value)),
        Operator::DoesNotExist => wanted.admits_absence(),
        Operator::NotIn | Operator::Exists | Operator::Gt | Operator::Lt | Operator::Gte | Operator::Lte => {
            have.intersect(wanted).with_min_values(None) == have.clone().with_min_values(None)
        }
    }
}

/// What the claims of one kind make of one type.
#[derive(Debug)]
pub(super) struct Facts<'w> {
    pub(super) instance_type: &'w InstanceType,
    /// Offerings that the claim's requirements leave, those that are sold out today among them.
    pub(super) open: Vec<&'w Offering>,
    /// The best price among those for sale; `None` when none is.
    pub(super) cheapest: Option<&'w Offering>,
    /// What pods have room for, whichever of them is bought.
    pub(super) room: Resources,
}

/// Claims that differ at most in the types they name (and in what they are for).
#[derive(Debug)]
struct Kind<'p>(&'p NodeClaim);

impl Kind<'_> {
    fn parts(&self) -> (&str, &str, &Labels, &[Taint]) {
        (&self.0.node_pool, &self.0.node_class, &self.0.labels, &self.0.taints)
    }

    fn requirements(&self) -> impl Iterator<Item = &Requirement> {
        self.0.requirements.iter().filter(|r| r.key() != keys::INSTANCE_TYPE)
    }
}

impl Ord for Kind<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.parts().cmp(&other.parts()).then_with(|| self.requirements().cmp(other.requirements()))
    }
}

impl PartialOrd for Kind<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Kind<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Kind<'_> {}

/// Facts by kind and type, each made once.
#[derive(Debug)]
pub(super) struct Kinds<'w> {
    world: &'w World,
    now: Timestamp,
    known: BTreeMap<Kind<'w>, BTreeMap<&'w str, Facts<'w>>>,
}

impl<'w> Kinds<'w> {
    pub(super) fn new(world: &'w World, now: Timestamp) -> Self {
        Self { world, now, known: BTreeMap::new() }
    }

    /// Every node that `claim` may become.
    pub(super) fn outcomes(&mut self, claim: &'w NodeClaim) -> Vec<Outcome<'w>> {
        let facts = self.of(claim);
        facts.iter().flat_map(|f| f.open.iter().map(|offering| Outcome { claim, instance_type: f.instance_type, offering })).collect()
    }

    /// Every node that `claim` may become today.
    pub(super) fn for_sale(&mut self, claim: &'w NodeClaim) -> Vec<Outcome<'w>> {
        let (world, now) = (self.world, self.now);
        let sold = |outcome: &Outcome<'_>| for_sale(world, &outcome.instance_type.name, outcome.offering, now);
        self.outcomes(claim).into_iter().filter(sold).collect()
    }

    /// Every node of the types of a claim's catalogue.
    pub(super) fn imaginable(&self, claim: &'w NodeClaim) -> impl Iterator<Item = Outcome<'w>> + use<'w> {
        let types = self.world.catalog_of(claim).into_iter().flat_map(|catalog| &catalog.types);
        types.flat_map(move |instance_type| instance_type.offerings.iter().map(move |offering| Outcome { claim, instance_type, offering }))
    }

    /// Whether a claim may become such a node today.
    pub(super) fn is_sold(&self, node: &Outcome<'_>) -> bool {
        let named = node.claim.requirements.get(keys::INSTANCE_TYPE).is_some_and(|r| r.values().contains(&node.instance_type.name));
        named && node.keeps_within_requirements() && for_sale(self.world, &node.instance_type.name, node.offering, self.now)
    }

    /// The facts of each type that `claim` names and its catalogue knows.
    pub(super) fn of(&mut self, claim: &'w NodeClaim) -> Vec<&Facts<'w>> {
        let (Some(catalog), Some(named)) = (self.world.catalog_of(claim), claim.requirements.get(keys::INSTANCE_TYPE)) else {
            return Vec::new();
        };
        let facts = self.known.entry(Kind(claim)).or_default();
        for name in named.values() {
            if !facts.contains_key(name.as_str())
                && let Some(instance_type) = catalog.get(name)
            {
                facts.insert(&instance_type.name, facts_of(self.world, claim, instance_type, self.now));
            }
        }
        let facts = &*facts;
        named.values().iter().filter_map(|name| facts.get(name.as_str())).collect()
    }
}

fn facts_of<'w>(world: &'w World, claim: &NodeClaim, instance_type: &'w InstanceType, now: Timestamp) -> Facts<'w> {
    let outcome = |offering| Outcome { claim, instance_type, offering };
    let open: Vec<&'w Offering> =
        instance_type.offerings.iter().filter(|o| o.available && outcome(o).keeps_within_requirements()).collect();
    let mut daemons = Resources::default();
    for offering in &open {
        let mut wanted = Resources::default();
        for set in world.daemon_sets.values() {
            let tolerated = claim.taints.iter().all(|t| !t.repels() || t.tolerated_by(&set.template.tolerations));
            if tolerated && outcome(offering).may_welcome(&set.template.affinity) {
                wanted.add(&set.template.requests);
            }
        }
        daemons.raise_to(&wanted);
    }
    let mut room = instance_type.allocatable.clone();
    room.subtract(&daemons);
    let sale = open.iter().copied().filter(|o| for_sale(world, &instance_type.name, o, now));
    let cheapest = sale.min_by_key(|o| (o.price, o.capacity_type, o.zone.as_str()));
    Facts { instance_type, open, cheapest, room }
}

/// Whether an offering can be bought today.
pub(super) fn for_sale(world: &World, instance_type: &str, offering: &Offering, now: Timestamp) -> bool {
    let sold_out = || {
        let key = key_of(instance_type, &offering.zone, offering.capacity_type);
        world.sold_out_until(&key).is_some_and(|until| until > now)
    };
    let reserved = offering.capacity_type == CapacityType::Reserved;
    offering.available && (!reserved || world.settings.features.reserved_capacity) && (world.sold_out.is_empty() || !sold_out())
}

fn key_of(instance_type: &str, zone: &str, capacity_type: CapacityType) -> OfferingKey {
    OfferingKey { instance_type: instance_type.to_owned(), zone: zone.to_owned(), capacity_type }
}

/// The catalogue of a claim.
pub(super) fn catalog_of<'w>(world: &'w World, claim: &NodeClaim) -> Option<&'w Catalog> {
    world.catalog_of(claim)
}
