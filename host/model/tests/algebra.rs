//! The requirement algebra against the sets it stands for: every pair of operators as what is there, alone or joined,
//! against every operator as what is asked for, with the key well known or not.

use whittle_model::{Labels, Operator, Requirement, Requirements};

const KEY: &str = "example.com/key";

/// Values that tell any two statements of the table apart, and one that no statement names.
const UNIVERSE: [&str; 15] = ["-1", "0", "1", "2", "3", "4", "04", "5", "6", "7", "8", "99999999999999999999", "x", "y", "fresh"];

/// What a manifest may state about one key.
const STATEMENTS: [(Operator, &[&str]); 16] = [
    (Operator::In, &["1"]),
    (Operator::In, &["x"]),
    (Operator::In, &["4", "7", "x"]),
    (Operator::In, &["99999999999999999999"]),
    (Operator::NotIn, &["1"]),
    (Operator::NotIn, &["x", "7"]),
    (Operator::NotIn, &["4"]),
    (Operator::Exists, &[]),
    (Operator::DoesNotExist, &[]),
    (Operator::Gt, &["3"]),
    (Operator::Gt, &["7"]),
    (Operator::Gte, &["4"]),
    (Operator::Lt, &["4"]),
    (Operator::Lt, &["5"]),
    (Operator::Lte, &["7"]),
    (Operator::Lte, &["0"]),
];

type Statement = (Operator, &'static [&'static str]);

/// Whether a label of this value, or no label, meets a statement: the meaning, spelled out.
fn meets(value: Option<&str>, (operator, values): Statement) -> bool {
    let number = |text: &str| text.parse::<i64>().ok();
    let compares = |holds: fn(i64, i64) -> bool| {
        let bound = number(values[0]).expect("a bound of the table is an integer");
        value.and_then(number).is_some_and(|n| holds(n, bound))
    };
    match operator {
        Operator::In => value.is_some_and(|v| values.contains(&v)),
        Operator::NotIn => value.is_none_or(|v| !values.contains(&v)),
        Operator::Exists => value.is_some(),
        Operator::DoesNotExist => value.is_none(),
        Operator::Gt => compares(|n, bound| n > bound),
        Operator::Gte => compares(|n, bound| n >= bound),
        Operator::Lt => compares(|n, bound| n < bound),
        Operator::Lte => compares(|n, bound| n <= bound),
    }
}

fn requirement((operator, values): Statement) -> Requirement {
    let values: Vec<String> = values.iter().map(|v| (*v).to_owned()).collect();
    Requirement::new(KEY, operator, &values).expect("a statement of the table is well formed")
}

/// Everything that a label may be: absent, or a value.
fn shown() -> impl Iterator<Item = Option<&'static str>> {
    std::iter::once(None).chain(UNIVERSE.into_iter().map(Some))
}

/// One statement, or two joined.
fn haves() -> Vec<Vec<Statement>> {
    let pairs = STATEMENTS.iter().flat_map(|a| STATEMENTS.iter().map(move |b| vec![*a, *b]));
    STATEMENTS.iter().map(|one| vec![*one]).chain(pairs).collect()
}

#[test]
fn a_conjunction_is_met_by_what_meets_both() {
    let mut cases = 0;
    for have in haves() {
        let all: Requirements = have.iter().map(|s| requirement(*s)).collect();
        let one = all.get(KEY).expect("it was just added");
        for value in shown() {
            let want = have.iter().all(|s| meets(value, *s));
            let labels: Labels = value.map(|v| (KEY.to_owned(), v.to_owned())).into_iter().collect();
            assert_eq!(all.met_by(&labels), want, "{all} by {value:?}");
            match value {
                Some(value) => assert_eq!(one.allows(value), want, "{all} allows {value}"),
                None => assert_eq!(one.admits_absence(), want, "{all} admits absence"),
            }
            cases += 1;
        }
        assert_eq!(one.is_contradiction(), shown().all(|v| !have.iter().all(|s| meets(v, *s))), "{all}");
    }
    assert_eq!(cases, 272 * 16);
}

#[test]
fn what_is_asked_for_can_be_had_where_the_sets_meet() {
    let mut cases = 0;
    for have in haves() {
        let there: Requirements = have.iter().map(|s| requirement(*s)).collect();
        for want in STATEMENTS {
            let asked: Requirements = [requirement(want)].into_iter().collect();
            let meet = shown().any(|v| meets(v, want) && have.iter().all(|s| meets(v, *s)));
            for known in [false, true] {
                assert_eq!(there.compatible(&asked, &|_| known).is_ok(), meet, "{there} for {asked}, well known: {known}");
                cases += 1;
            }
            assert_eq!(there.intersects(&asked), meet, "{there} and {asked}");
            assert_eq!(asked.intersects(&there), meet, "{asked} and {there}");
            let values = shown().flatten().any(|v| meets(Some(v), want) && have.iter().all(|s| meets(Some(v), *s)));
            let (a, b) = (there.get(KEY).expect("it was just added"), requirement(want));
            assert_eq!((a.intersects(&b), b.intersects(a)), (values, values), "{a} and {b}, values alone");
        }
    }
    assert_eq!(cases, 272 * 16 * 2);
}

#[test]
fn what_is_not_defined_can_be_had_when_it_is_well_known_or_absence_will_do() {
    let nothing = Requirements::default();
    for want in STATEMENTS {
        let asked: Requirements = [requirement(want)].into_iter().collect();
        for known in [false, true] {
            let fits = known || meets(None, want);
            assert_eq!(nothing.compatible(&asked, &|_| known).is_ok(), fits, "{asked}, well known: {known}");
        }
        assert!(nothing.intersects(&asked) && asked.intersects(&nothing), "keys of one side alone are no matter");
    }
}

#[test]
fn the_order_of_statements_is_no_matter() {
    for (a, b, c) in
        STATEMENTS.iter().flat_map(|a| STATEMENTS.iter().map(move |b| (a, b))).flat_map(|(a, b)| STATEMENTS.iter().map(move |c| (a, b, c)))
    {
        let [a, b, c] = [a, b, c].map(|s| requirement(*s));
        assert_eq!(a.intersect(&b).intersect(&c), a.intersect(&b.intersect(&c)), "{a}, {b}, {c}");
        assert_eq!(a.intersect(&b), b.intersect(&a), "{a}, {b}");
    }
}
