//! Files that the policy commands read: components, configurations and cases. What must not enter: what
//! is done with them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_json::Value;
use whittle_cluster::yaml;
use whittle_policy::{LoadError, Loader, Module};

use crate::failure::Failure;

/// Compiles components; compiled code is kept in the user's cache folder, so that a second run starts
/// at once.
#[derive(Debug)]
pub struct Modules {
    loader: Loader,
    /// The components that were loaded, by digest: a journal keeps them.
    loaded: RefCell<BTreeMap<String, Vec<u8>>>,
}

/// Where compiled code is kept; `None` when the user has no such folder.
fn cache() -> Option<PathBuf> {
    let given = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = given("XDG_CACHE_HOME").or_else(|| given("HOME").map(|home| home.join(".cache")))?;
    let folder = base.join("whittle").join("compiled");
    std::fs::create_dir_all(&folder).ok().map(|()| folder)
}

impl Modules {
    /// Starts the WebAssembly engine.
    ///
    /// # Errors
    /// When this machine cannot run WebAssembly.
    pub fn new() -> Result<Self, Failure> {
        // A cache that cannot be used costs time, not answers.
        let loader = cache().and_then(|folder| Loader::new(Some(&folder)).ok()).map_or_else(|| Loader::new(None), Ok);
        loader.map(|loader| Self { loader, loaded: RefCell::default() }).map_err(|error| Failure::Usage(error.to_string()))
    }

    /// The component of these bytes.
    ///
    /// # Errors
    /// When they are no policy.
    pub fn load(&self, bytes: &[u8]) -> Result<Module, LoadError> {
        let module = self.loader.load(bytes)?;
        self.loaded.borrow_mut().entry(module.digest().to_owned()).or_insert_with(|| bytes.to_vec());
        Ok(module)
    }

    /// The components that were loaded.
    #[must_use]
    pub fn loaded(self) -> Vec<Vec<u8>> {
        self.loaded.into_inner().into_values().collect()
    }

    /// The component in a file.
    ///
    /// # Errors
    /// When there is no such file, or it holds no policy.
    pub fn file(&self, path: &Path) -> Result<Module, String> {
        let bytes = std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let hint = |error: LoadError| {
            let source = path.extension().is_none_or(|ending| ending != "wasm");
            let also = if source { "; `whittle policy build DIR` makes a .wasm of a policy's folder" } else { "" };
            format!("{}: {error}{also}", path.display())
        };
        self.load(&bytes).map_err(hint)
    }

    /// The policy of this name that is shipped.
    ///
    /// # Errors
    /// When there is none.
    pub fn builtin(&self, name: &str) -> Result<Module, String> {
        let names = || whittle_builtin::ALL.iter().map(|builtin| builtin.name);
        let Some(builtin) = whittle_builtin::find(name) else {
            let all = names().collect::<Vec<_>>().join(", ");
            return Err(match yaml::closest(name, names()) {
                Some(meant) => format!("no policy {name:?} is built in; did you mean {meant}?"),
                None => format!("no policy {name:?} is built in; there are {all}"),
            });
        };
        self.load(builtin.component).map_err(|error| format!("the policy {name} that is built in: {error}"))
    }

    /// A component by the name of one that is shipped, or by its path.
    ///
    /// # Errors
    /// When it is neither.
    pub fn named(&self, written: &str) -> Result<Module, Failure> {
        let path = Path::new(written);
        let shipped = !path.exists() && whittle_builtin::find(written).is_some();
        if shipped { self.builtin(written) } else { self.file(path) }.map_err(Failure::Usage)
    }
}

/// Reads YAML or JSON as a value of some type.
///
/// # Errors
/// Names the file, the line and the path of what is wrong.
pub fn read<T: DeserializeOwned>(path: &Path) -> Result<T, Failure> {
    let text = std::fs::read_to_string(path).map_err(|why| Failure::Read { path: path.to_owned(), why })?;
    let shown = path.display();
    let (mut documents, error) = yaml::parse(&text);
    if let Some(error) = error {
        return Err(Failure::Usage(format!("{shown}:{}: {}", error.line, error.what)));
    }
    let one = documents.pop().filter(|_| documents.is_empty());
    let root = one.ok_or_else(|| Failure::Usage(format!("{shown} does not hold exactly one document")))?.root;
    let reading = yaml::read::<T>(&root);
    match (reading.value, reading.unknown.first()) {
        (Err(wrong), _) => Err(Failure::Usage(format!("{shown}:{}: {}: {}", wrong.line, wrong.path, wrong.what))),
        (Ok(_), Some(unknown)) => Err(Failure::Usage(format!("{shown}:{}: {}: {}", unknown.line, unknown.path, unknown.what))),
        (Ok(value), None) => Ok(value),
    }
}

/// A configuration: the file's, or `{}`.
///
/// # Errors
/// As [`read`].
pub fn config(path: Option<&Path>) -> Result<Value, Failure> {
    path.map_or_else(|| Ok(Value::Object(serde_json::Map::new())), read)
}
