//! What each answer of CreateFleet means.

use aws_sdk_ec2::types::{FleetLaunchTemplateOverrides as Overrides, InstanceLifecycle, LaunchTemplateAndOverridesResponse as Both};
use whittle_model::{InstanceType, Offering, Resources};

use super::*;
use crate::fleet::{
    plan::Boots,
    select::{Pick, Ranking},
};

fn plan(capacity_type: CapacityType) -> Plan {
    let picks = [("c5.large", "a"), ("m5.large", "b")];
    let picks = picks.map(|(t, zone)| Pick { instance_type: t.to_owned(), zone: zone.to_owned(), reservation: None, priority: 1 });
    let boots = |image: &str| Boots { template: "t".to_owned(), image: image.to_owned() };
    Plan {
        group: "g".to_owned(),
        capacity_type,
        ranking: Ranking::Ec2,
        picks: picks.into(),
        boots: [(("c5.large".to_owned(), None), boots("ami-c")), (("m5.large".to_owned(), None), boots("ami-m"))].into(),
        templates: BTreeMap::new(),
        tags: BTreeMap::new(),
        context: None,
        addresses: 1,
    }
}

fn subnets() -> BTreeMap<String, String> {
    [("a".to_owned(), "subnet-a".to_owned()), ("b".to_owned(), "subnet-b".to_owned())].into()
}

fn catalog() -> Catalog {
    let offering = |zone: &str, capacity_type| Offering {
        zone: zone.to_owned(),
        zone_id: String::new(),
        capacity_type,
        price: Micros(7),
        available: true,
        reservation: None,
    };
    let both = [CapacityType::Spot, CapacityType::OnDemand];
    let of = |name: &str| InstanceType {
        name: name.to_owned(),
        labels: whittle_model::Labels::new(),
        requirements: std::sync::Arc::default(),
        capacity: Resources::of(&[("cpu", 4000)]),
        allocatable: Resources::of(&[("cpu", 3900)]),
        offerings: ["a", "b"].iter().flat_map(|zone| both.map(|capacity_type| offering(zone, capacity_type))).collect(),
    };
    Catalog { types: ["c5.large", "m5.large"].map(of).into(), ..Catalog::default() }
}

fn overrides(instance_type: &str, subnet: &str) -> Both {
    let overrides = Overrides::builder().instance_type(instance_type.into()).subnet_id(subnet).build();
    Both::builder().overrides(overrides).build()
}

fn error(code: &str, message: &str, at: Option<(&str, &str)>) -> CreateFleetError {
    let at = at.map(|(instance_type, subnet)| overrides(instance_type, subnet));
    CreateFleetError::builder().error_code(code).error_message(message).set_launch_template_and_overrides(at).build()
}

#[test]
fn the_answer_is_read_with_what_was_asked_for() {
    let instance = |lifecycle| CreateFleetInstance::builder().lifecycle(lifecycle);
    let output = CreateFleetOutput::builder()
        .instances(
            instance(InstanceLifecycle::Spot)
                .instance_ids("i-1")
                .instance_ids("i-2")
                .launch_template_and_overrides(overrides("c5.large", "subnet-a"))
                .build(),
        )
        .instances(instance(InstanceLifecycle::Spot).instance_type("m5.large".into()).availability_zone("b").instance_ids("i-3").build())
        .errors(error("InsufficientInstanceCapacity", "none", Some(("c5.large", "subnet-a"))))
        .errors(error("InsufficientInstanceCapacity", "none", Some(("c5.large", "subnet-a"))))
        .build();
    let answer = read(&output, &plan(CapacityType::Spot), &subnets());
    let bought: Vec<String> =
        answer.bought.iter().map(|b| format!("{} {} {} {}", b.provider_id, b.capacity_type, b.instance_type, b.image)).collect();
    assert_eq!(bought, ["aws:///a/i-1 spot c5.large ami-c", "aws:///a/i-2 spot c5.large ami-c", "aws:///b/i-3 spot m5.large ami-m"]);
    assert_eq!(answer.refusals.len(), 1, "the same refusal twice is one");
    let claim = NodeClaim { name: "n".to_owned(), ..NodeClaim::default() };
    let Outcome::Launched(launched) = answer.bought[0].launched(&claim, &catalog(), &[]) else { panic!("not launched") };
    assert_eq!((launched.price, launched.allocatable.get("cpu"), launched.capacity.get("cpu")), (Micros(7), 3900, 4000));
}

#[test]
fn each_code_has_its_failure() {
    const ICE: &[&str] = &["on-demand c5.large a"];
    const STANDARD: &[&str] = &["on-demand c5.large a", "on-demand c5.large b", "on-demand m5.large a", "on-demand m5.large b"];
    const ZONE: &[&str] = &["spot c5.large a", "on-demand c5.large a", "spot m5.large a", "on-demand m5.large a"];
    /// What is sold out, or the reason.
    type Expected = Result<&'static [&'static str], &'static str>;
    let table: [(&str, &str, Expected); 20] = [
        ("InsufficientInstanceCapacity", "none", Ok(ICE)),
        ("UnfulfillableCapacity", "none", Ok(ICE)),
        ("Unsupported", "not in this zone", Ok(ICE)),
        ("VcpuLimitExceeded", "quota", Ok(STANDARD)),
        ("MaxSpotInstanceCountExceeded", "quota", Ok(STANDARD)),
        ("InsufficientFreeAddressesInSubnet", "full", Ok(ZONE)),
        ("AuthFailure.ServiceLinkedRoleCreationNotPermitted", "no role", Ok(STANDARD)),
        ("RequestLimitExceeded", "slow down", Err("RequestLimitExceeded")),
        ("UnauthorizedOperation", "no", Err("Unauthorized")),
        ("AuthFailure", "Not authorized for images: [ami-1]", Err("AMIAuthorizationFailure")),
        (
            "InvalidParameter",
            "Security group sg-1 and subnet subnet-1 belong to different networks.",
            Err("SecurityGroupSubnetVPCMismatch"),
        ),
        (
            "InvalidParameterValue",
            "Value (x) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name",
            Err("InstanceProfileNameInvalid"),
        ),
        ("InvalidLaunchTemplateName.NotFoundException", "gone", Err("LaunchTemplateNotFound")),
        ("InvalidParameterValue", "User data is limited to 16384 bytes", Err("UserDataSizeLimitExceeded")),
        ("InvalidAMIID.Malformed", "bad", Err("InvalidAMIID")),
        ("InvalidAMIID.NotFound", "gone", Err("AMINotFound")),
        ("InternalError", "oops", Err("InternalError")),
        ("InvalidParameterCombination", "The specified instance type is not eligible for Free Tier.", Err("FreeTierIneligible")),
        ("MaxFleetCountExceeded", "quota", Err("FleetQuotaExceeded")),
        ("PendingVerification", "wait", Err("AccountPendingVerification")),
    ];
    for (code, message, expected) in table {
        let plan = plan(CapacityType::OnDemand);
        let output = CreateFleetOutput::builder().errors(error(code, message, Some(("c5.large", "subnet-a")))).build();
        let refusals = read(&output, &plan, &subnets()).refusals;
        let closed = sold_out(&refusals, &plan, &catalog(), &|_| true);
        match (failure(&refusals, &closed), expected) {
            (LaunchFailure::InsufficientCapacity(keys), Ok(golden)) => {
                assert_eq!(keys.iter().map(ToString::to_string).collect::<Vec<_>>(), golden, "{code}");
            }
            (LaunchFailure::Other(reason, text), Err(golden)) => {
                assert_eq!(reason, golden, "{code}");
                assert!(text.contains(message) && closed.is_empty(), "{code}: {text}");
            }
            (failure, _) => panic!("{code}: {failure:?}"),
        }
    }
}

#[test]
fn a_subnet_that_is_full_closes_its_zone_only_when_it_was_the_last() {
    let plan = plan(CapacityType::Spot);
    let output =
        CreateFleetOutput::builder().errors(error("InsufficientFreeAddressesInSubnet", "full", Some(("c5.large", "subnet-a")))).build();
    let refusals = read(&output, &plan, &subnets()).refusals;
    assert_eq!(refusals[0].subnet.as_deref(), Some("subnet-a"));
    let closed = sold_out(&refusals, &plan, &catalog(), &|_| false);
    assert_eq!(closed, []);
    assert!(matches!(failure(&refusals, &closed), LaunchFailure::Other(reason, _) if reason == "InsufficientFreeAddressesInSubnet"));
}

#[test]
fn one_other_word_and_it_is_no_lack_of_capacity() {
    let plan = plan(CapacityType::Spot);
    let output = CreateFleetOutput::builder()
        .errors(error("InsufficientInstanceCapacity", "none", Some(("c5.large", "subnet-a"))))
        .errors(error("RequestLimitExceeded", "slow down", Some(("m5.large", "subnet-b"))))
        .build();
    let refusals = read(&output, &plan, &subnets()).refusals;
    let closed = sold_out(&refusals, &plan, &catalog(), &|_| true);
    assert_eq!(closed.len(), 1, "what is sold out is still learned");
    assert!(matches!(failure(&refusals, &closed), LaunchFailure::Other(reason, _) if reason == "RequestLimitExceeded"));
}

#[test]
fn a_refusal_without_details_is_true_of_all_that_was_asked_for() {
    let plan = plan(CapacityType::Spot);
    let refusals = [Refusal { code: "InsufficientInstanceCapacity".to_owned(), ..Refusal::default() }];
    let closed: Vec<String> = sold_out(&refusals, &plan, &catalog(), &|_| true).iter().map(ToString::to_string).collect();
    assert_eq!(closed, ["spot c5.large a", "spot m5.large b"]);
    assert!(matches!(failure(&[], &[]), LaunchFailure::Other(reason, _) if reason == "LaunchFailed"));
}

#[test]
fn messages_are_cut() {
    assert_eq!(cut("short"), "short");
    assert_eq!(cut(&"ä".repeat(301)).chars().count(), 300);
    assert_eq!(cut(&"ä".repeat(300)).chars().count(), 300);
}
