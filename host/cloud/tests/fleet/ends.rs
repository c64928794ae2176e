//! Ends, lists, descriptions and tags of instances.

use std::sync::Arc;

use whittle_cloud::{
    ErrorKind,
    fleet::{Ended, Fleet, InstanceFacts},
};
use whittle_model::{CapacityType, keys};

use super::{
    ec2::{Ec2, Fault},
    orders::{fleet, launch_all, launched, order},
};

/// A fleet with three instances; their provider ids.
async fn three(ec2: &Ec2) -> (Arc<Fleet>, Vec<String>) {
    let fleet = Arc::new(fleet(ec2).await);
    let outcomes = launch_all(&fleet, vec![order("c-1"), order("c-2"), order("c-3")]).await;
    let ids = outcomes.into_iter().map(|outcome| launched(outcome).provider_id).collect();
    (fleet, ids)
}

async fn end_all(fleet: &Fleet, ids: &[&str]) -> Vec<Result<Ended, ErrorKind>> {
    let [a, b, c] = ids else { unreachable!("three at a time") };
    let (a, b, c) = tokio::join!(fleet.terminate(a), fleet.terminate(b), fleet.terminate(c));
    [a, b, c].map(|ended| ended.map_err(|error| error.kind)).into()
}

#[tokio::test]
async fn ends_share_a_call_and_say_when_it_is_over() {
    let ec2 = Ec2::start();
    let (fleet, ids) = three(&ec2).await;
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    assert_eq!(end_all(&fleet, &ids).await, [Ok(Ended::Going); 3]);
    assert_eq!(ec2.count("TerminateInstances"), 1);
    assert_eq!(end_all(&fleet, &ids).await, [Ok(Ended::Going); 3]);
    ec2.with(|state| state.machines.iter_mut().for_each(|machine| machine.state = "terminated"));
    assert_eq!(end_all(&fleet, &ids).await, [Ok(Ended::Gone); 3]);
    assert_eq!((ec2.count("TerminateInstances"), ec2.count("DescribeInstances")), (1, 2), "then it is only looked");
}

#[tokio::test]
async fn an_instance_that_ec2_does_not_know_is_gone_and_spoils_nothing() {
    let ec2 = Ec2::start();
    let (fleet, ids) = three(&ec2).await;
    assert_eq!(end_all(&fleet, &[&ids[0], "aws:///a/i-none", &ids[1]]).await, [Ok(Ended::Going), Ok(Ended::Gone), Ok(Ended::Going)]);
    assert_eq!(fleet.terminate("aws:///a/i-none").await.unwrap(), Ended::Gone);
}

#[tokio::test]
async fn one_that_may_not_be_ended_does_not_hold_up_the_others() {
    let ec2 = Ec2::start();
    let (fleet, ids) = three(&ec2).await;
    ec2.with(|state| state.protected.insert("i-0002".to_owned()));
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    assert_eq!(end_all(&fleet, &ids).await, [Ok(Ended::Going), Err(ErrorKind::Other), Ok(Ended::Going)]);
    assert_eq!(ec2.count("TerminateInstances"), 4);
}

#[tokio::test]
async fn throttled_ends_do_not_fan_out() {
    let ec2 = Ec2::start();
    let (fleet, ids) = three(&ec2).await;
    for _ in 0..99 {
        ec2.fail("TerminateInstances", Fault::Refused("RequestLimitExceeded"));
    }
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    assert_eq!(end_all(&fleet, &ids).await, [Err(ErrorKind::Throttled); 3]);
    assert_eq!(ec2.count("TerminateInstances"), 7, "one call and its retries");
}

#[tokio::test]
async fn instances_are_listed_described_and_tagged() {
    let ec2 = Ec2::start();
    let (fleet, ids) = three(&ec2).await;
    fleet.terminate(&ids[2]).await.unwrap();
    ec2.with(|state| {
        // Another cluster's, and one that no NodePool owns.
        let mut other = state.machines[0].clone();
        other.tags.remove("kubernetes.io/cluster/demo");
        let mut unpooled = state.machines[0].clone();
        unpooled.tags.remove(keys::NODE_POOL);
        state.machines.extend([other, unpooled]);
        for (machine, id) in state.machines[3..].iter_mut().zip(["i-other", "i-unpooled"]) {
            machine.id = id.to_owned();
        }
        state.machines[1].tags.insert("Name".to_owned(), "mine".to_owned());
    });
    let (first, second) = tokio::join!(fleet.tag(&ids[0], "node-1", "c-1"), fleet.tag(&ids[1], "node-2", "c-2"));
    first.and(second).unwrap();
    fleet.tag(&ids[0], "node-1", "c-1").await.unwrap();
    assert_eq!(ec2.count("CreateTags"), 2, "what is there is not written again");
    let listed: Vec<String> = fleet
        .list()
        .await
        .unwrap()
        .iter()
        .map(InstanceFacts::listed)
        .map(|i| format!("{} {:?} {}", i.provider_id, i.claim, i.running))
        .collect();
    assert_eq!(listed, [r#"aws:///a/i-0001 Some("c-1") true"#, r#"aws:///a/i-0002 Some("c-2") true"#, "aws:///a/i-0003 None false"]);
    let described = fleet.describe(&ids[1]).await.unwrap().unwrap();
    assert_eq!((described.tags["Name"].as_str(), described.capacity_type), ("mine", CapacityType::Spot));
    assert_eq!(fleet.describe("aws:///a/i-none").await.unwrap(), None);
    let error = fleet.tag("aws:///a/i-none", "n", "c").await.unwrap_err();
    assert_eq!(error.to_string(), "cannot CreateTags on i-none: the instance does not exist");
}
