//! YAML as people write it for Kubernetes, with the line of everything: documents, trees, paths,
//! typed reading through serde, and writing back.
//!
//! Plain scalars are read as `kubectl` reads them (YAML 1.1 booleans such as `yes` and `on`
//! included). What must not enter: any knowledge of a Kubernetes kind.

mod de;
mod emit;
mod parse;
mod path;
mod scalar;
mod suggest;
mod tree;

pub use de::{Mismatch, Reading, read};
pub use emit::emit;
pub use parse::{Document, SyntaxError, parse};
pub use path::{Path, Segment};
pub use scalar::{Plain, resolve};
pub use suggest::closest;
pub use tree::{Data, Entry, Scalar, Style, Yaml};
