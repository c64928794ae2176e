//! Which zones offer which types, as the account sees its region.

use std::collections::BTreeSet;

use aws_sdk_ec2::types::LocationType;
use whittle_catalog::Offered;

use super::pages::{Page, all};
use crate::{
    aws::Aws,
    error::{CloudError, ErrorKind},
};

const ACTION: &str = "DescribeInstanceTypeOfferings";
const OBJECT: &str = "by zone";
/// The most that a page may hold.
const PAGE: i32 = 1000;

/// All offerings of the region.
pub(crate) async fn read(aws: &Aws) -> Result<Offered, CloudError> {
    let request = aws.ec2.describe_instance_type_offerings().location_type(LocationType::AvailabilityZone).max_results(PAGE);
    let offerings = all(ACTION, OBJECT, |token| {
        let request = request.clone().set_next_token(token);
        async move {
            let answer = aws.call(ACTION, OBJECT, || request.clone().send()).await?;
            Ok(Page { items: answer.instance_type_offerings.unwrap_or_default(), next: answer.next_token })
        }
    })
    .await?;
    let pairs: BTreeSet<(String, String)> =
        offerings.into_iter().filter_map(|offering| Some((offering.instance_type?.as_str().to_owned(), offering.location?))).collect();
    if pairs.is_empty() {
        return Err(CloudError::local(ACTION, OBJECT, ErrorKind::Other, "the answer has no offering"));
    }
    Ok(Offered::listed(&pairs))
}
