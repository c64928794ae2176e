//! Loading: from bytes to a compiled module whose manifest makes sense. What must not enter: where the
//! bytes come from.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sha2::{Digest, Sha256};
use wasmparser::{Encoding, Parser, Payload};
use wasmtime::Engine;
use wasmtime::component::{Component, Linker};

use crate::limits::MOST_MODULE_BYTES;
use crate::machine::{self, MachineError};
use crate::module::{Module, read_manifest};
use crate::round::{Instance, State, prepare};
use crate::{Failure, Limits};

/// How long a module may take to compile: the largest common toolchain's take 18 s on a slow machine.
const COMPILE_TIME: Duration = Duration::from_secs(60);

/// The shortest wait for the compiler's turn, however short the time to compile is.
const LEAST_TURN: Duration = Duration::from_secs(10);

/// How many digests of refused modules are remembered.
const REMEMBERED: usize = 256;

/// A module that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// It is too large.
    #[error("the module has {bytes} bytes, at most {MOST_MODULE_BYTES} are loaded")]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// It is not WebAssembly.
    #[error("this is no WebAssembly: {0}")]
    NoWasm(String),
    /// It is a core module.
    #[error("this is a core module, a component is wanted: `whittle policy build` makes one, and so does `wasm-tools component new`")]
    CoreModule,
    /// It imports something.
    #[error("it imports {0}: a policy is a pure function and imports nothing")]
    Import(String),
    /// It is not valid, or uses features that policies may not.
    #[error("it is not valid here: {0}")]
    Invalid(String),
    /// Another module is still being compiled.
    #[error("another module has been compiling for {} s; try again later", .0.as_secs())]
    Busy(Duration),
    /// It took too long to compile.
    #[error("it is not compiled after {} s", .0.as_secs())]
    TooSlow(Duration),
    /// It does not export the contract.
    #[error("it is no policy of contract whittle:policy/scoring@0.1.0: {0}")]
    NoPolicy(String),
    /// It failed when it was asked for its manifest.
    #[error("asking it for its manifest failed: {0}")]
    Failed(#[from] Failure),
    /// Its manifest makes no sense.
    #[error("its manifest makes no sense: {0}")]
    Manifest(String),
}

/// Loads modules, one at a time. Blocks for as long as a compiler works: keep it off hot paths.
pub struct Loader {
    engine: Engine,
    compile_time: Duration,
    /// Held by whoever compiles, also after the waiter has given up.
    compiling: Arc<Mutex<()>>,
    slow: Mutex<BTreeMap<String, LoadError>>,
}

impl std::fmt::Debug for Loader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loader").field("compile_time", &self.compile_time).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is behind these locks is whole at every moment, so a panic elsewhere leaves nothing half done.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `sha256:` and the hash of some bytes.
#[must_use]
pub fn digest(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    hash.iter().fold("sha256:".to_owned(), |text, byte| text + &format!("{byte:02x}"))
}

impl Loader {
    /// A loader that keeps compiled code in the folder `cache`, when given. Only trusted users may write
    /// there: what lies in it is run.
    ///
    /// # Errors
    /// When this machine cannot run WebAssembly, or the folder cannot be used.
    pub fn new(cache: Option<&Path>) -> Result<Self, MachineError> {
        let engine = machine::engine(cache)?;
        Ok(Self { engine, compile_time: COMPILE_TIME, compiling: Arc::default(), slow: Mutex::default() })
    }

    /// The same with another bound on the time to compile.
    #[must_use]
    pub const fn with_compile_time(mut self, compile_time: Duration) -> Self {
        self.compile_time = compile_time;
        self
    }

    /// Compiles a component and asks for its manifest.
    ///
    /// # Errors
    /// Says what is wrong with it. A module that was too slow to compile is refused at once when it
    /// comes again.
    pub fn load(&self, bytes: &[u8]) -> Result<Module, LoadError> {
        inspect(bytes)?;
        let digest = digest(bytes);
        if let Some(error) = lock(&self.slow).get(&digest) {
            return Err(error.clone());
        }
        let component = self.compile(bytes, &digest)?;
        let linker: Linker<State> = Linker::new(&self.engine);
        let no_policy = |error: wasmtime::Error| LoadError::NoPolicy(format!("{error:#}"));
        let pre = prepare(linker.instantiate_pre(&component).map_err(no_policy)?).map_err(no_policy)?;
        let said = Instance::new(&self.engine, &pre, Limits::default())?.manifest()?;
        let (manifest, schema) = read_manifest(said).map_err(LoadError::Manifest)?;
        Ok(Module::new(self.engine.clone(), pre, digest, manifest, schema))
    }

    /// Compiles on a thread of its own, because a compiler cannot be interrupted.
    fn compile(&self, bytes: &[u8], digest: &str) -> Result<Component, LoadError> {
        let (started, has_started) = channel();
        let (done, is_done) = channel();
        let (engine, bytes, turn) = (self.engine.clone(), bytes.to_vec(), Arc::clone(&self.compiling));
        std::thread::spawn(move || {
            let _turn = lock(&turn);
            // Whoever wanted it may have given up waiting for the turn.
            if started.send(()).is_err() {
                return;
            }
            let _ = done.send(Component::from_binary(&engine, &bytes).map_err(|error| format!("{error:#}")));
        });
        // The turn is waited for as long as a module may take, so one that never ends stops nobody for ever.
        if has_started.recv_timeout(self.compile_time.max(LEAST_TURN)).is_err() {
            return Err(LoadError::Busy(self.compile_time));
        }
        match is_done.recv_timeout(self.compile_time) {
            Ok(compiled) => compiled.map_err(LoadError::Invalid),
            Err(RecvTimeoutError::Disconnected) => Err(LoadError::Invalid("the compiler gave up".to_owned())),
            Err(RecvTimeoutError::Timeout) => {
                let error = LoadError::TooSlow(self.compile_time);
                let mut slow = lock(&self.slow);
                if slow.len() < REMEMBERED {
                    slow.insert(digest.to_owned(), error.clone());
                }
                Err(error)
            }
        }
    }
}

/// What can be seen without compiling: size, kind and imports.
fn inspect(bytes: &[u8]) -> Result<(), LoadError> {
    if bytes.len() > MOST_MODULE_BYTES {
        return Err(LoadError::TooLarge { bytes: bytes.len() });
    }
    let no_wasm = |error: wasmparser::BinaryReaderError| LoadError::NoWasm(error.message().to_owned());
    let mut depth = 0usize;
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload.map_err(no_wasm)?;
        if let Payload::Version { encoding: Encoding::Module, .. } = payload
            && depth == 0
        {
            return Err(LoadError::CoreModule);
        }
        if let Payload::ModuleSection { .. } | Payload::ComponentSection { .. } = payload {
            depth += 1;
        } else if let Payload::End(_) = payload {
            depth = depth.saturating_sub(1);
        } else if let Payload::ComponentImportSection(section) = payload
            && depth == 0
            && let Some(import) = section.into_iter().next()
        {
            return Err(LoadError::Import(import.map_err(no_wasm)?.name.name.to_owned()));
        }
    }
    Ok(())
}
