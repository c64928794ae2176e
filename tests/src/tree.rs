//! The files of the project, and what is wrong with one of them. No rule lives here.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A text file of the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Relative to the project's root, parts divided by `/`.
    pub path: String,
    /// All of it.
    pub text: String,
}

impl File {
    /// A file as it would be at `path`; rules are tried on such.
    #[must_use]
    pub fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned() }
    }

    /// Its last part.
    #[must_use]
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Whether it is Rust source.
    #[must_use]
    pub fn is_rust(&self) -> bool {
        Path::new(&self.path).extension().is_some_and(|extension| extension == "rs")
    }

    /// Whether all of it is test code: a crate's `tests` and `tests_unit` folders. The top folder
    /// `tests` is a package with sources of its own and counts as any other.
    #[must_use]
    pub fn is_test(&self) -> bool {
        self.path.split('/').enumerate().any(|(depth, part)| part == "tests_unit" || (part == "tests" && depth > 0))
    }
}

/// A rule that a file breaks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Breach {
    /// The file, relative to the project's root.
    pub path: String,
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong and what would be right.
    pub what: String,
}

impl Breach {
    /// A breach at a line.
    #[must_use]
    pub fn at(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, what: what.into() }
    }
}

impl std::fmt::Display for Breach {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}

/// The project's root.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(PathBuf::new, Path::to_path_buf)
}

/// Every text file below `root`, ordered by path; what is built, what git keeps and what `.gitignore`
/// names by its whole path is left out.
///
/// # Errors
/// When a folder or file cannot be read.
pub fn files(root: &Path) -> io::Result<Vec<File>> {
    let ignored = fs::read_to_string(root.join(".gitignore")).unwrap_or_default();
    let ignored: Vec<&str> = ignored.lines().filter_map(|line| line.strip_prefix('/')).collect();
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let (path, kind) = (entry.path(), entry.file_type()?);
            if ignored.contains(&relative(root, &path).as_str()) {
                continue;
            }
            if kind.is_dir() {
                if ![".git", "target"].iter().any(|skipped| entry.file_name() == *skipped) {
                    folders.push(path);
                }
            } else if kind.is_file()
                && let Ok(text) = String::from_utf8(fs::read(&path)?)
            {
                found.push(File { path: relative(root, &path), text });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// `path` as seen from `root`, divided by `/` on every system.
#[must_use]
pub fn relative(root: &Path, path: &Path) -> String {
    let inner = path.strip_prefix(root).unwrap_or(path);
    inner.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_project_is_found_with_its_hidden_files_and_without_what_is_built() {
        let files = files(&root()).unwrap();
        for wanted in ["Cargo.toml", "tests/src/tree.rs", ".gitignore", ".ci/run"] {
            assert!(files.iter().any(|f| f.path == wanted), "{wanted}");
        }
        assert!(!files.iter().any(|f| f.path.starts_with("target/") || f.path.starts_with(".git/")));
        assert!(files.is_sorted_by(|a, b| a.path < b.path));
    }

    #[test]
    fn test_code_is_told_from_the_code_of_the_test_package() {
        for (path, is_test) in [
            ("host/engine/tests/place.rs", true),
            ("host/model/tests_unit/pod.rs", true),
            ("tests/tests/house.rs", true),
            ("tests/bench/tests/reference.rs", true),
            ("tests/src/tree.rs", false),
            ("tests/bench/src/main.rs", false),
            ("host/engine/src/plan.rs", false),
        ] {
            assert_eq!(File::new(path, "").is_test(), is_test, "{path}");
        }
    }
}
