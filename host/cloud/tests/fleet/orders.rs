//! Claims, a node class and a catalogue to launch from.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use whittle_cloud::{
    Aws,
    class::{Ami, ClassCondition, ConditionKind, ConditionStatus, Resolved, SecurityGroup, Subnet},
    fleet::{Fleet, LaunchClass, LaunchOrder, LaunchSettings},
    image::{ClusterFacts, Family},
};
use whittle_model::{
    CapacityType, Catalog, InstanceType, LaunchFailure, Launched, Micros, NodeClaim, Offering, Outcome, Requirement, Resources, Timestamp,
    ec2_node_class::{AmiSelectorTerm, Ec2NodeClassSpec},
    keys,
};

use super::ec2::Ec2;

pub const NOW: Timestamp = Timestamp(1_000_000);
pub const PAUSE: Duration = Duration::from_millis(5);

pub async fn fleet(ec2: &Ec2) -> Fleet {
    let aws = Aws::for_test(&ec2.url, "us-east-1").await.unwrap();
    Fleet::with_pause(Arc::new(aws), "demo", PAUSE)
}

/// Types `name on-demand-price spot-price`, in zones a and b.
pub fn catalog(lines: &[&str]) -> Arc<Catalog> {
    let mut types: Vec<InstanceType> = lines.iter().map(|line| instance_type(line)).collect();
    types.sort_by(|a, b| a.name.cmp(&b.name));
    Arc::new(Catalog { node_class: "default".to_owned(), region: "us-east-1".to_owned(), types, ..Catalog::default() })
}

fn instance_type(line: &str) -> InstanceType {
    let words: Vec<&str> = line.split(' ').collect();
    let price = |at: usize| Micros(words.get(at).map_or(0, |word| word.parse().unwrap()));
    let labels = [(keys::INSTANCE_TYPE, words[0]), (keys::ARCH, "amd64")].map(|(key, value)| (key.to_owned(), value.to_owned()));
    let offering = |zone: &str, capacity_type, price| Offering {
        zone: zone.to_owned(),
        zone_id: String::new(),
        capacity_type,
        price,
        available: true,
        reservation: None,
    };
    let both = [(CapacityType::Spot, price(2)), (CapacityType::OnDemand, price(1))];
    let sold = both.into_iter().filter(|(_, price)| price.0 > 0);
    InstanceType {
        name: words[0].to_owned(),
        labels: labels.into(),
        requirements: Arc::default(),
        capacity: Resources::of(&[("cpu", 4000), ("pods", 20)]),
        allocatable: Resources::of(&[("cpu", 3900), ("pods", 20)]),
        offerings: ["a", "b"].iter().flat_map(|zone| sold.clone().map(|(ct, price)| offering(zone, ct, price))).collect(),
    }
}

pub fn class() -> LaunchClass {
    let subnet = |id: &str, zone: &str, free_addresses| Subnet {
        id: id.to_owned(),
        zone: zone.to_owned(),
        zone_id: String::new(),
        vpc: "vpc-1".to_owned(),
        free_addresses,
    };
    let ready = ClassCondition { kind: ConditionKind::Ready, status: ConditionStatus::True, reason: String::new(), message: String::new() };
    let resolved = Resolved {
        name: "default".to_owned(),
        generation: 1,
        family: Family::Custom,
        subnets: vec![subnet("subnet-a1", "a", 250), subnet("subnet-a2", "a", 100), subnet("subnet-b1", "b", 250)],
        security_groups: vec![SecurityGroup { id: "sg-1".to_owned(), name: "nodes".to_owned(), vpc: "vpc-1".to_owned() }],
        amis: vec![Ami {
            id: "ami-1".to_owned(),
            name: "image".to_owned(),
            deprecated: false,
            created: None,
            requirements: [Requirement::any_of(keys::ARCH, &["amd64"])].into_iter().collect(),
        }],
        capacity_reservations: Vec::new(),
        placement_group: None,
        instance_profile: Some("profile".to_owned()),
        conditions: vec![ready],
        notes: Vec::new(),
        next: NOW,
    };
    let spec =
        Ec2NodeClassSpec { ami_family: Some("Custom".to_owned()), tags: Some([("team".to_owned(), "x".to_owned())].into()), ..spec() };
    LaunchClass {
        resolved,
        spec,
        cluster: ClusterFacts { name: "demo".to_owned(), region: "us-east-1".to_owned(), ..ClusterFacts::default() },
    }
}

fn spec() -> Ec2NodeClassSpec {
    let term = AmiSelectorTerm { id: Some("ami-1".to_owned()), ..AmiSelectorTerm::default() };
    serde_json::from_value(serde_json::json!({
        "subnetSelectorTerms": [], "securityGroupSelectorTerms": [], "amiSelectorTerms": [serde_json::to_value(term).unwrap()]
    }))
    .unwrap()
}

/// An order of one of the claims of group `g`.
pub fn order(name: &str) -> LaunchOrder {
    let claim = NodeClaim {
        name: name.to_owned(),
        uid: format!("uid-{name}"),
        node_pool: "general".to_owned(),
        node_class: "default".to_owned(),
        annotations: [(keys::LAUNCH_GROUP.to_owned(), "g".to_owned())].into(),
        requests: Resources::of(&[("cpu", 1000)]),
        ..NodeClaim::default()
    };
    LaunchOrder {
        claim,
        adopt: false,
        taken: BTreeSet::new(),
        class: Arc::new(class()),
        catalog: catalog(&["c5.large 30 10", "m5.large 40 12"]),
        sold_out: BTreeSet::new(),
        settings: LaunchSettings::default(),
    }
}

pub fn launched(outcome: Outcome) -> Launched {
    let launched = match outcome {
        Outcome::Launched(launched) => Ok(launched),
        other @ (Outcome::LaunchFailed { .. } | Outcome::InstanceGone { .. }) => Err(other),
    };
    launched.unwrap()
}

pub fn failure(outcome: Outcome) -> LaunchFailure {
    let failed = match outcome {
        Outcome::LaunchFailed { failure, .. } => Ok(failure),
        other @ (Outcome::Launched(_) | Outcome::InstanceGone { .. }) => Err(other),
    };
    failed.unwrap()
}

/// Orders all at once.
pub async fn launch_all(fleet: &Arc<Fleet>, orders: Vec<LaunchOrder>) -> Vec<Outcome> {
    let tasks: Vec<_> = orders
        .into_iter()
        .map(|order| {
            let fleet = fleet.clone();
            tokio::spawn(async move { fleet.launch(order, NOW).await })
        })
        .collect();
    let mut outcomes = Vec::new();
    for task in tasks {
        outcomes.push(task.await.unwrap());
    }
    outcomes
}
