//! Policy `price-book`: what capacity really costs under discounts, fees and committed spend.
//!
//! What must not enter: preferences; a price book says what is paid.

mod book;
mod commitment;
mod config;

pub use config::{Commitment, Config, Discount, Fee, Which};

use book::Book;
use commitment::Commitments;
use whittle_sdk::prelude::*;

/// The highest rank and cost that make sense: a million dollars an hour.
const MOST: i64 = 1_000_000_000_000;

/// The policy.
#[derive(Debug)]
pub struct PriceBook {
    book: Book,
    commitments: Option<Commitments>,
}

impl Policy for PriceBook {
    type Config = Config;
    const ABOUT: About = About { name: "price-book", version: env!("CARGO_PKG_VERSION"), documentation: include_str!("../README.md") };

    fn configure(config: Config, setup: &mut Setup) -> Result<Self, String> {
        setup.candidates([CandidateColumn::CostMicros]).answers_cost();
        let book = Book::new(&config, setup)?;
        let commitments = Commitments::new(&config.commitments, setup)?;
        Ok(Self { book, commitments })
    }

    fn open(&mut self, _: Round<'_>) {
        self.book.forget_words();
        self.commitments.iter_mut().for_each(Commitments::forget_words);
    }

    fn price_all(&mut self, tables: &Tables, prices: &mut Prices) {
        let mut costs = tables.column(&CandidateColumn::CostMicros).to_vec();
        self.book.discount(tables, &mut costs);
        let covered = match &mut self.commitments {
            Some(commitments) => commitments.cover(tables, &mut costs),
            None => Vec::new(),
        };
        self.book.charge(tables, &mut costs);
        let before = tables.column(&CandidateColumn::CostMicros);
        let ranks = tables.column(&CandidateColumn::RankMicros);
        for (row, candidate) in tables.candidates().enumerate() {
            let cost = costs[row].clamp(0, MOST);
            // What policies before this one prefer stays: only money that changed moves the rank.
            let change = cost.saturating_sub(before[row]).saturating_add(covered.get(row).copied().unwrap_or(0));
            prices.set(candidate, Price::rank(ranks[row].saturating_add(change).clamp(1, MOST)).cost(cost));
        }
    }
}

whittle_sdk::export!(PriceBook);
