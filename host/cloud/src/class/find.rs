//! The parts of a class, each with its condition.
//!
//! What must not enter: the validation, which needs all parts.

use std::collections::{BTreeMap, BTreeSet};

use whittle_model::{Duration, Timestamp};

use super::{
    Classes, Kind,
    condition::{ClassCondition, ConditionStatus},
    images::{self, Variants},
    lookup::{Looked, RETRY, look},
    parameters::Lifetime,
    placement, reservations,
    resolved::{Ami, ClassInput, PlacementGroup, Reservation, SecurityGroup, Subnet},
    security_groups,
    selector::{Query, listed},
    subnets,
};
use crate::{
    Aws, CloudError,
    image::{Alias, Family, ImageError},
};

/// Settings below a minute are taken for a minute.
const MINUTE: Duration = Duration::minutes(1);
/// Groups change seldom.
const SECURITY_GROUPS: Duration = Duration::minutes(5);
/// Reservations fill up and empty.
const RESERVATIONS: Duration = Duration::minutes(1);
/// A placement group's id and strategy never change, but another may be made in its name.
const PLACEMENT_GROUP: Duration = Duration::minutes(5);
/// What needs no second look by itself.
const LATER: Duration = Duration::minutes(10);

/// One part of a class.
#[derive(Debug)]
pub(super) struct Found<T> {
    pub(super) value: T,
    pub(super) condition: ClassCondition,
    pub(super) notes: Vec<String>,
    pub(super) next: Timestamp,
}

impl<T> Found<T> {
    fn new(value: T, condition: ClassCondition, next: Timestamp) -> Self {
        Self { value, condition, notes: Vec::new(), next }
    }

    fn noting(mut self, notes: impl IntoIterator<Item = String>) -> Self {
        self.notes.extend(notes);
        self
    }
}

/// How the absence of something is told.
struct Absence<'a> {
    kind: Kind,
    /// The reason of the condition.
    reason: &'static str,
    /// Such as `subnet`.
    noun: &'static str,
    /// Where was looked.
    region: &'a str,
    /// What to do.
    advice: &'static str,
}

impl Absence<'_> {
    /// The condition of what was looked up, and what was found.
    fn judge<T, U>(&self, looked: Looked<T>, merge: impl FnOnce(Vec<T>) -> Vec<U>) -> Found<Vec<U>> {
        let trouble = looked.trouble.as_ref().map(ToString::to_string);
        let Some(found) = looked.found else {
            return Found::new(Vec::new(), unknown(self.kind, trouble.unwrap_or_default()), looked.next);
        };
        let merged = merge(found);
        if merged.is_empty() {
            let message = format!("no {} in {} matches {}; {}", self.noun, self.region, listed(&looked.unmet), self.advice);
            return Found::new(merged, ClassCondition::no(self.kind, self.reason, message), looked.next).noting(trouble);
        }
        let unmet = looked.unmet.iter().map(|term| format!("no {} in {} matches {term}", self.noun, self.region));
        Found::new(merged, ClassCondition::yes(self.kind), looked.next).noting(unmet).noting(trouble)
    }
}

fn unknown(kind: Kind, message: impl Into<String>) -> ClassCondition {
    ClassCondition::unknown(kind, "LookupFailed", message)
}

impl Classes {
    pub(super) async fn find_subnets(&self, aws: &Aws, class: &ClassInput, now: Timestamp) -> Found<Vec<Subnet>> {
        let queries = subnets::queries(&class.spec.subnet_selector_terms);
        let looked = look(&self.subnets, aws, &queries, self.settings.subnet_refresh.max(MINUTE), now).await;
        let absence = Absence {
            kind: Kind::SubnetsReady,
            reason: "SubnetsNotFound",
            noun: "subnet",
            region: &aws.region,
            advice: "correct spec.subnetSelectorTerms, or tag the cluster's subnets so",
        };
        absence.judge(looked, subnets::merge)
    }

    pub(super) async fn find_security_groups(&self, aws: &Aws, class: &ClassInput, now: Timestamp) -> Found<Vec<SecurityGroup>> {
        let queries = security_groups::queries(&class.spec.security_group_selector_terms);
        let looked = look(&self.security_groups, aws, &queries, SECURITY_GROUPS, now).await;
        let absence = Absence {
            kind: Kind::SecurityGroupsReady,
            reason: "SecurityGroupsNotFound",
            noun: "security group",
            region: &aws.region,
            advice: "correct spec.securityGroupSelectorTerms, or tag the cluster's security groups so",
        };
        absence.judge(looked, security_groups::merge)
    }

    pub(super) async fn find_images(&self, aws: &Aws, class: &ClassInput, kubernetes: &str, now: Timestamp) -> Found<Vec<Ami>> {
        let asked = match Family::of(&class.spec).and_then(|_| Alias::of(&class.spec)) {
            Ok(Some(alias)) => self.asked_by_alias(aws, &alias, kubernetes, now).await,
            Ok(None) => self.asked_by_terms(aws, class, now).await,
            Err(error) => Err(unsupported(&error)),
        };
        let Asked { queries, variants, unmet } = match asked {
            Ok(asked) => asked,
            Err(condition) => {
                let wait = if condition.status == ConditionStatus::Unknown { RETRY } else { MINUTE };
                return Found::new(Vec::new(), condition, now.plus(wait));
            }
        };
        let good = self.settings.ami_refresh.max(MINUTE);
        let mut looked = look(&self.images, aws, &queries, good, now).await;
        looked.unmet.extend(unmet);
        let absence = Absence {
            kind: Kind::AmisReady,
            reason: "AMINotFound",
            noun: "machine image",
            region: &aws.region,
            advice: "correct spec.amiSelectorTerms, or share the image with this account",
        };
        let found = absence.judge(looked, |found| images::choose(&found, &variants, now));
        let deprecated: BTreeSet<&str> = found.value.iter().filter(|ami| ami.deprecated).map(|ami| ami.id.as_str()).collect();
        self.parameters.suspect(&deprecated, now);
        let warnings: Vec<String> =
            deprecated.iter().map(|id| format!("machine image {id} is deprecated, and no other fits its instance types")).collect();
        found.noting(warnings)
    }

    async fn asked_by_alias(&self, aws: &Aws, alias: &Alias, kubernetes: &str, now: Timestamp) -> Result<Asked, ClassCondition> {
        let minor = kubernetes.split('.').nth(1).and_then(|minor| minor.parse().ok());
        if let Some(Err(error)) = minor.map(|minor| alias.check(minor)) {
            return Err(unsupported(&error));
        }
        let mut variants = Variants::new();
        let parameters = alias.parameters(kubernetes);
        for parameter in &parameters {
            let lifetime = if parameter.mutable { Lifetime::Latest } else { Lifetime::Pinned };
            match self.parameters.get(aws, &parameter.path, lifetime, now).await {
                Ok(Some(id)) => variants.entry(id).or_default().extend(&parameter.variants),
                Ok(None) => {}
                // A part of the images would drop instance types and make their nodes drift.
                Err(error) => return Err(unknown(Kind::AmisReady, error.to_string())),
            }
        }
        if variants.is_empty() {
            let paths: Vec<&str> = parameters.iter().map(|parameter| parameter.path.as_str()).collect();
            let message = format!(
                "no machine image of {alias} is published for Kubernetes {kubernetes} in {}: none of the parameters {} exists; correct the \
                 version of the alias in spec.amiSelectorTerms",
                aws.region,
                paths.join(", ")
            );
            return Err(ClassCondition::no(Kind::AmisReady, "AMINotFound", message));
        }
        let queries = images::query_of_ids(&format!("alias {alias}"), variants.keys().cloned());
        Ok(Asked { queries, variants, unmet: Vec::new() })
    }

    async fn asked_by_terms(&self, aws: &Aws, class: &ClassInput, now: Timestamp) -> Result<Asked, ClassCondition> {
        let terms = &class.spec.ami_selector_terms;
        let (mut ids, mut unmet) = (BTreeMap::new(), Vec::new());
        for (at, term) in terms.iter().enumerate() {
            let Some(path) = term.ssm_parameter.as_deref().filter(|_| term.id.is_none()) else { continue };
            match self.parameters.get(aws, path, Lifetime::Owned, now).await {
                Ok(Some(id)) if id.starts_with("ami-") => {
                    ids.insert(at, id);
                }
                Ok(Some(value)) => {
                    unmet.push(format!("amiSelectorTerms[{at}] (ssmParameter {path}, which holds {value:?}, no image id)"));
                }
                Ok(None) => unmet.push(format!("amiSelectorTerms[{at}] (ssmParameter {path}, which does not exist)")),
                Err(error) => return Err(unknown(Kind::AmisReady, error.to_string())),
            }
        }
        Ok(Asked { queries: images::queries(terms, &ids), variants: Variants::new(), unmet })
    }

    pub(super) async fn find_profile(&self, aws: &Aws, class: &ClassInput, may_write: bool, now: Timestamp) -> Found<Option<String>> {
        let yes = |profile: &str| Found::new(Some(profile.to_owned()), ClassCondition::yes(Kind::InstanceProfileReady), now.plus(LATER));
        let pending = |message: String| {
            let condition = ClassCondition::unknown(Kind::InstanceProfileReady, "InstanceProfilePending", message);
            Found::new(class.status_profile.clone(), condition, now.plus(RETRY))
        };
        let Some(role) = class.spec.role.as_deref().filter(|role| !role.is_empty()) else {
            let named = class.spec.instance_profile.as_deref().unwrap_or_default();
            if let Some(old) = class.status_profile.as_deref().filter(|old| *old != named) {
                self.profiles.protect(old, now);
            }
            return if named.is_empty() { pending("write spec.role or spec.instanceProfile".to_owned()) } else { yes(named) };
        };
        if !may_write {
            let condition = ClassCondition::yes(Kind::InstanceProfileReady);
            return Found::new(class.status_profile.clone(), condition, now.plus(LATER));
        }
        match (&class.status_profile, self.settings.isolated_vpc) {
            (Some(profile), true) => yes(profile),
            (None, true) => {
                pending("IAM cannot be reached from an isolated VPC; write spec.instanceProfile instead of spec.role".to_owned())
            }
            (_, false) => match self.profiles.ensure(aws, class, role, now).await {
                Ok(profile) => yes(&profile),
                Err(error) if error.is_not_found() => pending(format!("{error}; make the IAM role {role}, or correct spec.role")),
                Err(error) => pending(error.to_string()),
            },
        }
    }

    pub(super) async fn find_placement_group(&self, aws: &Aws, class: &ClassInput, now: Timestamp) -> Found<Option<PlacementGroup>> {
        let kind = Kind::PlacementGroupReady;
        let Some(selector) = &class.spec.placement_group_selector else {
            return Found::new(None, ClassCondition::yes(kind), now.plus(LATER));
        };
        let key = placement::key(selector);
        let (group, trouble) = match self.placement_groups.fresh(&key, now) {
            Some(group) => (Ok(group), None),
            None => self.ask_placement_group(aws, class, &key, now).await,
        };
        let next = now.plus(if trouble.is_some() { RETRY } else { MINUTE });
        let words = placement::words(selector);
        let found = match group {
            Ok(Some(group)) => Found::new(Some(group), ClassCondition::yes(kind), next),
            Ok(None) => {
                let message = format!("there is no available {words} in {}; make it, or correct spec.placementGroupSelector", aws.region);
                Found::new(None, ClassCondition::no(kind, "PlacementGroupNotFound", message), next)
            }
            Err(error) => Found::new(None, ClassCondition::no(kind, "PlacementGroupResolutionFailed", error.to_string()), next),
        };
        found.noting(trouble.map(|error| error.to_string()))
    }

    async fn ask_placement_group(
        &self,
        aws: &Aws,
        class: &ClassInput,
        key: &str,
        now: Timestamp,
    ) -> (Result<Option<PlacementGroup>, CloudError>, Option<CloudError>) {
        let Some(selector) = &class.spec.placement_group_selector else { return (Ok(None), None) };
        match placement::ask(aws, selector).await {
            Ok(group) => {
                let good = if group.is_some() { PLACEMENT_GROUP } else { MINUTE };
                self.placement_groups.put(key, group.clone(), now, good);
                (Ok(group), None)
            }
            Err(error) => match self.placement_groups.last(key).flatten() {
                Some(group) => (Ok(Some(group)), Some(error)),
                None => (Err(error.clone()), Some(error)),
            },
        }
    }

    /// `None` without the gate.
    pub(super) async fn find_reservations(&self, aws: &Aws, class: &ClassInput, now: Timestamp) -> Option<Found<Vec<Reservation>>> {
        if !self.settings.reserved_capacity {
            return None;
        }
        let kind = Kind::CapacityReservationsReady;
        let queries = reservations::queries(class.spec.capacity_reservation_selector_terms.as_deref().unwrap_or_default());
        let good = if queries.is_empty() { LATER } else { RESERVATIONS };
        let looked = look(&self.reservations, aws, &queries, good, now).await;
        let trouble = looked.trouble.map(|error| error.to_string());
        let Some(found) = looked.found else {
            return Some(Found::new(Vec::new(), unknown(kind, trouble.unwrap_or_default()), looked.next));
        };
        let found = reservations::merge(found, now);
        let next = reservations::next_change(&found, now).map_or(looked.next, |change| change.min(looked.next));
        let unmet = looked.unmet.iter().map(|term| format!("no active capacity reservation in {} matches {term}", aws.region));
        Some(Found::new(found, ClassCondition::yes(kind), next).noting(unmet).noting(trouble))
    }
}

/// What is asked of EC2 to find the images of a class.
struct Asked {
    queries: Vec<Query>,
    variants: Variants,
    /// Terms that name no image.
    unmet: Vec<String>,
}

fn unsupported(error: &ImageError) -> ClassCondition {
    ClassCondition::no(Kind::AmisReady, "UnsupportedAlias", format!("spec.amiSelectorTerms: {error}"))
}

/// Says of security groups that they are absent from the VPC of the subnets, or in another one.
pub(super) fn with_vpc(mut groups: Found<Vec<SecurityGroup>>, subnets: &[Subnet]) -> Found<Vec<SecurityGroup>> {
    let vpcs: BTreeSet<&str> = subnets.iter().map(|subnet| subnet.vpc.as_str()).filter(|vpc| !vpc.is_empty()).collect();
    if vpcs.is_empty() {
        return groups;
    }
    let of_subnets = vpcs.iter().copied().collect::<Vec<_>>().join(", ");
    if groups.condition.status == ConditionStatus::False {
        groups.condition.message.push_str(&format!(" (the subnets are in {of_subnets})"));
    }
    let strangers: Vec<&SecurityGroup> =
        groups.value.iter().filter(|group| !group.vpc.is_empty() && !vpcs.contains(group.vpc.as_str())).collect();
    let told = strangers.iter().map(|group| {
        format!("security group {} is in {}, the subnets are in {of_subnets}: EC2 launches nothing with both", group.id, group.vpc)
    });
    let told: Vec<String> = told.collect();
    groups.noting(told)
}
