//! Who may know whom: the rooms of the house, what each may depend on, and what none of its
//! dependencies may bring in. The table of ARCHITECTURE says the same in words.

use std::collections::{BTreeMap, BTreeSet};

use toml::{Table, Value};

use super::manifests::{at, members, table};
use crate::{Breach, File};

/// What a room may know.
#[derive(Debug, Clone, Copy)]
struct Room {
    /// The package.
    package: &'static str,
    /// Packages of the house it may depend on.
    knows: &'static [&'static str],
    /// When given, the only other crates it may depend on.
    only: Option<&'static [&'static str]>,
    /// Crates that may not be behind it, directly or through others. `aws-*` covers a family.
    never: &'static [&'static str],
}

const KUBERNETES: &str = "kube*";
const AWS: &str = "aws-*";
const WASM: &str = "wasmtime*";

/// Clocks, randomness, async and voices: what makes a room answer differently from run to run.
const IMPURE: [&str; 22] = [
    KUBERNETES,
    "k8s-openapi",
    AWS,
    WASM,
    "tokio*",
    "async-*",
    "futures*",
    "smol",
    "rand*",
    "getrandom",
    "fastrand",
    "chrono",
    "time",
    "jiff",
    "log",
    "tracing*",
    "slog",
    "env_logger",
    "metrics*",
    "prometheus*",
    "rayon*",
    "libm",
];

/// What reaches outside the process; reading a file is left to the eye.
const IO: [&str; 7] = [KUBERNETES, AWS, WASM, "tokio*", "hyper*", "reqwest", "async-*"];

const EVERY_ROOM: [&str; 9] = [
    "whittle-model",
    "whittle-engine",
    "whittle-catalog",
    "whittle-policy",
    "whittle-cluster",
    "whittle-cloud",
    "whittle-journal",
    "whittle-registry",
    "whittle-sim",
];

/// What benches measure, and the guests that they measure it with.
const MEASURED: [&str; 8] = [
    "whittle-model",
    "whittle-engine",
    "whittle-catalog",
    "whittle-policy",
    "whittle-component",
    "whittle-builtin",
    "whittle-guest-kernel",
    "whittle-sdk",
];

const fn room(package: &'static str, knows: &'static [&'static str], never: &'static [&'static str]) -> Room {
    Room { package, knows, only: None, never }
}

/// The table. A package without a row is a breach: give it one.
const ROOMS: [Room; 17] = [
    Room { only: Some(&["schemars", "serde", "serde_json", "thiserror", "smallvec"]), ..room("whittle-model", &[], &IMPURE) },
    Room {
        only: Some(&["serde", "thiserror", "smallvec", "rustc-hash", "fixedbitset"]),
        ..room("whittle-engine", &["whittle-model"], &IMPURE)
    },
    room("whittle-catalog", &["whittle-model"], &IO),
    room("whittle-policy", &["whittle-model"], &[KUBERNETES, AWS]),
    room("whittle-component", &[], &[KUBERNETES, AWS]),
    room("whittle-builtin", &["whittle-component"], &[KUBERNETES, AWS, WASM]),
    room("whittle-journal", &["whittle-model", "whittle-engine"], &[KUBERNETES, AWS, WASM]),
    room("whittle-registry", &[], &[KUBERNETES, AWS]),
    room("whittle-cluster", &["whittle-model"], &[AWS, WASM]),
    room("whittle-cloud", &["whittle-model", "whittle-catalog"], &[KUBERNETES, WASM]),
    room("whittle-sim", &["whittle-engine", "whittle-model", "whittle-catalog", "whittle-policy"], &[KUBERNETES, AWS]),
    room(
        "whittle",
        &[
            "whittle-sim",
            "whittle-cluster",
            "whittle-policy",
            "whittle-builtin",
            "whittle-component",
            "whittle-journal",
            "whittle-registry",
            "whittle-model",
            "whittle-engine",
        ],
        &[AWS],
    ),
    room(
        "whittle-controller",
        &[
            "whittle-model",
            "whittle-engine",
            "whittle-catalog",
            "whittle-policy",
            "whittle-builtin",
            "whittle-cluster",
            "whittle-cloud",
            "whittle-journal",
            "whittle-registry",
        ],
        &[],
    ),
    room("whittle-sdk", &[], &[KUBERNETES, AWS, WASM]),
    room("whittle-tests", &EVERY_ROOM, &[AWS]),
    room("whittle-bench", &MEASURED, &[AWS, KUBERNETES]),
    room("whittle-e2e", &EVERY_ROOM, &[]),
];

/// Policies we ship are packages below `policies/`, those for tests below `tests/policy-guests/`; they
/// know the SDK alone.
const POLICY: Room = room("whittle-policy-*", &["whittle-sdk"], &[KUBERNETES, AWS, WASM]);

fn row(folder: &str, package: &str) -> Option<Room> {
    if folder.starts_with("policies/") || folder.starts_with("tests/policy-guests/") {
        return Some(POLICY);
    }
    ROOMS.into_iter().find(|room| room.package == package)
}

fn covers(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(name == pattern, |stem| name.starts_with(stem))
}

/// The crates a manifest names in `[dependencies]`, `[build-dependencies]` and their forms for one
/// target; renamed ones under their real name. What only tests need is not among them.
fn named(manifest: &Table) -> BTreeSet<String> {
    let mut tables: Vec<&Table> = vec![manifest];
    tables.extend(manifest.get("target").and_then(Value::as_table).into_iter().flat_map(|t| t.values()).filter_map(Value::as_table));
    let sections = tables.iter().flat_map(|table| ["dependencies", "build-dependencies"].map(|section| table.get(section)));
    let entries = sections.flatten().filter_map(Value::as_table).flatten();
    entries.map(|(name, value)| value.get("package").and_then(Value::as_str).unwrap_or(name).to_owned()).collect()
}

struct Member {
    path: String,
    package: String,
    row: Option<Room>,
    named: BTreeSet<String>,
}

fn read_members(files: &[File]) -> Result<Vec<Member>, Breach> {
    let read = |folder: String| {
        let path = format!("{folder}/Cargo.toml");
        let manifest = table(files, &path)?;
        let package = at(&manifest, &["package", "name"]).and_then(Value::as_str).unwrap_or_default().to_owned();
        Ok(Member { row: row(&folder, &package), named: named(&manifest), path, package })
    };
    members(files)?.into_iter().map(read).collect()
}

/// Every member has a row, and its manifest names only what the row lets it.
#[must_use]
pub fn dependency_table(files: &[File]) -> Vec<Breach> {
    let members = match read_members(files) {
        Ok(members) => members,
        Err(breach) => return vec![breach],
    };
    let of_the_house: BTreeSet<&str> = members.iter().map(|member| member.package.as_str()).collect();
    let mut breaches = Vec::new();
    for member in &members {
        let Some(row) = member.row else {
            breaches.push(Breach::at(&member.path, 1, format!("{} has no row in the table of rooms", member.package)));
            continue;
        };
        for name in &member.named {
            let why = if of_the_house.contains(name.as_str()) || ROOMS.iter().any(|room| room.package == name) {
                if row.knows.contains(&name.as_str()) { None } else { Some("is a room it may not know") }
            } else if row.never.iter().any(|pattern| covers(pattern, name)) {
                Some("must not be known here")
            } else if row.only.is_some_and(|only| !only.contains(&name.as_str())) {
                Some("is not among the pure crates of this room's row")
            } else {
                None
            };
            breaches.extend(why.map(|why| Breach::at(&member.path, 1, format!("{} depends on {name}, which {why}", member.package))));
        }
    }
    breaches
}

/// No crate that a room must not know stands behind it, through however many others.
#[must_use]
pub fn forbidden_behind(files: &[File]) -> Vec<Breach> {
    let read = || Ok::<_, Breach>((read_members(files)?, locked(&table(files, "Cargo.lock")?)));
    let (members, graph) = match read() {
        Ok(both) => both,
        Err(breach) => return vec![breach],
    };
    let normal: BTreeMap<&str, &BTreeSet<String>> = members.iter().map(|member| (member.package.as_str(), &member.named)).collect();
    let mut breaches = Vec::new();
    for member in &members {
        let never = member.row.map_or(&[][..], |row| row.never);
        let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
        let mut open: Vec<&str> = vec![&member.package];
        while let Some(package) = open.pop() {
            // The lock mixes in what tests need; of our own packages the manifest knows better.
            let next = normal.get(package).copied().or_else(|| graph.get(package));
            for name in next.into_iter().flatten() {
                if !seen.contains_key(name.as_str()) {
                    seen.insert(name, package);
                    open.push(name);
                }
            }
        }
        let found = seen.iter().filter(|(name, _)| never.iter().any(|pattern| covers(pattern, name)));
        breaches.extend(
            found.map(|(name, by)| Breach::at(&member.path, 1, format!("{} has {name} behind it, by way of {by}", member.package))),
        );
    }
    breaches
}

/// What each locked package depends on; versions are told apart by nobody here.
fn locked(lock: &Table) -> BTreeMap<String, BTreeSet<String>> {
    let mut graph: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in lock.get("package").and_then(Value::as_array).into_iter().flatten() {
        let Some(name) = package.get("name").and_then(Value::as_str) else { continue };
        let needs = package.get("dependencies").and_then(Value::as_array).into_iter().flatten();
        let names = needs.filter_map(Value::as_str).filter_map(|need| need.split(' ').next()).map(str::to_owned);
        graph.entry(name.to_owned()).or_default().extend(names);
    }
    graph
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A workspace of two packages: `folder` with these dependencies, and the model.
    fn house(folder: &str, package: &str, dependencies: &str, lock: &str) -> Vec<File> {
        vec![
            File::new("Cargo.toml", &format!("[workspace]\nmembers = [\"host/model\", \"{folder}\"]\n")),
            File::new("host/model/Cargo.toml", "[package]\nname = \"whittle-model\"\n[dependencies]\nserde.workspace = true\n"),
            File::new(&format!("{folder}/Cargo.toml"), &format!("[package]\nname = \"{package}\"\n{dependencies}\n")),
            File::new("Cargo.lock", lock),
        ]
    }

    fn whats(breaches: Vec<Breach>) -> Vec<String> {
        breaches.into_iter().map(|breach| breach.what).collect()
    }

    #[test]
    fn a_room_that_knows_too_much_is_named() {
        for (package, dependencies, breaches) in [
            ("whittle-engine", "[dependencies]\nwhittle-model.workspace = true\nserde = \"1\"", 0),
            ("whittle-engine", "[dependencies]\nwhittle-catalog.workspace = true", 1),
            ("whittle-engine", "[dependencies]\nregex = \"1\"", 1),
            ("whittle-engine", "[dependencies]\nfast = { package = \"rand\", version = \"1\" }", 1),
            ("whittle-engine", "[build-dependencies]\ntokio = \"1\"", 1),
            ("whittle-engine", "[target.'cfg(unix)'.dependencies]\nlog = \"1\"", 1),
            ("whittle-engine", "[dev-dependencies]\nproptest = \"1\"", 0),
            ("whittle-cluster", "[dependencies]\nkube = \"1\"\nwhittle-model = { path = \"../model\" }", 0),
            ("whittle-cluster", "[dependencies]\naws-sdk-ec2 = \"1\"", 1),
            ("whittle-cloud", "[dependencies]\nkube-client = \"1\"\nwasmtime = \"1\"", 2),
            ("whittle-sim", "[dependencies]\nwhittle-cluster.workspace = true", 1),
            ("whittle-controller", "[dependencies]\nwhittle-sim.workspace = true", 1),
            ("whittle-attic", "[dependencies]\nserde = \"1\"", 1),
        ] {
            let found = whats(dependency_table(&house("host/x", package, dependencies, "")));
            assert_eq!(found.len(), breaches, "{package} {dependencies}: {found:?}");
        }
        let policy = "[dependencies]\nwhittle-model.workspace = true";
        let found = whats(dependency_table(&house("policies/spot", "whittle-policy-spot", policy, "")));
        assert_eq!(found, ["whittle-policy-spot depends on whittle-model, which is a room it may not know"]);
    }

    #[test]
    fn a_crate_hidden_behind_another_is_named() {
        let lock = "[[package]]\nname = \"whittle-engine\"\ndependencies = [\"smallvec\", \"proptest\"]\n\
                    [[package]]\nname = \"smallvec\"\ndependencies = [\"inner 1.0.0\"]\n\
                    [[package]]\nname = \"inner\"\ndependencies = [\"rand\"]\n\
                    [[package]]\nname = \"proptest\"\ndependencies = [\"tokio\"]\n";
        let through =
            house("host/engine", "whittle-engine", "[dependencies]\nsmallvec = \"1\"\n[dev-dependencies]\nproptest = \"1\"", lock);
        assert_eq!(whats(forbidden_behind(&through)), ["whittle-engine has rand behind it, by way of inner"]);
        let clean = house("host/engine", "whittle-engine", "[dependencies]\nserde = \"1\"", lock);
        assert_eq!(forbidden_behind(&clean), []);
    }

    #[test]
    fn a_family_is_covered_by_its_stem() {
        assert!(covers("aws-*", "aws-sdk-ec2") && covers("kube*", "kube") && covers("time", "time"));
        assert!(!covers("time", "time-core") && !covers("aws-*", "awsome"));
    }
}
