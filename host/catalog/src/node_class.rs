//! What an EC2NodeClass, and what was found for it, say about its instance types.
//!
//! What must not enter: whether the NodeClass is valid and ready.

use std::collections::BTreeSet;

use whittle_model::Quantity;
use whittle_model::ec2_node_class::{Ec2NodeClassSpec, FoundSubnet, NetworkInterface};

use crate::{AmiFamily, CatalogError, CatalogOptions, InstanceStorePolicy, Kubelet, Nic};

/// The options that a NodeClass writes down. Zones, images, its placement group and the settings of the cluster stay as
/// in the default.
///
/// # Errors
/// When a volume's size is no quantity.
pub fn options_of(name: &str, region: &str, family: AmiFamily, spec: &Ec2NodeClassSpec) -> Result<CatalogOptions, CatalogError> {
    let defaults = CatalogOptions::default();
    let nested = spec.cpu_options.as_ref().and_then(|options| options.nested_virtualization.as_deref());
    Ok(CatalogOptions {
        node_class: name.to_owned(),
        region: region.to_owned(),
        family,
        instance_store: match spec.instance_store_policy.as_deref() {
            Some("RAID0") => InstanceStorePolicy::Raid0,
            Some(_) | None => InstanceStorePolicy::Unused,
        },
        root_volume_bytes: root_volume(spec, family)?.unwrap_or(defaults.root_volume_bytes),
        kubelet: kubelet(spec),
        network_interfaces: spec.network_interfaces.as_ref().map(|nics| nics.iter().map(nic).collect()),
        nested_virtualization: nested == Some("enabled"),
        connection_tracking: spec.connection_tracking.is_some(),
        ..defaults
    })
}

impl CatalogOptions {
    /// The same with the zones of these subnets, and no others.
    #[must_use]
    pub fn in_subnets(mut self, subnets: &[FoundSubnet]) -> Self {
        let zones: BTreeSet<&String> = subnets.iter().map(|subnet| &subnet.zone).collect();
        self.zones = Some(zones.into_iter().cloned().collect());
        self.zone_ids = subnets.iter().filter_map(|subnet| Some((subnet.zone.clone(), subnet.zone_id.clone()?))).collect();
        self
    }
}

/// Size of the volume that holds pods' local storage: the one marked as root, else the last of a custom image or the
/// family's own. `None` where no size is given.
fn root_volume(spec: &Ec2NodeClassSpec, family: AmiFamily) -> Result<Option<i64>, CatalogError> {
    let mappings = spec.block_device_mappings.as_deref().unwrap_or_default();
    let device = match family {
        AmiFamily::Bottlerocket => Some("/dev/xvdb"),
        AmiFamily::Al2 | AmiFamily::Al2023 => Some("/dev/xvda"),
        AmiFamily::Custom => None,
    };
    let marked = mappings.iter().find(|mapping| mapping.root_volume == Some(true));
    let of_family = match device {
        Some(device) => mappings.iter().find(|mapping| mapping.device_name.as_deref() == Some(device)),
        None => mappings.last(),
    };
    let mut sizes = [marked, of_family].into_iter().flatten().filter_map(|mapping| mapping.ebs.as_ref()?.volume_size.as_deref());
    sizes.next().map(bytes).transpose()
}

fn bytes(size: &str) -> Result<i64, CatalogError> {
    let wrong = |why: String| CatalogError::NodeClass { field: "blockDeviceMappings.ebs.volumeSize", value: size.to_owned(), why };
    Quantity::parse(size).map(Quantity::units_ceil).map_err(|error| wrong(error.to_string()))
}

/// What is written as an expression of the type is left to the family's own default, as where such expressions are not
/// enabled.
fn kubelet(spec: &Ec2NodeClassSpec) -> Kubelet {
    let Some(fields) = &spec.kubelet else { return Kubelet::default() };
    let count = |key: &str| fields.get(key)?.as_u64().and_then(|number| u32::try_from(number).ok());
    let texts = |key: &str| {
        let entries = fields.get(key).and_then(|value| value.as_object()).into_iter().flatten();
        entries.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
    };
    let amounts = |key: &str| texts(key).filter(|(_, value)| Quantity::parse(value).is_ok()).collect();
    Kubelet {
        max_pods: count("maxPods"),
        pods_per_core: count("podsPerCore"),
        kube_reserved: amounts("kubeReserved"),
        system_reserved: amounts("systemReserved"),
        eviction_hard: texts("evictionHard").collect(),
    }
}

fn nic(written: &NetworkInterface) -> Nic {
    let index = |index: i32| u32::try_from(index).unwrap_or_default();
    Nic { card: index(written.network_card_index), device: index(written.device_index), efa_only: written.interface_type == "efa-only" }
}

#[cfg(test)]
#[path = "../tests_unit/node_class.rs"]
mod tests;
