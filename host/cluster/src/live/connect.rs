//! A client of the API server: found as `kubectl` or a pod finds it, named, paced, with limits on silence.

use std::time::Duration;

use http::{HeaderValue, header::USER_AGENT};
use kube::{Client, Config, client::ClientBuilder, config::InferConfigError};

use super::pace::Pace;

/// How long a connection may take to open.
const CONNECT: Duration = Duration::from_secs(10);
/// How long a connection may be silent: longer than the server lets a watch live (290 s are asked for).
const SILENCE: Duration = Duration::from_secs(300);

/// How the client behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientOptions {
    /// Requests a second.
    pub qps: u32,
    /// Requests that may go at once after a rest.
    pub burst: u32,
    /// What audit logs know it by.
    pub user_agent: String,
}

impl Default for ClientOptions {
    /// 200 requests a second, 300 at once, as `whittle-controller/VERSION`.
    fn default() -> Self {
        Self { qps: 200, burst: 300, user_agent: concat!("whittle-controller/", env!("CARGO_PKG_VERSION")).to_owned() }
    }
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Neither a kubeconfig nor a service account was found.
    #[error("finding the API server: set KUBECONFIG, or run in a pod with a service account")]
    Config(#[source] InferConfigError),
    /// The name does not fit into a header.
    #[error("user agent {0:?} is no header value; use letters, digits, / and .")]
    UserAgent(String),
    /// The configuration names keys or a server that cannot be used.
    #[error("making a client for {server}; check certificates, keys and the server's address")]
    Client {
        /// The server's address.
        server: String,
        /// Why.
        #[source]
        source: kube::Error,
    },
}

/// A client for the cluster that `KUBECONFIG`, the default kubeconfig or the pod's service account names. Nothing is asked of the
/// server yet.
///
/// # Errors
/// When no cluster is named, or what names it cannot be used.
pub async fn connect(options: &ClientOptions) -> Result<Client, ConnectError> {
    client(Config::infer().await.map_err(ConnectError::Config)?, options)
}

/// A client for the cluster of `config`.
///
/// # Errors
/// When the configuration cannot be used.
pub fn client(mut config: Config, options: &ClientOptions) -> Result<Client, ConnectError> {
    let agent = HeaderValue::from_str(&options.user_agent).map_err(|_| ConnectError::UserAgent(options.user_agent.clone()))?;
    config.headers.push((USER_AGENT, agent));
    config.connect_timeout = Some(CONNECT);
    config.read_timeout = Some(SILENCE);
    config.reset_reader_on_write = true;
    let server = config.cluster_url.to_string();
    let builder = ClientBuilder::try_from(config).map_err(|source| ConnectError::Client { server, source })?;
    Ok(builder.with_layer(&Pace::new(options.qps, options.burst)).build())
}
