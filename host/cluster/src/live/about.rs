//! What Kubernetes says of the cluster itself: its version, the address of its DNS, the certificate of its API server.
//! What must not enter: what AWS knows of it.

use std::net::IpAddr;

use k8s_openapi::api::core::v1::Service;
use kube::{Api, Client, Config};

/// What Kubernetes says of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// Such as `1.36`.
    pub version: String,
    /// The minor version: 36 for 1.36.
    pub minor: u32,
    /// Address of the service `kube-dns`, if it can be read.
    pub dns_ip: Option<IpAddr>,
}

/// Why nothing is known of the cluster.
#[derive(Debug, thiserror::Error)]
#[error("asking the API server for its version; check that it can be reached and that the credentials are good")]
pub struct AboutError(#[source] kube::Error);

/// Asks the API server. The DNS service may be missing: nodes then find their DNS by themselves.
///
/// # Errors
/// When the server does not say its version.
pub async fn about(client: &Client) -> Result<About, AboutError> {
    let version = client.apiserver_version().await.map_err(AboutError)?;
    let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>();
    let (major, minor) = (digits(&version.major), digits(&version.minor));
    let dns = Api::<Service>::namespaced(client.clone(), "kube-system").get_opt("kube-dns").await;
    let dns = dns.ok().flatten().and_then(|service| service.spec?.cluster_ip?.parse().ok());
    Ok(About { version: format!("{major}.{minor}"), minor: minor.parse().unwrap_or(0), dns_ip: dns })
}

/// The certificates that this process trusts the API server by, base64 of PEM as user data has it; `None` when the
/// configuration names none.
pub async fn ca_bundle() -> Option<String> {
    let config = Config::infer().await.ok()?;
    let certificates = config.root_cert?;
    let pem: String = certificates
        .iter()
        .map(|der| {
            let lines: Vec<String> = base64(der).as_bytes().chunks(64).map(|line| String::from_utf8_lossy(line).into_owned()).collect();
            format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
        })
        .collect();
    Some(base64(pem.as_bytes()))
}

/// Base64 as JSON carries bytes: `k8s-openapi` brings the encoder.
fn base64(bytes: &[u8]) -> String {
    let json = serde_json::to_value(k8s_openapi::ByteString(bytes.to_vec())).unwrap_or_default();
    json.as_str().unwrap_or_default().to_owned()
}
