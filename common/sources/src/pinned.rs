//! A file by its digest: what a source holds, where it is that very file.

use common::api::catalogue::Source;
use common::manifest::digest::sha256;

use crate::cache::Note;
use crate::{Access, SourceError, package};

/// The kind of the notes.
const KIND: &str = "pinned";

/// A file that a source holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Where it was read, without credentials.
    pub location: String,
    /// The commit or the digest of the image.
    pub resolved: Option<String>,
}

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The source cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A folder where one file is to be.
    #[error("{location}: spec.from names a folder; name the file of the catalogue with path")]
    Folder {
        /// Where it was read.
        location: String,
    },
    /// Another file than the one with the digest.
    #[error("{location}: the file has sha256:{found}, and spec.from.digest is sha256:{wanted}")]
    Changed {
        /// Where it was read.
        location: String,
        /// Hex sha256 of what is there.
        found: String,
        /// Hex sha256 of what is wanted.
        wanted: String,
    },
}

/// The one file that a source holds now.
///
/// # Errors
/// [`FileError`].
pub async fn current(source: &Source, access: &Access<'_>) -> Result<File, FileError> {
    let fetched = package(source, "", "spec.from", access).await?;
    let location = fetched.location;
    match fetched.package.as_file() {
        Some(file) => Ok(File {
            bytes: file.bytes.clone(),
            location,
            resolved: fetched.resolved,
        }),
        None => Err(FileError::Folder { location }),
    }
}

/// The file of a source with a digest. No server is asked where the cache has it from this very source, for the same reader: what one
/// Secret may read is not shown to others.
///
/// # Errors
/// [`FileError`].
pub async fn with_digest(
    source: &Source,
    wanted: &str,
    access: &Access<'_>,
) -> Result<File, FileError> {
    let key = key(source, wanted, access);
    if let Some((note, bytes)) = access.cache.noted(KIND, &key)
        && note.digest == wanted
    {
        return Ok(File {
            bytes,
            location: note.location.unwrap_or_default(),
            resolved: note.resolved,
        });
    }
    let file = current(source, access).await?;
    let found = sha256(&file.bytes);
    if found != wanted {
        return Err(FileError::Changed {
            location: file.location,
            found,
            wanted: wanted.to_owned(),
        });
    }
    let note = Note {
        digest: access.cache.put(&file.bytes),
        resolved: file.resolved.clone(),
        location: Some(file.location.clone()),
        ..Note::default()
    };
    access.cache.set_note(KIND, &key, &note);
    Ok(file)
}

fn key(source: &Source, wanted: &str, access: &Access<'_>) -> String {
    // What was read from JSON can always be written as JSON.
    let source = serde_json::to_string(source).unwrap_or_default();
    format!("{source}\n{wanted}\n{}", access.reader(None))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Reach;
    use crate::cache::Cache;
    use crate::credentials::Credentials;

    fn inline(text: &str) -> Source {
        serde_json::from_value(json!({"inline": {"manifest": text}})).unwrap()
    }

    #[tokio::test]
    async fn a_file_counts_only_with_its_digest_and_is_kept_for_its_own_source() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(Some(folder.path().join("cache")));
        let access = Access {
            cache: &cache,
            offline: false,
            hash: None,
            reach: &Reach::cluster(),
            credentials: None,
            kustomize: None,
        };
        let wanted = sha256(b"a: b");
        let changed = with_digest(&inline("a: c"), &wanted, &access).await;
        assert!(
            matches!(changed, Err(FileError::Changed { found, .. }) if found == sha256(b"a: c"))
        );
        let read = with_digest(&inline("a: b"), &wanted, &access)
            .await
            .unwrap();
        assert_eq!(read.bytes, b"a: b");
        let noted = |text: &str| cache.noted(KIND, &key(&inline(text), &wanted, &access));
        assert!(noted("a: b").is_some());
        // The content is in the cache, but this source never gave it.
        assert!(noted("a: c").is_none());
        // Nor did it give it to who reads with this Secret.
        let secret =
            json!({"type": "kubernetes.io/basic-auth", "data": {"password": "cGFzc3dvcmQ="}});
        let secret = serde_json::from_value(secret).unwrap();
        let credentials = Credentials::read(&secret).unwrap();
        let private = Access {
            credentials: Some(&credentials),
            ..access
        };
        let of_secret = key(&inline("a: b"), &wanted, &private);
        assert!(cache.noted(KIND, &of_secret).is_none());
    }
}
