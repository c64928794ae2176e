//! Cases: formulas and what they make of candidates; what is refused, with row and column.

use whittle_policy_formula::Formula;
use whittle_sdk::prelude::*;
use whittle_sdk::{Cell, Hook, Loaded, serde_json::Value};

use CandidateColumn as C;

fn node(way: &str, cpu: i64, price: i64) -> [(C, Cell); 6] {
    [
        (C::CapacityType, way.into()),
        (C::Family, "m7g".into()),
        (C::CpuMilli, (cpu * 1000).into()),
        (C::ListMicros, price.into()),
        (C::RankMicros, price.into()),
        (C::CostMicros, price.into()),
    ]
}

fn answers(case: &Case) -> Vec<Verdict> {
    case.price::<Formula>().expect("the configuration is right")
}

const fn rank(value: i64) -> Verdict {
    Verdict::Answer { value, cost: None }
}

fn rows(rows: &Value) -> Case {
    Case::new(json!({ "rows": rows }))
}

fn refused(row: &Value) -> String {
    let config = json!({"rows": [{"rank": "1"}, row]}).to_string();
    Loaded::<Formula>::configure(&config).expect_err("the configuration is wrong")
}

#[test]
fn rows_apply_in_order_and_see_what_those_before_made() {
    let case = rows(&json!([
        {"when": "capacity_type == 'spot' && cpu_milli > 64000", "rank": "rank_micros * 2"},
        {"rank": "double(rank_micros) * 1.1"},
        {"when": "family.startsWith('m7')", "rank": "rank_micros - 1"},
    ]));
    let case = case.candidate(node("spot", 96, 1_000)).candidate(node("spot", 64, 1_000)).candidate(node("on-demand", 96, 1_005));
    assert_eq!(answers(&case), [rank(2_199), rank(1_099), rank(1_105)]);
}

#[test]
fn a_veto_gives_its_reason_with_numbers_in_it() {
    let case = rows(&json!([
        {"when": "capacity_type == 'spot'", "veto": "cpu_milli > 64000", "reason": "spot with {cpu_milli} mCPU is too large"},
        {"veto": "list_micros in [7, 9]"},
    ]));
    let case = case.candidate(node("spot", 96, 1)).candidate(node("on-demand", 96, 1)).candidate(node("on-demand", 96, 9));
    let veto = |text: &str| Verdict::Veto(text.to_owned());
    assert_eq!(answers(&case), [veto("spot with 96000 mCPU is too large"), rank(1), veto("list_micros in [7, 9]")]);
}

#[test]
fn cost_is_answered_when_a_row_says_one() {
    let case = rows(&json!([{"cost": "list_micros * 9 / 10"}])).candidate(node("spot", 1, 1_000));
    assert_eq!(answers(&case), [Verdict::Answer { value: 1_000, cost: Some(900) }]);
    let case = rows(&json!([{"rank": "0 - 5"}, {"when": "rank_micros == 0", "cost": "rank_micros + 7"}])).candidate(node("spot", 1, 1_000));
    assert_eq!(answers(&case), [Verdict::Answer { value: 0, cost: Some(7) }], "a rank below 0 counts as 0");
    let case = rows(&json!([{"rank": "list_micros * 1000000000000"}])).candidate(node("spot", 1, 1_000));
    assert_eq!(answers(&case), [rank(1_000_000_000_000)]);
}

#[test]
fn askers_the_round_and_labels_can_be_read() {
    let case = rows(&json!([
        {"when": "asker.namespace == 'ci' && asker.label['team'] != ''", "rank": "rank_micros + asker.cpu_milli"},
        {"when": "label['disk'] == 'ssd' || round.pending_pods > 10", "rank": "rank_micros + round.signal['load']"},
    ]));
    let label = |value: &str| (C::Label("disk".to_owned()), Cell::from(value));
    let case = case
        .round([(RoundColumn::PendingPods, 3.into()), (RoundColumn::Signal("load".to_owned()), 5_000.into())])
        .asker([
            (AskerColumn::Namespace, "ci".into()),
            (AskerColumn::Label("team".to_owned()), "x".into()),
            (AskerColumn::CpuMilli, 30.into()),
        ])
        .asker([(AskerColumn::Namespace, "web".into())])
        .candidate([(C::RankMicros, 1.into()), label("ssd")])
        .candidate([(C::RankMicros, 1.into()), (C::Asker, 1.into()), label("hdd")]);
    assert_eq!(answers(&case), [rank(5_031), rank(1)]);
}

#[test]
fn only_what_is_mentioned_is_asked_for() {
    let loaded = |rows: Value| Loaded::<Formula>::configure(&json!({ "rows": rows }).to_string()).expect("the configuration is right");
    let plain = loaded(json!([{"when": "burstable", "rank": "rank_micros * 2"}]));
    let tables = plain.setup().tables(Hook::PriceCandidates);
    assert_eq!(tables, [("candidates", vec!["rank-micros".to_owned(), "burstable".to_owned()])]);
    assert_eq!(plain.setup().answers(Hook::PriceCandidates), ["rank-micros"]);
    assert!(!plain.setup().depends_on_mix());
    let costly = loaded(json!([{"cost": "1", "when": "asker.priority > 0"}]));
    assert_eq!(costly.setup().answers(Hook::PriceCandidates), ["rank-micros", "cost-micros"]);
    assert_eq!(costly.setup().tables(Hook::PriceCandidates)[1], ("askers", vec!["priority".to_owned()]));
}

#[test]
fn what_cannot_be_computed_is_vetoed_with_its_place() {
    let case = rows(&json!([
        {"when": "capacity_type == 'spot' || 1 / gpus > 0", "rank": "rank_micros * 9223372036854775807"},
    ]));
    let case = case.candidate(node("spot", 1, 2)).candidate(node("on-demand", 1, 2));
    let veto = |field: &str| Verdict::Veto(format!("rows[0].{field} cannot be computed: a division by zero or a number too large"));
    assert_eq!(answers(&case), [veto("rank"), veto("when")]);
}

#[test]
fn what_is_wrong_with_a_formula_is_said_with_row_and_column() {
    for (row, says) in [
        (json!({"rank": "cpu_mili * 2"}), "rows[1].rank: there is no column cpu_mili; is cpu_milli meant?"),
        (json!({"rank": "asker.namespce == 'a' ? 1 : 2"}), "rows[1].rank: there is no column asker.namespce; is asker.namespace meant?"),
        (json!({"rank": "capacity_type"}), "rows[1].rank: answers string, an int or a double is wanted"),
        (json!({"when": "cpu_milli", "rank": "1"}), "rows[1].when: answers int, a bool is wanted"),
        (json!({"veto": "rank_micros * 1.5 > 3.0"}), "rows[1].veto: `*` does not take int and double; write double(...) around the int"),
        (json!({"cost": "capacity_type + 1"}), "rows[1].cost: `+` does not take string and int"),
        (json!({"veto": "gpus"}), "rows[1].veto: answers int, a bool is wanted"),
        (json!({"veto": "zone in ['a', 1]"}), "rows[1].veto: a list behind `in` is of the same type, string"),
        (json!({"rank": "burstable ? 1 : 'a'"}), "rows[1].rank: both sides of `:` have the same type, not int and string"),
        (json!({"rank": "sqrt(cpu_milli)"}), "rows[1].rank: `sqrt` does not take int"),
        (
            json!({"veto": "zone.matches('a')"}),
            "rows[1].veto: function `matches` is not supported; contains, startsWith, endsWith, int and double are",
        ),
        (json!({"veto": "[1].exists(x, x > 0)"}), "rows[1].veto: macros over lists are not supported"),
        (json!({"when": "true"}), "rows[1] says nothing: give it rank, cost or veto"),
        (json!({"rank": "1", "reason": "x"}), "rows[1].reason: there is no veto that it could explain"),
        (json!({"veto": "true", "reason": "{size_of}"}), "rows[1].reason: {size_of} is no column of a candidate"),
        (json!({"rank": "mix"}), "rows[1].rank: there is no column mix; is flex meant?"),
    ] {
        assert_eq!(refused(&row), says, "{row}");
    }
    for text in ["cpu_milli >", "", "(1", "1 +* 2"] {
        let said = refused(&json!({ "rank": text }));
        assert!(said.starts_with("rows[1].rank: is no CEL, character "), "{said}");
    }
    let deep = format!("{}1{}", "(".repeat(500), ")".repeat(500));
    assert!(refused(&json!({ "rank": deep })).starts_with("rows[1].rank: is no CEL"));
}
