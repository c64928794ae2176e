//! Manifests: files of objects as people keep them and as `kubectl get -o yaml` prints them, read
//! into the model's nouns with the place of everything, and every fault told with its place.

mod error;
mod kinds;
mod link;
mod object;
mod reader;
mod scheduler_config;

pub use error::{Fault, ManifestError, Problem};
pub use link::link;
pub use object::{Located, Object, not_acted_on};
pub(crate) use reader::syntax_problem;
pub use reader::{Strictness, read};
pub use scheduler_config::scheduler_config;

/// The fault of a kind that is not read, if any.
pub(crate) fn judge_kind(api_version: &str, kind: &str) -> Option<Fault> {
    kinds::role(api_version, kind).err()
}
