//! The fields of a class's `kubelet` that families without a configuration file of their own turn
//! into flags and settings.
//!
//! What must not enter: defaults, expressions, whether the values make sense.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Boot, flag, labels_flag};
use crate::image::{Family, ImageError};

type Fields = BTreeMap<String, Value>;
type Texts = BTreeMap<String, String>;

/// The fields that every family but Custom applies.
const APPLIED: [&str; 12] = [
    "clusterDNS",
    "cpuCFSQuota",
    "evictionHard",
    "evictionMaxPodGracePeriod",
    "evictionSoft",
    "evictionSoftGracePeriod",
    "imageGCHighThresholdPercent",
    "imageGCLowThresholdPercent",
    "kubeReserved",
    "maxPods",
    "podsPerCore",
    "systemReserved",
];

/// [`APPLIED`], read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Kubelet {
    pub cluster_dns: Option<Vec<String>>,
    pub max_pods: Option<i32>,
    pub pods_per_core: Option<i32>,
    pub system_reserved: Option<Texts>,
    pub kube_reserved: Option<Texts>,
    pub eviction_hard: Option<Texts>,
    pub eviction_soft: Option<Texts>,
    pub eviction_soft_grace_period: Option<Texts>,
    pub eviction_max_pod_grace_period: Option<i32>,
    pub image_gc_high_threshold_percent: Option<i32>,
    pub image_gc_low_threshold_percent: Option<i32>,
    pub cpu_cfs_quota: Option<bool>,
}

impl Kubelet {
    pub(super) fn read(fields: &Fields) -> Result<Self, ImageError> {
        Ok(Self {
            cluster_dns: field(fields, "clusterDNS")?,
            max_pods: field(fields, "maxPods")?,
            pods_per_core: field(fields, "podsPerCore")?,
            system_reserved: field(fields, "systemReserved")?,
            kube_reserved: field(fields, "kubeReserved")?,
            eviction_hard: field(fields, "evictionHard")?,
            eviction_soft: field(fields, "evictionSoft")?,
            eviction_soft_grace_period: field(fields, "evictionSoftGracePeriod")?,
            eviction_max_pod_grace_period: field(fields, "evictionMaxPodGracePeriod")?,
            image_gc_high_threshold_percent: field(fields, "imageGCHighThresholdPercent")?,
            image_gc_low_threshold_percent: field(fields, "imageGCLowThresholdPercent")?,
            cpu_cfs_quota: field(fields, "cpuCFSQuota")?,
        })
    }

    /// The address of the DNS service, if one is named.
    pub(super) fn dns(&self) -> Option<&str> {
        self.cluster_dns.as_ref()?.first().map(String::as_str)
    }
}

fn field<T: DeserializeOwned>(fields: &Fields, name: &'static str) -> Result<Option<T>, ImageError> {
    let Some(value) = fields.get(name) else { return Ok(None) };
    Option::<T>::deserialize(value).map_err(|error| ImageError::Kubelet { field: name, why: error.to_string() })
}

/// All flags of a node's kubelet: labels, taints, then the fields that are set.
pub(super) fn flags(boot: &Boot<'_>, kubelet: &Kubelet) -> Vec<String> {
    let taints: Vec<String> = boot.all_taints().iter().map(ToString::to_string).collect();
    let number = |name: &str, value: Option<i32>| value.map(|value| format!("--{name}={value}"));
    let list = |name: &str, values: &Option<Texts>, between: &str| {
        let pairs: Vec<String> = values.iter().flatten().map(|(key, value)| format!("{key}{between}{value}")).collect();
        (!pairs.is_empty()).then(|| flag(name, &pairs.join(",")))
    };
    [
        labels_flag(boot),
        Some(flag("register-with-taints", &taints.join(","))),
        number("max-pods", kubelet.max_pods),
        number("pods-per-core", kubelet.pods_per_core),
        list("system-reserved", &kubelet.system_reserved, "="),
        list("kube-reserved", &kubelet.kube_reserved, "="),
        list("eviction-hard", &kubelet.eviction_hard, "<"),
        list("eviction-soft", &kubelet.eviction_soft, "<"),
        list("eviction-soft-grace-period", &kubelet.eviction_soft_grace_period, "="),
        number("eviction-max-pod-grace-period", kubelet.eviction_max_pod_grace_period),
        number("image-gc-high-threshold", kubelet.image_gc_high_threshold_percent),
        number("image-gc-low-threshold", kubelet.image_gc_low_threshold_percent),
        kubelet.cpu_cfs_quota.map(|value| format!("--cpu-cfs-quota={value}")),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The kubelet fields of a class for nodes that take `max_pods` pods: a `maxPods` that is no number
/// becomes this number, and an absent `clusterDNS` the cluster's.
#[must_use]
pub fn resolve_kubelet(class: Option<&Fields>, max_pods: u32, dns: Option<IpAddr>) -> Fields {
    let mut fields = class.cloned().unwrap_or_default();
    if !fields.get("maxPods").is_some_and(Value::is_number) {
        fields.insert("maxPods".to_owned(), max_pods.into());
    }
    let named = fields.get("clusterDNS").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    if let (false, Some(address)) = (named, dns) {
        fields.insert("clusterDNS".to_owned(), Value::from(vec![address.to_string()]));
    }
    fields
}

/// The kubelet fields that nodes of this family would silently not get.
#[must_use]
pub fn unapplied_kubelet_fields(family: Family, fields: &Fields) -> Vec<&str> {
    let traits = family.traits();
    // A Custom image is configured by its owner alone, who may well read the class.
    if traits.any_kubelet_field || family == Family::Custom {
        return Vec::new();
    }
    let applied = |name: &str| APPLIED.contains(&name) && (traits.pods_per_core || name != "podsPerCore");
    fields.keys().map(String::as_str).filter(|name| !applied(name)).collect()
}
