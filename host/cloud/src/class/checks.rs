//! Whether a class is valid: what can be told without AWS, then whether AWS would allow a launch from it.
//!
//! What must not enter: the calls of the dry run, and how its parts are found.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};
use whittle_model::{CapacityType, Duration, Labels, NodeClaim, Timestamp};

use super::{
    ClassSettings, Surroundings,
    cache::Cache,
    condition::{ClassCondition, ConditionKind, ConditionStatus},
    dry_run::{self, Outcome},
    kubelet,
    lookup::RETRY,
    profile::Profiles,
    resolved::{ClassInput, Resolved},
    trial,
};
use crate::{
    Aws, CloudError, ErrorKind,
    image::{self, Family, Group, ImageError, Launched, Placement, TemplateInputs, TemplateSpec, UserData},
};

const KIND: ConditionKind = ConditionKind::ValidationSucceeded;
/// How long AWS's word is taken.
const KNOWN: Duration = Duration::minutes(30);
/// After an error of which nothing is known, a dry run is made again this soon.
const PATIENT: Duration = Duration::minutes(1);
/// A class is looked at again this soon.
const AGAIN: Duration = Duration::minutes(10);

/// Annotations with the hashes of the class.
const HASHES: &str = "karpenter.k8s.aws/ec2nodeclass-hash";

/// What validation came to.
#[derive(Debug)]
pub(super) struct Checked {
    pub(super) condition: ClassCondition,
    pub(super) next: Timestamp,
    pub(super) notes: Vec<String>,
}

/// AWS's words, by class and by all that a launch from it consists of; an empty reason means that it would be allowed.
pub(super) type Words = Cache<(String, String)>;

/// What one check needs.
pub(super) struct Check<'a> {
    pub(super) settings: &'a ClassSettings,
    pub(super) words: &'a Words,
    pub(super) profiles: &'a Profiles,
    pub(super) class: &'a ClassInput,
    pub(super) around: &'a Surroundings<'a>,
    /// Everything but the validation is in it.
    pub(super) resolved: &'a Resolved,
    pub(super) now: Timestamp,
}

impl Check<'_> {
    pub(super) async fn run(&self, aws: &Aws) -> Checked {
        if let Some(fault) = self.local_fault().or_else(|| self.dependency()) {
            return self.again(fault);
        }
        let launched = Launched { cluster: &self.settings.cluster, class: &self.class.name, pool: "" };
        let tags = match image::launch_tags(self.class.spec.tags.as_ref(), launched) {
            Ok(tags) => tags,
            Err(error) => return self.again(no("TagValidationFailed", format!("spec.tags: {error}; take these tags away"))),
        };
        let key = self.key(&tags);
        if let Some((reason, message)) = self.words.fresh(&key, self.now).or_else(|| self.words.fresh(&self.refused(&key), self.now)) {
            return self.again(if reason.is_empty() { ClassCondition::yes(KIND) } else { no(&reason, message) });
        }
        let group = trial::group(self.around.candidates, self.resolved.family, &self.resolved.status_amis());
        let template = group.and_then(|group| self.template(&group, &tags).map(|made| (group, made)));
        let (group, (spec, user_data)) = match template {
            Ok(made) => made,
            Err(error) => return self.again(image_fault(&error)),
        };
        let mut checked = if self.settings.disable_dry_run || !self.around.may_write {
            self.again(ClassCondition::yes(KIND))
        } else {
            self.ask(aws, &key, &group, &spec).await
        };
        if user_data.near_limit() {
            checked.notes.push(format!("user data is {} bytes long, and EC2 takes {}", user_data.text.len(), image::LIMIT));
        }
        checked.notes.extend(user_data.left_out.iter().map(|key| format!("spec.userData: the image does not know {key}; it is left out")));
        checked
    }

    /// What is wrong with the class whatever AWS says.
    fn local_fault(&self) -> Option<ClassCondition> {
        let family = self.resolved.family;
        if family == Family::Al2023 && self.around.cluster.service_cidr.is_none() {
            let why = "the range of the cluster's service addresses is not known, and nodes of AL2023 need it; allow \
                       eks:DescribeCluster to the controller, or use another image family";
            return Some(no("ClusterCIDRResolutionFailed", why));
        }
        let fields = self.class.spec.kubelet.as_ref()?;
        let invalid = kubelet::invalid(fields);
        if !invalid.is_empty() {
            return Some(no("InvalidKubeletConfiguration", invalid.join("; ")));
        }
        let expressions = kubelet::expressions(fields);
        if !expressions.is_empty() {
            let why = format!("spec.kubelet: {} holds an expression, and these are not turned on; write a number", expressions.join(", "));
            return Some(no("KubeletExpressionsDisabled", why));
        }
        kubelet::unsupported(family, fields).map(|why| no("UnsupportedKubeletConfiguration", why))
    }

    /// Nothing can be tried while one of the parts is missing.
    fn dependency(&self) -> Option<ClassCondition> {
        const NEEDED: [ConditionKind; 4] = [
            ConditionKind::AmisReady,
            ConditionKind::InstanceProfileReady,
            ConditionKind::SecurityGroupsReady,
            ConditionKind::SubnetsReady,
        ];
        let missing = |status| -> Vec<&str> {
            let conditions = NEEDED.iter().filter_map(|kind| self.resolved.condition(*kind));
            conditions.filter(|condition| condition.status == status).map(|condition| condition.kind.name()).collect()
        };
        let reason = "DependenciesNotReady";
        match (missing(ConditionStatus::False), missing(ConditionStatus::Unknown)) {
            (no_parts, _) if !no_parts.is_empty() => Some(no(reason, format!("waits for {}", no_parts.join(", ")))),
            (_, unknown) if !unknown.is_empty() => Some(ClassCondition::unknown(KIND, reason, format!("waits for {}", unknown.join(", ")))),
            _ => None,
        }
    }

    /// A hash of all that a launch from the class consists of.
    fn key(&self, tags: &Labels) -> String {
        let ids = |ids: &mut dyn Iterator<Item = &String>| ids.cloned().collect::<Vec<String>>();
        let mut subnets = ids(&mut self.resolved.subnets.iter().map(|subnet| &subnet.id));
        // Their order follows their free addresses.
        subnets.sort();
        // Our own annotations say nothing new.
        let annotations = self.class.annotations.iter().filter(|(key, _)| !key.starts_with(HASHES));
        let content = serde_json::to_string(&(
            &self.class.spec,
            annotations.collect::<BTreeMap<_, _>>(),
            tags,
            subnets,
            ids(&mut self.resolved.security_groups.iter().map(|group| &group.id)),
            ids(&mut self.resolved.amis.iter().map(|ami| &ami.id)),
            &self.resolved.instance_profile,
        ));
        let digest = Sha256::digest(content.expect("texts, numbers and maps with text keys can be written as JSON"));
        digest.iter().take(16).fold(format!("{} ", self.class.name), |key, byte| format!("{key}{byte:02x}"))
    }

    /// The key of a refusal. One that was met before anybody knew which types are bought says nothing of those.
    fn refused(&self, key: &str) -> String {
        format!("{key}{}", if self.around.candidates.is_empty() { " fallback" } else { " refused" })
    }

    /// The template of a launch from the class, and its user data.
    fn template(&self, group: &Group, tags: &Labels) -> Result<(TemplateSpec, UserData), ImageError> {
        let placement_group = self.resolved.placement_group.as_ref();
        TemplateSpec::new(&TemplateInputs {
            cluster: self.around.cluster,
            class_name: &self.class.name,
            class: &self.class.spec,
            images: &self.resolved.status_amis(),
            security_groups: &self.resolved.status_security_groups(),
            profile: self.resolved.instance_profile.as_deref().unwrap_or_default(),
            claim: &NodeClaim { node_class: self.class.name.clone(), ..NodeClaim::default() },
            group,
            capacity_type: CapacityType::OnDemand,
            placement: Placement {
                dedicated: self.around.dedicated,
                group_id: placement_group.map(|group| group.id.clone()),
                partition: None,
            },
            tags,
            targeted_reservations: self.settings.reserved_capacity,
        })
    }

    async fn ask(&self, aws: &Aws, key: &str, group: &Group, spec: &TemplateSpec) -> Checked {
        if let Some(missing) = self.missing_profile(aws).await {
            return self.soon(missing);
        }
        let instance_type = group.instance_types.first().map_or("", String::as_str);
        match dry_run::run(aws, &self.class.name, spec, instance_type, &self.resolved.subnets).await {
            Outcome::Allowed => self.remember(key, String::new(), String::new()),
            Outcome::Refused { reason, message } => self.remember(key, reason.to_owned(), message),
            Outcome::ProfileMissing => self.soon(self.profile_missing()),
            Outcome::Pending(error) => self.pending(key, &error),
        }
    }

    /// AWS did not say: its last word stands.
    fn pending(&self, key: &str, error: &CloudError) -> Checked {
        let condition = match self.words.last(key).or_else(|| self.words.last(&self.refused(key))) {
            Some((reason, _)) if reason.is_empty() => ClassCondition::yes(KIND),
            Some((reason, message)) => no(&reason, message),
            None => ClassCondition::unknown(KIND, "DryRunPending", error.to_string()),
        };
        // An answer that never changes must not be asked for all the time.
        let wait = if matches!(error.kind, ErrorKind::Throttled | ErrorKind::NoAnswer) { RETRY } else { PATIENT };
        Checked { condition, next: self.now.plus(wait), notes: vec![error.to_string()] }
    }

    /// The profile that the class names itself may not be there.
    async fn missing_profile(&self, aws: &Aws) -> Option<ClassCondition> {
        let named = self.class.spec.instance_profile.as_deref().filter(|_| !self.settings.isolated_vpc)?;
        // What IAM does not say, the dry run will.
        let found = self.profiles.role(aws, named, self.now).await.ok()?;
        found.is_none().then(|| self.profile_missing())
    }

    fn profile_missing(&self) -> ClassCondition {
        if let Some(profile) = &self.resolved.instance_profile {
            self.profiles.doubt(profile);
        }
        match &self.class.spec.instance_profile {
            Some(named) => no(
                "InstanceProfileNotFound",
                format!("spec.instanceProfile: there is no instance profile {named:?}; make it, or correct the name"),
            ),
            // It was made a moment ago: EC2 hears of it later than IAM.
            None => ClassCondition::unknown(KIND, "DryRunPending", "EC2 does not know the new instance profile yet"),
        }
    }

    fn remember(&self, key: &str, reason: String, message: String) -> Checked {
        let of = if reason.is_empty() { key.to_owned() } else { self.refused(key) };
        self.words.put(&of, (reason.clone(), message.clone()), self.now, KNOWN);
        self.again(if reason.is_empty() { ClassCondition::yes(KIND) } else { no(&reason, message) })
    }

    fn again(&self, condition: ClassCondition) -> Checked {
        Checked { condition, next: self.now.plus(AGAIN), notes: Vec::new() }
    }

    fn soon(&self, condition: ClassCondition) -> Checked {
        Checked { condition, next: self.now.plus(RETRY), notes: Vec::new() }
    }
}

fn no(reason: &str, message: impl Into<String>) -> ClassCondition {
    ClassCondition::no(KIND, reason, message)
}

fn image_fault(error: &ImageError) -> ClassCondition {
    let reason = if matches!(error, ImageError::TooLarge { .. }) { "UserDataSizeLimitExceeded" } else { "LaunchTemplateInvalid" };
    no(reason, error.to_string())
}
