//! Dense vectors of amounts for one plan. The resources in play are those that something to be
//! placed asks for; their order is that of their names, so that equal worlds compute alike.

use std::collections::BTreeSet;

use smallvec::SmallVec;
use whittle_model::Resources;
use whittle_model::resources::{CPU, EPHEMERAL_STORAGE, MEMORY, PODS};

/// Amounts by dimension.
pub(crate) type Amounts = SmallVec<[i64; 5]>;

/// The resources in play, by dimension.
#[derive(Debug, Clone)]
pub(crate) struct Dimensions {
    names: Vec<String>,
    /// Number of the first that counts volumes; those that do are the last.
    pub(crate) volumes: usize,
}

impl Dimensions {
    /// CPU, memory and pods always, then whatever else `requests` name, then what counts volumes.
    pub(crate) fn of<'a>(requests: impl Iterator<Item = &'a Resources>, volumes: impl Iterator<Item = String>) -> Self {
        let mut others = BTreeSet::new();
        for each in requests {
            others.extend(each.iter().map(|(name, _)| name.to_owned()).filter(|n| n != CPU && n != MEMORY && n != PODS));
        }
        let disk = others.remove(EPHEMERAL_STORAGE).then(|| EPHEMERAL_STORAGE.to_owned());
        let mut names: Vec<String> = [CPU, MEMORY, PODS].into_iter().map(str::to_owned).chain(disk).chain(others).collect();
        let first = names.len();
        names.extend(volumes);
        Self { names, volumes: first }
    }

    /// The names, by dimension.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// The dense form of `resources`; what is not in play is left out.
    pub(crate) fn dense(&self, resources: &Resources) -> Amounts {
        self.names.iter().map(|name| resources.get(name)).collect()
    }
}

/// Whether `need` fits into `room`. A dimension that is not asked for is no obstacle, even where
/// more is used than there is.
pub(crate) fn fits(need: &[i64], room: &[i64]) -> bool {
    need.iter().zip(room).all(|(n, r)| *n <= *r || *n <= 0)
}

/// Whether `used` plus `need` fits into `room`.
pub(crate) fn fits_on_top(used: &[i64], need: &[i64], room: &[i64]) -> bool {
    used.iter().zip(need).zip(room).all(|((u, n), r)| u + n <= *r || u + n <= 0)
}

/// How many times `need` fits into `room`, at most `most`.
pub(crate) fn times(need: &[i64], room: &[i64], most: usize) -> usize {
    let mut count = most;
    for (n, r) in need.iter().zip(room) {
        if *n > 0 {
            count = count.min(usize::try_from((*r).max(0) / *n).unwrap_or(usize::MAX));
        }
    }
    count
}

/// Adds `count` times `what` to `sum`.
pub(crate) fn add(sum: &mut [i64], what: &[i64], count: i64) {
    for (s, w) in sum.iter_mut().zip(what) {
        *s = s.saturating_add(w.saturating_mul(count));
    }
}
