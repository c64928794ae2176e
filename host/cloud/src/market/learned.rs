//! Memory that nodes were seen to have. Hypervisor, firmware and kernel keep a share that nobody publishes, so the first
//! node of a type and image tells more than the formula.

use std::collections::BTreeMap;

use whittle_model::{Duration, Timestamp};

/// How long an observation counts that is not made again; Karpenter's.
const KEPT: Duration = Duration::minutes(60 * 24 * 60);

#[derive(Debug, Clone, Copy)]
struct Seen {
    bytes: i64,
    at: Timestamp,
}

/// The least memory seen, by image and type.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    seen: BTreeMap<String, BTreeMap<String, Seen>>,
}

impl Learned {
    /// Whether the amount is less than what was known, or the first.
    pub(crate) fn learn(&mut self, image: &str, instance_type: &str, bytes: i64, now: Timestamp) -> bool {
        if image.is_empty() || bytes <= 0 {
            return false;
        }
        let types = self.seen.entry(image.to_owned()).or_default();
        let known = types.get(instance_type).map(|seen| seen.bytes);
        if known.is_some_and(|known| known < bytes) {
            return false;
        }
        types.insert(instance_type.to_owned(), Seen { bytes, at: now });
        known != Some(bytes)
    }

    /// Forgets what was not seen for long; whether anything was.
    pub(crate) fn forget(&mut self, now: Timestamp) -> bool {
        let count = |seen: &BTreeMap<String, BTreeMap<String, Seen>>| seen.values().map(BTreeMap::len).sum::<usize>();
        let before = count(&self.seen);
        for types in self.seen.values_mut() {
            types.retain(|_, seen| now.since(seen.at) < KEPT);
        }
        self.seen.retain(|_, types| !types.is_empty());
        count(&self.seen) < before
    }

    /// Bytes by type, for these images.
    pub(crate) fn of<'i>(&self, images: impl Iterator<Item = &'i str>) -> BTreeMap<String, BTreeMap<String, i64>> {
        let bytes = |types: &BTreeMap<String, Seen>| types.iter().map(|(name, seen)| (name.clone(), seen.bytes)).collect();
        images.filter_map(|image| Some((image.to_owned(), bytes(self.seen.get(image)?)))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_counts_until_it_was_not_seen_for_sixty_days() {
        let day = |days: i64| Timestamp(0).plus(Duration::minutes(days * 24 * 60));
        let mut learned = Learned::default();
        for (image, name, bytes, at, news) in [
            ("ami-1", "m5.large", 800, 0, true),
            ("ami-1", "m5.large", 900, 1, false),
            ("ami-1", "m5.large", 700, 2, true),
            ("ami-1", "m5.large", 700, 10, false),
            ("ami-2", "m5.large", 600, 3, true),
            ("ami-1", "c5.large", 500, 3, true),
            ("", "c5.large", 1, 3, false),
            ("ami-1", "c5.large", 0, 3, false),
        ] {
            assert_eq!(learned.learn(image, name, bytes, day(at)), news, "{image} {name} {bytes}");
        }
        let of = |learned: &Learned, images: &[&str]| format!("{:?}", learned.of(images.iter().copied()));
        assert_eq!(of(&learned, &["ami-1", "ami-9"]), r#"{"ami-1": {"c5.large": 500, "m5.large": 700}}"#);
        assert!(!learned.forget(day(62)));
        assert!(learned.forget(day(63)));
        assert_eq!(of(&learned, &["ami-1", "ami-2"]), r#"{"ami-1": {"m5.large": 700}}"#, "seen again on day 10");
        assert!(learned.forget(day(70)));
        assert_eq!(of(&learned, &["ami-1"]), "{}");
    }
}
