//! Storage: claims made for pods, volumes made for claims, disks attached to nodes and let go.
//!
//! Simpler than Kubernetes: a claim that waits for its first pod gets its volume in the moment in which the pod is bound,
//! and its size never matters.

use std::collections::BTreeMap;

use whittle_engine::Storage;
use whittle_model::{
    Duration, Event, Pod, PodKey, Requirement, Requirements, StorageClass, Volume, VolumeAttachment, VolumeClaim, VolumeClaimPhase,
    VolumeLimits, keys,
};

use super::{Happening, Reality};

/// A provisioner takes so long for a claim that does not wait for a pod.
const PROVISION: Duration = Duration::seconds(3);

/// A disk is let go so long after the last pod that used it.
const DETACH: Duration = Duration::seconds(6);

/// The driver of EBS, and how many disks it attaches to a node: 28 devices of a Nitro instance less the root disk and one
/// network interface. Source: <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/volume_limits.html>.
const EBS: (&str, u32) = ("ebs.csi.aws.com", 26);

/// The provisioner of classes whose volumes people make.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// Storage objects as the API server has them.
#[derive(Debug, Default)]
pub(crate) struct Disks {
    all: Storage,
    made: u64,
}

impl Disks {
    /// Everything a controller reads when it starts.
    pub(super) fn lists(&self) -> Vec<Event> {
        let classes = self.all.classes.values().cloned().map(|c| Event::StorageClass(Box::new(c)));
        let volumes = self.all.volumes.values().cloned().map(|v| Event::Volume(Box::new(v)));
        let claims = self.all.claims.values().cloned().map(|c| Event::VolumeClaim(Box::new(c)));
        let limits = self.all.limits.values().cloned().map(|l| Event::VolumeLimits(Box::new(l)));
        let attachments = self.all.attachments.values().cloned().map(|a| Event::VolumeAttachment(Box::new(a)));
        classes.chain(volumes).chain(claims).chain(limits).chain(attachments).collect()
    }

    fn class(&self, claim: &VolumeClaim) -> Option<&StorageClass> {
        claim.storage_class.as_ref().map_or_else(|| self.all.default_class(), |name| self.all.classes.get(name))
    }

    /// The class of a claim that a provisioner has yet to make a volume for.
    fn wanted(&self, claim: &VolumeClaim) -> Option<&StorageClass> {
        let class = self.class(claim).filter(|_| claim.volume.is_empty() && !claim.deleting);
        class.filter(|class| !class.provisioner.is_empty() && class.provisioner != NO_PROVISIONER)
    }
}

/// The name that stands for a disk at a node.
fn attachment_name(volume: &str, node: &str) -> String {
    format!("csi-{volume}-{node}")
}

impl Reality {
    /// A storage object is as given, or gone: everybody hears of it.
    pub(super) fn put_storage(&mut self, event: Event) {
        self.disks.all.note(&event);
        self.scheduler.apply_storage(&event);
        if let Event::VolumeClaim(claim) = &event
            && self.disks.wanted(claim).is_some_and(|class| class.immediate)
        {
            self.later(PROVISION, Happening::Provision(claim.key.clone()));
        }
        self.requeue(|pod| !pod.volumes.is_empty());
        self.tell(event);
    }

    /// The claims of a pod that are made with it: those of a StatefulSet's templates, which stay, and of ephemeral volumes.
    pub(super) fn make_claims(&mut self, pod: &Pod) {
        for volume in &pod.volumes {
            let key = PodKey::new(&pod.key.namespace, &volume.claim);
            if let Some(storage_class) = volume.ephemeral.clone().filter(|_| !self.disks.all.claims.contains_key(&key)) {
                self.put_storage(Event::VolumeClaim(Box::new(VolumeClaim { key, storage_class, ..VolumeClaim::default() })));
            }
        }
    }

    /// The claim of a StatefulSet's template, if it is not there already.
    pub(super) fn make_claim(&mut self, key: PodKey, storage_class: Option<String>) {
        if !self.disks.all.claims.contains_key(&key) {
            self.put_storage(Event::VolumeClaim(Box::new(VolumeClaim { key, storage_class, ..VolumeClaim::default() })));
        }
    }

    /// A provisioner makes the volume of a claim that waits for no pod, in a zone of its choice.
    pub(super) fn provision(&mut self, key: &PodKey) {
        let Some(claim) = self.disks.all.claims.get(key) else { return };
        let Some(class) = self.disks.wanted(claim) else { return };
        let named = class.topologies.iter().filter_map(|term| term.get(keys::ZONE)).flat_map(|zones| zones.values().iter().cloned());
        let mut zones: Vec<String> = named.collect();
        if zones.is_empty() {
            let types = self.api.catalogs.values().flat_map(|catalog| &catalog.types);
            zones = types.flat_map(|kind| &kind.offerings).map(|offering| offering.zone.clone()).collect();
        }
        zones.sort();
        zones.dedup();
        let most = i64::try_from(zones.len()).unwrap_or(0) - 1;
        let at = self.seed.of("disks").of(&key.to_string()).between(0, most);
        let zone = usize::try_from(at).ok().and_then(|at| zones.get(at)).cloned();
        self.make_volume(key, zone);
    }

    /// What a pod's volumes need on the node it is bound to: volumes are made for claims that waited, disks attached.
    pub(super) fn mount(&mut self, pod: &Pod, node: &str) {
        let zone = self.api.nodes.get(node).and_then(|node| node.labels.get(keys::ZONE)).cloned();
        for volume in &pod.volumes {
            let key = PodKey::new(&pod.key.namespace, &volume.claim);
            if self.disks.all.claims.get(&key).is_some_and(|claim| self.disks.wanted(claim).is_some()) {
                self.make_volume(&key, zone.clone());
            }
            let Some(volume) = self.disks.all.claims.get(&key).and_then(|claim| self.disks.all.volumes.get(&claim.volume)) else {
                continue;
            };
            let (volume, name) = (volume.name.clone(), attachment_name(&volume.name, node));
            if !self.disks.all.attachments.contains_key(&name) {
                let attachment = VolumeAttachment { name, node: node.to_owned(), volume };
                self.put_storage(Event::VolumeAttachment(Box::new(attachment)));
            }
        }
    }

    fn make_volume(&mut self, key: &PodKey, zone: Option<String>) {
        let Some(claim) = self.disks.all.claims.get(key).cloned() else { return };
        let Some(driver) = self.disks.wanted(&claim).map(|class| class.provisioner.clone()) else { return };
        self.disks.made += 1;
        let in_zone = |zone: String| -> Requirements { [Requirement::any_of(keys::ZONE, &[zone.as_str()])].into_iter().collect() };
        let volume = Volume {
            name: format!("pvc-{:04}", self.disks.made),
            node_terms: zone.map(in_zone).into_iter().collect(),
            driver: if driver == "kubernetes.io/aws-ebs" { EBS.0.to_owned() } else { driver },
            handle: format!("vol-{:04}", self.disks.made),
            ..Volume::default()
        };
        let bound = VolumeClaim { volume: volume.name.clone(), phase: VolumeClaimPhase::Bound, bind_completed: true, ..claim };
        self.put_storage(Event::Volume(Box::new(volume)));
        self.put_storage(Event::VolumeClaim(Box::new(bound)));
    }

    /// A pod is gone: its disks are let go after a while, and what was made for it alone goes with it.
    pub(super) fn unmount(&mut self, pod: &Pod) {
        for volume in &pod.volumes {
            let key = PodKey::new(&pod.key.namespace, &volume.claim);
            let Some(claim) = self.disks.all.claims.get(&key).cloned() else { continue };
            if let Some(node) = &pod.node {
                self.later(DETACH, Happening::Detach(attachment_name(&claim.volume, node)));
            }
            if volume.ephemeral.is_some() {
                self.put_storage(Event::VolumeClaimGone(key));
                if self.disks.all.volumes.contains_key(&claim.volume) {
                    self.put_storage(Event::VolumeGone(claim.volume));
                }
            }
        }
    }

    /// A disk is let go unless a pod uses it again.
    pub(super) fn detach(&mut self, name: &str) {
        let Some(attachment) = self.disks.all.attachments.get(name).cloned() else { return };
        let uses = |pod: &Pod| {
            let claims = pod.volumes.iter().filter_map(|v| self.disks.all.claims.get(&PodKey::new(&pod.key.namespace, &v.claim)));
            claims.into_iter().any(|claim| claim.volume == attachment.volume)
        };
        if !self.pods_on(&attachment.node).any(uses) {
            self.put_storage(Event::VolumeAttachmentGone(name.to_owned()));
        }
    }

    /// The driver of EBS is on every node that gets ready, where a class asks for it.
    pub(super) fn limit_disks(&mut self, node: &str) {
        let driver = |class: &StorageClass| class.provisioner == EBS.0 || class.provisioner == "kubernetes.io/aws-ebs";
        if self.disks.all.classes.values().any(driver) && !self.disks.all.limits.contains_key(node) {
            let limits = VolumeLimits { node: node.to_owned(), drivers: BTreeMap::from([(EBS.0.to_owned(), EBS.1)]) };
            self.put_storage(Event::VolumeLimits(Box::new(limits)));
        }
    }

    /// A node is gone, and with it what is said of its disks.
    pub(super) fn forget_disks(&mut self, node: &str) {
        let gone: Vec<String> = self.disks.all.attachments.values().filter(|a| a.node == node).map(|a| a.name.clone()).collect();
        for name in gone {
            self.put_storage(Event::VolumeAttachmentGone(name));
        }
        if self.disks.all.limits.contains_key(node) {
            self.put_storage(Event::VolumeLimitsGone(node.to_owned()));
        }
    }
}
