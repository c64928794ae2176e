//! What EC2 is asked for a launch, and what its answers come to.

use std::{collections::BTreeSet, sync::Arc};

use whittle_model::{CapacityType, LaunchFailure, Micros, OfferingKey, Outcome, Requirement, keys};

use super::{
    ec2::{Ec2, Fault, Params, tags},
    orders::{NOW, catalog, failure, fleet, launch_all, launched, order},
};

/// What EC2 is asked for, a line each: `type zone subnet priority`.
fn overrides(params: &Params) -> Vec<String> {
    let of = |n: usize, field: &str| params.get(&format!("LaunchTemplateConfigs.1.Overrides.{n}.{field}")).cloned().unwrap_or_default();
    let line = |n| format!("{} {} {} {}", of(n, "InstanceType"), of(n, "AvailabilityZone"), of(n, "SubnetId"), of(n, "Priority"));
    (1..).take_while(|n| !of(*n, "InstanceType").is_empty()).map(line).collect()
}

fn rest(params: &Params) -> Vec<String> {
    let shown =
        |key: &str| key != "Version" && ["Capacity", "Strategy", "Type", "Version", "Context"].iter().any(|part| key.contains(part));
    let lines = params.iter().filter(|(key, _)| shown(key) && !key.contains("Overrides") && !key.contains("Resource"));
    lines.map(|(key, value)| format!("{key}={value}")).collect()
}

#[tokio::test]
async fn a_spot_fleet_by_price_and_capacity() {
    let ec2 = Ec2::start();
    let fleet = fleet(&ec2).await;
    let bought = launched(fleet.launch(order("c-1"), NOW).await);
    assert_eq!((bought.provider_id.as_str(), bought.instance_type.as_str(), bought.zone.as_str()), ("aws:///a/i-0001", "c5.large", "a"));
    assert_eq!((bought.capacity_type, bought.price, bought.image.as_str()), (CapacityType::Spot, Micros(10), "ami-1"));
    assert_eq!((bought.allocatable.get("cpu"), bought.sold_out), (3900, vec![]));
    let request = &ec2.calls("CreateFleet")[0];
    assert_eq!(
        overrides(request),
        ["c5.large a subnet-a1 0.00001", "c5.large b subnet-b1 0.00001", "m5.large a subnet-a1 0.000012", "m5.large b subnet-b1 0.000012"]
    );
    assert_eq!(
        rest(request),
        [
            "LaunchTemplateConfigs.1.LaunchTemplateSpecification.Version=$Latest",
            "SpotOptions.AllocationStrategy=price-capacity-optimized",
            "TargetCapacitySpecification.DefaultTargetCapacityType=spot",
            "TargetCapacitySpecification.TotalTargetCapacity=1",
            "Type=instant"
        ]
    );
    for kind in ["instance", "volume", "fleet"] {
        let tags: Vec<String> = tags(request, kind).iter().map(|(key, value)| format!("{key}={value}")).collect();
        assert_eq!(
            tags,
            [
                "eks:eks-cluster-name=demo",
                "karpenter.k8s.aws/ec2nodeclass=default",
                "karpenter.sh/nodepool=general",
                "kubernetes.io/cluster/demo=owned",
                "team=x",
                "whittle.sh/launch=g"
            ]
        );
    }
}

#[tokio::test]
async fn on_demand_goes_by_lowest_price_and_a_chain_by_its_list() {
    let ec2 = Ec2::start();
    let fleet = fleet(&ec2).await;
    let mut plain = order("c-1");
    plain.claim.requirements.add(Requirement::any_of(keys::CAPACITY_TYPE, &["on-demand"]));
    let mut chained = order("c-2");
    chained.claim.requirements.add(Requirement::any_of(keys::CAPACITY_TYPE, &["on-demand"]));
    chained.claim.annotations.insert(keys::OFFERS.to_owned(), r#"[["m5.large","b",5],["c5.large","a",7],["m5.large","a",9]]"#.to_owned());
    let mut overlaid = order("c-3");
    overlaid.claim.annotations.insert("karpenter.sh/price-overlay-applied".to_owned(), "true".to_owned());
    for order in [plain, chained, overlaid] {
        launched(fleet.launch(order, NOW).await);
    }
    let calls = ec2.calls("CreateFleet");
    assert_eq!(rest(&calls[0])[1], "OnDemandOptions.AllocationStrategy=lowest-price");
    assert_eq!(rest(&calls[1])[1], "OnDemandOptions.AllocationStrategy=prioritized");
    assert_eq!(rest(&calls[2])[1], "SpotOptions.AllocationStrategy=capacity-optimized-prioritized");
    assert_eq!(overrides(&calls[1]), ["m5.large b subnet-b1 0.0", "c5.large a subnet-a1 1.0", "m5.large a subnet-a1 2.0"]);
}

#[tokio::test]
async fn sixty_types_at_most() {
    let ec2 = Ec2::start();
    let fleet = fleet(&ec2).await;
    let lines: Vec<String> = (0..70).map(|n| format!("c{n}.large {}", 1000 + n)).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    launched(fleet.launch(whittle_cloud::fleet::LaunchOrder { catalog: catalog(&lines), ..order("c-1") }, NOW).await);
    assert_eq!(overrides(&ec2.calls("CreateFleet")[0]).len(), 120, "60 types in two zones");
}

#[tokio::test]
async fn claims_of_one_shape_share_a_call_and_are_served_in_the_order_of_their_names() {
    let ec2 = Ec2::start();
    let fleet = Arc::new(fleet(&ec2).await);
    let mut other = order("c-0");
    other.claim.annotations.insert(keys::LAUNCH_GROUP.to_owned(), "other".to_owned());
    let outcomes = launch_all(&fleet, vec![order("c-3"), order("c-1"), other, order("c-2")]).await;
    let ids: Vec<String> = outcomes.into_iter().map(|outcome| launched(outcome).provider_id).collect();
    let calls = ec2.calls("CreateFleet");
    assert_eq!(calls.len(), 2, "another group is another call");
    assert!(ids[1] < ids[3] && ids[3] < ids[0], "c-1, c-2, c-3: {ids:?}");
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 4);
    let mut counts: Vec<&str> = calls.iter().map(|call| call["TargetCapacitySpecification.TotalTargetCapacity"].as_str()).collect();
    counts.sort_unstable();
    assert_eq!(counts, ["1", "3"]);
    assert_ne!(calls[0]["ClientToken"], calls[1]["ClientToken"]);
    assert_eq!(ec2.count("CreateLaunchTemplate"), 1, "groups share templates");
}

#[tokio::test]
async fn claims_of_one_group_that_ask_for_different_things_do_not_share_a_call() {
    let ec2 = Ec2::start();
    let fleet = Arc::new(fleet(&ec2).await);
    let mut other = order("c-2");
    other.claim.requirements.add(Requirement::any_of(keys::CAPACITY_TYPE, &["on-demand"]));
    let outcomes = launch_all(&fleet, vec![order("c-1"), other, order("c-3")]).await;
    let kinds: Vec<CapacityType> = outcomes.into_iter().map(|outcome| launched(outcome).capacity_type).collect();
    assert_eq!(kinds, [CapacityType::Spot, CapacityType::OnDemand, CapacityType::Spot]);
    assert_eq!(ec2.count("CreateFleet"), 2);
}

#[tokio::test]
async fn a_fleet_that_is_filled_in_part_serves_the_first_and_tells_the_others_why() {
    let ec2 = Ec2::start();
    ec2.with(|state| state.stock = Some(2));
    let fleet = Arc::new(fleet(&ec2).await);
    let outcomes = launch_all(&fleet, vec![order("c-1"), order("c-2"), order("c-3")]).await;
    let sold_out = vec![OfferingKey { instance_type: "c5.large".to_owned(), zone: "a".to_owned(), capacity_type: CapacityType::Spot }];
    assert_eq!(launched(outcomes[0].clone()).sold_out, sold_out, "learned although something was bought");
    assert_eq!(launched(outcomes[1].clone()).sold_out, sold_out);
    assert_eq!(failure(outcomes[2].clone()), LaunchFailure::InsufficientCapacity(sold_out));
}

#[tokio::test]
async fn what_is_sold_out_is_learned_at_its_scope() {
    let ec2 = Ec2::start();
    ec2.with(|state| {
        state.sold_out = [("spot c5.large a", "InsufficientInstanceCapacity"), ("spot c5.large b", "MaxSpotInstanceCountExceeded")]
            .map(|(pool, code)| (pool.to_owned(), code))
            .into();
    });
    let bought = launched(fleet(&ec2).await.launch(order("c-1"), NOW).await);
    assert_eq!((bought.instance_type.as_str(), bought.zone.as_str()), ("m5.large", "a"));
    let learned: Vec<String> = bought.sold_out.iter().map(ToString::to_string).collect();
    assert_eq!(learned, ["spot c5.large a", "spot c5.large b", "spot m5.large a", "spot m5.large b"], "the quota counts both families");
}

#[tokio::test]
async fn a_full_subnet_is_left_for_another_of_its_zone() {
    let ec2 = Ec2::start();
    let fleet = fleet(&ec2).await;
    let in_zone_a = |name| {
        let mut order = order(name);
        order.claim.requirements.add(Requirement::any_of(keys::ZONE, &["a"]));
        order.claim.requirements.add(Requirement::any_of(keys::INSTANCE_TYPE, &["c5.large"]));
        order
    };
    ec2.with(|state| state.sold_out = [("spot c5.large a".to_owned(), "InsufficientFreeAddressesInSubnet")].into());
    let LaunchFailure::Other(reason, _) = failure(fleet.launch(in_zone_a("c-1"), NOW).await) else { panic!("the zone has another subnet") };
    assert_eq!(reason, "InsufficientFreeAddressesInSubnet");
    let LaunchFailure::InsufficientCapacity(closed) = failure(fleet.launch(in_zone_a("c-1"), NOW).await) else { panic!("it was the last") };
    assert_eq!(closed.len(), 4, "both types under both capacity types in zone a");
    let subnets: Vec<String> = ec2.calls("CreateFleet").iter().map(|call| overrides(call)[0].clone()).collect();
    assert_eq!(subnets, ["c5.large a subnet-a1 0.00001", "c5.large a subnet-a2 0.00001"]);
}

#[tokio::test]
async fn errors_of_the_call_go_to_all() {
    for (code, expected) in [
        ("UnauthorizedOperation", "Unauthorized"),
        ("InvalidParameterValue", "LaunchFailed"),
        ("MaxFleetCountExceeded", "FleetQuotaExceeded"),
        ("InternalFailureOfSorts", "LaunchFailed"),
    ] {
        let ec2 = Ec2::start();
        ec2.fail("CreateFleet", Fault::Refused(code));
        let fleet = Arc::new(fleet(&ec2).await);
        for outcome in launch_all(&fleet, vec![order("c-1"), order("c-2")]).await {
            let LaunchFailure::Other(reason, message) = failure(outcome) else { panic!("{code} is no lack of capacity") };
            assert_eq!(reason, expected);
            assert!(message.starts_with("cannot CreateFleet for launch group g: ") && message.contains(code), "{message}");
        }
        assert_eq!(ec2.count("CreateFleet"), 1, "{code}: one call for both, and none more");
    }
}

#[tokio::test]
async fn throttling_is_waited_out_and_never_a_lack_of_capacity() {
    let ec2 = Ec2::start();
    for _ in 0..3 {
        ec2.fail("CreateFleet", Fault::Refused("RequestLimitExceeded"));
    }
    let fleet = Arc::new(fleet(&ec2).await);
    for outcome in launch_all(&fleet, vec![order("c-1"), order("c-2")]).await {
        assert_eq!(launched(outcome).sold_out, []);
    }
    let calls = ec2.calls("CreateFleet");
    assert_eq!(calls.len(), 4, "no fan-out");
    assert_eq!(calls.iter().map(|call| &call["ClientToken"]).collect::<BTreeSet<_>>().len(), 1);
    for _ in 0..50 {
        ec2.fail("CreateFleet", Fault::Refused("RequestLimitExceeded"));
    }
    let why = failure(fleet.launch(order("c-3"), NOW).await);
    assert!(matches!(why, LaunchFailure::Other(reason, _) if reason == "RequestLimitExceeded"));
}

#[tokio::test]
async fn many_groups_at_once_get_through_a_narrow_bucket() {
    let ec2 = Ec2::start();
    ec2.with(|state| state.buckets = [("CreateFleet", (5.0, 100.0)), ("CreateLaunchTemplate", (1.0, 20.0))].into());
    let fleet = Arc::new(fleet(&ec2).await);
    let orders = (0..40).map(|n| {
        let mut order = order(&format!("c-{n}"));
        order.claim.annotations.insert(keys::LAUNCH_GROUP.to_owned(), format!("g-{n}"));
        order
    });
    for outcome in launch_all(&fleet, orders.collect()).await {
        assert_eq!(launched(outcome).sold_out, []);
    }
    let calls = ec2.count("CreateFleet");
    assert_eq!(ec2.running().len(), 40);
    assert!((41..120).contains(&calls), "refused, and slower then: {calls} calls for 40 groups");
}

#[tokio::test]
async fn a_class_that_is_not_ready_and_a_claim_that_nothing_fits() {
    let ec2 = Ec2::start();
    let fleet = fleet(&ec2).await;
    let with_status = |status| {
        let mut class = super::orders::class();
        class.resolved.conditions[0].status = status;
        whittle_cloud::fleet::LaunchOrder { class: Arc::new(class), ..order("c-1") }
    };
    let not_ready = failure(fleet.launch(with_status(whittle_cloud::class::ConditionStatus::False), NOW).await);
    assert!(matches!(not_ready, LaunchFailure::NodeClassNotReady(_)));
    let unknown = failure(fleet.launch(with_status(whittle_cloud::class::ConditionStatus::Unknown), NOW).await);
    assert!(matches!(unknown, LaunchFailure::Other(reason, _) if reason == "NodeClassReadinessUnknown"));
    let mut huge = order("c-1");
    huge.claim.requests.set("cpu", 999_000);
    assert_eq!(failure(fleet.launch(huge, NOW).await), LaunchFailure::InsufficientCapacity(vec![]));
    let mut listed = order("c-1");
    listed.claim.annotations.insert(keys::OFFERS.to_owned(), "[]".to_owned());
    assert!(matches!(failure(fleet.launch(listed, NOW).await), LaunchFailure::Other(..)));
    assert_eq!(ec2.with(|state| state.calls.len()), 0);
}

#[tokio::test]
async fn what_no_image_boots_is_left_out_and_counts_as_sold_out_when_nothing_else_is_left() {
    let ec2 = Ec2::start();
    let fleet = fleet(&ec2).await;
    let only_c5 = [Requirement::any_of(keys::INSTANCE_TYPE, &["c5.large"])].into_iter().collect();
    let mut class = super::orders::class();
    class.resolved.amis[0].requirements = only_c5;
    let class = Arc::new(class);
    let order = |name: &str| whittle_cloud::fleet::LaunchOrder { class: class.clone(), ..order(name) };
    launched(fleet.launch(order("c-1"), NOW).await);
    assert_eq!(overrides(&ec2.calls("CreateFleet")[0]).len(), 2, "c5.large in two zones");
    let mut other = order("c-2");
    other.claim.requirements.add(Requirement::any_of(keys::INSTANCE_TYPE, &["m5.large"]));
    let LaunchFailure::InsufficientCapacity(closed) = failure(fleet.launch(other, NOW).await) else { panic!("it is planned around") };
    assert_eq!(closed.len(), 4, "m5.large in both zones, both capacity types");
}

#[tokio::test]
async fn a_repeated_order_gets_the_same_instance_and_a_failed_one_is_tried_again() {
    let ec2 = Ec2::start();
    ec2.fail("CreateFleet", Fault::Refused("InvalidParameterValue"));
    let fleet = Arc::new(fleet(&ec2).await);
    failure(fleet.launch(order("c-1"), NOW).await);
    let outcomes = launch_all(&fleet, vec![order("c-1"), order("c-1"), order("c-1")]).await;
    let first = outcomes[0].clone();
    assert!(matches!(first, Outcome::Launched(_)) && outcomes.iter().all(|outcome| *outcome == first));
    assert_eq!(fleet.launch(order("c-1"), NOW).await, first, "from memory");
    assert_eq!((ec2.running().len(), ec2.count("CreateFleet")), (1, 2));
}
