//! Cases: prices before and after, and the algebra that they follow.

use proptest::prelude::*;
use whittle_policy_price_book::PriceBook;
use whittle_sdk::prelude::*;
use whittle_sdk::{Cell, Hook, Loaded, serde_json::Value};

use CandidateColumn as C;

fn node(name: &str, way: &str, price: i64) -> Vec<(C, Cell)> {
    let family = name.split('.').next().expect("a split has a first part");
    vec![
        (C::InstanceType, name.into()),
        (C::Family, family.into()),
        (C::Category, family[..1].into()),
        (C::Zone, "us-east-1a".into()),
        (C::CapacityType, way.into()),
        (C::ListMicros, price.into()),
        (C::RankMicros, price.into()),
        (C::CostMicros, price.into()),
    ]
}

/// A row of the mix that uses money at list price.
fn used(case: Case, key: &str, way: &str, family: &str, list: i64) -> Case {
    case.mix_row([
        (MixRowColumn::Key, key.into()),
        (MixRowColumn::CapacityType, way.into()),
        (MixRowColumn::Zone, "us-east-1b".into()),
        (MixRowColumn::Family, family.into()),
        (MixRowColumn::ListMicros, list.into()),
    ])
}

/// Rank and cost of each candidate.
fn answers(case: &Case) -> Vec<(i64, i64)> {
    let price = |verdict| match verdict {
        Verdict::Answer { value, cost } => (value, cost.expect("a price book answers cost")),
        Verdict::Veto(reason) => (-1, i64::try_from(reason.len()).expect("a short text")),
    };
    case.price::<PriceBook>().expect("the configuration is right").into_iter().map(price).collect()
}

fn costs(case: &Case) -> Vec<i64> {
    answers(case).into_iter().map(|(_, cost)| cost).collect()
}

fn refused(config: Value) -> String {
    Loaded::<PriceBook>::configure(&config.to_string()).expect_err("the configuration is wrong")
}

#[test]
fn discounts_apply_one_after_the_other_and_fees_come_on_top() {
    let config = json!({
        "discounts": [
            {"percent": 10, "on": {"capacityTypes": ["on-demand"]}},
            {"percent": "12.5", "on": {"instanceTypes": ["m7g.*"], "zones": ["us-east-1?"]}},
            {"percent": -20, "on": {"categories": ["p"]}},
        ],
        "fees": [{"perHour": "0.01"}, {"perHour": 0.002, "on": {"families": ["m7*"]}}],
    });
    let case = Case::new(config)
        .candidate(node("m7g.large", "on-demand", 1_000_000))
        .candidate(node("m7i.large", "spot", 1_000_000))
        .candidate(node("p5.48xlarge", "on-demand", 10_000_000));
    assert_eq!(costs(&case), [787_500 + 12_000, 1_012_000, 10_800_000 + 10_000]);
    assert!(answers(&case).iter().all(|(rank, cost)| rank == cost));
}

#[test]
fn what_is_left_of_a_commitment_costs_nothing_and_the_rest_is_paid() {
    // 1 $ an hour at 25 % off; 0.8 $ of list price in the cluster use up 0.6 $ of it.
    let config = json!({"commitments": [{"perHour": "1", "percent": 25}]});
    let case = Case::new(config)
        .candidate(node("m7g.large", "on-demand", 400_000))
        .candidate(node("m7g.4xlarge", "on-demand", 800_000))
        .candidate(node("m7g.large", "spot", 100_000));
    let case = used(case, "node-pool", "on-demand", "c5", 800_000);
    let case = used(case, "label:team", "on-demand", "c5", 800_000);
    let case = used(case, "node-pool", "spot", "c5", 5_000_000);
    // 0.4 $ are left, which pay for 0.533 $ of list price.
    assert_eq!(costs(&case), [0, 266_667, 100_000]);
    let ranks: Vec<i64> = answers(&case).into_iter().map(|(rank, _)| rank).collect();
    assert_eq!(ranks, [30_000, 266_667 + 40_000, 100_000]);
}

#[test]
fn commitments_are_used_up_in_order_and_only_by_what_they_cover() {
    let config = json!({"commitments": [
        {"perHour": "0.10", "percent": 0, "families": ["m7g"]},
        {"perHour": "0.30"},
    ]});
    let case = Case::new(config).candidate(node("m7g.large", "on-demand", 300_000)).candidate(node("c7g.large", "on-demand", 300_000));
    assert_eq!(costs(&case), [0, 0]);
    // 0.2 $ of m7g: the first commitment takes half, the second the rest.
    let case = used(case, "node-pool", "on-demand", "m7g", 200_000);
    assert_eq!(costs(&case), [100_000, 100_000]);
}

#[test]
fn a_preference_of_policies_before_it_stays() {
    let mut preferred = node("m7g.large", "spot", 1_000_000);
    preferred.push((C::RankMicros, 200_000.into()));
    let case = Case::new(json!({"discounts": [{"percent": 15}]})).candidate(preferred);
    assert_eq!(answers(&case), [(50_000, 850_000)]);
}

#[test]
fn the_mix_is_asked_for_only_by_commitments() {
    let setup = |config: Value| Loaded::<PriceBook>::configure(&config.to_string()).unwrap().setup().clone();
    let plain = setup(json!({"discounts": [{"percent": 5, "on": {"families": ["m5"]}}]}));
    assert!(!plain.depends_on_mix() && plain.mix_keys().is_empty());
    let columns = &plain.tables(Hook::PriceCandidates)[0].1;
    assert_eq!(columns, &["rank-micros", "cost-micros", "family"]);
    assert!(setup(json!({"commitments": [{"perHour": 1}]})).depends_on_mix());
    assert_eq!(plain.answers(Hook::PriceCandidates), ["rank-micros", "cost-micros"]);
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let discount = refused(json!({"discounts": [{"percent": 10}, {"percent": "100.5"}]}));
    assert_eq!(discount, "discounts[1].percent: 100.5 is not between -1000 and 100");
    assert_eq!(refused(json!({"fees": [{"perHour": -1}]})), "fees[0].perHour: -1 is not between 0 and 1000000");
    assert_eq!(refused(json!({"commitments": [{"perHour": 1, "percent": 100}]})), "commitments[0].percent: 100 is not between 0 and 100");
    assert_eq!(refused(json!({"fees": [{"perHour": 1, "on": {"zones": [""]}}]})), "fees[0].on.zones: a name is empty");
    assert!(refused(json!({"fees": [{"perHour": "0.0000001"}]})).contains("more than 6 decimals"));
    assert!(refused(json!({"discount": []})).contains("unknown field `discount`"));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_discount_of_nothing_and_one_of_all(price in 0i64..1_000_000_000) {
        let cost = |percent: i64| costs(&Case::new(json!({"discounts": [{"percent": percent}]})).candidate(node("m5.large", "spot", price)))[0];
        prop_assert_eq!(cost(0), price);
        prop_assert_eq!(cost(100), 0);
        prop_assert!(cost(30) <= cost(20));
        prop_assert!((cost(50) * 2 - price).abs() <= 1);
    }

    #[test]
    fn more_commitment_never_costs_more_and_saves_no_more_than_its_worth(
        price in 1i64..1_000_000_000,
        in_use in 0i64..1_000_000_000,
        percent in 0i64..90,
        committed in 0i64..2_000,
    ) {
        let cost = |dollars: i64| {
            let config = json!({"commitments": [{"perHour": dollars, "percent": percent}]});
            costs(&used(Case::new(config).candidate(node("m5.large", "on-demand", price)), "node-pool", "on-demand", "m5", in_use))[0]
        };
        prop_assert_eq!(cost(0), price);
        let with = cost(committed);
        prop_assert!((0..=price).contains(&with));
        prop_assert!(cost(committed + 1) <= with);
        let saved = i128::from(price - with) * i128::from(100 - percent) / 100;
        prop_assert!(saved <= i128::from(committed) * 1_000_000 + 1);
        // What is in use leaves less of it.
        let config = json!({"commitments": [{"perHour": committed, "percent": percent}]});
        let alone = costs(&Case::new(config).candidate(node("m5.large", "on-demand", price)))[0];
        prop_assert!(alone <= with);
    }

    #[test]
    fn fees_add_up(price in 0i64..1_000_000_000, a in 0i64..1_000_000, b in 0i64..1_000_000) {
        let fee = |micros: i64| json!({"perHour": whittle_sdk::Dollars::of_units(micros).to_string()});
        let cost = |fees: Vec<Value>| costs(&Case::new(json!({ "fees": fees })).candidate(node("m5.large", "spot", price)))[0];
        prop_assert_eq!(cost(vec![fee(a), fee(b)]), price + a + b);
        prop_assert_eq!(cost(vec![fee(a + b)]), price + a + b);
    }
}
