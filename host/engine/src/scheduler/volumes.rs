//! Volumes: VolumeBinding and NodeVolumeLimits. Which volumes a pod has or will get, the nodes that can use them, and how
//! many a node may still hold.
//!
//! Not modelled: volumes made beforehand that an unbound claim could be given, storage capacity, access modes.
//! Sources: <https://kubernetes.io/docs/concepts/storage/storage-classes/#volume-binding-mode> and
//! <https://kubernetes.io/docs/concepts/storage/storage-limits/>.

use std::collections::{BTreeMap, BTreeSet};

use whittle_model::{Event, Labels, Pod, PodKey, Requirements, StorageClass, VolumeClaim, VolumeClaimPhase};

use crate::storage::Storage;

/// The provisioner of classes whose volumes people make.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// In-tree provisioners and the CSI drivers that stand in for them.
const MIGRATED: [(&str, &str); 1] = [("kubernetes.io/aws-ebs", "ebs.csi.aws.com")];

/// Why a node will not do, as bits: several may hold at once.
pub(super) type Faults = u8;
/// A volume cannot be used there.
pub(super) const UNREACHABLE: Faults = 1;
/// A volume cannot be made there.
pub(super) const UNMAKEABLE: Faults = 2;
/// A claim's volume does not exist.
pub(super) const ABSENT: Faults = 4;

/// The reasons that faults stand for, in kube-scheduler's words.
pub(super) fn reasons(faults: Faults) -> impl Iterator<Item = &'static str> {
    let words = [
        (UNREACHABLE, "node(s) didn't match PersistentVolume's node affinity"),
        (UNMAKEABLE, "node(s) didn't find available persistent volumes to bind"),
        (ABSENT, "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"),
    ];
    words.into_iter().filter(move |(bit, _)| faults & bit != 0).map(|(_, reason)| reason)
}

/// A volume as attach limits count it: driver, and what is its own with the driver.
type Attached = (String, String);

/// What the volumes of one pod ask of a node.
#[derive(Debug, Clone, Default)]
pub(super) struct Mounts {
    /// Alternatives of each volume that exists.
    reach: Vec<Vec<Requirements>>,
    /// Alternatives of each volume that is to be made; `None` where nobody makes it.
    make: Vec<Option<Vec<Requirements>>>,
    absent: bool,
    attach: BTreeSet<Attached>,
}

impl Mounts {
    /// VolumeBinding: why a node with these labels will not do; 0 when it will.
    pub fn faults(&self, labels: &Labels) -> Faults {
        let met = |terms: &[Requirements]| terms.is_empty() || terms.iter().any(|term| term.met_by(labels));
        let mut faults = 0;
        if self.absent {
            faults |= ABSENT;
        }
        if !self.reach.iter().all(|terms| met(terms)) {
            faults |= UNREACHABLE;
        }
        if !self.make.iter().all(|made| made.as_ref().is_some_and(|terms| met(terms))) {
            faults |= UNMAKEABLE;
        }
        faults
    }

    /// Whether none of the volumes counts against a limit.
    pub fn weightless(&self) -> bool {
        self.attach.is_empty()
    }
}

/// Storage objects, and which claims are in use on which node.
#[derive(Debug, Clone, Default)]
pub(super) struct Volumes {
    storage: Storage,
    /// Names of attachments with their volume, by node.
    attached: BTreeMap<String, BTreeMap<String, String>>,
    /// Claims of the pods on a node, with the number of pods.
    in_use: BTreeMap<u32, BTreeMap<PodKey, u32>>,
}

/// The claims of a pod's volumes.
pub(super) fn claims(pod: &Pod) -> Vec<PodKey> {
    pod.volumes.iter().map(|volume| PodKey::new(&pod.key.namespace, &volume.claim)).collect()
}

impl Volumes {
    /// All storage objects at once.
    pub fn adopt(&mut self, storage: &Storage) {
        self.storage = storage.clone();
        self.attached.clear();
        for attachment in storage.attachments.values().filter(|a| !a.volume.is_empty()) {
            self.attached.entry(attachment.node.clone()).or_default().insert(attachment.name.clone(), attachment.volume.clone());
        }
    }

    /// A storage object is as given, or gone; other events are no matter.
    pub fn note(&mut self, event: &Event) {
        if let Event::VolumeAttachment(attachment) = event {
            self.detach(&attachment.name);
            if !attachment.volume.is_empty() {
                self.attached.entry(attachment.node.clone()).or_default().insert(attachment.name.clone(), attachment.volume.clone());
            }
        } else if let Event::VolumeAttachmentGone(name) = event {
            self.detach(name);
        }
        self.storage.note(event);
    }

    fn detach(&mut self, attachment: &str) {
        let node = self.storage.attachments.get(attachment).map(|known| &known.node);
        if let Some(names) = node.and_then(|node| self.attached.get_mut(node)) {
            names.remove(attachment);
        }
    }

    /// A pod with these claims is on the slot.
    pub fn place(&mut self, claims: &[PodKey], slot: u32) {
        for claim in claims {
            *self.in_use.entry(slot).or_default().entry(claim.clone()).or_default() += 1;
        }
    }

    /// A pod with these claims left the slot.
    pub fn lift(&mut self, claims: &[PodKey], slot: u32) {
        let Some(in_use) = self.in_use.get_mut(&slot) else { return };
        for claim in claims {
            if let Some(pods) = in_use.get_mut(claim) {
                *pods -= 1;
                if *pods == 0 {
                    in_use.remove(claim);
                }
            }
        }
        if in_use.is_empty() {
            self.in_use.remove(&slot);
        }
    }

    /// What the volumes of a pod ask of nodes; `None` when it has none.
    ///
    /// # Errors
    /// When the pod can go nowhere as its claims are, in kube-scheduler's words.
    pub fn mounts(&self, pod: &Pod) -> Result<Option<Mounts>, String> {
        if pod.volumes.is_empty() {
            return Ok(None);
        }
        let mut claims = Vec::new();
        for volume in &pod.volumes {
            let name = &volume.claim;
            let claim = self.storage.claims.get(&PodKey::new(&pod.key.namespace, name)).ok_or_else(|| {
                if volume.ephemeral.is_some() {
                    format!("waiting for ephemeral volume controller to create the persistentvolumeclaim \"{name}\"")
                } else {
                    format!("persistentvolumeclaim \"{name}\" not found")
                }
            })?;
            if claim.phase == VolumeClaimPhase::Lost {
                return Err(format!("persistentvolumeclaim \"{name}\" bound to non-existent persistentvolume \"{}\"", claim.volume));
            }
            if claim.deleting {
                return Err(format!("persistentvolumeclaim \"{name}\" is being deleted"));
            }
            claims.push(claim);
        }
        let mut mounts = Mounts::default();
        for claim in claims {
            self.mount(claim, &mut mounts)?;
        }
        Ok(Some(mounts))
    }

    fn mount(&self, claim: &VolumeClaim, mounts: &mut Mounts) -> Result<(), String> {
        mounts.attach.extend(self.attachable(claim));
        if bound(claim) {
            match self.storage.volumes.get(&claim.volume) {
                Some(volume) => mounts.reach.push(volume.node_terms.clone()),
                None => mounts.absent = true,
            }
            return Ok(());
        }
        match self.class(claim)? {
            Some(class) if !class.immediate && claim.volume.is_empty() => {
                let made = !class.provisioner.is_empty() && class.provisioner != NO_PROVISIONER;
                mounts.make.push(made.then(|| class.topologies.clone()));
                Ok(())
            }
            Some(_) | None => Err("pod has unbound immediate PersistentVolumeClaims".to_owned()),
        }
    }

    /// The storage class of a claim, if it has one.
    fn class(&self, claim: &VolumeClaim) -> Result<Option<&StorageClass>, String> {
        match claim.storage_class.as_deref() {
            None => Ok(self.storage.default_class()),
            Some("") => Ok(None),
            Some(name) => {
                self.storage.classes.get(name).map(Some).ok_or_else(|| format!("storageclass.storage.k8s.io \"{name}\" not found"))
            }
        }
    }

    /// What the volume of a claim, there or to be made, counts as.
    fn attachable(&self, claim: &VolumeClaim) -> Option<Attached> {
        if !claim.volume.is_empty() {
            return self.of_volume(&claim.volume);
        }
        let provisioner = &self.class(claim).ok()??.provisioner;
        let driver = MIGRATED.iter().find(|(old, _)| old == provisioner).map_or(provisioner.as_str(), |(_, driver)| driver);
        Some((driver.to_owned(), format!("claim {}", claim.key))).filter(|(driver, _)| !driver.is_empty() && driver != NO_PROVISIONER)
    }

    fn of_volume(&self, name: &str) -> Option<Attached> {
        let volume = self.storage.volumes.get(name)?;
        let counted = !volume.driver.is_empty() && !volume.handle.is_empty();
        counted.then(|| (volume.driver.clone(), volume.handle.clone()))
    }

    /// NodeVolumeLimits: whether a node would hold more volumes than it may. Each volume counts once, however many pods
    /// use it; `held` are claims of pods that are as if they were bound there.
    pub fn crowded<'h>(&'h self, mounts: &Mounts, node: &str, slot: u32, held: impl Iterator<Item = &'h PodKey>) -> bool {
        let Some(limits) = self.storage.limits.get(node).filter(|limits| !limits.drivers.is_empty()) else { return false };
        let in_use = self.in_use.get(&slot).into_iter().flat_map(|claims| claims.keys()).chain(held);
        let mut there: BTreeSet<Attached> =
            in_use.filter_map(|claim| self.storage.claims.get(claim)).filter_map(|claim| self.attachable(claim)).collect();
        let new: Vec<&Attached> = mounts.attach.iter().filter(|volume| !there.contains(volume)).collect();
        let attached = self.attached.get(node).into_iter().flat_map(BTreeMap::values);
        there.extend(attached.filter_map(|volume| self.of_volume(volume)));
        limits.drivers.iter().any(|(driver, most)| {
            let coming = new.iter().filter(|(of, _)| of == driver).count();
            coming > 0 && coming + there.iter().filter(|(of, _)| of == driver).count() > *most as usize
        })
    }
}

/// Whether a claim has its volume for good.
fn bound(claim: &VolumeClaim) -> bool {
    !claim.volume.is_empty() && claim.bind_completed
}
