//! Storage as far as it decides where a pod may run: claims, volumes, storage classes, and how many
//! volumes a node may hold.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{PodKey, Requirements};

/// How far a PersistentVolumeClaim has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub enum VolumeClaimPhase {
    /// No volume is bound to it.
    #[default]
    Pending,
    /// It has its volume.
    Bound,
    /// Its volume is gone.
    Lost,
}

/// A PersistentVolumeClaim.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct VolumeClaim {
    /// Namespace and name.
    pub key: PodKey,
    /// How far it has come.
    pub phase: VolumeClaimPhase,
    /// The PersistentVolume it has or is meant to have; empty when none is named.
    pub volume: String,
    /// Its storage class; `None` is the default class, empty is none.
    pub storage_class: Option<String>,
    /// Whether it carries `pv.kubernetes.io/bind-completed`.
    pub bind_completed: bool,
    /// Whether it is being deleted.
    pub deleting: bool,
}

/// A PersistentVolume.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Volume {
    /// Its name.
    pub name: String,
    /// Nodes that can use it: at least one term must hold. Empty means all.
    pub node_terms: Vec<Requirements>,
    /// The CSI driver; in-tree plugins under the name of the driver that stands in for them. Empty when none is counted.
    pub driver: String,
    /// What the driver calls it.
    pub handle: String,
    /// Whether it is a disk or path of one node (`local`, `hostPath`): the host name in its terms then says nothing about new nodes.
    pub local: bool,
    /// Whether it is being deleted.
    pub deleting: bool,
}

/// A StorageClass.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StorageClass {
    /// Its name.
    pub name: String,
    /// Who makes its volumes.
    pub provisioner: String,
    /// `volumeBindingMode: Immediate`; false is `WaitForFirstConsumer`.
    pub immediate: bool,
    /// Where its volumes can be made: at least one term must hold. Empty means anywhere.
    pub topologies: Vec<Requirements>,
    /// Whether claims without a class get it.
    pub default: bool,
}

/// How many volumes a node may hold, from its CSINode.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct VolumeLimits {
    /// The node's name.
    pub node: String,
    /// Volumes at a time, by driver; a driver without a limit is absent.
    pub drivers: BTreeMap<String, u32>,
}

/// A volume held by a node.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct VolumeAttachment {
    /// Its name.
    pub name: String,
    /// The node.
    pub node: String,
    /// The PersistentVolume; empty when it stands for another source.
    pub volume: String,
}
