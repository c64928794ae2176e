//! Options of the instance's metadata service, every one of them said, because an account may have
//! defaults of its own.
//!
//! What must not enter: AWS types.

use serde::Serialize;
use whittle_model::ec2_node_class::MetadataOptions;

use super::ImageError;

/// Regions whose EC2 does not know the option.
const NO_IPV6_ENDPOINT: [&str; 6] =
    ["us-iso-east-1", "us-iso-west-1", "us-isob-east-1", "us-isob-west-1", "us-isof-east-1", "us-isof-south-1"];

/// Options of the metadata service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Metadata {
    /// `enabled` or `disabled`.
    pub endpoint: String,
    /// `enabled` or `disabled`; absent where EC2 does not know it.
    pub ipv6: Option<String>,
    /// How many network hops an answer may travel.
    pub hop_limit: i32,
    /// `required` or `optional`.
    pub tokens: String,
}

impl Metadata {
    /// Those of a class in this region, with the defaults of the class's schema where it says nothing.
    ///
    /// # Errors
    /// When the hop limit is absurd.
    pub fn of(class: Option<&MetadataOptions>, region: &str) -> Result<Self, ImageError> {
        let said = class.cloned().unwrap_or_default();
        let hops = said.http_put_response_hop_limit.unwrap_or(1);
        let or = |said: Option<String>, default: &str| said.unwrap_or_else(|| default.to_owned());
        Ok(Self {
            endpoint: or(said.http_endpoint, "enabled"),
            ipv6: (!NO_IPV6_ENDPOINT.contains(&region)).then(|| or(said.http_protocol_ipv6, "disabled")),
            hop_limit: super::volume::narrow("metadataOptions.httpPutResponseHopLimit", hops)?,
            tokens: or(said.http_tokens, "required"),
        })
    }
}
