//! Which offerings of a small catalogue EC2 is asked for.

use std::sync::Arc;

use whittle_model::{Labels, Requirement, Resources};

use super::*;

/// `name price-of-on-demand price-of-spot`, in zones a and b; what spot costs nothing is not sold as spot.
fn catalog(lines: &[&str]) -> Catalog {
    let mut types: Vec<InstanceType> = lines.iter().map(|line| instance_type(line)).collect();
    types.sort_by(|a, b| a.name.cmp(&b.name));
    Catalog { region: "r".to_owned(), types, ..Catalog::default() }
}

fn instance_type(line: &str) -> InstanceType {
    let mut words = line.split(' ');
    let name = words.next().unwrap_or_default().to_owned();
    let mut price = || Micros(words.next().and_then(|word| word.parse().ok()).unwrap_or(0));
    let (on_demand, spot) = (price(), price());
    let (family, size) = name.split_once('.').unwrap_or((&name, "large"));
    let labels: Labels = [
        (keys::INSTANCE_TYPE, name.as_str()),
        (keys::ARCH, if family.ends_with('g') { "arm64" } else { "amd64" }),
        ("karpenter.k8s.aws/instance-family", family),
        (SIZE, size),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .into();
    let gpus = i64::from(family.starts_with('p'));
    let capacity = Resources::of(&[("cpu", 4000), ("pods", 50), ("nvidia.com/gpu", gpus)]);
    let offering = |zone: &str, capacity_type, price| Offering {
        zone: zone.to_owned(),
        zone_id: format!("{zone}-id"),
        capacity_type,
        price,
        available: true,
        reservation: None,
    };
    let offerings = ["a", "b"].iter().flat_map(|zone| {
        let spot = (spot.0 > 0).then(|| offering(zone, CapacityType::Spot, spot));
        spot.into_iter().chain([offering(zone, CapacityType::OnDemand, on_demand)])
    });
    InstanceType {
        offerings: offerings.collect(),
        labels,
        requirements: Arc::new(
            [Requirement::any_of("karpenter.k8s.aws/instance-tenancy", &["default", "dedicated"])].into_iter().collect(),
        ),
        allocatable: capacity.clone(),
        capacity,
        name,
    }
}

fn claim(requirements: &[(&str, &[&str])]) -> NodeClaim {
    let requirements = requirements.iter().map(|(key, values)| Requirement::any_of(key, values)).collect();
    NodeClaim { name: "c".to_owned(), requirements, requests: Resources::of(&[("cpu", 1000)]), ..NodeClaim::default() }
}

fn shown(selection: Option<Selection>) -> String {
    let Some(selection) = selection else { return "nothing".to_owned() };
    let picks: Vec<String> = selection.picks.iter().map(|p| format!("{}/{}={}", p.instance_type, p.zone, p.priority)).collect();
    format!("{} {:?}: {}", selection.capacity_type, selection.ranking, picks.join(" "))
}

fn selected(claim: &NodeClaim, catalog: &Catalog) -> String {
    shown(select(claim, catalog, &BTreeSet::new(), &|_| true))
}

const SPOT: (&str, &[&str]) = (keys::CAPACITY_TYPE, &["spot"]);
const ON_DEMAND: (&str, &[&str]) = (keys::CAPACITY_TYPE, &["on-demand"]);

#[test]
fn filters_and_capacity_type() {
    let plain = ["c5.large 30 10", "m5.large 40 35", "m6g.large 20 9"];
    let catalog_of = |more: &[&str]| catalog(&[&plain[..], more].concat());
    let table: [(&str, Catalog, NodeClaim, &str); 11] = [
        (
            "spot before on-demand; spot dearer than the cheapest on-demand goes",
            catalog_of(&[]),
            claim(&[]),
            "spot Ec2: m6g.large/a=9 m6g.large/b=9 c5.large/a=10 c5.large/b=10",
        ),
        (
            "dear spot stays where on-demand is not allowed",
            catalog_of(&[]),
            claim(&[SPOT, (keys::ARCH, &["amd64"])]),
            "spot Ec2: c5.large/a=10 c5.large/b=10 m5.large/a=35 m5.large/b=35",
        ),
        (
            "on-demand in one zone",
            catalog_of(&[]),
            claim(&[ON_DEMAND, (keys::ZONE, &["b"])]),
            "on-demand Ec2: m6g.large/b=20 c5.large/b=30 m5.large/b=40",
        ),
        (
            "a zone by its id",
            catalog_of(&[]),
            claim(&[ON_DEMAND, (keys::ZONE_ID, &["a-id"]), (keys::ARCH, &["arm64"])]),
            "on-demand Ec2: m6g.large/a=20",
        ),
        (
            "metal and accelerators go when plain types remain",
            catalog(&["c5.large 30", "c5.metal 20", "p3.large 10"]),
            claim(&[]),
            "on-demand Ec2: c5.large/a=30 c5.large/b=30",
        ),
        (
            "and stay when there is nothing else",
            catalog(&["c5.metal 20", "p3.large 10"]),
            claim(&[(keys::ZONE, &["a"])]),
            "on-demand Ec2: p3.large/a=10 c5.metal/a=20",
        ),
        ("the other architecture", catalog_of(&[]), claim(&[(keys::ARCH, &["riscv"])]), "nothing"),
        ("the other region", catalog_of(&[]), claim(&[(keys::REGION, &["elsewhere"])]), "nothing"),
        (
            "labels of the pool are no matter, well-known ones that a type lacks are",
            catalog(&["c5.large 30"]),
            claim(&[("team", &["x"]), (keys::NODE_POOL, &["p"]), (keys::ZONE, &["a"])]),
            "on-demand Ec2: c5.large/a=30",
        ),
        ("a GPU by name", catalog(&["c5.large 30"]), claim(&[("karpenter.k8s.aws/instance-gpu-name", &["t4"])]), "nothing"),
        (
            "one of the tenancies a type can have",
            catalog(&["c5.large 30"]),
            claim(&[("karpenter.k8s.aws/instance-tenancy", &["dedicated"]), (keys::ZONE, &["a"])]),
            "on-demand Ec2: c5.large/a=30",
        ),
    ];
    for (case, catalog, claim, golden) in table {
        assert_eq!(selected(&claim, &catalog), golden, "{case}");
    }
}

#[test]
fn reservations_of_one_kind_go_before_all_else_and_to_those_alone_who_may_be_in_one() {
    let held = |id: &str, of_type: &str, zone: &str, (block, interruptible): (bool, bool), left| {
        let reservation = whittle_model::Reservation { id: id.to_owned(), block, interruptible, left };
        whittle_model::Held { reservation, instance_type: of_type.to_owned(), zone: zone.to_owned() }
    };
    let (plain, block, lent) = ((false, false), (true, false), (false, true));
    let named = |key, value: &'static str| claim(&[(key, &[value][..])]);
    let of = |held: &[whittle_model::Held], claim: &NodeClaim| {
        let mut catalog = catalog(&["c5.large 30000000 10", "m5.large 40000000 35"]);
        catalog.reserve(held);
        let selection = select(claim, &catalog, &BTreeSet::new(), &|_| true);
        let picks =
            selection.iter().flat_map(|s| &s.picks).map(|p| (p.reservation.as_ref().map_or("none", |r| &r.id).to_owned(), p.zone.clone()));
        picks.map(|(id, zone)| format!("{id}/{zone}")).collect::<Vec<_>>().join(" ")
    };
    let two = [held("cr-1", "m5.large", "a", plain, 1), held("cr-2", "m5.large", "a", plain, 2), held("cr-3", "m5.large", "b", plain, 1)];
    let kinds = [held("cr-1", "c5.large", "a", lent, 5), held("cr-2", "m5.large", "b", plain, 1), held("cr-3", "m5.large", "b", block, 1)];
    let blocks = [held("cr-1", "m5.large", "a", block, 1), held("cr-2", "m5.large", "b", block, 3)];
    let full = [held("cr-1", "m5.large", "a", plain, 0)];
    let no_reservation = NodeClaim { requirements: [Requirement::absent(keys::RESERVATION_ID)].into_iter().collect(), ..claim(&[]) };
    for (case, held, claim, golden) in [
        ("of one type in one zone that with most left", &two[..], claim(&[]), "cr-2/a cr-3/b"),
        ("the one that is named", &two, named(keys::RESERVATION_ID, "cr-1"), "cr-1/a"),
        ("the cheapest decides on the kind", &kinds, claim(&[]), "cr-1/a"),
        ("a kind by its label", &kinds, named(keys::RESERVATION_TYPE, "capacity-block"), "cr-3/b"),
        ("those that stay", &kinds, named(keys::RESERVATION_INTERRUPTIBLE, "false"), "cr-2/b"),
        ("one block alone", &blocks, claim(&[]), "cr-2/b"),
        ("a reservation that there is not", &two, named(keys::RESERVATION_ID, "cr-9"), ""),
        ("none on demand", &two, claim(&[ON_DEMAND]), "none/a none/b none/a none/b"),
        ("full ones are not for sale", &full, claim(&[(keys::ZONE, &["a"]), SPOT]), "none/a none/a"),
        ("whoever may be in none", &two, no_reservation, "none/a none/b none/a none/b"),
    ] {
        assert_eq!(of(held, &claim), golden, "{case}");
    }
}

#[test]
fn what_is_too_small_sold_out_unavailable_or_cannot_boot_is_left_out() {
    let mut catalog = catalog(&["c5.large 30", "m5.large 40"]);
    let claim_of = |cpu| NodeClaim { requests: Resources::of(&[("cpu", cpu)]), ..claim(&[]) };
    assert_eq!(selected(&claim_of(4001), &catalog), "nothing");
    let key = OfferingKey { instance_type: "c5.large".to_owned(), zone: "a".to_owned(), capacity_type: CapacityType::OnDemand };
    let without = |bootable: &dyn Fn(&InstanceType) -> bool| shown(select(&claim_of(1), &catalog, &[key.clone()].into(), bootable));
    assert_eq!(without(&|_| true), "on-demand Ec2: c5.large/b=30 m5.large/a=40 m5.large/b=40");
    assert_eq!(without(&|t| t.name != "m5.large"), "on-demand Ec2: c5.large/b=30");
    catalog.types[0].offerings[1].available = false;
    assert_eq!(selected(&claim_of(1), &catalog), "on-demand Ec2: c5.large/a=30 m5.large/a=40 m5.large/b=40");
}

#[test]
fn an_overlay_makes_ec2_go_by_our_prices() {
    let mut claim = claim(&[(keys::ZONE, &["a"])]);
    claim.annotations.insert(PRICE_OVERLAY.to_owned(), "true".to_owned());
    assert_eq!(selected(&claim, &catalog(&["c5.large 30"])), "on-demand Prices: c5.large/a=30");
}

#[test]
fn the_sixty_cheapest_types_are_asked_for() {
    let lines: Vec<String> = (0..70).map(|n| format!("c{n}.large {}", 1000 - n)).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let selection = select(&claim(&[]), &catalog(&lines), &BTreeSet::new(), &|_| true).unwrap();
    let types: BTreeSet<&str> = selection.picks.iter().map(|pick| pick.instance_type.as_str()).collect();
    assert_eq!((types.len(), selection.picks.len()), (60, 120));
    let prices: Vec<i64> = selection.picks.iter().map(|pick| pick.priority).collect();
    assert_eq!((prices[0], prices[119]), (931, 990), "the ten dearest are left out");
    assert!(prices.is_sorted());
}

#[test]
fn min_values_keep_dear_types_that_are_needed_and_fail_when_there_are_too_few() {
    let mut lines: Vec<String> = (0..70).map(|n| format!("c5.{n}xlarge {}", 100 + n)).collect();
    lines.extend(["m5.large 900 950".to_owned(), "p3.large 999".to_owned()]);
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let with = |least: u32| {
        let family = Requirement::exists("karpenter.k8s.aws/instance-family").with_min_values(Some(least));
        let claim = NodeClaim { requirements: [family].into_iter().collect(), ..claim(&[]) };
        let selection = select(&claim, &catalog(&lines), &BTreeSet::new(), &|_| true)?;
        Some((selection.picks.len(), selection.picks.last().unwrap().instance_type.clone()))
    };
    assert_eq!(with(1).unwrap().0, 120);
    // Dear spot is no longer filtered: spot is chosen where any type has it.
    assert_eq!(with(2), Some((2, "m5.large".to_owned())));
    assert_eq!(with(3), Some((2, "m5.large".to_owned())));
    assert_eq!(with(4), None);
}

#[test]
fn a_chain_s_list_is_asked_for_in_its_order() {
    let catalog = catalog(&["c5.large 30 10", "m5.large 40 35", "p3.large 99 50"]);
    let listed = |offers: &str| {
        let mut claim = claim(&[SPOT]);
        claim.annotations.insert(keys::OFFERS.to_owned(), offers.to_owned());
        selected(&claim, &catalog)
    };
    for (offers, golden) in [
        (r#"[["m5.large","b",7],["p3.large","a",8],["c5.large","a",9]]"#, "spot List: m5.large/b=0 p3.large/a=1 c5.large/a=2"),
        (r#"[["gone.large","b",7],["m5.large","c",7],["c5.large","a",9]]"#, "spot List: c5.large/a=0"),
        (r"[]", "nothing"),
        ("no list", "nothing"),
    ] {
        assert_eq!(listed(offers), golden, "{offers}");
    }
}
