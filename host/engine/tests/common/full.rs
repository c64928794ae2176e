//! Random clusters with every kind of constraint.

use std::collections::BTreeSet;

use whittle_model::{
    CapacityType, Catalog, Effect, Event, Micros, NodeOverlay, NodePool, Offering, Pod, PodKey, PriceChange, Reservation, Resources,
    Settings, Taint, Timestamp, VolumeLimits, keys,
};

use super::asks::{HEEDED, NAMESPACES, SUPPLIES, Supply, asks_of, classes, port, season, volume_claim};
use super::random::{Cluster, Dice, copy, requirement, shape};
use super::{CATEGORY, TYPES, ZONES, all_of, any_of, labels, toleration};

impl Cluster {
    /// A cluster that has all kinds of objects and constraints; small, and now and then larger.
    pub fn full(seed: u64) -> Self {
        let mut cluster = Self::of(seed);
        let mut dice = Dice(seed.wrapping_mul(0x9e6c_63d0_876a_3f6b) ^ 0x0f0f);
        let d = &mut dice;
        settings(d, &mut cluster.settings);
        for catalog in &mut cluster.catalogs {
            reserve(d, catalog);
        }
        for pool in &mut cluster.pools {
            spice(d, pool);
        }
        for set in &mut cluster.daemon_sets {
            if d.one_in(3) {
                set.template.host_ports = vec![port(d)];
            }
        }
        // Running daemons are what their template says.
        for pod in cluster.bound.iter_mut().filter(|pod| pod.tied_to_node()) {
            let set = cluster.daemon_sets.iter().find(|set| pod.owner.as_ref().is_some_and(|o| o.name == set.key.name));
            pod.host_ports = set.map_or_else(Vec::new, |set| set.template.host_ports.clone());
        }
        cluster.others = namespaces(d);
        if d.one_in(4) && heeded(Supply::Overlays) {
            cluster.others.extend((0..1 + d.below(3)).map(|n| Event::NodeOverlay(Box::new(overlay(d, n)))));
        }
        if d.one_in(2) {
            cluster.nodes.truncate(1);
        }
        for node in &mut cluster.nodes {
            node.labels.insert(keys::HOSTNAME.to_owned(), node.name.clone());
            if d.one_in(4) {
                node.taints.push(Taint::new("soft", "", Effect::PreferNoSchedule));
            }
            if d.one_in(3) {
                let drivers = [("ebs.csi.aws.com".to_owned(), u32::try_from(d.below(4)).expect("four is small"))].into();
                cluster.others.push(Event::VolumeLimits(Box::new(VolumeLimits { node: node.name.clone(), drivers })));
            }
        }
        cluster.bound.retain(|pod| cluster.nodes.iter().any(|n| Some(&n.name) == pod.node.as_ref()));
        pods(d, &mut cluster);
        storage(d, &mut cluster);
        cluster
    }
}

fn heeded(supply: Supply) -> bool {
    SUPPLIES.contains(&supply)
}

fn settings(d: &mut Dice, settings: &mut Settings) {
    settings.respect_preferences = !d.one_in(4);
    settings.relax_min_values = d.one_in(4);
    settings.features.node_overlay = d.one_in(2);
    settings.features.reserved_capacity = !d.one_in(4);
    settings.features.static_capacity = d.one_in(2);
}

/// Gives some types a capacity reservation.
fn reserve(d: &mut Dice, catalog: &mut Catalog) {
    let class = catalog.node_class.clone();
    for kind in &mut catalog.types {
        if !d.one_in(6) || !heeded(Supply::Reservations) {
            continue;
        }
        let zone = d.pick(&ZONES);
        let zone_id = kind.offerings.iter().find(|o| o.zone == zone).map(|o| o.zone_id.clone()).unwrap_or_default();
        let left = u32::try_from(d.below(4)).expect("four is small");
        let reservation = Reservation { id: format!("cr-{}-{class}", kind.name), block: d.one_in(4), interruptible: d.one_in(4), left };
        kind.offerings.push(Offering {
            zone: zone.to_owned(),
            zone_id,
            capacity_type: CapacityType::Reserved,
            price: Micros(1),
            available: left > 0,
            reservation: Some(reservation),
        });
        kind.offerings.sort_by(|a, b| (&a.zone, a.capacity_type).cmp(&(&b.zone, b.capacity_type)));
    }
}

fn spice(d: &mut Dice, pool: &mut NodePool) {
    if d.one_in(5) {
        pool.template.taints.push(Taint::new("soft", "", Effect::PreferNoSchedule));
    }
    if d.one_in(6) && heeded(Supply::MinValues) {
        let count = Some(u32::try_from(1 + d.below(4)).expect("four is small"));
        let more = match d.below(3) {
            0 => any_of(keys::INSTANCE_TYPE, &TYPES.map(|t| t.0)).with_min_values(count),
            1 => any_of(CATEGORY, &["c", "m", "r"]).with_min_values(count),
            _ => any_of(keys::ZONE, &ZONES).with_min_values(count),
        };
        let mut all = pool.template.requirements.clone();
        all.add(more);
        if !all.iter().any(whittle_model::Requirement::is_contradiction) {
            pool.template.requirements = all;
        }
    }
    if d.one_in(10) && heeded(Supply::Static) {
        pool.replicas = Some(u32::try_from(d.below(3)).expect("three is small"));
        pool.weight = 0;
        // Nobody checks minValues of a pool that keeps its number whatever is sold.
        pool.template.requirements = pool.template.requirements.iter().map(|r| r.clone().with_min_values(None)).collect();
        pool.limits.amounts.retain(|(name, _)| name == "nodes");
    }
}

fn namespaces(d: &mut Dice) -> Vec<Event> {
    let named = |name: &str| labels(&[("kubernetes.io/metadata.name", name)]);
    let mut events: Vec<Event> = NAMESPACES.iter().map(|name| Event::Namespace((*name).to_owned(), named(name))).collect();
    for event in &mut events {
        if let Event::Namespace(_, labels) = event
            && d.one_in(2)
        {
            labels.insert("kind".to_owned(), d.pick(&["team", "other"]).to_owned());
        }
    }
    events
}

fn overlay(d: &mut Dice, number: usize) -> NodeOverlay {
    let price = match d.below(4) {
        0 => Some(PriceChange::Absolute(Micros(d.amount(400_000)))),
        1 => Some(PriceChange::Add(Micros(d.amount(100_000) - 50_000))),
        2 => Some(PriceChange::Scale(d.amount(1_500_000) - 900_000)),
        _ => None,
    };
    let capacity =
        if price.is_none() || d.one_in(4) { Resources::of(&[("example.com/thing", 1 + d.amount(4))]) } else { Resources::default() };
    // Weights differ: overlays of one weight on one offering refuse each other.
    NodeOverlay {
        name: format!("overlay-{number}"),
        weight: 1 + i32::try_from(number).expect("few"),
        requirements: all_of(&[requirement(d)]),
        price,
        capacity,
    }
}

/// Replaces the pods by such that have constraints, in several namespaces.
fn pods(d: &mut Dice, cluster: &mut Cluster) {
    let shapes: Vec<Pod> = (0..2 + d.below(5))
        .map(|n| {
            let mut pod = shape(d, n);
            // Most worlds have room for most pods, so that constraints decide.
            if d.one_in(2) {
                pod.requests = super::resources(d.pick(&[250, 700, 1500]), super::GIB / 2);
                pod.affinity = whittle_model::Affinity::default();
            }
            if d.one_in(12) {
                pod.requests.set("example.com/thing", 1);
            }
            pod.key.namespace = d.pick(&["default", "default", "team-a", "team-b"]).to_owned();
            season(d, &mut pod);
            pod.resource_claims = d.one_in(40);
            if d.one_in(3) {
                pod.tolerations = vec![toleration("soft")];
            }
            pod
        })
        .collect();
    let counts = if d.one_in(40) { [60 + d.below(80), d.below(40)] } else { [3 + d.below(25), d.below(12)] };
    cluster.waves = [0, 1].map(|w: usize| (0..counts[w]).map(|n| named(d, &shapes, &format!("wave{w}-{n:02}"))).collect());
    cluster.bound.retain(whittle_model::Pod::tied_to_node);
    for node in &cluster.nodes {
        for n in 0..d.below(5) {
            let pod = Pod { deleting: d.one_in(12), ..named(d, &shapes, &format!("{}-{n}", node.name)) };
            // What is not heeded yet is refused in those that wait, and would be overlooked in those that run.
            if asks_of(&pod).iter().all(|ask| HEEDED.contains(ask)) {
                cluster.bound.push(super::bound(pod, &node.name));
            }
        }
    }
}

fn named(d: &mut Dice, shapes: &[Pod], name: &str) -> Pod {
    let shape = &shapes[d.below(shapes.len())];
    let mut pod = copy(shape, name, d.amount(3));
    pod.created = Timestamp(d.amount(3));
    pod.key = PodKey::new(&shape.key.namespace, name);
    for volume in &mut pod.volumes {
        if volume.claim == "own" {
            volume.claim = format!("own-{name}");
            if d.one_in(5) {
                volume.ephemeral = Some(d.pick(&[None, Some("zonal")]).map(str::to_owned));
            }
        }
    }
    pod
}

/// The storage classes, and a claim for each volume but the missing ones and some ephemeral ones.
fn storage(d: &mut Dice, cluster: &mut Cluster) {
    cluster.others.extend(classes().into_iter().map(|class| Event::StorageClass(Box::new(class))));
    let mut made: BTreeSet<PodKey> = BTreeSet::new();
    for pod in cluster.bound.iter().chain(cluster.waves.iter().flatten()) {
        for volume in pod.volumes.iter().filter(|v| v.claim != "missing") {
            let key = PodKey::new(&pod.key.namespace, &volume.claim);
            if (volume.ephemeral.is_none() || d.one_in(2)) && made.insert(key.clone()) {
                cluster.others.extend(volume_claim(d, &key));
            }
        }
    }
}
