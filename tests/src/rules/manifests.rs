//! Rules over manifests: the workspace's lints, that every member takes them, what the
//! deterministic rooms ban, and the lock file. Who may know whom is next door, in `rooms`.

use toml::{Table, Value};

use crate::{Breach, File};

/// Every lint of the house, with its group.
pub const LINTS: [(&str, &str); 15] = [
    ("rust", "unsafe_code"),
    ("rust", "missing_docs"),
    ("rust", "unused_must_use"),
    ("clippy", "all"),
    ("clippy", "allow_attributes"),
    ("clippy", "allow_attributes_without_reason"),
    ("clippy", "dbg_macro"),
    ("clippy", "panic"),
    ("clippy", "print_stderr"),
    ("clippy", "print_stdout"),
    ("clippy", "todo"),
    ("clippy", "too_many_lines"),
    ("clippy", "unimplemented"),
    ("clippy", "unwrap_used"),
    ("clippy", "wildcard_enum_match_arm"),
];

/// What the deterministic rooms' own `clippy.toml` must ban.
pub const BANNED_TYPES: [&str; 5] =
    ["std::collections::HashMap", "std::collections::HashSet", "std::time::Instant", "std::time::SystemTime", "std::hash::RandomState"];

/// The same for functions.
pub const BANNED_METHODS: [&str; 7] =
    ["std::thread::spawn", "std::time::Instant::now", "std::time::SystemTime::now", "f64::ln", "f64::exp", "f64::powf", "f64::powi"];

/// The longest a function may be.
pub const MOST_FUNCTION_LINES: i64 = 70;

/// The registry that every locked crate comes from.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// A manifest that was found and read, or the breach that it was not.
///
/// # Errors
/// When the file is missing or is no TOML.
pub fn table(files: &[File], path: &str) -> Result<Table, Breach> {
    let file = files.iter().find(|file| file.path == path).ok_or_else(|| Breach::at(path, 1, "missing"))?;
    file.text.parse::<Table>().map_err(|e| Breach::at(path, 1, format!("is no TOML: {}", e.message())))
}

/// The value at a path of keys.
#[must_use]
pub fn at<'a>(table: &'a Table, keys: &[&str]) -> Option<&'a Value> {
    let (first, rest) = keys.split_first()?;
    rest.iter().try_fold(table.get(*first)?, |value, key| value.get(key))
}

/// The members of the workspace: folders, in the manifest's order.
///
/// # Errors
/// When the workspace manifest is missing or lists none.
pub fn members(files: &[File]) -> Result<Vec<String>, Breach> {
    let workspace = table(files, "Cargo.toml")?;
    let listed = at(&workspace, &["workspace", "members"]).and_then(Value::as_array);
    let listed = listed.ok_or_else(|| Breach::at("Cargo.toml", 1, "lists no members"))?;
    Ok(listed.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}

fn or_breach(result: Result<Vec<Breach>, Breach>) -> Vec<Breach> {
    result.unwrap_or_else(|breach| vec![breach])
}

/// The workspace denies every lint of [`LINTS`].
#[must_use]
pub fn house_lints(files: &[File]) -> Vec<Breach> {
    let judge = || {
        let workspace = table(files, "Cargo.toml")?;
        let level = |group: &str, lint: &str| {
            let lint = at(&workspace, &["workspace", "lints", group, lint])?;
            lint.as_str().or_else(|| lint.get("level")?.as_str())
        };
        let loose = LINTS.iter().filter(|(group, lint)| !matches!(level(group, lint), Some("deny" | "forbid")));
        Ok(loose.map(|(group, lint)| Breach::at("Cargo.toml", 1, format!("lint {group}::{lint} is not denied"))).collect())
    };
    or_breach(judge())
}

/// Every package is a member and takes the house lints whole; an example that is a workspace of its own
/// is neither.
#[must_use]
pub fn members_take_lints(files: &[File]) -> Vec<Breach> {
    let judge = || {
        let members = members(files)?;
        let mut breaches = Vec::new();
        for member in &members {
            let path = format!("{member}/Cargo.toml");
            let manifest = table(files, &path)?;
            if at(&manifest, &["lints", "workspace"]).and_then(Value::as_bool) != Some(true) {
                breaches.push(Breach::at(&path, 1, "[lints] workspace = true is missing"));
            }
        }
        let manifests = files.iter().filter_map(|file| file.path.strip_suffix("/Cargo.toml"));
        let alone = |folder: &str| {
            folder.starts_with("examples/") && table(files, &format!("{folder}/Cargo.toml")).is_ok_and(|t| t.contains_key("workspace"))
        };
        let strays = manifests.filter(|folder| !members.iter().any(|member| member == folder) && !alone(folder));
        breaches.extend(strays.map(|folder| Breach::at(&format!("{folder}/Cargo.toml"), 1, "is no member of the workspace")));
        Ok(breaches)
    };
    or_breach(judge())
}

/// The function limit holds everywhere, and the deterministic rooms ban what they may not know.
#[must_use]
pub fn deterministic_bans(files: &[File]) -> Vec<Breach> {
    let judge = || {
        let mut breaches = Vec::new();
        for path in ["clippy.toml", "host/model/clippy.toml", "host/engine/clippy.toml"] {
            let config = table(files, path)?;
            let limit = config.get("too-many-lines-threshold").and_then(Value::as_integer);
            if limit.is_none_or(|lines| lines > MOST_FUNCTION_LINES) {
                breaches.push(Breach::at(path, 1, format!("too-many-lines-threshold is not {MOST_FUNCTION_LINES}")));
            }
            if path == "clippy.toml" {
                continue;
            }
            for (list, wanted) in [("disallowed-types", &BANNED_TYPES[..]), ("disallowed-methods", &BANNED_METHODS[..])] {
                let entries = config.get(list).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
                let banned =
                    |name: &str| entries.iter().any(|entry| entry.get("path").or(Some(entry)).and_then(Value::as_str) == Some(name));
                let missing = wanted.iter().filter(|name| !banned(name));
                breaches.extend(missing.map(|name| Breach::at(path, 1, format!("{name} is not in {list}"))));
            }
        }
        Ok(breaches)
    };
    or_breach(judge())
}

/// The lock file is kept in the repository, covers every member and names no other registry.
#[must_use]
pub fn lock_file(files: &[File]) -> Vec<Breach> {
    let judge = || {
        let lock = table(files, "Cargo.lock")?;
        let mut breaches = Vec::new();
        if files.iter().any(|file| file.name() == ".gitignore" && file.text.lines().any(|line| line.trim().ends_with("Cargo.lock"))) {
            breaches.push(Breach::at(".gitignore", 1, "Cargo.lock is ignored: commit it"));
        }
        let packages = lock.get("package").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let foreign = packages.iter().filter_map(|package| package.get("source")?.as_str()).filter(|source| *source != REGISTRY);
        breaches.extend(foreign.map(|source| Breach::at("Cargo.lock", 1, format!("{source} is not the public registry"))));
        for member in members(files)? {
            let path = format!("{member}/Cargo.toml");
            let manifest = table(files, &path)?;
            let name = at(&manifest, &["package", "name"]).and_then(Value::as_str).unwrap_or_default();
            if !packages.iter().any(|package| package.get("name").and_then(Value::as_str) == Some(name)) {
                breaches.push(Breach::at("Cargo.lock", 1, format!("{name} is not locked")));
            }
        }
        Ok(breaches)
    };
    or_breach(judge())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree;

    /// The project's own manifests, one of them with `from` replaced by `to`.
    fn with(path: &str, from: &str, to: &str) -> Vec<File> {
        let mut files = tree::files(&tree::root()).unwrap();
        let file = files.iter_mut().find(|file| file.path == path).unwrap();
        assert!(file.text.contains(from), "{path} holds {from}");
        file.text = file.text.replace(from, to);
        files
    }

    fn whats(breaches: &[Breach]) -> Vec<&str> {
        breaches.iter().map(|breach| breach.what.as_str()).collect()
    }

    #[test]
    fn every_lint_that_is_let_off_is_named() {
        for (group, lint) in LINTS {
            let file = tree::files(&tree::root()).unwrap().into_iter().find(|file| file.path == "Cargo.toml").unwrap();
            let line = file.text.lines().find(|line| line.starts_with(&format!("{lint} = "))).unwrap();
            for loose in ["", &format!("{lint} = \"warn\"")] {
                let breaches = house_lints(&with("Cargo.toml", &format!("\n{line}\n"), &format!("\n{loose}\n")));
                assert_eq!(whats(&breaches), [format!("lint {group}::{lint} is not denied")]);
            }
        }
    }

    #[test]
    fn a_member_without_the_lints_is_named_and_so_is_a_stray_package() {
        let breaches = members_take_lints(&with("host/engine/Cargo.toml", "[lints]\nworkspace = true", ""));
        assert_eq!(whats(&breaches), ["[lints] workspace = true is missing"]);
        let breaches = members_take_lints(&with("Cargo.toml", "    \"host/engine\",\n", ""));
        assert_eq!(breaches, [Breach::at("host/engine/Cargo.toml", 1, "is no member of the workspace")]);
        let breaches = members_take_lints(&with("Cargo.toml", "    \"host/engine\",\n", "    \"host/motor\",\n"));
        assert_eq!(breaches, [Breach::at("host/motor/Cargo.toml", 1, "missing")]);
        let mut files = with("host/engine/Cargo.toml", "", "");
        files.push(File::new("examples/a/Cargo.toml", "[package]\nname = \"a\"\n[workspace]\n"));
        files.push(File::new("examples/b/Cargo.toml", "[package]\nname = \"b\"\n"));
        assert_eq!(members_take_lints(&files), [Breach::at("examples/b/Cargo.toml", 1, "is no member of the workspace")]);
    }

    #[test]
    fn every_ban_that_is_lifted_is_named() {
        for name in BANNED_TYPES.iter().chain(&BANNED_METHODS) {
            let breaches = deterministic_bans(&with("host/engine/clippy.toml", &format!("\"{name}\""), "\"other\""));
            assert_eq!(breaches.len(), 1, "{name}");
            assert!(breaches[0].what.starts_with(name) && breaches[0].path == "host/engine/clippy.toml");
        }
        let breaches = deterministic_bans(&with("clippy.toml", "too-many-lines-threshold = 70", "too-many-lines-threshold = 71"));
        assert_eq!(breaches, [Breach::at("clippy.toml", 1, "too-many-lines-threshold is not 70")]);
    }

    #[test]
    fn a_lock_file_that_is_missing_or_foreign_is_named() {
        let files: Vec<File> = tree::files(&tree::root()).unwrap().into_iter().filter(|file| file.path != "Cargo.lock").collect();
        assert_eq!(lock_file(&files), [Breach::at("Cargo.lock", 1, "missing")]);
        let foreign = with("Cargo.lock", REGISTRY, "registry+https://example.com/index");
        assert!(whats(&lock_file(&foreign)).contains(&"registry+https://example.com/index is not the public registry"));
        let unlocked = with("Cargo.lock", "name = \"whittle-engine\"", "name = \"other\"");
        assert!(whats(&lock_file(&unlocked)).contains(&"whittle-engine is not locked"));
        let ignored = with(".gitignore", "/target", "/target\nCargo.lock");
        assert_eq!(whats(&lock_file(&ignored)), ["Cargo.lock is ignored: commit it"]);
    }
}
