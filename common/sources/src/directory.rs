//! Reads a local directory of manifests like that of the addon-manager, and detects files that are still
//! being written.
//!
//! A directory counts as complete when two consecutive readings find the same names, lengths, times and
//! inodes. A file that cannot be read is listed too, because it was not removed.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use addons_render::package::{MAX_BYTES, MAX_FILES};
use common::directory::{DirectoryFile, is_manifest};

use crate::platform::FileStamp;

/// The maximum depth of folders.
const MAX_DEPTH: usize = 32;
/// The pause between two readings.
const GAP: Duration = Duration::from_millis(500);
/// The maximum number of readings. The last one is returned even if it differs from the one before.
const READINGS: usize = 20;

/// Why a directory cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// The directory does not exist or cannot be read.
    #[error("directory {}", path.display())]
    Read {
        /// The directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The directory has too many or too large files.
    #[error("directory {}: more than {MAX_FILES} manifests, or more than {} MiB", path.display(), MAX_BYTES >> 20)]
    TooLarge {
        /// The directory.
        path: PathBuf,
    },
}

/// The state of a file, to detect changes, or why the file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Stamp {
    File { length: u64, stamp: FileStamp },
    Unreadable(String),
}

/// The states of all manifests below a directory, by path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stamps(BTreeMap<String, Stamp>);

/// The result of reading a directory.
#[derive(Debug)]
pub struct DirectoryReading {
    /// The manifests, sorted by path, including those that only the reading before has found.
    pub files: Vec<DirectoryFile>,
    /// The states of the manifests.
    pub stamps: Stamps,
}

impl DirectoryReading {
    /// Whether nothing has changed since the reading before.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        !self.files.iter().any(|file| file.is_changing)
    }
}

/// Returns the states of all manifests below `root` without reading their content.
///
/// # Errors
/// [`DirectoryError`].
pub fn read_stamps(root: &Path) -> Result<Stamps, DirectoryError> {
    let failed = |source| DirectoryError::Read {
        path: root.to_owned(),
        source,
    };
    let real = fs::canonicalize(root).map_err(failed)?;
    let mut walk = DirectoryWalk {
        found: BTreeMap::new(),
        bytes: 0,
    };
    let entries = fs::read_dir(&real).map_err(failed)?;
    let first = Folder {
        path: String::new(),
        inside: vec![real],
    };
    let walked = walk.visit_folder(&first, entries).map_err(failed)?;
    if !walked || walk.found.len() > MAX_FILES || walk.bytes > MAX_BYTES as u64 {
        let path = root.to_owned();
        return Err(DirectoryError::TooLarge { path });
    }
    Ok(Stamps(walk.found))
}

/// Reads all manifests below `root`. Files that differ from `before`, the states at an earlier reading, or
/// that change in the meantime are marked as changing.
///
/// # Errors
/// [`DirectoryError`].
pub fn read(root: &Path, before: &Stamps) -> Result<DirectoryReading, DirectoryError> {
    let begun = read_stamps(root)?;
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
    let stamps = read_stamps(root)?;
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
        DirectoryFile {
            path: path.clone(),
            content: content.unwrap_or_else(|| Err("it came or went meanwhile".to_owned())),
            is_changing: first != second || second != third,
        }
    });
    Ok(DirectoryReading {
        files: files.collect(),
        stamps,
    })
}

/// Reads all manifests below `root` until two readings agree, for at most ten seconds. Files that still
/// differ then are marked as changing.
///
/// # Errors
/// [`DirectoryError`].
pub async fn read_until_stable(root: &Path) -> Result<DirectoryReading, DirectoryError> {
    let mut before = read_stamps(root)?;
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

struct DirectoryWalk {
    found: BTreeMap<String, Stamp>,
    bytes: u64,
}

/// A folder in the directory.
struct Folder {
    /// The path with a trailing `/`; empty for the directory itself.
    path: String,
    /// The real paths of the directory and of all folders on the way here. A link back to one of them would
    /// be an endless loop.
    inside: Vec<PathBuf>,
}

impl DirectoryWalk {
    /// Collects the manifests of a folder. Returns `false` if there are too many or too large ones.
    fn visit_folder(&mut self, folder: &Folder, entries: fs::ReadDir) -> io::Result<bool> {
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            // Hidden files, and the data folders of a ConfigMap volume.
            if name.starts_with('.') {
                continue;
            }
            if self.found.len() > MAX_FILES || self.bytes > MAX_BYTES as u64 {
                return Ok(false);
            }
            let path = format!("{}{name}", folder.path);
            self.visit_entry(folder, &entry.path(), path, &name);
        }
        Ok(true)
    }

    fn visit_entry(&mut self, folder: &Folder, at: &Path, path: String, name: &str) {
        let unreadable = |error: io::Error| Stamp::Unreadable(error.to_string());
        let target = match resolve(folder, at) {
            Ok(Some(target)) => target,
            // The file was removed after the folder was listed.
            Ok(None) => return,
            Err(error) => {
                // Without an extension it may be a folder of manifests.
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
            let walked = fs::read_dir(&real).and_then(|entries| self.visit_folder(&below, entries));
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

/// Resolves links and returns the real path and its metadata, or `None` if nothing has this name. Links out
/// of the directory or in a circle are errors.
fn resolve(folder: &Folder, at: &Path) -> io::Result<Option<(PathBuf, Metadata)>> {
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
