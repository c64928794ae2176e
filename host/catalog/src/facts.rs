//! What EC2 says of each instance type, as read from a table or as told by a door.

use crate::{CatalogError, facts_columns};

/// The processor architectures that matter to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Architecture {
    /// `x86_64`, with or without 32-bit mode.
    Amd64,
    /// 64-bit ARM.
    Arm64,
    /// Apple hosts: no Kubernetes node runs there.
    Mac,
}

impl Architecture {
    /// The value of `kubernetes.io/arch`, if nodes of it exist.
    #[must_use]
    pub const fn label(self) -> Option<&'static str> {
        match self {
            Self::Amd64 => Some("amd64"),
            Self::Arm64 => Some("arm64"),
            Self::Mac => None,
        }
    }
}

/// Whether an instance has a share of the network for its EBS volumes alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EbsOptimized {
    /// Always.
    Default,
    /// When asked for, at a price.
    Supported,
    /// Never.
    Unsupported,
}

/// How a type may be bought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UsageClasses {
    /// By the hour at list price.
    pub on_demand: bool,
    /// As spare capacity.
    pub spot: bool,
    /// In blocks reserved ahead.
    pub capacity_block: bool,
}

/// The placement group strategies open to a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PlacementStrategies {
    /// Close together.
    pub cluster: bool,
    /// In partitions that share no hardware.
    pub partition: bool,
    /// Each on hardware of its own.
    pub spread: bool,
}

/// One instance type. Empty texts and `None` mean that EC2 does not say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceFacts {
    /// Its name, such as `m7i.large`.
    pub name: String,
    /// Virtual processors.
    pub vcpus: u32,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// Processor architecture.
    pub arch: Architecture,
    /// `nitro` or `xen`; empty on bare metal.
    pub hypervisor: String,
    /// Whether there is no hypervisor.
    pub bare_metal: bool,
    /// Whether AWS counts it among the current generation.
    pub current_generation: bool,
    /// Whether its processor time is earned in credits.
    pub burstable: bool,
    /// Whether it has a flexible processor baseline.
    pub flex_capable: bool,
    /// Who made the processor, such as `Intel`.
    pub cpu_manufacturer: String,
    /// Sustained clock in MHz.
    pub clock_mhz: Option<u32>,
    /// How it may be bought.
    pub usage_classes: UsageClasses,
    /// Network interfaces over all cards.
    pub enis: u32,
    /// IPv4 addresses of an interface.
    pub ipv4_per_eni: u32,
    /// Network cards.
    pub network_cards: u32,
    /// Network interfaces of the default card.
    pub default_card_enis: u32,
    /// Interfaces that may be EFA; zero without EFA.
    pub efa_interfaces: u32,
    /// Whether branch interfaces may hang off a trunk.
    pub trunking: bool,
    /// Branch interfaces it may have.
    pub branch_enis: Option<u32>,
    /// Network baseline in Mbit/s.
    pub network_mbps: Option<u64>,
    /// Bandwidth to EBS in Mbit/s.
    pub ebs_mbps: Option<u64>,
    /// Whether that bandwidth is there by default.
    pub ebs_optimized: EbsOptimized,
    /// Whether traffic between instances is encrypted.
    pub encryption_in_transit: bool,
    /// NVMe instance storage in GB (10^9 bytes).
    pub nvme_gb: Option<u64>,
    /// All instance storage in GB (10^9 bytes), NVMe or not.
    pub ssd_total_gb: Option<u64>,
    /// GPUs.
    pub gpus: u32,
    /// Their name, such as `A100`.
    pub gpu_name: String,
    /// Who made them, such as `NVIDIA`.
    pub gpu_manufacturer: String,
    /// Memory of one GPU in MiB.
    pub gpu_memory_mib: Option<u64>,
    /// AWS Neuron devices.
    pub neuron_devices: u32,
    /// Cores over all Neuron devices.
    pub neuron_cores: u32,
    /// The Neuron device's name, such as `Trainium`.
    pub neuron_name: String,
    /// Inference accelerators.
    pub accelerators: u32,
    /// Their name.
    pub accelerator_name: String,
    /// Who made them.
    pub accelerator_manufacturer: String,
    /// Whether guests may run virtual machines.
    pub nested_virtualization: bool,
    /// Placement group strategies it may stand in.
    pub placement_strategies: PlacementStrategies,
    /// EBS volumes that may be attached.
    pub max_ebs_attachments: Option<u32>,
    /// Whether it can hold Nitro enclaves; `None` where nobody said.
    pub nitro_enclaves: Option<bool>,
}

impl InstanceFacts {
    /// What stands before the point of its name: `m7i` of `m7i.large`.
    #[must_use]
    pub fn family(&self) -> &str {
        self.name.split_once('.').map_or(self.name.as_str(), |(family, _)| family)
    }

    /// What stands behind the point of its name: `large` of `m7i.large`.
    #[must_use]
    pub fn size(&self) -> &str {
        self.name.split_once('.').map_or("", |(_, size)| size)
    }

    /// Interfaces of one network card, by its index; `None` when there is no such card. Of every type that EC2 has,
    /// the cards behind the first share evenly what the first leaves.
    #[must_use]
    pub fn enis_of_card(&self, card: u32) -> Option<u32> {
        match card {
            _ if card >= self.network_cards => None,
            0 => Some(self.default_card_enis),
            _ => Some(self.enis.saturating_sub(self.default_card_enis) / (self.network_cards - 1)),
        }
    }
}

/// Instance types, ordered by name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts(Vec<InstanceFacts>);

impl Facts {
    /// The compiled-in table.
    #[must_use]
    pub fn builtin() -> Self {
        Self::parse(include_str!("../data/instance-types.csv")).expect("the compiled-in table reads: a test reads it")
    }

    /// Reads a table of the form of `data/instance-types.csv`: first line the names of its columns,
    /// in any order, then one line for each type.
    ///
    /// # Errors
    /// On the first line that cannot be read; the error names line, column and value.
    pub fn parse(text: &str) -> Result<Self, CatalogError> {
        facts_columns::parse(text)
    }

    /// From types in any order. Of several with one name the first counts.
    #[must_use]
    pub fn of(mut types: Vec<InstanceFacts>) -> Self {
        types.sort_by(|a, b| a.name.cmp(&b.name));
        types.dedup_by(|later, first| later.name == first.name);
        Self(types)
    }

    /// The type of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&InstanceFacts> {
        self.0.binary_search_by(|facts| facts.name.as_str().cmp(name)).ok().map(|at| &self.0[at])
    }

    /// All types, ordered by name.
    pub fn iter(&self) -> impl Iterator<Item = &InstanceFacts> {
        self.0.iter()
    }
}
