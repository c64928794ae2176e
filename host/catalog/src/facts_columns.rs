//! The columns of the table of instance types, and how a line becomes an [`InstanceFacts`].

use crate::facts::{Architecture, EbsOptimized, InstanceFacts, PlacementStrategies, UsageClasses};
use crate::table::{Row, Schema};
use crate::{CatalogError, Facts};

pub(crate) const FACTS: Schema = Schema { table: "instance type table", columns: &COLUMNS, required: COLUMNS.len() };

const COLUMNS: [&str; 38] = [
    "name",
    "vcpus",
    "memory_mib",
    "arch",
    "hypervisor",
    "bare_metal",
    "current_generation",
    "burstable",
    "flex_capable",
    "cpu_manufacturer",
    "clock_mhz",
    "usage_classes",
    "enis",
    "ipv4_per_eni",
    "network_cards",
    "default_card_enis",
    "efa_interfaces",
    "trunking",
    "branch_enis",
    "network_mbps",
    "ebs_mbps",
    "ebs_optimized",
    "encryption_in_transit",
    "nvme_gb",
    "ssd_total_gb",
    "gpus",
    "gpu_name",
    "gpu_manufacturer",
    "gpu_memory_mib",
    "neuron_devices",
    "neuron_cores",
    "neuron_name",
    "accelerators",
    "accelerator_name",
    "accelerator_manufacturer",
    "nested_virtualization",
    "placement_strategies",
    "max_ebs_attachments",
];

/// Reads every line; the result is ordered by name.
pub(crate) fn parse(text: &str) -> Result<Facts, CatalogError> {
    let mut types = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    FACTS.read(text, |row| {
        let facts = instance(row)?;
        if !seen.insert(row.text(0)) {
            return Err(row.again(facts.name));
        }
        types.push(facts);
        Ok(())
    })?;
    Ok(Facts::of(types))
}

fn instance(row: &Row) -> Result<InstanceFacts, CatalogError> {
    Ok(InstanceFacts {
        name: row.name(0)?.to_owned(),
        vcpus: row.number(1)?,
        memory_mib: row.number(2)?,
        arch: architecture(row, 3)?,
        hypervisor: row.text(4).to_owned(),
        bare_metal: row.flag(5)?,
        current_generation: row.flag(6)?,
        burstable: row.flag(7)?,
        flex_capable: row.flag(8)?,
        cpu_manufacturer: row.text(9).to_owned(),
        clock_mhz: row.maybe(10)?,
        usage_classes: usage_classes(row, 11)?,
        enis: row.number(12)?,
        ipv4_per_eni: row.number(13)?,
        network_cards: row.number(14)?,
        default_card_enis: row.number(15)?,
        efa_interfaces: row.number(16)?,
        trunking: !row.text(17).is_empty() && row.flag(17)?,
        branch_enis: row.maybe(18)?,
        network_mbps: row.maybe(19)?,
        ebs_mbps: row.maybe(20)?,
        ebs_optimized: ebs_optimized(row, 21)?,
        encryption_in_transit: row.flag(22)?,
        nvme_gb: row.maybe(23)?,
        ssd_total_gb: row.maybe(24)?,
        gpus: row.number(25)?,
        gpu_name: row.text(26).to_owned(),
        gpu_manufacturer: row.text(27).to_owned(),
        gpu_memory_mib: row.maybe(28)?,
        neuron_devices: row.number(29)?,
        neuron_cores: row.number(30)?,
        neuron_name: row.text(31).to_owned(),
        accelerators: row.number(32)?,
        accelerator_name: row.text(33).to_owned(),
        accelerator_manufacturer: row.text(34).to_owned(),
        nested_virtualization: row.flag(35)?,
        placement_strategies: placement_strategies(row, 36)?,
        max_ebs_attachments: row.maybe(37)?,
        nitro_enclaves: None,
    })
}

fn architecture(row: &Row, column: usize) -> Result<Architecture, CatalogError> {
    match row.text(column) {
        "x86_64" | "i386+x86_64" => Ok(Architecture::Amd64),
        "arm64" => Ok(Architecture::Arm64),
        "x86_64_mac" | "arm64_mac" => Ok(Architecture::Mac),
        _ => Err(row.bad(column, "one of x86_64, i386+x86_64, arm64, x86_64_mac, arm64_mac")),
    }
}

fn usage_classes(row: &Row, column: usize) -> Result<UsageClasses, CatalogError> {
    let mut classes = UsageClasses::default();
    for class in row.text(column).split('+') {
        match class {
            "on-demand" => classes.on_demand = true,
            "spot" => classes.spot = true,
            "capacity-block" => classes.capacity_block = true,
            _ => return Err(row.bad(column, "a set of on-demand, spot, capacity-block joined with +")),
        }
    }
    Ok(classes)
}

fn ebs_optimized(row: &Row, column: usize) -> Result<EbsOptimized, CatalogError> {
    match row.text(column) {
        "default" => Ok(EbsOptimized::Default),
        "supported" => Ok(EbsOptimized::Supported),
        "unsupported" => Ok(EbsOptimized::Unsupported),
        _ => Err(row.bad(column, "one of default, supported, unsupported")),
    }
}

fn placement_strategies(row: &Row, column: usize) -> Result<PlacementStrategies, CatalogError> {
    let mut strategies = PlacementStrategies::default();
    for strategy in row.text(column).split('+').filter(|strategy| !strategy.is_empty()) {
        match strategy {
            "cluster" => strategies.cluster = true,
            "partition" => strategies.partition = true,
            "spread" => strategies.spread = true,
            _ => return Err(row.bad(column, "a set of cluster, partition, spread joined with +")),
        }
    }
    Ok(strategies)
}
