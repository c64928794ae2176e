//! NodeOverlays: what its owner knows better about instance types, prices and capacity.

use serde::{Deserialize, Serialize};

use crate::{Micros, Requirements, Resources};

/// What an overlay makes of a price.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PriceChange {
    /// This price.
    Absolute(Micros),
    /// The list price and this much, never below 0.
    Add(Micros),
    /// The list price changed by so many millionths of itself: -500,000 halves it.
    Scale(i64),
}

/// A NodeOverlay that passed its checks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeOverlay {
    /// Its name.
    pub name: String,
    /// The highest goes first; of equal weight the name that comes last in the alphabet.
    pub weight: i32,
    /// The types and offerings it is about.
    pub requirements: Requirements,
    /// What it makes of their price.
    pub price: Option<PriceChange>,
    /// Extended resources that they have besides.
    pub capacity: Resources,
}
