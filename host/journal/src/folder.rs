//! The folder of a journal: names of segments, removal of the oldest, and the modules of policies,
//! each kept once under its hash. What must not enter: what segments hold.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::JournalError;
use crate::line::hex;

/// The file that says which segment needed a module last.
const USES: &str = "uses.json";

/// Numbers and files of the segments of a journal, in order.
///
/// # Errors
/// When the folder cannot be read. A folder without segments is no error.
pub fn segments(dir: &Path) -> Result<Vec<(u64, PathBuf)>, JournalError> {
    let listing = || JournalError::io("list", dir);
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).map_err(listing())? {
        let path = entry.map_err(listing())?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let number = name.strip_prefix("segment-").and_then(|rest| rest.strip_suffix(".whj")).and_then(|digits| digits.parse().ok());
        if let Some(number) = number {
            found.push((number, path));
        }
    }
    found.sort();
    Ok(found)
}

/// The file of a segment.
pub(crate) fn segment_path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("segment-{number:08}.whj"))
}

/// Removes the oldest segments until those that stay have at most `most` bytes; the number of the
/// first that stays, if one does.
pub(crate) fn shrink(dir: &Path, most: u64) -> Result<Option<u64>, JournalError> {
    let mut sized = Vec::new();
    for (number, path) in segments(dir)? {
        let size = fs::metadata(&path).map_err(JournalError::io("read the size of", &path))?.len();
        sized.push((number, path, size));
    }
    let mut total: u64 = sized.iter().map(|(_, _, size)| size).sum();
    let mut first = None;
    for (number, path, size) in sized {
        if total <= most {
            first = Some(number);
            break;
        }
        fs::remove_file(&path).map_err(JournalError::io("remove", &path))?;
        total -= size;
    }
    Ok(first)
}

/// The modules that policies of a journal are made of.
#[derive(Debug, Clone)]
pub struct Modules {
    dir: PathBuf,
}

impl Modules {
    /// Those of a journal's folder.
    #[must_use]
    pub fn of(journal: &Path) -> Self {
        Self { dir: journal.join("modules") }
    }

    fn path(&self, digest: &str) -> PathBuf {
        self.dir.join(format!("{}.wasm", digest.strip_prefix("sha256:").unwrap_or(digest)))
    }

    /// The bytes of a module. `digest` is `sha256:` and their hash.
    ///
    /// # Errors
    /// When they are not there, or are others.
    pub fn read(&self, digest: &str) -> Result<Vec<u8>, JournalError> {
        let path = self.path(digest);
        let bytes = fs::read(&path).map_err(JournalError::io("read the module", &path))?;
        if digest_of(&bytes) == digest { Ok(bytes) } else { Err(JournalError::Module { digest: digest.to_owned(), path }) }
    }

    /// Keeps a module; its digest.
    pub(crate) fn keep(&self, bytes: &[u8]) -> Result<String, JournalError> {
        let digest = digest_of(bytes);
        if self.read(&digest).is_err() {
            fs::create_dir_all(&self.dir).map_err(JournalError::io("make", &self.dir))?;
            let path = self.path(&digest);
            replace(&path, bytes).map_err(JournalError::io("write the module", &path))?;
        }
        Ok(digest)
    }

    /// Notes that a segment needs these modules.
    pub(crate) fn needed<'a>(&self, digests: impl Iterator<Item = &'a str>, segment: u64) -> Result<(), JournalError> {
        let mut uses = self.uses();
        let before = uses.clone();
        for digest in digests {
            uses.insert(digest.to_owned(), segment);
        }
        if uses == before { Ok(()) } else { self.write_uses(&uses) }
    }

    /// Removes modules that no segment from `first` on needs. Those that nothing is known of stay.
    pub(crate) fn forget(&self, first: u64) -> Result<(), JournalError> {
        let mut uses = self.uses();
        let old: Vec<String> = uses.iter().filter(|(_, last)| **last < first).map(|(digest, _)| digest.clone()).collect();
        for digest in &old {
            let path = self.path(digest);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(JournalError::io("remove", &path)(error)),
                Ok(()) | Err(_) => uses.remove(digest),
            };
        }
        if old.is_empty() { Ok(()) } else { self.write_uses(&uses) }
    }

    /// A list that cannot be read costs room, not modules: what is not in it stays.
    fn uses(&self) -> BTreeMap<String, u64> {
        fs::read(self.dir.join(USES)).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
    }

    fn write_uses(&self, uses: &BTreeMap<String, u64>) -> Result<(), JournalError> {
        let path = self.dir.join(USES);
        let text = serde_json::to_vec(uses).map_err(|source| JournalError::Encode { what: "the list of modules", source })?;
        fs::create_dir_all(&self.dir).map_err(JournalError::io("make", &self.dir))?;
        replace(&path, &text).map_err(JournalError::io("write", &path))
    }
}

/// `sha256:` and the hash of these bytes.
fn digest_of(bytes: &[u8]) -> String {
    format!("sha256:{}", hex(&Sha256::digest(bytes)))
}

/// Puts a file in the place of another, whole or not at all.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut file = File::create(&new)?;
    file.write_all(bytes)?;
    file.sync_data()?;
    fs::rename(&new, path)
}
