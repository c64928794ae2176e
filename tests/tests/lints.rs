//! The compiler's half of the house rules bites: a crate that breaks every lint, under the
//! workspace's own lints and a deterministic room's own `clippy.toml`, is refused for each.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use whittle_tests::rules::manifests::{BANNED_METHODS, BANNED_TYPES, LINTS};
use whittle_tests::tree;

/// One violation of each lint; the long function is added below.
const VIOLATIONS: &str = r##"//! Breaks every rule.
pub fn undocumented() {}
/// `unsafe_code`
pub fn trusts() { unsafe { std::hint::unreachable_unchecked() } }
/// `unused_must_use`
pub fn forgets() { "1".parse::<u8>(); }
/// `clippy::all`
pub fn returns() -> u8 { return 1; }
#[allow(dead_code)]
fn lets_off() {}
/// `dbg_macro`, `print_stdout`, `print_stderr`
pub fn talks() { dbg!(1); println!("one"); eprintln!("one"); }
/// `panic`
pub fn panics() { panic!("no invariant") }
/// `todo`
pub fn later() { todo!() }
/// `unimplemented`
pub fn never() { unimplemented!() }
/// `unwrap_used`
pub fn unwraps(x: Option<u8>) -> u8 { x.unwrap() }
/// Ours.
pub enum Ours { /// A.
    A, /// B.
    B, /// C.
    C }
/// `wildcard_enum_match_arm`
pub fn forgets_some(x: &Ours) -> u8 { match x { Ours::A => 1, _ => 2 } }
"##;

fn source() -> String {
    let long = "    x += 1;\n".repeat(71);
    let types = BANNED_TYPES.iter().enumerate().map(|(n, name)| {
        let generic = if name.ends_with("HashMap") { "<u8, u8>" } else { "<u8>" };
        let generic = if name.contains("collections") { generic } else { "" };
        format!("/// A banned type.\npub type Banned{n} = {name}{generic};\n")
    });
    let methods = "/// Banned functions.\npub fn banned(x: f64) { std::thread::spawn(|| ()); let _ = std::time::Instant::now(); \
                   let _ = std::time::SystemTime::now(); let _ = x.ln() + x.exp() + x.powf(x) + x.powi(2); }\n";
    format!(
        "{VIOLATIONS}{}{methods}/// `too_many_lines`\npub fn long() -> u64 {{\n    let mut x = 0;\n{long}    x\n}}\n",
        types.collect::<String>()
    )
}

/// What clippy objects to in a crate of this source: lint names, and its messages.
fn objections(source: &str) -> io::Result<(Vec<String>, String)> {
    let root = tree::root();
    let workspace = fs::read_to_string(root.join("Cargo.toml"))?;
    let (_, lints) = workspace.split_once("[workspace.lints.rust]").ok_or_else(|| io::Error::other("no lints in the workspace"))?;
    let (lints, _) = lints.split_once("[profile").unwrap_or((lints, ""));
    let lints = lints.replace("[workspace.lints.clippy]", "[lints.clippy]");
    let manifest = format!("[package]\nname = \"violations\"\nedition = \"2024\"\n[workspace]\n[lints.rust]{lints}");
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("violations-{}", source.len()));
    fs::create_dir_all(home.join("src"))?;
    fs::write(home.join("Cargo.toml"), manifest)?;
    fs::write(home.join("src/lib.rs"), source)?;
    fs::copy(root.join("host/engine/clippy.toml"), home.join("clippy.toml"))?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let run = Command::new(cargo)
        .args(["clippy", "--quiet", "--offline", "--message-format", "json", "--target-dir", "target"])
        .current_dir(&home)
        .env_remove("CARGO_TARGET_DIR")
        .output()?;
    let (mut names, mut texts) = (Vec::new(), String::from_utf8_lossy(&run.stderr).into_owned());
    for line in String::from_utf8_lossy(&run.stdout).lines() {
        let Ok(message) = serde_json::from_str::<serde_json::Value>(line) else { continue };
        let said = &message["message"];
        if said["level"] == "error" {
            names.extend(said["code"]["code"].as_str().map(str::to_owned));
            texts += said["message"].as_str().unwrap_or_default();
            texts.push('\n');
        }
    }
    fs::remove_dir_all(&home)?;
    Ok((names, texts))
}

#[test]
fn every_lint_refuses_its_violation() {
    let (names, texts) = objections(&source()).unwrap();
    for (group, lint) in LINTS {
        let wanted = match (group, lint) {
            ("clippy", "all") => "clippy::needless_return".to_owned(),
            ("clippy", lint) => format!("clippy::{lint}"),
            (_, lint) => lint.to_owned(),
        };
        assert!(names.contains(&wanted), "{wanted} let a violation pass; refused were {names:?}\n{texts}");
    }
    for name in BANNED_TYPES.iter().chain(&BANNED_METHODS) {
        assert!(texts.contains(&format!("`{name}`")), "{name} let a violation pass\n{texts}");
    }
}

#[test]
fn a_clean_crate_is_refused_for_nothing() {
    let (names, texts) = objections("//! Clean.\n/// One.\n#[must_use]\npub const fn one() -> u8 {\n    1\n}\n").unwrap();
    assert_eq!((names.len(), texts.as_str()), (0, ""));
}
