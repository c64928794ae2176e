//! What pods may ask for besides room, taints and node affinity: each kind by itself, so that tests
//! can count how often it was tried.

use std::collections::BTreeMap;

use whittle_model::{
    Event, HostPort, LabelSelector, Pod, PodAffinityTerm, PodKey, PodVolume, Preferences, Protocol, SelectorOperator, SelectorRequirement,
    StorageClass, TopologySpread, Volume, VolumeClaim, VolumeClaimPhase, keys,
};

use super::random::{Dice, requirement};
use super::{ZONES, all_of, any_of, labels};

/// A kind of constraint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ask {
    SpreadOverZones,
    SpreadOverHosts,
    SpreadOverOthers,
    Company,
    Exclusion,
    OtherNamespaces,
    Preference,
    Port,
    Volume,
}

/// Those that plans heed; pods that ask for another kind are refused as not understood.
pub const HEEDED: &[Ask] = &[
    Ask::SpreadOverZones,
    Ask::SpreadOverHosts,
    Ask::SpreadOverOthers,
    Ask::Company,
    Ask::Exclusion,
    Ask::OtherNamespaces,
    Ask::Preference,
    Ask::Port,
    Ask::Volume,
];

/// What pools and catalogues may have besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Supply {
    Reservations,
    MinValues,
    Overlays,
    Static,
}

/// That which plans heed; the rest is not generated.
pub const SUPPLIES: &[Supply] = &[Supply::Reservations, Supply::MinValues, Supply::Overlays, Supply::Static];

pub const APPS: [&str; 3] = ["web", "db", "batch"];
pub const NAMESPACES: [&str; 3] = ["default", "team-a", "team-b"];
const DRIVER: &str = "ebs.csi.aws.com";

/// What a pod asks for.
pub fn asks_of(pod: &Pod) -> Vec<Ask> {
    let mut asks = Vec::new();
    for constraint in &pod.spread {
        asks.push(match constraint.topology_key.as_str() {
            _ if !constraint.required => Ask::Preference,
            keys::ZONE => Ask::SpreadOverZones,
            keys::HOSTNAME => Ask::SpreadOverHosts,
            _ => Ask::SpreadOverOthers,
        });
    }
    asks.extend(pod.pod_affinity.iter().map(|_| Ask::Company));
    asks.extend(pod.anti_affinity.iter().filter(|t| t.topology_key != keys::HOSTNAME).map(|_| Ask::Exclusion));
    asks.extend(pod.pod_affinity.iter().chain(&pod.anti_affinity).filter(|t| t.namespace_selector.is_some()).map(|_| Ask::OtherNamespaces));
    asks.extend((pod.preferences != Preferences::default()).then_some(Ask::Preference));
    asks.extend(pod.host_ports.iter().map(|_| Ask::Port));
    asks.extend(pod.volumes.iter().map(|_| Ask::Volume));
    asks.sort_unstable();
    asks.dedup();
    asks
}

/// Adds to `tally` what each of `pods` asks for.
pub fn count<'p>(tally: &mut BTreeMap<Ask, usize>, pods: impl Iterator<Item = &'p Pod>) {
    for ask in pods.flat_map(asks_of) {
        *tally.entry(ask).or_default() += 1;
    }
}

/// Fails when a kind that is heeded was never tried.
pub fn all_tried(tally: &BTreeMap<Ask, usize>, least: usize) {
    let missed: Vec<&Ask> = HEEDED.iter().filter(|ask| tally.get(ask).copied().unwrap_or(0) < least).collect();
    assert!(missed.is_empty(), "{missed:?} is hardly tried: {tally:?}");
}

fn selector(d: &mut Dice, pod: &Pod) -> LabelSelector {
    let own = pod.labels.get("app").map_or("web", String::as_str);
    match d.below(8) {
        0 => LabelSelector::of_labels(&labels(&[("app", d.pick(&APPS))])),
        1 => LabelSelector {
            requirements: vec![SelectorRequirement {
                key: "app".to_owned(),
                operator: SelectorOperator::NotIn,
                values: vec![own.to_owned()],
            }],
        },
        2 => LabelSelector::default(),
        3 => LabelSelector::of_labels(&labels(&[("app", own), ("version", "v1")])),
        _ => LabelSelector::of_labels(&labels(&[("app", own)])),
    }
}

fn spread(d: &mut Dice, pod: &Pod) -> TopologySpread {
    let required = !d.one_in(5);
    TopologySpread {
        topology_key: d
            .pick(&[keys::ZONE, keys::ZONE, keys::ZONE, keys::HOSTNAME, keys::HOSTNAME, keys::CAPACITY_TYPE, "team", keys::ARCH])
            .to_owned(),
        max_skew: d.pick(&[1, 1, 2, 3]),
        min_domains: if required { d.pick(&[None, None, None, Some(1), Some(2), Some(3), Some(4)]) } else { None },
        required,
        selector: selector(d, pod),
        honor_affinity: !d.one_in(4),
        honor_taints: d.one_in(3),
    }
}

fn term(d: &mut Dice, pod: &Pod, topology_keys: &[&str]) -> PodAffinityTerm {
    let namespace_selector = match d.below(8) {
        0 => Some(LabelSelector::default()),
        1 => Some(LabelSelector::of_labels(&labels(&[("kind", d.pick(&["team", "other"]))]))),
        _ => None,
    };
    let mut namespaces =
        if d.one_in(6) { d.some(&NAMESPACES).into_iter().map(str::to_owned).collect() } else { vec![pod.key.namespace.clone()] };
    if namespace_selector.is_some() && d.one_in(2) {
        namespaces.clear();
    }
    PodAffinityTerm { topology_key: d.pick(topology_keys).to_owned(), namespaces, namespace_selector, selector: selector(d, pod) }
}

/// Adds constraints to a shape of pods; most get one kind or none.
pub fn season(d: &mut Dice, pod: &mut Pod) {
    if d.one_in(2) {
        pod.labels.insert("version".to_owned(), d.pick(&["v1", "v2"]).to_owned());
    }
    for _ in 0..d.pick(&[0, 1, 1, 1, 1, 2]) {
        match d.below(13) {
            0..=2 => {
                let one = spread(d, pod);
                // The API refuses a second constraint on one key.
                if pod.spread.iter().all(|s| s.topology_key != one.topology_key) {
                    pod.spread.push(one);
                }
            }
            3 | 4 => pod.pod_affinity.push(term(d, pod, &[keys::ZONE, keys::ZONE, keys::HOSTNAME, keys::CAPACITY_TYPE, "team"])),
            5 | 6 => pod.anti_affinity.push(term(d, pod, &[keys::ZONE, keys::ZONE, keys::HOSTNAME, keys::CAPACITY_TYPE, "team"])),
            7 => pod.preferences.nodes.push((1 + d.pick(&[0, 49, 99]), all_of(&[requirement(d)]))),
            8 => pod.preferences.near.push((10, term(d, pod, &[keys::ZONE, keys::HOSTNAME]))),
            9 => pod.preferences.away.push((10, term(d, pod, &[keys::ZONE, keys::HOSTNAME]))),
            10 | 11 => pod.host_ports = vec![port(d)],
            _ => pod.volumes = vec![PodVolume { claim: volume_name(d), ephemeral: None }],
        }
    }
}

pub fn port(d: &mut Dice) -> HostPort {
    HostPort {
        port: d.pick(&[80, 443, 9100]),
        protocol: d.pick(&[Protocol::Tcp, Protocol::Tcp, Protocol::Udp]),
        ip: d.pick(&["", "", "10.0.0.1", "10.0.0.2"]).to_owned(),
    }
}

/// `own` stands for a claim of each pod's own.
fn volume_name(d: &mut Dice) -> String {
    d.pick(&["own", "own", "own", "own", "shared-0", "shared-1", "shared-2", "missing"]).to_owned()
}

pub fn classes() -> Vec<StorageClass> {
    let class = |name: &str, immediate, topologies| StorageClass {
        name: name.to_owned(),
        provisioner: DRIVER.to_owned(),
        immediate,
        topologies,
        default: name == "standard",
    };
    let zones = |zones: &[&str]| all_of(&[any_of(keys::ZONE, zones)]);
    vec![
        class("standard", false, Vec::new()),
        class("zonal", false, vec![zones(&[ZONES[0]]), zones(&ZONES[1..])]),
        class("eager", true, Vec::new()),
    ]
}

/// A volume claim in some state, with its volume where it has one.
pub fn volume_claim(d: &mut Dice, key: &PodKey) -> Vec<Event> {
    let mut claim = VolumeClaim {
        key: key.clone(),
        storage_class: d.pick(&[None, Some("standard"), Some("zonal")]).map(str::to_owned),
        ..VolumeClaim::default()
    };
    let mut events = Vec::new();
    match d.below(12) {
        0 => claim.phase = VolumeClaimPhase::Lost,
        1 => claim.storage_class = Some(d.pick(&["", "eager", "nobody's"]).to_owned()),
        2..=4 => {}
        _ => {
            claim.phase = VolumeClaimPhase::Bound;
            claim.bind_completed = !d.one_in(15);
            claim.deleting = d.one_in(15);
            claim.volume = format!("pv-{}-{}", key.namespace, key.name);
            let zone = |d: &mut Dice| all_of(&[any_of(keys::ZONE, &[d.pick(&ZONES)])]);
            let mut node_terms = match d.below(4) {
                0 => Vec::new(),
                1 => vec![zone(d), zone(d)],
                _ => vec![zone(d)],
            };
            let local = d.one_in(6);
            if local {
                node_terms = vec![all_of(&[any_of(keys::HOSTNAME, &["node-0"])])];
            }
            let volume = Volume {
                name: claim.volume.clone(),
                node_terms,
                driver: DRIVER.to_owned(),
                handle: format!("vol-{}", key.name),
                local,
                deleting: d.one_in(20),
            };
            if !d.one_in(15) {
                events.push(Event::Volume(Box::new(volume)));
            }
        }
    }
    events.push(Event::VolumeClaim(Box::new(claim)));
    events
}
