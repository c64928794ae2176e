//! Parsing: documents, lines, anchors, and what is refused.

use super::*;

fn root(text: &str) -> Yaml {
    let (documents, error) = parse(text);
    assert_eq!(error, None, "{text}");
    documents.into_iter().next().expect("the text holds a document").root
}

#[test]
fn documents_are_numbered_and_empty_ones_counted() {
    let (documents, error) = parse("# head\n---\na: 1\n---\n# nothing\n---\nb: 2\n");
    assert_eq!(error, None);
    let got: Vec<(usize, usize)> = documents.iter().map(|d| (d.number, d.root.line)).collect();
    assert_eq!(got, [(1, 3), (3, 7)]);
}

#[test]
fn files_of_other_editors_are_taken() {
    let tree = root("\u{feff}a: 1\r\nb:\r\n- x\r\n");
    assert_eq!((tree.text_at(&["a"]), tree.at(&["b"]).map(|b| b.items().len())), (Some("1"), Some(1)));
}

#[test]
fn lines_are_those_of_keys_and_values() {
    let tree = root("a:\n  b:\n  - x\n  - y: 1\n");
    for (keys, line) in [(vec!["a"], 1), (vec!["a", "b"], 2), (vec!["a", "nope"], 1), (vec!["nope"], 1)] {
        assert_eq!(tree.line_of(&crate::yaml::Path::of(&keys)), line, "{keys:?}");
    }
    let path = crate::yaml::Path::of(&["a", "b"]).join(crate::yaml::Segment::Index(1));
    assert_eq!(tree.line_of(&path), 4);
}

#[test]
fn anchors_and_merge_keys_are_resolved() {
    let tree = root("base: &base {cpu: 1, memory: 1Gi}\nuse:\n  <<: *base\n  cpu: 2\nlist: [*base]\n");
    assert_eq!(tree.text_at(&["use", "cpu"]), Some("2"));
    assert_eq!(tree.text_at(&["use", "memory"]), Some("1Gi"));
    assert_eq!(tree.at(&["list"]).map(|l| l.items().len()), Some(1));
}

#[test]
fn every_syntax_error_has_its_place_and_advice() {
    let deep = format!("{}1{}", "[".repeat(120), "]".repeat(120));
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for n in 1..8 {
        let before = format!("*a{}", n - 1);
        bomb.push_str(&format!("a{n}: &a{n} [{}]\n", vec![before; 10].join(", ")));
    }
    for (text, document, line, part) in [
        ("a: 1\nb:\n\tc: 2\n", 1, 3, "no tabs"),
        ("a: 1\n---\na: 1\nb: 2\na: 3\n", 2, 5, "\"a\" is given twice, first on line 3"),
        ("a: [1, 2\nb: 3\n", 1, 2, "not YAML"),
        ("name: {{ .Values.name }}\n", 1, 1, "template"),
        ("a: *nowhere\n", 1, 1, "not YAML"),
        ("<<: 5\n", 1, 1, "merge key"),
        ("a: &a [*a]\n", 1, 1, "inside the anchor"),
        (deep.as_str(), 1, 1, "levels deep"),
        (bomb.as_str(), 1, 6, "aliases expand"),
    ] {
        let error = parse(text).1.unwrap_or_else(|| panic!("{text} is taken"));
        assert_eq!((error.document, error.line), (document, line), "{text}: {error:?}");
        assert!(error.what.contains(part), "{text}: {}", error.what);
    }
}
