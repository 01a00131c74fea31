//! Caches the served kinds on disk, in one file for each cluster. Files are written under a temporary name and renamed, so that other
//! processes never read half a file. A file that cannot be read counts as missing.

use std::fs;
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use common::api::names;
use common::entrance;
use common::manifest::kinds::KindTable;

use super::super::random;

/// A kind that was added meanwhile is noticed when it is needed, and one that was removed when it is used.
const LIFETIME: SignedDuration = SignedDuration::from_hours(6);
/// Incremented when the format of the file changes.
const FORMAT: u32 = 3;

/// The cache file of one cluster.
#[derive(Clone, Debug)]
pub(crate) struct KindCache {
    file: PathBuf,
}

#[derive(Deserialize)]
struct StoredKinds {
    format: u32,
    at: Timestamp,
    kinds: KindTable,
}

#[derive(Serialize)]
struct KindsToStore<'a> {
    format: u32,
    at: Timestamp,
    kinds: &'a KindTable,
}

impl KindCache {
    /// Returns the cache of a cluster, identified by its URL and certificate authority, because different clusters can use the same URL
    /// over time.
    pub(crate) fn new(dir: &Path, server: &str, authority: &[Vec<u8>]) -> Self {
        let mut identity = server.as_bytes().to_vec();
        for certificate in authority {
            identity.push(0);
            identity.extend_from_slice(certificate);
        }
        let hash = names::hex_prefix(&identity, 16);
        Self {
            file: dir.join(format!("kinds-{hash}.json")),
        }
    }

    /// Returns the cached kinds, if they are recent enough.
    pub(crate) fn load(&self, now: Timestamp) -> Option<KindTable> {
        let stored: StoredKinds = entrance::from_slice(&fs::read(&self.file).ok()?).ok()?;
        let age = now.duration_since(stored.at);
        let fresh = !age.is_negative() && age < LIFETIME;
        (stored.format == FORMAT && fresh && !stored.kinds.is_empty()).then_some(stored.kinds)
    }

    /// Writes the kinds. Errors are ignored.
    pub(crate) fn store(&self, kinds: &KindTable, now: Timestamp) {
        let storing = KindsToStore {
            format: FORMAT,
            at: now,
            kinds,
        };
        let Ok(bytes) = serde_json::to_vec(&storing) else {
            return;
        };
        if let Some(dir) = self.file.parent() {
            let _ = fs::create_dir_all(dir);
        }
        let beside = self
            .file
            .with_extension(format!("{}.tmp", random::hex_id()));
        if fs::write(&beside, bytes).is_err() || fs::rename(&beside, &self.file).is_err() {
            let _ = fs::remove_file(&beside);
        }
    }

    /// Deletes the cache file.
    pub(crate) fn remove(&self) {
        let _ = fs::remove_file(&self.file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use common::manifest::key::Gvk;
    use common::manifest::kinds::KindInfo;

    fn table() -> KindTable {
        let mut table = KindTable::default();
        let info = KindInfo {
            plural: "pods".into(),
            singular: "pod".into(),
            namespaced: true,
            writable: true,
            has_status: true,
        };
        table.insert(&Gvk::new("v1", "Pod"), info);
        table
    }

    #[test]
    fn what_is_old_broken_or_of_another_cluster_is_not_there() {
        let dir = std::env::temp_dir().join(format!("kinds-{}", random::hex_id()));
        let cache = KindCache::new(&dir, "https://c:1", &[vec![1]]);
        let now = Timestamp::now();
        assert_eq!(cache.load(now), None);
        cache.store(&table(), now);
        assert_eq!(cache.load(now), Some(table()));
        assert_eq!(cache.load(now + LIFETIME), None);
        assert_eq!(
            KindCache::new(&dir, "https://c:1", &[vec![2]]).load(now),
            None
        );
        assert_eq!(
            fs::read_dir(&dir).unwrap().count(),
            1,
            "nothing lies beside"
        );
        fs::write(&cache.file, "{\"format\":2,").unwrap();
        assert_eq!(cache.load(now), None);
        fs::remove_dir_all(dir).unwrap();
    }
}
