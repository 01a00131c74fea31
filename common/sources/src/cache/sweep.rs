//! Keeps the cache small. After a write, at most once an hour, the least recently used contents are deleted
//! until the cache has three quarters of [`MAX_BYTES`].
//!
//! Content that was used in the last hour stays, because another process may be about to read it. The cache
//! can therefore exceed [`MAX_BYTES`] by what is fetched within an hour. At [`HARD_LIMIT`], nothing more is
//! stored. Notes without content and files of killed processes are deleted too.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use common::entrance;

use super::{CONTENTS, CacheNote, HOUR, MAX_NOTE, NOTES, is_digest, read, write};

/// The size of all contents in bytes above which the cache is swept.
pub const MAX_BYTES: u64 = 1 << 30;
/// The size of all contents in bytes above which nothing is stored, so that the author of a source cannot
/// fill the disk.
const HARD_LIMIT: u64 = 2 << 30;
/// The name of the file whose modification time is the time of the last sweep.
const MARK: &str = "swept";

/// Whether the cache has room for `more` bytes.
pub fn has_room(folder: &Path, more: u64) -> bool {
    let kept: u64 = files(&folder.join(CONTENTS)).map(|file| file.bytes).sum();
    kept.saturating_add(more) <= HARD_LIMIT
}

/// Sweeps the cache, unless the last sweep was less than an hour ago.
pub fn sweep(folder: &Path, now: SystemTime) {
    if !is_due(&folder.join(MARK), now) {
        return;
    }
    let mut contents = Vec::new();
    for file in files(&folder.join(CONTENTS)) {
        if is_digest(&file.name) {
            contents.push(file);
        } else if file.is_old(now) {
            let _ = fs::remove_file(&file.path);
        }
    }
    let mut total: u64 = contents.iter().map(|file| file.bytes).sum();
    if total > MAX_BYTES {
        contents.sort_by_key(|file| file.used);
        for file in contents.iter().filter(|file| file.is_old(now)) {
            if total <= MAX_BYTES / 4 * 3 {
                break;
            }
            if fs::remove_file(&file.path).is_ok() {
                total = total.saturating_sub(file.bytes);
            }
        }
    }
    for file in files(&folder.join(NOTES)).filter(|file| file.is_old(now)) {
        if !has_content(&file.path, &folder.join(CONTENTS)) {
            let _ = fs::remove_file(&file.path);
        }
    }
}

/// Whether an hour has passed since the last sweep. If so, a new hour begins.
fn is_due(mark: &Path, now: SystemTime) -> bool {
    let last = fs::symlink_metadata(mark).and_then(|mark| mark.modified());
    // A time in the future is ignored.
    let recent = last.is_ok_and(|last| now.duration_since(last).is_ok_and(|age| age < HOUR));
    if recent {
        return false;
    }
    write(mark, &[]);
    true
}

struct StoredFile {
    path: std::path::PathBuf,
    name: String,
    bytes: u64,
    used: SystemTime,
}

impl StoredFile {
    fn is_old(&self, now: SystemTime) -> bool {
        now.duration_since(self.used).is_ok_and(|age| age > HOUR)
    }
}

fn files(folder: &Path) -> impl Iterator<Item = StoredFile> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let found = entry.metadata().ok()?;
        Some(StoredFile {
            path: entry.path(),
            name: entry.file_name().to_string_lossy().into_owned(),
            bytes: found.len(),
            used: found.modified().ok()?,
        })
    })
}

fn has_content(note: &Path, contents: &Path) -> bool {
    let note = read(note, MAX_NOTE);
    let note = note.and_then(|note| entrance::from_slice::<CacheNote>(&note.bytes).ok());
    note.is_some_and(|note| is_digest(&note.digest) && contents.join(note.digest).exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses sparse files, which take no space on the disk.
    #[test]
    fn a_full_cache_keeps_nothing_more() {
        let folder = tempfile::tempdir().unwrap();
        let contents = folder.path().join(CONTENTS);
        fs::create_dir(&contents).unwrap();
        assert!(has_room(folder.path(), HARD_LIMIT) && !has_room(folder.path(), HARD_LIMIT + 1));
        let file = fs::File::create(contents.join("0".repeat(64))).unwrap();
        file.set_len(HARD_LIMIT - 9).unwrap();
        assert!(has_room(folder.path(), 9) && !has_room(folder.path(), 10));
    }

    /// The kubelet evicts a pod when its volume exceeds the limit.
    #[test]
    fn the_volumes_of_the_reconciler_hold_more_than_the_cache_keeps() {
        let deployed = include_str!("../../../../deploy/overlays/reconciler/deployment.yaml");
        let limits = deployed
            .lines()
            .filter_map(|line| line.trim().strip_prefix("sizeLimit: "));
        let limits: Vec<u64> = limits
            .map(|limit| limit.strip_suffix("Gi").unwrap().parse().unwrap())
            .collect();
        assert_eq!(limits.len(), 2);
        assert!(
            limits.iter().all(|limit| limit << 30 > HARD_LIMIT),
            "{limits:?}"
        );
    }
}
