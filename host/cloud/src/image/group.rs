//! Which launch templates a set of instance types needs: what differs between types and yet has to
//! stand in the template is the image, the limit of pods, the EFA cards and the reservation.
//!
//! What must not enter: what the templates hold.

use std::collections::BTreeMap;

use whittle_model::ec2_node_class::{Ami, AmiRequirement};
use whittle_model::{InstanceType, keys};

use super::ImageError;

/// Resource: EFA cards.
pub(super) const EFA: &str = "vpc.amazonaws.com/efa";

/// A capacity reservation to launch into.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reservation {
    /// `cr-…`.
    pub id: String,
    /// Whether it is a capacity block.
    pub capacity_block: bool,
    /// Whether it may be taken back.
    pub interruptible: bool,
}

/// An instance type to launch.
#[derive(Debug, Clone)]
pub struct Wanted<'a> {
    /// The type.
    pub instance_type: &'a InstanceType,
    /// The reservations it may be launched into; none unless reserved capacity is bought.
    pub reservations: Vec<Reservation>,
}

/// The types that one launch template serves.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Group {
    /// `ami-…`.
    pub image: String,
    /// The limit of pods.
    pub max_pods: u32,
    /// EFA cards that pods asked for.
    pub efas: u32,
    /// The reservation, where reserved capacity is bought.
    pub reservation: Option<Reservation>,
    /// Names of the types, ordered.
    pub instance_types: Vec<String>,
}

/// The groups of these types, ordered. Each type boots the first of `images` that fits it; types
/// that none fits are left out. EFA cards count only where pods asked for them.
///
/// # Errors
/// When no image fits any type.
pub fn group_by(wanted: &[Wanted<'_>], images: &[Ami], efa_asked: bool) -> Result<Vec<Group>, ImageError> {
    let mut groups: BTreeMap<(String, u32, u32, Option<Reservation>), Vec<String>> = BTreeMap::new();
    for want in wanted {
        let Some(image) = images.iter().find(|image| boots(image, want.instance_type)) else { continue };
        let capacity = &want.instance_type.capacity;
        let count = |name: &str| u32::try_from(capacity.get(name)).unwrap_or_default();
        let efas = if efa_asked { count(EFA) } else { 0 };
        let into = want.reservations.iter().cloned().map(Some).chain(want.reservations.is_empty().then_some(None));
        for reservation in into {
            let types = groups.entry((image.id.clone(), count("pods"), efas, reservation)).or_default();
            types.push(want.instance_type.name.clone());
        }
    }
    if groups.is_empty() {
        let images = images.iter().map(|image| image.id.clone()).collect();
        return Err(ImageError::NoImage { types: wanted.len(), images });
    }
    let sorted = |mut types: Vec<String>| {
        types.sort();
        types.dedup();
        types
    };
    Ok(groups
        .into_iter()
        .map(|((image, max_pods, efas, reservation), types)| Group { image, max_pods, efas, reservation, instance_types: sorted(types) })
        .collect())
}

/// Whether an instance of this type can boot the image.
fn boots(image: &Ami, instance_type: &InstanceType) -> bool {
    image.requirements.iter().all(|requirement| meets(requirement, instance_type))
}

fn meets(requirement: &AmiRequirement, instance_type: &InstanceType) -> bool {
    let label = instance_type.labels.get(keys::normalized(&requirement.key));
    match (requirement.operator.as_str(), label) {
        ("In", Some(label)) => requirement.values.iter().flatten().any(|value| value == label),
        ("Exists", Some(_)) | ("DoesNotExist", None) => true,
        // An operator that the schema does not have must not boot the wrong image.
        _ => false,
    }
}

#[cfg(test)]
#[path = "../../tests_unit/image_group.rs"]
mod tests;
