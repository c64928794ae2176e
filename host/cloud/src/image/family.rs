//! Families of machine images: what is the same for every image of one.
//!
//! What must not enter: how user data is written, where image ids are published.

use std::fmt;
use std::str::FromStr;

use whittle_model::ec2_node_class::{BlockDevice, BlockDeviceMapping, Ec2NodeClassSpec};

use super::ImageError;

/// How an image boots and what it reads its settings from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// Amazon Linux 2, `bootstrap.sh`.
    Al2,
    /// Amazon Linux 2023, `nodeadm`.
    Al2023,
    /// Bottlerocket, TOML settings.
    Bottlerocket,
    /// The user's own.
    Custom,
    /// Windows Server 2019 Core.
    Windows2019,
    /// Windows Server 2022 Core.
    Windows2022,
    /// Windows Server 2025 Core.
    Windows2025,
}

/// What planning has to know of a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FamilyTraits {
    /// Memory kept for the kubelet follows the pods that network interfaces allow, not `maxPods`.
    pub eni_limited_memory_overhead: bool,
    /// `podsPerCore` is obeyed.
    pub pods_per_core: bool,
    /// Pods are limited by the network interfaces' addresses where `maxPods` is not set.
    pub eni_limited_pod_density: bool,
    /// Every field of `kubelet` reaches the node.
    pub any_kubelet_field: bool,
}

/// A reference to published images, `family@version`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alias {
    /// Never [`Family::Custom`].
    pub family: Family,
    /// A release such as `v20250801`, or `latest`.
    pub version: String,
}

/// The version of an alias that moves with each release.
const LATEST: &str = "latest";

impl Family {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Al2, Self::Al2023, Self::Bottlerocket, Self::Custom, Self::Windows2019, Self::Windows2022, Self::Windows2025];

    /// As `amiFamily` spells it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Al2 => "AL2",
            Self::Al2023 => "AL2023",
            Self::Bottlerocket => "Bottlerocket",
            Self::Custom => "Custom",
            Self::Windows2019 => "Windows2019",
            Self::Windows2022 => "Windows2022",
            Self::Windows2025 => "Windows2025",
        }
    }

    /// The family of a class: `amiFamily`, or that of its alias, or Custom.
    ///
    /// # Errors
    /// When `amiFamily` is no family, or the alias is malformed.
    pub fn of(class: &Ec2NodeClassSpec) -> Result<Self, ImageError> {
        match &class.ami_family {
            Some(name) => name.parse(),
            None => Ok(Alias::of(class)?.map_or(Self::Custom, |alias| alias.family)),
        }
    }

    /// What planning has to know of it.
    #[must_use]
    pub const fn traits(self) -> FamilyTraits {
        let linux = FamilyTraits {
            eni_limited_memory_overhead: true,
            pods_per_core: true,
            eni_limited_pod_density: true,
            any_kubelet_field: false,
        };
        match self {
            Self::Al2 | Self::Custom => linux,
            Self::Al2023 => FamilyTraits { any_kubelet_field: true, ..linux },
            Self::Bottlerocket => FamilyTraits { eni_limited_memory_overhead: false, pods_per_core: false, ..linux },
            Self::Windows2019 | Self::Windows2022 | Self::Windows2025 => {
                FamilyTraits { eni_limited_memory_overhead: false, eni_limited_pod_density: false, ..linux }
            }
        }
    }

    /// The device that pods' local storage is on; not known for Custom.
    #[must_use]
    pub const fn ephemeral_device(self) -> Option<&'static str> {
        match self {
            Self::Al2 | Self::Al2023 => Some("/dev/xvda"),
            Self::Bottlerocket => Some("/dev/xvdb"),
            Self::Windows2019 | Self::Windows2022 | Self::Windows2025 => Some("/dev/sda1"),
            Self::Custom => None,
        }
    }

    /// The disks of an instance whose class names none. For Custom they are the image's own.
    #[must_use]
    pub fn default_block_devices(self) -> Vec<BlockDeviceMapping> {
        match self {
            Self::Al2 | Self::Al2023 => vec![disk("/dev/xvda", "20Gi")],
            Self::Bottlerocket => vec![disk("/dev/xvda", "4Gi"), disk("/dev/xvdb", "20Gi")],
            Self::Windows2019 | Self::Windows2022 | Self::Windows2025 => vec![disk("/dev/sda1", "50Gi")],
            Self::Custom => Vec::new(),
        }
    }

    /// Windows Server's year and build, for the families that are Windows.
    #[must_use]
    pub const fn windows(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Windows2019 => Some(("2019", "10.0.17763")),
            Self::Windows2022 => Some(("2022", "10.0.20348")),
            Self::Windows2025 => Some(("2025", "10.0.26100")),
            Self::Al2 | Self::Al2023 | Self::Bottlerocket | Self::Custom => None,
        }
    }
}

impl FromStr for Family {
    type Err = ImageError;

    fn from_str(name: &str) -> Result<Self, ImageError> {
        Self::ALL.into_iter().find(|family| family.name() == name).ok_or_else(|| ImageError::Family(name.to_owned()))
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

fn disk(device: &str, size: &str) -> BlockDeviceMapping {
    let ebs = BlockDevice {
        encrypted: Some(true),
        volume_type: Some("gp3".to_owned()),
        volume_size: Some(size.to_owned()),
        ..BlockDevice::default()
    };
    BlockDeviceMapping { device_name: Some(device.to_owned()), ebs: Some(ebs), root_volume: None }
}

impl Alias {
    /// The alias of a class, if it selects its images by one.
    ///
    /// # Errors
    /// When it is malformed.
    pub fn of(class: &Ec2NodeClassSpec) -> Result<Option<Self>, ImageError> {
        class.ami_selector_terms.iter().find_map(|term| term.alias.as_deref()).map(str::parse).transpose()
    }

    /// Whether the images behind it change with each release.
    #[must_use]
    pub fn is_latest(&self) -> bool {
        self.version == LATEST
    }

    /// Whether there are images for Kubernetes 1.`minor`.
    ///
    /// # Errors
    /// When there are none, saying which versions have some.
    pub fn check(&self, minor: u32) -> Result<(), ImageError> {
        let why = match self.family {
            Family::Al2 if minor >= 33 => "the last version with images is 1.32, use al2023 or bottlerocket",
            Family::Windows2025 if minor < 35 => "the first version with images is 1.35, use windows2022",
            Family::Al2
            | Family::Al2023
            | Family::Bottlerocket
            | Family::Custom
            | Family::Windows2019
            | Family::Windows2022
            | Family::Windows2025 => return Ok(()),
        };
        Err(ImageError::Unsupported { family: self.family.name(), minor, why })
    }
}

impl FromStr for Alias {
    type Err = ImageError;

    fn from_str(alias: &str) -> Result<Self, ImageError> {
        let wrong = |why: &str| ImageError::Alias { alias: alias.to_owned(), why: why.to_owned() };
        let (name, version) = alias
            .split_once('@')
            .filter(|(name, version)| !name.is_empty() && !version.is_empty() && !version.contains('@'))
            .ok_or_else(|| wrong("it must be family@version, such as al2023@latest"))?;
        let family = Family::ALL
            .into_iter()
            .filter(|family| *family != Family::Custom)
            .find(|family| family.name().to_lowercase() == name)
            .ok_or_else(|| wrong("no images are published for this family, use al2, al2023, bottlerocket or windows2019, 2022, 2025"))?;
        if family.windows().is_some() && version != LATEST {
            return Err(wrong("only the latest images of Windows are published, use @latest"));
        }
        Ok(Self { family, version: version.to_owned() })
    }
}

impl fmt::Display for Alias {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.family.name().to_lowercase(), self.version)
    }
}

#[cfg(test)]
#[path = "../../tests_unit/image_family.rs"]
mod tests;
