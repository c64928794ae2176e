//! Every place there will be once a plan is carried out, with the pods that stay and those that
//! come: what the rules read that look at pods in pairs, or at domains.

use std::collections::{BTreeMap, BTreeSet};

use whittle_model::{Affinity, LabelSelector, NodeClaim, PodAffinityTerm, SelectorOperator, keys};

use super::places::{self, Stand};
use super::presence::{Kinds, Outcome};
use super::roll::{Group, Loads, gather};
use super::tenants;
use crate::plan::Plan;
use crate::world::World;

/// What is known of the labels of a place.
pub(super) enum Face<'w> {
    /// They are settled.
    Settled(Stand<'w>),
    /// It may become any of these nodes.
    Open(&'w NodeClaim, Vec<Outcome<'w>>),
}

/// A node, a claim in flight or a claim of the plan.
pub(super) struct Spot<'w> {
    pub(super) name: &'w str,
    pub(super) face: Face<'w>,
    /// Pods that are there and stay.
    pub(super) present: Vec<Group>,
    /// Pods that are there and being deleted.
    pub(super) parting: Vec<Group>,
    /// Pods that the plan brings.
    pub(super) arriving: Vec<Group>,
}

/// Pods of one shape and identity on one spot.
#[derive(Clone, Copy)]
pub(super) struct Seat {
    pub(super) spot: usize,
    pub(super) shape: u32,
    pub(super) identity: u32,
    pub(super) count: usize,
    pub(super) stay: Stay,
}

/// Since when pods are where they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stay {
    Present,
    Parting,
    Arriving,
}

/// All spots, with their pods by identity.
pub(super) struct Ground<'w> {
    pub(super) world: &'w World,
    pub(super) spots: Vec<Spot<'w>>,
    seats: BTreeMap<u32, Vec<Seat>>,
    by_namespace: BTreeMap<&'w str, Vec<u32>>,
    by_label: BTreeMap<(&'w str, &'w str, &'w str), Vec<u32>>,
    /// The values that each spot may show, by key.
    domains: BTreeMap<String, Vec<Vec<String>>>,
}

impl<'w> Ground<'w> {
    pub(super) fn new(world: &'w World, plan: &'w Plan, loads: &Loads, kinds: &mut Kinds<'w>) -> Self {
        let mut brought: BTreeMap<&str, Vec<Group>> = BTreeMap::new();
        for (on, load) in plan.placed.keys().zip(&loads.placed) {
            brought.insert(on, load.clone());
        }
        let mut spots: Vec<Spot<'w>> = Vec::new();
        for node in world.nodes.values() {
            let claim = places::claim_of(world, node);
            // Its pods need places elsewhere, or end.
            if node.deleting || claim.is_some_and(|c| c.deleting) {
                continue;
            }
            let (present, parting) = there(world, &node.name);
            let mut arriving = brought.remove(node.name.as_str()).unwrap_or_default();
            arriving.extend(claim.and_then(|c| brought.remove(c.name.as_str())).unwrap_or_default());
            spots.push(Spot { name: &node.name, face: Face::Settled(places::stand(node, claim)), present, parting, arriving });
        }
        let joined = |claim: &NodeClaim| world.node_by_provider.contains_key(&claim.status.provider_id);
        for claim in world.claims.values().filter(|c| !c.deleting && !joined(c)) {
            let arriving = brought.remove(claim.name.as_str()).unwrap_or_default();
            let face = match claim.status.launched {
                Some(_) => Face::Settled(places::stand_of_claim(claim)),
                None => Face::Open(claim, kinds.outcomes(claim)),
            };
            spots.push(Spot { name: &claim.name, face, present: Vec::new(), parting: Vec::new(), arriving });
        }
        for (node, load) in plan.nodes.iter().zip(&loads.nodes) {
            let face = Face::Open(&node.claim, kinds.outcomes(&node.claim));
            spots.push(Spot { name: &node.claim.name, face, present: Vec::new(), parting: Vec::new(), arriving: load.clone() });
        }
        let mut ground = Self {
            world,
            spots,
            seats: BTreeMap::new(),
            by_namespace: BTreeMap::new(),
            by_label: BTreeMap::new(),
            domains: BTreeMap::new(),
        };
        ground.index();
        ground
    }

    fn index(&mut self) {
        let mut topology_keys: BTreeSet<&str> = BTreeSet::new();
        for (number, spot) in self.spots.iter().enumerate() {
            for (groups, stay) in [(&spot.present, Stay::Present), (&spot.parting, Stay::Parting), (&spot.arriving, Stay::Arriving)] {
                for group in groups {
                    let seat = Seat { spot: number, shape: group.shape, identity: group.identity, count: group.count, stay };
                    self.seats.entry(group.identity).or_default().push(seat);
                    let shape = self.world.shapes.value(group.shape);
                    topology_keys.extend(shape.spread.iter().map(|s| s.topology_key.as_str()));
                    topology_keys.extend(shape.pod_affinity.iter().chain(&shape.anti_affinity).map(|t| t.topology_key.as_str()));
                }
            }
        }
        for number in self.seats.keys().copied() {
            let identity = self.world.identities.value(number);
            self.by_namespace.entry(&identity.namespace).or_default().push(number);
            for (key, value) in &identity.labels {
                self.by_label.entry((&identity.namespace, key, value)).or_default().push(number);
            }
        }
        for key in topology_keys {
            let domains = self.spots.iter().map(|spot| spot.values(key)).collect();
            self.domains.insert(key.to_owned(), domains);
        }
    }

    /// The domains under `key` that a spot is in or may come to be in; one of its own for the host
    /// name, none where the label is missing.
    pub(super) fn domains(&self, spot: usize, key: &str) -> &[String] {
        self.domains.get(key).map_or(&[], |of_spot| &of_spot[spot])
    }

    /// Everyone there will be.
    pub(super) fn seats(&self) -> impl Iterator<Item = &Seat> {
        self.seats.values().flatten()
    }

    /// Where the pods of an identity are.
    pub(super) fn seats_of(&self, identity: u32) -> &[Seat] {
        self.seats.get(&identity).map_or(&[], Vec::as_slice)
    }

    /// The identities of a namespace that a selector selects, ascending.
    pub(super) fn selected(&self, namespace: &str, selector: &LabelSelector) -> Vec<u32> {
        let listed = selector.requirements.iter().find(|r| r.operator == SelectorOperator::In);
        let mut candidates: Vec<u32> = match listed {
            Some(r) => r.values.iter().filter_map(|v| self.by_label.get(&(namespace, &r.key, v))).flatten().copied().collect(),
            None => self.by_namespace.get(namespace).cloned().unwrap_or_default(),
        };
        candidates.sort_unstable();
        candidates.dedup();
        candidates.retain(|number| selector.matches(&self.world.identities.value(*number).labels));
        candidates
    }

    /// The identities that a term of pod affinity or anti-affinity means, ascending.
    pub(super) fn meant(&self, term: &PodAffinityTerm) -> Vec<u32> {
        let spaces = self.by_namespace.keys().filter(|namespace| tenants::reaches(self.world, term, namespace));
        let mut all: Vec<u32> = spaces.flat_map(|namespace| self.selected(namespace, &term.selector)).collect();
        all.sort_unstable();
        all
    }
}

impl<'w> Spot<'w> {
    fn values(&self, key: &str) -> Vec<String> {
        match &self.face {
            Face::Settled(stand) => {
                let own = (key == keys::HOSTNAME).then(|| self.name.to_owned());
                // A node without a usable value is in no domain.
                stand.labels.get(key).filter(|value| !value.is_empty()).cloned().or(own).into_iter().collect()
            }
            Face::Open(..) if key == keys::HOSTNAME => vec![self.name.to_owned()],
            Face::Open(_, outcomes) => {
                let all: BTreeSet<&str> = outcomes.iter().flat_map(|outcome| outcome.values(key)).collect();
                all.into_iter().map(str::to_owned).collect()
            }
        }
    }

    /// Whether a pod with this affinity accepts the place: whatever it becomes (`surely`), or
    /// something that it may become.
    pub(super) fn accepted_by(&self, affinity: &Affinity, surely: bool) -> bool {
        match &self.face {
            Face::Settled(stand) => places::accepts(affinity, stand.labels),
            Face::Open(_, outcomes) if surely => outcomes.iter().all(|o| o.welcomes(affinity)),
            Face::Open(_, outcomes) => outcomes.iter().any(|o| o.may_welcome(affinity)),
        }
    }

    /// The taints that stay.
    pub(super) fn taints(&self) -> Vec<&'w whittle_model::Taint> {
        match &self.face {
            Face::Settled(stand) => stand.taints.clone(),
            Face::Open(claim, _) => claim.taints.iter().collect(),
        }
    }
}

/// The pods that hold room on a node: those that stay, and those that end.
fn there(world: &World, node: &str) -> (Vec<Group>, Vec<Group>) {
    let of = |deleting: bool| {
        let records = world.pods_on(node).filter_map(|key| world.pods.get(key)).filter(|r| r.deleting == deleting);
        gather(records.map(|r| (r.shape, r.identity)).collect())
    };
    (of(false), of(true))
}
