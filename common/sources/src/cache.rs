//! Fetched content on disk, by its sha256; and for names whose content can change (a URL, a branch, a tag) a note with the
//! content of the last fetch.
//!
//! A digest does not say who may read its content: sources take content by its digest only where a note of theirs says that the same
//! reader got it (semantics 16).
//!
//! Several processes may share it: files are written to a temporary name and renamed, and content is verified when it is read,
//! so a killed process or a damaged disk costs one more fetch. What cannot be read or written counts as absent. Only the user
//! can read the cache; links in it are not followed. It never holds credentials. See `cache/sweep.rs` for how it stays small.

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

/// Hex digits of a sha256.
const DIGITS: usize = 64;
/// Bytes of one content; more than any package has.
const MAX_CONTENT: u64 = 128 << 20;
/// Bytes of one note.
const MAX_NOTE: u64 = 64 << 10;
/// The precision of the time of last use, so that most reads write nothing.
const HOUR: Duration = Duration::from_secs(3600);
/// The folder of contents.
const CONTENTS: &str = "sha256";
/// The folder of notes.
const NOTES: &str = "notes";

/// The cache; without a folder it holds nothing.
#[derive(Clone, Debug, Default)]
pub struct Cache {
    folder: Option<PathBuf>,
    /// Whether the folder is the user's own, once that is known.
    usable: OnceLock<bool>,
}

/// What a name that can change stood for at the last fetch.
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
    /// Hex sha256 of the whole URL that answered: what is shown of it leaves out its query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

impl Cache {
    /// The cache in a folder, which need not exist.
    pub fn new(folder: Option<PathBuf>) -> Self {
        Self {
            folder,
            usable: OnceLock::new(),
        }
    }

    /// The content with that digest.
    pub fn get(&self, digest: &str) -> Option<Vec<u8>> {
        let path = self.content(digest)?;
        let found = read(&path, MAX_CONTENT)?;
        if sha256(&found.bytes) != digest {
            // Damaged: it will be fetched again.
            let _ = fs::remove_file(&path);
            return None;
        }
        let now = SystemTime::now();
        if now.duration_since(found.used).is_ok_and(|age| age > HOUR) {
            let _ = found.file.set_modified(now);
        }
        Some(found.bytes)
    }

    /// Keeps content; its digest.
    pub fn put(&self, bytes: &[u8]) -> String {
        let digest = sha256(bytes);
        if let Some(path) = self.content(&digest) {
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

    /// The note on `key`; `kind` is the source that keeps it (`url`, `git`, …).
    pub fn note(&self, kind: &str, key: &str) -> Option<Note> {
        let found = read(&self.note_path(kind, key)?, MAX_NOTE)?;
        entrance::from_slice(&found.bytes).ok()
    }

    /// The note on `key` and its content, if the cache has both.
    pub fn noted(&self, kind: &str, key: &str) -> Option<(Note, Vec<u8>)> {
        let note = self.note(kind, key)?;
        let bytes = self.get(&note.digest)?;
        Some((note, bytes))
    }

    /// Notes what `key` is now. The key holds no credentials; only its hash is written to disk.
    pub fn set_note(&self, kind: &str, key: &str, note: &Note) {
        if let (Some(path), Ok(bytes)) = (self.note_path(kind, key), serde_json::to_vec(note)) {
            write(&path, &bytes);
        }
    }

    fn content(&self, digest: &str) -> Option<PathBuf> {
        let folder = self.folder().filter(|_| is_digest(digest))?;
        Some(folder.join(CONTENTS).join(digest))
    }

    fn note_path(&self, kind: &str, key: &str) -> Option<PathBuf> {
        let name = format!("{kind}-{}.json", hex_prefix(key.as_bytes(), 32));
        Some(self.folder()?.join(NOTES).join(name))
    }

    /// The folder, if no other user can write to it: a note decides which content is used for a name.
    fn folder(&self) -> Option<&Path> {
        let folder = self.folder.as_deref()?;
        let usable = self.usable.get_or_init(|| is_our_own(folder));
        usable.then_some(folder)
    }
}

/// Whether this is a sha256 in lower-case hex.
pub fn is_digest(name: &str) -> bool {
    let is_hex = |digit: u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
    name.len() == DIGITS && name.bytes().all(is_hex)
}

/// Creates the missing folders for the user alone, and removes the permissions of others, which only the owner can do.
fn is_our_own(folder: &Path) -> bool {
    [folder.to_owned(), folder.join(CONTENTS), folder.join(NOTES)]
        .iter()
        .all(|folder| {
            platform::create_private_folder(folder).is_ok() && platform::is_private(folder)
        })
}

struct Found {
    bytes: Vec<u8>,
    used: SystemTime,
    file: File,
}

/// A file of the cache; a link or a pipe in its place is removed.
fn read(path: &Path, limit: u64) -> Option<Found> {
    let found = fs::symlink_metadata(path).ok()?;
    if !found.is_file() || found.len() > limit {
        let _ = fs::remove_file(path);
        return None;
    }
    let mut file = File::open(path).ok()?;
    let mut bytes = Vec::with_capacity(usize::try_from(found.len()).ok()?);
    (&mut file).take(limit).read_to_end(&mut bytes).ok()?;
    Some(Found {
        bytes,
        used: found.modified().ok()?,
        file,
    })
}

/// Writes to a temporary file and renames it. A failure is ignored: the next run fetches again.
fn write(path: &Path, bytes: &[u8]) {
    let Some(folder) = path.parent() else { return };
    // A unique name, readable only for the user.
    let Ok(mut beside) = tempfile::NamedTempFile::new_in(folder) else {
        return;
    };
    if beside.write_all(bytes).is_ok() {
        let _ = beside.persist(path);
    }
}
