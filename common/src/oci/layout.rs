//! Reads and writes `index.json` of an archive: names, and the manifests that they refer to.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::manifest::{Descriptor, INDEX, is_digest};
use crate::entrance;
use crate::image::{Image, ImageError};

/// The content of the file `oci-layout`.
pub const LAYOUT: &str = r#"{"imageLayoutVersion":"1.0.0"}"#;
/// The annotation with the name, which skopeo and oras also read.
const NAME: &str = "org.opencontainers.image.ref.name";

/// A name, and the manifest that it refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedManifest {
    /// The name, written out in full, with a tag or a digest. A referrer has the name of its repository and its own digest.
    pub image: Image,
    /// The manifest.
    pub descriptor: Descriptor,
}

/// Why `index.json` cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LayoutError {
    /// It is not JSON, or has another structure.
    #[error("index.json cannot be read")]
    Malformed(#[source] serde_json::Error),
    /// An entry has no name.
    #[error(
        "index.json: {digest} has no annotation {NAME}: `kubectl addons export` wrote no such archive"
    )]
    NoName {
        /// The digest of the entry.
        digest: String,
    },
    /// The name of an entry is not a valid image reference.
    #[error("index.json")]
    Name(#[from] ImageError),
    /// A name has neither tag nor digest, or its digest differs from that of the entry, or the entry's digest is not valid.
    #[error("index.json: {name} stands for {digest}")]
    Digest {
        /// The name.
        name: String,
        /// The digest of the entry.
        digest: String,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LayoutIndex {
    schema_version: u32,
    media_type: String,
    manifests: Vec<LayoutEntry>,
}

#[derive(Serialize, Deserialize)]
struct LayoutEntry {
    #[serde(flatten)]
    descriptor: Descriptor,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

/// Returns the bytes of `index.json`.
#[must_use]
pub fn write(named: &[NamedManifest]) -> Vec<u8> {
    let entries = named.iter().map(|one| LayoutEntry {
        descriptor: one.descriptor.clone(),
        annotations: BTreeMap::from([(NAME.to_owned(), one.image.to_string())]),
    });
    let index = LayoutIndex {
        schema_version: 2,
        media_type: INDEX.to_owned(),
        manifests: entries.collect(),
    };
    // Texts and numbers can always be written as JSON.
    serde_json::to_vec(&index).unwrap_or_default()
}

/// Reads the entries of `index.json` in their order: an image before its referrers.
///
/// # Errors
/// [`LayoutError`].
pub fn read(bytes: &[u8]) -> Result<Vec<NamedManifest>, LayoutError> {
    let index: LayoutIndex = entrance::from_slice(bytes).map_err(LayoutError::Malformed)?;
    let entries = index.manifests.into_iter();
    entries.map(read_entry).collect()
}

fn read_entry(entry: LayoutEntry) -> Result<NamedManifest, LayoutError> {
    let LayoutEntry {
        descriptor,
        annotations,
    } = entry;
    let digest = descriptor.digest.clone();
    let Some(name) = annotations.get(NAME) else {
        return Err(LayoutError::NoName { digest });
    };
    let image = Image::parse(name)?;
    let is_named = match &image.digest {
        Some(named) => *named == digest,
        None => image.tag.is_some(),
    };
    if !is_named || !is_digest(&digest) {
        let name = name.clone();
        return Err(LayoutError::Digest { name, digest });
    }
    Ok(NamedManifest { image, descriptor })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn digest(digit: &str) -> String {
        format!("sha256:{}", digit.repeat(64))
    }

    fn entry(name: &str, digest: &str) -> NamedManifest {
        NamedManifest {
            image: Image::parse(name).unwrap(),
            descriptor: Descriptor {
                media_type: INDEX.to_owned(),
                digest: digest.to_owned(),
                size: 7,
            },
        }
    }

    #[test]
    fn what_was_written_is_read() {
        let signature = format!("quay.io/a/b@{}", digest("b"));
        let named = [
            entry("quay.io/a/b:1", &digest("a")),
            entry(&signature, &digest("b")),
        ];
        assert_eq!(read(&write(&named)).unwrap(), named);
    }

    #[test]
    fn entries_that_cannot_be_pushed_are_refused() {
        let of = |name: &str, digest: &str| {
            json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [{
                "mediaType": INDEX, "digest": digest, "size": 1, "annotations": {NAME: name},
            }]})
        };
        let nameless = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [
            {"mediaType": INDEX, "digest": digest("a"), "size": 1},
        ]});
        for (index, words) in [
            (json!([]), "cannot be read"),
            (nameless, "has no annotation"),
            (of("../x", &digest("a")), "index.json"),
            (of("quay.io/a/b", &digest("a")), "stands for"),
            (of("quay.io/a/b:1", "sha256:../../etc"), "stands for"),
            (
                of(&format!("quay.io/a/b@{}", digest("a")), &digest("b")),
                "stands for",
            ),
        ] {
            let error = read(index.to_string().as_bytes()).unwrap_err().to_string();
            assert!(error.contains(words), "{index}: {error}");
        }
    }
}
