//! Whom selectors and namespaces mean.

use whittle_model::SelectorRequirement;

use super::*;

fn requirement(key: &str, operator: SelectorOperator, values: &[&str]) -> SelectorRequirement {
    SelectorRequirement { key: key.to_owned(), operator, values: values.iter().map(|v| (*v).to_owned()).collect() }
}

fn selector(requirements: &[SelectorRequirement]) -> LabelSelector {
    LabelSelector { requirements: requirements.to_vec() }
}

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

#[test]
fn equal_meanings_are_one_number_and_others_are_not() {
    let (x, y) = (requirement("k", SelectorOperator::In, &["x"]), requirement("k", SelectorOperator::In, &["y"]));
    let mut whos = Whos::default();
    let mut number = |requirements: &[SelectorRequirement]| whos.number(Who::within("default", &selector(requirements)));
    let (twice_x, twice_y) = (number(&[x.clone(), x.clone()]), number(&[y.clone(), y.clone()]));
    assert_ne!(twice_x, twice_y, "what is written twice does not cancel out");
    assert_eq!(twice_x, number(std::slice::from_ref(&x)));
    let other = requirement("a", SelectorOperator::Exists, &[]);
    assert_eq!(number(&[x.clone(), other.clone()]), number(&[other, x]));
    let both = requirement("k", SelectorOperator::In, &["x", "y"]);
    assert_eq!(number(&[both]), number(&[requirement("k", SelectorOperator::In, &["y", "x", "y"])]));
    assert_ne!(number(&[]), whos.number(Who::within("default", &LabelSelector::nothing())));
}

#[test]
fn pods_are_found_by_what_they_bear() {
    let mut world = World::default();
    world.namespaces.insert("red".to_owned(), labels(&[("team", "red")]));
    world.namespaces.insert("blue".to_owned(), labels(&[("team", "blue")]));
    let term = |namespaces: &[&str], namespace_selector: Option<LabelSelector>, pods: LabelSelector| PodAffinityTerm {
        topology_key: "zone".to_owned(),
        namespaces: namespaces.iter().map(|n| (*n).to_owned()).collect(),
        namespace_selector,
        selector: pods,
    };
    let web = LabelSelector::of_labels(&labels(&[("app", "web")]));
    let red = LabelSelector::of_labels(&labels(&[("team", "red")]));
    let not_web = selector(&[requirement("app", SelectorOperator::NotIn, &["web"])]);
    let terms = [
        term(&["default"], None, web.clone()),
        term(&["default"], Some(red), web.clone()),
        term(&[], Some(LabelSelector::default()), web.clone()),
        term(&["default"], None, not_web),
        term(&["default"], None, LabelSelector::nothing()),
    ];
    let mut whos = Whos::default();
    let numbers: Vec<WhoId> = terms.iter().map(|t| whos.number(Who::of_terms(&world, [t].into_iter()))).collect();
    assert_eq!(numbers, vec![0, 1, 2, 3, 4]);
    assert_eq!(whos.meaning("default", &labels(&[("app", "web")])), vec![0, 1, 2]);
    assert_eq!(whos.meaning("red", &labels(&[("app", "web")])), vec![1, 2]);
    assert_eq!(whos.meaning("blue", &labels(&[("app", "web")])), vec![2]);
    assert_eq!(whos.meaning("unheard-of", &labels(&[("app", "web")])), vec![2]);
    assert_eq!(whos.meaning("default", &labels(&[])), vec![3]);
    // Required affinity means pods that match every term of it.
    let tier = LabelSelector::of_labels(&labels(&[("tier", "front")]));
    let joint = whos.number(Who::of_terms(&world, [&term(&["default"], None, web), &term(&["default"], None, tier)].into_iter()));
    assert_eq!(whos.meaning("default", &labels(&[("app", "web"), ("tier", "front")])), vec![0, 1, 2, joint]);
}
