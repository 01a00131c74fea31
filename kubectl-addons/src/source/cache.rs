//! What was fetched, on disk, by the sha256 of its content; and, for what can move (a URL, a branch, a tag), a note on what it
//! was the last time.
//!
//! Many runs may share it: files are written beside and renamed, and what is read is verified. Whatever cannot be read or
//! written is as if it were not there. Only the user can read it. Credentials never get here.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use common::api::names::hex_prefix;
use serde::{Deserialize, Serialize};

/// Hex digits of a sha256.
const DIGITS: usize = 64;

/// The cache; without a folder it holds nothing.
#[derive(Clone, Debug, Default)]
pub struct Cache {
    folder: Option<PathBuf>,
}

/// What something that can move was the last time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Note {
    /// Hex sha256 of its content in the cache.
    pub digest: String,
    /// The commit or image digest that it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved: Option<String>,
    /// `ETag` of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// `Last-Modified` of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
    /// Where redirects led, without credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
}

impl Cache {
    /// The cache in a folder, which need not exist.
    pub fn new(folder: Option<PathBuf>) -> Self {
        Self { folder }
    }

    /// The content with that digest.
    pub fn get(&self, digest: &str) -> Option<Vec<u8>> {
        let path = self.content(digest)?;
        let bytes = fs::read(&path).ok()?;
        if hex_prefix(&bytes, DIGITS) == digest {
            return Some(bytes);
        }
        // Damaged: it will be fetched again.
        let _ = fs::remove_file(&path);
        None
    }

    /// Keeps content; its digest.
    pub fn put(&self, bytes: &[u8]) -> String {
        let digest = hex_prefix(bytes, DIGITS);
        if let Some(path) = self.content(&digest).filter(|path| !path.exists()) {
            write(&path, bytes);
        }
        digest
    }

    /// The note on `key`; `kind` is the source that keeps it (`url`, `git`, …).
    pub fn note(&self, kind: &str, key: &str) -> Option<Note> {
        serde_json::from_slice(&fs::read(self.note_path(kind, key)?).ok()?).ok()
    }

    /// Notes what `key` is now. The key holds no credentials; only its hash gets on disk.
    pub fn set_note(&self, kind: &str, key: &str, note: &Note) {
        if let (Some(path), Ok(bytes)) = (self.note_path(kind, key), serde_json::to_vec(note)) {
            write(&path, &bytes);
        }
    }

    fn content(&self, digest: &str) -> Option<PathBuf> {
        let is_digest = digest.len() == DIGITS && digest.bytes().all(|b| b.is_ascii_hexdigit());
        let folder = self.folder.as_ref().filter(|_| is_digest)?;
        Some(folder.join("sha256").join(digest))
    }

    fn note_path(&self, kind: &str, key: &str) -> Option<PathBuf> {
        let name = format!("{kind}-{}.json", hex_prefix(key.as_bytes(), 32));
        Some(self.folder.as_ref()?.join("notes").join(name))
    }
}

/// Writes beside and renames. What goes wrong is no error: the next run fetches again.
fn write(path: &Path, bytes: &[u8]) {
    let Some(folder) = path.parent() else { return };
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    if builder.create(folder).is_err() {
        return;
    }
    // Made for the user alone, with a name of its own.
    let Ok(mut beside) = tempfile::NamedTempFile::new_in(folder) else {
        return;
    };
    if beside.write_all(bytes).is_ok() {
        let _ = beside.persist(path);
    }
}
