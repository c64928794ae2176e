//! No text makes the reader or the converter panic, and every fault has a place in the text.

use proptest::prelude::*;
use whittle_cluster::{Strictness, convert::to_v1, link, read};

const FILES: [&str; 4] = ["walkthrough.yaml", "gpu.yaml", "snapshot.yaml", "v1beta1.yaml"];

/// Pieces that are likely to hit a seam of YAML or of a type.
const PIECES: [&str; 24] = [
    "",
    "\n",
    " ",
    "  ",
    "\t",
    "- ",
    ": ",
    "~",
    "null",
    "[",
    "]",
    "{",
    "}",
    "\"",
    "'",
    "&a ",
    "*a",
    "<<: ",
    "!!str ",
    "|\n",
    "-1",
    "1e400",
    "---\n",
    "\u{feff}é\u{0}",
];

fn file(name: &str) -> String {
    std::fs::read_to_string(format!("{}/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"))).expect("the fixture is there")
}

/// `text` with pieces written over it at some places.
fn mutated(text: &str, edits: &[(usize, usize, usize)]) -> String {
    let mut letters: Vec<char> = text.chars().collect();
    for (at, cut, piece) in edits {
        let at = at % (letters.len() + 1);
        let end = (at + cut).min(letters.len());
        letters.splice(at..end, PIECES[piece % PIECES.len()].chars());
    }
    letters.into_iter().collect()
}

fn try_all(text: &str) -> Result<(), TestCaseError> {
    let lines = text.lines().count().max(1);
    for strictness in [Strictness::Strict, Strictness::Lenient] {
        match read(text, "f", strictness) {
            Ok(objects) => drop(link(objects)),
            Err(error) => {
                prop_assert!(!error.problems.is_empty());
                for problem in &error.problems {
                    prop_assert!((1..=lines).contains(&problem.line) && problem.document >= 1, "{problem}");
                }
            }
        }
    }
    if let Ok(converted) = to_v1(text, "f") {
        prop_assert!(to_v1(&converted.yaml, "f").is_ok(), "what was written is read again:\n{}", converted.yaml);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn damaged_manifests_are_answered(which in 0..4usize, edits in prop::collection::vec((any::<usize>(), 0..12usize, any::<usize>()), 1..6)) {
        try_all(&mutated(&file(FILES[which]), &edits))?;
    }

    #[test]
    fn any_text_is_answered(text in "(\\PC|\n| |:|-|\\[|\\{|\"){0,60}") {
        try_all(&text)?;
    }
}
