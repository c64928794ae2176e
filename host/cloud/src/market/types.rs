//! The instance types of the region.

use aws_sdk_ec2::types::{Filter, InstanceTypeInfo};
use whittle_catalog::Facts;

use super::{
    facts::facts,
    pages::{Page, all},
};
use crate::{
    aws::Aws,
    error::{CloudError, ErrorKind},
};

const ACTION: &str = "DescribeInstanceTypes";
const OBJECT: &str = "of the region";
/// The most that a page may hold.
const PAGE: i32 = 100;

/// All types that nodes can be. What EC2 does not say of a type is taken from the compiled-in table.
pub(crate) async fn read(aws: &Aws) -> Result<Facts, CloudError> {
    let filter = |name: &str, values: &[&str]| {
        Filter::builder().name(name).set_values(Some(values.iter().map(|value| (*value).to_owned()).collect())).build()
    };
    let request = aws
        .ec2
        .describe_instance_types()
        .filters(filter("supported-virtualization-type", &["hvm"]))
        .filters(filter("processor-info.supported-architecture", &["x86_64", "arm64"]))
        .max_results(PAGE);
    let types = all(ACTION, OBJECT, |token| {
        let request = request.clone().set_next_token(token);
        async move {
            let answer = aws.call(ACTION, OBJECT, || request.clone().send()).await?;
            Ok(Page { items: answer.instance_types.unwrap_or_default(), next: answer.next_token })
        }
    })
    .await?;
    convert(&types)
}

/// A type that cannot be read is left out: others do not wait for it.
fn convert(types: &[InstanceTypeInfo]) -> Result<Facts, CloudError> {
    let table = Facts::builtin();
    let mut read = Vec::with_capacity(types.len());
    for info in types {
        let name = info.instance_type.as_ref().map_or("", |name| name.as_str());
        match facts(info, table.get(name)) {
            Ok(facts) => read.push(facts),
            Err(missing) => tracing::warn!(instance_type = name, missing, "EC2 tells too little of an instance type to use it"),
        }
    }
    if read.is_empty() {
        let why = format!("none of the {} types in the answer can be read", types.len());
        return Err(CloudError::local(ACTION, OBJECT, ErrorKind::Other, why));
    }
    Ok(Facts::of(read))
}

#[cfg(test)]
mod tests {
    use aws_sdk_ec2::types::InstanceType;

    use super::*;

    #[test]
    fn an_answer_without_a_readable_type_is_no_answer() {
        let bare = InstanceTypeInfo::builder().instance_type(InstanceType::M5Large).build();
        let why = convert(&[bare]).map_err(|error| error.to_string());
        assert_eq!(why, Err("cannot DescribeInstanceTypes of the region: none of the 1 types in the answer can be read".to_owned()));
    }
}
