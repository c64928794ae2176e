//! Builds the crate of a policy into a WebAssembly component: cargo makes the core module, wit-component
//! wraps it. Used by `whittle policy build` and by the build of the policies that are shipped.
//!
//! What must not enter: running a component, and anything about what a policy answers.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The target that policies are compiled for.
pub const TARGET: &str = "wasm32-unknown-unknown";

/// Why there is no component.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// Cargo could not be started.
    #[error("starting {cargo} to build the policy in {folder}: {source}; is Rust installed (https://rustup.rs)?")]
    Cargo {
        /// The program.
        cargo: String,
        /// The policy's folder.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The standard library for the target is missing.
    #[error("building the policy in {folder}: this Rust lacks the target {TARGET}; get it with: rustup target add {TARGET}")]
    NoTarget {
        /// The policy's folder.
        folder: PathBuf,
    },
    /// The policy does not compile.
    #[error("building the policy in {folder} failed:\n{said}")]
    Compile {
        /// The policy's folder.
        folder: PathBuf,
        /// What the compiler said.
        said: String,
    },
    /// Cargo made no library, or more than one.
    #[error(
        "building the policy in {folder} made {found} WebAssembly libraries, one is wanted: is `crate-type = [\"cdylib\"]` in its Cargo.toml?"
    )]
    Library {
        /// The policy's folder.
        folder: PathBuf,
        /// How many.
        found: usize,
    },
    /// A file could not be read.
    #[error("reading the compiled policy {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The core module does not fit the contract.
    #[error("making a component of the compiled policy: {0}; does it call whittle_sdk::export! ?")]
    Wrap(String),
}

/// Turns a core module that carries the contract's type information into a component.
///
/// # Errors
/// When it is no core module, or its exports do not fit the contract it carries.
pub fn from_core(module: &[u8]) -> Result<Vec<u8>, BuildError> {
    let wrap = || {
        let encoder = wit_component::ComponentEncoder::default().validate(true).module(module)?;
        let mut encoder = encoder;
        encoder.encode()
    };
    wrap().map_err(|error| BuildError::Wrap(format!("{error:#}")))
}

/// How a policy is built.
#[derive(Debug, Clone, Default)]
pub struct Build {
    /// The package, where the folder's workspace has several.
    pub package: Option<String>,
    /// Where cargo puts what it builds; by default where it always does.
    pub target_dir: Option<PathBuf>,
    /// Refuse to change the lock file.
    pub locked: bool,
}

impl Build {
    /// Compiles the crate in `folder` for WebAssembly with optimisation and wraps it into a component.
    ///
    /// # Errors
    /// When cargo or the target is missing, the crate does not compile, or it is no policy.
    pub fn run(&self, folder: &Path) -> Result<Vec<u8>, BuildError> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
        let mut command = Command::new(&cargo);
        command.current_dir(folder).args([
            "build",
            "--release",
            "--lib",
            "--target",
            TARGET,
            "--message-format",
            "json-render-diagnostics",
        ]);
        if let Some(package) = &self.package {
            command.args(["-p", package]);
        }
        if let Some(target_dir) = &self.target_dir {
            command.arg("--target-dir").arg(target_dir);
        }
        if self.locked {
            command.arg("--locked");
        }
        clean(&mut command);
        let output = command.output().map_err(|source| BuildError::Cargo {
            cargo: cargo.to_string_lossy().into_owned(),
            folder: folder.to_owned(),
            source,
        })?;
        if !output.status.success() {
            return Err(refused(folder, &String::from_utf8_lossy(&output.stderr)));
        }
        let libraries = libraries(&String::from_utf8_lossy(&output.stdout));
        let [path] = &libraries[..] else {
            return Err(BuildError::Library { folder: folder.to_owned(), found: libraries.len() });
        };
        let module = std::fs::read(path).map_err(|source| BuildError::Read { path: path.clone(), source })?;
        from_core(&module)
    }
}

/// What an outer cargo, clippy or coverage run sets for its own crates must not reach the policy's.
fn clean(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        let outer =
            ["CARGO_TARGET_DIR", "CARGO_BUILD_TARGET", "CARGO_BUILD_TARGET_DIR", "RUSTFLAGS", "RUSTDOCFLAGS", "CARGO_ENCODED_RUSTFLAGS"];
        let wrapper = ["RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "CLIPPY_ARGS", "CLIPPY_CONF_DIR", "MAKEFLAGS", "CARGO_MAKEFLAGS"];
        if outer.contains(&name.as_str()) || wrapper.contains(&name.as_str()) || name.starts_with("CARGO_PROFILE_") {
            command.env_remove(name);
        }
    }
    // Messages of panics carry source paths: without the prefix the same source makes the same bytes everywhere.
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo")));
    if let Some(home) = home {
        command.env("CARGO_ENCODED_RUSTFLAGS", format!("--remap-path-prefix={}=cargo", home.display()));
    }
}

fn refused(folder: &Path, said: &str) -> BuildError {
    let missing = said.contains(&format!("the `{TARGET}` target may not be installed"));
    if missing {
        BuildError::NoTarget { folder: folder.to_owned() }
    } else {
        BuildError::Compile { folder: folder.to_owned(), said: said.to_owned() }
    }
}

/// The libraries for the target among cargo's messages, one JSON object a line. The files of a message
/// are found by their ending, which spares a JSON parser in every build.
fn libraries(messages: &str) -> Vec<PathBuf> {
    let of_line = |line: &str| {
        let wanted = line.contains("\"reason\":\"compiler-artifact\"");
        let ending = |part: &&str| Path::new(part).extension().is_some_and(|extension| extension == "wasm");
        let file = wanted.then(|| line.split('"').filter(ending).find(|part| !part.contains("/deps/")))?;
        file.map(PathBuf::from)
    };
    messages.lines().filter_map(of_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_module_is_refused_with_a_hint() {
        let error = from_core(b"\0asm and nothing").unwrap_err().to_string();
        assert!(
            error.starts_with("making a component of the compiled policy: ") && error.ends_with("does it call whittle_sdk::export! ?"),
            "{error}"
        );
    }

    #[test]
    fn a_missing_target_says_how_to_get_it() {
        let said = "error[E0463]: can't find crate for `core`\n  = note: the `wasm32-unknown-unknown` target may not be installed\n";
        let error = refused(Path::new("mine"), said).to_string();
        assert_eq!(
            error,
            "building the policy in mine: this Rust lacks the target wasm32-unknown-unknown; get it with: rustup target add wasm32-unknown-unknown"
        );
        assert!(refused(Path::new("mine"), "error: expected `;`").to_string().contains("expected `;`"));
    }

    #[test]
    fn the_library_is_found_among_the_messages() {
        let messages = "{\"reason\":\"compiler-artifact\",\"filenames\":[\"/t/release/libserde.rlib\"]}\n\
                        {\"reason\":\"compiler-artifact\",\"filenames\":[\"/t/wasm32-unknown-unknown/release/mine.wasm\",\"/t/release/libmine.rlib\"]}\n\
                        {\"reason\":\"build-finished\",\"success\":true}\n";
        assert_eq!(libraries(messages), [PathBuf::from("/t/wasm32-unknown-unknown/release/mine.wasm")]);
    }
}
