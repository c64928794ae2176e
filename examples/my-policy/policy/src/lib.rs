//! Some instance families are worth more here than their price says: they rank as if they cost less.
//!
//! What must not enter: clocks, randomness, files, network. A policy answers from its tables alone.

use whittle_sdk::prelude::*;

/// How it is configured. Every field may be left out.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, crate = "whittle_sdk::serde")]
#[schemars(crate = "whittle_sdk::schemars")]
pub struct Config {
    /// The families that are preferred.
    pub families: Vec<String>,
    /// By how many percent of their price.
    #[schemars(range(min = 0, max = 99))]
    pub percent: i64,
}

impl Default for Config {
    fn default() -> Self {
        Self { families: vec!["m8i".to_owned()], percent: 40 }
    }
}

/// The policy.
#[derive(Debug)]
pub struct Preference(Config);

impl Policy for Preference {
    type Config = Config;
    const ABOUT: About = About {
        name: env!("CARGO_PKG_NAME"),
        version: env!("CARGO_PKG_VERSION"),
        documentation: "Prefers some instance families: they rank `percent` below their price.",
    };

    fn configure(config: Config, setup: &mut Setup) -> Result<Self, String> {
        setup.candidates([CandidateColumn::Family]);
        Ok(Self(config))
    }

    fn price(&self, candidate: Candidate<'_>) -> Price {
        if self.0.families.iter().any(|family| family == candidate.family()) {
            Price::rank(candidate.rank_micros() * (100 - self.0.percent) / 100)
        } else {
            Price::unchanged()
        }
    }
}

whittle_sdk::export!(Preference);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preferred_family_ranks_below_its_price() {
        let row = |family: &str| [(CandidateColumn::Family, family.into()), (CandidateColumn::RankMicros, 100_000.into())];
        let case = Case::new(json!({"families": ["m7g"], "percent": 10})).candidate(row("m7g")).candidate(row("m7i"));
        let verdicts = case.price::<Preference>().unwrap();
        assert_eq!(verdicts[0], Verdict::Answer { value: 90_000, cost: None });
        assert_eq!(verdicts[1], Verdict::Answer { value: 100_000, cost: None });
    }
}
