//! The content of a launch template as plain values, and its name, which is a hash of that content:
//! equal content is one template, and no template ever changes.
//!
//! What must not enter: AWS types, which templates exist.

use std::collections::BTreeMap;

use serde::Serialize;
use sha2::{Digest, Sha256};
use whittle_model::ec2_node_class::{Ami, Ec2NodeClassSpec, SecurityGroup};
use whittle_model::{CapacityType, Labels, NodeClaim, keys};

use super::interface::{Interface, interfaces};
use super::{
    Boot, ClusterFacts, Family, Group, ImageError, Metadata, Reservation, UserData, Volume, bottlerocket_version, render, resolve_kubelet,
};

/// What stands before the hash in a template's name.
const PREFIX: &str = "karpenter.k8s.aws/";
/// Part of every hash. To be raised when the same content is written to EC2 in another way, so that
/// templates of older releases are not taken for ours.
const SHAPE: &str = "1";
/// Resource: a Nitro Enclave.
const ENCLAVE: &str = "eks.amazonaws.com/nitro-sandbox";
/// Label: registration leaves the node's taints alone, because the node boots with them.
const BOOTS_WITH_TAINTS: &str = "karpenter.sh/do-not-sync-taints";

/// Where an instance stands.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Placement {
    /// Whether the host is the customer's alone.
    pub dedicated: bool,
    /// Placement group, `pg-…`.
    pub group_id: Option<String>,
    /// Partition of the group.
    pub partition: Option<i32>,
}

/// How reserved capacity is used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum CapacityChoice {
    /// Whatever open reservation matches: EC2's own default.
    Open,
    /// No reservation.
    Avoid,
    /// This reservation and nothing else.
    Only(String),
}

/// A way to buy that is neither on-demand nor spot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Market {
    /// A capacity block.
    CapacityBlock,
    /// A reservation that may be taken back.
    InterruptibleReservation,
}

/// What a launch template holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TemplateSpec {
    /// `ami-…`.
    pub image: String,
    /// Name of the instance profile.
    pub profile: String,
    /// As the instance reads it, before base64.
    pub user_data: String,
    /// Disks, ordered by device; the image's own when empty.
    pub volumes: Vec<Volume>,
    /// The metadata service.
    pub metadata: Metadata,
    /// Whether EC2 measures every minute.
    pub detailed_monitoring: bool,
    /// `enabled` or `disabled`; EC2's default when absent.
    pub nested_virtualization: Option<String>,
    /// Whether a Nitro Enclave may be made.
    pub enclave: bool,
    /// Where an instance stands.
    pub placement: Placement,
    /// Network interfaces, with the security groups; ordered by card and device.
    pub interfaces: Vec<Interface>,
    /// Tags of the template, the interfaces and, with `spot`, the spot request.
    pub tags: BTreeMap<String, String>,
    /// Whether spot capacity is bought.
    pub spot: bool,
    /// How reserved capacity is used.
    pub reservation: CapacityChoice,
    /// A way to buy that is neither on-demand nor spot.
    pub market: Option<Market>,
}

/// What a launch template is made from.
#[derive(Debug, Clone)]
pub struct TemplateInputs<'a> {
    /// The cluster that nodes join.
    pub cluster: &'a ClusterFacts,
    /// Name of the EC2NodeClass.
    pub class_name: &'a str,
    /// What it wants.
    pub class: &'a Ec2NodeClassSpec,
    /// The images that were found for it.
    pub images: &'a [Ami],
    /// The security groups that were found for it.
    pub security_groups: &'a [SecurityGroup],
    /// Name of the instance profile.
    pub profile: &'a str,
    /// A claim that is launched; those of one launch shape give the same template.
    pub claim: &'a NodeClaim,
    /// The types it serves.
    pub group: &'a Group,
    /// How capacity is bought.
    pub capacity_type: CapacityType,
    /// Where instances stand.
    pub placement: Placement,
    /// Tags, as [`super::launch_tags`] makes them.
    pub tags: &'a BTreeMap<String, String>,
    /// Whether reservations are only used where they are named (gate ReservedCapacity).
    pub targeted_reservations: bool,
}

impl TemplateSpec {
    /// The content of a template, and its user data with what was left out of it.
    ///
    /// # Errors
    /// When the class has no security groups, its user data cannot be made, or a value does not fit.
    pub fn new(inputs: &TemplateInputs<'_>) -> Result<(Self, UserData), ImageError> {
        let class = inputs.class;
        let family = Family::of(class)?;
        let groups = security_groups(inputs)?;
        let user_data = user_data(inputs, family)?;
        let defaults = family.default_block_devices();
        let listed = class.block_device_mappings.as_ref().filter(|listed| !listed.is_empty()).unwrap_or(&defaults);
        let mut volumes = listed.iter().map(Volume::of).collect::<Result<Vec<_>, _>>()?;
        volumes.sort_by(|a, b| a.device.cmp(&b.device));
        let reservation = inputs.group.reservation.as_ref();
        let spec = Self {
            image: inputs.group.image.clone(),
            profile: inputs.profile.to_owned(),
            user_data: user_data.text.clone(),
            volumes,
            metadata: Metadata::of(class.metadata_options.as_ref(), &inputs.cluster.region)?,
            detailed_monitoring: class.detailed_monitoring.unwrap_or_default(),
            nested_virtualization: class.cpu_options.as_ref().and_then(|cpu| cpu.nested_virtualization.clone()),
            enclave: inputs.claim.requests.get(ENCLAVE) > 0,
            placement: inputs.placement.clone(),
            interfaces: interfaces(class, &groups, inputs.cluster.ip_family(), inputs.group.efas)?,
            tags: inputs.tags.clone(),
            spot: inputs.capacity_type == CapacityType::Spot,
            reservation: capacity_choice(reservation, inputs.targeted_reservations),
            market: reservation.filter(|_| inputs.targeted_reservations).and_then(market),
        };
        Ok((spec, user_data))
    }

    /// The template's name, `karpenter.k8s.aws/` and 32 hexadecimal digits.
    #[must_use]
    pub fn name(&self) -> String {
        hashed(self)
    }
}

fn hashed(content: &impl Serialize) -> String {
    let content = serde_json::to_vec(&(SHAPE, content)).expect("a template is made of texts, numbers and maps with text keys");
    let hash = Sha256::digest(content);
    hash.iter().take(16).fold(PREFIX.to_owned(), |name, byte| format!("{name}{byte:02x}"))
}

fn security_groups(inputs: &TemplateInputs<'_>) -> Result<Vec<String>, ImageError> {
    let mut ids: Vec<String> = inputs.security_groups.iter().map(|group| group.id.clone()).collect();
    ids.sort();
    ids.dedup();
    if ids.is_empty() { Err(ImageError::NoSecurityGroups(inputs.class_name.to_owned())) } else { Ok(ids) }
}

fn user_data(inputs: &TemplateInputs<'_>, family: Family) -> Result<UserData, ImageError> {
    let class = inputs.class;
    let labels = labels(inputs, family);
    let kubelet = resolve_kubelet(class.kubelet.as_ref(), inputs.group.max_pods, inputs.cluster.dns_ip);
    let version = bottlerocket_version(&class.ami_selector_terms, inputs.images);
    let boot = Boot {
        cluster: inputs.cluster,
        kubelet: &kubelet,
        labels: &labels,
        taints: &inputs.claim.taints,
        startup_taints: &inputs.claim.startup_taints,
        raid0: class.instance_store_policy.as_deref() == Some("RAID0"),
        user_data: class.user_data.as_deref(),
        image_version: version.as_deref(),
    };
    render(family, &boot)
}

/// The labels a node boots with: the claim's, how it is paid for, and that it has its taints.
fn labels(inputs: &TemplateInputs<'_>, family: Family) -> Labels {
    let mut labels = inputs.claim.labels.clone();
    labels.insert(keys::CAPACITY_TYPE.to_owned(), inputs.capacity_type.name().to_owned());
    if family != Family::Custom {
        labels.insert(BOOTS_WITH_TAINTS.to_owned(), "true".to_owned());
    }
    labels
}

fn capacity_choice(reservation: Option<&Reservation>, targeted: bool) -> CapacityChoice {
    match reservation {
        _ if !targeted => CapacityChoice::Open,
        Some(reservation) => CapacityChoice::Only(reservation.id.clone()),
        None => CapacityChoice::Avoid,
    }
}

fn market(reservation: &Reservation) -> Option<Market> {
    if reservation.capacity_block {
        Some(Market::CapacityBlock)
    } else if reservation.interruptible {
        Some(Market::InterruptibleReservation)
    } else {
        None
    }
}

#[cfg(test)]
#[path = "../../tests_unit/image_template.rs"]
mod tests;
