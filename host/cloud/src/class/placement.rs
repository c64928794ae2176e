//! The placement group that a class names.
//!
//! What must not enter: which instance types it takes, and partitions.

use aws_sdk_ec2::types::{self, Filter};
use whittle_model::ec2_node_class::PlacementGroupSelector;

use super::resolved::{PlacementGroup, PlacementStrategy};
use crate::{Aws, CloudError};

/// The key of the answer.
pub(super) fn key(selector: &PlacementGroupSelector) -> String {
    format!("{:?} {:?}", selector.id, selector.name)
}

/// Such as `placement group rack-a`.
pub(super) fn words(selector: &PlacementGroupSelector) -> String {
    format!("placement group {}", selector.id.as_ref().or(selector.name.as_ref()).map_or("", String::as_str))
}

/// The group; `None` when there is none of this name or id, or it is not available.
pub(super) async fn ask(aws: &Aws, selector: &PlacementGroupSelector) -> Result<Option<PlacementGroup>, CloudError> {
    let available = Filter::builder().name("state").values("available").build();
    let mut request = aws.ec2.describe_placement_groups().filters(available);
    request = match (&selector.id, &selector.name) {
        (Some(id), _) => request.group_ids(id),
        (None, Some(name)) => request.group_names(name),
        (None, None) => return Ok(None),
    };
    match aws.call("DescribePlacementGroups", &format!("for {}", words(selector)), || request.clone().send()).await {
        Ok(answer) => Ok(answer.placement_groups().first().and_then(group)),
        // EC2's words for a name and for an id that do not exist.
        Err(error) if error.is_not_found() || error.code.ends_with(".Unknown") => Ok(None),
        Err(error) => Err(error),
    }
}

fn group(answer: &types::PlacementGroup) -> Option<PlacementGroup> {
    Some(PlacementGroup {
        id: answer.group_id()?.to_owned(),
        name: answer.group_name().unwrap_or_default().to_owned(),
        strategy: match answer.strategy()?.as_str() {
            "cluster" => PlacementStrategy::Cluster,
            "partition" => PlacementStrategy::Partition,
            "spread" => PlacementStrategy::Spread,
            _ => return None,
        },
        partitions: answer.partition_count().and_then(|count| u32::try_from(count).ok()).unwrap_or_default(),
        spread_level: answer.spread_level().map(|level| level.as_str().to_owned()).unwrap_or_default(),
    })
}
