//! The requirement algebra against brute force: a requirement *means* the set of those members of
//! a small universe, absence among them, that its statements let pass one by one.

use proptest::prelude::*;

use super::*;

/// Integers around the bounds that are drawn, integers written oddly, and words.
const UNIVERSE: [&str; 14] = ["0", "1", "2", "3", "4", "5", "6", "7", "007", "+2", "-1", "a", "b", "1.5"];

/// One statement of a manifest.
#[derive(Debug, Clone)]
struct Statement {
    operator: Operator,
    values: Vec<String>,
}

impl Statement {
    fn requirement(&self) -> Requirement {
        Requirement::new("key", self.operator, &self.values).unwrap()
    }

    /// What Kubernetes documents for the operator, for a label with this value or none.
    fn passes(&self, label: Option<&str>) -> bool {
        let listed = label.is_some_and(|v| self.values.iter().any(|w| w == v));
        let compared = |holds: &dyn Fn(i128, i128) -> bool| {
            let bound: i128 = self.values.first().unwrap().parse().unwrap();
            label.and_then(|v| v.parse::<i128>().ok()).is_some_and(|n| holds(n, bound))
        };
        match self.operator {
            Operator::In => listed,
            Operator::NotIn => !listed,
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
            Operator::Gt => compared(&|n, bound| n > bound),
            Operator::Lt => compared(&|n, bound| n < bound),
            Operator::Gte => compared(&|n, bound| n >= bound),
            Operator::Lte => compared(&|n, bound| n <= bound),
        }
    }
}

fn words(least: usize) -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(prop::sample::select(UNIVERSE.to_vec()), least..5).prop_map(|all| all.into_iter().map(str::to_owned).collect())
}

fn statement() -> impl Strategy<Value = Statement> {
    let listing = prop_oneof![(Just(Operator::In), words(1)), (Just(Operator::NotIn), words(0))];
    let plain = (prop::sample::select(vec![Operator::Exists, Operator::DoesNotExist]), Just(Vec::new()));
    let bounds = vec![Operator::Gt, Operator::Lt, Operator::Gte, Operator::Lte];
    let bounded = (prop::sample::select(bounds), (0i64..8).prop_map(|n| vec![n.to_string()]));
    prop_oneof![3 => listing, 1 => plain, 3 => bounded].prop_map(|(operator, values)| Statement { operator, values })
}

fn statements() -> impl Strategy<Value = Vec<Statement>> {
    prop::collection::vec(statement(), 1..5)
}

fn all_of(statements: &[Statement]) -> Requirement {
    let first = statements[0].requirement();
    statements[1..].iter().fold(first, |all, next| all.intersect(&next.requirement()))
}

/// Every member of the universe, absence too, and whether the requirement lets it pass.
fn meaning(requirement: &Requirement) -> Vec<bool> {
    UNIVERSE.iter().map(|v| requirement.allows(v)).chain([requirement.admits_absence()]).collect()
}

fn oracle(statements: &[Statement]) -> Vec<bool> {
    let labels = UNIVERSE.iter().map(|v| Some(*v)).chain([None]);
    labels.map(|label| statements.iter().all(|s| s.passes(label))).collect()
}

/// Whether some value passes every statement, in all the text there is: the universe, and for each
/// integer within reach a spelling of it that nobody lists, and a word that nobody lists.
fn some_value_passes(statements: &[Statement]) -> bool {
    let spelt = (-3i64..12).map(|n| if n < 0 { format!("-00{}", -n) } else { format!("0000{n}") });
    let all = UNIVERSE.iter().map(|v| (*v).to_owned()).chain(spelt).chain(["unlisted".to_owned()]);
    all.into_iter().any(|value| statements.iter().all(|s| s.passes(Some(&value))))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_statement_means_what_kubernetes_says(statement in statement()) {
        prop_assert_eq!(meaning(&statement.requirement()), oracle(&[statement]));
    }

    #[test]
    fn intersection_is_that_of_the_sets(statements in statements()) {
        let all = all_of(&statements);
        prop_assert_eq!(meaning(&all), oracle(&statements), "{}", all);
    }

    #[test]
    fn to_intersect_is_to_leave_a_value(left in statements(), right in statements()) {
        let both: Vec<Statement> = left.iter().chain(&right).cloned().collect();
        let (a, b) = (all_of(&left), all_of(&right));
        prop_assert_eq!(a.intersects(&b), some_value_passes(&both), "{} and {}", a, b);
        prop_assert_eq!(b.intersects(&a), a.intersects(&b));
    }

    #[test]
    fn order_and_repetition_do_not_matter(a in statements(), b in statements(), c in statements(), least in prop::option::of(1u32..9)) {
        let (a, b, c) = (all_of(&a).with_min_values(least), all_of(&b), all_of(&c));
        prop_assert_eq!(a.intersect(&b), b.intersect(&a));
        prop_assert_eq!(a.intersect(&b).intersect(&c), a.intersect(&b.intersect(&c)));
        prop_assert_eq!(a.intersect(&a), a);
    }

    #[test]
    fn a_contradiction_is_what_nothing_passes(statements in statements()) {
        let nothing = !some_value_passes(&statements) && !statements.iter().all(|s| s.passes(None));
        prop_assert_eq!(all_of(&statements).is_contradiction(), nothing);
    }

    #[test]
    fn a_single_value_is_the_only_one(statements in statements()) {
        let all = all_of(&statements);
        if let Some(value) = all.single() {
            prop_assert!(all.allows(value));
            prop_assert_eq!(UNIVERSE.iter().filter(|v| all.allows(v)).count(), 1);
        }
    }

    #[test]
    fn serialization_keeps_the_requirement(statements in statements(), least in prop::option::of(0u32..99)) {
        let all = all_of(&statements).with_min_values(least);
        let json = serde_json::to_string(&all).unwrap();
        prop_assert_eq!(serde_json::from_str::<Requirement>(&json).unwrap(), all);
    }

    #[test]
    fn what_it_reads_as_says_it_again(statements in statements()) {
        // The operator, values and bounds are all that a manifest can be written from.
        let all = all_of(&statements);
        if all.is_contradiction() || all.bounds().1 == Some(-1) {
            return Ok(()); // a manifest cannot state these
        }
        let listed: Vec<String> = all.values().iter().cloned().collect();
        let mut again = match all.operator() {
            Operator::In | Operator::NotIn => Requirement::new("key", all.operator(), &listed).unwrap(),
            Operator::DoesNotExist => Requirement::absent("key"),
            Operator::Exists => Requirement::exists("key").intersect(&Requirement::new("key", Operator::NotIn, &listed).unwrap()),
            Operator::Gt | Operator::Lt | Operator::Gte | Operator::Lte => unreachable!("bounds read as Exists"),
        };
        for (bound, operator) in [(all.bounds().0, Operator::Gte), (all.bounds().1, Operator::Lte)] {
            if let Some(bound) = bound {
                again = again.intersect(&Requirement::new("key", operator, &[bound.to_string()]).unwrap());
            }
        }
        prop_assert_eq!(again, all);
    }
}

fn of(operator: Operator, values: &[&str]) -> Requirement {
    let values: Vec<String> = values.iter().map(|v| (*v).to_owned()).collect();
    Requirement::new("key", operator, &values).unwrap()
}

#[test]
fn every_operator_reads_as_documented() {
    for (requirement, operator, absence, text) in [
        (of(Operator::In, &["b", "a"]), Operator::In, false, "key In [a, b]"),
        (of(Operator::NotIn, &["a"]), Operator::NotIn, true, "key NotIn [a]"),
        (of(Operator::NotIn, &[]), Operator::NotIn, true, "key NotIn []"),
        (of(Operator::Exists, &[]), Operator::Exists, false, "key Exists"),
        (of(Operator::DoesNotExist, &[]), Operator::DoesNotExist, true, "key DoesNotExist"),
        (of(Operator::Gt, &["2"]), Operator::Exists, false, "key >= 3"),
        (of(Operator::Lt, &["2"]), Operator::Exists, false, "key <= 1"),
        (of(Operator::Gte, &["2"]), Operator::Exists, false, "key >= 2"),
        (of(Operator::Lte, &["2"]), Operator::Exists, false, "key <= 2"),
    ] {
        assert_eq!((requirement.operator(), requirement.admits_absence()), (operator, absence), "{requirement}");
        assert_eq!(requirement.to_string(), text);
    }
    for operator in Operator::ALL {
        assert_eq!(Operator::parse(operator.name()), Some(operator));
    }
    assert_eq!(Operator::parse("in"), None);
}

#[test]
fn intersections_at_the_corners() {
    let greatest = i64::MAX.to_string();
    for (left, right, text) in [
        (of(Operator::Gte, &["5"]), of(Operator::Lte, &["5"]), "key >= 5, <= 5"),
        (of(Operator::Gt, &["5"]), of(Operator::Lt, &["6"]), "key In []"),
        (of(Operator::Gt, &["7"]), of(Operator::Lt, &["3"]), "key In []"),
        (of(Operator::NotIn, &["4", "9", "a"]), of(Operator::Lt, &["6"]), "key <= 5, NotIn [4]"),
        (of(Operator::In, &["4", "9", "a"]), of(Operator::Lt, &["6"]), "key In [4]"),
        (of(Operator::In, &["a", "b"]), of(Operator::Gte, &["0"]), "key In []"),
        (of(Operator::In, &["a"]), of(Operator::In, &["b"]), "key In []"),
        (of(Operator::In, &["a"]), of(Operator::DoesNotExist, &[]), "key In []"),
        (of(Operator::Exists, &[]), of(Operator::DoesNotExist, &[]), "key In []"),
        (of(Operator::Exists, &[]), of(Operator::NotIn, &["a"]), "key Exists, NotIn [a]"),
        (of(Operator::NotIn, &["a"]), of(Operator::NotIn, &["b"]), "key NotIn [a, b]"),
        (of(Operator::NotIn, &["a"]), of(Operator::DoesNotExist, &[]), "key DoesNotExist"),
        (of(Operator::Gt, &[&greatest]), of(Operator::Exists, &[]), "key In []"),
        (of(Operator::Gte, &[&greatest]), of(Operator::Exists, &[]), "key >= 9223372036854775807"),
        (of(Operator::Lt, &["0"]), of(Operator::Exists, &[]), "key <= -1"),
    ] {
        assert_eq!(left.intersect(&right).to_string(), text, "{left} and {right}");
        assert_eq!(right.intersect(&left).to_string(), text, "{right} and {left}");
    }
}

#[test]
fn what_excludes_itself_is_passed_by_nothing_not_even_absence() {
    for contradiction in [
        of(Operator::In, &["a"]).intersect(&of(Operator::In, &["b"])),
        of(Operator::Gt, &["3"]).intersect(&of(Operator::Lt, &["2"])),
        of(Operator::Gt, &[&i64::MAX.to_string()]),
        of(Operator::Exists, &[]).intersect(&of(Operator::DoesNotExist, &[])),
    ] {
        assert!(contradiction.is_contradiction() && !contradiction.admits_absence(), "{contradiction}");
        assert!(!contradiction.intersects(&Requirement::exists("key")));
    }
    assert!(!Requirement::absent("key").is_contradiction());
}

#[test]
fn the_larger_min_values_stays() {
    for (left, right, both) in [(None, None, None), (Some(2), None, Some(2)), (Some(2), Some(5), Some(5)), (Some(0), None, Some(0))] {
        let (a, b) = (Requirement::exists("key").with_min_values(left), Requirement::any_of("key", &["a"]).with_min_values(right));
        assert_eq!((a.intersect(&b).min_values(), b.intersect(&a).min_values()), (both, both));
    }
    let crossed = of(Operator::Gt, &["7"]).with_min_values(Some(3)).intersect(&of(Operator::Lt, &["2"]));
    assert_eq!(crossed.min_values(), Some(3));
}

#[test]
fn values_that_do_not_suit_the_operator_are_refused() {
    let refused = |operator, values: &[&str]| {
        let values: Vec<String> = values.iter().map(|v| (*v).to_owned()).collect();
        Requirement::new("key", operator, &values).unwrap_err().to_string()
    };
    assert_eq!(refused(Operator::In, &[]), "operator In on key \"key\" needs at least one value");
    assert_eq!(refused(Operator::Exists, &["a"]), "operator Exists on key \"key\" takes no values, not [\"a\"]");
    assert_eq!(refused(Operator::DoesNotExist, &["a"]), "operator DoesNotExist on key \"key\" takes no values, not [\"a\"]");
    for operator in [Operator::Gt, Operator::Lt, Operator::Gte, Operator::Lte] {
        for values in [&[][..], &["1", "2"], &["-1"], &["1.5"], &["a"], &[""], &["9223372036854775808"]] {
            assert!(refused(operator, values).contains("exactly one non-negative integer"), "{operator:?} {values:?}");
        }
    }
}
