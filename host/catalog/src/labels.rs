//! The labels a node gets from its instance type, and the requirements that say which it lacks.

use std::collections::BTreeMap;
use std::sync::Arc;

use whittle_model::{Labels, Requirement, Requirements, keys};

use crate::InstanceFacts;
use crate::facts::EbsOptimized;

/// A key behind the prefix of the labels that AWS instance types define.
macro_rules! aws {
    ($name:literal) => {
        concat!("karpenter.k8s.aws/", $name)
    };
}

/// The AWS labels of an instance type and its region.
///
/// Categories and generations come from the name: letters, then for the first high-memory types a
/// size in terabytes, then the generation. Names of makers and devices are lower-kebab.
#[must_use]
pub fn labels(facts: &InstanceFacts, region: &str) -> Labels {
    let [accelerator_count, accelerator_maker, accelerator_name] = accelerator(facts);
    let [gpu_count, gpu_maker, gpu_memory, gpu_name] = gpu(facts);
    let (category, generation) = category_and_generation(&facts.name).unzip();
    // Bandwidth that must be asked for and paid is not promised.
    let ebs = facts.ebs_mbps.filter(|_| facts.ebs_optimized == EbsOptimized::Default);
    // In the order of keys, which makes the map in one go.
    let all = [
        (aws!("instance-accelerator-count"), accelerator_count),
        (aws!("instance-accelerator-manufacturer"), accelerator_maker),
        (aws!("instance-accelerator-name"), accelerator_name),
        (aws!("instance-capability-flex"), Some(truth(facts.family().contains("-flex")))),
        (aws!("instance-category"), category.map(str::to_owned)),
        (aws!("instance-cpu"), Some(facts.vcpus.to_string())),
        (aws!("instance-cpu-manufacturer"), Some(kebab(&facts.cpu_manufacturer))),
        // Karpenter writes an unknown clock as 0, and pools may count on `Lt` finding a number.
        (aws!("instance-cpu-sustained-clock-speed-mhz"), Some(facts.clock_mhz.unwrap_or(0).to_string())),
        (aws!("instance-ebs-bandwidth"), number(ebs)),
        (aws!("instance-encryption-in-transit-supported"), Some(truth(facts.encryption_in_transit))),
        (aws!("instance-family"), Some(facts.family().to_owned())),
        (aws!("instance-generation"), generation.map(str::to_owned)),
        (aws!("instance-gpu-count"), gpu_count),
        (aws!("instance-gpu-manufacturer"), gpu_maker),
        (aws!("instance-gpu-memory"), gpu_memory),
        (aws!("instance-gpu-name"), gpu_name),
        (aws!("instance-hypervisor"), Some(facts.hypervisor.clone())),
        (aws!("instance-local-nvme"), number(facts.nvme_gb)),
        (aws!("instance-memory"), Some(facts.memory_mib.to_string())),
        (aws!("instance-network-bandwidth"), number(facts.network_mbps)),
        (aws!("instance-size"), Some(facts.size().to_owned())),
        (aws!("nitro-sandbox"), facts.nitro_enclaves.map(truth)),
        (keys::ARCH, facts.arch.label().map(str::to_owned)),
        (keys::OS, Some("linux".to_owned())),
        (keys::INSTANCE_TYPE, Some(facts.name.clone())),
        (keys::REGION, Some(region.to_owned())),
    ];
    all.into_iter().filter_map(|(key, value)| value.filter(|v| !v.is_empty()).map(|v| (key.to_owned(), v))).collect()
}

/// Count, maker and name. A Neuron device stands before an inference accelerator, which is often
/// the same thing told twice.
fn accelerator(facts: &InstanceFacts) -> [Option<String>; 3] {
    if facts.neuron_devices > 0 {
        [Some(facts.neuron_devices.to_string()), Some("aws".to_owned()), Some(kebab(&facts.neuron_name))]
    } else if facts.accelerators > 0 {
        [Some(facts.accelerators.to_string()), Some(kebab(&facts.accelerator_manufacturer)), Some(kebab(&facts.accelerator_name))]
    } else {
        [None, None, None]
    }
}

/// Count, maker, memory and name. Types with a share of one GPU name it and count none.
fn gpu(facts: &InstanceFacts) -> [Option<String>; 4] {
    if facts.gpu_name.is_empty() {
        return [None, None, None, None];
    }
    [Some(facts.gpus.to_string()), Some(kebab(&facts.gpu_manufacturer)), number(facts.gpu_memory_mib), Some(kebab(&facts.gpu_name))]
}

const TENANCY: &str = aws!("instance-tenancy");

/// Makes what else is known of types' labels, and keeps it: few sets of labels are absent together.
#[derive(Debug, Clone)]
pub struct Absences {
    /// The labels that a type may lack, in order.
    keys: Vec<String>,
    /// By bits: which of them are absent.
    made: BTreeMap<u64, Arc<Requirements>>,
}

impl Default for Absences {
    fn default() -> Self {
        let mut keys: Vec<String> = keys::AWS_WELL_KNOWN.iter().map(|name| format!("{}{name}", keys::AWS_PREFIX)).collect();
        keys.push(keys::WINDOWS_BUILD.to_owned());
        keys.retain(|key| key != TENANCY);
        keys.sort();
        Self { keys, made: BTreeMap::new() }
    }
}

impl Absences {
    /// Tenancy is chosen at launch, and every well-known AWS label that is not among `labels` does
    /// not exist, so that `Exists` chooses types that have it.
    #[must_use]
    pub fn requirements(&mut self, labels: &Labels) -> Arc<Requirements> {
        let mut carried = labels.keys().peekable();
        let mut absent = 0u64;
        for (at, key) in self.keys.iter().enumerate() {
            while carried.next_if(|other| *other < key).is_some() {}
            if carried.peek() != Some(&key) {
                absent |= 1 << at;
            }
        }
        let make = || {
            let absent = self.keys.iter().enumerate().filter(|(at, _)| absent >> at & 1 == 1);
            let absent = absent.map(|(_, key)| Requirement::absent(key));
            Arc::new(absent.chain([Requirement::any_of(TENANCY, &["default", "dedicated"])]).collect())
        };
        Arc::clone(self.made.entry(absent).or_insert_with(make))
    }
}

fn truth(value: bool) -> String {
    if value { "true".to_owned() } else { "false".to_owned() }
}

fn number(value: Option<u64>) -> Option<String> {
    value.map(|n| n.to_string())
}

fn kebab(name: &str) -> String {
    name.chars().map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

/// `("m", "7")` of `m7i.large`, `("u", "1")` of `u-6tb1.56xlarge`; `None` of names of other forms.
fn category_and_generation(name: &str) -> Option<(&str, &str)> {
    let (family, _) = name.rsplit_once('.')?;
    let letters = run(family, |b| b.is_ascii_lowercase());
    let (category, rest) = family.split_at(letters);
    let rest = terabytes(rest).unwrap_or(rest);
    let digits = run(rest, |b| b.is_ascii_digit());
    (letters > 0 && digits > 0).then(|| (category, &rest[..digits]))
}

/// What follows `-<number>tb`, if that is how `text` starts.
fn terabytes(text: &str) -> Option<&str> {
    let number = text.strip_prefix('-')?;
    let digits = run(number, |b| b.is_ascii_digit());
    if digits == 0 { None } else { number[digits..].strip_prefix("tb") }
}

fn run(text: &str, belongs: impl Fn(u8) -> bool) -> usize {
    text.bytes().position(|b| !belongs(b)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_category_and_generation() {
        for (name, expected) in [
            ("m7i.large", Some(("m", "7"))),
            ("m7i-flex.large", Some(("m", "7"))),
            ("im4gn.large", Some(("im", "4"))),
            ("u-6tb1.56xlarge", Some(("u", "1"))),
            ("u7in-16tb.224xlarge", Some(("u", "7"))),
            ("hpc6a.48xlarge", Some(("hpc", "6"))),
            ("c5.metal", Some(("c", "5"))),
            ("m10x.large", Some(("m", "10"))),
            ("mac-m4.metal", None),
            ("nonsense", None),
        ] {
            assert_eq!(category_and_generation(name), expected, "{name}");
        }
    }

    #[test]
    fn absent_labels_are_required_to_be_absent() {
        let facts = crate::Facts::builtin();
        let labels = labels(facts.get("m7i.metal-24xl").unwrap(), "us-east-1");
        let requirements = Absences::default().requirements(&labels);
        let asks = |key: &str| requirements.get(key).map(ToString::to_string);
        assert_eq!(asks("karpenter.k8s.aws/instance-gpu-count").as_deref(), Some("karpenter.k8s.aws/instance-gpu-count DoesNotExist"));
        assert_eq!(asks("karpenter.k8s.aws/instance-hypervisor").as_deref(), Some("karpenter.k8s.aws/instance-hypervisor DoesNotExist"));
        assert_eq!(
            asks("karpenter.k8s.aws/instance-tenancy").as_deref(),
            Some("karpenter.k8s.aws/instance-tenancy In [dedicated, default]")
        );
        assert_eq!(asks("karpenter.k8s.aws/instance-cpu"), None);
        assert_eq!(asks(keys::ZONE), None);
    }
}
