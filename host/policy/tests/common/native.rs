//! A policy compiled natively, behind the interface of a judge.

use whittle_model::policy::{
    AskerColumn, CandidateColumn, JudgingWants, MixRowColumn, MoveKind, PriceColumn, PricingWants, ScoreColumn, Setup, Wants, Words,
};
use whittle_policy::{Failure, Judge, Sitting, View};
use whittle_sdk::{Hook, Loaded, Policy};

/// A native policy. A panic in it is a panic of the test.
pub struct Native<P> {
    config: String,
    setup: Setup,
    policy: std::marker::PhantomData<fn() -> P>,
}

fn names(loaded: &whittle_sdk::Setup, hook: Hook, table: &str) -> Vec<String> {
    loaded.tables(hook).into_iter().find(|(name, _)| *name == table).map(|(_, columns)| columns).unwrap_or_default()
}

/// The kinds of moves asked about; all when none is named.
fn kinds(named: &[String]) -> Vec<MoveKind> {
    MoveKind::ALL.into_iter().filter(|kind| named.is_empty() || named.iter().any(|name| name == kind.name())).collect()
}

impl<P: Policy + 'static> Native<P> {
    pub fn new(config: &serde_json::Value) -> Self {
        let loaded = Loaded::<P>::configure(&config.to_string()).unwrap();
        let said = loaded.setup();
        let (price, score) = (Hook::PriceCandidates, Hook::ScoreMoves);
        let pricing = (!said.tables(price).is_empty()).then(|| PricingWants {
            candidates: Setup::columns::<CandidateColumn>(&names(said, price, "candidates")).unwrap(),
            askers: Setup::columns::<AskerColumn>(&names(said, price, "askers")).unwrap(),
            mix: Setup::columns::<MixRowColumn>(&names(said, price, "mix")).unwrap(),
        });
        let judging = (!said.tables(score).is_empty()).then(|| JudgingWants {
            kinds: kinds(said.kinds()),
            moves: Setup::columns(&names(said, score, "moves")).unwrap(),
            nodes: Setup::columns(&names(said, score, "move-nodes")).unwrap(),
            pods: Setup::columns(&names(said, score, "move-pods")).unwrap(),
            pools: Setup::columns(&names(said, score, "move-pools")).unwrap(),
            askers: Setup::columns(&names(said, score, "askers")).unwrap(),
            mix: Setup::columns(&names(said, score, "mix")).unwrap(),
        });
        let setup = Setup {
            prices: if pricing.is_some() { Setup::columns::<PriceColumn>(&said.answers(price)).unwrap() } else { Vec::new() },
            scores: if judging.is_some() { Setup::columns::<ScoreColumn>(&said.answers(score)).unwrap() } else { Vec::new() },
            kinds: if judging.is_some() { kinds(said.kinds()) } else { Vec::new() },
            reasons: said.reasons().to_vec(),
            wants: Wants {
                round: Setup::columns(&said.round_columns()).unwrap(),
                pricing,
                judging,
                mix_keys: said.mix_keys().to_vec(),
                depends_on_mix: said.depends_on_mix(),
            },
        };
        Self { config: config.to_string(), setup, policy: std::marker::PhantomData }
    }
}

impl<P: Policy + 'static> Judge for Native<P> {
    fn name(&self) -> &str {
        P::ABOUT.name
    }

    fn setup(&self) -> &Setup {
        &self.setup
    }

    fn open(&self, words: &Words, facts: &[i64]) -> Result<Box<dyn Sitting>, Failure> {
        let mut loaded = Loaded::<P>::configure(&self.config).map_err(Failure::Refused)?;
        loaded.open(words.list().to_vec(), facts.to_vec());
        Ok(Box::new(Seated { loaded, sent: words.list().len() }))
    }
}

struct Seated<P> {
    loaded: Loaded<P>,
    sent: usize,
}

impl<P: Policy> Seated<P> {
    fn take(&mut self, hook: Hook, words: &Words, views: &[View<'_>], order: &[&str]) -> (Vec<String>, Vec<(usize, Vec<i64>)>) {
        let fresh = words.list()[self.sent..].to_vec();
        self.sent = words.list().len();
        let asked = self.loaded.setup().tables(hook);
        let table = |view: &View<'_>| (view.rows, view.columns.concat());
        let tables = asked.iter().map(|(name, _)| table(&views[order.iter().position(|table| table == name).unwrap()])).collect();
        (fresh, tables)
    }
}

impl<P: Policy> Sitting for Seated<P> {
    fn price(&mut self, words: &Words, views: &[View<'_>; 3]) -> Result<Vec<i64>, Failure> {
        let (words, tables) = self.take(Hook::PriceCandidates, words, views, &["candidates", "askers", "mix"]);
        Ok(self.loaded.price(words, tables))
    }

    fn score(&mut self, words: &Words, views: &[View<'_>; 6]) -> Result<Vec<i64>, Failure> {
        let order = ["moves", "move-nodes", "move-pods", "move-pools", "askers", "mix"];
        let (words, tables) = self.take(Hook::ScoreMoves, words, views, &order);
        Ok(self.loaded.score(words, tables))
    }

    fn fuel(&self) -> u64 {
        0
    }
}
