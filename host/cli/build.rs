//! Packs what `whittle policy new` unpacks: the SDK's source as a crate of its own, and the lock of its
//! dependencies.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

/// What of the SDK is packed besides its manifest.
const PACKED: [&str; 4] = ["columns.toml", "COLUMNS.md", "src", "wit"];

fn main() -> Result<(), Box<dyn Error>> {
    let here = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let root = here.join("../..").canonicalize()?;
    for watched in ["sdk", "Cargo.toml", "Cargo.lock"] {
        println!("cargo::rerun-if-changed={}", root.join(watched).display());
    }
    let workspace: Table = fs::read_to_string(root.join("Cargo.toml"))?.parse()?;
    let manifest = standalone(&fs::read_to_string(root.join("sdk/Cargo.toml"))?.parse()?, &workspace)?;
    fs::write(out.join("sdk-Cargo.toml"), toml::to_string(&manifest)?)?;
    let mut files = vec![("Cargo.toml".to_owned(), out.join("sdk-Cargo.toml"))];
    for name in PACKED {
        collect(&root.join("sdk"), name, &mut files)?;
    }
    files.sort();
    let mut packed = String::from("&[\n");
    for (name, path) in files {
        writeln!(packed, "({name:?}, include_str!({path:?})),")?;
    }
    packed.push(']');
    fs::write(out.join("sdk.rs"), packed)?;
    let dependencies = manifest.get("dependencies").and_then(Value::as_table).map(Table::keys).into_iter().flatten();
    fs::write(out.join("Cargo.lock"), lock(&fs::read_to_string(root.join("Cargo.lock"))?.parse()?, dependencies)?)?;
    Ok(())
}

fn collect(sdk: &Path, name: &str, files: &mut Vec<(String, PathBuf)>) -> Result<(), Box<dyn Error>> {
    let path = sdk.join(name);
    if !path.is_dir() {
        files.push((name.to_owned(), path));
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        collect(sdk, &format!("{name}/{}", entry?.file_name().to_string_lossy()), files)?;
    }
    Ok(())
}

/// A member's manifest with everything it takes from the workspace written out; what only tests need is
/// left out.
fn standalone(member: &Table, workspace: &Table) -> Result<Table, Box<dyn Error>> {
    let shared = |path: &[&str]| path.iter().try_fold(workspace.get("workspace")?, |value, key| value.get(key)).cloned();
    let inherited = |value: &Value| value.get("workspace").and_then(Value::as_bool) == Some(true);
    let mut alone = member.clone();
    alone.remove("dev-dependencies");
    for (section, from) in [("package", "package"), ("dependencies", "dependencies")] {
        for (key, value) in alone.get_mut(section).and_then(Value::as_table_mut).into_iter().flatten() {
            if inherited(value) {
                *value = shared(&[from, key]).ok_or_else(|| format!("the workspace has no {from}.{key}"))?;
            }
        }
    }
    alone.insert("lints".to_owned(), shared(&["lints"]).ok_or("the workspace has no lints")?);
    Ok(alone)
}

/// The part of a lock file that these crates need.
fn lock<'a>(whole: &Table, roots: impl Iterator<Item = &'a String>) -> Result<String, Box<dyn Error>> {
    let packages = whole.get("package").and_then(Value::as_array).ok_or("Cargo.lock lists no packages")?;
    let text = |package: &Value, key: &str| package.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    // A dependency is named with its version only where several versions are locked.
    let is = |package: &Value, wanted: &str| {
        let (name, version) = wanted.split_once(' ').unwrap_or((wanted, ""));
        text(package, "name") == name && (version.is_empty() || text(package, "version") == version)
    };
    let mut open: Vec<String> = roots.cloned().collect();
    let mut kept = vec![false; packages.len()];
    while let Some(wanted) = open.pop() {
        let at = packages.iter().position(|package| is(package, &wanted)).ok_or_else(|| format!("Cargo.lock has no {wanted}"))?;
        if !kept[at] {
            kept[at] = true;
            let more = packages[at].get("dependencies").and_then(Value::as_array).into_iter().flatten();
            open.extend(more.filter_map(Value::as_str).map(str::to_owned));
        }
    }
    let some: Vec<Value> = packages.iter().zip(kept).filter(|(_, kept)| *kept).map(|(package, _)| package.clone()).collect();
    let version = whole.get("version").cloned().ok_or("Cargo.lock says no version")?;
    Ok(toml::to_string(&Table::from_iter([("version".to_owned(), version), ("package".to_owned(), Value::Array(some))]))?)
}
