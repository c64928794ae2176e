//! EC2NodeClasses, as far as instance types and planning depend on them.

use std::collections::BTreeMap;

use whittle_model::{ComesTo, Held, NodeClass, Operator, Quantity, Requirements, Subnet};

use super::{Cx, kubelet, names, node_class_rules as rules, node_pool::not_ready, requirement};
use crate::api;

/// An EC2NodeClass: what the engine reads, and what the catalogue makes instance types from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeClassObject {
    /// What the engine reads.
    pub class: NodeClass,
    /// Image family: `AL2`, `AL2023`, `Bottlerocket` or `Custom`.
    pub family: String,
    /// The subnets its status lists; empty when it has no status yet.
    pub subnets: Vec<Subnet>,
    /// Zone ids by zone, as its status lists them.
    pub zone_ids: BTreeMap<String, String>,
    /// Size of the volume that holds pods' local storage, in bytes; `None` for the family's default.
    pub root_volume_bytes: Option<i64>,
    /// Whether the instance's own disks are joined (`RAID0`) and hold pods' local storage.
    pub instance_store_raid0: bool,
    /// Kubelet settings.
    pub kubelet: Kubelet,
    /// What its status says that it comes to.
    pub comes_to: ComesTo,
    /// The capacity reservations that its status lists, those alone that may be launched into. It does not say how many
    /// instances are left.
    pub held: Vec<Held>,
}

/// Kubelet settings that change what pods can use. Amounts are as written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Kubelet {
    /// `maxPods`.
    pub max_pods: Option<u32>,
    /// `podsPerCore`.
    pub pods_per_core: Option<u32>,
    /// `kubeReserved`: quantities by `cpu`, `memory`, `ephemeral-storage`, `pid`.
    pub kube_reserved: BTreeMap<String, String>,
    /// `systemReserved`, by the same names.
    pub system_reserved: BTreeMap<String, String>,
    /// `evictionHard`: quantities or percentages by signal, such as `memory.available`.
    pub eviction_hard: BTreeMap<String, String>,
}

/// Families by the name in an alias.
pub(crate) const FAMILIES: [(&str, &str); 6] = [
    ("al2", "AL2"),
    ("al2023", "AL2023"),
    ("bottlerocket", "Bottlerocket"),
    ("windows2019", "Windows2019"),
    ("windows2022", "Windows2022"),
    ("windows2025", "Windows2025"),
];

/// An EC2NodeClass.
pub(crate) fn node_class(written: &api::EC2NodeClass, cx: &mut Cx) -> NodeClassObject {
    let name = names::object_name(&written.metadata, cx);
    let status = written.status.clone().unwrap_or_default();
    let conditions = status.conditions.as_deref().unwrap_or_default();
    let comes_to = cx.key("status", |cx| comes_to(&status, cx));
    let held = held(&status);
    let subnets = status.subnets.unwrap_or_default();
    cx.key("spec", |cx| {
        let spec = &written.spec;
        rules::check(spec, cx);
        list_unsupported(spec, status.capacity_reservations.is_some(), cx);
        let family = family(spec, cx);
        NodeClassObject {
            class: NodeClass {
                name,
                annotations: written.metadata.annotations.clone().unwrap_or_default(),
                not_ready: not_ready(conditions),
                free_addresses: BTreeMap::new(),
            },
            root_volume_bytes: root_volume(spec, &family, cx),
            family,
            zone_ids: subnets.iter().filter_map(|s| Some((s.zone.clone(), s.zone_id.clone()?))).collect(),
            subnets: subnets.into_iter().map(|s| Subnet { id: s.id, zone: s.zone }).collect(),
            instance_store_raid0: spec.instance_store_policy.as_deref() == Some("RAID0"),
            kubelet: kubelet::kubelet(spec.kubelet.as_ref(), cx),
            comes_to,
            held,
        }
    })
}

/// The capacity reservations that a status lists, but for those that are about to end.
fn held(status: &api::EC2NodeClassStatus) -> Vec<Held> {
    status.capacity_reservations.iter().flatten().filter_map(|one| Held::listed(one, 0)).collect()
}

/// What a status says that a class comes to.
fn comes_to(status: &api::EC2NodeClassStatus, cx: &mut Cx) -> ComesTo {
    let mut images = Vec::new();
    cx.each("amis", status.amis.as_deref().unwrap_or_default(), |cx, ami| {
        let mut requirements = Requirements::default();
        cx.each("requirements", &ami.requirements, |cx, one| {
            let values = one.values.as_deref().unwrap_or_default();
            if let Some(requirement) = requirement::requirement(&one.key, &one.operator, values, &Operator::ALL, true, cx) {
                requirements.add(requirement);
            }
        });
        images.push((ami.id.clone(), requirements));
    });
    let groups = status.security_groups.iter().flatten().map(|group| group.id.clone());
    let subnets = status.subnets.iter().flatten().map(|subnet| Subnet { id: subnet.id.clone(), zone: subnet.zone.clone() });
    let reservations = status.capacity_reservations.as_ref().map(|all| all.iter().map(|one| one.id.clone()).collect());
    ComesTo { images, subnets: subnets.collect(), security_groups: groups.collect(), reservations, ..ComesTo::default() }
}

/// Fields that change which instance types fit, or what they hold. Which reservations are selected only the status tells.
fn list_unsupported(spec: &api::EC2NodeClassSpec, reservations_listed: bool, cx: &mut Cx) {
    let reserves = spec.capacity_reservation_selector_terms.as_ref().is_some_and(|t| !t.is_empty());
    for (key, present) in [
        ("capacityReservationSelectorTerms", reserves && !reservations_listed),
        ("placementGroupSelector", spec.placement_group_selector.is_some()),
        ("networkInterfaces", spec.network_interfaces.as_ref().is_some_and(|n| !n.is_empty())),
        ("connectionTracking", spec.connection_tracking.is_some()),
        ("cpuOptions", spec.cpu_options.is_some()),
    ] {
        if present {
            cx.cannot_read(key);
        }
    }
}

/// The image family, from the alias or as named.
fn family(spec: &api::EC2NodeClassSpec, cx: &mut Cx) -> String {
    let named = spec.ami_family.as_deref();
    let mut words: Vec<&str> = FAMILIES.iter().map(|(_, family)| *family).collect();
    words.push("Custom");
    if named == Some("Ubuntu") {
        cx.broken_at(
            "amiFamily",
            "Ubuntu is no family any more: write amiFamily: AL2023 or Custom and choose the image in amiSelectorTerms",
        );
    } else if let Some(named) = named {
        cx.one_of("amiFamily", named, &words);
    }
    let of_alias = alias_family(&spec.ami_selector_terms, cx);
    match (named, of_alias) {
        (None, None) => {
            if !spec.ami_selector_terms.iter().any(|t| t.alias.is_some()) {
                cx.broken("amiFamily is missing: it is needed unless amiSelectorTerms has an alias such as al2023@latest");
            }
            "AL2023".to_owned()
        }
        (Some(named), Some(alias)) if named != alias && named != "Custom" => {
            cx.broken_at("amiFamily", format!("{named} is not the family of the alias; write {alias}, or leave amiFamily out"));
            alias.to_owned()
        }
        (Some(family), _) | (None, Some(family)) => {
            if family.starts_with("Windows") {
                cx.cannot_read(if named.is_some() { "amiFamily" } else { "amiSelectorTerms" });
            }
            family.to_owned()
        }
    }
}

fn alias_family(terms: &[api::AmiSelectorTerm], cx: &mut Cx) -> Option<&'static str> {
    let mut found = None;
    cx.each("amiSelectorTerms", terms, |cx, term| {
        let Some(alias) = &term.alias else { return };
        let Some((family, version)) = alias.split_once('@').filter(|(_, version)| !version.is_empty()) else {
            cx.broken_at("alias", format!("{alias:?} has no version; write family@version, such as al2023@latest"));
            return;
        };
        let words: Vec<&str> = FAMILIES.iter().map(|(alias, _)| *alias).collect();
        if !words.contains(&family) {
            cx.broken_at("alias", format!("image family {}", super::not_one_of(family, &words)));
            return;
        }
        if family.starts_with("windows") && version != "latest" {
            cx.broken_at("alias", format!("{alias:?} pins a version, which Windows images do not have; write {family}@latest"));
        }
        found = FAMILIES.iter().find(|(alias, _)| *alias == family).map(|(_, family)| *family);
    });
    found
}

/// Size of the volume that holds pods' local storage: the one marked as root, else the family's.
fn root_volume(spec: &api::EC2NodeClassSpec, family: &str, cx: &mut Cx) -> Option<i64> {
    let mappings = spec.block_device_mappings.as_deref().unwrap_or_default();
    let device = match family {
        "Bottlerocket" => "/dev/xvdb",
        "AL2" | "AL2023" => "/dev/xvda",
        _ => "/dev/sda1",
    };
    let marked = mappings.iter().position(|m| m.root_volume == Some(true));
    let of_family = || match family {
        "Custom" => mappings.len().checked_sub(1),
        _ => mappings.iter().position(|m| m.device_name.as_deref() == Some(device)),
    };
    let mapping = mappings.get(marked.or_else(of_family)?)?;
    let size = mapping.ebs.as_ref()?.volume_size.as_ref()?;
    match Quantity::parse(size) {
        Ok(quantity) => Some(quantity.units_ceil()),
        Err(error) => {
            cx.broken_at("blockDeviceMappings", error.to_string());
            None
        }
    }
}
