//! Interning: equal values become one small integer, so that work is done per kind and not per
//! object. Numbers follow the order of arrival and must never decide anything.

use std::borrow::Borrow;
use std::hash::Hash;
use std::sync::Arc;

use rustc_hash::FxHashMap;

/// A table of distinct values.
#[derive(Debug, Clone)]
pub(crate) struct Interner<T> {
    values: Vec<Arc<T>>,
    numbers: Lookup<Arc<T>, u32>,
}

impl<T: Eq + Hash> Default for Interner<T> {
    fn default() -> Self {
        Self { values: Vec::new(), numbers: Lookup::default() }
    }
}

impl<T: Eq + Hash> Interner<T> {
    /// The number of `value`, new or known.
    pub(crate) fn number(&mut self, value: T) -> u32 {
        if let Some(number) = self.numbers.0.get(&value) {
            return *number;
        }
        let number = u32::try_from(self.values.len()).expect("fewer than 2^32 distinct values fit in memory");
        let value = Arc::new(value);
        self.values.push(Arc::clone(&value));
        self.numbers.insert(value, number);
        number
    }

    /// The number of `value` if it has one.
    pub(crate) fn known(&self, value: &T) -> Option<u32> {
        self.numbers.0.get(value).copied()
    }

    /// All values.
    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.values.iter().map(Arc::as_ref)
    }

    /// The value of a number that this table gave out.
    pub(crate) fn value(&self, number: u32) -> &T {
        &self.values[number as usize]
    }
}

/// A hash map that can be asked and told, but not walked: its order would be nobody's.
#[derive(Debug, Clone)]
pub(crate) struct Lookup<K, V>(FxHashMap<K, V>);

impl<K, V> Default for Lookup<K, V> {
    fn default() -> Self {
        Self(FxHashMap::default())
    }
}

impl<K: Eq + Hash, V> Lookup<K, V> {
    /// Empty, with room for `count` entries.
    pub(crate) fn with_capacity(count: usize) -> Self {
        Self(FxHashMap::with_capacity_and_hasher(count, rustc_hash::FxBuildHasher))
    }

    /// Whether nothing is known.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is known of `key`.
    pub(crate) fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.0.get(key)
    }

    /// What is known of `key`, to be changed; empty when nothing was.
    pub(crate) fn at(&mut self, key: K) -> &mut V
    where
        V: Default,
    {
        self.0.entry(key).or_default()
    }

    /// Notes `value` for `key`.
    pub(crate) fn insert(&mut self, key: K, value: V) {
        self.0.insert(key, value);
    }

    /// Forgets what is known of `key`.
    pub(crate) fn remove<Q: Eq + Hash + ?Sized>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
    {
        self.0.remove(key);
    }
}
