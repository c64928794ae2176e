//! One launch shape: what EC2 is asked for, but for subnets and number. Orders with equal shape share a call.
//!
//! What must not enter: calls.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest, Sha256};
use whittle_model::{CapacityType, InstanceType, LaunchFailure, OfferingKey, keys, resources::PODS};

use super::{
    order::LaunchOrder,
    select::{Pick, Ranking, Selection, allowed, select},
};
use crate::{
    class::{ConditionKind, ConditionStatus},
    image::{Group, ImageError, Launched, Placement, Reservation, TemplateInputs, TemplateSpec, Wanted, group_by, launch_tags},
};

const TENANCY: &str = "karpenter.k8s.aws/instance-tenancy";
const PARTITION: &str = "karpenter.k8s.aws/placement-group-partition";
const EFA: &str = "vpc.amazonaws.com/efa";
/// Annotation of a claim that asked for more kinds of types than there are: what its class says in `context` was not
/// meant for so few.
const MIN_VALUES_RELAXED: &str = "karpenter.sh/nodeclaim-min-values-relaxed";

/// A launch shape.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Plan {
    /// Its launch group.
    pub(crate) group: String,
    /// How capacity is bought.
    pub(crate) capacity_type: CapacityType,
    /// Who ranks the picks.
    pub(crate) ranking: Ranking,
    /// What to ask for, best first.
    pub(crate) picks: Vec<Pick>,
    /// Template and image of each type, in each reservation that it is launched into.
    pub(crate) boots: BTreeMap<(String, Option<Reservation>), Boots>,
    /// The launch templates by name.
    pub(crate) templates: BTreeMap<String, TemplateSpec>,
    /// Tags of fleet, instances and volumes.
    pub(crate) tags: BTreeMap<String, String>,
    /// Reserved context of CreateFleet.
    pub(crate) context: Option<String>,
    /// Addresses that an instance takes at least.
    pub(crate) addresses: i64,
}

/// What a type boots with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Boots {
    /// Name of the launch template.
    pub(crate) template: String,
    /// `ami-…`.
    pub(crate) image: String,
}

impl Plan {
    pub(crate) fn new(order: &LaunchOrder) -> Result<Self, LaunchFailure> {
        ready(order)?;
        let images = order.class.resolved.status_amis();
        let efa = order.claim.requests.get(EFA) > 0;
        let every = order.catalog.types.iter();
        let every: Vec<Wanted<'_>> = every.map(|instance_type| Wanted { instance_type, reservations: Vec::new() }).collect();
        let booting = group_by(&every, &images, efa).map_err(|error| image_failure(&error))?;
        let bootable: BTreeSet<&str> = booting.iter().flat_map(|group| &group.instance_types).map(String::as_str).collect();
        let selection = select(&order.claim, &order.catalog, &order.sold_out, &|t| bootable.contains(t.name.as_str()));
        let selection = selection.ok_or_else(|| nothing(order, &bootable))?;
        let mut wanted: BTreeMap<&str, BTreeSet<&Reservation>> = BTreeMap::new();
        for pick in &selection.picks {
            wanted.entry(&pick.instance_type).or_default().extend(&pick.reservation);
        }
        let known = wanted.into_iter().filter_map(|(name, reservations)| Some((order.catalog.get(name)?, reservations)));
        let wanted: Vec<Wanted<'_>> =
            known.map(|(instance_type, into)| Wanted { instance_type, reservations: into.into_iter().cloned().collect() }).collect();
        let groups = group_by(&wanted, &images, efa).map_err(|error| image_failure(&error))?;
        let types: Vec<&InstanceType> = wanted.iter().map(|want| want.instance_type).collect();
        Self::of(order, selection, &groups, &types).map_err(|error| image_failure(&error))
    }

    fn of(order: &LaunchOrder, selection: Selection, groups: &[Group], types: &[&InstanceType]) -> Result<Self, ImageError> {
        let class = &order.class;
        let launched = Launched { cluster: &class.cluster.name, class: &class.resolved.name, pool: &order.claim.node_pool };
        let mut tags = launch_tags(class.spec.tags.as_ref(), launched)?;
        let (images, security_groups) = (class.resolved.status_amis(), class.resolved.status_security_groups());
        let (mut boots, mut templates) = (BTreeMap::new(), BTreeMap::new());
        for group in groups {
            let inputs = TemplateInputs {
                cluster: &class.cluster,
                class_name: &class.resolved.name,
                class: &class.spec,
                images: &images,
                security_groups: &security_groups,
                profile: class.resolved.instance_profile.as_deref().unwrap_or_default(),
                claim: &order.claim,
                group,
                capacity_type: selection.capacity_type,
                placement: placement(order),
                tags: &tags,
                targeted_reservations: order.settings.targeted_reservations,
            };
            let (spec, _) = TemplateSpec::new(&inputs)?;
            let template = spec.name();
            let booting = group.instance_types.iter().map(|name| (name.clone(), group.reservation.clone()));
            boots.extend(booting.map(|of| (of, Boots { template: template.clone(), image: group.image.clone() })));
            templates.insert(template, spec);
        }
        // Not in the templates: they serve other groups too.
        tags.insert(keys::LAUNCH_GROUP.to_owned(), order.group().to_owned());
        let relaxed = order.claim.annotations.get(MIN_VALUES_RELAXED).is_some_and(|relaxed| relaxed == "true");
        Ok(Self {
            group: order.group().to_owned(),
            capacity_type: selection.capacity_type,
            ranking: selection.ranking,
            picks: selection.picks,
            boots,
            templates,
            tags,
            context: class.spec.context.clone().filter(|_| !relaxed),
            addresses: types.iter().map(|t| t.capacity.get(PODS)).min().unwrap_or_default(),
        })
    }

    /// Equal for orders that may share a call.
    pub(crate) fn shape(&self, order: &LaunchOrder) -> String {
        let subnets: Vec<&str> = order.class.resolved.subnets.iter().map(|subnet| subnet.id.as_str()).collect();
        let templates: Vec<&String> = self.templates.keys().collect();
        let picks: Vec<(&String, &String, i64)> = self.picks.iter().map(|pick| (&pick.instance_type, &pick.zone, pick.priority)).collect();
        // The reservations of picks need not be named: each has a template of its own.
        let content = (&self.group, self.capacity_type, self.ranking, picks, templates, &self.tags, &self.context, subnets);
        hash(&serde_json::to_vec(&content).expect("texts, numbers and a map with text keys can be written"))
    }

    /// The zones of all picks.
    pub(crate) fn zones(&self) -> BTreeSet<String> {
        self.picks.iter().map(|pick| pick.zone.clone()).collect()
    }

    /// What a pick boots with.
    pub(crate) fn boots(&self, pick: &Pick) -> Option<&Boots> {
        self.boots.get(&(pick.instance_type.clone(), pick.reservation.clone()))
    }

    /// The pick of this type and zone.
    pub(crate) fn pick(&self, instance_type: &str, zone: &str) -> Option<&Pick> {
        self.picks.iter().find(|pick| pick.instance_type == instance_type && pick.zone == zone)
    }

    /// The names of all picks.
    pub(crate) fn keys(&self) -> Vec<OfferingKey> {
        self.picks.iter().map(|pick| pick.key(self.capacity_type)).collect()
    }
}

/// 64 hexadecimal digits: as many as a client token may have.
pub(crate) fn hash(content: &[u8]) -> String {
    Sha256::digest(content).iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

/// Whether the class may be launched from.
fn ready(order: &LaunchOrder) -> Result<(), LaunchFailure> {
    let resolved = &order.class.resolved;
    match resolved.condition(ConditionKind::Ready).map(|condition| condition.status) {
        Some(ConditionStatus::True) => Ok(()),
        Some(ConditionStatus::False) => Err(LaunchFailure::NodeClassNotReady(resolved.not_ready().unwrap_or_default())),
        Some(ConditionStatus::Unknown) | None => {
            let message = format!("EC2NodeClass {} is still being resolved", resolved.name);
            Err(LaunchFailure::Other("NodeClassReadinessUnknown".to_owned(), message))
        }
    }
}

/// Why nothing is left to ask for. What no image boots counts as sold out, so that the next plan goes around it.
fn nothing(order: &LaunchOrder, bootable: &BTreeSet<&str>) -> LaunchFailure {
    let allowed = allowed(&order.claim, &order.catalog, &order.sold_out);
    let some = !allowed.is_empty();
    let unbootable: Vec<OfferingKey> = allowed.into_iter().filter(|key| !bootable.contains(key.instance_type.as_str())).collect();
    if let Some(first) = unbootable.first() {
        let class = &order.class.resolved.name;
        tracing::warn!(
            claim = order.claim.name,
            class,
            instance_type = first.instance_type,
            "no image of the class boots what a claim allows"
        );
    }
    if unbootable.is_empty() && some {
        let message = "what is for sale has fewer distinct values than minValues asks for, or nothing that the claim lists";
        return LaunchFailure::Other("LaunchFailed".to_owned(), message.to_owned());
    }
    LaunchFailure::InsufficientCapacity(unbootable)
}

fn image_failure(error: &ImageError) -> LaunchFailure {
    let reason = match error {
        ImageError::TooLarge { .. } => "UserDataSizeLimitExceeded",
        ImageError::NoImage { .. } => "AMINotFound",
        ImageError::Family(_)
        | ImageError::Alias { .. }
        | ImageError::Unsupported { .. }
        | ImageError::Kubelet { .. }
        | ImageError::Mime { .. }
        | ImageError::Toml { .. }
        | ImageError::Setting { .. }
        | ImageError::NodeConfig { .. }
        | ImageError::NoClusterCidr(_)
        | ImageError::CaBundle { .. }
        | ImageError::RestrictedTags(_)
        | ImageError::NoSecurityGroups(_)
        | ImageError::VolumeSize { .. }
        | ImageError::Number { .. } => "LaunchFailed",
    };
    LaunchFailure::Other(reason.to_owned(), super::outcome::cut(&error.to_string()))
}

fn placement(order: &LaunchOrder) -> Placement {
    let wanted = |key: &str| order.claim.requirements.get(key);
    let group = order.class.resolved.placement_group.as_ref();
    let partitions = group.map_or(0, |group| i32::try_from(group.partitions).unwrap_or(i32::MAX));
    // Nobody asked: EC2 then spreads over the partitions itself.
    let partition = wanted(PARTITION).and_then(|want| (1..=partitions).find(|n| want.allows(&n.to_string())));
    Placement {
        dedicated: wanted(TENANCY).is_some_and(|tenancy| tenancy.allows("dedicated") && !tenancy.allows("default")),
        group_id: group.map(|group| group.id.clone()),
        partition,
    }
}
