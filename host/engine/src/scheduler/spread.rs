//! How many pods of each controller are on each node.

use super::identity::Identity;

/// Numbers by slot, ascending; zeros are left out.
#[derive(Debug, Clone, Default)]
pub(super) struct Counts(Vec<(u32, u32)>);

impl Counts {
    /// Adds `number` at `slot`.
    pub fn add(&mut self, slot: u32, number: u32) {
        match self.0.binary_search_by_key(&slot, |(at, _)| *at) {
            Ok(at) => self.0[at].1 += number,
            Err(at) => self.0.insert(at, (slot, number)),
        }
    }

    /// Takes one away at `slot`, where there is one.
    pub fn take(&mut self, slot: u32) {
        if let Ok(at) = self.0.binary_search_by_key(&slot, |(at, _)| *at) {
            self.0[at].1 -= 1;
            if self.0[at].1 == 0 {
                self.0.remove(at);
            }
        }
    }

    /// Slots and numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32)> {
        self.0.iter().copied()
    }
}

/// The pods of each controller, by slot.
#[derive(Debug, Clone, Default)]
pub(super) struct Groups(Vec<Counts>);

impl Groups {
    /// A pod of the group is on the slot.
    pub fn add(&mut self, group: u32, slot: u32) {
        let group = group as usize;
        if self.0.len() <= group {
            self.0.resize_with(group + 1, Counts::default);
        }
        self.0[group].add(slot, 1);
    }

    /// A pod of the group left the slot.
    pub fn remove(&mut self, group: u32, slot: u32) {
        self.0[group as usize].take(slot);
    }

    /// Where the pods are that `identity` spreads with, if it spreads at all.
    pub fn of(&self, identity: &Identity) -> Option<&[(u32, u32)]> {
        identity.group.map(|group| self.0.get(group as usize).map_or(&[][..], |counts| counts.0.as_slice()))
    }
}
