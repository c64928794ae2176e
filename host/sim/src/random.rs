//! Seeded numbers. Every purpose and every object draws from its own branch of one tree, so that
//! one more draw somewhere shifts nothing elsewhere.

/// A branch of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seed(u64);

impl Seed {
    /// The trunk.
    pub(crate) const fn new(seed: u64) -> Self {
        Self(mix(seed.wrapping_add(0x9E37_79B9_7F4A_7C15)))
    }

    /// The branch of this name.
    pub(crate) fn of(self, name: &str) -> Self {
        let hash = name.bytes().fold(self.0 ^ 0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
        Self(mix(hash))
    }

    /// The branch of this number.
    pub(crate) const fn nth(self, number: u64) -> Self {
        Self(mix(self.0.wrapping_add(number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15))))
    }

    /// The word of this branch.
    pub(crate) const fn word(self) -> u64 {
        self.0
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn between(self, low: i64, high: i64) -> i64 {
        let span = high.saturating_sub(low).max(0).unsigned_abs() + 1;
        low + i64::try_from(self.0 % span).unwrap_or(0)
    }

    /// True in `percent` of all branches.
    pub(crate) const fn percent(self, percent: u8) -> bool {
        self.0 % 100 < percent as u64
    }
}

/// The output function of splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
/// Generators, 2014).
const fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::Seed;

    #[test]
    fn branches_differ_and_numbers_spread_over_their_range() {
        let seed = Seed::new(7);
        assert_eq!(seed.of("boot").word(), Seed::new(7).of("boot").word());
        assert_ne!(seed.of("boot").word(), seed.of("ids").word());
        let mut seen = [0u32; 10];
        for n in 0..1000 {
            seen[usize::try_from(seed.nth(n).between(0, 9)).unwrap()] += 1;
        }
        assert!(seen.iter().all(|count| (60..150).contains(count)), "{seen:?}");
        let hits = (0..1000).filter(|n| seed.of("hits").nth(*n).percent(20)).count();
        assert!((150..250).contains(&hits), "{hits}");
    }
}
