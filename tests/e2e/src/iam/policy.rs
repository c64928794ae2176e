//! Policies as IAM evaluates them: statements that allow, with resources and conditions.
//! Source: <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_condition_operators.html>.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use wildmatch::WildMatch;

/// What IAM is asked: may this be done to that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    /// Such as `ec2:RunInstances`.
    pub(super) action: String,
    /// An ARN.
    pub(super) resource: String,
    /// Condition keys with their values.
    pub(super) context: BTreeMap<String, Vec<String>>,
}

impl std::fmt::Display for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} on {} with {:?}", self.action, self.resource, self.context)
    }
}

/// How a condition compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equals,
    EqualsIfExists,
    Like,
    AllEqual,
}

#[derive(Debug)]
struct Condition {
    operator: Operator,
    key: String,
    values: Vec<String>,
}

/// A statement that allows something.
#[derive(Debug)]
pub(super) struct Statement {
    /// Its name.
    pub(super) sid: String,
    actions: Vec<String>,
    resources: Vec<String>,
    conditions: Vec<Condition>,
}

/// Statements of several policies.
#[derive(Debug, Default)]
pub(super) struct Policy(Vec<Statement>);

impl Policy {
    /// Adds the statements of a policy in which `${NAME}` stands for a parameter.
    pub(super) fn add(&mut self, written: &str, parameters: &BTreeMap<&str, &str>) -> Result<()> {
        let mut text = written.to_owned();
        for (name, value) in parameters {
            text = text.replace(&format!("${{{name}}}"), value);
        }
        ensure!(
            !text.contains("${"),
            "a parameter is not known: {}",
            text.split("${").nth(1).unwrap_or_default().split('}').next().unwrap_or_default()
        );
        let policy: Value = serde_json::from_str(&text)?;
        for statement in policy["Statement"].as_array().context("there are no statements")? {
            self.0.push(statement_of(statement)?);
        }
        Ok(())
    }

    /// All statements.
    pub(super) fn statements(&self) -> impl Iterator<Item = &Statement> {
        self.0.iter()
    }

    /// The first statement that allows a request.
    pub(super) fn allowing(&self, request: &Request) -> Option<&Statement> {
        self.0.iter().find(|statement| statement.allows(request))
    }
}

fn statement_of(written: &Value) -> Result<Statement> {
    let sid = written["Sid"].as_str().context("a statement has no Sid")?.to_owned();
    ensure!(written["Effect"] == "Allow", "{sid} does not allow");
    let mut conditions = Vec::new();
    for (operator, keys) in written["Condition"].as_object().into_iter().flatten() {
        let operator = match operator.as_str() {
            "StringEquals" => Operator::Equals,
            "StringEqualsIfExists" => Operator::EqualsIfExists,
            "StringLike" => Operator::Like,
            "ForAllValues:StringEquals" => Operator::AllEqual,
            other => bail!("{sid} compares by {other}, which is not known here"),
        };
        for (key, values) in keys.as_object().with_context(|| format!("{sid} has a condition without keys"))? {
            conditions.push(Condition { operator, key: key.clone(), values: list(values) });
        }
    }
    Ok(Statement { sid, actions: list(&written["Action"]), resources: list(&written["Resource"]), conditions })
}

fn list(written: &Value) -> Vec<String> {
    if let Some(one) = written.as_str() {
        return vec![one.to_owned()];
    }
    written.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn like(patterns: &[String], text: &str) -> bool {
    patterns.iter().any(|pattern| WildMatch::new(pattern).matches(text))
}

impl Statement {
    fn allows(&self, request: &Request) -> bool {
        like(&self.actions, &request.action)
            && like(&self.resources, &request.resource)
            && self.conditions.iter().all(|condition| condition.holds(request.context.get(&condition.key)))
    }
}

impl Condition {
    fn holds(&self, values: Option<&Vec<String>>) -> bool {
        let equal = |value: &String| self.values.contains(value);
        match (self.operator, values) {
            (Operator::Equals | Operator::Like, None) => false,
            (Operator::EqualsIfExists | Operator::AllEqual, None) => true,
            (Operator::Equals | Operator::EqualsIfExists, Some(values)) => values.iter().any(equal),
            (Operator::Like, Some(values)) => values.iter().any(|value| like(&self.values, value)),
            (Operator::AllEqual, Some(values)) => values.iter().all(equal),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: &str = r#"{"Statement": [
        {"Sid": "Read", "Effect": "Allow", "Resource": ["*"], "Action": ["ec2:Describe*"], "Condition": {"StringEquals": {"aws:RequestedRegion": "${R}"}}},
        {"Sid": "Tag", "Effect": "Allow", "Resource": "arn:aws:ec2:${R}:*:instance/*", "Action": "ec2:CreateTags", "Condition": {
            "StringLike": {"aws:ResourceTag/pool": "*"},
            "StringEqualsIfExists": {"aws:RequestTag/cluster": "c"},
            "ForAllValues:StringEquals": {"aws:TagKeys": ["cluster", "Name"]}}}
    ]}"#;

    fn request(action: &str, resource: &str, context: &[(&str, &[&str])]) -> Request {
        let context = context.iter().map(|(key, values)| ((*key).to_owned(), values.iter().map(|v| (*v).to_owned()).collect()));
        Request { action: action.to_owned(), resource: resource.to_owned(), context: context.collect() }
    }

    #[test]
    fn statements_allow_by_action_resource_and_conditions() -> Result<()> {
        let mut policy = Policy::default();
        policy.add(POLICY, &BTreeMap::from([("R", "r1")]))?;
        let instance = "arn:aws:ec2:r1:1:instance/i-1";
        let pool: (&str, &[&str]) = ("aws:ResourceTag/pool", &["p"]);
        for (asked, by) in [
            (request("ec2:DescribeImages", "*", &[("aws:RequestedRegion", &["r1"])]), Some("Read")),
            (request("ec2:DescribeImages", "*", &[("aws:RequestedRegion", &["r2"])]), None),
            (request("ec2:DescribeImages", "*", &[]), None),
            (request("ec2:DeleteTags", instance, &[pool]), None),
            (request("ec2:CreateTags", instance, &[pool]), Some("Tag")),
            (request("ec2:CreateTags", "arn:aws:ec2:r1:1:volume/v-1", &[pool]), None),
            (request("ec2:CreateTags", instance, &[]), None),
            (request("ec2:CreateTags", instance, &[pool, ("aws:TagKeys", &["Name", "cluster"])]), Some("Tag")),
            (request("ec2:CreateTags", instance, &[pool, ("aws:TagKeys", &["Name", "other"])]), None),
            (request("ec2:CreateTags", instance, &[pool, ("aws:RequestTag/cluster", &["d"])]), None),
        ] {
            assert_eq!(policy.allowing(&asked).map(|s| s.sid.as_str()), by, "{asked}");
        }
        assert!(Policy::default().add(POLICY, &BTreeMap::new()).is_err(), "a parameter nobody gives");
        Ok(())
    }
}
