//! The policies that are shipped: their WebAssembly answers what the same crate answers natively, bit for
//! bit, within its fuel and without imports.

mod common;

use std::sync::{Arc, LazyLock};

use common::guests;
use common::native::Native;
use common::tables::{Random, facts, judging, pricing};
use serde_json::{Value, json};
use whittle_model::policy::{Judging, Pricing, RoundFacts, Words};
use whittle_policy::chain::{Outcome, Priced, Scored};
use whittle_policy::{Chain, Judge, Limits, Loader, Member};
use whittle_policy_calendar::Calendar;
use whittle_policy_formula::Formula;
use whittle_policy_payback::Payback;
use whittle_policy_price_book::PriceBook;
use whittle_policy_spot_share::SpotShare;
use whittle_policy_team_rules::TeamRules;
use whittle_policy_utilization_floor::UtilizationFloor;
use whittle_sdk::Policy;

static LOADER: LazyLock<Loader> = LazyLock::new(|| Loader::new(None).expect("the engine starts"));

/// Words that the configurations speak of, and some they do not.
fn words() -> Words {
    let mut words = Words::default();
    for word in [
        "spot",
        "on-demand",
        "reserved",
        "node-pool",
        "label:team",
        "a",
        "us-east-1a",
        "us-east-1b",
        "m7g.large",
        "m7g",
        "c5",
        "m",
        "c",
        "arm64",
        "amd64",
        "ci",
        "ci-nightly",
        "web",
        "payments",
        "empty",
        "underutilized",
        "drifted",
    ] {
        words.intern(word);
    }
    words
}

fn priced(chain: &Chain, words: &Words, facts: &RoundFacts, tables: &Pricing) -> Priced {
    match chain.open(words, facts).and_then(|mut round| round.price(words, tables)).expect("the policies are sound") {
        Outcome::Answered(priced) => priced,
        Outcome::Held { policy, why } => unreachable!("held by {policy}: {why}"),
    }
}

fn scored(chain: &Chain, words: &Words, facts: &RoundFacts, tables: &Judging) -> Scored {
    match chain.open(words, facts).and_then(|mut round| round.score(words, tables)).expect("the policies are sound") {
        Outcome::Answered(scored) => scored,
        Outcome::Held { policy, why } => unreachable!("held by {policy}: {why}"),
    }
}

/// The policy as WebAssembly and native, with each configuration.
fn both<P: Policy + 'static>(configs: &[Value]) -> Vec<(&Value, Chain, Chain)> {
    let module = LOADER.load(&guests::shipped(P::ABOUT.name)).expect("it is a policy");
    assert_eq!(module.manifest().documentation, P::ABOUT.documentation);
    let chains = configs.iter().map(|config| {
        let judge: Arc<dyn Judge> =
            Arc::new(module.configure(P::ABOUT.name, config, Limits::default()).expect("the configuration is right"));
        let native: Arc<dyn Judge> = Arc::new(Native::<P>::new(config));
        assert_eq!(judge.setup(), native.setup());
        (config, Chain::new(vec![Member::ready(judge)]), Chain::new(vec![Member::ready(native)]))
    });
    chains.collect()
}

/// How often a move was vetoed, and how often another score was given, while both answered the same.
fn same_scores<P: Policy + 'static>(configs: &[Value], rounds: u64) -> (usize, usize) {
    let (words, mut vetoed, mut changed) = (words(), 0, 0);
    for (config, wasm, native) in both::<P>(configs) {
        for seed in 0..rounds {
            let mut random = Random(seed);
            let mut facts = facts(&mut random, wasm.wants());
            // Times of some years.
            facts.facts.iter_mut().for_each(|fact| *fact *= 123_457);
            let tables = judging(&mut random, wasm.wants(), &words);
            let (wasm, native) = (scored(&wasm, &words, &facts, &tables), scored(&native, &words, &facts, &tables));
            assert_eq!((&wasm.scores, &wasm.vetoes), (&native.scores, &native.vetoes), "{config}, seed {seed}");
            assert_eq!(wasm.steps.first().map(|step| step.hash), native.steps.first().map(|step| step.hash));
            vetoed += wasm.vetoes.len();
            changed += wasm.steps.iter().map(|step| step.ranked).sum::<usize>();
        }
    }
    (vetoed, changed)
}

/// How often answers differed from the price before; a test that never sees one proves little.
fn same_answers<P: Policy + 'static>(configs: &[Value], rounds: u64) -> usize {
    let (words, mut changed) = (words(), 0);
    for (config, wasm, native) in both::<P>(configs) {
        for seed in 0..rounds {
            let mut random = Random(seed);
            let facts = facts(&mut random, wasm.wants());
            let tables = pricing(&mut random, wasm.wants(), &words);
            let (wasm, native) = (priced(&wasm, &words, &facts, &tables), priced(&native, &words, &facts, &tables));
            assert_eq!((&wasm.ranks, &wasm.costs, &wasm.vetoes), (&native.ranks, &native.costs, &native.vetoes), "{config}, seed {seed}");
            assert_eq!(wasm.steps.first().map(|step| step.hash), native.steps.first().map(|step| step.hash));
            changed += wasm.steps.iter().map(|step| step.ranked + step.priced + step.vetoed).sum::<usize>();
        }
    }
    changed
}

#[test]
fn spot_share() {
    let configs = [
        json!({"onDemandPercentageAboveBaseCapacity": 30}),
        json!({"onDemandBaseCapacity": 20, "onDemandPercentageAboveBaseCapacity": 50, "unit": "cpu", "tolerancePercent": 1}),
        json!({"onDemandPercentageAboveBaseCapacity": 70, "by": "label:team"}),
        json!({"onDemandPercentageAboveBaseCapacity": 0, "unit": "nodes"}),
    ];
    assert!(same_answers::<SpotShare>(&configs, 100) > 1_000);
}

#[test]
fn team_rules() {
    let rules = json!({"rules": [
        {"name": "ci", "match": {"namespaces": ["ci*"]}, "allow": {"capacityTypes": ["spot"], "archs": ["a*"]}, "atMost": {"cpu": 4, "pricePerHour": "0.005"}},
        {"name": "team", "match": {"labels": {"team": "pay*"}}, "forbid": {"families": ["c?"], "zones": ["us-east-1b"]}, "atLeast": {"memory": "1Gi"}},
        {"name": "all", "forbid": {"instanceTypes": ["m7g.*"], "categories": ["c"]}},
    ]});
    assert!(same_answers::<TeamRules>(&[rules, json!({"rules": [{"name": "all", "atMost": {"cpu": 2}}]})], 150) > 1_000);
}

#[test]
fn price_book() {
    let discounts = json!({
        "discounts": [{"percent": "12.345", "on": {"families": ["m*"]}}, {"percent": -3, "on": {"zones": ["us-east-1a"], "capacityTypes": ["spot"]}}],
        "fees": [{"perHour": "0.000123"}, {"perHour": 0.01, "on": {"instanceTypes": ["m7g.*"], "categories": ["m", "c"]}}],
    });
    let commitments = json!({
        "discounts": [{"percent": 7}],
        "commitments": [{"perHour": "0.02", "percent": 33.3, "families": ["m7g"]}, {"perHour": "0.01", "zones": ["us*"], "capacityTypes": ["*"]}],
    });
    assert!(same_answers::<PriceBook>(&[discounts, commitments], 150) > 1_000);
}

#[test]
fn formula() {
    let config = json!({"rows": [
        {"when": "capacity_type == 'spot' && cpu_milli > 4000", "rank": "double(rank_micros) * 1.37 / double(gpus)"},
        {"when": "asker.namespace in ['ci', 'web'] || asker.label['team'].startsWith('pay')", "cost": "cost_micros * 9 / 10 + round.pending_pods"},
        {"veto": "list_micros % 7 == 0 && burstable", "reason": "{instance_type} at {list_micros}"},
        {"rank": "rank_micros / (gpus % 50)"},
    ]});
    assert!(same_answers::<Formula>(&[config], 200) > 1_000);
}

#[test]
fn payback() {
    let configs = [
        json!({"restartCost": "0.0001", "overlapSeconds": 30}),
        json!({"restartCost": "0.000001", "lifePerAgePercent": 0, "horizonHours": 2, "workloads": [
            {"namespaces": ["ci*"], "restartCost": "0.01"},
            {"labels": {"team": "pay*"}, "restartCost": "0.0005"},
        ]}),
    ];
    let (vetoed, changed) = same_scores::<Payback>(&configs, 400);
    assert!(vetoed > 50 && changed > 50, "{vetoed} {changed}");
}

#[test]
fn utilization_floor() {
    let configs = [
        json!({"floorPercent": 101, "of": "Smaller", "order": "Emptiest"}),
        json!({"of": "Cpu", "nodePools": [{"names": ["ci*", "m?"], "floorPercent": 101}, {"names": ["us-*"], "floorPercent": 60}]}),
    ];
    let (vetoed, changed) = same_scores::<UtilizationFloor>(&configs, 400);
    assert!(vetoed > 100 && changed > 10, "{vetoed} {changed}");
}

#[test]
fn calendar() {
    let configs = [
        json!({"timeZone": "America/New_York", "windows": [
            {"name": "days", "days": ["Mon", "Wed", "Sun"], "from": "06:00", "to": "21:30", "forbid": ["Drifted", "Empty"]},
            {"name": "nights", "timeZone": "+09:30", "from": "22:00", "to": "05:00", "nodePools": ["ci*"], "allow": ["Underutilized"]},
        ]}),
        json!({"windows": [{"name": "summer", "dates": {"from": "06-01", "to": "09-15"}, "allow": ["Empty", "Drifted"]}]}),
    ];
    let (vetoed, _) = same_scores::<Calendar>(&configs, 400);
    assert!(vetoed > 100, "{vetoed}");
}
