//! Numbers of pods by node.

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

    /// Takes `number` away at `slot`, where there are so many.
    pub fn take(&mut self, slot: u32, number: u32) {
        if let Ok(at) = self.0.binary_search_by_key(&slot, |(at, _)| *at) {
            self.0[at].1 = self.0[at].1.saturating_sub(number);
            if self.0[at].1 == 0 {
                self.0.remove(at);
            }
        }
    }

    /// The number at `slot`.
    pub fn at(&self, slot: u32) -> u32 {
        self.0.binary_search_by_key(&slot, |(at, _)| *at).map_or(0, |at| self.0[at].1)
    }

    /// Slots and numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32)> {
        self.0.iter().copied()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
