//! Amounts of resources: CPU in thousandths of a core, everything else in whole units (bytes,
//! pods, devices).

use std::borrow::{Borrow, Cow};
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::quantity::{Quantity, QuantityError};

/// Cores, counted in thousandths.
pub const CPU: &str = "cpu";
/// Bytes of memory.
pub const MEMORY: &str = "memory";
/// Pods.
pub const PODS: &str = "pods";
/// Bytes of local disk.
pub const EPHEMERAL_STORAGE: &str = "ephemeral-storage";
/// The pseudo-resource of NodePool limits that counts nodes.
pub const NODES: &str = "nodes";

/// A named vector of amounts. A name that is absent counts zero, and a zero is never stored, so
/// equal amounts are equal values.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Resources(BTreeMap<Name, i64>);

/// The name of a resource. Every pod, node and type names the common ones: these are nobody's own copies.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String")]
struct Name(Cow<'static, str>);

impl std::fmt::Debug for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl From<&str> for Name {
    fn from(name: &str) -> Self {
        let known = [CPU, MEMORY, PODS, EPHEMERAL_STORAGE].into_iter().find(|known| *known == name);
        Self(known.map_or_else(|| Cow::Owned(name.to_owned()), Cow::Borrowed))
    }
}

impl From<String> for Name {
    fn from(name: String) -> Self {
        Self::from(name.as_str())
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl Resources {
    /// Parses one entry of a Kubernetes resource list into the unit its name is counted in.
    ///
    /// # Errors
    /// When the text is no quantity.
    pub fn parse_amount(name: &str, text: &str) -> Result<i64, QuantityError> {
        Quantity::parse(text).map(|quantity| Self::amount(name, quantity))
    }

    /// A quantity in the unit that resource `name` is counted in, rounded up.
    #[must_use]
    pub fn amount(name: &str, quantity: Quantity) -> i64 {
        if name == CPU { quantity.milli_ceil() } else { quantity.units_ceil() }
    }

    /// From pairs of name and amount.
    #[must_use]
    pub fn of(pairs: &[(&str, i64)]) -> Self {
        let mut all = Self::default();
        for (name, amount) in pairs {
            all.set(name, *amount);
        }
        all
    }

    /// The amount of `name`, zero when absent.
    #[must_use]
    pub fn get(&self, name: &str) -> i64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// Sets the amount of `name`.
    pub fn set(&mut self, name: &str, amount: i64) {
        if amount == 0 {
            self.0.remove(name);
        } else if let Some(slot) = self.0.get_mut(name) {
            *slot = amount;
        } else {
            self.0.insert(Name::from(name), amount);
        }
    }

    /// Adds `other`, name by name; saturates.
    pub fn add(&mut self, other: &Self) {
        for (name, amount) in other.iter() {
            self.set(name, self.get(name).saturating_add(amount));
        }
    }

    /// Subtracts `other`, name by name; may go below zero, saturates.
    pub fn subtract(&mut self, other: &Self) {
        for (name, amount) in other.iter() {
            self.set(name, self.get(name).saturating_sub(amount));
        }
    }

    /// Raises each amount to at least `other`'s.
    pub fn raise_to(&mut self, other: &Self) {
        for (name, amount) in other.iter() {
            self.set(name, self.get(name).max(amount));
        }
    }

    /// Whether every amount is at most that of `room`.
    #[must_use]
    pub fn fit_in(&self, room: &Self) -> bool {
        self.iter().all(|(name, amount)| amount <= 0 || amount <= room.get(name))
    }

    /// Names and amounts in the order of names; zeros are not among them.
    pub fn iter(&self) -> impl Iterator<Item = (&str, i64)> {
        self.0.iter().map(|(name, amount)| (&*name.0, *amount))
    }

    /// Whether every amount is zero.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// An amount of resource `name` as people write it: `1500m`, `2`, `512Mi`, `3`.
#[must_use]
pub fn format_amount(name: &str, amount: i64) -> String {
    let bytes = name == MEMORY || name == EPHEMERAL_STORAGE || name.starts_with("hugepages-");
    if name == CPU {
        return if amount % 1000 == 0 { (amount / 1000).to_string() } else { format!("{amount}m") };
    }
    if !bytes || amount == 0 {
        return amount.to_string();
    }
    for (unit, suffix) in [(1i64 << 40, "Ti"), (1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki")] {
        if amount % unit == 0 {
            return format!("{}{suffix}", amount / unit);
        }
    }
    amount.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_amounts_are_equal_values() {
        let mut left = Resources::of(&[(CPU, 500), (MEMORY, 1 << 30)]);
        left.add(&Resources::of(&[(PODS, 1)]));
        left.subtract(&Resources::of(&[(PODS, 1)]));
        assert_eq!(left, Resources::of(&[(MEMORY, 1 << 30), (CPU, 500), (PODS, 0)]));
        assert!(left.fit_in(&Resources::of(&[(CPU, 500), (MEMORY, 1 << 30)])));
        assert!(!left.fit_in(&Resources::of(&[(CPU, 499), (MEMORY, 1 << 30)])));
    }

    #[test]
    fn amounts_read_as_people_write_them() {
        for (name, amount, text) in
            [(CPU, 1500, "1500m"), (CPU, 2000, "2"), (MEMORY, 512 << 20, "512Mi"), (MEMORY, 1000, "1000"), (PODS, 3, "3")]
        {
            assert_eq!(format_amount(name, amount), text);
        }
    }
}
