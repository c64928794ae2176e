//! The documented greedy, written to be obviously right: the yardstick of speed and cost, and the
//! oracle the engine's own greedy is compared with.
//!
//! Biggest pod first; onto the open claim with the fewest pods that still has some fitting type; a
//! new claim only when none has; in the end the cheapest type that fits. Known: requests, node
//! selector and required node affinity (OR terms one after the other), taints, anti-affinity on the
//! host name, DaemonSets type by type, pool order, limits. Nodes that exist, minValues, topology and
//! volumes are not. What must not enter: classes, masks, caches, anything clever.

use std::collections::{BTreeMap, VecDeque};

use whittle_model::resources::{CPU, MEMORY, NODES};
use whittle_model::taint::untolerated;
use whittle_model::{InstanceType, Labels, Micros, NodePool, OfferingKey, Pod, PodKey, Requirement, Requirements, Resources, keys};

use crate::Input;

/// A node to buy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The pool that owns it.
    pub pool: String,
    /// The pods it is for, in the order they were placed.
    pub pods: Vec<PodKey>,
    /// The cheapest offering that holds them.
    pub offering: OfferingKey,
    /// Its price of an hour.
    pub price: Micros,
    /// How many instance types would hold them.
    pub types: usize,
}

/// What came of a solve.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcome {
    /// The nodes, in the order they were opened.
    pub nodes: Vec<Node>,
    /// The pods that fit nowhere, in queue order.
    pub unplaced: Vec<PodKey>,
}

impl Outcome {
    /// The price of an hour of all nodes.
    #[must_use]
    pub fn cost(&self) -> Micros {
        self.nodes.iter().map(|n| n.price).sum()
    }
}

/// The part that does not depend on placements: pools in order with the types they may buy, pods in
/// order. Made outside of what is timed, as Karpenter's own benchmark does.
#[derive(Debug)]
pub struct Reference<'a> {
    pools: Vec<Pool<'a>>,
    queue: Vec<&'a Pod>,
}

#[derive(Debug)]
struct Pool<'a> {
    of: &'a NodePool,
    requirements: Requirements,
    types: Vec<Type<'a>>,
}

#[derive(Debug)]
struct Type<'a> {
    of: &'a InstanceType,
    requirements: Requirements,
    /// One set for each available offering.
    offerings: Vec<(Requirements, OfferingKey, Micros)>,
    /// Allocatable less what the DaemonSets take.
    room: Resources,
}

impl Type<'_> {
    fn admits(&self, wanted: &Requirements) -> bool {
        self.requirements.intersects(wanted) && self.offerings.iter().any(|(o, _, _)| o.intersects(wanted))
    }
}

/// What a claim becomes when one more pod joins it.
struct Grown {
    requirements: Requirements,
    requests: Resources,
    types: Vec<usize>,
}

struct Claim<'a> {
    pool: usize,
    requirements: Requirements,
    requests: Resources,
    /// Indices into the pool's types, those that still fit.
    types: Vec<usize>,
    pods: Vec<&'a Pod>,
}

struct Solve<'r, 'a> {
    reference: &'r Reference<'a>,
    claims: Vec<Claim<'a>>,
    /// What is left of each pool's limits.
    remaining: Vec<BTreeMap<&'a str, i64>>,
}

impl<'a> Reference<'a> {
    /// Sorts pods and pools, and finds the types each pool may buy.
    #[must_use]
    pub fn new(input: &'a Input) -> Self {
        let mut queue: Vec<&Pod> = input.pods.iter().collect();
        queue.sort_by(|a, b| {
            let size = |p: &Pod, name| p.requests.get(name);
            (size(b, CPU).cmp(&size(a, CPU)))
                .then(size(b, MEMORY).cmp(&size(a, MEMORY)))
                .then(a.created.cmp(&b.created))
                .then(a.uid.cmp(&b.uid))
        });
        let mut pools: Vec<Pool<'_>> =
            input.pools.iter().filter(|p| !p.deleting && p.not_ready.is_none()).map(|p| Pool::new(p, input)).collect();
        pools.sort_by(|a, b| b.of.weight.cmp(&a.of.weight).then(b.of.name.cmp(&a.of.name)));
        Self { pools, queue }
    }

    /// The types the pool of this name may buy: room for pods, and the lowest price.
    #[must_use]
    pub fn market(&self, pool: &str) -> Vec<(&Resources, Micros)> {
        let of = self.pools.iter().find(|p| p.of.name == pool);
        let best = |t: &Type<'_>, p: &Pool<'_>| t.offerings.iter().filter(|(o, _, _)| o.intersects(&p.requirements)).map(|o| o.2).min();
        of.iter().flat_map(|p| p.types.iter().filter_map(|t| Some((&t.room, best(t, p)?)))).collect()
    }

    /// Places every pod, from a fresh state.
    #[must_use]
    pub fn solve(&self) -> Outcome {
        let limits = |p: &Pool<'a>| p.of.limits.amounts.iter().map(|(name, limit)| (name.as_str(), *limit)).collect();
        let mut solve = Solve { reference: self, claims: Vec::new(), remaining: self.pools.iter().map(limits).collect() };
        let mut queue: VecDeque<&'a Pod> = self.queue.iter().copied().collect();
        let mut length_at_failure: BTreeMap<&str, usize> = BTreeMap::new();
        while let Some(pod) = queue.pop_front() {
            if length_at_failure.get(pod.uid.as_str()) == Some(&(queue.len() + 1)) {
                queue.push_front(pod); // a whole round of the queue placed nothing
                break;
            }
            if !solve.place(pod) {
                queue.push_back(pod);
                length_at_failure.insert(&pod.uid, queue.len());
            }
        }
        Outcome { nodes: solve.nodes(), unplaced: queue.iter().map(|p| p.key.clone()).collect() }
    }
}

impl<'a> Pool<'a> {
    fn new(of: &'a NodePool, input: &'a Input) -> Self {
        let mut requirements = of.template.requirements.clone();
        requirements.add_all(&Requirements::of_labels(&of.template.labels));
        requirements.add(Requirement::any_of(keys::NODE_POOL, &[&of.name]));
        requirements.add(Requirement::any_of(keys::NODE_CLASS, &[&of.template.node_class]));
        let catalog = input.catalogs.iter().find(|c| c.node_class == of.template.node_class);
        let sold = catalog.iter().flat_map(|c| &c.types).map(|t| Type::new(t, of, &requirements, input));
        let types = sold.filter(|t| t.admits(&requirements) && t.room.iter().all(|(_, left)| left >= 0)).collect();
        Self { of, requirements, types }
    }
}

impl<'a> Type<'a> {
    fn new(of: &'a InstanceType, pool: &NodePool, pool_requirements: &Requirements, input: &Input) -> Self {
        let mut requirements = Requirements::of_labels(&of.labels);
        requirements.add_all(&of.requirements);
        let offerings = of.offerings.iter().filter(|o| o.available).map(|o| {
            let place = [(keys::ZONE, o.zone.as_str()), (keys::ZONE_ID, &o.zone_id), (keys::CAPACITY_TYPE, o.capacity_type.name())];
            let labels: Labels = place.iter().filter(|(_, v)| !v.is_empty()).map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            let key = OfferingKey { instance_type: of.name.clone(), zone: o.zone.clone(), capacity_type: o.capacity_type };
            (Requirements::of_labels(&labels), key, o.price)
        });
        let mut this = Self { of, requirements, offerings: offerings.collect(), room: of.allocatable.clone() };
        for daemon in input.daemon_sets.iter().map(|d| &d.template) {
            let tolerates = untolerated(&pool.template.taints, &daemon.tolerations).is_none();
            if tolerates && alternatives(daemon).iter().any(|wanted| this.runs(pool_requirements, wanted)) {
                this.room.subtract(&daemon.requests);
            }
        }
        this
    }

    /// Whether a daemon that wants this of its node would run on this type in such a pool.
    fn runs(&self, pool: &Requirements, wanted: &Requirements) -> bool {
        let mut both = pool.clone();
        both.add_all(wanted);
        pool.compatible(wanted, &keys::well_known).is_ok() && self.admits(&both)
    }
}

/// The demands on a node that a pod makes, one after the other until one can be met.
fn alternatives(pod: &Pod) -> Vec<Requirements> {
    let selector = &pod.affinity.node_selector;
    if pod.affinity.node_terms.is_empty() {
        return vec![selector.clone()];
    }
    let with = |term: &Requirements| {
        let mut both = selector.clone();
        both.add_all(term);
        both
    };
    pod.affinity.node_terms.iter().map(with).collect()
}

/// Whether `a` refuses to share a host with `b`.
fn avoids(a: &Pod, b: &Pod) -> bool {
    a.anti_affinity.iter().any(|term| term.namespaces.contains(&b.key.namespace) && term.selector.matches(&b.labels))
}

impl<'a> Solve<'_, 'a> {
    fn place(&mut self, pod: &'a Pod) -> bool {
        alternatives(pod).iter().any(|wanted| self.place_as(pod, wanted))
    }

    fn place_as(&mut self, pod: &'a Pod, wanted: &Requirements) -> bool {
        let mut order: Vec<usize> = (0..self.claims.len()).collect();
        order.sort_by_key(|claim| (self.claims[*claim].pods.len(), *claim));
        for claim in order {
            if let Some(grown) = self.grow(&self.claims[claim], pod, wanted) {
                self.claims[claim].accept(pod, grown);
                return true;
            }
        }
        (0..self.reference.pools.len()).any(|pool| self.open(pool, pod, wanted))
    }

    /// A claim with the pod on it, if that is allowed and some type still holds everything.
    fn grow(&self, claim: &Claim<'a>, pod: &Pod, wanted: &Requirements) -> Option<Grown> {
        let pool = &self.reference.pools[claim.pool];
        untolerated(&pool.of.template.taints, &pod.tolerations).is_none().then_some(())?;
        claim.pods.iter().all(|other| !avoids(pod, other) && !avoids(other, pod)).then_some(())?;
        claim.requirements.compatible(wanted, &keys::well_known).ok()?;
        let mut requirements = claim.requirements.clone();
        requirements.add_all(wanted);
        let mut requests = claim.requests.clone();
        requests.add(&pod.requests);
        // A pod that demands nothing of the node changes nothing about which types are allowed.
        let fits = |t: &Type<'_>| requests.fit_in(&t.room) && (wanted.is_empty() || t.admits(&requirements));
        let types: Vec<usize> = claim.types.iter().copied().filter(|t| fits(&pool.types[*t])).collect();
        (!types.is_empty()).then_some(Grown { requirements, requests, types })
    }

    fn open(&mut self, pool: usize, pod: &'a Pod, wanted: &Requirements) -> bool {
        let of = &self.reference.pools[pool];
        let remaining = &self.remaining[pool];
        if remaining.get(NODES).is_some_and(|left| *left <= 0) {
            return false;
        }
        let within = |t: &Type<'_>| remaining.iter().all(|(name, left)| t.of.capacity.get(name) <= *left);
        let types = (0..of.types.len()).filter(|t| within(&of.types[*t])).collect();
        let mut claim = Claim { pool, requirements: of.requirements.clone(), requests: Resources::default(), types, pods: Vec::new() };
        let Some(grown) = self.grow(&claim, pod, wanted) else { return false };
        claim.accept(pod, grown);
        for (name, left) in &mut self.remaining[pool] {
            let largest = claim.types.iter().map(|t| of.types[*t].of.capacity.get(name)).max();
            *left -= if *name == NODES { 1 } else { largest.unwrap_or(0) };
        }
        self.claims.push(claim);
        true
    }

    fn nodes(&self) -> Vec<Node> {
        self.claims.iter().map(|claim| claim.node(&self.reference.pools[claim.pool])).collect()
    }
}

impl<'a> Claim<'a> {
    fn accept(&mut self, pod: &'a Pod, grown: Grown) {
        self.requirements = grown.requirements;
        self.requests = grown.requests;
        self.types = grown.types;
        self.pods.push(pod);
    }

    fn node(&self, pool: &Pool<'a>) -> Node {
        let offers = self.types.iter().flat_map(|t| &pool.types[*t].offerings);
        let allowed = offers.filter(|(o, _, _)| o.intersects(&self.requirements));
        let cheapest = allowed.min_by_key(|(_, key, price)| (*price, key.capacity_type, key));
        let (_, offering, price) = cheapest.expect("a type stays on a claim only while an offering of it is allowed");
        let pods = self.pods.iter().map(|p| p.key.clone()).collect();
        Node { pool: pool.of.name.clone(), pods, offering: offering.clone(), price: *price, types: self.types.len() }
    }
}
