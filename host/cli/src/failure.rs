//! What ends the program early, and the exit code of each end.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use whittle_cluster::ManifestError;
use whittle_journal::JournalError;
use whittle_sim::catalog::CatalogError;

/// Why the program ends without an answer. All but a closed pipe are told on standard error.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A file, directory or standard input cannot be read.
    #[error("cannot read {}: {why}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        why: io::Error,
    },
    /// A file or directory cannot be written.
    #[error("cannot write {}: {why}", path.display())]
    Save {
        /// Which.
        path: PathBuf,
        /// Why.
        why: io::Error,
    },
    /// The directory holds no manifests.
    #[error("{} holds no manifests: there is no file that ends in .yaml or .yml", .0.display())]
    NoManifests(PathBuf),
    /// Manifests are wrong; each line names a place.
    #[error("{0}")]
    Manifests(#[from] ManifestError),
    /// Types or prices cannot be had; the text says of what and what to do.
    #[error("{0}")]
    Catalog(#[from] CatalogError),
    /// A table given on the command line cannot be read.
    #[error("{}: {error}", path.display())]
    Table {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        error: CatalogError,
    },
    /// Fields would change where pods run and are not acted on yet: each with its place.
    #[error("{}\nthese would change where pods run and are not acted on yet; --allow-unsupported goes on without them, and the result is PARTIAL", .0.join("\n"))]
    Unsupported(Vec<String>),
    /// A journal cannot be read or written; the text says where and why.
    #[error("{0}")]
    Journal(#[from] JournalError),
    /// Something asked for is not there, or is not what it must be; the text says what would be right.
    #[error("{0}")]
    Usage(String),
    /// An answer cannot be written.
    #[error("cannot write the answer: {0}")]
    Write(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
    }
}

impl Failure {
    /// Whether the reader of the answer has gone, as `head` does: there is nobody to tell.
    #[must_use]
    pub fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Write(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// How a run ended that gave an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// All is well.
    Done,
    /// An `until` or `expect` of the story did not come true, or a replay came out differently.
    Untrue,
    /// Fields that are not acted on yet were set aside.
    Partial,
}

/// Bad input or usage.
pub const BAD_INPUT: u8 = 2;

impl From<End> for ExitCode {
    fn from(end: End) -> Self {
        Self::from(match end {
            End::Done => 0,
            End::Untrue => 1,
            End::Partial => 3,
        })
    }
}
