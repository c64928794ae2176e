//! Rules over every text file: pages, goldens, data, and what must not be told in any of them.

use crate::{Breach, File};

/// The longest a golden answer may be.
pub const MOST_GOLDEN_LINES: usize = 60;
/// The longest the README may be.
pub const MOST_README_LINES: usize = 120;

/// The pages a reader finds, and a word each must hold.
pub const PAGES: [(&str, &str); 4] =
    [("README.md", "make demo"), ("ARCHITECTURE.md", "must not know"), ("CHANGELOG.md", "Unreleased"), ("LICENSE", "Apache License")];

/// Notes to oneself. Written in two halves so that this file passes its own rule.
const MARKS: [&str; 4] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X:"), concat!("HA", "CK:")];

/// Folders of a machine, and ways to point cargo at another registry.
const MACHINE_NAMES: [&str; 6] = [
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/tm", "p/"),
    concat!("/ho", "me/"),
    concat!("replace", "-with"),
    concat!("spar", "se+http"),
];

fn lines_that_hold(files: &[File], needles: &[&str], what: &str) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for file in files {
        for (at, line) in file.text.lines().enumerate() {
            if let Some(needle) = needles.iter().find(|needle| line.contains(**needle)) {
                breaches.push(Breach::at(&file.path, at + 1, format!("{needle}: {what}")));
            }
        }
    }
    breaches
}

/// No file marks work as unfinished: it is done, or it is written down as absent.
#[must_use]
pub fn no_marks_of_unfinished_work(files: &[File]) -> Vec<Breach> {
    lines_that_hold(files, &MARKS, "do it, or say in ARCHITECTURE that it is absent")
}

/// No file names folders of the machine it was written on, or its registries.
#[must_use]
pub fn no_machine_names(files: &[File]) -> Vec<Breach> {
    lines_that_hold(files, &MACHINE_NAMES, "names a machine; use a relative path or a temporary directory")
}

/// A golden answer can be read in one look.
#[must_use]
pub fn short_goldens(files: &[File]) -> Vec<Breach> {
    let goldens = files.iter().filter(|file| file.name() == "golden" || file.name().ends_with(".golden"));
    let long = goldens.filter(|file| file.text.lines().count() > MOST_GOLDEN_LINES);
    long.map(|file| {
        Breach::at(&file.path, MOST_GOLDEN_LINES, format!("a golden of more than {MOST_GOLDEN_LINES} lines: tell a shorter story"))
    })
    .collect()
}

/// The pages exist, say what they must, and the README stays short.
#[must_use]
pub fn pages(files: &[File]) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for (path, word) in PAGES {
        match files.iter().find(|file| file.path == path) {
            None => breaches.push(Breach::at(path, 1, "missing")),
            Some(page) if !page.text.contains(word) => breaches.push(Breach::at(path, 1, format!("does not say {word:?}"))),
            Some(page) if path == "README.md" && page.text.lines().count() > MOST_README_LINES => {
                breaches.push(Breach::at(path, MOST_README_LINES, format!("more than {MOST_README_LINES} lines")));
            }
            Some(_) => {}
        }
    }
    breaches
}

/// Pages, manifests, sources and goldens end in exactly one newline.
#[must_use]
pub fn ends_in_newline(files: &[File]) -> Vec<Breach> {
    let kinds = [".rs", ".md", ".toml", ".yaml", "golden", "story"];
    let written = files.iter().filter(|file| kinds.iter().any(|kind| file.path.ends_with(kind)) && !file.text.is_empty());
    let ragged = written.filter(|file| !file.text.ends_with('\n') || file.text.ends_with("\n\n"));
    ragged.map(|file| Breach::at(&file.path, file.text.lines().count(), "must end in one newline")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_of_unfinished_work_is_named() {
        for mark in MARKS {
            let breaches = no_marks_of_unfinished_work(&[File::new("a.rs", &format!("fn f() {{}}\n// {mark} later\n"))]);
            assert_eq!(breaches.iter().map(|b| b.line).collect::<Vec<_>>(), [2], "{mark}");
        }
        assert_eq!(no_marks_of_unfinished_work(&[File::new("a.rs", "// done\n")]), []);
    }

    #[test]
    fn a_machine_is_named() {
        for name in MACHINE_NAMES {
            assert_eq!(no_machine_names(&[File::new("a.yaml", &format!("path: {name}x\n"))]).len(), 1, "{name}");
        }
        assert_eq!(no_machine_names(&[File::new("a.md", "see host/model and ~/.cache\n")]), []);
    }

    #[test]
    fn a_long_golden_is_named() {
        for path in ["examples/a/golden", "tests/fixtures/b.golden"] {
            assert_eq!(short_goldens(&[File::new(path, &"line\n".repeat(61))]).len(), 1, "{path}");
            assert_eq!(short_goldens(&[File::new(path, &"line\n".repeat(60))]), [], "{path}");
        }
        assert_eq!(short_goldens(&[File::new("data.csv", &"line\n".repeat(61))]), []);
    }

    #[test]
    fn a_missing_or_empty_or_long_page_is_named() {
        let good: Vec<File> = PAGES.iter().map(|(path, word)| File::new(path, &format!("{word}\n"))).collect();
        assert_eq!(pages(&good), []);
        assert_eq!(pages(&good[1..]), [Breach::at("README.md", 1, "missing")]);
        let mut empty = good.clone();
        empty[1].text.clear();
        assert_eq!(pages(&empty)[0].path, "ARCHITECTURE.md");
        let mut long = good;
        long[0].text = "make demo\n".repeat(121);
        assert_eq!(pages(&long)[0].line, 120);
    }

    #[test]
    fn a_ragged_end_is_named() {
        for (text, breaches) in [("a\n", 0), ("a", 1), ("a\n\n", 1), ("", 0)] {
            assert_eq!(ends_in_newline(&[File::new("a.md", text)]).len(), breaches, "{text:?}");
        }
        assert_eq!(ends_in_newline(&[File::new("a.csv", "a")]), []);
    }
}
