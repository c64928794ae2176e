//! How many pods that a counter means are in each domain, as a plan sees it: those that run, and
//! those it has placed so far.

use smallvec::SmallVec;

use super::set::Set;

/// Number of a counter.
pub(crate) type CounterId = u32;

/// What is on one node or claim, by counter. Few counters ever look at the same place.
pub(crate) type Local = SmallVec<[(CounterId, u32); 4]>;

/// Counts of one counter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Count {
    /// By domain: pods that are surely there.
    sure: SmallVec<[u32; 4]>,
    /// By domain: pods on claims that may still come to be there or elsewhere.
    maybe: SmallVec<[u32; 4]>,
    /// Pods in any domain.
    pub(crate) total: u32,
    /// How often it changed.
    pub(crate) changes: u32,
}

/// Counts of all counters. Cheap to copy: a what-if is tried on a copy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tally(pub(crate) Vec<Count>);

fn add(counts: &mut SmallVec<[u32; 4]>, domain: u32, pods: u32) {
    let at = domain as usize;
    if counts.len() <= at {
        counts.resize(at + 1, 0);
    }
    counts[at] += pods;
}

impl Count {
    /// Pods that are surely in a domain.
    pub(crate) fn sure(&self, domain: u32) -> u32 {
        self.sure.get(domain as usize).copied().unwrap_or(0)
    }

    /// Whether pods are in a domain, or may come to be.
    pub(crate) fn feared(&self, domain: u32) -> bool {
        self.at(domain) > 0
    }

    /// Pods that are in a domain, or may come to be.
    pub(crate) fn at(&self, domain: u32) -> u32 {
        self.sure(domain) + self.maybe.get(domain as usize).copied().unwrap_or(0)
    }

    /// Domains that surely have pods, ascending.
    pub(crate) fn present(&self) -> impl Iterator<Item = u32> + '_ {
        self.sure.iter().zip(0..).filter(|(pods, _)| **pods > 0).map(|(_, domain)| domain)
    }

    /// Counts pods of a place in one of these domains; of none, when the place has no such label.
    pub(crate) fn add(&mut self, reach: &Set, pods: u32) {
        match reach.single() {
            Some(domain) => add(&mut self.sure, domain, pods),
            None => reach.iter().for_each(|domain| add(&mut self.maybe, domain, pods)),
        }
        self.changes += 1;
    }

    /// Counts pods that were placed, if the place is in a domain at all.
    pub(crate) fn placed(&mut self, counts: bool, reach: &Set, pods: u32) {
        if counts {
            self.total += pods;
            self.add(reach, pods);
        }
    }

    /// Takes back pods that were [`Count::placed`] so.
    pub(crate) fn lifted(&mut self, counts: bool, reach: &Set, pods: u32) {
        if !counts {
            return;
        }
        self.total -= pods;
        match reach.single() {
            Some(domain) => self.sure[domain as usize] -= pods,
            None => reach.iter().for_each(|domain| self.maybe[domain as usize] -= pods),
        }
        self.changes += 1;
    }

    /// Moves pods of a place that could be in `before` and now can be in `after`.
    pub(crate) fn narrow(&mut self, before: &Set, after: &Set, pods: u32) {
        match before.single() {
            Some(domain) => self.sure[domain as usize] -= pods,
            None => before.iter().for_each(|domain| self.maybe[domain as usize] -= pods),
        }
        self.add(after, pods);
    }
}

/// How many pods of a counter are at one place.
pub(crate) fn there(local: &Local, counter: CounterId) -> u32 {
    local.iter().find(|(c, _)| *c == counter).map_or(0, |(_, pods)| *pods)
}

/// Counts more pods at one place; returns how many were there before.
pub(crate) fn put(local: &mut Local, counter: CounterId, pods: u32) -> u32 {
    match local.iter_mut().find(|(c, _)| *c == counter) {
        Some((_, so_far)) => {
            let before = *so_far;
            *so_far += pods;
            before
        }
        None => {
            local.push((counter, pods));
            0
        }
    }
}
