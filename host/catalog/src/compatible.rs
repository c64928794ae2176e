//! Instance types that a NodeClass cannot use at all.

use crate::options::{Nic, Placement};
use crate::{AmiFamily, Architecture, CatalogOptions, InstanceFacts};

/// Why nodes of this NodeClass cannot run on this type, if so. Whether one of its images boots there
/// is not asked here.
#[must_use]
pub fn incompatible(facts: &InstanceFacts, options: &CatalogOptions) -> Option<&'static str> {
    if facts.arch == Architecture::Mac {
        return Some("no Kubernetes node runs on Apple hosts");
    }
    if options.family == AmiFamily::Al2023 && facts.family() == "a1" {
        return Some("AL2023 does not boot on the processors of a1");
    }
    if options.nested_virtualization && !facts.nested_virtualization {
        return Some("its guests may not run virtual machines");
    }
    if options.connection_tracking && facts.hypervisor != "nitro" {
        return Some("time-outs of tracked connections are set by the Nitro hypervisor alone");
    }
    if options.placement.is_some_and(|placement| !stands_in(facts, placement)) {
        return Some("it may not stand in a placement group of this strategy");
    }
    options.network_interfaces.as_deref().and_then(|nics| lacks_interfaces(facts, nics))
}

fn stands_in(facts: &InstanceFacts, placement: Placement) -> bool {
    let may = facts.placement_strategies;
    match placement {
        Placement::Cluster => may.cluster,
        Placement::Partition => may.partition,
        Placement::Spread => may.spread,
    }
}

fn lacks_interfaces(facts: &InstanceFacts, nics: &[Nic]) -> Option<&'static str> {
    if nics.iter().any(|nic| nic.card >= facts.network_cards) {
        return Some("it has fewer network cards than are configured");
    }
    if nics.iter().any(|nic| facts.enis_of_card(nic.card).is_none_or(|enis| nic.device >= enis)) {
        return Some("its network cards have fewer interfaces than are configured");
    }
    let efa = nics.iter().filter(|nic| nic.efa_only).count();
    (efa > facts.efa_interfaces as usize).then_some("it has fewer EFA interfaces than are configured")
}
