//! Components to load.

use std::path::{Path, PathBuf};

use wit_component::{StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The component of a guest written in Rust; cargo builds it once.
pub fn rust(name: &str) -> Vec<u8> {
    built(&format!("whittle-guest-{name}"))
}

/// The component of a policy that is shipped.
pub fn shipped(name: &str) -> Vec<u8> {
    built(&format!("whittle-policy-{name}"))
}

fn built(package: &str) -> Vec<u8> {
    let build = whittle_component::Build {
        package: Some(package.to_owned()),
        target_dir: Some(Path::new(env!("CARGO_TARGET_TMPDIR")).join("guests")),
        locked: false,
    };
    build.run(&root()).unwrap()
}

/// The names of all hostile guests.
pub fn hostile_names() -> Vec<String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(root().join("tests/policy-guests/hostile")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if let Some((name, "wat")) = name.rsplit_once('.') {
            names.push(name.to_owned());
        }
    }
    names.sort();
    names
}

/// The bytes of a hostile guest.
pub fn hostile(name: &str) -> Vec<u8> {
    let folder = root().join("tests/policy-guests/hostile");
    let text = std::fs::read_to_string(folder.join(format!("{name}.wat"))).unwrap();
    if text.contains("(component") || text.contains("(module") {
        return wat::parse_str(&text).unwrap();
    }
    component(&wat::parse_str(module(&text, &std::fs::read_to_string(folder.join("prelude.txt")).unwrap())).unwrap())
}

/// A core module: the body, the parts of the prelude that it does not define, and the exports.
fn module(body: &str, prelude: &str) -> String {
    let mut text = format!("(module\n{body}\n");
    for part in prelude.split(";; --- ").skip(1) {
        let name: String = part.chars().take_while(char::is_ascii_alphabetic).collect();
        let defined =
            body.contains(&format!("(func ${name} ")) || body.contains(&format!("({name} ")) || body.contains(&format!(";; ${name} is"));
        if !defined {
            text += &format!(";; {part}");
        }
    }
    for (export, func) in
        [("manifest", "manifest"), ("configure", "configure"), ("open", "open"), ("price-candidates", "price"), ("score-moves", "score")]
    {
        text += &format!("(export \"whittle:policy/scoring@0.1.0#{export}\" (func ${func}))\n");
    }
    text + ")"
}

fn component(module: &[u8]) -> Vec<u8> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_path(root().join("sdk/wit")).unwrap();
    let world = resolve.select_world(&[package], Some("policy")).unwrap();
    let mut module = module.to_vec();
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    whittle_component::from_core(&module).unwrap()
}
