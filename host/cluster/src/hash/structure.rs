//! The hash of structured values of `github.com/mitchellh/hashstructure/v2` 2.0.2, format 2, with slices as
//! sets, zero values ignored and nil as zero.
//!
//! What must not enter: which fields count.

use std::collections::BTreeMap;

/// FNV-1, 64 bits: <https://datatracker.ietf.org/doc/html/draft-eastlake-fnv>.
pub(super) fn bytes(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| hash.wrapping_mul(0x0100_0000_01b3) ^ u64::from(*byte))
}

/// A text.
pub(super) fn text(text: &str) -> u64 {
    bytes(text.as_bytes())
}

/// An integer of 64 bits.
pub(super) fn int64(value: i64) -> u64 {
    bytes(&value.to_le_bytes())
}

/// An integer of 32 bits.
pub(super) fn int32(value: i32) -> u64 {
    bytes(&value.to_le_bytes())
}

/// A truth value.
pub(super) fn boolean(value: bool) -> u64 {
    bytes(&[u8::from(value)])
}

/// A list, as a set: equal members cancel each other out.
pub(super) fn set(members: impl IntoIterator<Item = u64>) -> u64 {
    members.into_iter().fold(0, |hash, member| hash ^ member)
}

/// Keys and values.
pub(super) fn map(entries: &BTreeMap<String, String>) -> u64 {
    finish(entries.iter().fold(0, |hash, (key, value)| hash ^ ordered(text(key), text(value))))
}

/// A struct: its type's name, then its fields in the order of their declaration. A field that is ignored or
/// zero leaves no trace; each other one is mixed in, so order and number matter.
pub(super) struct Struct(u64);

impl Struct {
    /// Of the type with this name.
    pub(super) fn new(name: &str) -> Self {
        Self(text(name))
    }

    /// Its next field; `None` when zero.
    pub(super) fn field(self, name: &str, value: Option<u64>) -> Self {
        match value {
            Some(value) => Self(finish(self.0 ^ ordered(text(name), value))),
            None => self,
        }
    }

    /// The hash.
    pub(super) fn hash(self) -> u64 {
        self.0
    }
}

fn ordered(first: u64, second: u64) -> u64 {
    let mut both = [0; 16];
    both[..8].copy_from_slice(&first.to_le_bytes());
    both[8..].copy_from_slice(&second.to_le_bytes());
    bytes(&both)
}

fn finish(hash: u64) -> u64 {
    bytes(&hash.to_le_bytes())
}
