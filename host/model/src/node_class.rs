//! EC2NodeClasses, as far as planning reads them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Labels;

/// A subnet nodes may stand in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Subnet {
    /// `subnet-…`.
    pub id: String,
    /// Its zone.
    pub zone: String,
}

/// A node class. What it makes of instance types arrives as a catalogue of its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct NodeClass {
    /// Its name.
    pub name: String,
    /// Its annotations; the hash of its spec is among them.
    pub annotations: Labels,
    /// Whether nodes may be launched from it; the reason when not.
    pub not_ready: Option<String>,
    /// By zone: addresses that are free in its subnets, as [`roughly`] as is needed. A zone of which nothing is known is absent.
    #[serde(default)]
    pub free_addresses: BTreeMap<String, i64>,
}

/// A count, rounded down by at most an eighth: one that changes all the time is not news all the time.
#[must_use]
pub const fn roughly(count: i64) -> i64 {
    let bits = i64::BITS - count.leading_zeros();
    if count <= 0 || bits <= 4 { count } else { count >> (bits - 4) << (bits - 4) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rough_counts_are_short_by_an_eighth_at_most() {
        for count in [0, 1, 15, 16, 17, 31, 32, 250, 251, 4091, i64::MAX] {
            let rough = roughly(count);
            assert!(rough <= count && count - rough <= count / 8 && roughly(rough) == rough, "{count}: {rough}");
        }
        assert_eq!((roughly(15), roughly(250), roughly(251)), (15, 240, 240));
    }
}
