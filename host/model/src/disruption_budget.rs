//! PodDisruptionBudgets: how many pods may be asked to leave.

use serde::{Deserialize, Serialize};

use crate::{LabelSelector, PodKey};

/// A PodDisruptionBudget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodDisruptionBudget {
    /// Namespace and name.
    pub key: PodKey,
    /// The pods meant, of its namespace.
    pub selector: LabelSelector,
    /// How many of them may be evicted now (`status.disruptionsAllowed`).
    pub allowed: i32,
    /// Whether it lets no pod go, however many there are: `maxUnavailable` 0 or 0%, `minAvailable` 100%.
    pub never: bool,
    /// `unhealthyPodEvictionPolicy: AlwaysAllow`: pods that are not ready may always go.
    pub always_allow_unready: bool,
}
