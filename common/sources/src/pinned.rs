//! Reads the file of a source, optionally only if it has a given digest.

use common::api::catalogue::Source;
use common::manifest::digest::sha256;

use crate::cache::CacheNote;
use crate::{SourceAccess, SourceError, package};

/// The kind of the notes in the cache.
const KIND: &str = "pinned";

/// A file from a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedFile {
    /// The content.
    pub bytes: Vec<u8>,
    /// Where the file was read, without credentials.
    pub location: String,
    /// The commit or the image digest that the source resolved to.
    pub resolved: Option<String>,
}

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum PinnedFileError {
    /// The source cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The source is a folder instead of a file.
    #[error("{location}: spec.from names a folder; name the file of the catalogue with path")]
    Folder {
        /// Where it was read.
        location: String,
    },
    /// The file has another digest.
    #[error("{location}: the file has sha256:{found}, and spec.from.digest is sha256:{wanted}")]
    Changed {
        /// Where it was read.
        location: String,
        /// The hex sha256 of the file.
        found: String,
        /// The expected hex sha256.
        wanted: String,
    },
}

/// Fetches the current file of a source.
///
/// # Errors
/// [`PinnedFileError`].
pub async fn fetch(
    source: &Source,
    access: &SourceAccess<'_>,
) -> Result<PinnedFile, PinnedFileError> {
    let fetched = package(source, "", "spec.from", access).await?;
    let location = fetched.location;
    match fetched.package.as_file() {
        Some(file) => Ok(PinnedFile {
            bytes: file.bytes.clone(),
            location,
            resolved: fetched.resolved,
        }),
        None => Err(PinnedFileError::Folder { location }),
    }
}

/// Fetches the file of a source if it has the digest `wanted`. Sends no request if the cache has the file
/// from the same source and reader; content that one Secret may read is not returned to other readers.
///
/// # Errors
/// [`PinnedFileError`].
pub async fn fetch_with_digest(
    source: &Source,
    wanted: &str,
    access: &SourceAccess<'_>,
) -> Result<PinnedFile, PinnedFileError> {
    let key = key(source, wanted, access);
    if let Some((note, bytes)) = access.cache.lookup(KIND, &key)
        && note.digest == wanted
    {
        return Ok(PinnedFile {
            bytes,
            location: note.location.unwrap_or_default(),
            resolved: note.resolved,
        });
    }
    let file = fetch(source, access).await?;
    let found = sha256(&file.bytes);
    if found != wanted {
        return Err(PinnedFileError::Changed {
            location: file.location,
            found,
            wanted: wanted.to_owned(),
        });
    }
    let note = CacheNote {
        digest: access.cache.put(&file.bytes),
        resolved: file.resolved.clone(),
        location: Some(file.location.clone()),
        ..CacheNote::default()
    };
    access.cache.set_note(KIND, &key, &note);
    Ok(file)
}

fn key(source: &Source, wanted: &str, access: &SourceAccess<'_>) -> String {
    // A source was read from JSON, so it can be written as JSON.
    let source = serde_json::to_string(source).unwrap_or_default();
    format!("{source}\n{wanted}\n{}", access.reader(None))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Reach;
    use crate::cache::SourceCache;
    use crate::credentials::Credentials;

    fn inline(text: &str) -> Source {
        serde_json::from_value(json!({"inline": {"manifest": text}})).unwrap()
    }

    #[tokio::test]
    async fn a_file_counts_only_with_its_digest_and_is_kept_for_its_own_source() {
        let folder = tempfile::tempdir().unwrap();
        let cache = SourceCache::new(Some(folder.path().join("cache")));
        let access = SourceAccess {
            cache: &cache,
            offline: false,
            hash: None,
            reach: &Reach::cluster(),
            credentials: None,
            kustomize: None,
        };
        let wanted = sha256(b"a: b");
        let changed = fetch_with_digest(&inline("a: c"), &wanted, &access).await;
        assert!(
            matches!(changed, Err(PinnedFileError::Changed { found, .. }) if found == sha256(b"a: c"))
        );
        let read = fetch_with_digest(&inline("a: b"), &wanted, &access)
            .await
            .unwrap();
        assert_eq!(read.bytes, b"a: b");
        let noted = |text: &str| cache.lookup(KIND, &key(&inline(text), &wanted, &access));
        assert!(noted("a: b").is_some());
        // The content is in the cache, but it does not come from this source.
        assert!(noted("a: c").is_none());
        // The reader with this Secret has not fetched it either.
        let secret =
            json!({"type": "kubernetes.io/basic-auth", "data": {"password": "cGFzc3dvcmQ="}});
        let secret = serde_json::from_value(secret).unwrap();
        let credentials = Credentials::read(&secret).unwrap();
        let private = SourceAccess {
            credentials: Some(&credentials),
            ..access
        };
        let of_secret = key(&inline("a: b"), &wanted, &private);
        assert!(cache.lookup(KIND, &of_secret).is_none());
    }
}
