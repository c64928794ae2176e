//! Guests that misbehave are cut off, named, and survived.

mod common;

use std::sync::Arc;

use common::guests;
use serde_json::json;
use whittle_model::policy::{Pricing, RoundFacts, Table, Words};
use whittle_policy::chain::Outcome;
use whittle_policy::{Chain, Failure, Limits, LoadError, Loader, Member, OnFailure, Stance};

const LIMITS: Limits = Limits { fuel: 1_000_000, memory: 8 << 20 };

/// What becomes of a guest: the error of the first step that fails, or the ranks it answers.
fn fate(loader: &Loader, name: &str) -> Result<Vec<i64>, String> {
    let module = loader.load(&guests::hostile(name)).map_err(|error| format!("load: {error}"))?;
    let policy = module.configure(name, &json!({}), LIMITS).map_err(|error| format!("configure: {error}"))?;
    let chain = Chain::new(vec![Member::ready(Arc::new(policy))]);
    let words = Words::default();
    let mut round = chain.open(&words, &RoundFacts::default()).map_err(|error| format!("open: {error}"))?;
    assert_eq!(chain.wants().pricing.as_ref().map(|wants| wants.candidates.len()), Some(2));
    let tables = Pricing { candidates: Table { rows: 3, columns: vec![vec![30, 20, 10]; 2] }, ..Pricing::default() };
    match round.price(&words, &tables).map_err(|error| format!("price: {error}"))? {
        Outcome::Answered(priced) => Ok(priced.ranks),
        Outcome::Held { policy, why } => Err(format!("held: {policy} {why}")),
    }
}

const FATES: [(&str, &str); 25] = [
    (
        "absurd-numbers",
        "price: policy absurd-numbers failed: price-candidates answered 1000000000001 for rank-micros of row 0, which is absurd",
    ),
    (
        "another-world",
        "load: it is no policy of contract whittle:policy/scoring@0.1.0: no exported instance named `whittle:policy/scoring@0.1.0`",
    ),
    (
        "answer-outside-memory",
        "price: policy answer-outside-memory failed: price-candidates answered what cannot be read: list pointer/length out of bounds",
    ),
    ("core-module", "load: this is a core module, a component is wanted"),
    ("deep-recursion", "price: policy deep-recursion failed: price-candidates overflowed its stack"),
    ("endless-loop", "price: policy endless-loop failed: price-candidates ran out of fuel after 1006000"),
    ("endless-loop-in-configure", "configure: policy hostile failed when it was configured: configure ran out of fuel after 1000000"),
    ("endless-loop-in-manifest", "load: asking it for its manifest failed: manifest ran out of fuel after 50000000"),
    ("forbidden-import", "load: it imports wasi:clocks/monotonic-clock@0.2.0: a policy is a pure function and imports nothing"),
    ("huge-answer", "price: policy huge-answer failed: price-candidates answered 983040 values, 3 rows of 1 columns were asked for"),
    ("huge-memory", "load: asking it for its manifest failed: start asked for 134217728 bytes of memory, limits.memory is 67108864"),
    ("lying-manifest", "load: its manifest makes no sense: its config schema is none: no JSON"),
    (
        "lying-setup",
        "configure: policy hostile: it asks for what this version does not have: table candidates has no column rank-micron; it has asker",
    ),
    ("memory-bomb", "price: policy memory-bomb failed: price-candidates asked for 8519680 bytes of memory, limits.memory is 8388608"),
    ("nameless-manifest", "load: its manifest makes no sense: its name \"\" is not"),
    ("shared-memory", "load: it is not valid here: "),
    ("table-bomb", "price: policy table-bomb failed: price-candidates asked for a table of 131073 elements"),
    ("trap-in-call", "price: policy trap-in-call failed: price-candidates trapped: wasm trap: wasm `unreachable` instruction executed"),
    ("trap-in-open", "open: policy trap-in-open failed: open trapped: wasm trap: integer divide by zero"),
    ("trap-in-start", "load: asking it for its manifest failed: start trapped"),
    ("type-import", "load: it imports whittle:policy/types@0.1.0: a policy"),
    ("unknown-reason", "price: policy unknown-reason failed: price-candidates vetoed row 0 for reason 0, 0 are declared"),
    ("wide-memory", "load: it is not valid here: "),
    ("no-answer", "price: policy no-answer failed: price-candidates answered 0 values, 3 rows of 1 columns were asked for"),
    ("wrong-row-count", "price: policy wrong-row-count failed: price-candidates answered 2 values, 3 rows of 1 columns were asked for"),
];

#[test]
fn every_hostile_guest_is_survived_by_name() {
    let loader = Loader::new(None).unwrap();
    let mut wrong = String::new();
    for name in guests::hostile_names() {
        let fate = fate(&loader, &name);
        let wanted = FATES.iter().find(|(n, _)| *n == name).map(|(_, fate)| *fate);
        let right = match (&fate, wanted) {
            (Ok(ranks), None) => name == "well-behaved" && ranks == &[30, 20, 10],
            (Err(said), Some(wanted)) => said.starts_with(wanted),
            (Ok(_), Some(_)) | (Err(_), None) => false,
        };
        if !right {
            wrong += &format!("\n{name}: {fate:?}");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert_eq!(guests::hostile_names().len(), FATES.len() + 1);
    // After all of them the same loader still serves an honest guest.
    assert_eq!(fate(&loader, "well-behaved"), Ok(vec![30, 20, 10]));
}

#[test]
fn garbage_is_no_webassembly_and_what_is_too_large_is_not_looked_at() {
    let loader = Loader::new(None).unwrap();
    for bytes in [
        include_bytes!("../../../tests/policy-guests/hostile/garbage-bytes.txt").as_slice(),
        b"",
        b"\0asm",
        b"\0asm\x0d\0\x01\0\xff\xff\xff",
    ] {
        assert!(matches!(loader.load(bytes), Err(LoadError::NoWasm(_))), "{bytes:?}");
    }
    assert_eq!(loader.load(&vec![0; (32 << 20) + 1]).unwrap_err(), LoadError::TooLarge { bytes: (32 << 20) + 1 });
}

#[test]
fn a_failure_is_the_same_every_time() {
    let loader = Loader::new(None).unwrap();
    for name in ["endless-loop", "memory-bomb", "huge-answer", "deep-recursion"] {
        assert_eq!(fate(&loader, name), fate(&loader, name));
    }
}

#[test]
fn a_launch_goes_on_without_the_broken_policy_unless_its_owner_said_closed() {
    let loader = Loader::new(None).unwrap();
    let module = loader.load(&guests::hostile("trap-in-call")).unwrap();
    let tables = Pricing { candidates: Table { rows: 1, columns: vec![vec![7]; 2] }, ..Pricing::default() };
    for (candidates, held) in [(Stance::Ignore, false), (Stance::Closed, true)] {
        let policy = module.configure("broken", &json!({}), LIMITS).unwrap();
        let member = Member { on_failure: OnFailure { candidates, moves: Stance::Closed }, ..Member::ready(Arc::new(policy)) };
        let chain = Chain::new(vec![member]);
        let words = Words::default();
        let error = chain.open(&words, &RoundFacts::default()).unwrap().price(&words, &tables).unwrap_err();
        assert!(matches!(error.failure, Failure::Trap { .. }));
        let again = chain.without(&error.policy, &error.failure.to_string());
        let outcome = again.open(&words, &RoundFacts::default()).unwrap().price(&words, &tables).unwrap();
        assert_eq!(matches!(outcome, Outcome::Held { .. }), held, "{outcome:?}");
    }
}

#[test]
fn what_was_too_slow_to_compile_is_remembered() {
    let loader = Loader::new(None).unwrap().with_compile_time(std::time::Duration::ZERO);
    let bytes = guests::rust("steady");
    let began = std::time::Instant::now();
    for _ in 0..2 {
        assert!(matches!(loader.load(&bytes), Err(LoadError::TooSlow(_))));
    }
    assert!(began.elapsed().as_secs() < 30);
}
