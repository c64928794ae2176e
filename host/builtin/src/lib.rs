//! The policies that are shipped: each crate below `policies`, compiled to a WebAssembly component when
//! this one is built.
//!
//! What must not enter: running them, and what they answer.

/// A policy that is shipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Builtin {
    /// Its name, by which a ScoringPolicy asks for it.
    pub name: &'static str,
    /// `sha256:` and the hash of its component.
    pub digest: &'static str,
    /// Its component.
    pub component: &'static [u8],
}

/// All of them, by name.
pub const ALL: &[Builtin] = include!(concat!(env!("OUT_DIR"), "/all.rs"));

/// The one of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Builtin> {
    ALL.iter().find(|builtin| builtin.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_a_component_and_found_by_its_name() {
        let names: Vec<&str> = ALL.iter().map(|builtin| builtin.name).collect();
        assert_eq!(names, ["calendar", "formula", "payback", "price-book", "spot-share", "team-rules", "utilization-floor"]);
        for builtin in ALL {
            // The layer that follows the version tells components from core modules.
            assert_eq!(builtin.component[..8], *b"\0asm\x0d\0\x01\0", "{}", builtin.name);
            assert!(builtin.digest.starts_with("sha256:") && builtin.digest.len() == 71, "{}", builtin.digest);
            assert_eq!(find(builtin.name), Some(builtin));
        }
        assert_eq!(find("spot"), None);
    }
}
