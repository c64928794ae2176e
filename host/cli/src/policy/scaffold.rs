//! `whittle policy new`: a policy to begin with, in a folder of its own, with the SDK's source beside it.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::flag::is_name;
use crate::failure::{End, Failure};
use crate::out::{FAINT, styled};

/// The SDK as a crate of its own: path below its folder and text.
const SDK: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/sdk.rs"));

/// The lock of the SDK's dependencies, without the policy itself.
const LOCK: &str = include_str!(concat!(env!("OUT_DIR"), "/Cargo.lock"));

/// What the name of the example is replaced in.
const EXAMPLE: &str = "my-policy";

/// The files of the scaffold: those of the example.
const FILES: [(&str, &str); 4] = [
    (".gitignore", include_str!("../../../../examples/my-policy/policy/.gitignore")),
    ("Cargo.toml", include_str!("../../../../examples/my-policy/policy/Cargo.toml")),
    ("README.md", include_str!("../../../../examples/my-policy/policy/README.md")),
    ("src/lib.rs", include_str!("../../../../examples/my-policy/policy/src/lib.rs")),
];

/// Makes the folder; its last part is the policy's name.
///
/// # Errors
/// When the folder is there already, its name is none for a policy, or it cannot be written.
pub fn run(folder: &Path, out: &mut dyn Write) -> Result<End, Failure> {
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if !is_name(&name) || name.starts_with(|first: char| first.is_ascii_digit()) {
        let why = "it takes lower case letters, digits and -, and begins with a letter";
        return Err(Failure::Usage(format!("{name:?} is no name for a policy: {why}")));
    }
    if folder.exists() {
        return Err(Failure::Usage(format!("{} is there already; choose another name, or take it away first", folder.display())));
    }
    for (file, text) in FILES {
        write(&folder.join(file), &text.replace(EXAMPLE, &name))?;
    }
    unpack_sdk(folder)?;
    let shown = folder.display();
    writeln!(out, "{shown} holds a policy:")?;
    for (file, what) in [
        ("src/lib.rs", "what it decides, and a test"),
        ("README.md", "how to go on"),
        ("sdk/", "the SDK's source; sdk/COLUMNS.md lists all a policy can know"),
    ] {
        writeln!(out, "  {file:<11} {}", styled(FAINT, what))?;
    }
    writeln!(out, "Next: whittle policy build {shown} && whittle simulate DIR --policy {name}={shown}/{name}.wasm")?;
    Ok(End::Done)
}

/// Writes the SDK's source below `folder`, and the lock file when there is none.
///
/// # Errors
/// When something cannot be written.
pub fn unpack_sdk(folder: &Path) -> Result<(), Failure> {
    for (file, text) in SDK {
        write(&folder.join("sdk").join(file), text)?;
    }
    let lock = folder.join("Cargo.lock");
    if lock.exists() { Ok(()) } else { write(&lock, LOCK) }
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let failed = |why| Failure::Usage(format!("cannot write {}: {why}", path.display()));
    fs::create_dir_all(path.parent().map_or_else(PathBuf::new, Path::to_path_buf)).map_err(failed)?;
    fs::write(path, text).map_err(failed)
}
