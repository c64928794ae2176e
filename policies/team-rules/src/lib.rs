//! Policy `team-rules`: what the pods of a namespace, or with a label, may be bought for. A rule vetoes,
//! it prices nothing. What must not enter: preferences; they are for policies that rank.

mod compiled;
mod config;

pub use config::{Bounds, Config, Lists, Match, Rule};

use compiled::Compiled;
use whittle_sdk::prelude::*;

/// The policy: rules, compiled to what is compared row by row.
#[derive(Debug)]
pub struct TeamRules(Compiled);

impl Policy for TeamRules {
    type Config = Config;
    const ABOUT: About = About { name: "team-rules", version: env!("CARGO_PKG_VERSION"), documentation: include_str!("../README.md") };

    fn configure(config: Config, setup: &mut Setup) -> Result<Self, String> {
        Compiled::new(&config, setup).map(Self)
    }

    fn open(&mut self, _: Round<'_>) {
        self.0.forget_words();
    }

    fn price_all(&mut self, tables: &Tables, prices: &mut Prices) {
        self.0.veto(tables, prices);
    }
}

whittle_sdk::export!(TeamRules);
