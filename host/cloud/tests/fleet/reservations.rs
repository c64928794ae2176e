//! Launches into capacity reservations.

use std::sync::Arc;

use whittle_cloud::fleet::{LaunchOrder, LaunchSettings};
use whittle_model::{CapacityType, Catalog, Held, LaunchFailure, OfferingKey, Requirement, Reservation, keys};

use super::{
    ec2::Ec2,
    orders::{NOW, catalog, failure, fleet, launched, order},
};

fn held(id: &str, zone: &str, block: bool, interruptible: bool, left: u32) -> Held {
    let reservation = Reservation { id: id.to_owned(), block, interruptible, left };
    Held { reservation, instance_type: "m5.large".to_owned(), zone: zone.to_owned() }
}

fn holding(all: &[Held]) -> Arc<Catalog> {
    let mut catalog = (*catalog(&["c5.large 30 10", "m5.large 40 12"])).clone();
    catalog.reserve(all);
    Arc::new(catalog)
}

/// An order of a claim that is planned for a reservation, as the engine writes it.
fn into_reservation(name: &str, id: &str, all: &[Held]) -> LaunchOrder {
    let mut order = LaunchOrder { catalog: holding(all), settings: LaunchSettings { targeted_reservations: true }, ..order(name) };
    order.claim.requirements.add(Requirement::any_of(keys::CAPACITY_TYPE, &["reserved"]));
    order.claim.requirements.add(Requirement::any_of(keys::RESERVATION_ID, &[id]));
    order
}

#[tokio::test]
async fn a_claim_is_launched_into_the_reservation_that_it_names() {
    for (one, kind, market) in [
        (held("cr-2", "b", false, false, 3), "on-demand", None),
        (held("cr-2", "b", true, false, 3), "capacity-block", Some("capacity-block")),
        (held("cr-2", "b", false, true, 3), "reserved-capacity", Some("interruptible-capacity-reservation")),
    ] {
        let ec2 = Ec2::start();
        // More is left of the other one, and it is in the zone that comes first.
        let all = [held("cr-1", "a", one.reservation.block, one.reservation.interruptible, 9), one];
        let bought = launched(fleet(&ec2).await.launch(into_reservation("c-1", "cr-2", &all), NOW).await);
        assert_eq!((bought.instance_type.as_str(), bought.zone.as_str()), ("m5.large", "b"), "{kind}");
        assert_eq!((bought.capacity_type, bought.reservation.as_deref()), (CapacityType::Reserved, Some("cr-2")), "{kind}");
        assert_eq!(ec2.running()[0].reservation.as_deref(), Some("cr-2"), "{kind}");
        let template = &ec2.calls("CreateLaunchTemplate")[0];
        let said = |field: &str| template.get(&format!("LaunchTemplateData.{field}")).map(String::as_str);
        let preference = said("CapacityReservationSpecification.CapacityReservationPreference");
        assert_eq!(preference, Some("capacity-reservations-only"), "{kind}");
        assert_eq!(said("InstanceMarketOptions.MarketType"), market, "{kind}");
        assert_eq!(ec2.calls("CreateFleet")[0]["TargetCapacitySpecification.DefaultTargetCapacityType"], kind);
    }
}

#[tokio::test]
async fn a_claim_that_names_none_goes_where_most_is_left_of_those_that_stay() {
    let ec2 = Ec2::start();
    let all = [held("cr-1", "a", false, true, 9), held("cr-2", "a", false, false, 1), held("cr-3", "a", false, false, 2)];
    let mut order = LaunchOrder { catalog: holding(&all), settings: LaunchSettings { targeted_reservations: true }, ..order("c-1") };
    order.claim.requirements.add(Requirement::any_of(keys::ZONE, &["a"]));
    assert_eq!(launched(fleet(&ec2).await.launch(order, NOW).await).reservation.as_deref(), Some("cr-3"));
}

#[tokio::test]
async fn a_reservation_that_is_full_is_sold_out_and_nothing_else_is() {
    let ec2 = Ec2::start();
    ec2.with(|state| state.sold_out.insert("on-demand m5.large a".to_owned(), "ReservationCapacityExceeded"));
    let all = [held("cr-1", "a", false, false, 1)];
    let why = failure(fleet(&ec2).await.launch(into_reservation("c-1", "cr-1", &all), NOW).await);
    let reserved = OfferingKey { instance_type: "m5.large".to_owned(), zone: "a".to_owned(), capacity_type: CapacityType::Reserved };
    assert_eq!(why, LaunchFailure::InsufficientCapacity(vec![reserved]));
}

#[tokio::test]
async fn an_instance_in_a_reservation_is_adopted_by_those_that_named_it_alone() {
    let ec2 = Ec2::start();
    let all = [held("cr-1", "a", false, false, 5), held("cr-2", "b", false, false, 5)];
    launched(fleet(&ec2).await.launch(into_reservation("c-1", "cr-1", &all), NOW).await);
    // The controller starts again and knows nothing of it.
    let fleet = fleet(&ec2).await;
    let adopting = |name, id| LaunchOrder { adopt: true, ..into_reservation(name, id, &all) };
    let other = launched(fleet.launch(adopting("c-2", "cr-2"), NOW).await);
    assert_eq!((other.provider_id.as_str(), other.reservation.as_deref()), ("aws:///b/i-0002", Some("cr-2")));
    let same = launched(fleet.launch(adopting("c-3", "cr-1"), NOW).await);
    assert_eq!((same.provider_id.as_str(), same.reservation.as_deref()), ("aws:///a/i-0001", Some("cr-1")));
    assert_eq!(ec2.running().len(), 2);
}

#[tokio::test]
async fn what_ec2_put_into_an_open_reservation_is_on_demand_and_adopted_as_such() {
    let ec2 = Ec2::start();
    ec2.with(|state| state.open_reservation = Some("cr-9".to_owned()));
    let on_demand = |adopt| {
        let mut order = LaunchOrder { adopt, ..order("c-1") };
        order.claim.requirements.add(Requirement::any_of(keys::CAPACITY_TYPE, &["on-demand"]));
        order
    };
    for adopt in [false, true] {
        let bought = launched(fleet(&ec2).await.launch(on_demand(adopt), NOW).await);
        assert_eq!((bought.provider_id.as_str(), bought.reservation), ("aws:///a/i-0001", None));
        assert_eq!(bought.capacity_type, CapacityType::OnDemand);
    }
    assert_eq!(ec2.running().len(), 1, "it was not bought twice");
}
