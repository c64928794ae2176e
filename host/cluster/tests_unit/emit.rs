//! Writing: what was read is written so that it reads the same.

use super::*;
use crate::yaml::parse;

fn again(text: &str) -> String {
    emit(&parse(text).0[0].root)
}

#[test]
fn trees_are_written_in_block_style() {
    let text = "kind: NodePool\nspec:\n  list:\n    - key: a\n      values:\n        - \"2\"\n        - c\n    - - x\n      - z\n  empty: {}\n  none: []\n  \
                nothing: \n  number: -5\n  script: |\n    #!/bin/sh\n\n    echo \"$1\"\nlast: \"on\"\n";
    assert_eq!(again(text), text);
}

#[test]
fn flow_style_becomes_block_style_and_means_the_same() {
    assert_eq!(again("a: {b: [1, 'x: y'], \"yes\": '#'}"), "a:\n  b:\n    - 1\n    - \"x: y\"\n  \"yes\": \"#\"\n");
}

proptest::proptest! {
    #[test]
    fn what_is_written_reads_back(key in "\\PC{1,12}", text in "(\\PC|\n|\t){0,30}", style in 0..3u8) {
        let style = [Style::Plain, Style::Quoted, Style::Block][usize::from(style)];
        let scalar = Yaml { line: 0, data: Data::Scalar(Scalar { text: text.clone(), style }) };
        let mut inner = Yaml::mapping();
        inner.set(&key, scalar);
        let list = Yaml { line: 0, data: Data::Sequence(vec![inner]) };
        let mut root = Yaml::mapping();
        root.set("top", list);
        let written = emit(&root);
        let (documents, error) = parse(&written);
        proptest::prop_assert_eq!(error, None, "{}", &written);
        let back = documents[0].root.at(&["top"]).and_then(|l| l.items().first().cloned()).and_then(|m| m.get(&key).cloned());
        let Some(Yaml { data: Data::Scalar(read), .. }) = back else { panic!("lost: {written}") };
        proptest::prop_assert_eq!(read.text, text, "{}", &written);
    }
}
