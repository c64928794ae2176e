//! Hashes are those that Karpenter has in its annotations: `fixtures/hashes` holds objects and the numbers that
//! Karpenter 1.14 (pools, `v3`) and the provider's commit 1d92708 (classes, `v6`) gave them.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use serde::{Deserialize, de::DeserializeOwned};
use whittle_cluster::{api, hash};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Case<T> {
    name: String,
    hash: String,
    ca_bundle: Option<String>,
    object: T,
}

fn cases<T: DeserializeOwned>(text: &str) -> Vec<Case<T>> {
    serde_json::from_str(text).unwrap()
}

#[test]
fn pools_have_the_hash_that_karpenter_gives_them() {
    for case in cases::<api::NodePool>(include_str!("fixtures/hashes/node-pools.json")) {
        assert_eq!(hash::node_pool_hash(&case.object), case.hash, "{}", case.name);
    }
}

#[test]
fn classes_have_the_hash_that_karpenter_gives_them() {
    for case in cases::<api::EC2NodeClass>(include_str!("fixtures/hashes/node-classes.json")) {
        assert_eq!(hash::node_class_hash(&case.object, case.ca_bundle.as_deref()), case.hash, "{}", case.name);
    }
}
