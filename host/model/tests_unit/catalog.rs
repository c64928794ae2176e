//! What a catalogue makes of capacity reservations.

use std::sync::Arc;

use super::*;

fn offering(zone: &str, capacity_type: CapacityType, micros: i64, available: bool) -> Offering {
    let (zone, zone_id) = (zone.to_owned(), format!("id-{zone}"));
    Offering { zone, zone_id, capacity_type, price: Micros(micros), available, reservation: None }
}

fn catalog() -> Catalog {
    let of_type = |name: &str, micros: i64| InstanceType {
        name: name.to_owned(),
        labels: Labels::new(),
        requirements: Arc::new(Requirements::default()),
        capacity: Resources::default(),
        allocatable: Resources::default(),
        offerings: vec![
            offering("a", CapacityType::Spot, micros / 3, true),
            offering("a", CapacityType::OnDemand, micros, true),
            offering("b", CapacityType::OnDemand, micros, false),
        ],
    };
    Catalog { types: vec![of_type("large", 98_000_000), of_type("small", 90_000)], ..Catalog::default() }
}

fn held(id: &str, instance_type: &str, zone: &str, left: u32) -> Held {
    let reservation = Reservation { id: id.to_owned(), block: false, interruptible: false, left };
    Held { reservation, instance_type: instance_type.to_owned(), zone: zone.to_owned() }
}

/// Id, zone id, price, whether it is for sale.
fn reserved(catalog: &Catalog, of_type: &str) -> Vec<(String, String, i64, bool)> {
    let offerings = catalog.get(of_type).map_or(&[][..], |t| &t.offerings);
    let of = |o: &Offering| o.reservation.as_ref().map(|r| (r.id.clone(), o.zone_id.clone(), o.price.0, o.available));
    offerings.iter().filter_map(of).collect()
}

#[test]
fn a_reservation_is_an_offering_next_to_free() {
    let mut all = catalog();
    all.reserve(&[held("cr-1", "large", "a", 2), held("cr-2", "small", "a", 1)]);
    assert_eq!(reserved(&all, "large"), [("cr-1".to_owned(), "id-a".to_owned(), 9, true)]);
    assert_eq!(reserved(&all, "small"), [("cr-2".to_owned(), "id-a".to_owned(), 0, true)]);
    let order: Vec<_> =
        all.get("large").map(|t| t.offerings.iter().map(|o| (o.zone.clone(), o.capacity_type)).collect()).unwrap_or_default();
    assert!(order.is_sorted(), "{order:?}");
}

#[test]
fn what_is_used_up_or_out_of_reach_is_not_for_sale() {
    let mut all = catalog();
    all.reserve(&[
        held("cr-1", "large", "a", 0),
        held("cr-2", "large", "b", 1),
        held("cr-3", "large", "z", 1),
        held("cr-4", "none", "a", 1),
    ]);
    let sold: Vec<(String, bool)> = reserved(&all, "large").into_iter().map(|(id, _, _, sold)| (id, sold)).collect();
    assert_eq!(sold, [("cr-1".to_owned(), false), ("cr-2".to_owned(), false)], "no subnet in b, no zone z, no such type");
    let again: Vec<Held> = all.held().map(|one| Held { reservation: Reservation { left: 1, ..one.reservation }, ..one }).collect();
    all.reserve(&again);
    let sold: Vec<(String, bool)> = reserved(&all, "large").into_iter().map(|(id, _, _, sold)| (id, sold)).collect();
    assert_eq!(sold, [("cr-1".to_owned(), true), ("cr-2".to_owned(), false)], "each stands there once");
}
