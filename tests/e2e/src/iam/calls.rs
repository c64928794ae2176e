//! Calls as the server recorded them, and what IAM is asked about each: one question for every resource concerned.
//! Source: <https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2.html>.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use serde_json::Value;

use super::policy::Request;
use crate::kube::text;

/// The account of the AWS server.
pub(super) const ACCOUNT: &str = "123456789012";

type Tags = BTreeMap<String, String>;

/// A recorded call.
struct Call<'c> {
    service: &'c str,
    region: &'c str,
    action: &'c str,
    recorded: &'c Value,
}

/// What IAM is asked about a call.
pub(super) fn requests_of(recorded: &Value) -> Result<Vec<Request>> {
    let call = Call { service: text(recorded, "/service"), region: text(recorded, "/region"), action: text(recorded, "/action"), recorded };
    // A batch needs the permission of the single call.
    let call = Call { action: call.action.strip_suffix("Batch").unwrap_or(call.action), ..call };
    Ok(match (call.service, call.action) {
        ("ec2", action) if action.starts_with("Describe") => vec![call.ask("*", &[])],
        ("ec2", "CreateFleet" | "RunInstances") => call.launch(),
        ("ec2", "CreateLaunchTemplate") => call.template(),
        ("ec2", "CreateTags") => call.tagging(),
        ("ec2", "TerminateInstances" | "DeleteLaunchTemplate") => call.named(),
        ("sts", "GetCallerIdentity") => Vec::new(), // nobody can be denied it
        ("iam", "ListInstanceProfiles") | ("pricing", _) => vec![call.ask("*", &[])],
        ("iam", _) => call.profile(),
        ("ssm", _) => vec![call.ask(&format!("arn:aws:ssm:{}::parameter{}", call.region, call.param("Name")), &[])],
        ("sqs", _) => {
            let url = call.param("QueueUrl");
            let queue = if url.is_empty() { call.param("QueueName") } else { url.rsplit('/').next().unwrap_or_default() };
            vec![call.ask(&format!("arn:aws:sqs:{}:{ACCOUNT}:{queue}", call.region), &[])]
        }
        ("eks", _) => {
            let name = text(recorded, "/path").rsplit('/').next().unwrap_or_default();
            let resource = format!("arn:aws:eks:{}:{ACCOUNT}:cluster/{name}", call.region);
            vec![Request { action: "eks:DescribeCluster".to_owned(), ..call.ask(&resource, &[]) }]
        }
        (service, action) => bail!("nobody knows what IAM is asked about {service}:{action}"),
    })
}

impl Call<'_> {
    fn params(&self) -> impl Iterator<Item = (&str, &str)> {
        self.recorded["params"].as_object().into_iter().flatten().filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
    }

    fn param(&self, name: &str) -> &str {
        self.recorded["params"][name].as_str().unwrap_or_default()
    }

    /// Values of parameters whose name ends so, each once.
    fn ending(&self, end: &str) -> Vec<&str> {
        let mut values: Vec<&str> = self.params().filter(|(key, _)| key.ends_with(end)).map(|(_, value)| value).collect();
        values.sort_unstable();
        values.dedup();
        values
    }

    fn ask(&self, resource: &str, more: &[(&str, &Tags)]) -> Request {
        let mut context = BTreeMap::from([("aws:RequestedRegion".to_owned(), vec![self.region.to_owned()])]);
        for (kind, tags) in more {
            for (key, value) in *tags {
                context.insert(format!("aws:{kind}/{key}"), vec![value.clone()]);
            }
            if *kind == "RequestTag" && !tags.is_empty() {
                context.insert("aws:TagKeys".to_owned(), tags.keys().cloned().collect());
            }
        }
        Request { action: format!("{}:{}", self.service, self.action), resource: resource.to_owned(), context }
    }

    fn arn(&self, kind: &str, id: &str) -> String {
        let account = if matches!(kind, "image" | "snapshot") { "" } else { ACCOUNT };
        format!("arn:aws:ec2:{}:{account}:{kind}/{id}", self.region)
    }

    /// Tags below a parameter: `<prefix>.<n>.Key` and `.Value`.
    fn tags_below(&self, prefix: &str) -> Tags {
        let keys =
            self.params().filter_map(|(key, value)| Some((key.strip_prefix(prefix)?.strip_suffix(".Key")?.to_owned(), value.to_owned())));
        keys.map(|(number, key)| (key, self.param(&format!("{prefix}{number}.Value")).to_owned())).collect()
    }

    /// Tags asked for, by kind of resource.
    fn specifications(&self) -> BTreeMap<String, Tags> {
        let mut all = BTreeMap::new();
        for number in 1.. {
            let kind = self.param(&format!("TagSpecification.{number}.ResourceType"));
            if kind.is_empty() {
                break;
            }
            all.insert(kind.to_owned(), self.tags_below(&format!("TagSpecification.{number}.Tag.")));
        }
        all
    }

    /// Resources of a kind that the call names: id and tags.
    fn resources(&self, kind: &str) -> Vec<(String, Tags, &Value)> {
        let all = self.recorded["resources"].as_object().into_iter().flatten().filter(|(_, found)| text(found, "/kind") == kind);
        all.map(|(name, found)| (found["id"].as_str().unwrap_or(name).to_owned(), tags(&found["tags"]), found)).collect()
    }

    /// Tags at creation: one question more for each kind of resource.
    fn at_creation(&self, kind: &str, tags: &Tags, by: &str) -> Request {
        let mut asked = self.ask(&self.arn(kind, "*"), &[("RequestTag", tags)]);
        asked.action = "ec2:CreateTags".to_owned();
        asked.context.insert("ec2:CreateAction".to_owned(), vec![by.to_owned()]);
        asked
    }

    fn launch(&self) -> Vec<Request> {
        let (mut made, mut asked) = (self.specifications(), Vec::new());
        let templates = self.resources("launch-template");
        for spec in templates.iter().flat_map(|(_, _, found)| found["specs"].as_array().into_iter().flatten()) {
            made.entry(text(spec, "/type").to_owned()).or_default().extend(tags(&spec["tags"]));
        }
        // Always made, tagged or not.
        for kind in ["instance", "volume", "network-interface"] {
            made.entry(kind.to_owned()).or_default();
        }
        let fleet = self.action == "CreateFleet";
        let run = |request: Request| Request { action: "ec2:RunInstances".to_owned(), ..request };
        for (kind, tags) in &made {
            let request = self.ask(&self.arn(kind, "*"), &[("RequestTag", tags)]);
            if kind == "fleet" {
                asked.push(request);
            } else {
                asked.push(run(request.clone()));
                asked.extend(fleet.then_some(request).filter(|_| kind != "network-interface" || !tags.is_empty()));
            }
            if !tags.is_empty() {
                asked.push(self.at_creation(kind, tags, if kind == "fleet" { "CreateFleet" } else { "RunInstances" }));
            }
        }
        let mut used: Vec<Request> = Vec::new();
        for (kind, end) in [("subnet", "SubnetId"), ("image", "ImageId"), ("security-group", "SecurityGroupId")] {
            used.extend(self.ending(end).into_iter().map(|id| self.ask(&self.arn(kind, id), &[])));
        }
        used.extend(templates.iter().map(|(id, tags, _)| self.ask(&self.arn("launch-template", id), &[("ResourceTag", tags)])));
        for request in used {
            asked.push(run(request.clone()));
            asked.extend(fleet.then_some(request));
        }
        let roles = templates.iter().flat_map(|(_, _, found)| found["roles"].as_array().into_iter().flatten());
        asked.extend(roles.filter_map(Value::as_str).map(|role| self.pass(role)));
        asked
    }

    fn pass(&self, role: &str) -> Request {
        let mut asked = self.ask(&format!("arn:aws:iam::{ACCOUNT}:role/{role}"), &[]);
        asked.action = "iam:PassRole".to_owned();
        asked.context.insert("iam:PassedToService".to_owned(), vec!["ec2.amazonaws.com".to_owned()]);
        asked
    }

    fn template(&self) -> Vec<Request> {
        let tags = self.specifications().remove("launch-template").unwrap_or_default();
        vec![
            self.ask(&self.arn("launch-template", "*"), &[("RequestTag", &tags)]),
            self.at_creation("launch-template", &tags, "CreateLaunchTemplate"),
        ]
    }

    fn tagging(&self) -> Vec<Request> {
        let tags = self.tags_below("Tag.");
        let each = self.resources("instance");
        each.into_iter().map(|(id, own, _)| self.ask(&self.arn("instance", &id), &[("ResourceTag", &own), ("RequestTag", &tags)])).collect()
    }

    fn named(&self) -> Vec<Request> {
        let of = |kind: &'static str| self.resources(kind).into_iter().map(move |(id, tags, _)| (kind, id, tags));
        let all = of("instance").chain(of("launch-template"));
        all.map(|(kind, id, tags)| self.ask(&self.arn(kind, &id), &[("ResourceTag", &tags)])).collect()
    }

    fn profile(&self) -> Vec<Request> {
        let name = self.param("InstanceProfileName");
        let own = self.resources("instance-profile").pop().map(|(_, tags, _)| tags).unwrap_or_default();
        let asked_for = self.tags_below("Tags.member.");
        let resource = format!("arn:aws:iam::{ACCOUNT}:instance-profile/{name}");
        let mut asked = vec![self.ask(&resource, &[("ResourceTag", &own), ("RequestTag", &asked_for)])];
        if self.action == "CreateInstanceProfile" && !asked_for.is_empty() {
            asked.push(Request {
                action: "iam:TagInstanceProfile".to_owned(),
                ..self.ask(&resource, &[("ResourceTag", &asked_for), ("RequestTag", &asked_for)])
            });
        }
        if self.action == "AddRoleToInstanceProfile" {
            asked.push(self.pass(self.param("RoleName")));
        }
        asked
    }
}

fn tags(value: &Value) -> Tags {
    let each = value.as_object().into_iter().flatten();
    each.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lines(recorded: &Value) -> Vec<String> {
        requests_of(recorded).map(|all| all.iter().map(|r| format!("{} {}", r.action, r.resource)).collect()).unwrap_or_default()
    }

    #[test]
    fn a_fleet_is_asked_about_all_that_it_makes_and_uses() {
        let fleet = json!({ "service": "ec2", "region": "us-east-1", "action": "CreateFleet", "params": {
                "TagSpecification.1.ResourceType": "fleet", "TagSpecification.1.Tag.1.Key": "a", "TagSpecification.1.Tag.1.Value": "b",
                "LaunchTemplateConfigs.1.LaunchTemplateSpecification.LaunchTemplateName": "t",
                "LaunchTemplateConfigs.1.Overrides.1.SubnetId": "subnet-1", "LaunchTemplateConfigs.1.Overrides.2.SubnetId": "subnet-1" },
            "resources": { "t": { "kind": "launch-template", "id": "lt-1", "tags": { "k": "v" }, "roles": ["node"], "specs": [] } } });
        assert_eq!(
            lines(&fleet),
            [
                "ec2:CreateFleet arn:aws:ec2:us-east-1:123456789012:fleet/*",
                "ec2:CreateTags arn:aws:ec2:us-east-1:123456789012:fleet/*",
                "ec2:RunInstances arn:aws:ec2:us-east-1:123456789012:instance/*",
                "ec2:CreateFleet arn:aws:ec2:us-east-1:123456789012:instance/*",
                "ec2:RunInstances arn:aws:ec2:us-east-1:123456789012:network-interface/*",
                "ec2:RunInstances arn:aws:ec2:us-east-1:123456789012:volume/*",
                "ec2:CreateFleet arn:aws:ec2:us-east-1:123456789012:volume/*",
                "ec2:RunInstances arn:aws:ec2:us-east-1:123456789012:subnet/subnet-1",
                "ec2:CreateFleet arn:aws:ec2:us-east-1:123456789012:subnet/subnet-1",
                "ec2:RunInstances arn:aws:ec2:us-east-1:123456789012:launch-template/lt-1",
                "ec2:CreateFleet arn:aws:ec2:us-east-1:123456789012:launch-template/lt-1",
                "iam:PassRole arn:aws:iam::123456789012:role/node",
            ]
        );
    }

    #[test]
    fn calls_of_other_services_name_their_resource() {
        for (recorded, line) in [
            (
                json!({ "service": "ssm", "region": "r", "action": "GetParameter", "params": { "Name": "/aws/service/x" } }),
                "ssm:GetParameter arn:aws:ssm:r::parameter/aws/service/x",
            ),
            (
                json!({ "service": "sqs", "region": "r", "action": "ReceiveMessage", "params": { "QueueUrl": "http://h/1/q" } }),
                "sqs:ReceiveMessage arn:aws:sqs:r:123456789012:q",
            ),
            (
                json!({ "service": "eks", "region": "r", "action": "/clusters/demo", "path": "/clusters/demo", "params": {} }),
                "eks:DescribeCluster arn:aws:eks:r:123456789012:cluster/demo",
            ),
            (json!({ "service": "pricing", "region": "r", "action": "GetProducts", "params": {} }), "pricing:GetProducts *"),
        ] {
            assert_eq!(lines(&recorded), [line]);
        }
        assert!(requests_of(&json!({ "service": "s3", "region": "r", "action": "PutObject", "params": {} })).is_err());
    }
}
