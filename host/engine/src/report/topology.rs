//! Why a pool has no domain for pods that spread, or that want others near or away: the constraint, its key and the counts.

use serde::{Deserialize, Serialize};

/// The first constraint on company that keeps pods from a pool.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TopologyRefusal {
    /// Pod affinity on single nodes: a new node has none of the pods that it selects.
    NoneThere {
        /// The topology key.
        key: String,
        /// How many such pods there are.
        elsewhere: u32,
    },
    /// A spread: no domain there may have one more.
    Spread {
        /// The topology key.
        key: String,
        /// Its `maxSkew`.
        max_skew: u32,
        /// The least count of the domains that are compared.
        least: u32,
        /// Those domains with their counts.
        counts: Vec<(String, u32)>,
    },
    /// Pod affinity: no pod that it selects has a place.
    NoPods {
        /// The topology key.
        key: String,
    },
    /// Pod affinity: the pods that it selects are in other domains.
    PodsElsewhere {
        /// The topology key.
        key: String,
        /// Those domains with their counts.
        counts: Vec<(String, u32)>,
    },
    /// Pod anti-affinity, its own or that of others: every domain there has such pods.
    Excluded {
        /// The topology key.
        key: String,
        /// The domains there with their counts.
        counts: Vec<(String, u32)>,
        /// Whether some of them are empty for now, but nodes whose domain is open yet may come to be in them.
        open: bool,
    },
    /// No value of the key suits all constraints together.
    Together {
        /// The topology key.
        key: String,
    },
}

fn listed(counts: &[(String, u32)]) -> String {
    let all: Vec<String> = counts.iter().map(|(domain, count)| format!("{domain} {count}")).collect();
    if all.is_empty() { "there is none".to_owned() } else { all.join(", ") }
}

impl std::fmt::Display for TopologyRefusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoneThere { key, elsewhere } => {
                write!(f, "podAffinity on {key}: a new node has none of the pods that it selects ({elsewhere} are elsewhere)")
            }
            Self::Spread { key, max_skew, least, counts } => {
                let counts = listed(counts);
                write!(
                    f,
                    "topologySpreadConstraints on {key} with maxSkew {max_skew}: no domain there may have one more, least is {least} ({counts})"
                )
            }
            Self::NoPods { key } => write!(f, "podAffinity on {key}: no pod that it selects has a place"),
            Self::PodsElsewhere { key, counts } => {
                write!(f, "podAffinity on {key}: none of the pods that it selects is in a domain there ({})", listed(counts))
            }
            Self::Excluded { key, counts, open } => {
                let open = if *open { "; nodes whose domain is open yet may come to be in the others" } else { "" };
                let counts = listed(counts);
                write!(f, "podAntiAffinity on {key}: every domain there has pods that exclude or are excluded ({counts}{open})")
            }
            Self::Together { key } => write!(f, "no value of {key} suits all of its constraints on company together"),
        }
    }
}
