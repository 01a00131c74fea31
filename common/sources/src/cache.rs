//! The cache of fetched content on disk. Content is stored by its sha256. A name whose content can change (a
//! URL, a branch, a tag) has a note with the digest of its last content.
//!
//! A digest does not determine who may read its content. A source reads content by digest only if one of its notes
//! says that the same reader fetched it before (semantics 16).
//!
//! Several processes can share the cache. Files are written under a temporary name and renamed, and content
//! is verified when it is read, so a killed process or a damaged disk costs at most another fetch. Files that
//! cannot be read or written count as absent. Only the user can read the cache, and links in it are not
//! followed. It never contains credentials. The module `sweep` keeps it small.

mod sweep;

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use common::api::names::hex_prefix;
use common::entrance;
use common::manifest::digest::sha256;
use serde::{Deserialize, Serialize};

use crate::platform;

/// The number of hex digits of a sha256.
const DIGITS: usize = 64;
/// The maximum size of one content in bytes, above the limit of any package.
const MAX_CONTENT: u64 = 128 << 20;
/// The maximum size of one note in bytes.
const MAX_NOTE: u64 = 64 << 10;
/// The precision of the time of last use. Most reads therefore write nothing.
const HOUR: Duration = Duration::from_secs(3600);
/// The folder of the contents.
const CONTENTS: &str = "sha256";
/// The folder of the notes.
const NOTES: &str = "notes";

/// The cache. Without a folder it stores nothing.
#[derive(Clone, Debug, Default)]
pub struct SourceCache {
    folder: Option<PathBuf>,
    /// Whether only the user can access the folder; checked at the first use.
    usable: OnceLock<bool>,
}

/// The content of a name that can change, as of the last fetch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CacheNote {
    /// The hex sha256 of the content in the cache.
    pub digest: String,
    /// The commit or image digest that the name resolved to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved: Option<String>,
    /// The `ETag` of the response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// The `Last-Modified` of the response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
    /// The location after redirects, without credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// The hex sha256 of the whole URL that responded; `location` leaves out the query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

impl SourceCache {
    /// A cache in a folder, which does not have to exist.
    pub fn new(folder: Option<PathBuf>) -> Self {
        Self {
            folder,
            usable: OnceLock::new(),
        }
    }

    /// Returns the content with this digest.
    pub fn get(&self, digest: &str) -> Option<Vec<u8>> {
        let path = self.content_path(digest)?;
        let found = read(&path, MAX_CONTENT)?;
        if sha256(&found.bytes) != digest {
            // Damaged: remove it, so that it is fetched again.
            let _ = fs::remove_file(&path);
            return None;
        }
        let now = SystemTime::now();
        if now.duration_since(found.used).is_ok_and(|age| age > HOUR) {
            let _ = found.file.set_modified(now);
        }
        Some(found.bytes)
    }

    /// Stores content and returns its digest.
    pub fn put(&self, bytes: &[u8]) -> String {
        let digest = sha256(bytes);
        if let Some(path) = self.content_path(&digest) {
            let there = fs::symlink_metadata(&path);
            let is_there =
                there.is_ok_and(|there| there.is_file() && there.len() == bytes.len() as u64);
            if !is_there && let Some(folder) = &self.folder {
                if sweep::has_room(folder, bytes.len() as u64) {
                    write(&path, bytes);
                }
                sweep::sweep(folder, SystemTime::now());
            }
        }
        digest
    }

    /// Returns the note for `key`; `kind` is the kind of source (`url`, `git`, …).
    pub fn note(&self, kind: &str, key: &str) -> Option<CacheNote> {
        let found = read(&self.note_path(kind, key)?, MAX_NOTE)?;
        entrance::from_slice(&found.bytes).ok()
    }

    /// Returns the note for `key` with its content, if the cache has both.
    pub fn lookup(&self, kind: &str, key: &str) -> Option<(CacheNote, Vec<u8>)> {
        let note = self.note(kind, key)?;
        let bytes = self.get(&note.digest)?;
        Some((note, bytes))
    }

    /// Stores the note on `key`. The key must not contain credentials; only its hash is written to disk.
    pub fn set_note(&self, kind: &str, key: &str, note: &CacheNote) {
        if let (Some(path), Ok(bytes)) = (self.note_path(kind, key), serde_json::to_vec(note)) {
            write(&path, &bytes);
        }
    }

    fn content_path(&self, digest: &str) -> Option<PathBuf> {
        let folder = self.folder().filter(|_| is_digest(digest))?;
        Some(folder.join(CONTENTS).join(digest))
    }

    fn note_path(&self, kind: &str, key: &str) -> Option<PathBuf> {
        let name = format!("{kind}-{}.json", hex_prefix(key.as_bytes(), 32));
        Some(self.folder()?.join(NOTES).join(name))
    }

    /// The folder, if no other user can write to it. Anyone who can write notes decides which content is used
    /// for a name.
    fn folder(&self) -> Option<&Path> {
        let folder = self.folder.as_deref()?;
        let usable = self.usable.get_or_init(|| make_private(folder));
        usable.then_some(folder)
    }
}

/// Whether `name` is a sha256 in lower-case hex.
pub fn is_digest(name: &str) -> bool {
    let is_hex = |digit: u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
    name.len() == DIGITS && name.bytes().all(is_hex)
}

/// Creates missing folders with access for the user alone, and removes permissions of others. Returns whether
/// the user owns all folders.
fn make_private(folder: &Path) -> bool {
    [folder.to_owned(), folder.join(CONTENTS), folder.join(NOTES)]
        .iter()
        .all(|folder| {
            platform::create_private_folder(folder).is_ok() && platform::is_private(folder)
        })
}

struct ReadFile {
    bytes: Vec<u8>,
    used: SystemTime,
    file: File,
}

/// Reads a file of the cache. A link or a pipe in its place is removed.
fn read(path: &Path, limit: u64) -> Option<ReadFile> {
    let found = fs::symlink_metadata(path).ok()?;
    if !found.is_file() || found.len() > limit {
        let _ = fs::remove_file(path);
        return None;
    }
    let mut file = File::open(path).ok()?;
    let mut bytes = Vec::with_capacity(usize::try_from(found.len()).ok()?);
    (&mut file).take(limit).read_to_end(&mut bytes).ok()?;
    Some(ReadFile {
        bytes,
        used: found.modified().ok()?,
        file,
    })
}

/// Writes a temporary file and renames it. Failures are ignored; the next run fetches the content again.
fn write(path: &Path, bytes: &[u8]) {
    let Some(folder) = path.parent() else { return };
    // The file has a unique name and only the user can read it.
    let Ok(mut beside) = tempfile::NamedTempFile::new_in(folder) else {
        return;
    };
    if beside.write_all(bytes).is_ok() {
        let _ = beside.persist(path);
    }
}
