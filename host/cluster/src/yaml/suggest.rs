//! The word that was probably meant.

/// The candidate nearest to `written`, if one is near enough to have been meant: equal but for
/// upper and lower case, or at most a third of its letters away.
#[must_use]
pub fn closest<'a>(written: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let low = written.to_lowercase();
    let ranked = candidates.into_iter().map(|candidate| {
        let distance = if candidate.to_lowercase() == low { 0 } else { strsim::osa_distance(&low, &candidate.to_lowercase()) };
        (distance, candidate)
    });
    let (distance, best) = ranked.min_by_key(|(distance, _)| *distance)?;
    (distance <= (best.chars().count() / 3).max(1)).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_found_and_far_ones_are_not() {
        let fields = ["requirements", "taints", "nodeClassRef", "expireAfter"];
        for (written, meant) in [
            ("requirments", Some("requirements")),
            ("Taints", Some("taints")),
            ("nodeclassref", Some("nodeClassRef")),
            ("kubelet", None),
            ("", None),
        ] {
            assert_eq!(closest(written, fields), meant, "{written}");
        }
    }
}
