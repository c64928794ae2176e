//! An instance type as EC2 describes it, turned into the facts that catalogues are made of.
//!
//! What must not enter: what a NodeClass makes of a type.

use aws_sdk_ec2::types::{
    ArchitectureType, EbsInfo, EbsOptimizedSupport, EphemeralNvmeSupport, GpuInfo, InferenceAcceleratorInfo, InstanceStorageInfo,
    InstanceTypeInfo, NetworkInfo, NeuronInfo, NitroEnclavesSupport, PlacementGroupStrategy, ProcessorInfo,
    SupportedAdditionalProcessorFeature, UsageClassType,
};
use whittle_catalog::{Architecture, EbsOptimized, InstanceFacts, PlacementStrategies, UsageClasses};

/// Facts of a type. What EC2 does not tell stays as in `known`, the type's row of the compiled-in table: the limits of
/// branch interfaces, and the network's baseline where the table corrects the sum over its cards.
///
/// # Errors
/// What is missing, when there is no use of the type without it.
pub(crate) fn facts(info: &InstanceTypeInfo, known: Option<&InstanceFacts>) -> Result<InstanceFacts, &'static str> {
    let name = info.instance_type.as_ref().ok_or("its name")?.as_str().to_owned();
    let processor = info.processor_info.as_ref().ok_or("processorInfo")?;
    let network = info.network_info.as_ref().ok_or("networkInfo")?;
    let vcpus = info.v_cpu_info.as_ref().and_then(|cpus| count(cpus.default_v_cpus)).ok_or("vCpuInfo.defaultVCpus")?;
    let memory = info.memory_info.as_ref().and_then(|memory| size(memory.size_in_mib)).ok_or("memoryInfo.sizeInMiB")?;
    let devices = Devices::of(info);
    let (nvme_gb, ssd_total_gb) = storage(info.instance_storage_info.as_ref());
    let (ebs_mbps, ebs_optimized, max_ebs_attachments) = ebs(info.ebs_info.as_ref());
    Ok(InstanceFacts {
        vcpus,
        memory_mib: memory,
        arch: architecture(processor)?,
        hypervisor: info.hypervisor.as_ref().map_or("", |hypervisor| hypervisor.as_str()).to_owned(),
        bare_metal: info.bare_metal.unwrap_or_default(),
        current_generation: info.current_generation.unwrap_or_default(),
        burstable: info.burstable_performance_supported.unwrap_or_default(),
        flex_capable: known.map_or_else(|| name.contains("-flex"), |known| known.flex_capable),
        cpu_manufacturer: processor.manufacturer.clone().or_else(|| known.map(|k| k.cpu_manufacturer.clone())).unwrap_or_default(),
        clock_mhz: clock(processor).or_else(|| known?.clock_mhz),
        usage_classes: usage_classes(info),
        enis: count(network.maximum_network_interfaces).ok_or("networkInfo.maximumNetworkInterfaces")?,
        ipv4_per_eni: count(network.ipv4_addresses_per_interface).ok_or("networkInfo.ipv4AddressesPerInterface")?,
        network_cards: network_cards(network),
        default_card_enis: default_card_enis(network).ok_or("networkInfo.networkCards")?,
        efa_interfaces: network.efa_info.as_ref().and_then(|efa| count(efa.maximum_efa_interfaces)).unwrap_or_default(),
        trunking: known.is_some_and(|known| known.trunking),
        branch_enis: known.and_then(|known| known.branch_enis),
        network_mbps: known.map_or_else(|| baseline_mbps(network), |known| known.network_mbps),
        ebs_mbps,
        ebs_optimized,
        encryption_in_transit: network.encryption_in_transit_supported.unwrap_or_default(),
        nvme_gb,
        ssd_total_gb,
        gpus: devices.gpus,
        gpu_name: devices.gpu_name,
        gpu_manufacturer: devices.gpu_manufacturer,
        gpu_memory_mib: devices.gpu_memory_mib,
        neuron_devices: devices.neuron_devices,
        neuron_cores: devices.neuron_cores,
        neuron_name: devices.neuron_name,
        accelerators: devices.accelerators,
        accelerator_name: devices.accelerator_name,
        accelerator_manufacturer: devices.accelerator_manufacturer,
        nested_virtualization: processor.supported_features().contains(&SupportedAdditionalProcessorFeature::NestedVirtualization),
        placement_strategies: placement_strategies(info),
        max_ebs_attachments,
        nitro_enclaves: info.nitro_enclaves_support.as_ref().map(|support| *support == NitroEnclavesSupport::Supported),
        name,
    })
}

fn count(told: Option<i32>) -> Option<u32> {
    told.and_then(|number| u32::try_from(number).ok())
}

fn size(told: Option<i64>) -> Option<u64> {
    told.and_then(|number| u64::try_from(number).ok())
}

/// Types with a 32-bit mode name two.
fn architecture(processor: &ProcessorInfo) -> Result<Architecture, &'static str> {
    let told = processor.supported_architectures();
    let is = |architecture| told.contains(&architecture);
    if is(ArchitectureType::X8664) {
        Ok(Architecture::Amd64)
    } else if is(ArchitectureType::Arm64) {
        Ok(Architecture::Arm64)
    } else if is(ArchitectureType::X8664Mac) || is(ArchitectureType::Arm64Mac) {
        Ok(Architecture::Mac)
    } else {
        Err("processorInfo.supportedArchitectures")
    }
}

fn clock(processor: &ProcessorInfo) -> Option<u32> {
    processor.sustained_clock_speed_in_ghz.and_then(thousandths).and_then(|mhz| u32::try_from(mhz).ok()).filter(|mhz| *mhz > 0)
}

/// A number of G as a whole number of M.
fn thousandths(giga: f64) -> Option<u64> {
    (giga.is_finite() && (0.0..1e9).contains(&giga)).then(|| (giga * 1000.0).round() as u64)
}

fn usage_classes(info: &InstanceTypeInfo) -> UsageClasses {
    let has = |class| info.supported_usage_classes().contains(&class);
    UsageClasses {
        on_demand: has(UsageClassType::OnDemand),
        spot: has(UsageClassType::Spot),
        capacity_block: has(UsageClassType::CapacityBlock),
    }
}

fn placement_strategies(info: &InstanceTypeInfo) -> PlacementStrategies {
    let told = info.placement_group_info.as_ref().map(|group| group.supported_strategies()).unwrap_or_default();
    let has = |strategy| told.contains(&strategy);
    PlacementStrategies {
        cluster: has(PlacementGroupStrategy::Cluster),
        partition: has(PlacementGroupStrategy::Partition),
        spread: has(PlacementGroupStrategy::Spread),
    }
}

fn network_cards(network: &NetworkInfo) -> u32 {
    count(network.maximum_network_cards).unwrap_or_else(|| u32::try_from(network.network_cards().len()).unwrap_or_default())
}

/// The card that the VPC CNI gives pods addresses from.
fn default_card_enis(network: &NetworkInfo) -> Option<u32> {
    let default = network.default_network_card_index.unwrap_or_default();
    let card = network.network_cards().iter().find(|card| card.network_card_index.unwrap_or_default() == default)?;
    count(card.maximum_network_interfaces)
}

fn baseline_mbps(network: &NetworkInfo) -> Option<u64> {
    let cards = network.network_cards().iter().filter_map(|card| card.baseline_bandwidth_in_gbps);
    thousandths(cards.sum()).filter(|mbps| *mbps > 0)
}

/// NVMe storage and all storage, in GB.
fn storage(told: Option<&InstanceStorageInfo>) -> (Option<u64>, Option<u64>) {
    let total = told.and_then(|storage| size(storage.total_size_in_gb));
    let nvme = told.is_some_and(|storage| storage.nvme_support != Some(EphemeralNvmeSupport::Unsupported));
    (total.filter(|_| nvme), total)
}

/// Bandwidth in Mbit/s, whether it is there by default, and the most attachments.
fn ebs(told: Option<&EbsInfo>) -> (Option<u64>, EbsOptimized, Option<u32>) {
    let Some(told) = told else { return (None, EbsOptimized::Unsupported, None) };
    let most = told.ebs_optimized_info.as_ref().and_then(|info| info.maximum_bandwidth_in_mbps);
    let optimized = match &told.ebs_optimized_support {
        Some(EbsOptimizedSupport::Default) => EbsOptimized::Default,
        Some(EbsOptimizedSupport::Supported) => EbsOptimized::Supported,
        Some(_) | None => EbsOptimized::Unsupported,
    };
    (most.and_then(|mbps| u64::try_from(mbps).ok()), optimized, count(told.maximum_ebs_attachments))
}

/// What computes beside the processor. Names are told only where all devices are of one kind, as labels have one value.
#[derive(Default)]
struct Devices {
    gpus: u32,
    gpu_name: String,
    gpu_manufacturer: String,
    gpu_memory_mib: Option<u64>,
    neuron_devices: u32,
    neuron_cores: u32,
    neuron_name: String,
    accelerators: u32,
    accelerator_name: String,
    accelerator_manufacturer: String,
}

impl Devices {
    fn of(info: &InstanceTypeInfo) -> Self {
        let mut devices = Self::default();
        devices.add_gpus(info.gpu_info.as_ref());
        devices.add_neuron(info.neuron_info.as_ref());
        devices.add_accelerators(info.inference_accelerator_info.as_ref());
        devices
    }

    fn add_gpus(&mut self, told: Option<&GpuInfo>) {
        let gpus = told.map(GpuInfo::gpus).unwrap_or_default();
        self.gpus = gpus.iter().filter_map(|gpu| count(gpu.count)).sum();
        // The resource is named after the maker, so that is kept also where kinds differ.
        self.gpu_manufacturer = gpus.first().and_then(|gpu| gpu.manufacturer.clone()).unwrap_or_default();
        if let [gpu] = gpus {
            self.gpu_name = gpu.name.clone().unwrap_or_default();
            self.gpu_memory_mib = gpu.memory_info.as_ref().and_then(|memory| count(memory.size_in_mib)).map(u64::from);
        }
    }

    fn add_neuron(&mut self, told: Option<&NeuronInfo>) {
        let devices = told.map(NeuronInfo::neuron_devices).unwrap_or_default();
        for device in devices {
            let number = count(device.count).unwrap_or_default();
            let cores = device.core_info.as_ref().and_then(|cores| count(cores.count)).unwrap_or_default();
            self.neuron_devices += number;
            self.neuron_cores += number.saturating_mul(cores);
        }
        if let [device] = devices {
            self.neuron_name = device.name.clone().unwrap_or_default();
        }
    }

    fn add_accelerators(&mut self, told: Option<&InferenceAcceleratorInfo>) {
        let accelerators = told.map(InferenceAcceleratorInfo::accelerators).unwrap_or_default();
        self.accelerators = accelerators.iter().filter_map(|device| count(device.count)).sum();
        if let [device] = accelerators {
            self.accelerator_name = device.name.clone().unwrap_or_default();
            self.accelerator_manufacturer = device.manufacturer.clone().unwrap_or_default();
        }
    }
}

#[cfg(test)]
#[path = "../../tests_unit/market/facts.rs"]
mod tests;
