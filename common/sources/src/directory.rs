//! A directory of manifests of this machine, as the addon-manager has one: every manifest below it, and whether someone is still
//! writing there.
//!
//! A directory counts as whole when two readings of it see the same names, lengths, times and inodes. What cannot be read is a
//! file too: it was not removed.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use addons_render::package::{MAX_BYTES, MAX_FILES};
use common::directory::{File, is_manifest};

use crate::platform::FileStamp;

/// Folders inside of each other.
const MAX_DEPTH: usize = 32;
/// Between two readings that have to agree.
const GAP: Duration = Duration::from_millis(500);
/// Readings until one counts although it does not agree with the one before.
const READINGS: usize = 20;

/// Why a directory cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// It is missing, or may not be read.
    #[error("directory {}", path.display())]
    Read {
        /// The directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// More files, or larger ones, than add-ons have.
    #[error("directory {}: more than {MAX_FILES} manifests, or more than {} MiB", path.display(), MAX_BYTES >> 20)]
    TooLarge {
        /// The directory.
        path: PathBuf,
    },
}

/// What tells two states of a file apart, or why it cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Stamp {
    File { length: u64, stamp: FileStamp },
    Unreadable(String),
}

/// The state of every manifest below a directory, by path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stamps(BTreeMap<String, Stamp>);

/// One reading of a directory.
#[derive(Debug)]
pub struct Reading {
    /// The manifests, sorted by path; also those that were there at the reading before.
    pub files: Vec<File>,
    /// Their state.
    pub stamps: Stamps,
}

impl Reading {
    /// Whether nothing changed since the reading before.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        !self.files.iter().any(|file| file.is_changing)
    }
}

/// The state of every manifest below `root`; nothing is read.
///
/// # Errors
/// [`DirectoryError`].
pub fn stamps(root: &Path) -> Result<Stamps, DirectoryError> {
    let failed = |source| DirectoryError::Read {
        path: root.to_owned(),
        source,
    };
    let real = fs::canonicalize(root).map_err(failed)?;
    let mut walk = Walk {
        found: BTreeMap::new(),
        bytes: 0,
    };
    let entries = fs::read_dir(&real).map_err(failed)?;
    let first = Folder {
        path: String::new(),
        inside: vec![real],
    };
    let walked = walk.folder(&first, entries).map_err(failed)?;
    if !walked || walk.found.len() > MAX_FILES || walk.bytes > MAX_BYTES as u64 {
        let path = root.to_owned();
        return Err(DirectoryError::TooLarge { path });
    }
    Ok(Stamps(walk.found))
}

/// Reads every manifest below `root`. `before` is the state at another reading: what differs from it, or changes meanwhile, is still
/// being written.
///
/// # Errors
/// [`DirectoryError`].
pub fn read(root: &Path, before: &Stamps) -> Result<Reading, DirectoryError> {
    let begun = stamps(root)?;
    let contents: BTreeMap<&String, Result<Vec<u8>, String>> = begun
        .0
        .iter()
        .map(|(path, stamp)| {
            let content = match stamp {
                Stamp::Unreadable(why) => Err(why.clone()),
                Stamp::File { .. } => fs::read(root.join(path)).map_err(|error| error.to_string()),
            };
            (path, content)
        })
        .collect();
    let stamps = stamps(root)?;
    let mut paths: Vec<&String> = [before, &begun, &stamps]
        .iter()
        .flat_map(|state| state.0.keys())
        .collect();
    paths.sort_unstable();
    paths.dedup();
    let files = paths.into_iter().map(|path| {
        let states = [before, &begun, &stamps].map(|state| state.0.get(path));
        let [first, second, third] = states;
        let content = contents.get(path).cloned();
        File {
            path: path.clone(),
            content: content.unwrap_or_else(|| Err("it came or went meanwhile".to_owned())),
            is_changing: first != second || second != third,
        }
    });
    Ok(Reading {
        files: files.collect(),
        stamps,
    })
}

/// Reads every manifest below `root` until two readings agree, ten seconds at most: then what still differs is marked.
///
/// # Errors
/// [`DirectoryError`].
pub async fn settled(root: &Path) -> Result<Reading, DirectoryError> {
    let mut before = stamps(root)?;
    let mut left = READINGS;
    loop {
        tokio::time::sleep(GAP).await;
        let reading = read(root, &before)?;
        left -= 1;
        if left == 0 || reading.is_whole() {
            return Ok(reading);
        }
        before = reading.stamps;
    }
}

struct Walk {
    found: BTreeMap<String, Stamp>,
    bytes: u64,
}

/// A folder below the directory.
struct Folder {
    /// Its path, with a `/` behind it; empty for the directory itself.
    path: String,
    /// The real path of the directory, and of every folder that leads here: a link back to one of them would never end.
    inside: Vec<PathBuf>,
}

impl Walk {
    /// Whether the folder is not too large.
    fn folder(&mut self, folder: &Folder, entries: fs::ReadDir) -> io::Result<bool> {
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            // Hidden files, and what a ConfigMap volume links to.
            if name.starts_with('.') {
                continue;
            }
            if self.found.len() > MAX_FILES || self.bytes > MAX_BYTES as u64 {
                return Ok(false);
            }
            let path = format!("{}{name}", folder.path);
            self.entry(folder, &entry.path(), path, &name);
        }
        Ok(true)
    }

    fn entry(&mut self, folder: &Folder, at: &Path, path: String, name: &str) {
        let unreadable = |error: io::Error| Stamp::Unreadable(error.to_string());
        let target = match target(folder, at) {
            Ok(Some(target)) => target,
            // It went after the folder was listed.
            Ok(None) => return,
            Err(error) => {
                // A folder, perhaps: files that are not read have an ending.
                if is_manifest(name) || !name.contains('.') {
                    self.found.insert(path, unreadable(error));
                }
                return;
            }
        };
        let (real, metadata) = target;
        if metadata.is_dir() {
            let below = Folder {
                path: format!("{path}/"),
                inside: [folder.inside.as_slice(), std::slice::from_ref(&real)].concat(),
            };
            let walked = fs::read_dir(&real).and_then(|entries| self.folder(&below, entries));
            if let Err(error) = walked {
                self.found.insert(path, unreadable(error));
            }
            return;
        }
        if !is_manifest(name) {
            return;
        }
        let stamp = if metadata.is_file() {
            self.bytes = self.bytes.saturating_add(metadata.len());
            Stamp::File {
                length: metadata.len(),
                stamp: FileStamp::new(&metadata),
            }
        } else {
            Stamp::Unreadable("it is neither a file nor a folder".to_owned())
        };
        self.found.insert(path, stamp);
    }
}

/// What a name leads to, links resolved; `None` where there is nothing of that name. Links that lead out of the directory or in a
/// circle are errors.
fn target(folder: &Folder, at: &Path) -> io::Result<Option<(PathBuf, Metadata)>> {
    let refused = |what: &str| Err(io::Error::new(ErrorKind::InvalidInput, what));
    match fs::symlink_metadata(at) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
        Ok(_) => {}
    }
    let real = fs::canonicalize(at)?;
    let root = folder.inside.first();
    if !root.is_some_and(|root| real.starts_with(root)) {
        return refused("the link leads out of the directory");
    }
    if folder.inside.contains(&real) {
        return refused("the link leads in a circle");
    }
    if folder.inside.len() > MAX_DEPTH {
        return refused("too many folders inside of each other");
    }
    let metadata = fs::metadata(&real)?;
    Ok(Some((real, metadata)))
}

#[cfg(test)]
mod tests;
