//! Where spot prices come from when nobody asks AWS: a list, or a seeded model for simulations.

use whittle_model::Micros;

/// Where spot prices come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spot {
    /// The price list alone; what it does not list is not for sale as spot.
    Listed,
    /// The on-demand price, until the spot prices have been heard: they are never above it for long.
    ListPrice,
    /// The model.
    Model(SpotModel),
}

/// A model of spot prices, not real ones: a fixed share of the on-demand price, between 25 and 60
/// percent, that is alike within a family, differs less between its zones and little between its
/// sizes. The same seed gives the same prices on every machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpotModel {
    /// Chooses among the possible markets.
    pub seed: u64,
}

/// Shares of the on-demand price, in thousandths: the least, and how far family, zone and size may
/// each raise it.
const LEAST: u64 = 250;
const BY_FAMILY: u64 = 240;
const BY_ZONE: u64 = 80;
const BY_TYPE: u64 = 30;

impl SpotModel {
    /// The price of an hour of a type in a zone.
    #[must_use]
    pub fn price(self, instance_type: &str, zone: &str, on_demand: Micros) -> Micros {
        let share = i64::try_from(self.thousandths(instance_type, zone)).unwrap_or(1000);
        let scaled = i128::from(on_demand.0) * i128::from(share) / 1000;
        Micros(i64::try_from(scaled).unwrap_or(on_demand.0).max(1))
    }

    /// One line for the assumptions of a result.
    #[must_use]
    pub fn describe(self) -> String {
        let most = LEAST + BY_FAMILY + BY_ZONE + BY_TYPE;
        format!("spot prices: seeded model, seed {}, {}-{} % of on-demand; not real prices", self.seed, LEAST / 10, most / 10)
    }

    fn thousandths(self, instance_type: &str, zone: &str) -> u64 {
        let family = instance_type.split_once('.').map_or(instance_type, |(family, _)| family);
        LEAST
            + self.draw(&["family", family], BY_FAMILY)
            + self.draw(&["zone", family, zone], BY_ZONE)
            + self.draw(&["type", instance_type, zone], BY_TYPE)
    }

    /// A number from zero to `most` that depends on the seed and the parts alone.
    fn draw(self, parts: &[&str], most: u64) -> u64 {
        // FNV-1a over the parts, then the finalizer of SplitMix64: both are fixed integer maps.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64 ^ self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for byte in parts.iter().flat_map(|part| part.bytes().chain([0])) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (hash ^ (hash >> 31)) % (most + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_stay_within_what_the_model_says_and_use_its_range() {
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..50 {
            for family in ["m5", "c7g", "r6a", "x2idn"] {
                for zone in ["us-east-1a", "us-east-1b"] {
                    let share = SpotModel { seed }.price(&format!("{family}.large"), zone, Micros(1000)).0;
                    assert!((250..=600).contains(&share), "{share}");
                    seen.insert(share / 50);
                }
            }
        }
        assert!(seen.len() >= 6, "{seen:?}");
    }

    #[test]
    fn a_family_is_alike_and_a_seed_changes_the_market() {
        let model = SpotModel { seed: 1 };
        let share = |model: SpotModel, name: &str, zone: &str| model.price(name, zone, Micros(1000)).0;
        let sizes = ["large", "xlarge", "2xlarge", "4xlarge"].map(|size| share(model, &format!("m5.{size}"), "us-east-1a"));
        let spread = sizes.iter().max().unwrap() - sizes.iter().min().unwrap();
        assert!(spread <= 30, "{sizes:?}");
        assert_eq!(share(model, "m5.large", "us-east-1a"), share(SpotModel { seed: 1 }, "m5.large", "us-east-1a"));
        let others: std::collections::BTreeSet<i64> = (1..20).map(|seed| share(SpotModel { seed }, "m5.large", "us-east-1a")).collect();
        assert!(others.len() > 10, "{others:?}");
    }

    #[test]
    fn prices_are_at_least_one_and_do_not_overflow() {
        let model = SpotModel { seed: 7 };
        assert_eq!(model.price("m5.large", "us-east-1a", Micros(1)), Micros(1));
        assert!(model.price("m5.large", "us-east-1a", Micros(i64::MAX)).0 > i64::MAX / 5);
        assert_eq!(model.describe(), "spot prices: seeded model, seed 7, 25-60 % of on-demand; not real prices");
    }
}
