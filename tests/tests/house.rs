//! The house as it stands keeps every rule. That each rule would name a violation is shown beside it.

use whittle_tests::{rules, tree};

#[test]
fn every_rule_of_the_house_is_kept() {
    let files = tree::files(&tree::root()).unwrap();
    let mut broken = String::new();
    for (name, rule) in rules::ALL {
        let mut breaches = rule(&files);
        breaches.sort();
        for breach in &breaches {
            broken += &format!("\n{name}: {breach}");
        }
    }
    assert!(broken.is_empty(), "{broken}");
}
