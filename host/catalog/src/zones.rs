//! Which zones of a region offer an instance type: for three regions compiled in, for others as listed.

use std::collections::{BTreeMap, BTreeSet};

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

/// Which zones of one region offer which instance types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offered {
    /// The zones of the region, ordered.
    zones: Vec<String>,
    /// For each type the places of its zones in `zones`, ordered.
    types: BTreeMap<String, Vec<usize>>,
    /// Whether a type that is not listed is taken to be offered in every zone.
    unlisted_everywhere: bool,
}

impl Offered {
    /// The compiled-in table. A type that it does not know at all, as a replaced type table may bring one, is taken to
    /// be offered in every zone.
    ///
    /// # Errors
    /// When the region is not compiled in.
    pub fn builtin(region: &str) -> Result<Self, CatalogError> {
        let at = place(region).ok_or_else(|| CatalogError::UnknownRegion { region: region.to_owned() })?;
        let zones: Vec<String> = ZONES[at].iter().map(|zone| (*zone).to_owned()).collect();
        let mut types = BTreeMap::new();
        OFFERINGS.read(include_str!("../data/zone-offerings.csv"), |row| {
            let letters = row.text(1 + at);
            let offers = |zone: &String| zone.ends_with(|letter| letters.contains(letter));
            types.insert(row.name(0)?.to_owned(), zones.iter().enumerate().filter(|(_, zone)| offers(zone)).map(|(at, _)| at).collect());
            Ok(())
        })?;
        Ok(Self { zones, types, unlisted_everywhere: true })
    }

    /// A list of types and zones that offer them, in any order, as an account sees its region. What is not listed is
    /// not offered.
    #[must_use]
    pub fn listed(offers: &BTreeSet<(String, String)>) -> Self {
        let zones: BTreeSet<&String> = offers.iter().map(|(_, zone)| zone).collect();
        let zones: Vec<String> = zones.into_iter().cloned().collect();
        let mut types: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (instance_type, zone) in offers {
            types.entry(instance_type.clone()).or_default().extend(zones.binary_search(zone));
        }
        Self { zones, types, unlisted_everywhere: false }
    }

    /// The zones of the region, ordered.
    #[must_use]
    pub fn zones(&self) -> &[String] {
        &self.zones
    }

    /// The zones that offer a type, ordered.
    pub fn offering(&self, instance_type: &str) -> impl Iterator<Item = &str> {
        let listed = self.types.get(instance_type);
        let all = listed.is_none() && self.unlisted_everywhere;
        let some = listed.into_iter().flatten().map(|at| self.zones[*at].as_str());
        some.chain(self.zones.iter().filter(move |_| all).map(String::as_str))
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
            let offerings = Offered::builtin(region).unwrap();
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
