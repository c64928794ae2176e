//! EC2NodeClasses, as far as planning reads them.

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
}
