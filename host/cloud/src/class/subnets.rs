//! The subnets that a class names.
//!
//! What must not enter: which of them an instance goes to.

use std::collections::BTreeMap;

use aws_sdk_ec2::types;
use whittle_model::ec2_node_class::SubnetSelectorTerm;

use super::{
    lookup::Ask,
    resolved::Subnet,
    selector::{Queries, Query},
};
use crate::{Aws, CloudError};

const PAGE: i32 = 500;

/// The questions that `terms` stand for.
pub(super) fn queries(terms: &[SubnetSelectorTerm]) -> Vec<Query> {
    let mut queries = Queries::new("subnetSelectorTerms", "subnet-id", "");
    for (at, term) in terms.iter().enumerate() {
        match (&term.id, &term.tags) {
            (Some(id), _) => queries.id(at, id),
            (None, Some(tags)) if !tags.is_empty() => queries.tags(at, tags),
            (None, _) => {}
        }
    }
    queries.build()
}

impl Ask for Subnet {
    async fn ask(aws: &Aws, query: &Query) -> Result<Vec<Self>, CloudError> {
        ask(aws, query).await
    }

    fn handles(&self) -> [&str; 2] {
        [&self.id, ""]
    }
}

async fn ask(aws: &Aws, query: &Query) -> Result<Vec<Subnet>, CloudError> {
    let mut found = Vec::new();
    let mut token = None;
    loop {
        let request = aws.ec2.describe_subnets().set_filters(Some(query.filters())).max_results(PAGE).set_next_token(token.take());
        let page = aws.call("DescribeSubnets", "that the class selects", || request.clone().send()).await?;
        found.extend(page.subnets().iter().filter_map(subnet));
        token = page.next_token().filter(|token| !token.is_empty()).map(ToOwned::to_owned);
        if token.is_none() {
            return Ok(found);
        }
    }
}

/// Each subnet once: those with most free addresses first, then by id.
pub(super) fn merge(found: Vec<Subnet>) -> Vec<Subnet> {
    let by_id: BTreeMap<String, Subnet> = found.into_iter().map(|subnet| (subnet.id.clone(), subnet)).collect();
    let mut all: Vec<Subnet> = by_id.into_values().collect();
    all.sort_by(|a, b| b.free_addresses.cmp(&a.free_addresses).then_with(|| a.id.cmp(&b.id)));
    all
}

fn subnet(answer: &types::Subnet) -> Option<Subnet> {
    Some(Subnet {
        id: answer.subnet_id()?.to_owned(),
        zone: answer.availability_zone()?.to_owned(),
        zone_id: answer.availability_zone_id().unwrap_or_default().to_owned(),
        vpc: answer.vpc_id().unwrap_or_default().to_owned(),
        free_addresses: i64::from(answer.available_ip_address_count().unwrap_or_default()),
    })
}
