//! Which policies a NodePool's annotation names, in which order. What must not enter: whether they
//! exist.

/// A policy named by a NodePool or by the setting that comes before all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// Its name.
    pub name: String,
    /// Whether the pool goes on when it does not exist or is not ready: it was written `name?`.
    pub optional: bool,
}

/// The chain of a pool: the required policies, then those of its annotation `whittle.sh/policy`. Names
/// are divided by commas; one named again is asked once, at its first place, and is optional only where
/// it is everywhere.
#[must_use]
pub fn names(required: &str, annotation: &str) -> Vec<Named> {
    let mut chain: Vec<Named> = Vec::new();
    for word in required.split(',').chain(annotation.split(',')).map(str::trim) {
        let (name, optional) = word.strip_suffix('?').map_or((word, false), |name| (name.trim_end(), true));
        match chain.iter_mut().find(|named| named.name == name) {
            Some(named) => named.optional &= optional,
            None if name.is_empty() => {}
            None => chain.push(Named { name: name.to_owned(), optional }),
        }
    }
    chain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn required_policies_come_first_and_nobody_can_drop_or_soften_them() {
        let read = |required, annotation| {
            let text = |named: Named| format!("{}{}", named.name, if named.optional { "?" } else { "" });
            names(required, annotation).into_iter().map(text).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(read("base", "team-a, spot-share?"), "base team-a spot-share?");
        assert_eq!(read("base", "base?,team-a"), "base team-a");
        assert_eq!(read("", " a? ,,a "), "a");
        assert_eq!(read("", ""), "");
    }
}
