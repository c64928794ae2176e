//! Policies in rounds: WebAssembly and native answers are the same, rounds repeat, chains add up.
#![expect(clippy::unwrap_used, clippy::panic, reason = "what fails outside a test function fails the test, with its place")]

mod common;

use std::sync::{Arc, LazyLock};

use common::guests;
use common::native::Native;
use common::tables::{Random, facts, judging, pricing, words};
use serde_json::{Value, json};
use whittle_guest_kernel::Kernel;
use whittle_guest_steady::Steady;
use whittle_model::policy::{CandidateColumn, Column, Judging, MoveColumn, Pricing, RoundFacts, Table, Words};
use whittle_policy::chain::{Outcome, Priced, Scored};
use whittle_policy::{Chain, Judge, Limits, Loader, Member, Mode, Module, Standing, WhenEmptyOrUnderutilized};
use whittle_sdk::Policy;

static LOADER: LazyLock<Loader> = LazyLock::new(|| Loader::new(None).unwrap());
static STEADY: LazyLock<Module> = LazyLock::new(|| LOADER.load(&guests::rust("steady")).unwrap());
static KERNEL: LazyLock<Module> = LazyLock::new(|| LOADER.load(&guests::rust("kernel")).unwrap());

fn config() -> Value {
    json!({"percent": 20, "mostMilli": 4000, "closedZones": ["us-east-1b"], "pay": 90})
}

fn wasm(module: &Module, config: &Value) -> Arc<dyn Judge> {
    Arc::new(module.configure(&module.manifest().name, config, Limits::default()).unwrap())
}

fn answered<T: std::fmt::Debug>(outcome: Outcome<T>) -> T {
    match outcome {
        Outcome::Answered(answer) => answer,
        Outcome::Held { policy, why } => panic!("held by {policy}: {why}"),
    }
}

fn price(chain: &Chain, words: &Words, facts: &RoundFacts, tables: &Pricing) -> Priced {
    answered(chain.open(words, facts).unwrap().price(words, tables).unwrap())
}

fn score(chain: &Chain, words: &Words, facts: &RoundFacts, tables: &Judging) -> Scored {
    answered(chain.open(words, facts).unwrap().score(words, tables).unwrap())
}

/// A table with these cells, all else 0.
fn table<C: Column>(columns: &[C], rows: &[&[(C, i64)]]) -> Table {
    let value = |row: &[(C, i64)], column: &C| row.iter().find(|(c, _)| c == column).map_or(0, |(_, value)| *value);
    Table { rows: rows.len(), columns: columns.iter().map(|column| rows.iter().map(|row| value(row, column)).collect()).collect() }
}

fn same_answers<P: Policy + 'static>(module: &Module, config: &Value, rounds: u64) {
    let native: Arc<dyn Judge> = Arc::new(Native::<P>::new(config));
    let judge = wasm(module, config);
    assert_eq!(judge.setup(), native.setup());
    let (wasm, native) = (Chain::new(vec![Member::ready(judge)]), Chain::new(vec![Member::ready(native)]));
    let words = words();
    for seed in 0..rounds {
        let mut random = Random(seed);
        let facts = facts(&mut random, wasm.wants());
        let prices = pricing(&mut random, wasm.wants(), &words);
        let moves = judging(&mut random, wasm.wants(), &words);
        let mut rounds = (wasm.open(&words, &facts).unwrap(), native.open(&words, &facts).unwrap());
        let both = (answered(rounds.0.price(&words, &prices).unwrap()), answered(rounds.1.price(&words, &prices).unwrap()));
        assert_eq!((&both.0.ranks, &both.0.costs, &both.0.vetoes), (&both.1.ranks, &both.1.costs, &both.1.vetoes), "seed {seed}");
        assert_eq!(both.0.steps.first().map(|step| step.hash), both.1.steps.first().map(|step| step.hash));
        let both = (answered(rounds.0.score(&words, &moves).unwrap()), answered(rounds.1.score(&words, &moves).unwrap()));
        assert_eq!((&both.0.scores, &both.0.vetoes), (&both.1.scores, &both.1.vetoes), "seed {seed}");
    }
}

#[test]
fn the_native_answer_is_the_webassembly_answer() {
    same_answers::<Steady>(&STEADY, &config(), 300);
    same_answers::<Kernel>(&KERNEL, &json!({}), 100);
    same_answers::<Kernel>(&KERNEL, &json!({"columns": true}), 100);
}

#[test]
fn a_round_repeats_to_the_last_unit_of_fuel() {
    let chain = Chain::new(vec![Member::ready(wasm(&STEADY, &config())), Member::ready(wasm(&KERNEL, &json!({})))]);
    let words = words();
    let mut random = Random(7);
    let facts = facts(&mut random, chain.wants());
    let tables = pricing(&mut random, chain.wants(), &words);
    let first = price(&chain, &words, &facts, &tables);
    assert!(first.steps.iter().all(|step| step.fuel > 0 && step.hash != 0));
    for _ in 0..5 {
        assert_eq!(price(&chain, &words, &facts, &tables), first);
    }
}

#[test]
fn each_policy_sees_what_the_one_before_answered_and_vetoes_are_a_union() {
    let first = wasm(&STEADY, &json!({"percent": 50, "mostMilli": 4000, "pay": 50}));
    let second = wasm(&STEADY, &json!({"percent": 10, "mostMilli": 2000, "closedZones": ["us-east-1a"]}));
    let chain = Chain::new(vec![Member::ready(first), Member::ready(second)]);
    let mut words = Words::default();
    let zone = words.intern("us-east-1a");
    use CandidateColumn as C;
    let small = [(C::Burstable, 1), (C::CpuMilli, 1000), (C::RankMicros, 1000), (C::ListMicros, 1000), (C::CostMicros, 1000)];
    let middle = [(C::Burstable, 1), (C::CpuMilli, 3000), (C::RankMicros, 1000), (C::ListMicros, 1000), (C::CostMicros, 1000)];
    let large = [(C::Burstable, 1), (C::CpuMilli, 9000), (C::RankMicros, 77), (C::Zone, zone), (C::CostMicros, 55)];
    let wants = chain.wants().pricing.clone().unwrap();
    let mut asker = Table::of(wants.askers.len());
    asker.push([]);
    let tables =
        Pricing { candidates: table(&wants.candidates, &[&small, &middle, &large]), askers: asker, mix: Table::of(wants.mix.len()) };
    let facts = RoundFacts { facts: vec![0; chain.wants().round.len()] };
    let priced = price(&chain, &words, &facts, &tables);
    assert_eq!(priced.ranks, [1650, 1500, 77]);
    assert_eq!(priced.costs, [1000, 500, 55]);
    let vetoes: Vec<_> = priced.vetoes.iter().map(|veto| (veto.row, &*veto.reason)).collect();
    assert_eq!(
        vetoes,
        [
            (1, "burstable with 3000 mCPU, at most 2000 are allowed"),
            (2, "burstable with 9000 mCPU, at most 4000 are allowed"),
            (2, "zone us-east-1a is closed"),
        ]
    );
    let lines: Vec<_> =
        priced.steps.iter().map(|step| (step.values.clone(), step.costs.clone(), step.ranked.max(step.priced), step.vetoed)).collect();
    assert_eq!(lines, [(vec![1500, 1500, 77], vec![500, 500, 55], 2, 1), (vec![1650, 1500, 77], vec![1000, 500, 55], 1, 2)]);
}

#[test]
fn an_observed_policy_changes_nothing_and_its_failure_ends_nothing() {
    let strict = wasm(&STEADY, &json!({"percent": 0, "mostMilli": 0, "closedZones": ["us-east-1a"]}));
    let broken = LOADER.load(&guests::hostile("trap-in-call")).unwrap().configure("broken", &json!({}), Limits::default()).unwrap();
    let observed = |judge| Member { mode: Mode::Observe, ..Member::ready(judge) };
    let chain = Chain::new(vec![observed(strict), observed(Arc::new(broken))]);
    let words = words();
    let mut random = Random(3);
    let facts = facts(&mut random, chain.wants());
    let tables = pricing(&mut random, chain.wants(), &words);
    let priced = price(&chain, &words, &facts, &tables);
    let rank = chain.wants().pricing.as_ref().unwrap().candidates.iter().position(|c| *c == CandidateColumn::RankMicros).unwrap();
    assert_eq!((&priced.ranks, priced.vetoes.len()), (&tables.candidates.columns[rank], 0));
    assert!(priced.steps[0].vetoed > 0 && priced.steps[0].failure.is_none());
    assert_eq!(priced.steps[1].failure.as_ref().map(whittle_policy::Failure::name), Some("trap"));
}

#[test]
fn a_missing_policy_holds_its_pool_back_and_an_observed_one_does_not() {
    let missing = Member {
        name: "team-a".to_owned(),
        standing: Standing::Missing { why: "there is no ScoringPolicy team-a".to_owned() },
        on_failure: whittle_policy::OnFailure::default(),
        mode: Mode::Enforce,
    };
    let words = Words::default();
    let outcome = |member: Member| {
        let chain = Chain::new(vec![member]);
        let mut round = chain.open(&words, &RoundFacts::default()).unwrap();
        (round.price(&words, &Pricing::default()).unwrap(), round.score(&words, &Judging::default()).unwrap())
    };
    let (prices, scores) = outcome(missing.clone());
    let held = "there is no ScoringPolicy team-a".to_owned();
    assert_eq!(prices, Outcome::Held { policy: "team-a".to_owned(), why: held.clone() });
    assert_eq!(scores, Outcome::Held { policy: "team-a".to_owned(), why: held });
    assert!(matches!(outcome(Member { mode: Mode::Observe, ..missing }).0, Outcome::Answered(_)));
}

#[test]
fn a_judge_is_asked_only_about_its_kinds_of_moves() {
    let chain = Chain::new(vec![Member::ready(Arc::new(WhenEmptyOrUnderutilized::default()))]);
    let mut words = Words::default();
    let (empty, under) = (words.intern("empty"), words.intern("underutilized"));
    use MoveColumn as M;
    let rows: [&[(M, i64)]; 3] = [
        &[(M::Kind, empty), (M::Score, 5)],
        &[(M::Kind, under), (M::Score, 6), (M::SavingsCostMicros, 70)],
        &[(M::Kind, under), (M::Score, 7)],
    ];
    let wants = chain.wants().judging.clone().unwrap();
    let scored = score(&chain, &words, &RoundFacts::default(), &Judging { moves: table(&wants.moves, &rows), ..Judging::default() });
    assert_eq!(scored.scores, [5, 70, 7]);
    assert_eq!(scored.vetoes.iter().map(|veto| (veto.row, &*veto.reason)).collect::<Vec<_>>(), [(2, "saves nothing")]);
}

#[test]
fn a_configuration_is_checked_by_schema_and_by_the_policy() {
    let refused = |config: Value| STEADY.configure("steady", &config, Limits::default()).unwrap_err().to_string();
    assert_eq!(refused(json!({"percent": 20})), "policy steady: config: \"mostMilli\" is a required property");
    assert_eq!(refused(json!({"percent": "20", "mostMilli": 1})), "policy steady: config/percent: \"20\" is not of type \"integer\"");
    assert_eq!(
        refused(json!({"percent": 2000, "mostMilli": 1})),
        "policy steady: config/percent: 2000 is greater than the maximum of 1000"
    );
    let odd = json!({"percent": 1, "mostMilli": 1, "closedZones": [""]});
    assert_eq!(refused(odd), "policy steady refuses its config: closedZones: a zone has a name");
}

#[test]
fn words_may_be_added_during_a_round() {
    let chain = Chain::new(vec![Member::ready(wasm(&STEADY, &config()))]);
    let mut words = Words::default();
    let mut round = chain.open(&words, &RoundFacts { facts: vec![0] }).unwrap();
    let closed = words.intern("us-east-1b");
    let wants = chain.wants().pricing.clone().unwrap();
    let mut asker = Table::of(wants.askers.len());
    asker.push([]);
    let candidates = table(&wants.candidates, &[&[(CandidateColumn::Zone, closed)]]);
    let tables = Pricing { candidates, askers: asker, mix: Table::of(wants.mix.len()) };
    let priced = answered(round.price(&words, &tables).unwrap());
    assert_eq!(&*priced.vetoes[0].reason, "zone us-east-1b is closed");
}

#[test]
fn a_smoke_run_tries_both_hooks() {
    let policy = STEADY.configure("steady", &config(), Limits::default()).unwrap();
    let fuel = policy.smoke().unwrap();
    assert!(fuel > policy.configure_fuel() && fuel < 1_000_000, "{fuel}");
    let broken = LOADER.load(&guests::hostile("trap-in-call")).unwrap().configure("broken", &json!({}), Limits::default()).unwrap();
    assert_eq!(broken.smoke().unwrap_err().name(), "trap");
}

#[test]
fn a_hundred_chains_have_room_and_one_too_many_is_named() {
    // A loader of its own: the other tests need room meanwhile.
    let loader = Loader::new(None).unwrap();
    let module = loader.load(&guests::rust("kernel")).unwrap();
    let judge = wasm(&module, &json!({}));
    let words = Words::default();
    let mut sittings = Vec::new();
    let failure = loop {
        match judge.open(&words, &[]) {
            Ok(sitting) => sittings.push(sitting),
            Err(failure) => break failure,
        }
    };
    assert!(sittings.len() >= 100, "{}", sittings.len());
    assert_eq!(failure.name(), "no-room");
    sittings.clear();
    assert!(judge.open(&words, &[]).is_ok());
}

#[test]
fn compiled_code_is_kept_on_disk() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("compiled");
    let bytes = guests::rust("kernel");
    for _ in 0..2 {
        let module = Loader::new(Some(&folder)).unwrap().load(&bytes).unwrap();
        assert_eq!((module.manifest().name.as_str(), module.digest().len()), ("kernel", 71));
    }
    assert!(std::fs::read_dir(&folder).unwrap().next().is_some());
}
