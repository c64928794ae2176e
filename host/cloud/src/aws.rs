//! The clients of the AWS services, and the one way to call them: through the token bucket of the action, with back-off.
//!
//! What must not enter: what is asked and what is made of the answer.

use std::{future::Future, time::Duration};

use aws_config::{BehaviorVersion, ConfigLoader, Region, SdkConfig, retry::RetryConfig, timeout::TimeoutConfig};
use aws_sdk_ec2::{
    config::{Credentials, SharedHttpClient},
    error::{ProvideErrorMetadata, SdkError},
};
use aws_smithy_http_client::{
    Builder,
    tls::{Provider, rustls_provider::CryptoMode},
};

use crate::{
    error::{CloudError, ErrorKind},
    throttle::{Throttle, back_off},
};

/// A call may take this long: an instant fleet of many types is answered only when it is decided.
const TIMEOUT: Duration = Duration::from_mins(4);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The first retry waits about this long, the later ones longer. Buckets of AWS refill every second.
const PATIENCE: Duration = Duration::from_millis(500);
/// A call refused as too fast is tried again this often: with the back-off, about half a minute.
const THROTTLED_RETRIES: u32 = 6;
/// A reading that got no answer is tried again this often.
const READ_RETRIES: u32 = 3;

/// Clients of the AWS services in one region.
#[derive(Debug)]
pub struct Aws {
    pub(crate) ec2: aws_sdk_ec2::Client,
    pub(crate) eks: aws_sdk_eks::Client,
    pub(crate) iam: aws_sdk_iam::Client,
    pub(crate) pricing: aws_sdk_pricing::Client,
    pub(crate) sqs: aws_sdk_sqs::Client,
    pub(crate) ssm: aws_sdk_ssm::Client,
    pub(crate) sts: aws_sdk_sts::Client,
    /// The region, such as `us-east-1`.
    pub region: String,
    throttle: Throttle,
    /// Wait before the first retry.
    patience: Duration,
    /// Whether calls that change something are refused here.
    only_reads: bool,
}

impl Aws {
    /// Clients configured by the usual environment: `AWS_REGION`, credentials (environment, web identity, container,
    /// instance), `AWS_ENDPOINT_URL`. Nothing is called yet, except for the region where the environment does not say.
    ///
    /// # Errors
    /// When no region can be found.
    pub async fn connect() -> Result<Self, CloudError> {
        Self::from_config(&loader().load().await)
    }

    /// Clients that call this address with made-up credentials, whatever the environment says: for tests against a
    /// local server. Retries wait milliseconds.
    ///
    /// # Errors
    /// When the region is empty.
    pub async fn for_test(url: &str, region: &str) -> Result<Self, CloudError> {
        let credentials = Credentials::new("local", "local", None, None, "local");
        let config = loader().endpoint_url(url).region(Region::new(region.to_owned())).credentials_provider(credentials);
        let aws = Self::from_config(&config.empty_test_environment().load().await)?;
        Ok(Self { patience: Duration::from_millis(2), throttle: Throttle::new(200.0), ..aws })
    }

    /// The same clients, which refuse every call that may change something before it is sent.
    #[must_use]
    pub fn only_reading(self) -> Self {
        Self { only_reads: true, ..self }
    }

    fn from_config(config: &SdkConfig) -> Result<Self, CloudError> {
        let region = config
            .region()
            .map(ToString::to_string)
            .filter(|region| !region.is_empty())
            .ok_or_else(|| CloudError::local("connect", "to AWS", ErrorKind::Configuration, "no region is known; set AWS_REGION"))?;
        let price_list = config.to_builder().region(Region::new(price_list_region(&region))).build();
        Ok(Self {
            ec2: aws_sdk_ec2::Client::new(config),
            eks: aws_sdk_eks::Client::new(config),
            iam: aws_sdk_iam::Client::new(config),
            pricing: aws_sdk_pricing::Client::new(&price_list),
            sqs: aws_sdk_sqs::Client::new(config),
            ssm: aws_sdk_ssm::Client::new(config),
            sts: aws_sdk_sts::Client::new(config),
            region,
            throttle: Throttle::new(1.0),
            patience: PATIENCE,
            only_reads: false,
        })
    }

    /// AWS said inside an answer that calls of `action` come too fast.
    pub(crate) fn slow_down(&self, action: &'static str) {
        self.throttle.refused(action);
    }

    /// Runs one call, made anew for each try, when its action's bucket admits it. A call that is refused as too fast was
    /// not carried out and is tried again; one that got no answer may have been, so only readings are tried again.
    /// `object` completes the sentence "cannot `action` ...".
    ///
    /// # Errors
    /// What AWS answered to the last try.
    pub(crate) async fn call<T, E, F>(&self, action: &'static str, object: &str, make: impl Fn() -> F) -> Result<T, CloudError>
    where
        F: Future<Output = Result<T, SdkError<E>>>,
        E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
    {
        if self.only_reads && !is_reading(action) {
            let why = "nothing is changed in mode Observe";
            return Err(CloudError::local(action, object, ErrorKind::Configuration, why));
        }
        let mut attempt = 0;
        loop {
            self.throttle.admit(action).await;
            let error = match make().await {
                Ok(answer) => {
                    self.throttle.passed(action);
                    return Ok(answer);
                }
                Err(failure) => CloudError::of(action, object, &failure),
            };
            let retries = match error.kind {
                ErrorKind::Throttled => {
                    self.throttle.refused(action);
                    THROTTLED_RETRIES
                }
                ErrorKind::NoAnswer if is_reading(action) => READ_RETRIES,
                ErrorKind::NoAnswer
                | ErrorKind::NotFound
                | ErrorKind::LaunchTemplateNotFound
                | ErrorKind::AlreadyExists
                | ErrorKind::Unauthorized
                | ErrorKind::InsufficientCapacity
                | ErrorKind::SpotRoleMissing
                | ErrorKind::TokenReused
                | ErrorKind::DryRunOk
                | ErrorKind::Configuration
                | ErrorKind::Other => 0,
            };
            if attempt >= retries {
                return Err(error);
            }
            tracing::debug!(action, attempt, error = %error, "an AWS call is tried again");
            tokio::time::sleep(back_off(self.patience, attempt)).await;
            attempt += 1;
        }
    }
}

/// Whether a call of this action changes nothing.
fn is_reading(action: &str) -> bool {
    ["Describe", "Get", "List"].iter().any(|verb| action.starts_with(verb))
}

fn loader() -> ConfigLoader {
    let timeouts = TimeoutConfig::builder().connect_timeout(CONNECT_TIMEOUT).operation_timeout(TIMEOUT).build();
    aws_config::defaults(BehaviorVersion::latest())
        .http_client(http_client())
        // Retries of the SDK would pass by the token buckets.
        .retry_config(RetryConfig::disabled())
        .timeout_config(timeouts)
}

fn http_client() -> SharedHttpClient {
    Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https()
}

/// The price list is served from few regions only.
/// Source: AWS Billing and Cost Management, "Price List Query API endpoints".
fn price_list_region(region: &str) -> &'static str {
    match region.split('-').next() {
        Some("cn") => "cn-northwest-1",
        Some("ap") => "ap-south-1",
        Some("eu") => "eu-central-1",
        Some(_) | None => "us-east-1",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_price_list_is_asked_in_the_partition() {
        for (region, of) in [
            ("us-east-1", "us-east-1"),
            ("us-gov-west-1", "us-east-1"),
            ("eu-west-1", "eu-central-1"),
            ("ap-southeast-2", "ap-south-1"),
            ("cn-north-1", "cn-northwest-1"),
            ("sa-east-1", "us-east-1"),
        ] {
            assert_eq!(price_list_region(region), of, "{region}");
        }
    }

    #[tokio::test]
    async fn without_a_region_there_are_no_clients() {
        let config = SdkConfig::builder().behavior_version(BehaviorVersion::latest()).build();
        let error = Aws::from_config(&config).map(|aws| aws.region);
        assert_eq!(error.map_err(|e| e.to_string()), Err("cannot connect to AWS: no region is known; set AWS_REGION".to_owned()));
    }
}
