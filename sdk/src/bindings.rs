//! The generated bindings of the contract, and what turns them into the SDK's types. What must not
//! enter: anything a policy's author would call.
#![expect(missing_docs, reason = "the generated items are documented in policy.wit")]

use crate::{Loaded, Policy};
use exports::whittle::policy::scoring;

wit_bindgen::generate!({
    path: "wit",
    world: "policy",
    pub_export_macro: true,
    export_macro_name: "export_component",
    default_bindings_module: "whittle_sdk::bindings",
});

/// The manifest of a policy.
#[must_use]
pub fn manifest<P: Policy>() -> scoring::About {
    scoring::About {
        name: P::ABOUT.name.to_owned(),
        version: P::ABOUT.version.to_owned(),
        documentation: P::ABOUT.documentation.to_owned(),
        config_schema: P::schema().to_string(),
    }
}

/// The setup as the contract writes it.
#[must_use]
pub fn setup(setup: &crate::Setup) -> scoring::Setup {
    let hook = |hook: crate::Hook| {
        let tables = setup.tables(hook);
        (!tables.is_empty()).then(|| scoring::Hook {
            tables: tables.into_iter().map(|(table, columns)| scoring::Wanted { table: table.to_owned(), columns }).collect(),
            answers: setup.answers(hook),
            kinds: if hook == crate::Hook::ScoreMoves { setup.kinds().to_vec() } else { Vec::new() },
        })
    };
    scoring::Setup {
        round: setup.round_columns(),
        price_candidates: hook(crate::Hook::PriceCandidates),
        score_moves: hook(crate::Hook::ScoreMoves),
        mix_keys: setup.mix_keys().to_vec(),
        depends_on_mix: setup.depends_on_mix(),
        reasons: setup.reasons().to_vec(),
    }
}

fn configured<P>(loaded: &mut Option<Loaded<P>>) -> &mut Loaded<P> {
    loaded.as_mut().expect("the host calls configure before anything else")
}

/// Begins a round.
pub fn open<P: Policy>(loaded: &mut Option<Loaded<P>>, round: scoring::Round) {
    configured(loaded).open(round.words, round.facts);
}

fn plain(tables: Vec<scoring::Table>) -> Vec<(usize, Vec<i64>)> {
    tables.into_iter().map(|table| (table.rows as usize, table.cells)).collect()
}

/// Prices candidates.
pub fn price<P: Policy>(loaded: &mut Option<Loaded<P>>, words: Vec<String>, tables: Vec<scoring::Table>) -> Vec<i64> {
    configured(loaded).price(words, plain(tables))
}

/// Scores moves.
pub fn score<P: Policy>(loaded: &mut Option<Loaded<P>>, words: Vec<String>, tables: Vec<scoring::Table>) -> Vec<i64> {
    configured(loaded).score(words, plain(tables))
}
