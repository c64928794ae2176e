//! User data of Amazon Linux 2023: a NodeConfig for `nodeadm`, which merges those of all parts, the
//! last one winning.
//!
//! Its fields: <https://awslabs.github.io/amazon-eks-ami/nodeadm/doc/api/>. What must not enter:
//! other families' user data.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};
use serde_saphyr::options::DuplicateKeyPolicy;

use super::{Boot, labels_flag, mime};
use crate::image::ImageError;

const NODE_CONFIG: &str = "application/node.eks.aws";

pub(super) fn render(boot: &Boot<'_>) -> Result<String, ImageError> {
    let mut parts = match boot.own_user_data() {
        None => Vec::new(),
        Some(text) if mime::is_archive(text) => mime::parse(text)?,
        Some(text) => vec![mime::Part::new(content_type(text)?, text)],
    };
    parts.push(mime::Part::new(NODE_CONFIG, &node_config(boot)?));
    Ok(mime::write(&parts))
}

/// What text that is no archive is: a NodeConfig if it is a YAML mapping, else a script.
fn content_type(text: &str) -> Result<&'static str, ImageError> {
    let options = serde_saphyr::options! { duplicate_keys: DuplicateKeyPolicy::LastWins, with_snippet: false };
    // Whatever follows the first document is nodeadm's to judge.
    let first = serde_saphyr::read_with_options::<_, Option<BTreeMap<String, IgnoredAny>>>(&mut text.as_bytes(), options).next();
    match first {
        None | Some(Ok(_)) => Ok(NODE_CONFIG),
        // Run as a script it would do nothing, and nobody would learn why.
        Some(Err(error)) if means_node_config(text) => {
            let line = error.location().map_or(1, |at| usize::try_from(at.line()).unwrap_or(usize::MAX));
            Err(ImageError::NodeConfig { line, why: error.to_string() })
        }
        Some(Err(_)) => Ok(mime::SHELL),
    }
}

fn means_node_config(text: &str) -> bool {
    !text.trim_start().starts_with("#!") && text.lines().any(|line| line.starts_with("apiVersion:") && line.contains("node.eks.aws/"))
}

fn node_config(boot: &Boot<'_>) -> Result<String, ImageError> {
    let cluster = boot.cluster;
    let cidr = cluster.service_cidr.as_deref().filter(|cidr| !cidr.is_empty());
    let cidr = cidr.ok_or_else(|| ImageError::NoClusterCidr(cluster.name.clone()))?;
    let mut facts = Map::new();
    facts.insert("name".to_owned(), cluster.name.clone().into());
    facts.insert("apiServerEndpoint".to_owned(), cluster.endpoint.clone().into());
    if let Some(bundle) = cluster.ca_bundle.as_deref().filter(|bundle| !bundle.is_empty()) {
        STANDARD.decode(bundle).map_err(|error| ImageError::CaBundle { cluster: cluster.name.clone(), why: error.to_string() })?;
        facts.insert("certificateAuthority".to_owned(), bundle.into());
    }
    facts.insert("cidr".to_owned(), cidr.into());
    let mut spec = Map::new();
    spec.insert("cluster".to_owned(), facts.into());
    if boot.raid0 {
        spec.insert("instance".to_owned(), json!({"localStorage": {"strategy": "RAID0"}}));
    }
    spec.insert("kubelet".to_owned(), kubelet(boot));
    let mut config = json!({"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": spec});
    // Equal settings are equal text in whatever order they came.
    config.sort_all_objects();
    // A scalar that YAML 1.1 takes for a truth value or number is quoted: nodeadm reads YAML 1.1.
    let options = serde_saphyr::ser_options! { yaml_12: false, prefer_block_scalars: false };
    let text = serde_saphyr::to_string_with_options(&config, options);
    text.map_err(|error| ImageError::NodeConfig { line: 1, why: error.to_string() })
}

fn kubelet(boot: &Boot<'_>) -> Value {
    let mut config: Map<String, Value> = boot.kubelet.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    let taints: Vec<Value> = boot
        .all_taints()
        .into_iter()
        .map(|taint| {
            let mut fields = Map::new();
            fields.insert("key".to_owned(), taint.key.into());
            if !taint.value.is_empty() {
                fields.insert("value".to_owned(), taint.value.into());
            }
            fields.insert("effect".to_owned(), format!("{:?}", taint.effect).into());
            fields.into()
        })
        .collect();
    config.insert("registerWithTaints".to_owned(), taints.into());
    let mut kubelet = Map::new();
    kubelet.insert("config".to_owned(), config.into());
    if let Some(labels) = labels_flag(boot) {
        kubelet.insert("flags".to_owned(), json!([labels]));
    }
    kubelet.into()
}
