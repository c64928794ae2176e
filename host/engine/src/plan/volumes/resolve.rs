//! From a pod's volumes to the objects behind them: claim, PersistentVolume, storage class.

use std::borrow::Cow;

use whittle_model::{Node, PodKey, PodVolume, Requirements, StorageClass, Volume, VolumeClaim, VolumeClaimPhase, keys};

use crate::plan::refusals::going;
use crate::report::{Reason, VolumeFault};
use crate::storage::Storage;
use crate::world::{PodRecord, World};

/// One volume of a pod.
#[derive(Debug, Clone)]
pub(super) struct Mounted<'w> {
    /// Nodes that can use it: at least one term must hold; none means all.
    pub(super) terms: Cow<'w, [Requirements]>,
    /// Its driver and which volume it is; `None` when no driver counts it.
    pub(super) attached: Option<(&'w str, VolumeId<'w>)>,
    /// Whether it is a disk or path of one node.
    local: bool,
}

impl<'w> Mounted<'w> {
    /// A volume that nobody counts.
    #[cfg(test)]
    pub(super) fn of_terms(terms: Vec<Requirements>) -> Self {
        Self { terms: Cow::Owned(terms), attached: None, local: false }
    }

    /// As documented: a pod that is moved, or whose node is gone, leaves a disk or path of its node behind, so that the host
    /// name is no demand.
    fn leave_host(&mut self) {
        for term in self.terms.to_mut() {
            term.remove(keys::HOSTNAME);
        }
    }
}

/// Which volume of a driver it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum VolumeId<'w> {
    /// One that exists, by the driver's name for it.
    Handle(&'w str),
    /// One that is to be made for a claim.
    Claim(PodKey),
}

/// What is wrong with the volumes of a pod, if anything is.
pub(crate) fn fault(world: &World, key: &PodKey, record: &PodRecord) -> Option<Reason> {
    let mounted = match volumes_of(world, key, record) {
        Ok(mounted) => mounted,
        Err((claim, fault)) => return Some(Reason::Volume { claim, fault }),
    };
    let apart = super::places(&mounted).iter().any(|place| place.iter().any(whittle_model::Requirement::is_contradiction));
    let last = || record.volumes.last().map(|v| PodKey::new(&key.namespace, &v.claim)).unwrap_or_default();
    apart.then(|| Reason::Volume { claim: last(), fault: VolumeFault::Apart })
}

/// The volumes of a pod.
///
/// # Errors
/// The claim with which something is wrong, and what.
pub(super) fn volumes_of<'w>(world: &'w World, key: &PodKey, record: &PodRecord) -> Result<Vec<Mounted<'w>>, (PodKey, VolumeFault)> {
    let one = |volume: &PodVolume| {
        let claim = PodKey::new(&key.namespace, &volume.claim);
        resolve(&world.storage, &claim, volume).map_err(|fault| (claim, fault))
    };
    let mut all: Vec<Mounted<'w>> = record.volumes.iter().map(one).collect::<Result<_, _>>()?;
    for volume in &mut all {
        if volume.local && (record.node.is_some() || !volume.terms.iter().any(|term| host_stays(world, term))) {
            volume.leave_host();
        }
    }
    Ok(all)
}

/// Whether a node that a term names is there to stay.
fn host_stays(world: &World, term: &Requirements) -> bool {
    let Some(wanted) = term.get(keys::HOSTNAME) else { return false };
    let stays = |node: &Node| !going(world, &node.name);
    let named = |node: &Node| node.labels.get(keys::HOSTNAME).is_some_and(|host| wanted.allows(host));
    // Most often a node's host name is its name.
    let by_name = wanted.values().iter().filter_map(|name| world.nodes.get(name)).any(|node| named(node) && stays(node));
    by_name || world.nodes.values().any(|node| named(node) && stays(node))
}

fn resolve<'w>(storage: &'w Storage, key: &PodKey, volume: &PodVolume) -> Result<Mounted<'w>, VolumeFault> {
    let Some(claim) = storage.claims.get(key) else {
        // The claim of an ephemeral volume is made soon after its pod.
        let class = volume.ephemeral.as_ref().ok_or(VolumeFault::NoClaim)?;
        return to_be_made(storage, key, class.as_deref());
    };
    if claim.deleting {
        return Err(VolumeFault::ClaimDeleting);
    }
    if claim.phase == VolumeClaimPhase::Lost {
        return Err(VolumeFault::Lost);
    }
    if claim.volume.is_empty() { to_be_made(storage, key, claim.storage_class.as_deref()) } else { made(storage, claim) }
}

/// A claim that has its volume, or names the one that it will have.
fn made<'w>(storage: &'w Storage, claim: &VolumeClaim) -> Result<Mounted<'w>, VolumeFault> {
    if claim.phase == VolumeClaimPhase::Bound && !claim.bind_completed {
        return Err(VolumeFault::NotBoundYet);
    }
    let volume = storage.volumes.get(&claim.volume).ok_or_else(|| VolumeFault::NoVolume(claim.volume.clone()))?;
    if volume.deleting {
        return Err(VolumeFault::VolumeDeleting(claim.volume.clone()));
    }
    Ok(Mounted { terms: Cow::Borrowed(&volume.node_terms), attached: attached(volume), local: volume.local })
}

/// The driver that counts a volume of a pod which has its node, and which volume it is. What has become of its objects
/// since does not matter: it is attached.
pub(super) fn counted<'w>(storage: &'w Storage, key: &PodKey, volume: &PodVolume) -> Option<(&'w str, VolumeId<'w>)> {
    let claim_key = PodKey::new(&key.namespace, &volume.claim);
    let class = match storage.claims.get(&claim_key) {
        Some(claim) if !claim.volume.is_empty() => return attached(storage.volumes.get(&claim.volume)?),
        Some(claim) => claim.storage_class.as_deref(),
        None => volume.ephemeral.as_ref()?.as_deref(),
    };
    to_be_made(storage, &claim_key, class).ok()?.attached
}

/// Driver and identity of a volume that is counted.
pub(super) fn attached(volume: &Volume) -> Option<(&str, VolumeId<'_>)> {
    let handle = if volume.handle.is_empty() { &volume.name } else { &volume.handle };
    (!volume.driver.is_empty()).then_some((&volume.driver, VolumeId::Handle(handle)))
}

/// A claim whose volume is made once its pod has a node.
fn to_be_made<'w>(storage: &'w Storage, key: &PodKey, class: Option<&str>) -> Result<Mounted<'w>, VolumeFault> {
    let class: &StorageClass = match class {
        // Of several defaults the server takes the newest, which is not told; the first by name stands for it.
        None => storage.default_class().ok_or(VolumeFault::NoClass)?,
        Some("") => return Err(VolumeFault::NoClass),
        Some(name) => storage.classes.get(name).ok_or_else(|| VolumeFault::MissingClass(name.to_owned()))?,
    };
    if class.immediate {
        return Err(VolumeFault::Immediate(class.name.clone()));
    }
    let attached = (!class.provisioner.is_empty()).then(|| (class.provisioner.as_str(), VolumeId::Claim(key.clone())));
    Ok(Mounted { terms: Cow::Borrowed(&class.topologies), attached, local: false })
}
