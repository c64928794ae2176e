//! User data: what an instance reads at its first boot to become a node of the cluster. The user's
//! own parts come first and ours last, so that ours win where both speak.
//!
//! What must not enter: which labels and taints a node should have, AWS types.

mod bottlerocket;
mod kubelet;
mod mime;
mod node_config;
mod power_shell;
mod settings;
mod shell;

use std::collections::BTreeMap;
use std::net::IpAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use whittle_model::{Effect, Labels, Taint, keys};

pub use bottlerocket::bottlerocket_version;
pub use kubelet::{resolve_kubelet, unapplied_kubelet_fields};

use super::{Family, ImageError};

/// The most user data that EC2 takes, in bytes before base64.
/// <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/user-data.html>
pub const LIMIT: usize = 16_384;
/// Where a person should be warned: nine tenths of it.
const NEAR: usize = LIMIT / 10 * 9;

/// The version of IP that pods have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IpFamily {
    /// IPv4.
    #[default]
    V4,
    /// IPv6.
    V6,
}

/// What a node has to know of the cluster it joins.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClusterFacts {
    /// Its name.
    pub name: String,
    /// Address of its API server, `https://…`.
    pub endpoint: String,
    /// The API server's certificate bundle, base64 of PEM.
    pub ca_bundle: Option<String>,
    /// Address of the cluster's DNS service.
    pub dns_ip: Option<IpAddr>,
    /// Range of service addresses; AL2023 needs it.
    pub service_cidr: Option<String>,
    /// Its region.
    pub region: String,
}

impl ClusterFacts {
    /// The version of IP that pods have: that of the DNS service, IPv4 when it is not known.
    #[must_use]
    pub fn ip_family(&self) -> IpFamily {
        match self.dns_ip {
            Some(IpAddr::V6(_)) => IpFamily::V6,
            Some(IpAddr::V4(_)) | None => IpFamily::V4,
        }
    }
}

/// What a node boots with.
#[derive(Debug, Clone, Copy)]
pub struct Boot<'a> {
    /// The cluster it joins.
    pub cluster: &'a ClusterFacts,
    /// Fields of the kubelet's configuration, as [`resolve_kubelet`] leaves them.
    pub kubelet: &'a BTreeMap<String, serde_json::Value>,
    /// Labels of the node. Those that a kubelet may not set itself are left to registration.
    pub labels: &'a Labels,
    /// Taints that stay.
    pub taints: &'a [Taint],
    /// Taints that something removes while the node starts.
    pub startup_taints: &'a [Taint],
    /// Whether the instance's own disks are joined for pods' local storage.
    pub raid0: bool,
    /// The user's own user data.
    pub user_data: Option<&'a str>,
    /// Release of the image; only Bottlerocket's matters.
    pub image_version: Option<&'a str>,
}

impl Boot<'_> {
    /// All taints that the node registers with, each once, in a fixed order.
    fn all_taints(&self) -> Vec<Taint> {
        let mut all: Vec<Taint> = self.taints.iter().chain(self.startup_taints).cloned().collect();
        let unregistered = Taint::new(keys::UNREGISTERED_TAINT, "", Effect::NoExecute);
        if !all.iter().any(|taint| taint.key == unregistered.key && taint.effect == unregistered.effect) {
            all.push(unregistered);
        }
        all.sort();
        all.dedup();
        all
    }

    /// The labels that the kubelet may set on its own node.
    fn own_labels(&self) -> impl Iterator<Item = (&str, &str)> {
        self.labels.iter().filter(|(key, _)| kubelet_may_set(key)).map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// The user's own user data, if there is any.
    fn own_user_data(&self) -> Option<&str> {
        self.user_data.filter(|text| !text.is_empty())
    }
}

/// User data, ready for EC2.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UserData {
    /// As the instance reads it.
    pub text: String,
    /// Keys of the user's own user data that were left out, because the image does not know them.
    pub left_out: Vec<String>,
}

impl UserData {
    /// As EC2 takes it.
    #[must_use]
    pub fn base64(&self) -> String {
        STANDARD.encode(&self.text)
    }

    /// Whether there is so much of it that its writer should be warned.
    #[must_use]
    pub fn near_limit(&self) -> bool {
        self.text.len() >= NEAR
    }
}

/// Writes the user data of a node of this family.
///
/// # Errors
/// When the user's own part cannot be read, a kubelet field has the wrong shape, the cluster is not
/// known well enough, or there is more than EC2 takes.
pub fn render(family: Family, boot: &Boot<'_>) -> Result<UserData, ImageError> {
    let plain = |text| UserData { text, left_out: Vec::new() };
    let made = match family {
        Family::Al2 => plain(shell::render(boot)?),
        Family::Al2023 => plain(node_config::render(boot)?),
        Family::Bottlerocket => bottlerocket::render(boot)?,
        Family::Custom => plain(boot.own_user_data().unwrap_or_default().to_owned()),
        Family::Windows2019 | Family::Windows2022 | Family::Windows2025 => plain(power_shell::render(boot)?),
    };
    if made.text.len() > LIMIT {
        return Err(ImageError::TooLarge { bytes: made.text.len() });
    }
    Ok(made)
}

/// Whether the kubelet may set this label on its own node. The API server's NodeRestriction refuses
/// most labels of Kubernetes' own domains, and a refused label keeps a node from joining; all of
/// them are left to registration.
/// <https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#noderestriction>
#[must_use]
pub fn kubelet_may_set(label: &str) -> bool {
    let Some((domain, _)) = label.split_once('/') else { return true };
    !["kubernetes.io", "k8s.io"].iter().any(|of| domain == *of || domain.strip_suffix(of).is_some_and(|rest| rest.ends_with('.')))
}

/// `--node-labels="a=b,c=d"`, if there is a label.
fn labels_flag(boot: &Boot<'_>) -> Option<String> {
    let pairs: Vec<String> = boot.own_labels().map(|(key, value)| format!("{key}={value}")).collect();
    (!pairs.is_empty()).then(|| flag("node-labels", &pairs.join(",")))
}

/// `--name="value"`: the quotes are taken off by what reads the kubelet's environment file.
fn flag(name: &str, value: &str) -> String {
    format!("--{name}=\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
#[path = "../../../tests_unit/image_user_data.rs"]
mod tests;
