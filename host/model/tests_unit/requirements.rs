//! Conjunctions over several keys, against brute force over every labelling of a small universe.

use proptest::prelude::*;

use super::*;
use crate::Operator;

const KEYS: [&str; 3] = ["arch", "tier", "zone"];
const VALUES: [&str; 4] = ["1", "3", "a", "b"];

fn requirement() -> impl Strategy<Value = Requirement> {
    let key = prop::sample::select(KEYS.to_vec());
    let listed = prop::collection::vec(prop::sample::select(VALUES.to_vec()), 1..4);
    (key, prop::sample::select(Operator::ALL.to_vec()), listed, 0i64..4).prop_map(|(key, operator, listed, bound)| {
        let values = match operator {
            Operator::In | Operator::NotIn => listed.into_iter().map(str::to_owned).collect(),
            Operator::Exists | Operator::DoesNotExist => Vec::new(),
            Operator::Gt | Operator::Lt | Operator::Gte | Operator::Lte => vec![bound.to_string()],
        };
        Requirement::new(key, operator, &values).unwrap()
    })
}

fn several() -> impl Strategy<Value = Vec<Requirement>> {
    prop::collection::vec(requirement(), 0..6)
}

fn all_of(list: &[Requirement]) -> Requirements {
    list.iter().cloned().collect()
}

/// Every way to label an object with the keys: each absent or with one of the values, and with a
/// number and a word that no requirement lists, which stand for all the text there is besides.
fn labellings() -> Vec<Labels> {
    let choices: Vec<Option<&str>> = [None, Some("-1"), Some("0"), Some("02"), Some("009"), Some("other"), Some("01"), Some("03")]
        .into_iter()
        .chain(VALUES.map(Some))
        .collect();
    let mut all = vec![Labels::new()];
    for key in KEYS {
        let longer = |labels: &Labels| {
            let with = |choice: &Option<&str>| {
                let mut labels = labels.clone();
                labels.extend(choice.map(|v| (key.to_owned(), v.to_owned())));
                labels
            };
            choices.iter().map(with).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

fn passes(requirement: &Requirement, labels: &Labels) -> bool {
    labels.get(requirement.key()).map_or_else(|| requirement.admits_absence(), |value| requirement.allows(value))
}

fn nothing_open(_: &str) -> bool {
    false
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn labels_meet_all_or_not(list in several()) {
        let all = all_of(&list);
        for labels in labellings() {
            prop_assert_eq!(all.met_by(&labels), list.iter().all(|r| passes(r, &labels)), "{} {:?}", all, labels);
        }
    }

    #[test]
    fn the_order_of_adding_does_not_matter(list in several(), more in several()) {
        let (all, other) = (all_of(&list), all_of(&more));
        let backwards: Requirements = list.iter().rev().cloned().collect();
        prop_assert_eq!(&backwards, &all);
        let (mut left, mut right, mut twice) = (all.clone(), other.clone(), all.clone());
        left.add_all(&other);
        right.add_all(&all);
        twice.add_all(&all);
        prop_assert_eq!(left, right);
        prop_assert_eq!(twice, all);
    }

    #[test]
    fn two_sets_intersect_when_one_object_meets_both(list in several(), more in several()) {
        let (left, right) = (all_of(&list), all_of(&more));
        // A key that only one side has is no matter, and neither is a side that contradicts itself there.
        let shared = |all: &Requirements, other: &Requirements| {
            let on_both = all.iter().filter(|r| other.get(r.key()).is_some()).cloned();
            on_both.collect::<Requirements>()
        };
        let (a, b) = (shared(&left, &right), shared(&right, &left));
        let wanted = labellings().iter().any(|labels| a.met_by(labels) && b.met_by(labels));
        prop_assert_eq!(left.intersects(&right), wanted, "{} and {}", left, right);
        prop_assert_eq!(right.intersects(&left), wanted);
    }

    #[test]
    fn compatible_asks_for_defined_keys_only(list in several(), more in several(), open in prop::sample::subsequence(KEYS.to_vec(), 0..=3)) {
        let (have, want) = (all_of(&list), all_of(&more));
        let open_for = |key: &str| open.contains(&key);
        let answer = have.compatible(&want, &open_for);
        let parts_on = |wanted: &&Requirement| match have.get(wanted.key()) {
            None => !(wanted.admits_absence() || open_for(wanted.key())),
            Some(there) => !labellings().iter().any(|labels| passes(there, labels) && passes(wanted, labels)),
        };
        let first = want.iter().find(parts_on);
        prop_assert_eq!(answer.as_ref().err().map(|why| why.key.as_str()), first.map(Requirement::key), "{} asked for {}", have, want);
        if let Err(why) = answer {
            prop_assert_eq!(why.have.as_ref(), have.get(&why.key));
            prop_assert_eq!(Some(&why.want), want.get(&why.key));
        }
    }

    #[test]
    fn exact_labels_meet_what_they_are_compatible_with(list in several(), at in 0usize..1728) {
        let (wanted, labels) = (all_of(&list), labellings().swap_remove(at));
        prop_assert_eq!(Requirements::of_labels(&labels).compatible(&wanted, &nothing_open).is_ok(), wanted.met_by(&labels));
    }

    #[test]
    fn serialization_keeps_the_set(list in several()) {
        let all = all_of(&list);
        let json = serde_json::to_string(&all).unwrap();
        prop_assert_eq!(serde_json::from_str::<Requirements>(&json).unwrap(), all);
    }
}

#[test]
fn the_corners_of_compatible() {
    let of = |operator, values: &[&str]| {
        let values: Vec<String> = values.iter().map(|v| (*v).to_owned()).collect();
        [Requirement::new("tier", operator, &values).unwrap()].into_iter().collect::<Requirements>()
    };
    let none = Requirements::default();
    for (have, want, open, agrees) in [
        (&none, of(Operator::In, &["a"]), false, false),
        (&none, of(Operator::In, &["a"]), true, true),
        (&none, of(Operator::Exists, &[]), false, false),
        (&none, of(Operator::NotIn, &["a"]), false, true),
        (&none, of(Operator::DoesNotExist, &[]), false, true),
        (&of(Operator::Exists, &[]), of(Operator::In, &["a"]), false, true),
        (&of(Operator::Exists, &[]), of(Operator::DoesNotExist, &[]), false, false),
        (&of(Operator::DoesNotExist, &[]), of(Operator::NotIn, &["a"]), false, true),
        (&of(Operator::DoesNotExist, &[]), of(Operator::DoesNotExist, &[]), false, true),
        (&of(Operator::DoesNotExist, &[]), of(Operator::Exists, &[]), true, false),
        (&of(Operator::NotIn, &["a"]), of(Operator::In, &["a"]), true, false),
        (&of(Operator::NotIn, &["a"]), of(Operator::DoesNotExist, &[]), false, true),
        (&of(Operator::Gte, &["3"]), of(Operator::Lt, &["3"]), true, false),
        (&of(Operator::Gte, &["3"]), of(Operator::Lte, &["3"]), false, true),
    ] {
        assert_eq!(have.compatible(&want, &|_| open).is_ok(), agrees, "{have} asked for {want}, open: {open}");
    }
    assert_eq!(
        none.compatible(&of(Operator::In, &["a"]), &nothing_open).unwrap_err().to_string(),
        "asked for tier In [a], but label tier is not defined"
    );
    let other = of(Operator::In, &["b"]).compatible(&of(Operator::In, &["a"]), &nothing_open).unwrap_err();
    assert_eq!(other.to_string(), "asked for tier In [a], but only tier In [b] is there");
}
