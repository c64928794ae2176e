//! LimitRanges: what containers ask for when they say nothing.

use serde::{Deserialize, Serialize};

use crate::{PodKey, Resources};

/// The container defaults of a LimitRange.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LimitRange {
    /// Namespace and name.
    pub key: PodKey,
    /// Requests of a container that has none (`defaultRequest`, or `default` where that alone is given).
    pub requests: Resources,
}
