//! `whittle crds`: all definitions in one stream, or a file each.

#![expect(dead_code, reason = "each test binary uses its part of the common helpers")]

mod common;

use common::{Folder, root, whittle};

#[test]
fn the_stream_is_the_kept_files_one_after_another() {
    let answer = whittle(&["crds"]);
    let mut names: Vec<_> = std::fs::read_dir(root().join("crds")).unwrap().map(|file| file.unwrap().path()).collect();
    names.sort();
    let kept: Vec<String> = names.iter().map(|path| format!("---\n{}", std::fs::read_to_string(path).unwrap())).collect();
    assert_eq!((answer.stdout, answer.exit), (kept.concat(), Some(0)), "{}", answer.stderr);
}

#[test]
fn a_directory_gets_a_file_each() {
    let folder = Folder::new("crds", &[]);
    let inner = folder.0.join("made/when/absent");
    let answer = whittle(&["crds", inner.to_str().unwrap()]);
    assert_eq!((answer.stdout.as_str(), answer.exit), ("", Some(0)), "{}", answer.stderr);
    for kept in std::fs::read_dir(root().join("crds")).unwrap().map(|file| file.unwrap()) {
        let written = inner.join(kept.file_name());
        assert_eq!(std::fs::read(&written).unwrap(), std::fs::read(kept.path()).unwrap(), "{}", written.display());
        assert!(answer.stderr.contains(written.to_str().unwrap()), "{}", answer.stderr);
    }
    let file = inner.join("whittle.sh_scoringpolicies.yaml");
    let refused = whittle(&["crds", file.to_str().unwrap()]);
    assert_eq!(refused.exit, Some(2));
    assert!(refused.stderr.contains("cannot write") && refused.stderr.contains("scoringpolicies.yaml"), "{}", refused.stderr);
}
