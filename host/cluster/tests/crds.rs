//! The definitions: the files that are kept are those that the types make, and they take and refuse what
//! the tables below `tests/e2e/fixtures/crds` say. A file there is
//!
//! - `good`: an object that is taken;
//! - `bad`: an object that is refused; the first line says `# refused: ` and a part of the answer;
//! - `changes`: an object, and what it is replaced with, which is refused as in `bad`.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod admission;

use std::path::{Path, PathBuf};

use serde_json::Value;
use whittle_cluster::{crd, yaml};

use admission::Server;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn the_files_are_what_the_types_make() {
    let folder = root().join("crds");
    let update = std::env::var_os("UPDATE_CRDS").is_some();
    for crd in crd::all() {
        let path = folder.join(&crd.file);
        if update {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, crd.yaml()).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            kept == crd.yaml(),
            "crds/{} is stale: run `whittle crds crds`, or `UPDATE_CRDS=1 cargo test -p whittle-cluster --features schema --test crds`",
            crd.file
        );
    }
    assert_eq!(
        names(&folder),
        crd::all().into_iter().map(|crd| crd.file).collect::<Vec<_>>(),
        "crds/ holds the definitions and nothing else"
    );
}

/// Every file of a table: its name, its first line, its objects.
fn table(name: &str) -> Vec<(String, String, Vec<Value>)> {
    let folder = root().join("tests/e2e/fixtures/crds").join(name);
    let read = |file: String| {
        let text = std::fs::read_to_string(folder.join(&file)).unwrap();
        let (documents, error) = yaml::parse(&text);
        assert_eq!(error, None, "{file}");
        let objects = documents.iter().map(|document| yaml::read::<Value>(&document.root).value.unwrap()).collect();
        (format!("{name}/{file}"), text.lines().next().unwrap_or_default().to_owned(), objects)
    };
    names(&folder).into_iter().map(read).collect()
}

fn assert_refused(file: &str, first: &str, faults: &[String]) {
    let part = first.strip_prefix("# refused: ").ok_or_else(|| format!("{file} does not begin with `# refused: `")).unwrap();
    let place = |fault: &str| fault.split_once(": ").map(|(place, _)| place.to_owned());
    let meant = faults.iter().find(|fault| fault.contains(part)).ok_or_else(|| format!("{file}: no {part:?} in {faults:#?}")).unwrap();
    assert!(faults.iter().all(|fault| place(fault) == place(meant)), "{file} is wrong in another place too: {faults:#?}");
}

#[test]
fn good_objects_are_taken() {
    let server = Server::new();
    for (file, _, objects) in table("good") {
        assert!(!objects.is_empty(), "{file}");
        for object in objects {
            assert_eq!(server.refuses(&object, None), [""; 0], "{file}");
            assert_eq!(server.refuses(&object, Some(&object)), [""; 0], "{file}, applied again");
        }
    }
}

#[test]
fn bad_objects_are_refused_for_what_they_say() {
    let server = Server::new();
    for (file, first, objects) in table("bad") {
        assert_eq!(objects.len(), 1, "{file}");
        assert_refused(&file, &first, &server.refuses(&objects[0], None));
    }
}

#[test]
fn bad_changes_are_refused_for_what_they_say() {
    let server = Server::new();
    for (file, first, objects) in table("changes") {
        let [before, after] = objects.as_slice() else { panic!("{file} wants two objects") };
        assert_eq!(server.refuses(before, None), [""; 0], "{file}");
        assert_refused(&file, &first, &server.refuses(after, Some(before)));
    }
}

/// Every rule of every definition stands in a table: what no object breaks is not tested.
#[test]
fn every_rule_is_broken_by_an_object() {
    let said: Vec<String> = ["bad", "changes"].into_iter().flat_map(table).map(|(_, first, _)| first).collect();
    for crd in crd::all() {
        let mut messages = Vec::new();
        collect(&crd.object, &mut messages);
        assert!(!messages.is_empty(), "{}", crd.name);
        for message in messages {
            assert!(said.iter().any(|line| line.ends_with(&message)), "{}: no table breaks {message:?}", crd.name);
        }
    }
}

fn collect(value: &Value, messages: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            if let (Some(_), Some(message)) = (fields.get("rule"), fields.get("message")) {
                messages.push(message.as_str().unwrap().to_owned());
            }
            fields.values().for_each(|below| collect(below, messages));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, messages)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
