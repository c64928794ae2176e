//! An instance and a class that agree, and what is said when they no longer do.

use super::*;
use crate::{Requirement, keys};

fn ids(all: &[&str]) -> BTreeSet<String> {
    all.iter().map(|id| (*id).to_owned()).collect()
}

fn arch(arch: &str) -> Labels {
    Labels::from([(keys::ARCH.to_owned(), arch.to_owned())])
}

fn class() -> ComesTo {
    let of = |arch: &str| {
        let mut requirements = Requirements::default();
        requirements.add(Requirement::any_of(keys::ARCH, &[arch]));
        requirements
    };
    ComesTo {
        images: vec![("ami-2".to_owned(), of("amd64")), ("ami-arm".to_owned(), of("arm64")), ("ami-1".to_owned(), of("amd64"))],
        subnets: ["a", "b"].map(|zone| Subnet { id: format!("subnet-{zone}"), zone: zone.to_owned() }).into(),
        security_groups: ids(&["sg-1", "sg-2"]),
        reservations: Some(ids(&["cr-1"])),
        placement_group: Some(None),
    }
}

fn given() -> Provided {
    let (image, subnet) = ("ami-2".to_owned(), "subnet-b".to_owned());
    Provided { image, subnet, security_groups: ids(&["sg-2", "sg-1"]), reservation: Some("cr-1".to_owned()), placement_group: None }
}

#[test]
fn an_instance_that_was_bought_today_has_not_drifted() {
    assert_eq!(provider_drift(&class(), &given(), Some(&arch("amd64"))), None);
    let arm = Provided { image: "ami-arm".to_owned(), ..given() };
    assert_eq!(provider_drift(&class(), &arm, Some(&arch("arm64"))), None);
}

#[test]
fn each_difference_has_its_reason_and_the_first_is_told() {
    let amd = arch("amd64");
    let told = |given: &Provided| provider_drift(&class(), given, Some(&amd));
    // The class still names this image, but a type takes the first that boots it.
    let mut worse = Provided { image: "ami-1".to_owned(), ..given() };
    assert_eq!(told(&worse), Some("AMIDrift"));
    worse.security_groups = ids(&["sg-1"]);
    assert_eq!(told(&worse), Some("AMIDrift"));
    let mut groups = Provided { security_groups: ids(&["sg-1", "sg-2", "sg-3"]), ..given() };
    assert_eq!(told(&groups), Some("SecurityGroupDrift"));
    groups.subnet = "subnet-c".to_owned();
    assert_eq!(told(&groups), Some("SecurityGroupDrift"));
    assert_eq!(told(&Provided { subnet: "subnet-c".to_owned(), ..given() }), Some("SubnetDrift"));
    assert_eq!(told(&Provided { reservation: Some("cr-2".to_owned()), ..given() }), Some("CapacityReservationDrift"));
    assert_eq!(told(&Provided { placement_group: Some("pg-1".to_owned()), ..given() }), Some("PlacementGroupDrift"));
    assert_eq!(provider_drift(&class(), &given(), Some(&arch("riscv"))), Some("AMIDrift"), "no image boots it any more");
}

#[test]
fn what_is_not_known_is_no_difference() {
    let odd = Provided { image: "ami-9".to_owned(), placement_group: Some("pg".to_owned()), ..given() };
    assert_eq!(provider_drift(&ComesTo::default(), &odd, Some(&arch("amd64"))), None);
    let unplaced = ComesTo { placement_group: None, ..class() };
    assert_eq!(provider_drift(&unplaced, &odd, None), None, "without its type the image is not judged");
    let ending = Provided { subnet: String::new(), security_groups: BTreeSet::new(), reservation: None, ..given() };
    assert_eq!(provider_drift(&class(), &ending, Some(&arch("amd64"))), None);
    let open = ComesTo { reservations: None, ..class() };
    assert_eq!(provider_drift(&open, &Provided { reservation: Some("cr-9".to_owned()), ..given() }, None), None);
}
