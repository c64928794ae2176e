//! Names of launch templates: equal content has one name, and nothing else has it.

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::image::Tracking;
use crate::image::case::Case;

fn name(case: &Case) -> Result<String, ImageError> {
    case.template().map(|(spec, _)| spec.name())
}

#[test]
fn a_name_is_a_short_word_behind_a_prefix() {
    let name = name(&Case::read("al2023")).expect("the case is well formed");
    let digits = name.strip_prefix("karpenter.k8s.aws/").expect("names have the prefix");
    assert!(digits.len() == 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()), "{name}");
}

#[test]
fn what_a_class_lacks_is_named() {
    let mut case = Case::read("al2023");
    case.security_groups.clear();
    assert_eq!(name(&case), Err(ImageError::NoSecurityGroups("default".to_owned())));
    let mut case = Case::read("al2023");
    case.cluster.service_cidr.clear();
    assert_eq!(name(&case), Err(ImageError::NoClusterCidr("shop".to_owned())));
}

/// One change to every field that a template has. None undoes another.
const CHANGES: [fn(&mut TemplateSpec); 34] = [
    |spec| spec.image.push('x'),
    |spec| spec.profile.push('x'),
    |spec| spec.user_data.push(' '),
    |spec| spec.metadata.endpoint.push('x'),
    |spec| spec.metadata.ipv6 = Some("x".to_owned()),
    |spec| spec.metadata.hop_limit += 1,
    |spec| spec.metadata.tokens.push('x'),
    |spec| spec.detailed_monitoring ^= true,
    |spec| spec.nested_virtualization = Some("x".to_owned()),
    |spec| spec.enclave ^= true,
    |spec| spec.placement.dedicated ^= true,
    |spec| spec.placement.group_id = Some("pg-x".to_owned()),
    |spec| spec.placement.partition = Some(7),
    |spec| drop(spec.tags.insert("more".to_owned(), String::new())),
    |spec| spec.tags.values_mut().take(1).for_each(|value| value.push('x')),
    |spec| spec.spot ^= true,
    |spec| spec.reservation = CapacityChoice::Only("cr-x".to_owned()),
    |spec| spec.market = Some(Market::InterruptibleReservation),
    |spec| spec.volumes.push(Volume::default()),
    |spec| each_volume(spec, |volume| volume.device = None),
    |spec| each_volume(spec, |volume| volume.delete_on_termination = Some(false)),
    |spec| each_volume(spec, |volume| volume.encrypted = None),
    |spec| each_volume(spec, |volume| volume.iops = Some(1)),
    |spec| each_volume(spec, |volume| volume.throughput = Some(1)),
    |spec| each_volume(spec, |volume| volume.kms_key_id = Some("x".to_owned())),
    |spec| each_volume(spec, |volume| volume.snapshot_id = Some("x".to_owned())),
    |spec| each_volume(spec, |volume| volume.initialization_rate = Some(1)),
    |spec| each_volume(spec, |volume| volume.size_gib = Some(1)),
    |spec| each_volume(spec, |volume| volume.kind = None),
    |spec| each_interface(spec, |nic| nic.groups.push("sg-x".to_owned())),
    |spec| each_interface(spec, |nic| nic.device += 1),
    |spec| each_interface(spec, |nic| (nic.card, nic.kind) = (Some(9), Some("x".to_owned()))),
    |spec| each_interface(spec, |nic| (nic.ipv4_prefixes, nic.ipv6_prefixes, nic.ipv6_addresses) = (Some(8), Some(9), Some(9))),
    |spec| each_interface(spec, |nic| (nic.public_address, nic.tracking) = (None, Some(Tracking::default()))),
];

fn each_volume(spec: &mut TemplateSpec, change: fn(&mut Volume)) {
    spec.volumes.iter_mut().take(1).for_each(change);
}

fn each_interface(spec: &mut TemplateSpec, change: fn(&mut Interface)) {
    spec.interfaces.iter_mut().take(1).for_each(change);
}

fn changed(case: &str, changes: u64) -> TemplateSpec {
    let (mut spec, _) = Case::read(case).template().expect("every case is well formed");
    let chosen = CHANGES.iter().enumerate().filter(|(at, _)| changes >> at & 1 == 1);
    chosen.for_each(|(_, change)| change(&mut spec));
    spec
}

const CASES: [&str; 4] = ["al2", "template-bottlerocket", "template-efa-ipv6", "template-disks"];

#[test]
fn every_single_change_changes_the_name() {
    for case in CASES {
        let mut names: Vec<String> = (0..CHANGES.len()).map(|at| changed(case, 1 << at).name()).collect();
        names.push(changed(case, 0).name());
        names.sort();
        names.dedup();
        // Two changes of the first disk leave a template without disks, or one that says so already, as it was.
        let same = (0..CHANGES.len()).filter(|at| changed(case, 1 << at) == changed(case, 0)).count();
        assert_eq!(names.len(), CHANGES.len() + 1 - same, "{case}");
        assert!(same <= 2, "{case}");
    }
}

proptest! {
    #[test]
    fn equal_content_and_only_that_has_one_name(case in 0..CASES.len(), one in 0_u64..1 << CHANGES.len(), two in 0_u64..1 << CHANGES.len()) {
        let (one, two) = (changed(CASES[case], one), changed(CASES[case], two));
        prop_assert_eq!(one.name() == two.name(), one == two);
        prop_assert_eq!(one.name(), one.clone().name());
    }

    #[test]
    fn order_does_not_change_the_name(seed in any::<u64>()) {
        let mut case = Case::read("al2023");
        case.class.block_device_mappings = serde_json::from_str(
            r#"[{"deviceName": "/dev/xvda", "ebs": {"volumeSize": "20Gi"}}, {"deviceName": "/dev/xvdb", "ebs": {"volumeSize": "1Gi"}},
                {"deviceName": "/dev/xvdc", "ebs": {"volumeSize": "2Gi"}}]"#,
        ).expect("a list of disks");
        case.class.network_interfaces = serde_json::from_str(
            r#"[{"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"},
                {"networkCardIndex": 1, "deviceIndex": 0, "interfaceType": "efa-only"},
                {"networkCardIndex": 1, "deviceIndex": 1, "interfaceType": "interface"}]"#,
        ).expect("a list of interfaces");
        let before = name(&case);
        prop_assert!(before.is_ok());
        turn(&mut case.security_groups, seed);
        turn(&mut case.claim.taints, seed >> 8);
        turn(&mut case.claim.startup_taints, seed >> 16);
        if let Some(listed) = &mut case.class.block_device_mappings {
            turn(listed, seed >> 24);
        }
        if let Some(listed) = &mut case.class.network_interfaces {
            turn(listed, seed >> 32);
        }
        prop_assert_eq!(name(&case), before);
    }
}

/// Another order of the same values.
fn turn<T>(values: &mut [T], seed: u64) {
    let by = usize::try_from(seed % 7).unwrap_or_default();
    if !values.is_empty() {
        let by = by % values.len();
        values.rotate_left(by);
        if seed & 8 > 0 {
            values.reverse();
        }
    }
}

#[test]
fn what_a_node_boots_with_is_in_the_name() {
    let base = Case::read("al2023");
    let before = name(&base);
    type Change = fn(&mut Case);
    let changes: [(&str, Change); 9] = [
        ("label", |case| drop(case.claim.labels.insert("team".to_owned(), "other".to_owned()))),
        ("taint", |case| case.claim.taints[0].value.push('x')),
        ("startup taint", |case| drop(case.claim.startup_taints.pop())),
        ("pods", |case| {
            if let Some(kubelet) = &mut case.class.kubelet {
                kubelet.remove("maxPods");
            }
        }),
        ("kubelet field", |case| {
            if let Some(kubelet) = &mut case.class.kubelet {
                kubelet.insert("serializeImagePulls".to_owned(), Value::from(true));
            }
        }),
        ("user data", |case| case.class.user_data = Some("#!/bin/sh\n".to_owned())),
        ("cluster", |case| case.cluster.name.push('x')),
        ("capacity type", |case| case.capacity_type = "spot".to_owned()),
        ("request", |case| case.claim.requests.extend([(ENCLAVE.to_owned(), 1)])),
    ];
    for (what, change) in changes {
        let mut case = Case::read("al2023");
        change(&mut case);
        let after = name(&case);
        assert!(after.is_ok() && after != before, "{what}");
    }
    // What a node does not get to know may change: the kubelet is not told this label.
    let mut case = Case::read("al2023");
    case.claim.labels.insert("kubernetes.io/arch".to_owned(), "arm64".to_owned());
    assert_eq!(name(&case), before);
}
