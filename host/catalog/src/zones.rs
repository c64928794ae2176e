//! Which zones of the three known regions offer an instance type.

use crate::CatalogError;
use crate::table::Schema;

/// The regions whose zone offerings are compiled in, in the order of their columns.
pub const REGIONS: [&str; 3] = ["us-east-1", "us-west-2", "eu-west-1"];

const ZONES: [&[&str]; 3] = [
    &["us-east-1a", "us-east-1b", "us-east-1c", "us-east-1d", "us-east-1e", "us-east-1f"],
    &["us-west-2a", "us-west-2b", "us-west-2c", "us-west-2d"],
    &["eu-west-1a", "eu-west-1b", "eu-west-1c"],
];

const ZONE_ID_PREFIXES: [&str; 3] = ["use1-az", "usw2-az", "euw1-az"];

const OFFERINGS: Schema =
    Schema { table: "zone offerings table", columns: &["instance_type", REGIONS[0], REGIONS[1], REGIONS[2]], required: 1 + REGIONS.len() };

/// The zones of a region, ordered; `None` for a region that is not compiled in.
#[must_use]
pub fn zones_of(region: &str) -> Option<&'static [&'static str]> {
    place(region).map(|at| ZONES[at])
}

/// The zone id assumed for a zone: `az1` for its letter `a`, and so on. AWS deals these ids to zone
/// names for each account anew; who knows the account's own passes them in the options.
#[must_use]
pub fn assumed_zone_id(zone: &str) -> Option<String> {
    let (at, number) =
        ZONES.iter().enumerate().find_map(|(at, zones)| zones.iter().position(|z| *z == zone).map(|number| (at, number + 1)))?;
    Some(format!("{}{number}", ZONE_ID_PREFIXES[at]))
}

fn place(region: &str) -> Option<usize> {
    REGIONS.iter().position(|known| *known == region)
}

/// The offerings of one region.
pub(crate) struct ZoneOfferings {
    zones: &'static [&'static str],
    /// Each type of the table with the letters of its zones in this region; ordered by type.
    letters: Vec<(&'static str, &'static str)>,
}

impl ZoneOfferings {
    /// # Errors
    /// When the region is not compiled in.
    pub(crate) fn of(region: &str) -> Result<Self, CatalogError> {
        let at = place(region).ok_or_else(|| CatalogError::UnknownRegion { region: region.to_owned() })?;
        let mut letters = Vec::with_capacity(1500);
        OFFERINGS.read(include_str!("../data/zone-offerings.csv"), |row| {
            letters.push((row.name(0)?, row.text(1 + at)));
            Ok(())
        })?;
        letters.sort_unstable();
        Ok(Self { zones: ZONES[at], letters })
    }

    /// The zones of the region.
    pub(crate) const fn zones(&self) -> &'static [&'static str] {
        self.zones
    }

    /// The zones that offer a type, ordered. A type that the table does not know at all, as a
    /// replaced type table may bring one, is taken to be offered in every zone.
    pub(crate) fn offering(&self, instance_type: &str) -> impl Iterator<Item = &'static str> {
        let letters = self.letters.binary_search_by(|(name, _)| (*name).cmp(instance_type)).ok().map(|at| self.letters[at].1);
        self.zones.iter().copied().filter(move |zone| letters.is_none_or(|some| zone.ends_with(|letter| some.contains(letter))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_of_a_type_are_those_of_the_region_asked_for() {
        for (region, instance_type, zones) in [
            ("us-east-1", "a1.2xlarge", &["us-east-1a", "us-east-1b", "us-east-1c"][..]),
            ("us-west-2", "a1.2xlarge", &["us-west-2a", "us-west-2c"]),
            ("eu-west-1", "mac-m3ultra.metal", &[]),
            ("us-east-1", "trn2.48xlarge", &[]),
            ("eu-west-1", "z99.large", &["eu-west-1a", "eu-west-1b", "eu-west-1c"]),
        ] {
            let offerings = ZoneOfferings::of(region).unwrap();
            assert_eq!(offerings.offering(instance_type).collect::<Vec<_>>(), zones, "{region} {instance_type}");
        }
    }

    #[test]
    fn assumed_zone_ids_count_the_letters() {
        assert_eq!(assumed_zone_id("us-east-1f").as_deref(), Some("use1-az6"));
        assert_eq!(assumed_zone_id("eu-west-1a").as_deref(), Some("euw1-az1"));
        assert_eq!(assumed_zone_id("us-east-1z"), None);
    }
}
