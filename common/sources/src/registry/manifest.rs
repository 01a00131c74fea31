//! Parses manifests, and chooses an image from an index.

use std::collections::BTreeMap;

use common::entrance;
use common::oci::manifest::{DOCKER_IMAGE, DOCKER_LIST, IMAGE, INDEX};
use serde::Deserialize;
use serde_json::Value;

use crate::names::list_names;

/// The maximum number of platforms that an error lists.
const MAX_PLATFORMS: usize = 10;

/// The media types of supported manifests, for `Accept`.
pub const MEDIA_TYPES: [&str; 4] = [IMAGE, DOCKER_IMAGE, INDEX, DOCKER_LIST];

/// The reference of a manifest to other content of the registry.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BlobDescriptor {
    /// The media type.
    pub media_type: String,
    /// `sha256:…`, or a digest of another algorithm.
    pub digest: String,
    /// The size in bytes according to the manifest. A malicious manifest can have a negative size.
    pub size: i64,
    /// The annotations.
    pub annotations: Option<BTreeMap<String, String>>,
}

/// The manifest of an image or an artifact.
#[derive(Clone, Debug, Deserialize)]
pub struct ImageManifest {
    /// The configuration. Its media type tells images and kinds of artifacts apart.
    pub config: BlobDescriptor,
    /// The layers, starting with the lowest.
    pub layers: Vec<BlobDescriptor>,
}

/// A manifest that lists the images for several platforms.
#[derive(Clone, Debug, Deserialize)]
pub struct ImageIndex {
    /// The images in the order of the index.
    pub manifests: Vec<IndexEntry>,
}

/// An image in an index.
#[derive(Clone, Debug, Deserialize)]
pub struct IndexEntry {
    /// `sha256:…` of the manifest.
    pub digest: String,
    platform: Option<Platform>,
}

#[derive(Clone, Debug, Deserialize)]
struct Platform {
    /// As in Go, like the architecture.
    os: String,
    architecture: String,
}

/// A manifest of either kind.
#[derive(Debug)]
pub enum RegistryManifest {
    /// An image or an artifact.
    Image(Box<ImageManifest>),
    /// An index of images for several platforms.
    Index(ImageIndex),
}

/// Why a manifest cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistryManifestError {
    /// The manifest is not JSON of the expected shape.
    #[error("the manifest cannot be read: {why}")]
    Malformed {
        /// What is wrong.
        why: String,
    },
    /// The type of the manifest is not supported.
    #[error(
        "a manifest of type {found} is not supported; push the image in OCI or Docker v2 format"
    )]
    Type {
        /// The media type.
        found: String,
    },
    /// The manifest is an image and an index at the same time (CVE-2021-41190).
    #[error(
        "the manifest is both an image and an index, which programs read differently; build the image again"
    )]
    Ambiguous,
    /// The index lists another index.
    #[error("the index leads to another index; name the image by its digest")]
    Nested,
    /// The index has no image for a supported platform.
    #[error("the index has no image for linux, only for {platforms}; name the image by its digest")]
    Platform {
        /// The platforms in the index.
        platforms: String,
    },
}

/// Parses a manifest.
///
/// # Errors
/// [`RegistryManifestError`].
pub fn read(bytes: &[u8]) -> Result<RegistryManifest, RegistryManifestError> {
    let malformed = |error: serde_json::Error| RegistryManifestError::Malformed {
        why: error.to_string(),
    };
    let value: Value = entrance::from_slice(bytes).map_err(malformed)?;
    let media_type = value.get("mediaType").and_then(Value::as_str);
    if value.get("schemaVersion").and_then(Value::as_u64) != Some(2) {
        let found = media_type.unwrap_or("without schemaVersion 2").to_owned();
        return Err(RegistryManifestError::Type { found });
    }
    if let Some(found) = media_type.filter(|found| !MEDIA_TYPES.contains(found)) {
        let found = found.to_owned();
        return Err(RegistryManifestError::Type { found });
    }
    let by_fields = (
        value.get("layers").is_some(),
        value.get("manifests").is_some(),
    );
    let is_index = match by_fields {
        (true, true) => return Err(RegistryManifestError::Ambiguous),
        (_, is_index) => is_index,
    };
    Ok(if is_index {
        RegistryManifest::Index(serde_json::from_value(value).map_err(malformed)?)
    } else {
        RegistryManifest::Image(serde_json::from_value(value).map_err(malformed)?)
    })
}

/// Returns the digest of the image of a manifest: `digest` itself, or for an index the digest of the image
/// that [`choose`] returns.
///
/// # Errors
/// [`RegistryManifestError`].
pub fn image_digest(digest: &str, bytes: &[u8]) -> Result<String, RegistryManifestError> {
    Ok(match read(bytes)? {
        RegistryManifest::Image(_) => digest.to_owned(),
        RegistryManifest::Index(index) => choose(&index, architecture())?.digest.clone(),
    })
}

/// Chooses an image from an index: that for linux/amd64, then for `architecture` (named as in Go), then the
/// first for linux, then the only one. The platform that nearly every index has is preferred to that of this
/// machine, so that all machines read the same bytes.
///
/// # Errors
/// [`RegistryManifestError::Platform`].
pub fn choose<'a>(
    index: &'a ImageIndex,
    architecture: &str,
) -> Result<&'a IndexEntry, RegistryManifestError> {
    let linux = |wanted: Option<&str>| {
        index.manifests.iter().find(|entry| {
            entry.platform.as_ref().is_some_and(|platform| {
                platform.os == "linux"
                    && wanted.is_none_or(|wanted| wanted == platform.architecture)
            })
        })
    };
    let only = || match index.manifests.as_slice() {
        [only] if only.platform.is_none() => Some(only),
        _ => None,
    };
    linux(Some("amd64"))
        .or_else(|| linux(Some(architecture)))
        .or_else(|| linux(None))
        .or_else(only)
        .ok_or_else(|| {
            let platforms = index.manifests.iter().map(|entry| {
                let platform = entry.platform.as_ref();
                let platform = platform.map(|one| format!("{}/{}", one.os, one.architecture));
                platform.unwrap_or_else(|| "/".to_owned())
            });
            RegistryManifestError::Platform {
                platforms: list_names(platforms, MAX_PLATFORMS, "nothing"),
            }
        })
}

/// The architecture of this machine, named as in Go.
pub fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        "powerpc64" => "ppc64le",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn index(platforms: &[&str]) -> ImageIndex {
        let manifests: Vec<Value> = platforms
            .iter()
            .map(|platform| {
                let mut entry = json!({"mediaType": IMAGE, "digest": platform, "size": 1});
                if let Some((os, architecture)) = platform.split_once('/') {
                    entry["platform"] = json!({"os": os, "architecture": architecture});
                }
                entry
            })
            .collect();
        let text = json!({"schemaVersion": 2, "manifests": manifests}).to_string();
        match read(text.as_bytes()).unwrap() {
            RegistryManifest::Index(index) => index,
            RegistryManifest::Image(_) => panic!("an image"),
        }
    }

    #[test]
    fn one_platform_is_chosen() {
        for (platforms, expected) in [
            (&["linux/arm64", "linux/amd64"][..], Ok("linux/amd64")),
            (&["linux/s390x", "linux/arm64"], Ok("linux/arm64")),
            (
                &["windows/amd64", "unknown/unknown", "linux/s390x"],
                Ok("linux/s390x"),
            ),
            (&["nothing"], Ok("nothing")),
            (&["nothing", "nothing"], Err("/, /")),
            (&["windows/amd64"], Err("windows/amd64")),
            (&[], Err("nothing")),
        ] {
            let index = index(platforms);
            let found = choose(&index, "arm64").map(|entry| entry.digest.as_str());
            let expected = expected.map_err(|platforms| RegistryManifestError::Platform {
                platforms: platforms.to_owned(),
            });
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn invalid_manifests_are_refused() {
        let config = json!({"mediaType": "c", "digest": "d", "size": 1});
        for (value, expected) in [
            (json!({"schemaVersion": 1}), "schemaVersion 2"),
            (json!({"schemaVersion": 2, "mediaType": "text/x"}), "text/x"),
            (json!({"schemaVersion": 2}), "config"),
            (
                json!({"schemaVersion": 2, "config": config, "layers": [], "manifests": []}),
                "both an image and an index",
            ),
            (json!([]), "schemaVersion 2"),
        ] {
            let error = read(value.to_string().as_bytes()).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert!(read(b"{").is_err());
    }
}
