//! Classes against a server that answers like AWS.

use whittle_model::{Labels, ec2_node_class as api};

use super::*;

#[path = "class_fake.rs"]
mod fake;
use fake::{Fake, Reply, body, error};

const START: Timestamp = Timestamp(1_700_000_000_000);

fn at(seconds: i64) -> Timestamp {
    START.plus(Duration::seconds(seconds))
}

fn spec(yaml: serde_json::Value) -> api::Ec2NodeClassSpec {
    let mut written = serde_json::json!({
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": "demo"}}],
        "securityGroupSelectorTerms": [{"tags": {"karpenter.sh/discovery": "demo"}}],
        "role": "nodes",
    });
    for (key, value) in yaml.as_object().unwrap() {
        written[key] = value.clone();
        if value.is_null() {
            written.as_object_mut().unwrap().remove(key);
        }
    }
    serde_json::from_value(written).unwrap()
}

fn class(changes: serde_json::Value) -> ClassInput {
    ClassInput {
        name: "default".to_owned(),
        uid: "uid-1".to_owned(),
        generation: 1,
        annotations: Labels::new(),
        spec: spec(changes),
        status_profile: None,
    }
}

fn settings() -> ClassSettings {
    ClassSettings {
        cluster: "demo".to_owned(),
        isolated_vpc: false,
        disable_dry_run: false,
        reserved_capacity: true,
        ami_refresh: Duration::minutes(1),
        subnet_refresh: Duration::minutes(1),
    }
}

/// A cluster, the server behind it, and what is remembered of it.
struct Bed {
    fake: Fake,
    aws: Aws,
    classes: Classes,
    cluster: ClusterFacts,
    kubernetes: &'static str,
    candidates: Vec<InstanceType>,
    may_write: bool,
}

const SUBNETS: &str = "<subnetSet>\
    <item><subnetId>subnet-a</subnetId><vpcId>vpc-1</vpcId><availabilityZone>us-east-1a</availabilityZone>\
    <availabilityZoneId>use1-az1</availabilityZoneId><availableIpAddressCount>10</availableIpAddressCount></item>\
    <item><subnetId>subnet-b</subnetId><vpcId>vpc-1</vpcId><availabilityZone>us-east-1b</availabilityZone>\
    <availabilityZoneId>use1-az2</availabilityZoneId><availableIpAddressCount>200</availableIpAddressCount></item></subnetSet>";
const GROUPS: &str =
    "<securityGroupInfo><item><groupId>sg-1</groupId><groupName>nodes</groupName><vpcId>vpc-1</vpcId></item></securityGroupInfo>";

fn images(deprecated: &str) -> Reply {
    let image = |id: &str, arch: &str| {
        format!(
            "<item><imageId>{id}</imageId><name>{id}-name</name><architecture>{arch}</architecture>\
             <creationDate>2023-11-01T10:00:00.000Z</creationDate>{deprecated}</item>"
        )
    };
    Reply::Body(format!("<imagesSet>{}{}</imagesSet>", image("ami-amd", "x86_64"), image("ami-arm", "arm64")))
}

fn profile(role: &str) -> Reply {
    let role = if role.is_empty() {
        String::new()
    } else {
        format!(
            "<member><Path>/</Path><RoleName>{role}</RoleName><RoleId>AROA1</RoleId><Arn>arn:aws:iam::1:role/{role}</Arn>\
             <CreateDate>2023-11-01T10:00:00Z</CreateDate></member>"
        )
    };
    Reply::Body(format!(
        "<GetInstanceProfileResult><InstanceProfile><Path>/</Path><InstanceProfileName>p</InstanceProfileName>\
         <InstanceProfileId>AIPA1</InstanceProfileId><Arn>arn:aws:iam::1:instance-profile/p</Arn>\
         <CreateDate>2023-11-01T10:00:00Z</CreateDate><Roles>{role}</Roles></InstanceProfile></GetInstanceProfileResult>"
    ))
}

fn dry() -> Reply {
    Reply::Error(412, "DryRunOperation".to_owned(), "Request would have succeeded, but DryRun flag is set.".to_owned())
}

impl Bed {
    async fn new(settings: ClassSettings) -> Self {
        let fake = Fake::start().await;
        fake.set("DescribeSubnets", "", body(SUBNETS));
        fake.set("DescribeSecurityGroups", "", body(GROUPS));
        fake.set("DescribeImages", "", images(""));
        fake.set("GetParameter", "", error("ParameterNotFound", ""));
        fake.set("GetParameter", "x86_64/standard/recommended", body(r#"{"Parameter":{"Value":"ami-amd"}}"#));
        fake.set("GetParameter", "arm64/standard/recommended", body(r#"{"Parameter":{"Value":"ami-arm"}}"#));
        fake.set("GetInstanceProfile", "", error("NoSuchEntity", "no such profile"));
        for action in ["AddRoleToInstanceProfile", "RemoveRoleFromInstanceProfile", "DeleteInstanceProfile"] {
            fake.set(action, "", body(""));
        }
        fake.set("CreateInstanceProfile", "", body("<CreateInstanceProfileResult/>"));
        fake.set("CreateLaunchTemplate", "", body(""));
        fake.set("DeleteLaunchTemplate", "", body(""));
        fake.set("CreateFleet", "", dry());
        fake.set("RunInstances", "", dry());
        let aws = fake.aws().await;
        let cluster = ClusterFacts {
            name: "demo".to_owned(),
            endpoint: "https://api".to_owned(),
            ca_bundle: Some("Y2E=".to_owned()),
            dns_ip: None,
            service_cidr: Some("10.100.0.0/16".to_owned()),
            region: "us-east-1".to_owned(),
        };
        Self { fake, aws, classes: Classes::new(settings), cluster, kubernetes: "1.34", candidates: Vec::new(), may_write: true }
    }

    async fn resolve(&self, class: &ClassInput, now: Timestamp) -> Resolved {
        let around = Surroundings {
            cluster: &self.cluster,
            kubernetes: self.kubernetes,
            candidates: &self.candidates,
            dedicated: false,
            may_write: self.may_write,
        };
        self.classes.resolve(&self.aws, class, &around, now).await
    }

    async fn told(&self, changes: serde_json::Value) -> String {
        told(&self.resolve(&class(changes), START).await)
    }
}

/// All that is found out, a line each; the conditions that are true in one.
fn told(resolved: &Resolved) -> String {
    let mut lines = Vec::new();
    lines.extend(resolved.subnets.iter().map(|s| format!("subnet {} {} {} {}", s.id, s.zone, s.zone_id, s.free_addresses)));
    lines.extend(resolved.security_groups.iter().map(|g| format!("group {} {}", g.id, g.name)));
    for ami in resolved.status_amis() {
        let words = |r: &api::AmiRequirement| match &r.values {
            Some(values) => format!("{} {} {}", r.key, r.operator, values.join(",")),
            None => format!("{} {}", r.key, r.operator),
        };
        let requirements: Vec<String> = ami.requirements.iter().map(words).collect();
        let deprecated = if ami.deprecated == Some(true) { " deprecated" } else { "" };
        lines.push(format!("ami {}{deprecated}: {}", ami.id, requirements.join("; ")));
    }
    lines.extend(resolved.instance_profile.iter().map(|profile| format!("profile {profile}")));
    let (good, bad): (Vec<_>, Vec<_>) = resolved.conditions.iter().partition(|c| c.status == ConditionStatus::True);
    lines.push(format!("true: {}", good.iter().map(|c| c.kind.name()).collect::<Vec<_>>().join(" ")));
    lines.extend(bad.iter().map(ToString::to_string));
    lines.extend(resolved.notes.iter().map(|note| format!("note: {note}")));
    without_hash(&lines.join("\n"))
}

/// Only the conditions that are not true, but for the sum of all.
fn faults(resolved: &Resolved) -> String {
    without_hash(&resolved.not_ready().unwrap_or_default())
}

/// Names of profiles end in a hash.
fn without_hash(text: &str) -> String {
    let mut parts = text.split("demo_");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| all + "demo_PROFILE" + part.trim_start_matches(|c: char| c.is_ascii_digit()))
}

#[tokio::test]
async fn a_resolution_may_run_as_a_task() {
    let bed = std::sync::Arc::new(Bed::new(settings()).await);
    let task = bed.clone();
    let resolved = tokio::spawn(async move { task.resolve(&class(serde_json::json!({})), START).await }).await.unwrap();
    assert_eq!(faults(&resolved), "");
}

#[tokio::test]
async fn all_fine() {
    let bed = Bed::new(settings()).await;
    assert_eq!(
        bed.told(serde_json::json!({})).await,
        "subnet subnet-b us-east-1b use1-az2 200\n\
         subnet subnet-a us-east-1a use1-az1 10\n\
         group sg-1 nodes\n\
         ami ami-amd: kubernetes.io/arch In amd64; karpenter.k8s.aws/instance-gpu-count DoesNotExist; \
         karpenter.k8s.aws/instance-accelerator-count DoesNotExist\n\
         ami ami-arm: kubernetes.io/arch In arm64; karpenter.k8s.aws/instance-gpu-count DoesNotExist; \
         karpenter.k8s.aws/instance-accelerator-count DoesNotExist\n\
         profile demo_PROFILE\n\
         true: SubnetsReady SecurityGroupsReady AMIsReady InstanceProfileReady PlacementGroupReady CapacityReservationsReady \
         ValidationSucceeded Ready"
    );
    assert_eq!(
        bed.fake.actions(),
        [
            "AddRoleToInstanceProfile",
            "CreateFleet",
            "CreateInstanceProfile",
            "CreateLaunchTemplate",
            "DeleteLaunchTemplate",
            "DescribeImages",
            "DescribeSecurityGroups",
            "DescribeSubnets",
            "GetInstanceProfile",
            "GetParameter x5",
            "RunInstances",
        ]
    );
}

#[tokio::test]
async fn wrong_subnets_are_told_with_their_terms() {
    let bed = Bed::new(settings()).await;
    bed.fake.set("DescribeSubnets", "", body("<subnetSet/>"));
    bed.fake.set("DescribeSecurityGroups", "", body("<securityGroupInfo/>"));
    let terms = serde_json::json!({
        "subnetSelectorTerms": [{"tags": {"team": "a", "any": "*"}}, {"id": "subnet-x"}],
        "securityGroupSelectorTerms": [{"name": "mine"}],
    });
    let resolved = bed.resolve(&class(terms.clone()), START).await;
    assert_eq!(
        faults(&resolved),
        "SubnetsReady=False SubnetsNotFound: no subnet in us-east-1 matches subnetSelectorTerms[0] (tags any=* and team=a) and \
         subnetSelectorTerms[1] (id subnet-x); correct spec.subnetSelectorTerms, or tag the cluster's subnets so; \
         SecurityGroupsReady=False SecurityGroupsNotFound: no security group in us-east-1 matches securityGroupSelectorTerms[0] (name mine); \
         correct spec.securityGroupSelectorTerms, or tag the cluster's security groups so; \
         ValidationSucceeded=False DependenciesNotReady: waits for SecurityGroupsReady, SubnetsReady"
    );
    let ready = resolved.condition(ConditionKind::Ready).unwrap();
    assert_eq!(
        ready.to_string(),
        "Ready=False UnhealthyDependents: SubnetsReady=False, SecurityGroupsReady=False, ValidationSucceeded=False"
    );
    let asked = bed.fake.calls_of("DescribeSubnets");
    assert!(asked[0].contains("Filter.1.Name=tag-key&Filter.1.Value.1=any&Filter.2.Name=tag:team&Filter.2.Value.1=a"), "{asked:?}");
    assert!(asked[1].contains("Filter.1.Name=subnet-id&Filter.1.Value.1=subnet-x"), "{asked:?}");
    assert_eq!(bed.fake.actions().iter().filter(|action| action.contains("LaunchTemplate")).count(), 0);
    assert_eq!(resolved.next, at(15).max(at(60)), "what is missing is looked for every minute");
    // Those of another VPC are told of before EC2 refuses them.
    bed.fake.set("DescribeSubnets", "", body(SUBNETS));
    assert!(faults(&bed.resolve(&class(terms.clone()), at(60)).await).contains("(the subnets are in vpc-1)"));
    bed.fake.set("DescribeSecurityGroups", "", body(&GROUPS.replace("vpc-1", "vpc-2")));
    assert_eq!(
        bed.resolve(&class(terms), at(120)).await.notes,
        [
            "no subnet in us-east-1 matches subnetSelectorTerms[1] (id subnet-x)",
            "no security group in us-east-1 matches securityGroupSelectorTerms[0] (name mine)",
            "security group sg-1 is in vpc-2, the subnets are in vpc-1: EC2 launches nothing with both",
        ]
    );
}

#[tokio::test]
async fn images_that_are_not_there() {
    let none = "correct spec.amiSelectorTerms, or share the image with this account";
    for (terms, kubernetes, told) in [
        (
            serde_json::json!([{"alias": "bottlerocket@v1.2.3"}]),
            "1.34",
            "AMINotFound: no machine image of bottlerocket@v1.2.3 is published for Kubernetes 1.34 in us-east-1: none of the parameters \
             /aws/service/bottlerocket/aws-k8s-1.34/x86_64/1.2.3/image_id, /aws/service/bottlerocket/aws-k8s-1.34/arm64/1.2.3/image_id, \
             /aws/service/bottlerocket/aws-k8s-1.34-nvidia/x86_64/1.2.3/image_id, \
             /aws/service/bottlerocket/aws-k8s-1.34-nvidia/arm64/1.2.3/image_id exists; correct the version of the alias in \
             spec.amiSelectorTerms"
                .to_owned(),
        ),
        (
            serde_json::json!([{"alias": "al2@latest"}]),
            "1.33",
            "UnsupportedAlias: spec.amiSelectorTerms: finding images of AL2 for Kubernetes 1.33: the last version with images is 1.32, use \
             al2023 or bottlerocket"
                .to_owned(),
        ),
        (
            serde_json::json!([{"alias": "windows2025@latest"}]),
            "1.34",
            "UnsupportedAlias: spec.amiSelectorTerms: finding images of Windows2025 for Kubernetes 1.34: the first version with images is \
             1.35, use windows2022"
                .to_owned(),
        ),
        (
            serde_json::json!([{"name": "mine-*"}, {"tags": {"a": "b"}, "owner": "1"}, {"id": "ami-1"}, {"ssmParameter": "/mine"}]),
            "1.34",
            format!(
                "AMINotFound: no machine image in us-east-1 matches amiSelectorTerms[0] (name mine-*, owner self or amazon), \
                 amiSelectorTerms[1] (tag a=b, owner 1), amiSelectorTerms[2] (id ami-1) and amiSelectorTerms[3] (ssmParameter /mine, which \
                 is ami-2); {none}"
            ),
        ),
        (
            serde_json::json!([{"ssmParameter": "/gone"}, {"ssmParameter": "/odd"}]),
            "1.34",
            format!(
                "AMINotFound: no machine image in us-east-1 matches amiSelectorTerms[0] (ssmParameter /gone, which does not exist) and \
                 amiSelectorTerms[1] (ssmParameter /odd, which holds \"x\", no image id); {none}"
            ),
        ),
    ] {
        let mut bed = Bed::new(settings()).await;
        bed.kubernetes = kubernetes;
        bed.fake.set("DescribeImages", "", body("<imagesSet/>"));
        bed.fake.set("GetParameter", "/mine", body(r#"{"Parameter":{"Value":"ami-2"}}"#));
        bed.fake.set("GetParameter", "/odd", body(r#"{"Parameter":{"Value":"x"}}"#));
        let resolved = bed.resolve(&class(serde_json::json!({"amiSelectorTerms": terms, "amiFamily": null})), START).await;
        let condition = resolved.condition(ConditionKind::AmisReady).unwrap();
        assert_eq!(condition.to_string(), format!("AMIsReady=False {told}"), "{terms}");
        let validation = resolved.condition(ConditionKind::ValidationSucceeded).unwrap();
        assert_eq!((validation.status, validation.reason.as_str()), (ConditionStatus::False, "DependenciesNotReady"), "{terms}");
    }
}

#[tokio::test]
async fn each_family_finds_its_images() {
    let gpus = "karpenter.k8s.aws/instance-gpu-count Exists";
    let accelerators = "karpenter.k8s.aws/instance-accelerator-count Exists";
    for (alias, kubernetes, parameter, told) in [
        (
            "windows2022@latest",
            "1.34",
            "Windows_Server-2022-English-Core-EKS_Optimized-1.34/image_id",
            "ami ami-amd: kubernetes.io/os In windows; kubernetes.io/arch In amd64; node.kubernetes.io/windows-build In 10.0.20348"
                .to_owned(),
        ),
        (
            "al2@v20250101",
            "1.32",
            "1.32/amazon-linux-2-gpu/amazon-eks-gpu-node-1.32-v20250101/image_id",
            format!("ami ami-amd: kubernetes.io/arch In amd64; {accelerators}|ami ami-amd: kubernetes.io/arch In amd64; {gpus}"),
        ),
        (
            "bottlerocket@latest",
            "1.34",
            "aws-k8s-1.34-nvidia/x86_64/latest/image_id",
            format!("ami ami-amd: kubernetes.io/arch In amd64; {gpus}"),
        ),
    ] {
        let mut bed = Bed::new(settings()).await;
        bed.kubernetes = kubernetes;
        bed.fake.set("GetParameter", parameter, body(r#"{"Parameter":{"Value":"ami-amd"}}"#));
        bed.fake.set("DescribeImages", "", body(&format!("<imagesSet>{IMAGE}</imagesSet>")));
        bed.candidates =
            vec![instance_type("g5.xlarge", &[("karpenter.k8s.aws/instance-gpu-count", "1"), ("kubernetes.io/arch", "amd64")])];
        let all = bed.told(serde_json::json!({"amiSelectorTerms": [{"alias": alias}]})).await;
        let amis: Vec<&str> = all.lines().filter(|line| line.starts_with("ami ")).collect();
        assert_eq!(amis.join("|"), told, "{alias}");
        assert!(all.ends_with("ValidationSucceeded Ready"), "{all}");
    }
}

const IMAGE: &str = "<item><imageId>ami-amd</imageId><name>n</name><architecture>x86_64</architecture></item>";

#[tokio::test]
async fn a_deprecated_image_is_taken_where_there_is_no_other() {
    let bed = Bed::new(settings()).await;
    bed.fake.set("DescribeImages", "", images("<deprecationTime>2023-11-10T00:00:00.000Z</deprecationTime>"));
    let resolved = bed.resolve(&class(serde_json::json!({})), START).await;
    assert_eq!((faults(&resolved), resolved.amis.iter().all(|ami| ami.deprecated)), (String::new(), true));
    assert_eq!(resolved.notes[0], "machine image ami-amd is deprecated, and no other fits its instance types");
    // The alias may have moved on: after half an hour its parameters are read again.
    bed.fake.actions();
    bed.resolve(&class(serde_json::json!({})), at(29 * 60)).await;
    assert!(bed.fake.calls_of("GetParameter").iter().all(|asked| !asked.contains("x86_64/standard")));
    bed.resolve(&class(serde_json::json!({})), at(31 * 60)).await;
    bed.fake.actions();
    bed.resolve(&class(serde_json::json!({})), at(32 * 60)).await;
    assert_eq!(bed.fake.calls_of("GetParameter").iter().filter(|asked| asked.contains("/standard/")).count(), 2);
}

#[tokio::test]
async fn a_profile_that_the_class_names_must_be_there() {
    let told = "ValidationSucceeded=False InstanceProfileNotFound: spec.instanceProfile: there is no instance profile \"mine\"; make it, or \
                correct the name";
    let named = || class(serde_json::json!({"role": null, "instanceProfile": "mine"}));
    let bed = Bed::new(settings()).await;
    let resolved = bed.resolve(&named(), START).await;
    assert_eq!((faults(&resolved).as_str(), resolved.next), (told, at(15)));
    assert_eq!(resolved.instance_profile.as_deref(), Some("mine"));
    // IAM may know it before EC2 does.
    bed.fake.set("GetInstanceProfile", "", profile("nodes"));
    bed.fake.set(
        "RunInstances",
        "",
        error("InvalidParameterValue", "Value (mine) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name"),
    );
    assert_eq!(faults(&bed.resolve(&named(), at(15)).await), told);
    bed.fake.set("RunInstances", "", dry());
    assert_eq!(faults(&bed.resolve(&named(), at(30)).await), "");
}

#[tokio::test]
async fn what_the_controller_may_not_do_is_told_and_remembered() {
    let refusal = Reply::Error(
        403,
        "UnauthorizedOperation".to_owned(),
        "You are not authorized to perform this operation. Encoded authorization failure message: qrZ0".to_owned(),
    );
    for (action, object) in [
        ("CreateLaunchTemplate", "for EC2NodeClass default"),
        ("CreateFleet", "for EC2NodeClass default, dry"),
        ("RunInstances", "for EC2NodeClass default in subnet-b, dry"),
    ] {
        let bed = Bed::new(settings()).await;
        bed.fake.set(action, "", refusal.clone());
        let told = format!(
            "ValidationSucceeded=False {action}AuthCheckFailed: cannot {action} {object}: UnauthorizedOperation: You are not authorized to \
             perform this operation.; allow the action to the controller's IAM role"
        );
        let resolved = bed.resolve(&class(serde_json::json!({})), START).await;
        assert_eq!((faults(&resolved).as_str(), resolved.next), (told.as_str(), at(60)));
        // What was said is taken for half an hour, unless something that matters changes.
        bed.fake.set(action, "", if action == "CreateLaunchTemplate" { body("") } else { dry() });
        assert_eq!(faults(&bed.resolve(&class(serde_json::json!({})), at(29 * 60)).await), told);
        let mut annotated = class(serde_json::json!({}));
        annotated.annotations.insert("refresh".to_owned(), "1".to_owned());
        assert_eq!(faults(&bed.resolve(&annotated, at(29 * 60)).await), "");
        assert_eq!(faults(&bed.resolve(&class(serde_json::json!({})), at(30 * 60)).await), "");
    }
}

fn instance_type(name: &str, labels: &[(&str, &str)]) -> InstanceType {
    InstanceType {
        name: name.to_owned(),
        labels: labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        requirements: std::sync::Arc::default(),
        capacity: whittle_model::Resources::of(&[("pods", 29)]),
        allocatable: whittle_model::Resources::of(&[("pods", 29)]),
        offerings: Vec::new(),
    }
}

#[tokio::test]
async fn types_that_are_bought_are_tried() {
    let mut bed = Bed::new(settings()).await;
    bed.fake.set("RunInstances", "InstanceType=m5.large", error("UnauthorizedOperation", "not this type"));
    assert!(faults(&bed.resolve(&class(serde_json::json!({})), START).await).contains("RunInstancesAuthCheckFailed"));
    let gpus = ("karpenter.k8s.aws/instance-gpu-count", "1");
    let arm = ("kubernetes.io/arch", "arm64");
    bed.candidates = vec![instance_type("g5g.xlarge", &[gpus, arm]), instance_type("m7g.large", &[arm])];
    bed.fake.actions();
    assert_eq!(faults(&bed.resolve(&class(serde_json::json!({})), at(5)).await), "");
    assert!(bed.fake.calls_of("RunInstances")[0].contains("InstanceType=m7g.large"));
}

#[tokio::test]
async fn another_subnet_may_do_what_one_does_not() {
    let bed = Bed::new(settings()).await;
    bed.fake.set("RunInstances", "subnet-b", error("InvalidSubnet.Range", "full"));
    assert_eq!(bed.told(serde_json::json!({})).await.lines().last().unwrap().split(' ').next_back(), Some("Ready"));
}

#[tokio::test]
async fn a_dry_run_without_an_answer_leaves_things_as_they_were() {
    let bed = Bed::new(settings()).await;
    bed.fake.set("CreateFleet", "", error("InternalError", "an internal error"));
    let resolved = bed.resolve(&class(serde_json::json!({})), START).await;
    assert_eq!(
        (faults(&resolved).as_str(), resolved.next),
        (
            "ValidationSucceeded=Unknown DryRunPending: cannot CreateFleet for EC2NodeClass default, dry: InternalError: an internal error",
            at(60)
        )
    );
    assert_eq!(resolved.condition(ConditionKind::Ready).unwrap().status, ConditionStatus::Unknown);
    bed.fake.set("CreateFleet", "", dry());
    assert_eq!(faults(&bed.resolve(&class(serde_json::json!({})), at(60)).await), "");
    bed.fake.set("CreateFleet", "", error("InternalError", "an internal error"));
    assert_eq!(faults(&bed.resolve(&class(serde_json::json!({})), at(3600)).await), "");
}

#[tokio::test]
async fn what_is_wrong_with_a_class_by_itself() {
    let long = "x".repeat(16_384);
    for (changes, told) in [
        (
            serde_json::json!({"tags": {"karpenter.sh/nodepool": "x", "kubernetes.io/cluster/demo": "y", "team": "a"}}),
            "TagValidationFailed: spec.tags: reading tags: \"karpenter.sh/nodepool\", \"kubernetes.io/cluster/demo\" may not be set, they \
             mark what belongs to the cluster; take these tags away",
        ),
        (
            serde_json::json!({"kubelet": {"maxpods": 10, "podsPerCore": "x", "evictionSoft": {"memory.available": "5%"}}}),
            "InvalidKubeletConfiguration: spec.kubelet: kubelet knows no field \"maxpods\", is maxPods meant?; spec.kubelet.podsPerCore: \
             \"x\" is not a whole number; spec.kubelet.evictionSoft[memory.available]: needs an evictionSoftGracePeriod of the same signal \
             beside it",
        ),
        (
            serde_json::json!({"kubelet": {"maxPods": "vcpus * 10", "kubeReserved": {"cpu": "vcpus * 2", "memory": "1Gi"}}}),
            "KubeletExpressionsDisabled: spec.kubelet: maxPods, kubeReserved[cpu] holds an expression, and these are not turned on; write a \
             number",
        ),
        (
            serde_json::json!({
                "amiSelectorTerms": [{"id": "ami-amd"}], "amiFamily": "Bottlerocket",
                "kubelet": {"podsPerCore": 3, "registryPullQPS": 5, "maxPods": 20, "clusterDNS": ["10.0.0.10", "10.0.0.11"]},
            }),
            "UnsupportedKubeletConfiguration: spec.kubelet: nodes of the image family Bottlerocket would not get podsPerCore, \
             registryPullQPS; take these fields away, or set them in userData; spec.kubelet.clusterDNS: the image family Bottlerocket takes \
             one address and 2 are written; keep one",
        ),
        (
            serde_json::json!({"amiSelectorTerms": [{"id": "ami-amd"}], "amiFamily": "Custom", "userData": format!("{long}y")}),
            "UserDataSizeLimitExceeded: making user data: 16385 bytes are more than the 16384 that EC2 takes, shorten userData by 1 bytes",
        ),
    ] {
        let bed = Bed::new(settings()).await;
        let resolved = bed.resolve(&class(changes), START).await;
        assert_eq!(faults(&resolved), format!("ValidationSucceeded=False {told}"));
        assert!(bed.fake.calls_of("CreateLaunchTemplate").is_empty());
    }
    let mut bed = Bed::new(settings()).await;
    bed.cluster.service_cidr = None;
    assert!(faults(&bed.resolve(&class(serde_json::json!({})), START).await).contains("False ClusterCIDRResolutionFailed: "));
    let bed = Bed::new(settings()).await;
    let custom = serde_json::json!({"amiSelectorTerms": [{"id": "ami-amd"}], "amiFamily": "Custom", "userData": long});
    let resolved = bed.resolve(&class(custom), START).await;
    assert_eq!((faults(&resolved), resolved.notes), (String::new(), vec!["user data is 16384 bytes long, and EC2 takes 16384".to_owned()]));
}

#[tokio::test]
async fn user_data_that_ec2_finds_too_long() {
    let bed = Bed::new(settings()).await;
    bed.fake.set("CreateLaunchTemplate", "", error("InvalidUserData.Malformed", "User data is limited to 16384 bytes"));
    assert_eq!(
        faults(&bed.resolve(&class(serde_json::json!({})), START).await),
        "ValidationSucceeded=False UserDataSizeLimitExceeded: cannot CreateLaunchTemplate for EC2NodeClass default: \
         InvalidUserData.Malformed: User data is limited to 16384 bytes; shorten spec.userData"
    );
}

#[tokio::test]
async fn with_dry_runs_off_nothing_is_asked() {
    let bed = Bed::new(ClassSettings { disable_dry_run: true, ..settings() }).await;
    let named = class(serde_json::json!({"role": null, "instanceProfile": "mine"}));
    assert_eq!(faults(&bed.resolve(&named, START).await), "");
    assert_eq!(bed.fake.actions(), ["DescribeImages", "DescribeSecurityGroups", "DescribeSubnets", "GetParameter x5"]);
}

#[tokio::test]
async fn an_observer_writes_nothing() {
    let mut bed = Bed::new(settings()).await;
    bed.may_write = false;
    let resolved = bed.resolve(&class(serde_json::json!({})), START).await;
    assert_eq!((faults(&resolved), resolved.instance_profile), (String::new(), None));
    assert_eq!(bed.fake.actions(), ["DescribeImages", "DescribeSecurityGroups", "DescribeSubnets", "GetParameter x5"]);
    // Once it acts, it asks.
    bed.may_write = true;
    assert!(bed.resolve(&class(serde_json::json!({})), START).await.instance_profile.is_some());
    assert!(bed.fake.actions().contains(&"RunInstances".to_owned()));
}

#[tokio::test]
async fn answers_are_good_for_their_time() {
    let bed = Bed::new(settings()).await;
    let class = ClassInput { status_profile: Some("old".to_owned()), ..class(serde_json::json!({})) };
    bed.fake.set("GetInstanceProfile", "", profile("nodes"));
    let first = bed.resolve(&class, START).await;
    assert_eq!((first.instance_profile.as_deref(), first.next), (Some("old"), at(60)));
    bed.fake.actions();
    for (seconds, actions) in [
        (59, &[][..]),
        (60, &["DescribeImages", "DescribeSubnets"]),
        (300, &["DescribeImages", "DescribeSecurityGroups", "DescribeSubnets", "GetParameter x3"]),
        (900, &["DescribeImages", "DescribeSecurityGroups", "DescribeSubnets", "GetInstanceProfile", "GetParameter x3"]),
    ] {
        assert_eq!(faults(&bed.resolve(&class, at(seconds)).await), "");
        assert_eq!(bed.fake.actions(), actions, "{seconds}");
    }
    // Another class with the same selectors asks nothing of its own but the dry run.
    let other = ClassInput { name: "other".to_owned(), uid: "uid-2".to_owned(), ..class };
    bed.resolve(&other, at(900)).await;
    assert_eq!(bed.fake.actions(), ["CreateFleet", "CreateLaunchTemplate", "DeleteLaunchTemplate", "RunInstances"]);
}

#[tokio::test]
async fn without_an_answer_the_last_one_stands() {
    let refused = || error("InternalError", "broken");
    let bed = Bed::new(settings()).await;
    let fine = class(serde_json::json!({}));
    for action in ["DescribeSubnets", "DescribeSecurityGroups", "GetParameter", "GetInstanceProfile"] {
        bed.fake.set(action, "", refused());
    }
    let resolved = bed.resolve(&fine, START).await;
    assert_eq!(
        faults(&resolved),
        "SubnetsReady=Unknown LookupFailed: cannot DescribeSubnets that the class selects: InternalError: broken; \
         SecurityGroupsReady=Unknown LookupFailed: cannot DescribeSecurityGroups that the class selects: InternalError: broken; \
         AMIsReady=Unknown LookupFailed: cannot GetParameter \
         /aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/standard/recommended/image_id: InternalError: broken; \
         InstanceProfileReady=Unknown InstanceProfilePending: cannot GetInstanceProfile demo_PROFILE: InternalError: broken; \
         ValidationSucceeded=Unknown DependenciesNotReady: waits for AMIsReady, InstanceProfileReady, SecurityGroupsReady, SubnetsReady"
    );
    assert_eq!(resolved.next, at(15));
    let bed = Bed::new(settings()).await;
    assert_eq!(faults(&bed.resolve(&fine, START).await), "");
    for action in ["DescribeSubnets", "DescribeSecurityGroups", "GetParameter", "DescribeImages", "GetInstanceProfile"] {
        bed.fake.set(action, "", refused());
    }
    let resolved = bed.resolve(&fine, at(26 * 3600)).await;
    assert_eq!((faults(&resolved).as_str(), resolved.next), ("", at(26 * 3600 + 15)));
    assert_eq!(resolved.notes[0], "cannot DescribeSubnets that the class selects: InternalError: broken");
}

#[tokio::test]
async fn placement_groups() {
    let group = |strategy: &str| {
        format!(
            "<placementGroupSet><item><groupId>pg-1</groupId><groupName>near</groupName><strategy>{strategy}</strategy><partitionCount>3</partitionCount></item></placementGroupSet>"
        )
    };
    let bed = Bed::new(settings()).await;
    let near = class(serde_json::json!({"placementGroupSelector": {"name": "near"}}));
    bed.fake.set("DescribePlacementGroups", "", error("InvalidPlacementGroup.Unknown", "unknown"));
    assert_eq!(
        faults(&bed.resolve(&near, START).await),
        "PlacementGroupReady=False PlacementGroupNotFound: there is no available placement group near in us-east-1; make it, or correct \
         spec.placementGroupSelector"
    );
    bed.fake.set("DescribePlacementGroups", "", error("InternalError", "broken"));
    let failed = faults(&bed.resolve(&near, at(60)).await);
    assert!(failed.starts_with("PlacementGroupReady=False PlacementGroupResolutionFailed: cannot DescribePlacementGroups"), "{failed}");
    bed.fake.set("DescribePlacementGroups", "GroupName.1=near", body(&group("partition")));
    let resolved = bed.resolve(&near, at(75)).await;
    let found = PlacementGroup {
        id: "pg-1".to_owned(),
        name: "near".to_owned(),
        strategy: PlacementStrategy::Partition,
        partitions: 3,
        spread_level: String::new(),
    };
    assert_eq!((faults(&resolved), resolved.placement_group), (String::new(), Some(found.clone())));
    bed.fake.set("DescribePlacementGroups", "", error("InternalError", "broken"));
    assert_eq!(bed.resolve(&near, at(3600)).await.placement_group, Some(found));
}

#[tokio::test]
async fn capacity_reservations() {
    let reservation = |id: &str, rest: &str| {
        format!(
            "<item><capacityReservationId>{id}</capacityReservationId><ownerId>1</ownerId><instanceType>m5.large</instanceType>\
             <availabilityZone>us-east-1a</availabilityZone><availableInstanceCount>4</availableInstanceCount>\
             <instanceMatchCriteria>targeted</instanceMatchCriteria>{rest}</item>"
        )
    };
    let block = |end: &str| format!("<reservationType>capacity-block</reservationType><endDate>{end}</endDate>");
    let all = [
        reservation("cr-2", &block("2023-11-14T23:00:00Z")),
        reservation("cr-1", ""),
        reservation("cr-3", &block("2023-11-14T22:13:20Z")),
        reservation("cr-4", "<reservationType>novel</reservationType>"),
    ];
    let bed = Bed::new(settings()).await;
    bed.fake.set("DescribeCapacityReservations", "", body(&format!("<capacityReservationSet>{}</capacityReservationSet>", all.concat())));
    bed.fake.set("DescribeCapacityReservations", "cr-9", error("InvalidCapacityReservationId.NotFound", "none"));
    let terms = serde_json::json!({"capacityReservationSelectorTerms": [
        {"id": "cr-9"}, {"tags": {"a": "*"}, "ownerID": "1"}, {"instanceMatchCriteria": "open"}, {"ownerID": "2"},
    ]});
    let resolved = bed.resolve(&class(terms.clone()), START).await;
    let shown: Vec<_> =
        resolved.capacity_reservations.iter().map(|r| (r.found.id.as_str(), r.found.state.as_deref(), r.available)).collect();
    assert_eq!(shown, [("cr-1", Some("active"), 4), ("cr-2", Some("active"), 4)]);
    assert_eq!(resolved.status_capacity_reservations()[1].end_time.as_deref(), Some("2023-11-14T23:00:00Z"));
    assert_eq!(
        (faults(&resolved), resolved.notes.clone()),
        (
            String::new(),
            vec!["no active capacity reservation in us-east-1 matches capacityReservationSelectorTerms[0] (id cr-9)".to_owned()]
        )
    );
    assert_eq!(bed.fake.calls_of("DescribeCapacityReservations").len(), 3);
    // 22:20 is forty minutes before the end of the block.
    let later = bed.resolve(&class(terms.clone()), Timestamp(1_700_000_400_000)).await;
    assert_eq!(later.capacity_reservations[1].found.state.as_deref(), Some("expiring"));
    let launched_into =
        |resolved: &Resolved| resolved.held().into_iter().map(|h| (h.reservation.id, h.reservation.left)).collect::<Vec<_>>();
    assert_eq!(launched_into(&resolved), [("cr-1".to_owned(), 4), ("cr-2".to_owned(), 4)]);
    assert_eq!(launched_into(&later), [("cr-1".to_owned(), 4)], "nothing starts in a block that is about to end");
    assert_eq!(["cr-1", "cr-2"].map(|id| (resolved.about_to_end(id), later.about_to_end(id))), [(false, false), (false, true)]);
    let bed = Bed::new(ClassSettings { reserved_capacity: false, ..settings() }).await;
    let resolved = bed.resolve(&class(terms), START).await;
    assert_eq!((resolved.condition(ConditionKind::CapacityReservationsReady), resolved.capacity_reservations.len()), (None, 0));
}

#[tokio::test]
async fn each_role_has_a_profile_of_its_own() {
    let bed = Bed::new(settings()).await;
    let first = class(serde_json::json!({"role": "team/nodes", "tags": {"team": "a"}}));
    let made = bed.resolve(&first, START).await.instance_profile.unwrap();
    let created = &bed.fake.calls_of("CreateInstanceProfile")[0];
    for part in [
        format!("InstanceProfileName={made}"),
        "Path=/karpenter/us-east-1/demo/uid-1/".to_owned(),
        "Key=kubernetes.io/cluster/demo&Tags.member.3.Value=owned".to_owned(),
        "Key=topology.kubernetes.io/region".to_owned(),
    ] {
        assert!(created.contains(&part), "{part} in {created}");
    }
    assert!(bed.fake.calls_of("AddRoleToInstanceProfile")[0].contains("RoleName=nodes"));
    bed.fake.actions();
    // The status was not written: nothing is made twice.
    assert_eq!(bed.resolve(&first, at(5)).await.instance_profile.as_deref(), Some(made.as_str()));
    assert_eq!(bed.fake.actions(), [""; 0]);
    // A new role: the old profile stays for an hour.
    let other = ClassInput { status_profile: Some(made.clone()), ..class(serde_json::json!({"role": "others"})) };
    let new = bed.resolve(&other, at(10)).await.instance_profile.unwrap();
    assert_ne!(new, made);
    let listed = [made.as_str(), new.as_str(), "demo_stray"].map(|name| format!(
        "<member><Path>/</Path><InstanceProfileName>{name}</InstanceProfileName><InstanceProfileId>A</InstanceProfileId><Arn>a</Arn><CreateDate>2023-11-01T10:00:00Z</CreateDate><Roles/></member>"
    ));
    bed.fake.set("ListInstanceProfiles", "PathPrefix=/karpenter/us-east-1/demo/", body(&format!("<ListInstanceProfilesResult><InstanceProfiles>{}</InstanceProfiles><IsTruncated>false</IsTruncated></ListInstanceProfilesResult>", listed.concat())));
    bed.fake.set("GetInstanceProfile", "", profile("nodes"));
    assert_eq!(bed.classes.next_collection(at(20)), Some(at(20)));
    let in_use = BTreeSet::from([new]);
    assert_eq!(bed.classes.collect_profiles(&bed.aws, &in_use, at(20)).await.unwrap(), ["demo_stray"]);
    assert_eq!(bed.classes.next_collection(at(20)), Some(at(20 + 30 * 60)));
    assert_eq!(bed.classes.collect_profiles(&bed.aws, &in_use, at(3611)).await.unwrap(), [made.as_str(), "demo_stray"]);
}

#[tokio::test]
async fn a_missing_role_is_told_and_makes_no_heap_of_profiles() {
    let bed = Bed::new(settings()).await;
    bed.fake.set("AddRoleToInstanceProfile", "", error("NoSuchEntity", "The role with name nodes cannot be found."));
    let told = "InstanceProfileReady=Unknown InstanceProfilePending: cannot AddRoleToInstanceProfile role nodes to demo_PROFILE: \
                NoSuchEntity: The role with name nodes cannot be found.; make the IAM role nodes, or correct spec.role; \
                ValidationSucceeded=Unknown DependenciesNotReady: waits for InstanceProfileReady";
    assert_eq!(faults(&bed.resolve(&class(serde_json::json!({})), START).await), told);
    bed.fake.actions();
    assert_eq!(faults(&bed.resolve(&class(serde_json::json!({})), at(30)).await), told);
    assert_eq!(bed.fake.actions(), [""; 0]);
    bed.fake.set("AddRoleToInstanceProfile", "", body(""));
    assert_eq!(faults(&bed.resolve(&class(serde_json::json!({})), at(61)).await), "");
}

#[tokio::test]
async fn a_profile_with_another_role_gets_the_right_one() {
    let bed = Bed::new(settings()).await;
    bed.fake.set("GetInstanceProfile", "", profile("others"));
    assert_eq!(faults(&bed.resolve(&class(serde_json::json!({})), START).await), "");
    let actions: Vec<String> = bed.fake.actions().into_iter().filter(|action| action.contains("InstanceProfile")).collect();
    assert_eq!(actions, ["AddRoleToInstanceProfile", "GetInstanceProfile", "RemoveRoleFromInstanceProfile"]);
}

#[tokio::test]
async fn profiles_go_with_their_class() {
    let bed = Bed::new(settings()).await;
    bed.fake.set("ListInstanceProfiles", "PathPrefix=/karpenter/us-east-1/demo/uid-1/", body(
        "<ListInstanceProfilesResult><InstanceProfiles><member><Path>/</Path><InstanceProfileName>demo_old</InstanceProfileName><InstanceProfileId>A</InstanceProfileId><Arn>a</Arn><CreateDate>2023-11-01T10:00:00Z</CreateDate><Roles/></member></InstanceProfiles><IsTruncated>false</IsTruncated></ListInstanceProfilesResult>",
    ));
    bed.fake.set("GetInstanceProfile", "demo_old", profile("nodes"));
    bed.classes.delete(&bed.aws, "default", "uid-1").await.unwrap();
    assert_eq!(
        bed.fake.actions(),
        ["DeleteInstanceProfile", "GetInstanceProfile x2", "ListInstanceProfiles", "RemoveRoleFromInstanceProfile"]
    );
    let bed = Bed::new(ClassSettings { isolated_vpc: true, ..settings() }).await;
    bed.classes.delete(&bed.aws, "default", "uid-1").await.unwrap();
    assert_eq!((bed.fake.actions(), bed.classes.next_collection(START)), (vec![], None));
    let pending = faults(&bed.resolve(&class(serde_json::json!({})), START).await);
    assert!(pending.contains("IAM cannot be reached from an isolated VPC; write spec.instanceProfile instead of spec.role"), "{pending}");
}
