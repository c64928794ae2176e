//! Random tables of what a chain wants: seeded, so that a failure can be seen again.

use whittle_model::policy::{Column, Judging, Kind, Pricing, RoundFacts, Table, Wants, Words};

/// A small generator of numbers (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % most
    }

    fn table<C: Column>(&mut self, columns: &[C], rows: usize, words: &Words, sizes: &dyn Fn(&str) -> usize) -> Table {
        let mut table = Table { rows, columns: Vec::new() };
        for column in columns {
            let name = column.name();
            let mut values: Vec<i64> = (0..rows)
                .map(|_| {
                    let most = match column.kind() {
                        Kind::Bool => 2,
                        Kind::Word => words.list().len() as u64,
                        Kind::Row => sizes(&name) as u64,
                        Kind::Int if name == "mix" => 3,
                        Kind::Int => 10_000,
                    };
                    i64::try_from(self.below(most.max(1))).unwrap()
                })
                .collect();
            // The contract: rows that belong to a move or a mix stand together.
            if name == "move" || (C::TABLE == "mix" && name == "mix") {
                values.sort_unstable();
            }
            table.columns.push(values);
        }
        table
    }
}

/// Words that policies know, and some they do not.
pub fn words() -> Words {
    let mut words = Words::default();
    for word in ["spot", "on-demand", "us-east-1a", "us-east-1b", "ci", "web", "underutilized", "drifted", "empty"] {
        words.intern(word);
    }
    words
}

pub fn facts(random: &mut Random, wants: &Wants) -> RoundFacts {
    RoundFacts { facts: wants.round.iter().map(|_| i64::try_from(random.below(1_000)).unwrap()).collect() }
}

pub fn pricing(random: &mut Random, wants: &Wants, words: &Words) -> Pricing {
    let wants = wants.pricing.clone().unwrap_or_default();
    let (rows, askers, mix) = (random.below(60) as usize, 1 + random.below(5) as usize, random.below(20) as usize);
    let sizes = |_: &str| askers;
    Pricing {
        candidates: random.table(&wants.candidates, rows, words, &sizes),
        askers: random.table(&wants.askers, askers, words, &sizes),
        mix: random.table(&wants.mix, mix, words, &sizes),
    }
}

pub fn judging(random: &mut Random, wants: &Wants, words: &Words) -> Judging {
    let wants = wants.judging.clone().unwrap_or_default();
    let (moves, nodes, askers) = (1 + random.below(8) as usize, 1 + random.below(20) as usize, 1 + random.below(5) as usize);
    let sizes = |name: &str| match name {
        "move" => moves,
        "node" => nodes,
        _ => askers,
    };
    Judging {
        moves: random.table(&wants.moves, moves, words, &sizes),
        nodes: random.table(&wants.nodes, nodes, words, &sizes),
        pods: random.table(&wants.pods, 20, words, &sizes),
        pools: random.table(&wants.pools, 10, words, &sizes),
        askers: random.table(&wants.askers, askers, words, &sizes),
        mix: random.table(&wants.mix, 10, words, &sizes),
    }
}
