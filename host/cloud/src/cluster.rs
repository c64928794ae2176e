//! What AWS knows of the cluster itself: its API server's address and certificate, its range of service addresses and
//! its version, as EKS says them; and the account.
//!
//! What must not enter: what Kubernetes says of itself.

use crate::{Aws, CloudError};

/// What EKS says of a cluster; empty parts are not known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EksCluster {
    /// Address of the API server.
    pub endpoint: String,
    /// Certificate bundle, base64 of PEM.
    pub ca_bundle: String,
    /// Range of service addresses.
    pub service_cidr: String,
    /// Version of Kubernetes, such as `1.34`.
    pub version: String,
}

impl Aws {
    /// What EKS says of the cluster of this name.
    ///
    /// # Errors
    /// When EKS does not know it, or may not say.
    pub async fn eks_cluster(&self, name: &str) -> Result<EksCluster, CloudError> {
        let request = self.eks.describe_cluster().name(name);
        let answer = self.call("DescribeCluster", &format!("{name} of EKS"), || request.clone().send()).await?;
        let cluster = answer.cluster();
        let network = cluster.and_then(|c| c.kubernetes_network_config());
        let cidr = network.and_then(|n| n.service_ipv4_cidr().or_else(|| n.service_ipv6_cidr()));
        let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
        Ok(EksCluster {
            endpoint: text(cluster.and_then(|c| c.endpoint())),
            ca_bundle: text(cluster.and_then(|c| c.certificate_authority()).and_then(|ca| ca.data())),
            service_cidr: text(cidr),
            version: text(cluster.and_then(|c| c.version())),
        })
    }

    /// The account whose credentials are used.
    ///
    /// # Errors
    /// When AWS does not know the credentials.
    pub async fn account(&self) -> Result<String, CloudError> {
        let answer = self.call("GetCallerIdentity", "of these credentials", || self.sts.get_caller_identity().send()).await?;
        Ok(answer.account().unwrap_or_default().to_owned())
    }
}
