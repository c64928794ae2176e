//! DaemonSets: what every node they match must have room for.

use serde::{Deserialize, Serialize};

use crate::{Pod, PodKey};

/// A DaemonSet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonSet {
    /// Its name.
    pub key: PodKey,
    /// A pod as its template makes it.
    pub template: Pod,
}
