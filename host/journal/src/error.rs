//! What can be wrong with a journal. What must not enter: what is done about it.

use std::io;
use std::path::{Path, PathBuf};

/// A journal that cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file system says no.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// What was attempted.
        doing: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// The folder holds no segment.
    #[error("{} holds no journal: no file there is named like segment-00000001.whj", .0.display())]
    Empty(PathBuf),
    /// There is no segment of this number.
    #[error("{} holds no segment {number}; there are {first} to {last}", dir.display())]
    NoSegment {
        /// The folder.
        dir: PathBuf,
        /// The number asked for.
        number: u64,
        /// The first there is.
        first: u64,
        /// The last there is.
        last: u64,
    },
    /// A file that is no segment.
    #[error("{} is no segment of a journal: it does not begin like one", .0.display())]
    NoSegmentFile(PathBuf),
    /// A segment of a format that this version does not know.
    #[error("{} has format {found}; this version reads format {known}: use the version of whittle that wrote it", path.display())]
    Format {
        /// The segment.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The one that is known.
        known: u32,
    },
    /// What is written is whole, but another version's.
    #[error(
        "{}, frame at byte {offset}: written by whittle {version} and not readable by {}: {source}; replay it with the version that wrote it",
        path.display(),
        env!("CARGO_PKG_VERSION")
    )]
    Foreign {
        /// The segment.
        path: PathBuf,
        /// Where its frame begins.
        offset: u64,
        /// The version that wrote it.
        version: String,
        /// What does not fit.
        source: serde_json::Error,
    },
    /// Bytes are not those that were written.
    #[error("{} is damaged in the frame at byte {offset}: {what}; a later segment can still be replayed", path.display())]
    Damaged {
        /// The segment.
        path: PathBuf,
        /// Where the frame begins.
        offset: u64,
        /// What is wrong.
        what: String,
    },
    /// A policy's module is not what its name says.
    #[error("the module {digest} in {} is damaged: its bytes have another hash", path.display())]
    Module {
        /// The digest it should have.
        digest: String,
        /// The file.
        path: PathBuf,
    },
    /// Policies that were in force cannot be had again.
    #[error("{}, frame at byte {offset}: the policies in force cannot be loaded: {why}", path.display())]
    Policies {
        /// The segment.
        path: PathBuf,
        /// Where the frame begins.
        offset: u64,
        /// Why.
        why: String,
    },
    /// Something was to be written before the first checkpoint, or after a write that failed.
    #[error("the journal waits for a checkpoint: {0} is not written")]
    NoCheckpoint(&'static str),
    /// Something cannot be written as JSON.
    #[error("cannot write {what} as JSON: {source}")]
    Encode {
        /// What.
        what: &'static str,
        /// Why.
        source: serde_json::Error,
    },
}

impl JournalError {
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { doing, path, source }
    }
}
