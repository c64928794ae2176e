//! The cluster as a plan leaves it: each claim become one of the nodes that it may become.

use std::collections::BTreeMap;

use whittle_engine::{Engine, Plan};
use whittle_model::{
    Action, Catalog, DaemonSet, Event, InstanceType, Labels, ListPrice, Node, NodeClaim, NodeOverlay, Offering, OfferingKey, Operator,
    Owner, Pod, PodKey, keys,
};

use super::NOW;
use super::filters::{Bed, accepts, tolerates};
use super::random::{Cluster, Dice};

/// Which of the nodes that a claim may become it becomes.
#[derive(Debug, Clone)]
pub enum Pick {
    /// Any.
    Chance(Dice),
    /// The claims take their zones and capacity types in turn.
    Turn(usize),
}

/// The cluster of `engine` once `plan` is carried out, without the pods that the plan is for: nodes
/// that go are gone, pods that end have ended, and every daemon runs.
pub fn bed(engine: &Engine, cluster: &Cluster, plan: &Plan, pick: &mut Pick) -> Bed {
    let mut bed = Bed::default();
    cluster.others.iter().for_each(|event| bed.note(event));
    let world = engine.world();
    for node in world.nodes() {
        let claim = world.claims().find(|c| !node.provider_id.is_empty() && c.status.provider_id == node.provider_id);
        if !node.deleting && claim.is_none_or(|c| !c.deleting) {
            bed.nodes.insert(node.name.clone(), settled(node, claim));
        }
    }
    let joined = |claim: &NodeClaim| world.nodes().any(|n| !n.provider_id.is_empty() && n.provider_id == claim.status.provider_id);
    for claim in world.claims().filter(|c| !c.deleting && !joined(c)).chain(plan.nodes.iter().map(|n| &n.claim)) {
        let catalog = world.catalog(&claim.node_class).expect("claims are of classes with a catalogue");
        let mut node = become_node(engine, claim, catalog, pick);
        overlay(cluster, &mut node);
        bed.nodes.insert(claim.name.clone(), node);
    }
    let names: Vec<String> = bed.nodes.keys().cloned().collect();
    for name in names {
        for pod in world.pods_on(&name).filter_map(|key| world.pod(key)).filter(|pod| !pod.deleting) {
            bed.bind(&pod, &name);
        }
        for set in world.daemon_sets() {
            let missing = missing_daemon(&bed, set, &name).map(|pod| Pod { node: Some(name.clone()), ..pod });
            bed.ghosts.extend(missing);
        }
    }
    bed
}

/// A node once it is in use.
fn settled(node: &Node, claim: Option<&NodeClaim>) -> Node {
    let mut node = node.clone();
    node.ready = true;
    node.labels.entry(keys::HOSTNAME.to_owned()).or_insert_with(|| node.name.clone());
    if let Some(claim) = claim {
        if claim.status.registered.is_none() {
            node.taints.clone_from(&claim.taints);
            node.labels.extend(claim.labels.clone());
        }
        if claim.status.initialized.is_none() {
            node.taints.retain(|t| !keys::ephemeral_taint(&t.key) && !claim.startup_taints.contains(t));
            node.allocatable = claim.status.allocatable.clone();
        }
    }
    node
}

/// Everything that may be bought for a claim.
pub fn outcomes<'c>(engine: &Engine, claim: &NodeClaim, catalog: &'c Catalog) -> Vec<(&'c InstanceType, &'c Offering)> {
    let allows = |key: &str, value: &str| claim.requirements.get(key).is_none_or(|r| r.allows(value));
    let mut all = Vec::new();
    for kind in catalog.types.iter().filter(|t| allows(keys::INSTANCE_TYPE, &t.name)) {
        for offering in kind.offerings.iter().filter(|o| o.available) {
            let key = OfferingKey { instance_type: kind.name.clone(), zone: offering.zone.clone(), capacity_type: offering.capacity_type };
            let face = face(claim, kind, offering);
            let fits = claim.requirements.iter().all(|r| face.get(r.key()).map_or_else(|| r.admits_absence(), |v| r.allows(v)));
            if fits && engine.world().sold_out_until(&key).is_none_or(|until| until <= NOW) {
                all.push((kind, offering));
            }
        }
    }
    all
}

/// The labels of the node that a claim becomes when this is bought.
pub fn face(claim: &NodeClaim, kind: &InstanceType, offering: &Offering) -> Labels {
    let mut labels = kind.labels.clone();
    for may in kind.requirements.iter().filter(|r| r.operator() != Operator::DoesNotExist) {
        let asked = claim.requirements.get(may.key()).map_or_else(|| may.clone(), |asked| may.intersect(asked));
        if let Some(value) = asked.values().first() {
            labels.insert(may.key().to_owned(), value.clone());
        }
    }
    labels.extend(claim.labels.clone());
    for (key, value) in [
        (keys::ZONE, offering.zone.as_str()),
        (keys::ZONE_ID, &offering.zone_id),
        (keys::CAPACITY_TYPE, offering.capacity_type.name()),
        (keys::INSTANCE_TYPE, &kind.name),
        (keys::HOSTNAME, &claim.name),
    ] {
        labels.insert(key.to_owned(), value.to_owned());
    }
    if let Some(reservation) = &offering.reservation {
        labels.insert("karpenter.k8s.aws/capacity-reservation-id".to_owned(), reservation.id.clone());
    }
    labels
}

/// One of the nodes that a claim may become.
fn become_node(engine: &Engine, claim: &NodeClaim, catalog: &Catalog, pick: &mut Pick) -> Node {
    let mut node = Node { name: claim.name.clone(), taints: claim.taints.clone(), ready: true, ..Node::default() };
    if claim.status.launched.is_some() {
        node.labels = claim.labels.clone();
        node.labels.insert(keys::HOSTNAME.to_owned(), claim.name.clone());
        node.allocatable = claim.status.allocatable.clone();
        return node;
    }
    let all = outcomes(engine, claim, catalog);
    // What was for sale may be sold out by now; then nothing is known of what it will be.
    if all.is_empty() {
        return node;
    }
    let (kind, offering) = match pick {
        Pick::Chance(dice) => all[dice.below(all.len())],
        Pick::Turn(number) => {
            let mut ways: Vec<(&str, whittle_model::CapacityType)> = all.iter().map(|(_, o)| (o.zone.as_str(), o.capacity_type)).collect();
            ways.sort_unstable();
            ways.dedup();
            let way = ways[*number % ways.len()];
            *all.iter().find(|(_, o)| (o.zone.as_str(), o.capacity_type) == way).expect("the way is of one of them")
        }
    };
    node.labels = face(claim, kind, offering);
    node.allocatable = kind.allocatable.clone();
    node
}

/// What overlays add to a node that is not bought yet, by a naive reading: those that match its type and pool
/// have their say wherever its zone and capacity type may be, the highest weight first.
pub fn overlay(cluster: &Cluster, node: &mut Node) {
    if !cluster.settings.features.node_overlay {
        return;
    }
    let is = |event: &Event| if let Event::NodeOverlay(overlay) = event { Some((**overlay).clone()) } else { None };
    let mut overlays: Vec<NodeOverlay> = cluster.others.iter().filter_map(is).collect();
    overlays.sort_by_key(|overlay| overlay.weight);
    let placed = [keys::ZONE, keys::ZONE_ID, keys::CAPACITY_TYPE, "karpenter.k8s.aws/instance-tenancy"];
    for overlay in overlays {
        let free = |key: &str| placed.contains(&key);
        let meets = |r: &whittle_model::Requirement| node.labels.get(r.key()).map_or_else(|| r.admits_absence(), |v| r.allows(v));
        if overlay.requirements.iter().all(|r| free(r.key()) || meets(r)) {
            for (name, amount) in overlay.capacity.iter() {
                node.allocatable.set(name, amount);
            }
        }
    }
}

/// The pod that a DaemonSet will have on a node and has not.
fn missing_daemon(bed: &Bed, set: &DaemonSet, name: &str) -> Option<Pod> {
    let (node, pod) = (&bed.nodes[name], &set.template);
    let owner = Some(Owner { kind: "DaemonSet".to_owned(), name: set.key.name.clone() });
    let there = bed.pods.values().any(|p| p.node.as_deref() == Some(name) && p.owner == owner && p.key.namespace == set.key.namespace);
    let runs = tolerates(pod, &node.taints) && accepts(&pod.affinity, &node.labels);
    (runs && !there).then(|| Pod { key: PodKey::new(&set.key.namespace, &format!("{}-{name}", set.key.name)), owner, ..pod.clone() })
}

/// Has the engine order what it planned, and shows it the claims.
pub fn buy(engine: &mut Engine) -> Vec<NodeClaim> {
    let actions = engine.poll(NOW.plus(super::seconds(10)), &mut ListPrice);
    let claim = |action| if let Action::CreateClaim(claim) = action { Some(*claim) } else { None };
    let created: Vec<NodeClaim> = actions.into_iter().filter_map(claim).collect();
    for claim in &created {
        engine.handle(&Event::Claim(Box::new(claim.clone())), NOW);
    }
    for report in engine.take_reports() {
        assert_eq!(report.objections, Vec::<String>::new());
    }
    created
}

/// Pods that are being deleted, on the nodes that stay.
pub fn parting(engine: &Engine, bed: &Bed) -> Vec<Pod> {
    let there = bed.nodes.keys().flat_map(|name| engine.world().pods_on(name));
    there.filter_map(|key| engine.world().pod(key)).filter(|pod| pod.deleting).collect()
}

/// Where the plan has its pods.
pub fn placements(engine: &Engine, plan: &Plan) -> Vec<(Pod, String)> {
    let bought = plan.nodes.iter().map(|node| (&node.claim.name, &node.pods));
    let all = plan.placed.iter().chain(bought).flat_map(|(on, pods)| pods.iter().map(move |key| (key, on)));
    let whole = |(key, on): (&PodKey, &String)| {
        let pod = engine.world().pod(key).expect("plans name pods that are there");
        (Pod { node: None, nominated: None, ..pod }, on.clone())
    };
    all.map(whole).collect()
}

/// Pods that could not be bound, with the reasons, and those that were, in order, with their nodes.
pub type Bound = (BTreeMap<PodKey, String>, Vec<(Pod, String)>);

/// Orders of binding that are tried before it is believed that there is none.
const ORDERS: u64 = 12;

/// Binds all that may be bound in some order; returns the rest with the reasons, and the order. Pods that
/// nothing keeps from binding first can be in the way of those that spread: when the order of the
/// plan does not do, those that spread go first wherever they can, and others in any order. They can be in
/// the way of those that seek their own kind, too: the first of a kind is let in alone, later ones are not.
pub fn bind_all(bed: &mut Bed, waiting: &[(Pod, String)]) -> Bound {
    let mut fewest: Option<(Bed, Bound)> = None;
    for number in 0..ORDERS {
        let (mut tried, mut queue) = (bed.clone(), waiting.to_vec());
        let even = [keys::ZONE, "team", keys::CAPACITY_TYPE, keys::ARCH];
        let rank = |pod: &Pod| (number % 3 > 0 || pod.pod_affinity.is_empty(), !spreads(pod));
        let even = (number > 0).then(|| even[usize::try_from(number).expect("few") % even.len()]);
        if number > 0 {
            Dice(number).shuffle(&mut queue);
            queue.sort_by_key(|(pod, _)| rank(pod));
        }
        let bound = bind_in_order(&mut tried, queue, even.map(|key| (key, &rank as &Rank<'_>)));
        if fewest.as_ref().is_none_or(|(_, known)| bound.0.len() < known.0.len()) {
            fewest = Some((tried, bound));
        }
        if fewest.as_ref().is_some_and(|(_, bound)| bound.0.is_empty()) {
            break;
        }
    }
    let (tried, bound) = fewest.expect("some order is tried");
    *bed = tried;
    bound
}

/// Binds those that go to nodes that exist while there are no others, in the order of the plan; returns those that wait.
pub fn bind_early(engine: &Engine, bed: &mut Bed, waiting: Vec<(Pod, String)>) -> Vec<(Pod, String)> {
    let exists = |name: &String| engine.world().node(name).is_some();
    let (all, (now, mut later)) = (bed.nodes.clone(), waiting.into_iter().partition::<Vec<_>, _>(|(_, on)| exists(on)));
    bed.nodes.retain(|name, _| exists(name));
    let (_, bound) = bind_in_order(bed, now.clone(), None);
    bed.nodes = all;
    later.extend(now.into_iter().filter(|(pod, _)| bound.iter().all(|(other, _)| other.key != pod.key)));
    later
}

fn spreads(pod: &Pod) -> bool {
    pod.spread.iter().any(|c| c.required)
}

/// Which pods go first.
type Rank<'r> = dyn Fn(&Pod) -> (bool, bool) + 'r;

/// Binds the first of the queue that may be bound, again and again. With a label to keep `even`, those of a
/// rank come one at a time, first those that go where the fewest are.
fn bind_in_order(bed: &mut Bed, mut queue: Vec<(Pod, String)>, even: Option<(&str, &Rank<'_>)>) -> Bound {
    let mut order = Vec::new();
    loop {
        let (before, mut why, mut at) = (queue.len(), BTreeMap::new(), 0);
        if let Some((key, rank)) = even {
            let domain = |bed: &Bed, on: &str| bed.nodes.get(on).and_then(|n| n.labels.get(key).cloned());
            let mut counts: BTreeMap<Option<String>, usize> = BTreeMap::new();
            for pod in bed.pods.values() {
                *counts.entry(domain(bed, pod.node.as_deref().expect("bound"))).or_default() += 1;
            }
            queue.sort_by_key(|(pod, on)| (rank(pod), counts.get(&domain(bed, on)).copied().unwrap_or(0)));
        }
        while at < queue.len() {
            let (pod, on) = &queue[at];
            let refusal = bed.nodes.get(on).map_or_else(|| Some("no such node".to_owned()), |node| bed.refusal(pod, node));
            match refusal {
                None => {
                    bed.bind(pod, on);
                    order.push(queue.remove(at));
                    if even.is_some() {
                        break;
                    }
                }
                Some(refusal) => {
                    why.insert(pod.key.clone(), format!("{on}: {refusal}"));
                    at += 1;
                }
            }
        }
        if queue.len() == before || queue.is_empty() {
            return (why, order);
        }
    }
}
