//! A pod that is said to fit nowhere really has no place: each is tried by brute force on every node
//! there is, on every claim and on every offering of every pool, in the cluster as the plan leaves it.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::asks::{self, Ask};
use common::filters::{Bed, accepts, tolerates};
use common::leave::{self, face, outcomes};
use common::random::Cluster;
use common::{NOW, objections};
use whittle_engine::{Engine, Plan};
use whittle_model::resources::NODES;
use whittle_model::{InstanceType, Labels, ListPrice, Node, NodeClaim, NodePool, Offering, OfferingKey, Pod, PodKey, Resources, keys};

/// How often the claims of a plan become something else before a place is believed in: once for
/// each zone and capacity type.
const RESOLUTIONS: usize = 9;
const TENANCY: &str = "karpenter.k8s.aws/instance-tenancy";

/// A world, a plan for it, and where things stand once it is carried out.
struct Scene<'t> {
    engine: &'t Engine,
    cluster: &'t Cluster,
    plan: &'t Plan,
    /// One for each resolution of what claims become; their pods are bound.
    beds: Vec<Bed>,
}

impl<'t> Scene<'t> {
    fn new(engine: &'t Engine, cluster: &'t Cluster, plan: &'t Plan, seed: u64) -> Self {
        let beds = (0..RESOLUTIONS).map(|number| {
            let mut bed = leave::bed(engine, cluster, plan, &mut leave::Pick::Turn(number));
            let (placements, mut early) = (leave::placements(engine, plan), bed.clone());
            let (mut left, _) = leave::bind_all(&mut bed, &placements);
            if !left.is_empty() {
                // What has room on nodes in use is bound before others come.
                let rest = leave::bind_early(engine, &mut early, placements);
                bed = early;
                left = leave::bind_all(&mut bed, &rest).0;
            }
            assert!(left.is_empty(), "seed {seed}: {left:#?}");
            for pod in leave::parting(engine, &bed) {
                bed.pods.insert(pod.key.clone(), pod);
            }
            bed
        });
        Self { engine, cluster, plan, beds: beds.collect() }
    }

    /// Whether the pod is let onto `node` however claims turn out.
    fn lets_in(&self, pod: &Pod, node: &Node, ports: &[Pod], domains: &BTreeMap<String, BTreeSet<String>>) -> bool {
        self.beds.iter().all(|bed| {
            let mut bed = bed.clone();
            bed.domains = Some(domains.clone());
            bed.nodes.insert(node.name.clone(), node.clone());
            bed.ghosts.retain(|ghost| ports.is_empty() || ghost.node.as_ref() != Some(&node.name));
            bed.ghosts.extend(ports.iter().map(|daemon| Pod { node: Some(node.name.clone()), ..daemon.clone() }));
            bed.refusal(pod, node).is_none()
        })
    }

    /// A place for the pod, in words.
    fn place(&self, pod: &Pod) -> Option<String> {
        let domains = self.domains(pod);
        let node =
            self.engine.world().nodes().find(|node| self.usable(node) && self.lets_in(pod, &self.beds[0].nodes[&node.name], &[], &domains));
        if let Some(node) = node {
            return Some(format!("node {}", node.name));
        }
        let world = self.engine.world();
        let joined = |claim: &NodeClaim| world.nodes().any(|n| !n.provider_id.is_empty() && n.provider_id == claim.status.provider_id);
        let flying = world.claims().filter(|c| !joined(c)).map(|claim| (claim, false));
        let mut claims = flying.chain(self.plan.nodes.iter().map(|n| (&n.claim, true)));
        if let Some((claim, _)) = claims.find(|(claim, new)| self.on_claim(pod, claim, *new, &domains)) {
            return Some(format!("claim {}", claim.name));
        }
        self.cluster.pools.iter().find_map(|pool| self.in_pool(pod, pool, &domains))
    }

    fn usable(&self, node: &Node) -> bool {
        let known = self.engine.world().claims().any(|c| !node.provider_id.is_empty() && c.status.provider_id == node.provider_id);
        !node.cordoned && !node.deleting && (known || !node.labels.contains_key(keys::NODE_POOL))
    }

    /// Whether every node that a claim may become lets the pod in. Of a `new` one, as documented, the daemons count that
    /// some node of the type and pool would run, be it in another zone; of one in flight those of what it may become.
    fn on_claim(&self, pod: &Pod, claim: &NodeClaim, new: bool, domains: &BTreeMap<String, BTreeSet<String>>) -> bool {
        let Some(catalog) = self.engine.world().catalog(&claim.node_class) else { return false };
        if claim.status.launched.is_some() {
            return self.lets_in(pod, &self.beds[0].nodes[&claim.name], &[], domains);
        }
        let all: Vec<(&InstanceType, Labels)> = outcomes(self.engine, claim, catalog)
            .into_iter()
            .flat_map(|(kind, offering)| tenancies(claim, kind, &face(claim, kind, offering)).into_iter().map(move |labels| (kind, labels)))
            .collect();
        let pool = self.cluster.pools.iter().find(|pool| pool.name == claim.node_pool).expect("claims are of pools that are there");
        let stock = if new { self.stock(pool) } else { Vec::new() };
        let faces_of = |kind: &InstanceType| -> Vec<Labels> {
            let own = all.iter().filter(|(k, _)| k.name == kind.name).map(|(_, labels)| labels.clone());
            own.chain(stock.iter().filter(|(k, _, _)| k.name == kind.name).map(|(_, _, labels)| labels.clone())).collect()
        };
        !all.is_empty()
            && all.iter().all(|(kind, labels)| {
                let (node, daemons) = self.new_node(&claim.name, kind, &faces_of(kind), labels.clone(), claim);
                self.lets_in(pod, &node, &daemons, domains)
            })
    }

    /// A node of some type, with what its daemons leave of it, and the ports that they have: as
    /// documented, each counts that some node of the type would run.
    fn new_node(&self, name: &str, kind: &InstanceType, faces: &[Labels], labels: Labels, claim: &NodeClaim) -> (Node, Vec<Pod>) {
        let mut node = Node { name: name.to_owned(), labels, taints: claim.taints.clone(), ready: true, ..Node::default() };
        node.labels.insert(keys::HOSTNAME.to_owned(), name.to_owned());
        node.allocatable = kind.allocatable.clone();
        leave::overlay(self.cluster, &mut node);
        let mut daemons = Vec::new();
        for set in self.engine.world().daemon_sets() {
            let runs = tolerates(&set.template, &claim.taints) && faces.iter().any(|labels| accepts(&set.template.affinity, labels));
            if runs {
                node.allocatable.subtract(&set.template.requests);
                let key = PodKey::new(&set.key.namespace, &format!("{}-{name}", set.key.name));
                daemons.push(Pod { key, requests: Resources::default(), ..set.template.clone() });
            }
        }
        (node, daemons)
    }

    /// Whether nothing may be bought from a pool.
    fn closed(&self, pool: &NodePool) -> bool {
        let class = self.cluster.classes.iter().find(|c| c.name == pool.template.node_class);
        pool.deleting || pool.not_ready.is_some() || pool.replicas.is_some() || class.is_none_or(|c| c.not_ready.is_some())
    }

    /// Every type, offering and set of labels of the nodes that could be bought from a pool today.
    fn stock(&self, pool: &NodePool) -> Vec<(&InstanceType, &Offering, Labels)> {
        let world = self.engine.world();
        let Some(catalog) = world.catalog(&pool.template.node_class).filter(|_| !self.closed(pool)) else { return Vec::new() };
        let mut stock = Vec::new();
        for kind in &catalog.types {
            for offering in kind.offerings.iter().filter(|o| o.available) {
                let key =
                    OfferingKey { instance_type: kind.name.clone(), zone: offering.zone.clone(), capacity_type: offering.capacity_type };
                if world.sold_out_until(&key).is_none_or(|until| until <= NOW) {
                    stock.extend(faces(pool, kind, offering).into_iter().map(|labels| (kind, offering, labels)));
                }
            }
        }
        stock
    }

    /// The values under which nodes could be bought for the pod, by the keys it spreads over.
    fn domains(&self, pod: &Pod) -> BTreeMap<String, BTreeSet<String>> {
        let mut domains: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        if pod.spread.is_empty() {
            return domains;
        }
        for pool in self.cluster.pools.iter().filter(|pool| tolerates(pod, &pool.template.taints)) {
            for (_, _, labels) in self.stock(pool).iter().filter(|(_, _, labels)| accepts(&pod.affinity, labels)) {
                for key in pod.spread.iter().map(|c| &c.topology_key).filter(|key| *key != keys::HOSTNAME) {
                    domains.entry(key.clone()).or_default().extend(labels.get(key).cloned());
                }
            }
        }
        domains
    }

    /// What could be bought from a pool for the pod alone.
    fn in_pool(&self, pod: &Pod, pool: &NodePool, domains: &BTreeMap<String, BTreeSet<String>>) -> Option<String> {
        let flexible = pool.template.requirements.iter().any(|r| r.min_values().is_some());
        // Where a reservation could serve, pods wait for it rather than for what else is sold.
        let reserved = self.stock(pool).iter().any(|(_, offering, _)| offering.reservation.is_some());
        if flexible || reserved || !tolerates(pod, &pool.template.taints) {
            return None;
        }
        let left = |resource: &str, limit: i64| limit - owned(self.engine, self.plan, pool, resource);
        let claim = NodeClaim { taints: pool.template.taints.clone(), ..NodeClaim::default() };
        let stock = self.stock(pool);
        let found = stock.iter().find(|(kind, _, labels)| {
            let takes = |resource: &str| if resource == NODES { 1 } else { kind.capacity.get(resource) };
            if pool.limits.amounts.iter().any(|(resource, limit)| takes(resource) > left(resource, *limit)) {
                return false;
            }
            let of_kind: Vec<Labels> = stock.iter().filter(|(k, _, _)| k.name == kind.name).map(|(_, _, labels)| labels.clone()).collect();
            let (node, daemons) = self.new_node("brand-new", kind, &of_kind, labels.clone(), &claim);
            self.lets_in(pod, &node, &daemons, domains)
        });
        found.map(|(kind, offering, _)| format!("{} {} {} of {}", offering.capacity_type, kind.name, offering.zone, pool.name))
    }
}

/// Every set of labels that a node of this pool, type and offering may have.
fn faces(pool: &NodePool, kind: &InstanceType, offering: &Offering) -> Vec<Labels> {
    let mut base = kind.labels.clone();
    base.extend(pool.template.labels.clone());
    for (key, value) in [
        (keys::NODE_POOL, pool.name.as_str()),
        (keys::NODE_CLASS, &pool.template.node_class),
        (keys::ZONE, &offering.zone),
        (keys::ZONE_ID, &offering.zone_id),
        (keys::CAPACITY_TYPE, offering.capacity_type.name()),
    ] {
        base.insert(key.to_owned(), value.to_owned());
    }
    let mut faces = vec![base];
    let open = pool.template.requirements.get("team").filter(|_| !pool.template.labels.contains_key("team"));
    let teams: Vec<&str> = open.map_or(Vec::new(), |r| ["a", "b", "c", "0"].into_iter().filter(|v| r.allows(v)).collect());
    for (key, values) in [(TENANCY, vec!["default", "dedicated"]), ("team", teams)] {
        if !values.is_empty() {
            let with = |face: &Labels, value: &str| {
                let mut face = face.clone();
                face.insert(key.to_owned(), value.to_owned());
                face
            };
            faces = faces.iter().flat_map(|face| values.iter().map(move |v| with(face, v))).collect();
        }
    }
    let admitted = |face: &Labels| pool.template.requirements.met_by(face);
    faces.into_iter().filter(admitted).collect()
}

/// The labels that a claim's node may have, for each tenancy that is open.
fn tenancies(claim: &NodeClaim, kind: &InstanceType, labels: &Labels) -> Vec<Labels> {
    let may =
        kind.requirements.get(TENANCY).map(|may| claim.requirements.get(TENANCY).map_or_else(|| may.clone(), |asked| may.intersect(asked)));
    let values: Vec<String> = may.iter().flat_map(|may| may.values().iter().cloned()).collect();
    if values.is_empty() {
        return vec![labels.clone()];
    }
    let with = |value: String| {
        let mut labels = labels.clone();
        labels.insert(TENANCY.to_owned(), value);
        labels
    };
    values.into_iter().map(with).collect()
}

/// What the pool owns and may come to own, each new claim counted as the largest it may become.
fn owned(engine: &Engine, plan: &Plan, pool: &NodePool, resource: &str) -> i64 {
    let catalog = engine.world().catalog(&pool.template.node_class).expect("every node class has a catalogue");
    let most = |claim: &NodeClaim| {
        let types = claim.requirements.get(keys::INSTANCE_TYPE).into_iter().flat_map(|r| r.values());
        let most = types.filter_map(|t| catalog.get(t)).map(|t| t.capacity.get(resource)).max();
        if resource == NODES { 1 } else { most.expect("a claim names types of its catalogue") }
    };
    let claims = engine.world().claims().chain(plan.nodes.iter().map(|n| &n.claim)).filter(|c| c.node_pool == pool.name).map(most);
    let strays = engine.world().nodes().filter(|n| n.labels.get(keys::NODE_POOL) == Some(&pool.name));
    let strays = strays.map(|n| if resource == NODES { 1 } else { n.capacity.get(resource) });
    claims.chain(strays).sum()
}

/// Whether a pod may be refused for a reason of its own.
fn hopeless(scene: &Scene<'_>, pod: &Pod) -> bool {
    let unheeded = asks::asks_of(pod).iter().any(|ask| !asks::HEEDED.contains(ask));
    !pod.unsupported.is_empty() || pod.resource_claims || unheeded || !scene.beds[0].storage_works(pod)
}

/// What was tried.
#[derive(Debug, Default)]
struct Tally {
    homeless: usize,
    refused: usize,
    housed: usize,
    asks: BTreeMap<Ask, usize>,
}

fn brute_force(cluster: &Cluster, seed: u64, tally: &mut Tally) {
    let mut engine = common::told(&cluster.events());
    for event in cluster.wave(0) {
        engine.handle(&event, NOW);
    }
    if seed % 2 == 1 {
        // Claims are in flight when the second wave comes.
        leave::buy(&mut engine);
        cluster.wave(1).iter().for_each(|event| engine.handle(event, NOW));
    }
    let plan = engine.plan(NOW, &mut ListPrice);
    assert_eq!(objections(&engine, &plan), vec![], "seed {seed}");
    let scene = Scene::new(&engine, cluster, &plan, seed);
    for unplaced in &plan.unplaced {
        let own = unplaced.reasons[0].place == "pod";
        for key in unplaced.pods.iter().take(if own { usize::MAX } else { 2 }) {
            let pod = Pod { node: None, nominated: None, ..engine.world().pod(key).expect("plans name pods that are there") };
            if own {
                tally.refused += 1;
                assert!(hopeless(&scene, &pod), "seed {seed}: {key} is refused for no reason: {unplaced:?}");
                continue;
            }
            tally.homeless += 1;
            asks::count(&mut tally.asks, std::iter::once(&pod));
            assert_eq!(scene.place(&pod), None, "seed {seed}: {key} could be there, {unplaced:?}");
        }
    }
    // The brute force itself is no coward: alone in the world, pods that got a node could have one.
    let free = NodePool { limits: whittle_model::Limits::default(), ..NodePool::default() };
    for node in plan.nodes.iter().filter(|n| n.pods.len() == 1) {
        let pod = Pod { node: None, nominated: None, ..engine.world().pod(&node.pods[0]).expect("plans name pods that are there") };
        let pool = cluster.pools.iter().find(|p| p.name == node.claim.node_pool).expect("plans buy from pools that are there");
        let alone = NodePool { limits: free.limits.clone(), ..pool.clone() };
        let reserved = scene.stock(pool).iter().any(|(_, offering, _)| offering.reservation.is_some());
        let company = reserved || !asks::asks_of(&pod).is_empty() || !pod.anti_affinity.is_empty();
        if !company && pool.template.requirements.iter().all(|r| r.min_values().is_none()) {
            assert!(scene.in_pool(&pod, &alone, &scene.domains(&pod)).is_some(), "seed {seed}: {}", node.choice);
            tally.housed += 1;
        }
    }
}

#[test]
fn what_fits_nowhere_fits_nowhere() {
    let mut tally = Tally::default();
    for seed in 5000..5300 {
        brute_force(&Cluster::of(seed), seed, &mut tally);
    }
    assert!(tally.homeless > 150 && tally.housed > 80, "{tally:?}");
}

#[test]
fn what_fits_nowhere_by_its_constraints_fits_nowhere() {
    let (mut tally, mut broken) = (Tally::default(), Vec::new());
    for seed in 6000..6300 {
        let one = std::panic::catch_unwind(|| {
            let mut tally = Tally::default();
            brute_force(&Cluster::full(seed), seed, &mut tally);
            tally
        });
        match one {
            Err(_) => broken.push(seed),
            Ok(one) => {
                tally.homeless += one.homeless;
                tally.refused += one.refused;
                one.asks.into_iter().for_each(|(ask, count)| *tally.asks.entry(ask).or_default() += count);
            }
        }
    }
    assert_eq!(broken, Vec::<u64>::new(), "these clusters break, as told above");
    asks::all_tried(&tally.asks, 5);
    assert!(tally.homeless > 50 && tally.refused > 50, "{tally:?}");
}
