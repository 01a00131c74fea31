//! Keeps the cache small: after a write, at most once an hour, the contents that were used longest ago are deleted until the
//! cache holds three quarters of [`MAX_BYTES`].
//!
//! Content that was used in the last hour stays, because another process may be about to read it; so the cache can exceed its
//! bound by what one hour brings, up to [`MOST_BYTES`]: then nothing more is kept. Notes without content and files of killed processes
//! are deleted too.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use common::entrance;

use super::{CONTENTS, HOUR, MAX_NOTE, NOTES, Note, is_digest, read, write};

/// Bytes of all contents.
pub const MAX_BYTES: u64 = 1 << 30;
/// Bytes of all contents from which on nothing is kept: whoever names sources must not fill the disk of everyone.
const MOST_BYTES: u64 = 2 << 30;
/// Its modification time is the time of the last sweep.
const MARK: &str = "swept";

/// Whether there is room for so many bytes more.
pub fn has_room(folder: &Path, more: u64) -> bool {
    let kept: u64 = files(&folder.join(CONTENTS)).map(|file| file.bytes).sum();
    kept.saturating_add(more) <= MOST_BYTES
}

/// Sweeps, if the last sweep was long enough ago.
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
        if !speaks_of_something(&file.path, &folder.join(CONTENTS)) {
            let _ = fs::remove_file(&file.path);
        }
    }
}

/// Whether an hour has passed; then another one begins.
fn is_due(mark: &Path, now: SystemTime) -> bool {
    let last = fs::symlink_metadata(mark).and_then(|mark| mark.modified());
    // A time in the future does not count.
    let recent = last.is_ok_and(|last| now.duration_since(last).is_ok_and(|age| age < HOUR));
    if recent {
        return false;
    }
    write(mark, &[]);
    true
}

struct Entry {
    path: std::path::PathBuf,
    name: String,
    bytes: u64,
    used: SystemTime,
}

impl Entry {
    fn is_old(&self, now: SystemTime) -> bool {
        now.duration_since(self.used).is_ok_and(|age| age > HOUR)
    }
}

fn files(folder: &Path) -> impl Iterator<Item = Entry> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let found = entry.metadata().ok()?;
        Some(Entry {
            path: entry.path(),
            name: entry.file_name().to_string_lossy().into_owned(),
            bytes: found.len(),
            used: found.modified().ok()?,
        })
    })
}

fn speaks_of_something(note: &Path, contents: &Path) -> bool {
    let note = read(note, MAX_NOTE);
    let note = note.and_then(|note| entrance::from_slice::<Note>(&note.bytes).ok());
    note.is_some_and(|note| is_digest(&note.digest) && contents.join(note.digest).exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files without content, as sparse as they can be.
    #[test]
    fn a_full_cache_keeps_nothing_more() {
        let folder = tempfile::tempdir().unwrap();
        let contents = folder.path().join(CONTENTS);
        fs::create_dir(&contents).unwrap();
        assert!(has_room(folder.path(), MOST_BYTES) && !has_room(folder.path(), MOST_BYTES + 1));
        let file = fs::File::create(contents.join("0".repeat(64))).unwrap();
        file.set_len(MOST_BYTES - 9).unwrap();
        assert!(has_room(folder.path(), 9) && !has_room(folder.path(), 10));
    }

    /// Nothing is swept below [`MAX_BYTES`], and the kubelet evicts the pod of a volume that is full.
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
            limits.iter().all(|limit| limit << 30 > MOST_BYTES),
            "{limits:?}"
        );
    }
}
