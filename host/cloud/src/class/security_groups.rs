//! The security groups that a class names.
//!
//! What must not enter: what they allow.

use std::collections::BTreeMap;

use aws_sdk_ec2::types;
use whittle_model::ec2_node_class::SecurityGroupSelectorTerm;

use super::{
    lookup::Ask,
    resolved::SecurityGroup,
    selector::{Queries, Query},
};
use crate::{Aws, CloudError};

const PAGE: i32 = 500;

/// The questions that `terms` stand for.
pub(super) fn queries(terms: &[SecurityGroupSelectorTerm]) -> Vec<Query> {
    let mut queries = Queries::new("securityGroupSelectorTerms", "group-id", "group-name");
    for (at, term) in terms.iter().enumerate() {
        match (&term.id, &term.name, &term.tags) {
            (Some(id), _, _) => queries.id(at, id),
            (None, Some(name), _) => queries.name(at, name),
            (None, None, Some(tags)) if !tags.is_empty() => queries.tags(at, tags),
            (None, None, _) => {}
        }
    }
    queries.build()
}

impl Ask for SecurityGroup {
    async fn ask(aws: &Aws, query: &Query) -> Result<Vec<Self>, CloudError> {
        ask(aws, query).await
    }

    fn handles(&self) -> [&str; 2] {
        [&self.id, &self.name]
    }
}

async fn ask(aws: &Aws, query: &Query) -> Result<Vec<SecurityGroup>, CloudError> {
    let mut found = Vec::new();
    let mut token = None;
    loop {
        let request = aws.ec2.describe_security_groups().set_filters(Some(query.filters())).max_results(PAGE).set_next_token(token.take());
        let page = aws.call("DescribeSecurityGroups", "that the class selects", || request.clone().send()).await?;
        found.extend(page.security_groups().iter().filter_map(security_group));
        token = page.next_token().filter(|token| !token.is_empty()).map(ToOwned::to_owned);
        if token.is_none() {
            return Ok(found);
        }
    }
}

/// Each group once, by id.
pub(super) fn merge(found: Vec<SecurityGroup>) -> Vec<SecurityGroup> {
    let by_id: BTreeMap<String, SecurityGroup> = found.into_iter().map(|group| (group.id.clone(), group)).collect();
    by_id.into_values().collect()
}

fn security_group(answer: &types::SecurityGroup) -> Option<SecurityGroup> {
    Some(SecurityGroup {
        id: answer.group_id()?.to_owned(),
        name: answer.group_name().unwrap_or_default().to_owned(),
        vpc: answer.vpc_id().unwrap_or_default().to_owned(),
    })
}
