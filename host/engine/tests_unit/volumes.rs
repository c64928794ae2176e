use super::*;
use std::borrow::Cow;
use whittle_model::Operator;

fn any(key: &str, values: &[&str]) -> Requirements {
    std::iter::once(Requirement::any_of(key, values)).collect()
}

fn mounted(terms: Vec<Requirements>) -> Mounted<'static> {
    Mounted { terms: Cow::Owned(terms), attached: None }
}

#[test]
fn places_of_several_volumes_hold_together() {
    let not_a: Requirements = std::iter::once(Requirement::new("zone", Operator::NotIn, &["a".to_owned()]).unwrap()).collect();
    let mut b_ssd = any("disk", &["ssd"]);
    b_ssd.add_all(&any("zone", &["b"]));
    let anywhere = Requirements::default();
    for (volumes, expected) in [
        (vec![], vec![]),
        (vec![vec![]], vec![]),
        // Terms of one key are one term.
        (vec![vec![any("zone", &["a"]), any("zone", &["c"])]], vec![any("zone", &["a", "c"])]),
        (vec![vec![any("zone", &["a", "b"])], vec![any("zone", &["b", "c"])]], vec![any("zone", &["b"])]),
        (vec![vec![any("zone", &["a", "b"])], vec![]], vec![any("zone", &["a", "b"])]),
        // Other terms stay apart, and each goes with each.
        (vec![vec![any("zone", &["a", "b"]), not_a.clone()], vec![any("zone", &["b"])]], vec![any("zone", &["b"])]),
        (vec![vec![any("zone", &["b"]), any("disk", &["ssd"])], vec![any("zone", &["b"])]], vec![any("zone", &["b"]), b_ssd]),
        // A term that asks for nothing is met everywhere.
        (vec![vec![any("zone", &["a"]), anywhere]], vec![]),
    ] {
        let all: Vec<Mounted<'_>> = volumes.iter().cloned().map(mounted).collect();
        assert_eq!(places(&all), expected, "{volumes:?}");
    }
}

#[test]
fn places_that_part_are_one_contradiction() {
    let all = [mounted(vec![any("zone", &["a"])]), mounted(vec![any("zone", &["b"]), any("zone", &["c"])])];
    let places = places(&all);
    assert_eq!(places.len(), 1);
    assert!(places[0].iter().any(Requirement::is_contradiction), "{places:?}");
}

#[test]
fn many_ways_are_cut_and_few_are_not() {
    let terms = |key: &str| (0..10).map(|n| any(&format!("{key}{n}"), &["x"])).collect();
    assert_eq!(places(&[mounted(terms("a"))]).len(), 10);
    assert_eq!(places(&[mounted(terms("a")), mounted(terms("b"))]).len(), MOST_ALTERNATIVES);
}

#[test]
fn alternatives_of_a_pod_go_before_those_of_its_volumes() {
    let demand = Demand { places: vec![any("zone", &["a"]), any("rack", &["r"])], ..Demand::default() };
    let both = |a: &Requirements, b: &Requirements| {
        let mut both = a.clone();
        both.add_all(b);
        both
    };
    let (big, small) = (any("size", &["big"]), any("size", &["small"]));
    let expected = [(&big, 0), (&big, 1), (&small, 0), (&small, 1)].map(|(size, place)| both(size, &demand.places[place]));
    assert_eq!(demand.along(&[big.clone(), small.clone()]), expected);
    // What contradicts the volumes is left out, and stays when there is nothing else: its text says why.
    assert_eq!(Demand { places: vec![any("zone", &["a"])], ..Demand::default() }.along(&[any("zone", &["b"]), big.clone()]).len(), 1);
    assert_eq!(Demand { places: vec![any("zone", &["a"])], ..Demand::default() }.along(&[any("zone", &["b"])]).len(), 1);
    assert_eq!(Demand::default().along(&[big.clone(), small.clone()]), [big, small]);
}
