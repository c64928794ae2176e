//! User data of Amazon Linux 2: a call of `bootstrap.sh`.
//!
//! Its options: <https://github.com/awslabs/amazon-eks-ami/blob/al2/files/bootstrap.sh>. What must
//! not enter: other families' user data.

use std::net::IpAddr;

use super::kubelet::{Kubelet, flags};
use super::{Boot, mime};
use crate::image::ImageError;

pub(super) fn render(boot: &Boot<'_>) -> Result<String, ImageError> {
    let mut parts = match boot.own_user_data() {
        None => Vec::new(),
        Some(text) if mime::is_archive(text) => mime::parse(text)?,
        Some(text) => vec![mime::Part::new(mime::SHELL, text)],
    };
    parts.push(mime::Part::new(mime::SHELL, &script(boot)?));
    Ok(mime::write(&parts))
}

fn script(boot: &Boot<'_>) -> Result<String, ImageError> {
    let kubelet = Kubelet::read(boot.kubelet)?;
    let cluster = boot.cluster;
    let mut call = vec![format!("/etc/eks/bootstrap.sh {}", quote(&cluster.name))];
    // bootstrap.sh does not understand --option=value.
    call.push(format!("--apiserver-endpoint {}", quote(&cluster.endpoint)));
    if let Some(bundle) = &cluster.ca_bundle {
        call.push(format!("--b64-cluster-ca {}", quote(bundle)));
    }
    if let Some(dns) = kubelet.dns() {
        if matches!(dns.parse(), Ok(IpAddr::V6(_))) {
            call.push("--ip-family ipv6".to_owned());
        }
        call.push(format!("--dns-cluster-ip {}", quote(dns)));
    }
    // Its own limit of pods would come after ours.
    if kubelet.max_pods.is_some() {
        call.push("--use-max-pods false".to_owned());
    }
    call.push(format!("--kubelet-extra-args {}", quote(&flags(boot, &kubelet).join(" "))));
    if boot.raid0 {
        call.push("--local-disks raid0".to_owned());
    }
    Ok(format!(
        "#!/bin/bash -xe\nexec > >(tee /var/log/user-data.log | logger -t user-data -s 2>/dev/console) 2>&1\n{}\n",
        call.join(" \\\n  ")
    ))
}

/// One word of a shell.
fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
