//! What kubelet, the system and eviction keep from pods.

use std::collections::BTreeMap;

use whittle_model::resources::{CPU, EPHEMERAL_STORAGE, MEMORY, PODS};
use whittle_model::{Quantity, Resources};

use crate::capacity::{MIB, eni_limited_pods};
use crate::{CatalogError, CatalogOptions, InstanceFacts, Kubelet};

const GIB: i64 = 1 << 30;
/// Percentages are kept in thousandths of a percent.
const WHOLE: i64 = 100_000;

/// Thousandths of a core that kubelet keeps: 6 % of the first core, 1 % of the second, 0.5 % of the
/// third and fourth, 0.25 % of the others, each share rounded down.
///
/// Source: the bootstrap script of the Amazon EKS images, after GKE's formula.
#[must_use]
pub fn kube_reserved_cpu(vcpus: u32) -> i64 {
    let total = i64::from(vcpus) * 1000;
    let share = |from: i64, to: i64, per_ten_thousand: i64| (total.min(to) - from).max(0) * per_ten_thousand / 10_000;
    share(0, 1000, 600) + share(1000, 2000, 100) + share(2000, 4000, 50) + share(4000, i64::MAX, 25)
}

/// The kubelet settings of a NodeClass, parsed once for all its types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overhead {
    kube: BTreeMap<&'static str, i64>,
    system: BTreeMap<&'static str, i64>,
    memory_eviction: Option<Threshold>,
    storage_eviction: Option<Threshold>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Threshold {
    Amount(i64),
    /// Thousandths of a percent.
    Share(i64),
}

impl Threshold {
    fn of(self, capacity: i64) -> i64 {
        match self {
            Self::Amount(amount) => amount,
            // All of it reads as "never evict".
            Self::Share(WHOLE) => 0,
            Self::Share(share) => {
                let product = i128::from(capacity) * i128::from(share) + i128::from(WHOLE - 1);
                i64::try_from(product / i128::from(WHOLE)).unwrap_or(capacity)
            }
        }
    }
}

impl Overhead {
    /// Reads the settings.
    ///
    /// # Errors
    /// When a key is not one of kubelet's or a value is no quantity (or percentage).
    pub fn new(kubelet: &Kubelet) -> Result<Self, CatalogError> {
        let mut thresholds = evictions(&kubelet.eviction_hard)?;
        Ok(Self {
            kube: reserved("kubeReserved", &kubelet.kube_reserved)?,
            system: reserved("systemReserved", &kubelet.system_reserved)?,
            memory_eviction: thresholds.remove("memory.available"),
            storage_eviction: thresholds.remove("nodefs.available"),
        })
    }

    /// What pods can use of `capacity`; never below zero.
    #[must_use]
    pub fn allocatable(&self, facts: &InstanceFacts, options: &CatalogOptions, capacity: &Resources) -> Resources {
        let mut left = capacity.clone();
        let pods = if options.family.reserves_for_eni_pods() {
            eni_limited_pods(facts, options.efa_only_on_default_card())
        } else {
            capacity.get(PODS)
        };
        let memory_eviction = self.memory_eviction.unwrap_or(Threshold::Amount(100 * MIB)).of(capacity.get(MEMORY));
        let storage_eviction = self.storage_eviction.unwrap_or(Threshold::Share(WHOLE / 10)).of(capacity.get(EPHEMERAL_STORAGE));
        for (resource, kube_reserved, eviction) in [
            (CPU, kube_reserved_cpu(facts.vcpus), 0),
            (MEMORY, (11 * pods + 255) * MIB, memory_eviction),
            (EPHEMERAL_STORAGE, GIB, storage_eviction),
        ] {
            let kube = self.kube.get(resource).copied().unwrap_or(kube_reserved);
            let system = self.system.get(resource).copied().unwrap_or(0);
            let kept = kube.saturating_add(system).saturating_add(eviction);
            left.set(resource, capacity.get(resource).saturating_sub(kept).max(0));
        }
        left
    }
}

fn wrong(field: &'static str, key: &str, value: &str, why: impl std::fmt::Display) -> CatalogError {
    CatalogError::Kubelet { field, key: key.to_owned(), value: value.to_owned(), why: why.to_string() }
}

/// Amounts by resource. `pid` is a legal key, but no resource of pods.
fn reserved(field: &'static str, given: &BTreeMap<String, String>) -> Result<BTreeMap<&'static str, i64>, CatalogError> {
    let mut amounts = BTreeMap::new();
    for (key, value) in given {
        let resource = match key.as_str() {
            "pid" => None,
            other => Some(
                [CPU, MEMORY, EPHEMERAL_STORAGE]
                    .into_iter()
                    .find(|known| *known == other)
                    .ok_or_else(|| wrong(field, key, value, "the key must be cpu, memory, ephemeral-storage or pid"))?,
            ),
        };
        let quantity = quantity(field, key, value)?;
        if let Some(resource) = resource {
            amounts.insert(resource, Resources::amount(resource, quantity));
        }
    }
    Ok(amounts)
}

fn quantity(field: &'static str, key: &str, value: &str) -> Result<Quantity, CatalogError> {
    let quantity = Quantity::parse(value).map_err(|error| wrong(field, key, value, error))?;
    if quantity.is_negative() {
        return Err(wrong(field, key, value, "the amount must not be below zero"));
    }
    Ok(quantity)
}

const SIGNALS: [&str; 6] =
    ["memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree", "pid.available"];

fn evictions(given: &BTreeMap<String, String>) -> Result<BTreeMap<&str, Threshold>, CatalogError> {
    const FIELD: &str = "evictionHard";
    let mut thresholds = BTreeMap::new();
    for (key, value) in given {
        if !SIGNALS.contains(&key.as_str()) {
            return Err(wrong(FIELD, key, value, format!("the signal must be one of {}", SIGNALS.join(", "))));
        }
        let threshold = match value.strip_suffix('%') {
            None => Threshold::Amount(quantity(FIELD, key, value)?.units_ceil()),
            Some(percent) => {
                let share = quantity(FIELD, key, percent)?.milli_ceil();
                if share > WHOLE {
                    return Err(wrong(FIELD, key, value, "a percentage must lie between 0% and 100%"));
                }
                Threshold::Share(share)
            }
        };
        thresholds.insert(key.as_str(), threshold);
    }
    Ok(thresholds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kube_reserved_cpu_follows_the_published_table() {
        for (vcpus, millis) in [(0, 0), (1, 60), (2, 70), (3, 75), (4, 80), (8, 90), (16, 110), (64, 230), (96, 310), (192, 550)] {
            assert_eq!(kube_reserved_cpu(vcpus), millis, "{vcpus}");
        }
    }

    #[test]
    fn thresholds_round_up_and_all_means_never() {
        for (threshold, capacity, expected) in [
            (Threshold::Amount(7), 100, 7),
            (Threshold::Share(10_000), 101, 11),
            (Threshold::Share(7_500), 1000, 75),
            (Threshold::Share(1), 1, 1),
            (Threshold::Share(WHOLE), 100, 0),
            (Threshold::Share(0), 100, 0),
        ] {
            assert_eq!(threshold.of(capacity), expected, "{threshold:?} of {capacity}");
        }
    }
}
