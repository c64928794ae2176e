//! The formulas of capacity and overhead as tables of input and outcome.

use whittle_catalog::{
    Absences, AmiFamily, Architecture, CatalogError, CatalogOptions, Facts, InstanceFacts, InstanceStorePolicy, Kubelet, Overhead,
    capacity, eni_limited_pods, instance_type,
};
use whittle_model::resources::{CPU, EPHEMERAL_STORAGE, MEMORY, PODS};
use whittle_model::{InstanceType, Resources};

const MIB: i64 = 1 << 20;
const GIB: i64 = 1 << 30;

fn facts(name: &str) -> InstanceFacts {
    Facts::builtin().get(name).expect("the table has the type").clone()
}

fn made(name: &str, options: &CatalogOptions) -> InstanceType {
    instance_type(&facts(name), options, &Overhead::new(&options.kubelet).expect("the settings read"), &mut Absences::default(), Vec::new())
}

fn kubelet(kube: &[(&str, &str)], system: &[(&str, &str)], eviction: &[(&str, &str)]) -> CatalogOptions {
    let map = |pairs: &[(&str, &str)]| pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    CatalogOptions {
        kubelet: Kubelet { kube_reserved: map(kube), system_reserved: map(system), eviction_hard: map(eviction), ..Kubelet::default() },
        ..CatalogOptions::default()
    }
}

#[test]
fn pods_come_from_the_interfaces_of_the_default_card() {
    for (name, reserved_enis, pods) in [
        ("m5.large", 0, 29),
        ("m5.large", 1, 20),
        ("m5.large", 3, 0),
        ("m5.large", 9, 0),
        ("p4d.24xlarge", 0, 737),  // 60 interfaces, 15 of them on the default card
        ("c6in.32xlarge", 0, 394), // 16 interfaces, 8 of them on the default card
    ] {
        assert_eq!(eni_limited_pods(&facts(name), reserved_enis), pods, "{name} less {reserved_enis}");
    }
}

#[test]
fn pods_follow_the_kubelet_settings_and_the_family() {
    for (family, max_pods, pods_per_core, reserved_enis, pods) in [
        (AmiFamily::Al2023, None, None, 0, 58),
        (AmiFamily::Al2023, None, None, 1, 44),
        (AmiFamily::Al2023, Some(110), None, 1, 110),
        (AmiFamily::Al2023, Some(110), Some(10), 0, 40),
        (AmiFamily::Al2023, None, Some(100), 0, 58),
        (AmiFamily::Al2023, None, Some(0), 0, 58),
        (AmiFamily::Bottlerocket, Some(110), Some(10), 0, 110),
    ] {
        let options = CatalogOptions {
            family,
            reserved_enis,
            kubelet: Kubelet { max_pods, pods_per_core, ..Kubelet::default() },
            ..CatalogOptions::default()
        };
        assert_eq!(capacity(&facts("m5.xlarge"), &options).get(PODS), pods, "{family:?} {max_pods:?} {pods_per_core:?} {reserved_enis}");
    }
}

#[test]
fn memory_kept_by_kubelet_counts_eni_pods_or_real_ones_by_family() {
    for (family, max_pods, kept_for) in [
        (AmiFamily::Al2, Some(20), 58),
        (AmiFamily::Al2023, Some(20), 58),
        (AmiFamily::Custom, Some(20), 58),
        (AmiFamily::Bottlerocket, Some(20), 20),
        (AmiFamily::Bottlerocket, None, 58),
    ] {
        let options = CatalogOptions { family, kubelet: Kubelet { max_pods, ..Kubelet::default() }, ..CatalogOptions::default() };
        let made = made("m5.xlarge", &options);
        let kept = made.capacity.get(MEMORY) - made.allocatable.get(MEMORY);
        assert_eq!(kept, (11 * kept_for + 255 + 100) * MIB, "{family:?} {max_pods:?}");
    }
    let reserving = CatalogOptions { reserved_enis: 2, ..CatalogOptions::default() };
    let made = made("m5.xlarge", &reserving);
    assert_eq!(made.capacity.get(MEMORY) - made.allocatable.get(MEMORY), (11 * 58 + 355) * MIB, "reserved interfaces do not count here");
}

#[test]
fn the_hypervisor_keeps_a_share_of_memory_in_whole_mib() {
    for (name, ppm, mib) in [
        ("m5.large", 75_000, 8192 - 615), // 614.4
        ("m5.large", 0, 8192),
        ("m5.large", 62_500, 8192 - 512),
        ("m5.large", 1, 8191),
        ("m5.large", 1_000_000, 0),
        ("m6g.large", 75_000, 8128 - 610), // 609.6 of 8192 - 64
        ("m6g.large", 0, 8128),
    ] {
        let options = CatalogOptions { vm_memory_overhead_ppm: ppm, ..CatalogOptions::default() };
        assert_eq!(capacity(&facts(name), &options).get(MEMORY), mib * MIB, "{name} {ppm}");
    }
}

#[test]
fn storage_is_the_root_volume_or_all_instance_storage() {
    for (name, instance_store, root, bytes) in [
        ("m5.large", InstanceStorePolicy::Unused, 20 * GIB, 20 * GIB),
        ("m5.large", InstanceStorePolicy::Raid0, 100 * GIB, 100 * GIB),
        ("m5d.large", InstanceStorePolicy::Unused, 20 * GIB, 20 * GIB),
        ("m5d.large", InstanceStorePolicy::Raid0, 20 * GIB, 75_000_000_000),
    ] {
        let options = CatalogOptions { instance_store, root_volume_bytes: root, ..CatalogOptions::default() };
        let made = made(name, &options);
        assert_eq!(made.capacity.get(EPHEMERAL_STORAGE), bytes, "{name} {instance_store:?}");
        assert_eq!(made.allocatable.get(EPHEMERAL_STORAGE), bytes - (bytes + 9) / 10 - GIB, "{name} {instance_store:?}");
    }
}

#[test]
fn reserved_amounts_and_thresholds_override_one_by_one() {
    // m5.large: 2000m, 7577Mi, 20Gi; by itself kubelet keeps 70m, 574Mi, 1Gi and eviction 100Mi, 2Gi.
    let storage = |gib: i64| 20 * GIB - gib * GIB;
    for (options, cpu, memory_mib, bytes) in [
        (kubelet(&[], &[], &[]), 1930, 7577 - 574 - 100, storage(3)),
        (kubelet(&[("cpu", "0"), ("pid", "100")], &[], &[]), 2000, 7577 - 674, storage(3)),
        (kubelet(&[("memory", "1Gi")], &[("memory", "500Mi"), ("cpu", "100m")], &[]), 1830, 7577 - 1024 - 500 - 100, storage(3)),
        (kubelet(&[("ephemeral-storage", "3Gi")], &[("ephemeral-storage", "1Gi")], &[]), 1930, 7577 - 674, storage(6)),
        (kubelet(&[], &[], &[("memory.available", "200Mi"), ("nodefs.available", "5%")]), 1930, 7577 - 774, storage(2)),
        (kubelet(&[], &[], &[("memory.available", "100%"), ("imagefs.available", "50%")]), 1930, 7577 - 574, storage(3)),
        (kubelet(&[], &[("cpu", "5"), ("memory", "1Ti")], &[]), 0, 0, storage(3)),
    ] {
        let allocatable = made("m5.large", &options).allocatable;
        let expected = (cpu, memory_mib * MIB, bytes);
        assert_eq!((allocatable.get(CPU), allocatable.get(MEMORY), allocatable.get(EPHEMERAL_STORAGE)), expected, "{:?}", options.kubelet);
    }
    let share = made("m5.large", &kubelet(&[], &[], &[("memory.available", "7.5%")])).allocatable.get(MEMORY);
    assert_eq!(share, (7577 - 574) * MIB - (7577 * MIB * 75 + 999) / 1000);
}

#[test]
fn kubelet_settings_that_cannot_be_read_are_named() {
    for (options, message) in [
        (
            kubelet(&[("gpu", "1")], &[], &[]),
            "cannot read kubelet.kubeReserved.gpu \"1\": the key must be cpu, memory, ephemeral-storage or pid",
        ),
        (kubelet(&[], &[("cpu", "-1")], &[]), "cannot read kubelet.systemReserved.cpu \"-1\": the amount must not be below zero"),
        (
            kubelet(&[], &[], &[("memory.free", "1Gi")]),
            "cannot read kubelet.evictionHard.memory.free \"1Gi\": the signal must be one of memory.available, nodefs.available, \
             nodefs.inodesFree, imagefs.available, imagefs.inodesFree, pid.available",
        ),
        (
            kubelet(&[], &[], &[("memory.available", "101%")]),
            "cannot read kubelet.evictionHard.memory.available \"101%\": a percentage must lie between 0% and 100%",
        ),
    ] {
        assert_eq!(Overhead::new(&options.kubelet).unwrap_err().to_string(), message);
    }
    let unreadable = Overhead::new(&kubelet(&[("memory", "1GB")], &[], &[]).kubelet);
    assert!(matches!(unreadable, Err(CatalogError::Kubelet { field: "kubeReserved", .. })), "{unreadable:?}");
}

#[test]
fn devices_are_counted_by_their_makers() {
    let gaudi = InstanceFacts { gpus: 8, gpu_manufacturer: "Habana".into(), gpu_name: "Gaudi HL-205".into(), ..facts("m5.24xlarge") };
    let options = CatalogOptions::default();
    for (facts, devices) in [
        (facts("p4d.24xlarge"), &[("nvidia.com/gpu", 8), ("vpc.amazonaws.com/efa", 4), ("vpc.amazonaws.com/pod-eni", 62)][..]),
        (facts("inf2.24xlarge"), &[("aws.amazon.com/neuron", 6), ("aws.amazon.com/neuroncore", 12), ("vpc.amazonaws.com/pod-eni", 107)]),
        (facts("g6f.large"), &[("vpc.amazonaws.com/pod-eni", 10)]), // a share of a GPU is no GPU
        (facts("t3.large"), &[]),
        (gaudi, &[("habana.ai/gaudi", 8), ("vpc.amazonaws.com/pod-eni", 107)]),
    ] {
        let mut found = capacity(&facts, &options);
        for plain in [CPU, MEMORY, EPHEMERAL_STORAGE, PODS] {
            found.set(plain, 0);
        }
        assert_eq!(found, Resources::of(devices), "{}", facts.name);
    }
}

#[test]
fn architectures_are_named_as_kubernetes_does() {
    for (name, arch) in [
        ("m5.large", Architecture::Amd64),
        ("t1.micro", Architecture::Amd64),
        ("m6g.large", Architecture::Arm64),
        ("mac2.metal", Architecture::Mac),
    ] {
        assert_eq!(facts(name).arch, arch, "{name}");
    }
}
