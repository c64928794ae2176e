//! Where the ids of published images stand in the Systems Manager parameter store, and which
//! instance types each image boots.
//!
//! Paths: <https://docs.aws.amazon.com/eks/latest/userguide/retrieve-ami-id.html>,
//! <https://github.com/bottlerocket-os/bottlerocket/blob/develop/QUICKSTART-EKS.md>.

use whittle_model::ec2_node_class::AmiRequirement;
use whittle_model::keys;

use super::{Alias, Family};

/// What kind of devices an image has drivers for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Variant {
    /// None.
    Standard,
    /// NVIDIA GPUs.
    Nvidia,
    /// Inferentia and Trainium.
    Neuron,
    /// Windows of this build.
    Windows(&'static str),
}

/// One parameter that holds an image id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageParameter {
    /// Its path.
    pub path: String,
    /// What the image has drivers for; with several, any of them will do.
    pub variants: Vec<Variant>,
    /// Whether its value changes with each release.
    pub mutable: bool,
}

impl Variant {
    /// The instance types that the image boots, but for their architecture, which the image itself tells.
    #[must_use]
    pub fn requirements(self) -> Vec<AmiRequirement> {
        match self {
            Self::Standard => {
                vec![aws("instance-accelerator-count", "DoesNotExist"), aws("instance-gpu-count", "DoesNotExist")]
            }
            Self::Nvidia => vec![aws("instance-gpu-count", "Exists")],
            Self::Neuron => vec![aws("instance-accelerator-count", "Exists")],
            Self::Windows(build) => vec![one_of(keys::OS, "windows"), one_of(keys::WINDOWS_BUILD, build)],
        }
    }

    /// [`Self::requirements`] with that of an image's architecture as EC2 spells it, `x86_64` or `arm64`.
    #[cfg(test)]
    pub(crate) fn requirements_with(self, architecture: &str) -> Vec<AmiRequirement> {
        let mut all = self.requirements();
        all.push(one_of(keys::ARCH, if architecture == "x86_64" { "amd64" } else { architecture }));
        all
    }
}

fn aws(name: &str, operator: &str) -> AmiRequirement {
    AmiRequirement { key: format!("{}{name}", keys::AWS_PREFIX), operator: operator.to_owned(), values: None }
}

fn one_of(key: &str, value: &str) -> AmiRequirement {
    AmiRequirement { key: key.to_owned(), operator: "In".to_owned(), values: Some(vec![value.to_owned()]) }
}

impl Alias {
    /// Where the ids of its images are published for a Kubernetes version such as `1.34`. Not every
    /// parameter exists for every release: those that are absent are no error as long as one exists.
    #[must_use]
    pub fn parameters(&self, kubernetes: &str) -> Vec<ImageParameter> {
        match self.family {
            Family::Al2 => self.al2(kubernetes),
            Family::Al2023 => self.al2023(kubernetes),
            Family::Bottlerocket => self.bottlerocket(kubernetes),
            Family::Windows2019 | Family::Windows2022 | Family::Windows2025 => self.windows(kubernetes),
            Family::Custom => Vec::new(),
        }
    }

    fn at(&self, path: String, variants: &[Variant]) -> ImageParameter {
        ImageParameter { path, variants: variants.to_vec(), mutable: self.is_latest() }
    }

    fn al2(&self, kubernetes: &str) -> Vec<ImageParameter> {
        [
            ("", "", &[Variant::Standard][..]),
            ("-arm64", "-arm64", &[Variant::Standard]),
            ("-gpu", "-gpu", &[Variant::Neuron, Variant::Nvidia]),
        ]
        .into_iter()
        .map(|(folder, name, variants)| {
            let release = self.release(|version| format!("amazon-eks{name}-node-{kubernetes}-{version}"));
            self.at(format!("/aws/service/eks/optimized-ami/{kubernetes}/amazon-linux-2{folder}/{release}/image_id"), variants)
        })
        .collect()
    }

    fn al2023(&self, kubernetes: &str) -> Vec<ImageParameter> {
        [
            ("x86_64", "standard", Variant::Standard),
            ("x86_64", "nvidia", Variant::Nvidia),
            ("x86_64", "neuron", Variant::Neuron),
            ("arm64", "standard", Variant::Standard),
            ("arm64", "nvidia", Variant::Nvidia),
        ]
        .into_iter()
        .map(|(arch, kind, variant)| {
            let release = self.release(|version| format!("amazon-eks-node-al2023-{arch}-{kind}-{kubernetes}-{version}"));
            self.at(format!("/aws/service/eks/optimized-ami/{kubernetes}/amazon-linux-2023/{arch}/{kind}/{release}/image_id"), &[variant])
        })
        .collect()
    }

    fn bottlerocket(&self, kubernetes: &str) -> Vec<ImageParameter> {
        // Releases are named with a v, parameters without.
        let version = self.version.trim_start_matches('v');
        [
            ("", "x86_64", &[Variant::Standard, Variant::Neuron][..]),
            ("", "arm64", &[Variant::Standard]),
            ("-nvidia", "x86_64", &[Variant::Nvidia]),
            ("-nvidia", "arm64", &[Variant::Nvidia]),
        ]
        .into_iter()
        .map(|(kind, arch, variants)| {
            self.at(format!("/aws/service/bottlerocket/aws-k8s-{kubernetes}{kind}/{arch}/{version}/image_id"), variants)
        })
        .collect()
    }

    fn windows(&self, kubernetes: &str) -> Vec<ImageParameter> {
        let found = self.family.windows().map(|(year, build)| {
            let path = format!("/aws/service/ami-windows-latest/Windows_Server-{year}-English-Core-EKS_Optimized-{kubernetes}/image_id");
            self.at(path, &[Variant::Windows(build)])
        });
        found.into_iter().collect()
    }

    fn release(&self, name: impl Fn(&str) -> String) -> String {
        if self.is_latest() { "recommended".to_owned() } else { name(&self.version) }
    }
}

#[cfg(test)]
#[path = "../../tests_unit/image_parameter.rs"]
mod tests;
