//! Small sets of numbers: domains of a key, most often fewer than 64.

use smallvec::{SmallVec, smallvec};

/// A set of small numbers.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) struct Set(SmallVec<[u64; 1]>);

impl Set {
    /// Takes a number in.
    pub(crate) fn insert(&mut self, number: u32) {
        let word = (number / 64) as usize;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (number % 64);
    }

    /// Whether the number is in it.
    pub(crate) fn contains(&self, number: u32) -> bool {
        self.0.get((number / 64) as usize).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    /// Whether nothing is in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// How many are in it.
    pub(crate) fn len(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// The only number in it.
    pub(crate) fn single(&self) -> Option<u32> {
        if self.len() == 1 { self.iter().next() } else { None }
    }

    /// Whether every number of it is in `other`.
    pub(crate) fn within(&self, other: &Self) -> bool {
        self.0.iter().enumerate().all(|(at, word)| word & !other.0.get(at).copied().unwrap_or(0) == 0)
    }

    /// What both hold.
    pub(crate) fn and(&self, other: &Self) -> Self {
        let mut both: SmallVec<[u64; 1]> = self.0.iter().zip(&other.0).map(|(a, b)| a & b).collect();
        // Equal sets are equal values: no empty words at the end.
        while both.last() == Some(&0) {
            both.pop();
        }
        Self(both)
    }

    /// Takes in all of `other`.
    pub(crate) fn add(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a |= b);
    }

    /// The numbers, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().enumerate().flat_map(|(at, word)| {
            let mut rest = *word;
            std::iter::from_fn(move || {
                let bit = rest.trailing_zeros();
                (rest != 0).then(|| {
                    rest &= rest - 1;
                    u32::try_from(at).unwrap_or(u32::MAX) * 64 + bit
                })
            })
        })
    }
}

impl FromIterator<u32> for Set {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Self {
        let mut set = Self(smallvec![]);
        numbers.into_iter().for_each(|number| set.insert(number));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_equal_when_their_numbers_are() {
        let (a, b): (Set, Set) = ([1, 70].into_iter().collect(), [1, 2].into_iter().collect());
        assert_eq!(a.and(&b), [1].into_iter().collect());
        assert_eq!((a.and(&b).single(), a.single(), a.len()), (Some(1), None, 2));
        assert_eq!(a.iter().collect::<Vec<_>>(), vec![1, 70]);
        assert!(a.and(&b).within(&a) && !a.within(&b) && !a.contains(2) && a.contains(70));
        let mut both = b;
        both.add(&a);
        assert_eq!(both.iter().collect::<Vec<_>>(), vec![1, 2, 70]);
        assert!(Set::default().is_empty() && Set::default().single().is_none());
    }
}
