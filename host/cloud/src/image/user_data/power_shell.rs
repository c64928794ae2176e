//! User data of Windows: a call of `Start-EKSBootstrap.ps1`.
//!
//! Its options: <https://docs.aws.amazon.com/eks/latest/userguide/eks-optimized-windows-ami.html>.
//! What must not enter: other families' user data.

use super::Boot;
use super::kubelet::{Kubelet, flags};
use crate::image::ImageError;

pub(super) fn render(boot: &Boot<'_>) -> Result<String, ImageError> {
    let kubelet = Kubelet::read(boot.kubelet)?;
    let cluster = boot.cluster;
    let mut call = vec![
        "& $EKSBootstrapScriptFile".to_owned(),
        format!("-EKSClusterName {}", quote(&cluster.name)),
        format!("-APIServerEndpoint {}", quote(&cluster.endpoint)),
    ];
    if let Some(bundle) = &cluster.ca_bundle {
        call.push(format!("-Base64ClusterCA {}", quote(bundle)));
    }
    call.push(format!("-KubeletExtraArgs {}", quote(&flags(boot, &kubelet).join(" "))));
    if let Some(dns) = kubelet.dns() {
        call.push(format!("-DNSClusterIP {}", quote(dns)));
    }
    let own = boot.own_user_data().map(|text| format!("{text}\n")).unwrap_or_default();
    Ok(format!(
        "<powershell>\n{own}[string]$EKSBootstrapScriptFile = \"$env:ProgramFiles\\Amazon\\EKS\\Start-EKSBootstrap.ps1\"\n{}\n</powershell>",
        call.join(" ")
    ))
}

/// One word of PowerShell.
fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
