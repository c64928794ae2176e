//! The documented greedy, written to be obviously right: the yardstick of speed and cost, and the
//! oracle the engine's own greedy is compared with.
//!
//! Biggest pod first; onto the open claim with the fewest pods that still has some fitting type; a
//! new claim only when none has; in the end the cheapest type that fits. Known: requests, node
//! selector and required node affinity (OR terms one after the other), taints, topology spread, pod
//! affinity and anti-affinity, preferences one after the other, DaemonSets type by type, pool order,
//! limits. Nodes that exist, minValues and volumes are not. What must not enter: classes, masks,
//! caches, anything clever.

mod company;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use whittle_model::resources::{CPU, MEMORY, NODES};
use whittle_model::taint::untolerated;
use whittle_model::{
    InstanceType, Labels, Micros, NodePool, OfferingKey, Operator, Pod, PodKey, Requirement, Requirements, Resources, Taint, keys,
};

use crate::Input;
use company::{Choice, Form, forms};

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
    /// Values of the keys under which pods look for company.
    known: BTreeMap<String, BTreeSet<String>>,
    /// Whether some pool has a taint that only asks pods to stay away.
    soft: bool,
}

#[derive(Debug)]
struct Pool<'a> {
    of: &'a NodePool,
    requirements: Requirements,
    types: Vec<Type<'a>>,
    /// Values that its nodes may have, by key.
    values: BTreeMap<String, BTreeSet<String>>,
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
#[derive(Clone)]
struct Grown {
    requirements: Requirements,
    requests: Resources,
    types: Vec<usize>,
    values: BTreeMap<String, BTreeSet<String>>,
}

struct Claim<'a> {
    pool: usize,
    requirements: Requirements,
    requests: Resources,
    /// Indices into the pool's types, those that still fit.
    types: Vec<usize>,
    /// Those that were for sale within the limits when it was opened.
    sold: Vec<usize>,
    /// Values that its node may have, by key.
    values: BTreeMap<String, BTreeSet<String>>,
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
        let mut known = BTreeMap::new();
        for key in company::keys_of(&queue) {
            let mut all = BTreeSet::new();
            for pool in &mut pools {
                let every: Vec<usize> = (0..pool.types.len()).collect();
                let values = pool.values(&every, &pool.requirements, &key);
                all.extend(values.iter().cloned());
                pool.values.insert(key.clone(), values);
            }
            known.insert(key, all);
        }
        let soft = input.pools.iter().any(|p| p.template.taints.iter().any(|t| !t.repels()));
        Self { pools, queue, known, soft }
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
        Self { of, requirements, types, values: BTreeMap::new() }
    }

    /// The values of a key that nodes of these types and requirements may have.
    fn values(&self, types: &[usize], requirements: &Requirements, key: &str) -> BTreeSet<String> {
        let wanted = requirements.get(key);
        let admitted = types.iter().map(|t| &self.types[*t]).filter(|t| t.admits(requirements));
        let offered = admitted.clone().flat_map(|t| &t.offerings).filter(|(o, _, _)| o.intersects(requirements)).map(|(o, _, _)| o);
        let mut found: BTreeSet<String> = match key {
            keys::ZONE | keys::ZONE_ID | keys::CAPACITY_TYPE => {
                offered.filter_map(|o| o.get(key)).flat_map(|r| r.values().iter().cloned()).collect()
            }
            _ if wanted.is_some_and(|r| r.operator() == Operator::In) => wanted.iter().flat_map(|r| r.values().iter().cloned()).collect(),
            _ if wanted.is_none() && !keys::well_known(key) => BTreeSet::new(),
            _ => {
                let listed = admitted.filter_map(|t| t.requirements.get(key)).filter(|r| r.operator() == Operator::In);
                listed.flat_map(|r| r.values().iter().cloned()).filter(|v| wanted.is_none_or(|r| r.allows(v))).collect()
            }
        };
        found.remove("");
        found
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

impl<'a> Solve<'_, 'a> {
    fn place(&mut self, pod: &'a Pod) -> bool {
        forms(pod, self.reference.soft).iter().any(|form| self.place_as(pod, form))
    }

    fn place_as(&mut self, pod: &'a Pod, form: &Form<'_>) -> bool {
        let compared = |key: &str| self.compared(pod, key);
        let Some(choices) = form.choices(pod, &self.claims, &self.reference.known, &compared) else { return false };
        let mut order: Vec<usize> = (0..self.claims.len()).collect();
        order.sort_by_key(|claim| (self.claims[*claim].pods.len(), *claim));
        for claim in order {
            if let Some(grown) = self.grow(&self.claims[claim], pod, form, &choices) {
                self.claims[claim].accept(pod, grown);
                return true;
            }
        }
        (0..self.reference.pools.len()).any(|pool| self.open(pool, pod, form, &choices))
    }

    /// The values of a key that nodes for this pod could have, its preferences aside.
    fn compared(&self, pod: &Pod, key: &str) -> BTreeSet<String> {
        let mut all = BTreeSet::new();
        for pool in self.reference.pools.iter().filter(|p| untolerated(&p.of.template.taints, &pod.tolerations).is_none()) {
            for wanted in alternatives(pod) {
                if wanted.is_empty() {
                    all.extend(pool.values[key].iter().cloned());
                } else if pool.requirements.compatible(&wanted, &keys::well_known).is_ok() {
                    let mut both = pool.requirements.clone();
                    both.add_all(&wanted);
                    let every: Vec<usize> = (0..pool.types.len()).collect();
                    all.extend(pool.values(&every, &both, key));
                }
            }
        }
        all
    }

    /// A claim with the pod on it, if that is allowed and some type still holds everything.
    fn grow(&self, claim: &Claim<'a>, pod: &Pod, form: &Form<'_>, choices: &[Choice]) -> Option<Grown> {
        let pool = &self.reference.pools[claim.pool];
        let repels = |t: &Taint| (t.repels() || !form.lenient) && !t.tolerated_by(&pod.tolerations);
        (!pool.of.template.taints.iter().any(repels)).then_some(())?;
        form.beside(pod, &claim.pods, &self.claims).then_some(())?;
        let sought = |choice: &Choice| !choice.follow || form.seeks_one_of(&claim.pods, &choice.key);
        choices.iter().all(sought).then_some(())?;
        claim.requirements.compatible(&form.wanted, &keys::well_known).ok()?;
        let mut requests = claim.requests.clone();
        requests.add(&pod.requests);
        let now = Grown { requirements: claim.requirements.clone(), requests, types: claim.types.clone(), values: claim.values.clone() };
        let grown = self.narrow(claim, &now, &form.wanted)?;
        self.settle(claim, grown, choices)
    }

    /// The same with more requirements.
    fn narrow(&self, claim: &Claim<'a>, grown: &Grown, wanted: &Requirements) -> Option<Grown> {
        let pool = &self.reference.pools[claim.pool];
        let mut next = grown.clone();
        next.requirements.add_all(wanted);
        // What demands nothing of the node changes nothing about which types are allowed.
        let fits = |t: &Type<'_>| next.requests.fit_in(&t.room) && (wanted.is_empty() || t.admits(&next.requirements));
        let types: Vec<usize> = next.types.iter().copied().filter(|t| fits(&pool.types[*t])).collect();
        next.types = types;
        if !wanted.is_empty() {
            for (key, values) in &mut next.values {
                *values = pool.values(&claim.sold, &next.requirements, key);
            }
        }
        (!next.types.is_empty()).then_some(next)
    }

    /// The same once each choice is made: the first value in order that will do.
    fn settle(&self, claim: &Claim<'a>, grown: Grown, choices: &[Choice]) -> Option<Grown> {
        let Some((choice, others)) = choices.split_first() else { return Some(grown) };
        let has = &grown.values[&choice.key];
        if has.is_empty() {
            return if choice.must { None } else { self.settle(claim, grown, others) };
        }
        if has.iter().all(|v| choice.values.contains(v)) && (!choice.single || has.len() == 1) {
            return self.settle(claim, grown, others);
        }
        let allowed: Vec<&str> = choice.values.iter().filter(|v| has.contains(*v)).map(String::as_str).collect();
        let pinned = |values: &[&str]| {
            let wanted = Requirements::from_iter([Requirement::any_of(&choice.key, values)]);
            self.settle(claim, self.narrow(claim, &grown, &wanted)?, others)
        };
        let open = claim.values[&choice.key].len() > 1;
        let able = |value: &&&str| !open || choice.bears(&claim.pods, value);
        if choice.single {
            allowed.iter().filter(able).find_map(|v| pinned(&[*v]))
        } else if allowed.is_empty() {
            None
        } else {
            pinned(&allowed)
        }
    }

    fn open(&mut self, pool: usize, pod: &'a Pod, form: &Form<'_>, choices: &[Choice]) -> bool {
        let of = &self.reference.pools[pool];
        let remaining = &self.remaining[pool];
        if remaining.get(NODES).is_some_and(|left| *left <= 0) {
            return false;
        }
        let within = |t: &Type<'_>| remaining.iter().all(|(name, left)| t.of.capacity.get(name) <= *left);
        let types: Vec<usize> = (0..of.types.len()).filter(|t| within(&of.types[*t])).collect();
        let whole = types.len() == of.types.len();
        let values = |key: &String| if whole { of.values[key].clone() } else { of.values(&types, &of.requirements, key) };
        let values = of.values.keys().map(|key| (key.clone(), values(key))).collect();
        let (requirements, requests) = (of.requirements.clone(), Resources::default());
        let mut claim = Claim { pool, requirements, requests, sold: types.clone(), types, values, pods: Vec::new() };
        let Some(grown) = self.grow(&claim, pod, form, choices) else { return false };
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
        self.values = grown.values;
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
