//! The policies that are shipped: their WebAssembly answers what the same crate answers natively, bit for
//! bit, within its fuel and without imports.

mod common;

use std::sync::{Arc, LazyLock};

use common::guests;
use common::native::Native;
use common::tables::{Random, facts, pricing};
use serde_json::{Value, json};
use whittle_model::policy::{Pricing, Words};
use whittle_policy::chain::{Outcome, Priced};
use whittle_policy::{Chain, Judge, Limits, Loader, Member};
use whittle_policy_formula::Formula;
use whittle_policy_price_book::PriceBook;
use whittle_policy_spot_share::SpotShare;
use whittle_policy_team_rules::TeamRules;
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
    ] {
        words.intern(word);
    }
    words
}

fn priced(chain: &Chain, words: &Words, facts: &whittle_model::policy::RoundFacts, tables: &Pricing) -> Priced {
    match chain.open(words, facts).and_then(|mut round| round.price(words, tables)).expect("the policies are sound") {
        Outcome::Answered(priced) => priced,
        Outcome::Held { policy, why } => unreachable!("held by {policy}: {why}"),
    }
}

/// How often answers differed from the price before; a test that never sees one proves little.
fn same_answers<P: Policy + 'static>(configs: &[Value], rounds: u64) -> usize {
    let module = LOADER.load(&guests::shipped(P::ABOUT.name)).expect("it is a policy");
    assert_eq!(module.manifest().documentation, P::ABOUT.documentation);
    let (words, mut changed) = (words(), 0);
    for config in configs {
        let judge: Arc<dyn Judge> =
            Arc::new(module.configure(P::ABOUT.name, config, Limits::default()).expect("the configuration is right"));
        let native: Arc<dyn Judge> = Arc::new(Native::<P>::new(config));
        assert_eq!(judge.setup(), native.setup());
        let (wasm, native) = (Chain::new(vec![Member::ready(judge)]), Chain::new(vec![Member::ready(native)]));
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
