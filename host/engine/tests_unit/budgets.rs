//! Tables of disruption budgets: counts, percentages, windows, reasons.

use whittle_model::{Disruption, Duration};

use super::*;

fn budget(nodes: &str, reasons: &[&str], schedule: Option<&str>) -> DisruptionBudget {
    DisruptionBudget {
        nodes: nodes.to_owned(),
        schedule: schedule.map(str::to_owned),
        duration: schedule.map(|_| Duration::minutes(60)),
        reasons: reasons.iter().map(|r| (*r).to_owned()).collect(),
    }
}

fn pool(budgets: Vec<DisruptionBudget>) -> NodePool {
    NodePool { name: "a".to_owned(), disruption: Disruption { budgets, ..Disruption::default() }, ..NodePool::default() }
}

#[test]
fn the_tightest_open_budget_binds_and_an_unreadable_one_closes() {
    let half_past_nine = Timestamp((9 * 60 + 30) * 60_000);
    let rows = [
        (vec![], 25, usize::MAX),
        (vec![budget("10%", &[], None)], 25, 3),
        (vec![budget("10%", &[], None)], 0, 0),
        (vec![budget("0%", &[], None)], 25, 0),
        (vec![budget("100%", &[], None), budget("5", &[], None)], 25, 5),
        (vec![budget("5", &["Empty"], None), budget("2", &["Drifted"], None)], 25, 5),
        (vec![budget("5", &["Drifted"], None)], 25, usize::MAX),
        (vec![budget("1", &[], Some("0 9 * * *"))], 25, 1),
        (vec![budget("1", &[], Some("0 8 * * *"))], 25, usize::MAX),
        (vec![budget("1", &[], Some("at nine"))], 25, 0),
        (vec![budget("7", &[], Some("0 8 * * *")), budget("3", &[], None)], 25, 3),
        (vec![budget("101%", &[], None)], 25, 0),
        (vec![budget("some", &[], None)], 25, 0),
    ];
    for (budgets, nodes, expected) in rows {
        let (most, why) = allowed(&pool(budgets.clone()), Reason::Empty, nodes, half_past_nine);
        assert_eq!(most, expected, "{budgets:?}");
        assert_eq!(why.is_empty(), expected == usize::MAX, "{why}");
    }
}

#[test]
fn what_is_taken_counts_for_every_reason() {
    let mut budgets = Budgets { cluster: Some(3), ..Budgets::default() };
    for pool in ["a", "b"] {
        for reason in Reason::BUDGETED {
            budgets.left.insert((pool.to_owned(), reason), 2);
        }
    }
    let pools = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
    assert!(!budgets.take(&pools(&["a", "a", "a"]), Reason::Empty), "three of two");
    assert!(budgets.take(&pools(&["a", "b"]), Reason::Empty));
    assert_eq!(budgets.left("a", Reason::Drifted), 1);
    assert!(!budgets.take(&pools(&["a", "b"]), Reason::Drifted), "the cluster has one left");
    assert!(budgets.take(&pools(&["b"]), Reason::Underutilized));
    assert_eq!(budgets.left("a", Reason::Empty), 0);
}
