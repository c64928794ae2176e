//! The market against a server on this machine that answers like EC2 and the price list.

use whittle_catalog::InstanceFacts;
use whittle_model::{CapacityType, Requirement, keys};

use super::*;
use crate::{
    class::{Ami, PlacementGroup, Reservation, Subnet},
    image::Family,
};

#[path = "server.rs"]
mod server;

use server::Server;

/// What EC2 says of some types, a line each.
const TYPES: &str = include_str!("instance-types.xml");
const NOW: Timestamp = Timestamp(1_750_000_000_000);

fn settings(region: &str) -> MarketSettings {
    MarketSettings { region: region.to_owned(), isolated_vpc: false, vm_memory_overhead_ppm: 75_000, reserved_enis: 0 }
}

fn spec() -> Ec2NodeClassSpec {
    let spec = serde_json::json!({"subnetSelectorTerms": [], "securityGroupSelectorTerms": [], "amiSelectorTerms": []});
    serde_json::from_value(spec).unwrap()
}

/// A class with subnets in zones a and b and an image for amd64.
fn class(family: Family) -> Resolved {
    let subnet = |zone: &str| Subnet {
        id: format!("subnet-{zone}"),
        zone: zone.to_owned(),
        zone_id: format!("id-{zone}"),
        vpc: "vpc-1".to_owned(),
        free_addresses: 100,
    };
    let ami = Ami {
        id: "ami-1".to_owned(),
        name: String::new(),
        deprecated: false,
        created: None,
        requirements: [Requirement::any_of(keys::ARCH, &["amd64"])].into_iter().collect(),
    };
    Resolved {
        name: "general".to_owned(),
        generation: 1,
        family,
        subnets: vec![subnet("eu-west-1a"), subnet("eu-west-1b")],
        security_groups: Vec::new(),
        amis: vec![ami],
        capacity_reservations: Vec::new(),
        placement_group: None,
        instance_profile: None,
        conditions: Vec::new(),
        notes: Vec::new(),
        next: NOW,
    }
}

fn page(action: &str, set: &str, items: &str, next: &str) -> (u16, String) {
    (200, format!("<{action}Response><requestId>r</requestId><{set}>{items}</{set}><nextToken>{next}</nextToken></{action}Response>"))
}

fn refused() -> (u16, String) {
    let error = "<Error><Code>UnauthorizedOperation</Code><Message>no</Message></Error>";
    (403, format!("<Response><Errors>{error}</Errors><RequestID>r</RequestID></Response>"))
}

/// A region with the types of the file in zones a to c, the third page of types being the last.
fn ec2(action: &str, body: &str) -> (u16, String) {
    let zones = ["eu-west-1a", "eu-west-1b", "eu-west-1c"];
    let lines: Vec<&str> = TYPES.lines().collect();
    match action {
        "DescribeInstanceTypes" => {
            let pages = lines.chunks(4).map(|items| items.concat()).collect::<Vec<_>>();
            let at = (1..pages.len()).find(|at| body.contains(&format!("NextToken=page{at}"))).unwrap_or_default();
            let next = if at + 1 < pages.len() { format!("page{}", at + 1) } else { String::new() };
            page(action, "instanceTypeSet", &pages[at], &next)
        }
        "DescribeInstanceTypeOfferings" => {
            let offers = names().into_iter().flat_map(|name| zones.map(|zone| (name, zone)));
            let item = |(name, zone): (&str, &str)| format!("<item><instanceType>{name}</instanceType><location>{zone}</location></item>");
            page(action, "instanceTypeOfferingSet", &offers.map(item).collect::<String>(), "")
        }
        "DescribeSpotPriceHistory" => {
            let item = |zone: &str, price: &str| {
                let when = "2025-06-15T12:00:00.000Z";
                format!(
                    "<item><instanceType>m5.large</instanceType><productDescription>Linux/UNIX</productDescription>\
                     <spotPrice>{price}</spotPrice><timestamp>{when}</timestamp><availabilityZone>{zone}</availabilityZone></item>"
                )
            };
            page(action, "spotPriceHistorySet", &(item(zones[0], "0.031000") + &item(zones[1], "0.0425")), "")
        }
        "GetProducts" => {
            let line = |name: &str, price: &str| {
                let terms =
                    serde_json::json!({"OnDemand": {"a": {"priceDimensions": {"b": {"unit": "Hrs", "pricePerUnit": {"USD": price}}}}}});
                serde_json::json!({"product": {"attributes": {"instanceType": name}}, "terms": terms}).to_string()
            };
            let list = if body.contains("bare metal") { [line("c7g.metal", "2.4896")] } else { [line("m5.large", "0.107")] };
            (200, serde_json::json!({"FormatVersion": "aws_v1", "PriceList": list}).to_string())
        }
        _ => refused(),
    }
}

fn names() -> Vec<&'static str> {
    let name = |line: &'static str| line.split_once("<instanceType>")?.1.split_once('<').map(|(name, _)| name);
    TYPES.lines().filter_map(name).collect()
}

async fn market_on(server: &Server, settings: MarketSettings) -> (Market, Aws) {
    let aws = Aws::for_test(&server.url, &settings.region).await.unwrap();
    (Market::new(settings), aws)
}

/// Zone, capacity type, price and availability of a type's offerings.
fn offerings(catalog: &Catalog, name: &str) -> Vec<(String, &'static str, i64, bool)> {
    let rows = catalog.get(name).unwrap().offerings.iter();
    rows.map(|o| (o.zone.clone(), o.capacity_type.name(), o.price.0, o.available)).collect()
}

#[tokio::test]
async fn types_read_from_ec2_equal_their_rows_in_the_table() {
    let server = Server::start(ec2).await;
    let (market, aws) = market_on(&server, settings("eu-west-1")).await;
    assert!(!market.is_ready());
    let refresh = market.refresh(&aws, NOW).await;
    assert_eq!((refresh.changed, refresh.next, refresh.failures), (true, INTERVAL, vec![]));
    assert!(market.is_ready());
    let sources = Arc::clone(&market.state().sources);
    let table = Facts::builtin();
    let read: Vec<&InstanceFacts> = sources.facts.iter().collect();
    assert_eq!(read.len(), TYPES.lines().count());
    for facts in read {
        let expected = InstanceFacts { nitro_enclaves: facts.nitro_enclaves, ..table.get(&facts.name).unwrap().clone() };
        assert_eq!(*facts, expected);
    }
    let enclaves = |name: &str| sources.facts.get(name).unwrap().nitro_enclaves;
    assert_eq!((enclaves("m5.large"), enclaves("p4d.24xlarge")), (Some(false), Some(true)));
}

#[tokio::test]
async fn requests_ask_for_what_nodes_can_be_in_pages() {
    let server = Server::start(ec2).await;
    let (market, aws) = market_on(&server, settings("eu-west-1")).await;
    market.refresh(&aws, NOW).await;
    let types = server.asked("DescribeInstanceTypes");
    assert_eq!(types.len(), 3);
    let last = types.iter().find(|body| body.contains("NextToken=page2")).unwrap();
    for part in ["MaxResults=100", "supported-virtualization-type", "=hvm", "processor-info.supported-architecture", "=x86_64", "=arm64"] {
        assert!(last.contains(part), "{part}: {last}");
    }
    let offers = server.asked("DescribeInstanceTypeOfferings").concat();
    assert!(offers.contains("LocationType=availability-zone") && offers.contains("MaxResults=1000"), "{offers}");
    let spot = server.asked("DescribeSpotPriceHistory").concat();
    assert!(spot.contains("StartTime=2025-06-15T15%3A06%3A40Z") && spot.contains("Linux%2FUNIX%20%28Amazon%20VPC%29"), "{spot}");
    let list = server.asked("GetProducts");
    assert_eq!(list.len(), 2);
    for part in [r#""regionCode","Value":"eu-west-1""#, r#""Value":"Shared""#, r#""Value":"Compute Instance""#, r#""marketoption""#] {
        let compact: Vec<String> = list.iter().map(|body| body.replace("\"Field\":", "")).collect();
        assert!(compact.iter().any(|body| body.contains(part)), "{part}: {compact:?}");
    }
}

#[tokio::test]
async fn a_catalogue_has_todays_prices_in_the_zones_of_the_class() {
    let server = Server::start(ec2).await;
    let (market, aws) = market_on(&server, settings("eu-west-1")).await;
    let early = market.catalog(&spec(), &class(Family::Al2023)).unwrap_err().to_string();
    assert!(early.starts_with("cannot make the catalogue of EC2NodeClass general: DescribeInstanceTypes"), "{early}");
    market.refresh(&aws, NOW).await;
    let catalog = market.catalog(&spec(), &class(Family::Al2023)).unwrap();
    assert_eq!(
        (catalog.node_class.as_str(), catalog.region.as_str(), catalog.price_region.as_str()),
        ("general", "eu-west-1", "eu-west-1")
    );
    let row = |zone: &str, way, price, available| (format!("eu-west-1{zone}"), way, price, available);
    assert_eq!(
        offerings(&catalog, "m5.large"),
        [
            row("a", "spot", 31_000, true),
            row("a", "on-demand", 107_000, true),
            row("b", "spot", 42_500, true),
            row("b", "on-demand", 107_000, true),
            row("c", "spot", 0, false),
            row("c", "on-demand", 107_000, false),
        ],
        "zone c has no subnet"
    );
    assert!(catalog.get("c7g.metal").is_none(), "no image boots there");
    assert!(offerings(&catalog, "m8i.large").iter().all(|(_, _, _, available)| !available), "no price in this region");
    let m5 = catalog.get("m5.large").unwrap();
    assert_eq!(m5.offerings[0].zone_id, "id-eu-west-1a");
    assert_eq!(m5.labels["karpenter.k8s.aws/nitro-sandbox"], "false");
    assert!(m5.offerings.iter().all(|o| o.capacity_type != CapacityType::Reserved));
}

#[tokio::test]
async fn until_prices_are_read_the_compiled_in_ones_count_also_for_spot() {
    let deny = |denied: &'static [&'static str]| {
        move |action: &str, body: &str| if denied.contains(&action) { refused() } else { ec2(action, body) }
    };
    let server = Server::start(deny(&["GetProducts", "DescribeSpotPriceHistory"])).await;
    let (market, aws) = market_on(&server, settings("eu-west-1")).await;
    let refresh = market.refresh(&aws, NOW).await;
    let mut failed: Vec<&str> = refresh.failures.iter().map(|failure| failure.action).collect();
    failed.sort_unstable();
    assert_eq!((failed, refresh.next), (vec!["DescribeSpotPriceHistory", "GetProducts"], Duration::minutes(1)));
    let catalog = market.catalog(&spec(), &class(Family::Al2023)).unwrap();
    assert_eq!(catalog.price_region, "us-east-1");
    assert_eq!(offerings(&catalog, "m5.large")[0], ("eu-west-1a".to_owned(), "spot", 96_000, true));

    let server = Server::start(ec2).await;
    let (_, aws) = market_on(&server, settings("eu-west-1")).await;
    let refresh = market.refresh(&aws, NOW.plus(Duration::minutes(1))).await;
    assert!(refresh.changed && refresh.failures.is_empty());
    assert!(server.asked("DescribeInstanceTypes").is_empty(), "not due yet");
    let catalog = market.catalog(&spec(), &class(Family::Al2023)).unwrap();
    assert_eq!(offerings(&catalog, "m5.large")[0], ("eu-west-1a".to_owned(), "spot", 31_000, true));

    let server = Server::start(|_, _| refused()).await;
    let (_, aws) = market_on(&server, settings("eu-west-1")).await;
    let refresh = market.refresh(&aws, NOW.plus(Duration::minutes(24 * 60))).await;
    assert_eq!((refresh.changed, refresh.failures.len()), (false, 4));
    let same = market.catalog(&spec(), &class(Family::Al2023)).unwrap();
    assert!(Arc::ptr_eq(&catalog, &same), "everything stays as it was");
}

#[tokio::test]
async fn in_an_isolated_vpc_the_price_list_is_not_asked() {
    for settings in [MarketSettings { isolated_vpc: true, ..settings("eu-west-1") }, settings("us-gov-west-1")] {
        let server = Server::start(ec2).await;
        let (market, aws) = market_on(&server, settings).await;
        let refresh = market.refresh(&aws, NOW).await;
        assert_eq!((refresh.changed, refresh.next, refresh.failures.len()), (true, INTERVAL, 0));
        assert!(server.asked("GetProducts").is_empty());
        let refresh = market.refresh(&aws, NOW.plus(INTERVAL)).await;
        assert!(!refresh.changed, "the same answers make the same market");
    }
}

#[tokio::test]
async fn a_catalogue_is_made_anew_only_when_something_differs() {
    let server = Server::start(ec2).await;
    let (market, aws) = market_on(&server, MarketSettings { reserved_enis: 1, ..settings("eu-west-1") }).await;
    market.refresh(&aws, NOW).await;
    let of = |class: &Resolved| market.catalog(&spec(), class).unwrap();
    let plain = class(Family::Al2023);
    let first = of(&plain);
    assert!(Arc::ptr_eq(&first, &of(&plain)));
    assert_eq!(first.get("m5.large").unwrap().capacity.get("pods"), 20, "one interface is reserved");
    assert!(market.learn_memory("ami-1", "m5.large", 8_000_000_000, NOW));
    let learned = of(&plain);
    assert_eq!(learned.get("m5.large").unwrap().capacity.get("memory"), 8_000_000_000);
    assert!(!market.learn_memory("ami-1", "m5.large", 8_100_000_000, NOW));
    assert!(Arc::ptr_eq(&learned, &of(&plain)));
    let later = NOW.plus(Duration::minutes(61 * 24 * 60));
    assert!(market.refresh(&aws, later).await.changed, "what was learned is forgotten");
    assert_eq!(*of(&plain), *first);

    let group = PlacementGroup {
        id: "pg-1".into(),
        name: String::new(),
        strategy: PlacementStrategy::Cluster,
        partitions: 0,
        spread_level: String::new(),
    };
    let grouped = of(&Resolved { placement_group: Some(group), ..plain.clone() });
    assert!(first.get("t2.micro").is_some() && grouped.get("t2.micro").is_none());
    let reserved = |available: i64| {
        let found = serde_json::json!({"id": "cr-1", "availabilityZone": "eu-west-1a", "instanceType": "m5.large"});
        let reservation = Reservation { found: serde_json::from_value(found).unwrap(), ends: None, available };
        Resolved { capacity_reservations: vec![reservation], ..plain.clone() }
    };
    let (two, none) = (of(&reserved(2)), of(&reserved(0)));
    let left = |catalog: &Catalog| catalog.held().map(|held| held.reservation.left).collect::<Vec<_>>();
    assert_eq!((left(&first), left(&two), left(&none)), (vec![], vec![2], vec![0]));
    let sold = |catalog: &Catalog| offerings(catalog, "m5.large").iter().any(|(_, kind, _, available)| *kind == "reserved" && *available);
    assert!(sold(&two) && !sold(&none));
    market.forget("general");
    let windows = market.catalog(&spec(), &class(Family::Windows2022)).unwrap_err();
    assert_eq!(
        windows.to_string(),
        "cannot make the catalogue of EC2NodeClass general: nodes of image family Windows2022 are not launched"
    );
}

#[test]
fn a_refresh_may_run_in_a_task() {
    fn sendable<T: Send>(_: T) {}
    let refresh = |market: &Market, aws: &Aws| sendable(market.refresh(aws, NOW));
    let _ = refresh;
}
