//! Compiles every crate below `policies` to a component, with a target folder of its own: the outer
//! cargo holds the lock of its own.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use sha2::{Digest, Sha256};
use whittle_component::Build;

fn main() -> ExitCode {
    match compile() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            for line in format!("the policies that are shipped are compiled to WebAssembly: {error}").lines() {
                println!("cargo::error={line}");
            }
            ExitCode::FAILURE
        }
    }
}

fn compile() -> Result<(), Box<dyn Error>> {
    let here = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let root = here.join("../..").canonicalize()?;
    for watched in ["policies", "sdk/src", "sdk/wit", "sdk/Cargo.toml", "Cargo.toml", "Cargo.lock"] {
        println!("cargo::rerun-if-changed={}", root.join(watched).display());
    }
    let mut all = String::from("&[\n");
    for name in names(&root.join("policies"))? {
        let build = Build { package: Some(format!("whittle-policy-{name}")), target_dir: Some(out.join("target")), locked: true };
        let component = build.run(&root)?;
        let digest = Sha256::digest(&component).iter().fold("sha256:".to_owned(), |text, byte| text + &format!("{byte:02x}"));
        let path = out.join(format!("{name}.wasm"));
        fs::write(&path, component)?;
        writeln!(all, "Builtin {{ name: {name:?}, digest: {digest:?}, component: include_bytes!({path:?}) }},")?;
    }
    all.push(']');
    Ok(fs::write(out.join("all.rs"), all)?)
}

/// The folders that hold a crate, in order.
fn names(policies: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(policies)? {
        let path = entry?.path();
        if let (true, Some(name)) = (path.join("Cargo.toml").is_file(), path.file_name()) {
            names.push(name.to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}
