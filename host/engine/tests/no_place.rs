//! A pod that is said to fit nowhere really has no place: each is tried by brute force on every node
//! there is and on every offering of every pool, as the plan leaves the world.

mod common;

use common::random::Cluster;
use common::{NOW, objections};
use whittle_engine::{Engine, Plan};
use whittle_model::resources::NODES;
use whittle_model::{Affinity, InstanceType, Labels, ListPrice, Node, NodePool, Offering, OfferingKey, Pod, Resources, Taint, keys};

fn accepts(affinity: &Affinity, labels: &Labels) -> bool {
    affinity.node_selector.met_by(labels) && (affinity.node_terms.is_empty() || affinity.node_terms.iter().any(|t| t.met_by(labels)))
}

fn tolerates(pod: &Pod, taints: &[Taint]) -> bool {
    taints.iter().all(|t| !t.repels() || t.tolerated_by(&pod.tolerations))
}

fn exclude(a: &Pod, b: &Pod) -> bool {
    let selects =
        |a: &Pod, b: &Pod| a.anti_affinity.iter().any(|t| t.namespaces.contains(&b.key.namespace) && t.selector.matches(&b.labels));
    selects(a, b) || selects(b, a)
}

/// Whether one more pod has room on a node that exists.
fn on_node(engine: &Engine, plan: &Plan, node: &Node, pod: &Pod) -> bool {
    let world = engine.world();
    if node.cordoned || node.deleting || node.labels.contains_key(keys::NODE_POOL) {
        return false;
    }
    let placed = plan.placed.get(&node.name).into_iter().flatten();
    let there: Vec<Pod> = world.pods_on(&node.name).chain(placed).filter_map(|key| world.pod(key)).collect();
    let mut need = pod.requests.clone();
    for other in &there {
        need.add(&other.requests);
    }
    for set in world.daemon_sets() {
        let owned = |p: &Pod| p.owner.as_ref().is_some_and(|o| o.kind == "DaemonSet" && o.name == set.key.name);
        let runs = tolerates(&set.template, &node.taints) && accepts(&set.template.affinity, &node.labels);
        if runs && !there.iter().any(owned) {
            need.add(&set.template.requests);
        }
    }
    let room = pod.requests.iter().all(|(name, _)| need.get(name) <= node.allocatable.get(name));
    room && tolerates(pod, &node.taints) && accepts(&pod.affinity, &node.labels) && !there.iter().any(|p| exclude(p, pod))
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
    let tenancy = "karpenter.k8s.aws/instance-tenancy";
    let open = pool.template.requirements.get("team").filter(|_| !pool.template.labels.contains_key("team"));
    let teams: Vec<&str> = open.map_or(Vec::new(), |r| ["a", "b", "c", "0"].into_iter().filter(|v| r.allows(v)).collect());
    for (key, values) in [(tenancy, vec!["default", "dedicated"]), ("team", teams)] {
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

/// Whether a new node of this pool could hold the pod alone.
fn in_pool(engine: &Engine, cluster: &Cluster, plan: &Plan, pool: &NodePool, pod: &Pod) -> Option<String> {
    let class = cluster.classes.iter().find(|c| c.name == pool.template.node_class)?;
    if pool.deleting || pool.not_ready.is_some() || class.not_ready.is_some() || !tolerates(pod, &pool.template.taints) {
        return None;
    }
    let catalog = engine.world().catalog(&class.name)?;
    let left = |resource: &str, limit: i64| limit - owned(engine, plan, pool, resource);
    for kind in &catalog.types {
        let takes = |resource: &str| if resource == NODES { 1 } else { kind.capacity.get(resource) };
        if pool.limits.amounts.iter().any(|(resource, limit)| takes(resource) > left(resource, *limit)) {
            continue;
        }
        let all = kind.offerings.iter().filter(|o| o.available).flat_map(|o| faces(pool, kind, o).into_iter().map(move |f| (o, f)));
        let all: Vec<(&Offering, Labels)> = all.collect();
        let room = room(engine, pool, kind, &all);
        let sold = all.iter().find(|(offering, face)| {
            let key = OfferingKey { instance_type: kind.name.clone(), zone: offering.zone.clone(), capacity_type: offering.capacity_type };
            engine.world().sold_out_until(&key).is_none() && accepts(&pod.affinity, face)
        });
        if let Some((offering, _)) = sold.filter(|_| pod.requests.fit_in(&room)) {
            return Some(format!("{} {} {} of {}", offering.capacity_type, kind.name, offering.zone, pool.name));
        }
    }
    None
}

/// What daemons leave of a type: as documented, each counts that some node of the type would run.
fn room(engine: &Engine, pool: &NodePool, kind: &InstanceType, all: &[(&Offering, Labels)]) -> Resources {
    let mut room = kind.allocatable.clone();
    for set in engine.world().daemon_sets() {
        let runs = all.iter().any(|(_, face)| accepts(&set.template.affinity, face));
        if runs && tolerates(&set.template, &pool.template.taints) {
            room.subtract(&set.template.requests);
        }
    }
    room
}

/// What the pool owns and may come to own, each new claim counted as the largest it may become.
fn owned(engine: &Engine, plan: &Plan, pool: &NodePool, resource: &str) -> i64 {
    let catalog = engine.world().catalog(&pool.template.node_class).expect("every node class has a catalogue");
    let new = plan.nodes.iter().filter(|n| n.claim.node_pool == pool.name).map(|n| {
        let types = n.claim.requirements.get(keys::INSTANCE_TYPE).into_iter().flat_map(|r| r.values());
        let most = types.filter_map(|t| catalog.get(t)).map(|t| t.capacity.get(resource)).max();
        if resource == NODES { 1 } else { most.expect("a claim names types of its catalogue") }
    });
    let strays = engine.world().nodes().filter(|n| n.labels.get(keys::NODE_POOL) == Some(&pool.name));
    let strays = strays.map(|n| if resource == NODES { 1 } else { n.capacity.get(resource) });
    new.chain(strays).sum()
}

#[test]
fn what_fits_nowhere_fits_nowhere() {
    let (mut homeless, mut tried) = (0, 0);
    for seed in 5000..5600 {
        let cluster = Cluster::of(seed);
        let mut engine = common::told(&cluster.events());
        for event in cluster.wave(0) {
            engine.handle(&event, NOW);
        }
        let plan = engine.plan(NOW, &mut ListPrice);
        assert_eq!(objections(&engine, &plan), vec![], "seed {seed}");
        for unplaced in plan.unplaced.iter().filter(|u| u.reasons[0].place != "pod") {
            for key in &unplaced.pods {
                homeless += 1;
                let pod = engine.world().pod(key).unwrap();
                let node = engine.world().nodes().find(|n| on_node(&engine, &plan, n, &pod));
                assert_eq!(node.map(|n| &n.name), None, "seed {seed}: there is room for {key}");
                let offer = cluster.pools.iter().find_map(|pool| in_pool(&engine, &cluster, &plan, pool, &pod));
                assert_eq!(offer, None, "seed {seed}: this could be bought for {key}, {unplaced:?}");
            }
        }
        // The brute force itself is no coward: alone in the world, pods that got a node could have one.
        for node in plan.nodes.iter().filter(|n| n.pods.len() == 1) {
            let pod = engine.world().pod(&node.pods[0]).unwrap();
            let pool = cluster.pools.iter().find(|p| p.name == node.claim.node_pool).unwrap();
            let alone = NodePool { limits: whittle_model::Limits::default(), ..pool.clone() };
            assert!(in_pool(&engine, &cluster, &plan, &alone, &pod).is_some(), "seed {seed}: {}", node.choice);
            tried += 1;
        }
    }
    assert!(homeless > 500 && tried > 200, "{homeless} pods without a place, {tried} with one");
}
