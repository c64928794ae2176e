//! Launch templates: made when needed, once, and deleted when they are no longer.

use std::sync::Arc;

use whittle_model::{Duration, Timestamp};

use super::{
    ec2::{Ec2, Fault},
    orders::{NOW, fleet, launch_all, launched, order},
};

#[tokio::test]
async fn templates_are_made_once_and_used_again() {
    let ec2 = Ec2::start();
    let first = fleet(&ec2).await;
    launched(first.launch(order("c-1"), NOW).await);
    launched(first.launch(order("c-2"), NOW).await);
    assert_eq!((ec2.count("DescribeLaunchTemplates"), ec2.count("CreateLaunchTemplate")), (1, 1));
    launched(fleet(&ec2).await.launch(order("c-3"), NOW).await);
    assert_eq!((ec2.count("DescribeLaunchTemplates"), ec2.count("CreateLaunchTemplate")), (2, 1), "found by another life");
    let made = &ec2.calls("CreateLaunchTemplate")[0];
    assert_eq!(made["LaunchTemplateData.ImageId"], "ami-1");
    assert!(made["LaunchTemplateName"].starts_with("karpenter.k8s.aws/"));
}

#[tokio::test]
async fn many_launches_at_once_make_a_template_once() {
    let ec2 = Ec2::start();
    let fleet = Arc::new(fleet(&ec2).await);
    let orders = (0..8).map(|n| {
        let mut order = order(&format!("c-{n}"));
        order.claim.annotations.insert("whittle.sh/launch".to_owned(), format!("g-{n}"));
        order
    });
    for outcome in launch_all(&fleet, orders.collect()).await {
        launched(outcome);
    }
    assert_eq!((ec2.count("CreateFleet"), ec2.count("CreateLaunchTemplate")), (8, 1));
}

#[tokio::test]
async fn a_template_that_vanished_is_made_again_once() {
    let ec2 = Ec2::start();
    let fleet = fleet(&ec2).await;
    launched(fleet.launch(order("c-1"), NOW).await);
    ec2.with(|state| state.templates.clear());
    launched(fleet.launch(order("c-2"), NOW).await);
    assert_eq!((ec2.count("CreateFleet"), ec2.count("CreateLaunchTemplate")), (3, 2));
    ec2.fail("CreateFleet", Fault::Refused("InvalidLaunchTemplateName.NotFoundException"));
    ec2.fail("CreateFleet", Fault::Refused("InvalidLaunchTemplateName.NotFoundException"));
    let why = super::orders::failure(fleet.launch(order("c-3"), NOW).await);
    assert!(matches!(why, whittle_model::LaunchFailure::Other(reason, _) if reason == "LaunchTemplateNotFound"));
    assert_eq!(ec2.count("CreateFleet"), 5, "not for ever");
}

#[tokio::test]
async fn unused_templates_and_those_of_a_class_that_goes_are_deleted() {
    let ec2 = Ec2::start();
    launched(fleet(&ec2).await.launch(order("c-1"), NOW).await);
    let fleet = fleet(&ec2).await;
    // Somebody else's, whatever its tags say.
    ec2.with(|state| {
        let theirs = state.templates.values().next().unwrap().clone();
        state.templates.insert("terraform-nodes".to_owned(), theirs);
    });
    fleet.hydrate(NOW).await.unwrap();
    let after = |minutes| Timestamp(NOW.0 + Duration::minutes(minutes).0);
    assert_eq!(fleet.sweep_templates(after(9)).await.unwrap(), 0);
    launched(fleet.launch(order("c-2"), after(9)).await);
    assert_eq!(fleet.sweep_templates(after(18)).await.unwrap(), 0, "used in between");
    assert_eq!(fleet.sweep_templates(after(19)).await.unwrap(), 1);
    assert_eq!(ec2.with(|state| state.templates.len()), 1);
    launched(fleet.launch(order("c-3"), after(20)).await);
    fleet.delete_templates("another").await.unwrap();
    assert_eq!(ec2.with(|state| state.templates.len()), 2);
    fleet.delete_templates("default").await.unwrap();
    assert_eq!(ec2.with(|state| state.templates.len()), 1);
    launched(fleet.launch(order("c-4"), after(20)).await);
}
