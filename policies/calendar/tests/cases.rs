//! Cases: a configuration, an hour, moves, and what stands in their way.

use proptest::prelude::*;
use whittle_policy_calendar::Calendar;
use whittle_sdk::prelude::*;
use whittle_sdk::{Hook, Loaded, serde_json::Value};

/// Monday the 30th of November 2026, 00:00 UTC.
const MONDAY: i64 = 1_796_000_000 - 1_796_000_000 % 86_400;

/// Why moves of these kinds, of these pools, may not be made at an hour of that Monday.
fn vetoes(config: &Value, hour: i64, moves: &[(&str, &[&str])]) -> Vec<Option<String>> {
    let mut case = Case::new(config.clone()).round([(RoundColumn::TimeSeconds, (MONDAY + hour * 3600).into())]);
    for (number, (kind, pools)) in (0..).zip(moves) {
        case = case.a_move([(MoveColumn::Kind, (*kind).into()), (MoveColumn::Score, 5.into())]);
        for pool in *pools {
            case = case.move_pool([(MovePoolColumn::Move, i64::from(number).into()), (MovePoolColumn::NodePool, (*pool).into())]);
        }
    }
    let answers = case.score::<Calendar>().expect("the configuration is right");
    let why = |verdict| match verdict {
        Verdict::Veto(why) => Some(why),
        Verdict::Answer { value, .. } => {
            assert_eq!(value, 5, "a calendar has no opinion on what moves are worth");
            None
        }
    };
    answers.into_iter().map(why).collect()
}

#[test]
fn that_day_is_a_monday() {
    let begins = |day: &str| json!({"windows": [{"name": "w", "days": [day], "dates": {"from": "2026-11-30", "to": "2026-11-30"}, "forbid": ["Empty"]}]});
    assert!(vetoes(&begins("Mon"), 0, &[("empty", &[])])[0].is_some());
    assert!(vetoes(&begins("Tue"), 0, &[("empty", &[])])[0].is_none());
}

#[test]
fn what_a_window_forbids_waits_while_it_is_open() {
    let config = json!({"timeZone": "+01:00", "windows": [
        {"name": "office", "days": ["Mon"], "from": "08:00", "to": "18:00", "forbid": ["Underutilized", "Drifted"]},
    ]});
    let moves: [(&str, &[&str]); 4] = [("empty", &[]), ("underutilized", &[]), ("drifted", &[]), ("expired", &[])];
    let why = |kind: &str| Some(format!("window office is open: nothing {kind} moves"));
    assert_eq!(vetoes(&config, 6, &moves), [None, None, None, None]);
    assert_eq!(vetoes(&config, 7, &moves), [None, why("underutilized"), why("drifted"), None]);
    assert_eq!(vetoes(&config, 17, &moves), [None, None, None, None]);
    assert_eq!(vetoes(&config, 24 + 10, &moves), [None, None, None, None]);
}

#[test]
fn a_window_that_names_advice_asks_for_it() {
    let config = json!({"windows": [
        {"name": "night", "from": "01:00", "to": "03:00", "nodePools": ["a"], "allow": ["Expired"]},
        {"name": "office", "from": "08:00", "to": "18:00", "forbid": ["Rebalance"]},
    ]});
    let score = |hour: i64, kind: &str, pool: &str| {
        let case = Case::new(config.clone()).round([(RoundColumn::TimeSeconds, (MONDAY + hour * 3600).into())]);
        let case = case.a_move([(MoveColumn::Kind, kind.into()), (MoveColumn::Score, 0.into())]);
        let case = case.move_pool([(MovePoolColumn::Move, 0.into()), (MovePoolColumn::NodePool, pool.into())]);
        match case.score::<Calendar>().expect("the configuration is right").remove(0) {
            Verdict::Answer { value, .. } => Some(value),
            Verdict::Veto(_) => None,
        }
    };
    let rows = [
        (2, "expired", "a", Some(1)),
        (4, "expired", "a", None),
        (2, "expired", "b", Some(0)),
        (2, "rebalance", "b", Some(1)),
        (9, "rebalance", "b", None),
        (2, "drifted", "a", Some(0)),
    ];
    for (hour, kind, pool, expected) in rows {
        assert_eq!(score(hour, kind, pool), expected, "{hour} {kind} {pool}");
    }
}

#[test]
fn what_windows_allow_waits_until_one_is_open_and_forbidding_comes_first() {
    let config = json!({"windows": [
        {"name": "morning", "from": "02:00", "to": "04:00", "allow": ["Drifted"]},
        {"name": "evening", "from": "22:00", "to": "23:00", "allow": ["Drifted"]},
        {"name": "freeze", "from": "03:00", "to": "05:00", "forbid": ["Drifted"]},
    ]});
    let shut = Some("no window is open in which what is drifted may move".to_owned());
    let frozen = Some("window freeze is open: nothing drifted moves".to_owned());
    for (hour, expected) in [(1, shut.clone()), (2, None), (3, frozen.clone()), (4, frozen), (5, shut), (22, None)] {
        assert_eq!(vetoes(&config, hour, &[("drifted", &[]), ("underutilized", &[])]), [expected, None], "{hour}:00");
    }
}

#[test]
fn a_window_speaks_of_its_node_pools() {
    let config = json!({"windows": [
        {"name": "prod", "nodePools": ["prod-*"], "forbid": ["Empty"]},
        {"name": "nights", "nodePools": ["batch"], "from": "20:00", "to": "06:00", "allow": ["Underutilized"]},
    ]});
    let moves: [(&str, &[&str]); 5] = [
        ("empty", &["prod-a"]),
        ("empty", &["batch"]),
        ("underutilized", &["prod-a"]),
        ("underutilized", &["prod-a", "batch"]),
        ("empty", &["batch", "prod-a"]),
    ];
    let prod = Some("window prod is open: nothing empty moves".to_owned());
    let shut = Some("no window is open in which what is underutilized may move".to_owned());
    assert_eq!(vetoes(&config, 12, &moves), [prod.clone(), None, None, shut, prod.clone()]);
    assert_eq!(vetoes(&config, 21, &moves), [prod.clone(), None, None, None, prod]);
}

#[test]
fn pools_and_kinds_are_not_asked_for_in_vain() {
    let asked = |window: Value| {
        let loaded = Loaded::<Calendar>::configure(&json!({"windows": [window]}).to_string()).unwrap();
        let tables = loaded.setup().tables(Hook::ScoreMoves).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        let kinds = loaded.setup().kinds().to_vec();
        (kinds, tables)
    };
    let of = |kinds: &[&str]| kinds.iter().map(|kind| (*kind).to_owned()).collect::<Vec<_>>();
    assert_eq!(asked(json!({"name": "a", "forbid": ["Empty"]})), (of(&["empty"]), vec!["moves"]));
    let both = json!({"name": "a", "nodePools": ["x"], "forbid": ["Empty"], "allow": ["Rebalance"]});
    assert_eq!(asked(both), (of(&["empty", "rebalance"]), vec!["moves", "move-pools"]));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let refused = |windows: Value| {
        let config = json!({"windows": windows}).to_string();
        Loaded::<Calendar>::configure(&config).expect_err("the configuration is wrong")
    };
    assert_eq!(refused(json!([{"name": "a"}])), "window \"a\": it says nothing: give it forbid or allow");
    assert_eq!(refused(json!([{"name": "", "forbid": ["Empty"]}])), "windows[0]: it has no name");
    let twice = json!([{"name": "a", "forbid": ["Empty"]}, {"name": "a", "allow": ["Empty"]}]);
    assert_eq!(refused(twice), "window \"a\": two windows have this name");
    assert_eq!(refused(json!([{"name": "a", "nodePools": [""], "forbid": ["Empty"]}])), "window \"a\": nodePools: a name is empty");
    assert!(refused(json!([{"name": "a", "timeZone": "Mars/Utopia", "forbid": ["Empty"]}])).contains("\"Mars/Utopia\" is not known"));
    assert!(refused(json!([{"name": "a", "forbid": ["empty"]}])).contains("unknown variant `empty`"));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the hours: a window and the one of the other hours never both let a move pass, and never both hold it.
    #[test]
    fn a_window_and_its_complement_are_never_both_open(
        from in 0u32..1440, to in 0u32..1440, minute in -1_000_000i64..10_000_000, zone in prop::sample::select(vec!["UTC", "+05:45", "America/St_Johns", "Australia/Lord_Howe"]),
    ) {
        prop_assume!(from != to);
        let time = |minutes: u32| format!("{:02}:{:02}", minutes / 60, minutes % 60);
        let free = |from: u32, to: u32| {
            let config = json!({"timeZone": zone, "windows": [{"name": "w", "from": time(from), "to": time(to), "forbid": ["Empty"]}]});
            let case = Case::new(config).round([(RoundColumn::TimeSeconds, (MONDAY + minute * 60).into())]);
            let verdict = case.a_move([(MoveColumn::Kind, "empty".into())]).score::<Calendar>().unwrap().remove(0);
            matches!(verdict, Verdict::Answer { .. })
        };
        prop_assert!(free(from, to) != free(to, from));
    }

    #[test]
    fn any_second_is_answered(seconds in any::<i64>()) {
        let config = json!({"timeZone": "Europe/Berlin", "windows": [{"name": "w", "days": ["Sun"], "from": "23:00", "to": "01:00", "forbid": ["Empty"]}]});
        let case = Case::new(config).round([(RoundColumn::TimeSeconds, seconds.into())]);
        prop_assert_eq!(case.a_move([(MoveColumn::Kind, "empty".into())]).score::<Calendar>().unwrap().len(), 1);
    }
}
