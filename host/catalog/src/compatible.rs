//! Instance types that a NodeClass cannot use at all.

use crate::{AmiFamily, Architecture, InstanceFacts};

/// Why nodes of this family cannot run on this type, if so.
#[must_use]
pub fn incompatible(facts: &InstanceFacts, family: AmiFamily) -> Option<&'static str> {
    if facts.arch == Architecture::Mac {
        return Some("no Kubernetes node runs on Apple hosts");
    }
    if family == AmiFamily::Al2023 && facts.family() == "a1" {
        return Some("AL2023 does not boot on the processors of a1");
    }
    None
}
