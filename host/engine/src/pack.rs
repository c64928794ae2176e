//! Packing for cost: the abstract problem of buying bins for items, and the members of the
//! portfolio that solve it. Nothing here knows Kubernetes: classes, kinds, amounts.

mod bound;
mod check;
mod columns;
mod duals;
mod exact;
mod fill;
mod knapsack;
mod part;
mod portfolio;
mod pricing;
mod repair;
mod simplex;

use std::sync::Arc;

use whittle_model::Micros;

pub use bound::{Bound, Duals, bound, prospects};
pub use check::check;
pub use portfolio::{Solution, solve};

/// A packing problem. Amounts are vectors of `width` non-negative integers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Problem {
    /// Number of resources in every amount vector.
    pub width: usize,
    /// What is to be packed.
    pub classes: Vec<Class>,
    /// What can be bought.
    pub kinds: Vec<Kind>,
}

/// Identical items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// What one item takes.
    pub demand: Vec<i64>,
    /// How many there are.
    pub count: u32,
    /// Indices of the kinds that may hold it, ascending. Many classes have the same.
    pub kinds: Arc<[u32]>,
    /// Whether a bin holds at most one item of this class (self anti-affinity).
    pub alone: bool,
    /// Indices of other classes that never share a bin with it, ascending; symmetric.
    pub conflicts: Vec<u32>,
}

/// A kind of bin: an instance type of a pool, at its best price.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    /// What one bin has room for.
    pub capacity: Vec<i64>,
    /// What choice minimises, an hour.
    pub rank: Micros,
    /// What the bill says, an hour.
    pub cost: Micros,
}

/// Bins that are bought `times` times with the same content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// Index of the kind.
    pub kind: u32,
    /// Class index and number of items, ascending by class.
    pub items: Vec<(u32, u32)>,
    /// How many such bins.
    pub times: u32,
}

/// A solution.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Packing {
    /// The bins.
    pub patterns: Vec<Pattern>,
    /// Items of each class that found no bin.
    pub unplaced: Vec<(u32, u32)>,
}

impl Packing {
    /// The sum of ranks.
    #[must_use]
    pub fn rank(&self, problem: &Problem) -> Micros {
        self.patterns.iter().map(|p| Micros(problem.kinds[p.kind as usize].rank.0.saturating_mul(i64::from(p.times)))).sum()
    }
}
