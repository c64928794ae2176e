//! The instance type and image that a launch is tried with, dry.
//!
//! What must not enter: calls, and which types a NodePool buys.

use std::sync::Arc;

use whittle_model::{InstanceType, Labels, Requirements, Resources, ec2_node_class::Ami, keys};

use crate::image::{self, Family, Group, ImageError, Wanted};

/// Types that are tried where no NodePool says which ones it buys: cheap, sold nearly everywhere, one for each
/// architecture.
const FALLBACKS: [(&str, &str); 2] = [("m5.large", "amd64"), ("m6g.large", "arm64")];
/// Pods of those types.
const FALLBACK_PODS: i64 = 29;

/// The first type that boots one of the images, with that image: one without GPUs and accelerators if there is one,
/// since the images for those may be larger than the disks of the class.
pub(super) fn group(candidates: &[InstanceType], family: Family, images: &[Ami]) -> Result<Group, ImageError> {
    let fallbacks: Vec<InstanceType> = FALLBACKS.iter().map(|(name, arch)| fallback(name, arch, family)).collect();
    // Which types run Windows is not in the catalogue.
    let candidates = candidates.iter().filter(|_| family.windows().is_none());
    let (special, plain): (Vec<&InstanceType>, Vec<&InstanceType>) = candidates.partition(|candidate| has_devices(candidate));
    let mut last = ImageError::NoImage { types: candidates_count(&plain, &special, &fallbacks), images: Vec::new() };
    for instance_type in plain.into_iter().chain(&fallbacks).chain(special) {
        match image::group_by(&[Wanted { instance_type, reservations: Vec::new() }], images, false) {
            Ok(groups) => {
                if let Some(group) = groups.into_iter().next() {
                    return Ok(group);
                }
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn candidates_count(plain: &[&InstanceType], special: &[&InstanceType], fallbacks: &[InstanceType]) -> usize {
    plain.len() + special.len() + fallbacks.len()
}

fn has_devices(candidate: &InstanceType) -> bool {
    ["instance-gpu-count", "instance-accelerator-count"]
        .iter()
        .any(|name| candidate.labels.contains_key(&format!("{}{name}", keys::AWS_PREFIX)))
}

fn fallback(name: &str, arch: &str, family: Family) -> InstanceType {
    let mut labels = Labels::from([(keys::ARCH.to_owned(), arch.to_owned()), (keys::INSTANCE_TYPE.to_owned(), name.to_owned())]);
    let os = match family.windows() {
        Some((_, build)) => {
            labels.insert(keys::WINDOWS_BUILD.to_owned(), build.to_owned());
            "windows"
        }
        None => "linux",
    };
    labels.insert(keys::OS.to_owned(), os.to_owned());
    let capacity = Resources::of(&[("pods", FALLBACK_PODS)]);
    InstanceType {
        name: name.to_owned(),
        labels,
        requirements: Arc::new(Requirements::default()),
        allocatable: capacity.clone(),
        capacity,
        offerings: Vec::new(),
    }
}
