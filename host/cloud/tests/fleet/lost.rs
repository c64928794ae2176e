//! Lost answers, lost requests, and controllers that start again: found instances are adopted, none is doubled.

use std::{collections::BTreeSet, sync::Arc};

use whittle_cloud::fleet::LaunchOrder;
use whittle_model::LaunchFailure;

use super::{
    ec2::{Ec2, Fault},
    orders::{NOW, failure, fleet, launch_all, launched, order},
};

fn adopting(name: &str, taken: &[&str]) -> LaunchOrder {
    LaunchOrder { adopt: true, taken: taken.iter().map(|id| (*id).to_owned()).collect(), ..order(name) }
}

#[tokio::test]
async fn a_lost_answer_is_made_up_for_by_looking() {
    let ec2 = Ec2::start();
    ec2.fail("CreateFleet", Fault::AnswerLost);
    let fleet = Arc::new(fleet(&ec2).await);
    let outcomes = launch_all(&fleet, vec![order("c-1"), order("c-2")]).await;
    let ids: Vec<String> = outcomes.into_iter().map(|outcome| launched(outcome).provider_id).collect();
    assert_eq!(ids, ["aws:///a/i-0001", "aws:///a/i-0002"]);
    assert_eq!((ec2.running().len(), ec2.count("CreateFleet"), ec2.count("DescribeInstances")), (2, 1, 2));
}

#[tokio::test]
async fn a_lost_request_is_sent_again_word_for_word() {
    let ec2 = Ec2::start();
    ec2.fail("CreateFleet", Fault::RequestLost);
    launched(fleet(&ec2).await.launch(order("c-1"), NOW).await);
    let calls = ec2.calls("CreateFleet");
    assert_eq!((calls.len(), ec2.running().len()), (2, 1));
    assert_eq!(calls[0], calls[1]);
}

#[tokio::test]
async fn a_lost_answer_whose_instances_do_not_show_is_asked_for_again() {
    let ec2 = Ec2::start();
    ec2.with(|state| state.hidden = 99);
    ec2.fail("CreateFleet", Fault::AnswerLost);
    let bought = launched(fleet(&ec2).await.launch(order("c-1"), NOW).await);
    assert_eq!((bought.provider_id.as_str(), ec2.running().len(), ec2.count("CreateFleet")), ("aws:///a/i-0001", 1, 2));
}

#[tokio::test]
async fn when_both_answers_are_lost_the_next_order_finds_the_instance() {
    let ec2 = Ec2::start();
    ec2.with(|state| state.hidden = 2);
    ec2.fail("CreateFleet", Fault::AnswerLost);
    ec2.fail("CreateFleet", Fault::AnswerLost);
    let fleet = fleet(&ec2).await;
    assert!(matches!(failure(fleet.launch(order("c-1"), NOW).await), LaunchFailure::Other(reason, _) if reason == "LaunchFailed"));
    launched(fleet.launch(adopting("c-1", &[]), NOW).await);
    assert_eq!((ec2.running().len(), ec2.count("CreateFleet")), (1, 2));
}

#[tokio::test]
async fn after_a_start_instances_of_the_group_are_dealt_before_any_is_bought() {
    let ec2 = Ec2::start();
    let before = Arc::new(fleet(&ec2).await);
    launch_all(&before, vec![order("c-1"), order("c-2"), order("c-3")]).await;
    // i-0001 was written down for c-1, i-0003 has ended, a reading is late.
    ec2.with(|state| {
        state.machines[2].state = "terminated";
        state.machines[1].hidden = 1;
    });
    let after = Arc::new(fleet(&ec2).await);
    let taken = ["aws:///a/i-0001"];
    let outcomes = launch_all(&after, vec![adopting("c-2", &taken), adopting("c-3", &taken)]).await;
    let ids: Vec<String> = outcomes.into_iter().map(|outcome| launched(outcome).provider_id).collect();
    assert_eq!(ids, ["aws:///a/i-0002", "aws:///a/i-0004"]);
    assert_eq!((ec2.running().len(), ec2.count("CreateFleet")), (3, 2));
}

#[tokio::test]
async fn an_adopted_instance_reads_as_if_it_was_bought() {
    let ec2 = Ec2::start();
    let bought = launched(fleet(&ec2).await.launch(order("c-1"), NOW).await);
    let adopted = launched(fleet(&ec2).await.launch(adopting("c-1", &[]), NOW).await);
    assert_eq!(adopted, bought);
    assert_eq!(ec2.count("CreateFleet"), 1);
}

#[tokio::test]
async fn nothing_is_bought_where_it_cannot_be_looked() {
    let ec2 = Ec2::start();
    ec2.fail("DescribeInstances", Fault::Refused("UnauthorizedOperation"));
    let fleet = Arc::new(fleet(&ec2).await);
    let outcomes = launch_all(&fleet, vec![adopting("c-1", &[]), order("c-2")]).await;
    assert!(matches!(failure(outcomes[0].clone()), LaunchFailure::Other(reason, _) if reason == "Unauthorized"));
    launched(outcomes[1].clone());
    assert_eq!(ec2.running().len(), 1, "a claim that was never ordered before may be served");
}

#[tokio::test]
async fn a_token_of_an_earlier_life_means_adopt() {
    let ec2 = Ec2::start();
    ec2.with(|state| state.hidden = 2);
    let first = launched(fleet(&ec2).await.launch(order("c-1"), NOW).await);
    // The same claim after a crash; a type is sold out, so the request has other words under the same token.
    let mut again = adopting("c-1", &[]);
    again.sold_out = first_type_sold_out();
    let adopted = launched(fleet(&ec2).await.launch(again, NOW).await);
    assert_eq!((adopted.provider_id, ec2.running().len()), (first.provider_id, 1));
}

#[tokio::test]
async fn a_token_whose_instances_have_ended_is_not_used_again() {
    let ec2 = Ec2::start();
    launched(fleet(&ec2).await.launch(order("c-1"), NOW).await);
    ec2.with(|state| state.machines[0].state = "terminated");
    let mut again = adopting("c-1", &[]);
    again.sold_out = first_type_sold_out();
    let bought = launched(fleet(&ec2).await.launch(again, NOW).await);
    assert_eq!((bought.provider_id.as_str(), ec2.running().len()), ("aws:///a/i-0002", 1));
}

#[tokio::test]
async fn an_old_answer_whose_instances_have_owners_is_passed_over() {
    let ec2 = Ec2::start();
    launched(fleet(&ec2).await.launch(order("c-1"), NOW).await);
    let bought = launched(fleet(&ec2).await.launch(adopting("c-1", &["aws:///a/i-0001"]), NOW).await);
    assert_eq!((bought.provider_id.as_str(), ec2.running().len()), ("aws:///a/i-0002", 2));
}

#[tokio::test]
async fn an_instance_goes_to_a_claim_that_it_suits() {
    let ec2 = Ec2::start();
    launched(fleet(&ec2).await.launch(order("c-2"), NOW).await);
    ec2.with(|state| state.machines[0].instance_type = "m5.large".to_owned());
    let mut picky = adopting("c-1", &[]);
    picky.claim.requirements.add(whittle_model::Requirement::any_of("node.kubernetes.io/instance-type", &["c5.large"]));
    let after = Arc::new(fleet(&ec2).await);
    let outcomes = launch_all(&after, vec![picky, adopting("c-2", &[])]).await;
    let types: Vec<String> = outcomes.into_iter().map(|outcome| launched(outcome).instance_type).collect();
    assert_eq!((types, ec2.running().len()), (vec!["c5.large".to_owned(), "m5.large".to_owned()], 2));
}

#[tokio::test]
async fn claims_that_come_one_by_one_after_a_crash_share_what_one_call_bought() {
    let ec2 = Ec2::start();
    let before = Arc::new(fleet(&ec2).await);
    launch_all(&before, vec![order("c-1"), order("c-2")]).await;
    let after = Arc::new(fleet(&ec2).await);
    let (one, two) = tokio::join!(after.launch(adopting("c-1", &[]), NOW), async {
        tokio::time::sleep(std::time::Duration::from_millis(38)).await;
        after.launch(adopting("c-2", &[]), NOW).await
    });
    let ids: BTreeSet<String> = [one, two].into_iter().map(|outcome| launched(outcome).provider_id).collect();
    assert_eq!((ids.len(), ec2.running().len()), (2, 2));
}

fn first_type_sold_out() -> BTreeSet<whittle_model::OfferingKey> {
    let key = |zone: &str| whittle_model::OfferingKey {
        instance_type: "c5.large".to_owned(),
        zone: zone.to_owned(),
        capacity_type: whittle_model::CapacityType::Spot,
    };
    ["a", "b"].map(key).into()
}
