//! Which types share a launch template.

use std::sync::Arc;

use whittle_model::{Labels, Requirements, Resources};

use super::*;
use crate::image::Variant;

fn of_type(name: &str, labels: &[(&str, &str)], pods: i64, efas: i64) -> InstanceType {
    let labels: Labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let capacity = Resources::of(&[("pods", pods), (EFA, efas)]);
    InstanceType {
        name: name.to_owned(),
        labels,
        requirements: Arc::new(Requirements::default()),
        allocatable: capacity.clone(),
        capacity,
        offerings: Vec::new(),
    }
}

fn image(id: &str, variant: Variant, architecture: &str) -> Ami {
    Ami { id: id.to_owned(), name: None, deprecated: None, requirements: variant.requirements_with(architecture) }
}

fn page(groups: &[Group]) -> Vec<String> {
    let line = |group: &Group| {
        let reservation = group.reservation.as_ref().map(|reservation| format!(" {}", reservation.id)).unwrap_or_default();
        format!("{} {} {}{reservation}: {}", group.image, group.max_pods, group.efas, group.instance_types.join(" "))
    };
    groups.iter().map(line).collect()
}

fn types() -> Vec<InstanceType> {
    let gpu = "karpenter.k8s.aws/instance-gpu-count";
    vec![
        of_type("p4d.24xlarge", &[("kubernetes.io/arch", "amd64"), (gpu, "8")], 737, 4),
        of_type("m5.large", &[("kubernetes.io/arch", "amd64")], 29, 0),
        of_type("c5.large", &[("kubernetes.io/arch", "amd64")], 29, 0),
        of_type("m6g.large", &[("kubernetes.io/arch", "arm64")], 29, 0),
        of_type("inf2.xlarge", &[("kubernetes.io/arch", "amd64"), ("karpenter.k8s.aws/instance-accelerator-count", "1")], 58, 0),
        of_type("m5.xlarge", &[("kubernetes.io/arch", "amd64")], 58, 0),
    ]
}

fn images() -> Vec<Ami> {
    vec![
        image("ami-new", Variant::Standard, "x86_64"),
        image("ami-gpu", Variant::Nvidia, "x86_64"),
        image("ami-arm", Variant::Standard, "arm64"),
        image("ami-old", Variant::Standard, "x86_64"),
    ]
}

fn wanted(types: &[InstanceType]) -> Vec<Wanted<'_>> {
    types.iter().map(|instance_type| Wanted { instance_type, reservations: Vec::new() }).collect()
}

#[test]
fn types_share_a_template_when_image_pods_and_efa_agree() {
    let types = types();
    let plain = group_by(&wanted(&types), &images(), false).map(|groups| page(&groups));
    let expected = ["ami-arm 29 0: m6g.large", "ami-gpu 737 0: p4d.24xlarge", "ami-new 29 0: c5.large m5.large", "ami-new 58 0: m5.xlarge"];
    assert_eq!(plain, Ok(expected.map(str::to_owned).to_vec()));
    let efa = group_by(&wanted(&types), &images(), true).map(|groups| page(&groups));
    assert!(efa.is_ok_and(|page| page.contains(&"ami-gpu 737 4: p4d.24xlarge".to_owned())));
    let mut reversed = wanted(&types);
    reversed.reverse();
    assert_eq!(group_by(&reversed, &images(), false).map(|groups| page(&groups)), Ok(expected.map(str::to_owned).to_vec()));
}

#[test]
fn each_reservation_has_a_template() {
    let types = types();
    let into = |id: &str| Reservation { id: id.to_owned(), capacity_block: false, interruptible: false };
    let wanted = [Wanted { instance_type: &types[1], reservations: vec![into("cr-2"), into("cr-1")] }];
    let groups = group_by(&wanted, &images(), false).map(|groups| page(&groups));
    assert_eq!(groups, Ok(vec!["ami-new 29 0 cr-1: m5.large".to_owned(), "ami-new 29 0 cr-2: m5.large".to_owned()]));
}

#[test]
fn images_that_boot_nothing_are_named() {
    let types = types();
    let error = group_by(&wanted(&types), &[image("ami-win", Variant::Windows("10.0.20348"), "x86_64")], false);
    let said = error.map_err(|error| error.to_string());
    assert_eq!(said, Err("finding images for 6 instance types: none of the images ami-win boots any of them".to_owned()));
    let mut odd = image("ami-odd", Variant::Standard, "x86_64");
    odd.requirements[0].operator = "NotIn".to_owned();
    assert!(group_by(&wanted(&types), &[odd], false).is_err());
}
