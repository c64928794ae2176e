//! EC2NodeClasses as tables of what is written and what is read.

use whittle_model::ec2_node_class::{BlockDevice, BlockDeviceMapping, ConnectionTracking, CpuOptions, NetworkInterface};

use super::*;

fn spec() -> Ec2NodeClassSpec {
    Ec2NodeClassSpec {
        subnet_selector_terms: Vec::new(),
        security_group_selector_terms: Vec::new(),
        capacity_reservation_selector_terms: None,
        placement_group_selector: None,
        associate_public_ip_address: None,
        ip_prefix_count: None,
        ami_selector_terms: Vec::new(),
        ami_family: None,
        user_data: None,
        role: Some("nodes".into()),
        instance_profile: None,
        tags: None,
        kubelet: None,
        block_device_mappings: None,
        instance_store_policy: None,
        network_interfaces: None,
        detailed_monitoring: None,
        metadata_options: None,
        connection_tracking: None,
        context: None,
        cpu_options: None,
    }
}

fn options(spec: &Ec2NodeClassSpec) -> CatalogOptions {
    options_of("general", "eu-west-1", AmiFamily::Al2023, spec).unwrap()
}

#[test]
fn a_plain_class_is_the_default_under_its_name_and_region() {
    let expected = CatalogOptions { node_class: "general".into(), region: "eu-west-1".into(), ..CatalogOptions::default() };
    assert_eq!(options(&spec()), expected);
}

#[test]
fn local_storage_is_on_the_marked_volume_else_on_the_familys() {
    let disk = |device: &str, size: Option<&str>, root: bool| BlockDeviceMapping {
        device_name: Some(device.into()),
        ebs: Some(BlockDevice { volume_size: size.map(Into::into), ..BlockDevice::default() }),
        root_volume: root.then_some(true),
    };
    let (a, b) = (Some("30Gi"), Some("1T"));
    for (family, disks, bytes) in [
        ("AL2023", vec![], 20 << 30),
        ("AL2023", vec![disk("/dev/xvda", a, false), disk("/dev/xvdb", b, false)], 30 << 30),
        ("AL2023", vec![disk("/dev/xvda", a, false), disk("/dev/xvdb", b, true)], 1_000_000_000_000),
        ("AL2023", vec![disk("/dev/xvda", a, false), disk("/dev/xvdb", None, true)], 30 << 30),
        ("AL2023", vec![disk("/dev/sdf", a, false)], 20 << 30),
        ("Bottlerocket", vec![disk("/dev/xvda", a, false), disk("/dev/xvdb", b, false)], 1_000_000_000_000),
        ("Custom", vec![disk("/dev/xvda", b, false), disk("/dev/sdz", a, false)], 30 << 30),
    ] {
        let spec = Ec2NodeClassSpec { block_device_mappings: Some(disks.clone()), ..spec() };
        let options = options_of("x", "us-east-1", AmiFamily::parse(family).unwrap(), &spec).unwrap();
        assert_eq!(options.root_volume_bytes, bytes, "{family} {disks:?}");
    }
    let spec = Ec2NodeClassSpec { block_device_mappings: Some(vec![disk("/dev/xvda", Some("big"), true)]), ..spec() };
    let refused = options_of("x", "us-east-1", AmiFamily::Al2023, &spec).unwrap_err().to_string();
    assert!(refused.starts_with("cannot read blockDeviceMappings.ebs.volumeSize \"big\": "), "{refused}");
}

#[test]
fn kubelet_settings_that_are_amounts_count() {
    let fields = serde_json::json!({
        "maxPods": 50, "podsPerCore": "vcpus * 2",
        "kubeReserved": {"cpu": "100m", "memory": "max_pods * 11"},
        "systemReserved": {"memory": "1Gi"},
        "evictionHard": {"memory.available": "5%"},
        "clusterDNS": ["10.0.0.10"],
    });
    let spec = Ec2NodeClassSpec { kubelet: Some(serde_json::from_value(fields).unwrap()), ..spec() };
    let map = |key: &str, value: &str| [(key.to_owned(), value.to_owned())].into();
    assert_eq!(
        options(&spec).kubelet,
        Kubelet {
            max_pods: Some(50),
            pods_per_core: None,
            kube_reserved: map("cpu", "100m"),
            system_reserved: map("memory", "1Gi"),
            eviction_hard: map("memory.available", "5%"),
        }
    );
}

#[test]
fn what_types_must_be_able_to_do_is_read() {
    let nic = NetworkInterface { network_card_index: 1, device_index: 2, interface_type: "efa-only".into() };
    let spec = Ec2NodeClassSpec {
        instance_store_policy: Some("RAID0".into()),
        network_interfaces: Some(vec![nic]),
        connection_tracking: Some(ConnectionTracking::default()),
        cpu_options: Some(CpuOptions { nested_virtualization: Some("enabled".into()) }),
        ..spec()
    };
    let options = options(&spec);
    assert_eq!(options.instance_store, InstanceStorePolicy::Raid0);
    assert_eq!(options.network_interfaces, Some(vec![Nic { card: 1, device: 2, efa_only: true }]));
    assert!(options.connection_tracking && options.nested_virtualization);
}

#[test]
fn subnets_give_zones_and_their_ids() {
    let subnet = |zone: &str, id: Option<&str>| FoundSubnet { id: "subnet-1".into(), zone: zone.into(), zone_id: id.map(Into::into) };
    let found = [subnet("b", Some("z2")), subnet("a", Some("z1")), subnet("b", Some("z2")), subnet("c", None)];
    let options = options(&spec()).in_subnets(&found);
    assert_eq!(options.zones, Some(vec!["a".into(), "b".into(), "c".into()]));
    assert_eq!(options.zone_ids, [("a".into(), "z1".into()), ("b".into(), "z2".into())].into());
    assert_eq!(options.in_subnets(&[]).zones, Some(Vec::new()), "without subnets there are no zones");
}
