//! Mutated modules from a seeded fuzzer: whatever becomes of them, the host neither panics nor hangs,
//! and an answer that is let through makes sense.
#![expect(clippy::unwrap_used, reason = "what fails outside a test function fails the test, with its place")]

mod common;

use std::sync::Arc;

use common::guests;
use common::tables::Random;
use serde_json::json;
use whittle_model::policy::{Pricing, RoundFacts, Table, Words};
use whittle_policy::chain::Outcome;
use whittle_policy::{Chain, Limits, Loader, Member};

/// How many mutants; a thousandth of them would already find a missing check.
const MUTANTS: u64 = 10_000;

/// How far the mutants come: refused when loaded or configured, failed in the round, answered.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    refused: u32,
    failed: u32,
    answered: u32,
}

fn mutate(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let mut mutant = bytes.to_vec();
    for _ in 0..=random.below(3) {
        let at = usize::try_from(random.below(mutant.len() as u64)).unwrap();
        let byte = u8::try_from(random.below(256)).unwrap();
        match random.below(8) {
            0 => mutant.insert(at, byte),
            1 => drop(mutant.remove(at)),
            2 => mutant.truncate(at.max(8)),
            3 | 4 => mutant[at] = mutant[at].wrapping_add(1),
            _ => mutant[at] = byte,
        }
    }
    mutant
}

fn try_one(loader: &Loader, bytes: &[u8], tally: &mut Tally) {
    let limits = Limits { fuel: 200_000, memory: 4 << 20 };
    let configured = loader.load(bytes).ok().and_then(|module| module.configure("mutant", &json!({}), limits).ok());
    let Some(policy) = configured else {
        tally.refused += 1;
        return;
    };
    let chain = Chain::new(vec![Member::ready(Arc::new(policy))]);
    let words = Words::default();
    let columns = chain.wants().pricing.as_ref().map_or(0, |wants| wants.candidates.len());
    let facts = RoundFacts { facts: vec![0; chain.wants().round.len()] };
    let tables = Pricing { candidates: Table { rows: 3, columns: vec![vec![30, 20, 10]; columns] }, ..Pricing::default() };
    match chain.open(&words, &facts).and_then(|mut round| round.price(&words, &tables)) {
        Ok(Outcome::Answered(priced)) => {
            let sound = |value: &i64| (0..=whittle_policy::answers::MOST).contains(value);
            assert!(priced.ranks.len() == 3 && priced.ranks.iter().chain(&priced.costs).all(sound) || columns == 0, "{priced:?}");
            tally.answered += 1;
        }
        Ok(Outcome::Held { .. }) | Err(_) => tally.failed += 1,
    }
}

#[test]
fn ten_thousand_mutants_are_survived() {
    let loader = Loader::new(None).unwrap();
    let seeds = ["well-behaved", "absurd-numbers", "wrong-row-count", "huge-answer", "memory-bomb"].map(guests::hostile);
    let mut random = Random(1);
    let mut tally = Tally::default();
    for number in 0..MUTANTS {
        let seed = &seeds[usize::try_from(number).unwrap() % seeds.len()];
        try_one(&loader, &mutate(seed, &mut random), &mut tally);
    }
    assert!(tally.refused > 100 && tally.failed > 100 && tally.answered > 100, "{tally:?}");
    assert_eq!(u64::from(tally.refused + tally.failed + tally.answered), MUTANTS);
}
