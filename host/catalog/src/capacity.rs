//! What an instance has, before anything is kept from pods.

use whittle_model::Resources;
use whittle_model::resources::{CPU, EPHEMERAL_STORAGE, MEMORY, PODS};

use crate::{Architecture, CatalogOptions, InstanceFacts, InstanceStorePolicy};

pub(crate) const MIB: i64 = 1 << 20;
const GB: i64 = 1_000_000_000;
/// What the firmware of ARM instances keeps.
const ARM_FIRMWARE_MIB: i64 = 64;

/// Pods that get an address of their own from the interfaces of the default card: one address of
/// each interface is its own, and two pods use the host's network (the VPC CNI's formula). Interfaces
/// that are `taken` by something else have none for pods.
#[must_use]
pub fn eni_limited_pods(facts: &InstanceFacts, taken_enis: u32) -> i64 {
    let usable = facts.default_card_enis.saturating_sub(taken_enis);
    if usable == 0 { 0 } else { i64::from(usable) * (i64::from(facts.ipv4_per_eni) - 1) + 2 }
}

/// Capacity as a node of this type is expected to report it.
#[must_use]
pub fn capacity(facts: &InstanceFacts, options: &CatalogOptions) -> Resources {
    let mut all = Resources::of(&[
        (CPU, i64::from(facts.vcpus) * 1000),
        (MEMORY, memory(facts, options.vm_memory_overhead_ppm)),
        (EPHEMERAL_STORAGE, storage(facts, options)),
        (PODS, pods(facts, options)),
        ("aws.amazon.com/neuron", i64::from(facts.neuron_devices)),
        ("aws.amazon.com/neuroncore", i64::from(facts.neuron_cores)),
        ("vpc.amazonaws.com/efa", options.efa_interfaces(facts)),
        ("vpc.amazonaws.com/pod-eni", if facts.trunking { i64::from(facts.branch_enis.unwrap_or(0)) } else { 0 }),
    ]);
    let gpu = match facts.gpu_manufacturer.to_lowercase().as_str() {
        "nvidia" => Some("nvidia.com/gpu"),
        "amd" => Some("amd.com/gpu"),
        "habana" => Some("habana.ai/gaudi"),
        _ => None,
    };
    if let Some(resource) = gpu {
        all.set(resource, i64::from(facts.gpus));
    }
    all
}

/// Bytes: what EC2 states, less the firmware's and the hypervisor's share, the latter rounded up to
/// whole MiB.
fn memory(facts: &InstanceFacts, overhead_ppm: u32) -> i64 {
    let stated = i64::try_from(facts.memory_mib).unwrap_or(i64::MAX / MIB);
    let total = if facts.arch == Architecture::Arm64 { (stated - ARM_FIRMWARE_MIB).max(0) } else { stated };
    let overhead = (i128::from(total) * i128::from(overhead_ppm) + 999_999) / 1_000_000;
    (total - i64::try_from(overhead).unwrap_or(total)).max(0).saturating_mul(MIB)
}

fn storage(facts: &InstanceFacts, options: &CatalogOptions) -> i64 {
    match (options.instance_store, facts.ssd_total_gb) {
        (InstanceStorePolicy::Raid0, Some(gb)) if gb > 0 => i64::try_from(gb).unwrap_or(i64::MAX).saturating_mul(GB),
        (InstanceStorePolicy::Raid0 | InstanceStorePolicy::Unused, _) => options.root_volume_bytes,
    }
}

fn pods(facts: &InstanceFacts, options: &CatalogOptions) -> i64 {
    let most = options
        .kubelet
        .max_pods
        .map_or_else(|| eni_limited_pods(facts, options.reserved_enis.saturating_add(options.efa_only_on_default_card())), i64::from);
    match options.kubelet.pods_per_core {
        Some(per_core) if per_core > 0 && options.family.knows_pods_per_core() => most.min(i64::from(per_core) * i64::from(facts.vcpus)),
        Some(_) | None => most,
    }
}
