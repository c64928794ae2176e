//! Instance types built by hand: what is told, what is missing, what nobody thought of.

use aws_sdk_ec2::types::{GpuDeviceInfo, InstanceType, MemoryInfo, NetworkCardInfo, NeuronDeviceCoreInfo, NeuronDeviceInfo, VCpuInfo};

use super::*;

fn network() -> NetworkInfo {
    let card = |index: i32, enis: i32| {
        NetworkCardInfo::builder().network_card_index(index).maximum_network_interfaces(enis).baseline_bandwidth_in_gbps(12.5).build()
    };
    NetworkInfo::builder()
        .maximum_network_interfaces(7)
        .ipv4_addresses_per_interface(30)
        .default_network_card_index(1)
        .network_cards(card(0, 3))
        .network_cards(card(1, 4))
        .build()
}

/// A type that the table does not know.
fn unknown() -> aws_sdk_ec2::types::builders::InstanceTypeInfoBuilder {
    let processor = ProcessorInfo::builder()
        .supported_architectures(ArchitectureType::I386)
        .supported_architectures(ArchitectureType::X8664)
        .sustained_clock_speed_in_ghz(3.35);
    InstanceTypeInfo::builder()
        .instance_type(InstanceType::from("q9.large"))
        .processor_info(processor.build())
        .v_cpu_info(VCpuInfo::builder().default_v_cpus(2).build())
        .memory_info(MemoryInfo::builder().size_in_mib(8192).build())
        .network_info(network())
}

#[test]
fn a_type_that_the_table_does_not_know_is_read() {
    let read = facts(&unknown().build(), None).unwrap();
    assert_eq!((read.name.as_str(), read.vcpus, read.memory_mib, read.arch), ("q9.large", 2, 8192, Architecture::Amd64));
    assert_eq!((read.clock_mhz, read.network_mbps), (Some(3350), Some(25_000)), "the sum over the cards");
    assert_eq!((read.network_cards, read.default_card_enis), (2, 4), "of the card that is named as the default");
    assert_eq!((read.trunking, read.branch_enis, read.nitro_enclaves), (false, None, None));
    assert_eq!((read.ebs_optimized, read.nvme_gb, read.gpus), (EbsOptimized::Unsupported, None, 0));
}

#[test]
fn what_ec2_does_not_tell_stays_as_it_is_known() {
    let known = whittle_catalog::Facts::builtin().get("m5.large").unwrap().clone();
    let mut processor = ProcessorInfo::builder().supported_architectures(ArchitectureType::X8664).build();
    let read = facts(&unknown().processor_info(processor.clone()).build(), Some(&known)).unwrap();
    assert_eq!((read.clock_mhz, read.cpu_manufacturer.as_str()), (known.clock_mhz, "Intel"));
    assert_eq!((read.trunking, read.branch_enis, read.network_mbps), (true, known.branch_enis, known.network_mbps));
    assert_eq!(read.enis, 7, "what EC2 tells counts");
    processor.manufacturer = Some("AMD".into());
    processor.sustained_clock_speed_in_ghz = Some(2.25);
    let read = facts(&unknown().processor_info(processor).build(), Some(&known)).unwrap();
    assert_eq!((read.clock_mhz, read.cpu_manufacturer.as_str()), (Some(2250), "AMD"));
}

#[test]
fn a_type_without_what_matters_is_refused_with_what_is_missing() {
    let no_cards = NetworkInfo::builder().maximum_network_interfaces(2).ipv4_addresses_per_interface(4).build();
    let riscv = ProcessorInfo::builder().supported_architectures(ArchitectureType::from("riscv64")).build();
    let negative = VCpuInfo::builder().default_v_cpus(-1).build();
    for (info, missing) in [
        (unknown().set_instance_type(None), "its name"),
        (unknown().set_processor_info(None), "processorInfo"),
        (unknown().processor_info(riscv), "processorInfo.supportedArchitectures"),
        (unknown().set_network_info(None), "networkInfo"),
        (unknown().network_info(no_cards), "networkInfo.networkCards"),
        (unknown().v_cpu_info(negative), "vCpuInfo.defaultVCpus"),
        (unknown().set_memory_info(None), "memoryInfo.sizeInMiB"),
    ] {
        assert_eq!(facts(&info.build(), None), Err(missing));
    }
}

#[test]
fn devices_of_several_kinds_are_counted_and_not_named() {
    let gpu = |name: &str, count: i32| GpuDeviceInfo::builder().name(name).manufacturer("NVIDIA").count(count).build();
    let core = NeuronDeviceCoreInfo::builder().count(4).build();
    let neuron = |name: &str, count: i32| NeuronDeviceInfo::builder().name(name).count(count).core_info(core.clone()).build();
    let info = unknown()
        .gpu_info(GpuInfo::builder().gpus(gpu("A", 2)).gpus(gpu("B", 1)).build())
        .neuron_info(NeuronInfo::builder().neuron_devices(neuron("C", 3)).neuron_devices(neuron("D", 1)).build());
    let read = facts(&info.build(), None).unwrap();
    assert_eq!((read.gpus, read.gpu_name.as_str(), read.gpu_manufacturer.as_str()), (3, "", "NVIDIA"));
    assert_eq!((read.neuron_devices, read.neuron_cores, read.neuron_name.as_str()), (4, 16, ""));
}

#[test]
fn clocks_that_are_none_are_not_told() {
    for (giga, mega) in [(2.1, Some(2100)), (3.349_999_999, Some(3350)), (-1.0, None), (f64::NAN, None), (f64::INFINITY, None)] {
        assert_eq!(thousandths(giga), mega, "{giga}");
    }
}
