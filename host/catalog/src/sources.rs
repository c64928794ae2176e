//! The tables a catalogue is made of, and how much of them is assumed.

use crate::{CatalogOptions, Facts, Offered, Prices, Spot, SpotModel, assumed_zone_id};

/// Types, prices and spot prices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sources {
    /// Instance types.
    pub facts: Facts,
    /// Price list.
    pub prices: Prices,
    /// Where spot prices come from.
    pub spot: Spot,
    /// Which zones offer which types; `None` for the compiled-in table, which knows few regions.
    pub offered: Option<Offered>,
}

impl Sources {
    /// The compiled-in tables, with modelled spot prices.
    #[must_use]
    pub fn builtin(seed: u64) -> Self {
        Self { facts: Facts::builtin(), prices: Prices::builtin(), spot: Spot::Model(SpotModel { seed }), offered: None }
    }

    /// The same with another price list. If that lists spot prices, they count instead of the model.
    #[must_use]
    pub fn with_prices(self, prices: Prices) -> Self {
        let spot = if prices.lists_spot() { Spot::Listed } else { self.spot };
        Self { prices, spot, ..self }
    }

    /// The same with another table of types.
    #[must_use]
    pub fn with_facts(self, facts: Facts) -> Self {
        Self { facts, ..self }
    }

    /// What a catalogue made of these assumes, one line each.
    #[must_use]
    pub fn assumptions(&self, options: &CatalogOptions) -> Vec<String> {
        let region = &options.region;
        let mut lines = Vec::new();
        if let Ok(priced) = self.prices.price_region(region)
            && priced != region
        {
            lines.push(format!("on-demand prices: those of {priced}, for want of a list of {region}"));
        }
        lines.push(match self.spot {
            Spot::Model(model) => model.describe(),
            Spot::Listed => "spot prices: as listed; what is not listed is not for sale as spot".to_owned(),
            Spot::ListPrice => "spot prices: not heard yet; taken for the on-demand prices".to_owned(),
        });
        if self.offered.is_some() {
            return lines;
        }
        let zones = crate::zones_of(region).unwrap_or_default();
        if let Some(zone) = zones.iter().find(|zone| !options.zone_ids.contains_key(**zone))
            && let Some(id) = assumed_zone_id(zone)
        {
            lines.push(format!("zone ids: numbered by letter ({zone} is {id}); every AWS account has its own"));
        }
        lines
    }
}
