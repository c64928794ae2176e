//! Price lists: on-demand by region and type, spot by zone and type.

use std::collections::BTreeMap;

use whittle_model::Micros;

use crate::CatalogError;
use crate::table::Schema;

const PRICES: Schema = Schema { table: "price list", columns: &["region", "instance_type", "micro_usd_per_hour", "zone"], required: 3 };

/// The region whose prices stand in for those of regions that are not listed.
const FALLBACK: &str = "us-east-1";

/// Prices of an hour. An empty list knows no price at all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prices {
    /// Region, then type.
    on_demand: BTreeMap<String, BTreeMap<String, Micros>>,
    /// Zone, then type.
    spot: BTreeMap<String, BTreeMap<String, Micros>>,
}

impl Prices {
    /// The compiled-in on-demand prices of us-east-1.
    #[must_use]
    pub fn builtin() -> Self {
        Self::parse(include_str!("../data/on-demand-prices.csv")).expect("the compiled-in price list reads: a test reads it")
    }

    /// Reads a list with the columns `region,instance_type,micro_usd_per_hour`, in any order, and
    /// optionally `zone`: a line with a zone is a spot price, one without the on-demand price.
    ///
    /// # Errors
    /// On the first line that cannot be read; the error names line, column and value.
    pub fn parse(text: &str) -> Result<Self, CatalogError> {
        let mut prices = Self::default();
        PRICES.read(text, |row| {
            let (region, instance_type, zone) = (row.name(0)?, row.name(1)?, row.text(3));
            let micros = row.number::<i64>(2)?;
            if micros == 0 {
                return Err(row.bad(2, "a price of at least one micro-dollar; leave out what is not for sale"));
            }
            let (all, place) = if zone.is_empty() { (&mut prices.on_demand, region) } else { (&mut prices.spot, zone) };
            if !all.contains_key(place) {
                all.insert(place.to_owned(), BTreeMap::new());
            }
            let repeated = all.get_mut(place).and_then(|types| types.insert(instance_type.to_owned(), Micros(micros)));
            if repeated.is_some() {
                return Err(row.again(format!("the price of {instance_type} in {place}")));
            }
            if !zone.is_empty() && !zone.starts_with(region) {
                return Err(row.bad(3, "a zone of the line's region"));
            }
            Ok(())
        })?;
        Ok(prices)
    }

    /// The region whose on-demand prices count for `region`: itself when listed, else us-east-1.
    ///
    /// # Errors
    /// When neither is listed.
    pub fn price_region(&self, region: &str) -> Result<&str, CatalogError> {
        [region, FALLBACK]
            .iter()
            .find_map(|wanted| self.on_demand.get_key_value(*wanted))
            .map(|(listed, _)| listed.as_str())
            .ok_or_else(|| CatalogError::NoPriceList { region: region.to_owned(), listed: self.on_demand.keys().cloned().collect() })
    }

    /// The on-demand price of a type as listed for exactly this region.
    #[must_use]
    pub fn on_demand(&self, region: &str, instance_type: &str) -> Option<Micros> {
        self.on_demand.get(region)?.get(instance_type).copied()
    }

    /// The spot price of a type in a zone, when listed.
    #[must_use]
    pub fn spot(&self, zone: &str, instance_type: &str) -> Option<Micros> {
        self.spot.get(zone)?.get(instance_type).copied()
    }

    /// Lists an on-demand price, or replaces it.
    pub fn set_on_demand(&mut self, region: &str, instance_type: &str, price: Micros) {
        set(&mut self.on_demand, region, instance_type, price);
    }

    /// Lists a spot price, or replaces it.
    pub fn set_spot(&mut self, zone: &str, instance_type: &str, price: Micros) {
        set(&mut self.spot, zone, instance_type, price);
    }

    /// Whether any spot price is listed.
    #[must_use]
    pub fn lists_spot(&self) -> bool {
        !self.spot.is_empty()
    }
}

fn set(all: &mut BTreeMap<String, BTreeMap<String, Micros>>, place: &str, instance_type: &str, price: Micros) {
    match all.get_mut(place) {
        Some(types) => types.insert(instance_type.to_owned(), price),
        None => all.entry(place.to_owned()).or_default().insert(instance_type.to_owned(), price),
    };
}
