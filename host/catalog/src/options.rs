//! What of an EC2NodeClass, its zones and the settings bears on its instance types.

use std::collections::BTreeMap;

use whittle_model::{Labels, Requirements};

use crate::InstanceFacts;

/// The machine image family, as far as capacity and overhead depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AmiFamily {
    /// Amazon Linux 2.
    Al2,
    /// Amazon Linux 2023.
    #[default]
    Al2023,
    /// Bottlerocket.
    Bottlerocket,
    /// An image of the user's own.
    Custom,
}

impl AmiFamily {
    /// The family of this name of the EC2NodeClass API; `None` also for the Windows families, which
    /// are not built.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "AL2" => Some(Self::Al2),
            "AL2023" => Some(Self::Al2023),
            "Bottlerocket" => Some(Self::Bottlerocket),
            "Custom" => Some(Self::Custom),
            _ => None,
        }
    }

    /// Whether kubelet keeps memory for as many pods as the interfaces could address, whatever
    /// `maxPods` says.
    pub(crate) const fn reserves_for_eni_pods(self) -> bool {
        !matches!(self, Self::Bottlerocket)
    }

    /// Whether its kubelet knows `podsPerCore`.
    pub(crate) const fn knows_pods_per_core(self) -> bool {
        !matches!(self, Self::Bottlerocket)
    }
}

/// What becomes of NVMe instance storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InstanceStorePolicy {
    /// Pods do not see it.
    #[default]
    Unused,
    /// It is joined and holds what pods and images store.
    Raid0,
}

/// The kubelet settings of the NodeClass that change what pods can use. Values are as written in
/// the manifest.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Kubelet {
    /// `maxPods`.
    pub max_pods: Option<u32>,
    /// `podsPerCore`.
    pub pods_per_core: Option<u32>,
    /// `kubeReserved`: quantities by `cpu`, `memory`, `ephemeral-storage` or `pid`; each replaces the computed one.
    pub kube_reserved: BTreeMap<String, String>,
    /// `systemReserved`: quantities by the same names.
    pub system_reserved: BTreeMap<String, String>,
    /// `evictionHard`: a quantity or a percentage by signal, such as `memory.available`.
    pub eviction_hard: BTreeMap<String, String>,
}

/// A machine image of the NodeClass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// `ami-…`.
    pub id: String,
    /// What the labels of the types that it boots on are like.
    pub requirements: Requirements,
}

impl Image {
    /// The image that nodes of a type with these labels boot from: the first that boots there.
    #[must_use]
    pub fn for_labels<'i>(images: &'i [Self], labels: &Labels) -> Option<&'i Self> {
        images.iter().find(|image| image.requirements.met_by(labels))
    }
}

/// A network interface as the NodeClass configures it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nic {
    /// Network card, from 0.
    pub card: u32,
    /// Device on the card, from 0.
    pub device: u32,
    /// Whether it carries EFA traffic alone, and so no address for pods.
    pub efa_only: bool,
}

/// How instances of a placement group stand to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Placement {
    /// Close together.
    Cluster,
    /// In partitions that share no hardware.
    Partition,
    /// Each on hardware of its own.
    Spread,
}

impl Placement {
    /// The strategy of this name of the EC2 API.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "cluster" => Some(Self::Cluster),
            "partition" => Some(Self::Partition),
            "spread" => Some(Self::Spread),
            _ => None,
        }
    }
}

/// What one NodeClass in one region makes of instance types. The default is AL2023 in us-east-1 as
/// an EC2NodeClass without kubelet settings has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogOptions {
    /// Name of the NodeClass.
    pub node_class: String,
    /// Its region.
    pub region: String,
    /// The zones it has subnets in; `None` for all zones of the region.
    pub zones: Option<Vec<String>>,
    /// Zone ids by zone, as the account has them; zones of the compiled-in table that are left out get the assumed id.
    pub zone_ids: BTreeMap<String, String>,
    /// Image family.
    pub family: AmiFamily,
    /// What becomes of instance storage.
    pub instance_store: InstanceStorePolicy,
    /// Size of the root volume (of Bottlerocket: the data volume) in bytes.
    pub root_volume_bytes: i64,
    /// Kubelet settings.
    pub kubelet: Kubelet,
    /// The share of memory that the hypervisor keeps, in millionths (setting `VM_MEMORY_OVERHEAD_PERCENT`).
    pub vm_memory_overhead_ppm: u32,
    /// Network interfaces kept from pods (setting `RESERVED_ENIS`).
    pub reserved_enis: u32,
    /// Its machine images, the preferred ones first; types on which none boots are left out. `None` where every type is
    /// taken to have one.
    pub images: Option<Vec<Image>>,
    /// The memory that nodes were seen to have, in bytes, by image and type: it counts instead of the computed one.
    pub memory_seen: BTreeMap<String, BTreeMap<String, i64>>,
    /// Network interfaces as configured; `None` for what each type has by itself.
    pub network_interfaces: Option<Vec<Nic>>,
    /// Whether guests must be able to run virtual machines.
    pub nested_virtualization: bool,
    /// Whether time-outs of tracked connections are set.
    pub connection_tracking: bool,
    /// The strategy of its placement group, if it has one.
    pub placement: Option<Placement>,
}

impl CatalogOptions {
    /// Interfaces of the default card that carry no addresses for pods because they are configured for EFA alone.
    pub(crate) fn efa_only_on_default_card(&self) -> u32 {
        let nics = self.network_interfaces.iter().flatten();
        u32::try_from(nics.filter(|nic| nic.efa_only && nic.card == 0).count()).unwrap_or(u32::MAX)
    }

    /// EFA interfaces of a node: those configured, else all that the type has.
    pub(crate) fn efa_interfaces(&self, facts: &InstanceFacts) -> i64 {
        self.network_interfaces.as_ref().map_or_else(
            || i64::from(facts.efa_interfaces),
            |nics| i64::try_from(nics.iter().filter(|nic| nic.efa_only).count()).unwrap_or(i64::MAX),
        )
    }
}

impl Default for CatalogOptions {
    fn default() -> Self {
        Self {
            node_class: "default".to_owned(),
            region: "us-east-1".to_owned(),
            zones: None,
            zone_ids: BTreeMap::new(),
            family: AmiFamily::default(),
            instance_store: InstanceStorePolicy::default(),
            root_volume_bytes: 20 << 30,
            kubelet: Kubelet::default(),
            vm_memory_overhead_ppm: 75_000,
            reserved_enis: 0,
            images: None,
            memory_seen: BTreeMap::new(),
            network_interfaces: None,
            nested_virtualization: false,
            connection_tracking: false,
            placement: None,
        }
    }
}
