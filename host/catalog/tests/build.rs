//! The catalogue as a whole: regions, zones, offerings and prices, and files that replace the
//! compiled-in tables.

use whittle_catalog::{
    AmiFamily, CatalogError, CatalogOptions, Facts, Image, Nic, Offered, Placement, Prices, REGIONS, Sources, Spot, SpotModel, build,
    incompatible, labels, zones_of,
};
use whittle_model::resources::{MEMORY, PODS};
use whittle_model::{CapacityType, Catalog, InstanceType, Micros, Offering, Requirement, keys};

const FIRST_LINE: &str = "region,instance_type,micro_usd_per_hour";

fn catalog(options: &CatalogOptions) -> Catalog {
    build(options, &Sources::builtin(1)).expect("the options are good")
}

fn in_region(region: &str) -> CatalogOptions {
    CatalogOptions { region: region.to_owned(), ..CatalogOptions::default() }
}

fn offerings<'c>(catalog: &'c Catalog, name: &str) -> &'c [Offering] {
    &catalog.get(name).expect("the catalogue has the type").offerings
}

#[test]
fn every_region_has_its_types_in_order_with_ordered_offerings() {
    for (region, zones, types) in [("us-east-1", 6, 1360), ("us-west-2", 4, 1339), ("eu-west-1", 3, 1175)] {
        let catalog = catalog(&in_region(region));
        assert_eq!((catalog.region.as_str(), catalog.price_region.as_str()), (region, "us-east-1"));
        assert_eq!(catalog.types.len(), types, "{region}");
        assert!(catalog.types.is_sorted_by(|a, b| a.name < b.name));
        assert_eq!(zones_of(region).unwrap().len(), zones);
        for made in &catalog.types {
            assert_eq!(made.labels[keys::REGION], region);
            let places: Vec<_> = made.offerings.iter().map(|o| (o.zone.as_str(), o.capacity_type)).collect();
            assert!(!places.is_empty() && places.is_sorted_by(|a, b| a < b), "{}: {places:?}", made.name);
            assert!(made.offerings.iter().all(|o| o.available == (o.price > Micros(0))), "{}", made.name);
        }
    }
}

#[test]
fn a_region_that_is_not_compiled_in_is_refused_with_those_that_are() {
    let refused = build(&in_region("eu-north-1"), &Sources::builtin(1)).unwrap_err();
    assert_eq!(refused, CatalogError::UnknownRegion { region: "eu-north-1".into() });
    for region in REGIONS {
        assert!(refused.to_string().contains(region), "{refused}");
    }
}

#[test]
fn on_demand_is_the_list_price_and_spot_a_share_of_it() {
    let catalog = catalog(&CatalogOptions::default());
    let m5 = offerings(&catalog, "m5.large");
    assert_eq!(m5.len(), 10, "two ways in the five zones that have it");
    let model = SpotModel { seed: 1 };
    for offering in m5 {
        let expected = match offering.capacity_type {
            CapacityType::OnDemand => Micros(96_000),
            CapacityType::Spot => model.price("m5.large", &offering.zone, Micros(96_000)),
            CapacityType::Reserved => panic!("nobody reserved anything"),
        };
        assert_eq!(offering.price, expected);
    }
    assert!(offerings(&catalog, "hpc7g.4xlarge").iter().all(|o| o.capacity_type == CapacityType::OnDemand), "never sold as spot");
    let unpriced = offerings(&catalog, "r9g.large");
    assert!(unpriced.iter().all(|o| !o.available && o.price == Micros(0)), "no price, not for sale");
}

#[test]
fn zones_without_subnet_are_not_available_and_unknown_ones_refused() {
    let with =
        |zones: &[&str]| CatalogOptions { zones: Some(zones.iter().map(|z| (*z).to_owned()).collect()), ..CatalogOptions::default() };
    let catalog = catalog(&with(&["us-east-1b"]));
    for offering in offerings(&catalog, "m5.large") {
        assert_eq!(offering.available, offering.zone == "us-east-1b");
    }
    let refused = build(&with(&["us-west-2a"]), &Sources::builtin(1)).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "cannot build a catalogue for zone \"us-west-2a\": region us-east-1 has no such zone; \
         its zones are us-east-1a, us-east-1b, us-east-1c, us-east-1d, us-east-1e, us-east-1f"
    );
}

#[test]
fn zone_ids_are_the_accounts_own_or_assumed_and_said_to_be() {
    let mut options = in_region("us-west-2");
    options.zone_ids.insert("us-west-2a".into(), "usw2-az2".into());
    let catalog = catalog(&options);
    let ids: Vec<_> = offerings(&catalog, "m5.large")
        .iter()
        .filter(|o| o.capacity_type == CapacityType::Spot)
        .map(|o| (o.zone.as_str(), o.zone_id.as_str()))
        .collect();
    assert_eq!(ids, [("us-west-2a", "usw2-az2"), ("us-west-2b", "usw2-az2"), ("us-west-2c", "usw2-az3"), ("us-west-2d", "usw2-az4")]);
    assert_eq!(
        Sources::builtin(3).assumptions(&options),
        [
            "on-demand prices: those of us-east-1, for want of a list of us-west-2",
            "spot prices: seeded model, seed 3, 25-60 % of on-demand; not real prices",
            "zone ids: numbered by letter (us-west-2b is usw2-az2); every AWS account has its own",
        ]
    );
}

#[test]
fn types_that_the_image_cannot_use_are_left_out() {
    let of = |family| catalog(&CatalogOptions { family, ..CatalogOptions::default() });
    assert!(of(AmiFamily::Al2023).get("a1.large").is_none());
    assert!(of(AmiFamily::Al2).get("a1.large").is_some());
    assert!(of(AmiFamily::Custom).get("mac2.metal").is_none());
    let facts = Facts::builtin();
    let options = CatalogOptions::default();
    assert!(incompatible(facts.get("a1.large").unwrap(), &options).is_some());
    assert!(incompatible(facts.get("m7i.large").unwrap(), &options).is_none());
}

#[test]
fn a_price_list_replaces_the_compiled_in_one() {
    let text = "instance_type,region,micro_usd_per_hour,zone\n\
                m5.large,eu-west-1,107000,\n\
                m5.large,eu-west-1,31000,eu-west-1b\n";
    let sources = Sources::builtin(1).with_prices(Prices::parse(text).unwrap());
    assert_eq!(sources.spot, Spot::Listed);
    let catalog = build(&in_region("eu-west-1"), &sources).unwrap();
    assert_eq!(catalog.price_region, "eu-west-1");
    for offering in offerings(&catalog, "m5.large") {
        let expected = match (offering.capacity_type, offering.zone.as_str()) {
            (CapacityType::OnDemand, _) => Micros(107_000),
            (CapacityType::Spot, "eu-west-1b") => Micros(31_000),
            _ => Micros(0),
        };
        assert_eq!((offering.price, offering.available), (expected, expected > Micros(0)), "{offering:?}");
    }
    assert!(offerings(&catalog, "m5.xlarge").iter().all(|o| !o.available));
    let refused = build(&in_region("us-west-2"), &sources).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "cannot price region us-west-2: the price list has rows of eu-west-1 only; give it rows of us-west-2 or us-east-1"
    );
}

#[test]
fn a_type_table_replaces_the_compiled_in_one() {
    let builtin = include_str!("../data/instance-types.csv");
    let mut lines = builtin.lines();
    let (first, m5) = (lines.next().unwrap(), lines.find(|line| line.starts_with("m5.large,")).unwrap());
    let text = format!("{first}\r\n{}\r\n\r\n{m5}\r\n", m5.replace("m5.large", "z99.large"));
    let sources = Sources::builtin(1).with_facts(Facts::parse(&text).unwrap());
    let catalog = build(&CatalogOptions::default(), &sources).unwrap();
    let names: Vec<_> = catalog.types.iter().map(|made| made.name.as_str()).collect();
    assert_eq!(names, ["m5.large", "z99.large"]);
    let unknown = catalog.get("z99.large").unwrap();
    assert_eq!(unknown.labels["karpenter.k8s.aws/instance-generation"], "99");
    assert_eq!(unknown.offerings.len(), 12, "a type that the zone table does not know is offered everywhere");
    assert!(unknown.offerings.iter().all(|o| !o.available), "but it has no price");
}

#[test]
fn bad_lines_of_a_price_list_are_named() {
    for (text, message) in [
        (
            String::new(),
            "cannot read the price list: it is empty; its first line must name the columns region,instance_type,micro_usd_per_hour,zone",
        ),
        ("region,instance_type\n".into(), "cannot read the price list: line 1 lacks column micro_usd_per_hour"),
        (
            format!("{FIRST_LINE},colour\n"),
            "cannot read the price list: line 1 names column \"colour\" which is not known; the columns are region,instance_type,micro_usd_per_hour,zone",
        ),
        (
            format!("{FIRST_LINE},region\n"),
            "cannot read the price list: line 1 names column \"region\" twice; the columns are region,instance_type,micro_usd_per_hour,zone",
        ),
        (
            format!("{FIRST_LINE}\nus-east-1,m5.large,96000\n\nus-east-1,m5.xlarge,0.192\n"),
            "cannot read the price list: line 4, column micro_usd_per_hour: \"0.192\" is not a whole number that fits",
        ),
        (
            format!("{FIRST_LINE}\nus-east-1,m5.large,-1\n"),
            "cannot read the price list: line 2, column micro_usd_per_hour: \"-1\" is not a whole number that fits",
        ),
        (
            format!("{FIRST_LINE}\nus-east-1,m5.large,0\n"),
            "cannot read the price list: line 2, column micro_usd_per_hour: \"0\" is not a price of at least one micro-dollar; leave out what is not for sale",
        ),
        (format!("{FIRST_LINE}\n,m5.large,1\n"), "cannot read the price list: line 2, column region: \"\" is not a name"),
        (format!("{FIRST_LINE}\nus-east-1,m5.large\n"), "cannot read the price list: line 2 has 2 values, but line 1 names 3 columns"),
        (
            format!("{FIRST_LINE}\nus-east-1,m5.large,1\nus-east-1,m5.large,2\n"),
            "cannot read the price list: line 3 says the price of m5.large in us-east-1 again; keep one of the lines",
        ),
        (
            format!("{FIRST_LINE},zone\nus-east-1,m5.large,1,eu-west-1a\n"),
            "cannot read the price list: line 2, column zone: \"eu-west-1a\" is not a zone of the line's region",
        ),
    ] {
        assert_eq!(Prices::parse(&text).unwrap_err().to_string(), message);
    }
}

#[test]
fn bad_lines_of_a_type_table_are_named() {
    let mut lines = include_str!("../data/instance-types.csv").lines();
    let (first, line) = (lines.next().unwrap(), lines.next().unwrap());
    for (from, to, message) in [
        (",arm64,", ",riscv,", "column arch: \"riscv\" is not one of x86_64, i386+x86_64, arm64, x86_64_mac, arm64_mac"),
        ("large,8,", "large,eight,", "column vcpus: \"eight\" is not a whole number that fits"),
        ("large,8,", "large,4294967296,", "column vcpus: \"4294967296\" is not a whole number that fits"),
        (",nitro,0,", ",nitro,yes,", "column bare_metal: \"yes\" is not 0 or 1"),
        (
            "on-demand+spot",
            "on-demand+sport",
            "column usage_classes: \"on-demand+sport\" is not a set of on-demand, spot, capacity-block joined with +",
        ),
        (
            "+partition+",
            "+apart+",
            "column placement_strategies: \"cluster+apart+spread\" is not a set of cluster, partition, spread joined with +",
        ),
        (",default,", ",always,", "column ebs_optimized: \"always\" is not one of default, supported, unsupported"),
        ("a1.2xlarge,", ",", "column name: \"\" is not a name"),
    ] {
        assert!(line.contains(from), "{from}");
        let refused = Facts::parse(&format!("{first}\n{}\n", line.replacen(from, to, 1))).unwrap_err();
        assert_eq!(refused.to_string(), format!("cannot read the instance type table: line 2, {message}"));
    }
    let twice = Facts::parse(&format!("{first}\n{line}\n{line}\n")).unwrap_err();
    assert_eq!(twice.to_string(), "cannot read the instance type table: line 3 says a1.2xlarge again; keep one of the lines");
}

#[test]
fn the_same_seed_gives_the_same_catalogue() {
    let options = CatalogOptions::default();
    assert_eq!(build(&options, &Sources::builtin(5)).unwrap(), build(&options, &Sources::builtin(5)).unwrap());
    assert_ne!(build(&options, &Sources::builtin(5)).unwrap(), build(&options, &Sources::builtin(6)).unwrap());
}

fn listed(offers: &[(&str, &str)]) -> Sources {
    let offers = offers.iter().map(|(name, zone)| ((*name).to_owned(), (*zone).to_owned())).collect();
    Sources { offered: Some(Offered::listed(&offers)), ..Sources::builtin(1) }
}

#[test]
fn listed_offers_replace_the_compiled_in_ones_in_any_region() {
    let sources = Sources {
        spot: Spot::ListPrice,
        ..listed(&[("m5.large", "xx-new-1b"), ("m5.large", "xx-new-1a"), ("c5.large", "xx-new-1b"), ("q1.large", "xx-new-1a")])
    };
    let options = CatalogOptions {
        zones: Some(vec!["xx-new-1b".into(), "xx-new-1x".into()]),
        zone_ids: [("xx-new-1b".into(), "xxn1-az9".into())].into(),
        ..in_region("xx-new-1")
    };
    let catalog = build(&options, &sources).unwrap();
    let names: Vec<_> = catalog.types.iter().map(|made| made.name.as_str()).collect();
    assert_eq!(names, ["c5.large", "m5.large"], "what is not listed is not offered; what has no facts is not known");
    let rows: Vec<_> = offerings(&catalog, "m5.large")
        .iter()
        .map(|o| (o.zone.as_str(), o.zone_id.as_str(), o.capacity_type, o.price.0, o.available))
        .collect();
    assert_eq!(
        rows,
        [
            ("xx-new-1a", "", CapacityType::Spot, 96_000, false),
            ("xx-new-1a", "", CapacityType::OnDemand, 96_000, false),
            ("xx-new-1b", "xxn1-az9", CapacityType::Spot, 96_000, true),
            ("xx-new-1b", "xxn1-az9", CapacityType::OnDemand, 96_000, true),
        ],
        "no subnet in zone a; spot at the list price"
    );
    let lines = sources.assumptions(&options);
    assert_eq!(lines.last().unwrap(), "spot prices: not heard yet; taken for the on-demand prices");
}

#[test]
fn prices_may_be_set_one_by_one() {
    let mut prices = Prices::builtin();
    prices.set_on_demand("us-east-1", "m5.large", Micros(95_000));
    prices.set_on_demand("eu-west-3", "m5.large", Micros(112_000));
    prices.set_spot("eu-west-3a", "m5.large", Micros(40_000));
    assert_eq!(prices.on_demand("us-east-1", "m5.large"), Some(Micros(95_000)));
    assert_eq!(prices.on_demand("us-east-1", "m5.xlarge"), Some(Micros(192_000)), "the others stay");
    assert_eq!(prices.price_region("eu-west-3"), Ok("eu-west-3"));
    assert_eq!((prices.on_demand("eu-west-3", "m5.xlarge"), prices.spot("eu-west-3a", "m5.large")), (None, Some(Micros(40_000))));
}

#[test]
fn an_image_is_the_first_whose_requirements_the_labels_meet() {
    const GPUS: &str = "karpenter.k8s.aws/instance-gpu-count";
    let image = |id: &str, arch: &str, gpus: Requirement| Image {
        id: id.to_owned(),
        requirements: [Requirement::any_of(keys::ARCH, &[arch]), gpus].into_iter().collect(),
    };
    let images = [
        image("ami-1", "amd64", Requirement::absent(GPUS)),
        image("ami-2", "amd64", Requirement::exists(GPUS)),
        image("ami-3", "amd64", Requirement::absent(GPUS)),
    ];
    let facts = Facts::builtin();
    for (name, chosen) in [("m5.large", Some("ami-1")), ("g5.xlarge", Some("ami-2")), ("m7g.large", None)] {
        let labels = labels(facts.get(name).unwrap(), "us-east-1");
        assert_eq!(Image::for_labels(&images, &labels).map(|image| image.id.as_str()), chosen, "{name}");
    }
}

#[test]
fn types_on_which_no_image_boots_are_left_out_and_seen_memory_counts_for_the_image() {
    let image = |id: &str, requirement| Image { id: id.to_owned(), requirements: [requirement].into_iter().collect() };
    let images = vec![
        image("ami-gpu", Requirement::exists("karpenter.k8s.aws/instance-gpu-count")),
        image("ami-arm", Requirement::any_of(keys::ARCH, &["arm64"])),
    ];
    let seen = |image: &str, name: &str, bytes: i64| (image.to_owned(), [(name.to_owned(), bytes)].into());
    let options = CatalogOptions {
        images: Some(images),
        memory_seen: [seen("ami-arm", "m7g.large", 7 << 30), seen("ami-old", "m6g.large", 1 << 30)].into(),
        ..CatalogOptions::default()
    };
    let computed = catalog(&CatalogOptions::default());
    let catalog = catalog(&options);
    assert!(catalog.get("m5.large").is_none());
    assert!(catalog.get("g5.xlarge").is_some());
    let (seen, before) = (catalog.get("m7g.large").unwrap(), computed.get("m7g.large").unwrap());
    assert_eq!(seen.capacity.get(MEMORY), 7 << 30);
    let kept = |made: &InstanceType| made.capacity.get(MEMORY) - made.allocatable.get(MEMORY);
    assert_eq!(kept(seen), kept(before));
    assert_eq!(catalog.get("m6g.large"), computed.get("m6g.large"), "another image's memory says nothing");
}

#[test]
fn what_a_class_asks_of_types_leaves_out_those_without() {
    let nic = |card, device, efa_only| Nic { card, device, efa_only };
    let with = |nics: &[Nic]| CatalogOptions { network_interfaces: Some(nics.to_vec()), ..CatalogOptions::default() };
    let plain = CatalogOptions::default;
    let facts = Facts::builtin();
    for (name, options, fits) in [
        ("m5.large", with(&[nic(0, 2, false)]), true),
        ("m5.large", with(&[nic(0, 3, false)]), false),
        ("m5.large", with(&[nic(1, 0, false)]), false),
        ("m5.large", with(&[nic(0, 1, true)]), false),
        ("p4d.24xlarge", with(&[nic(0, 0, false), nic(1, 1, true), nic(2, 1, true), nic(3, 1, true)]), true),
        ("p4d.24xlarge", with(&[nic(3, 15, false)]), false),
        ("p4d.24xlarge", with(&[0, 1, 2, 3, 0].map(|card| nic(card, 1, true))), false),
        ("m5.large", CatalogOptions { nested_virtualization: true, ..plain() }, false),
        ("m5.large", CatalogOptions { connection_tracking: true, ..plain() }, true),
        ("m4.large", CatalogOptions { connection_tracking: true, ..plain() }, false),
        ("m5.large", CatalogOptions { placement: Placement::parse("cluster"), ..plain() }, true),
        ("t3.large", CatalogOptions { placement: Placement::parse("cluster"), ..plain() }, false),
        ("t3.large", CatalogOptions { placement: Placement::parse("spread"), ..plain() }, true),
    ] {
        let why = incompatible(facts.get(name).unwrap(), &options);
        assert_eq!(why.is_none(), fits, "{name} {options:?}: {why:?}");
    }
    assert!(facts.iter().any(|facts| incompatible(facts, &CatalogOptions { nested_virtualization: true, ..plain() }).is_none()));
}

#[test]
fn interfaces_for_efa_alone_take_room_from_pods() {
    let nics = vec![Nic { card: 0, device: 1, efa_only: true }, Nic { card: 1, device: 1, efa_only: true }];
    let with = catalog(&CatalogOptions { network_interfaces: Some(nics), ..CatalogOptions::default() });
    let without = catalog(&CatalogOptions::default());
    let of = |catalog: &Catalog, resource: &str| catalog.get("p4d.24xlarge").unwrap().capacity.get(resource);
    assert_eq!((of(&without, PODS), of(&with, PODS)), (737, 688), "49 fewer: one interface of the first card");
    assert_eq!((of(&without, "vpc.amazonaws.com/efa"), of(&with, "vpc.amazonaws.com/efa")), (4, 2));
}
