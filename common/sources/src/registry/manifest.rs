//! Manifests: the layers of an image, and the choice of an image from an index.

use std::collections::BTreeMap;

use common::entrance;
use common::oci::manifest::{DOCKER_IMAGE, DOCKER_LIST, IMAGE, INDEX};
use serde::Deserialize;
use serde_json::Value;

use crate::names::listed;

/// Platforms in an error.
const MAX_PLATFORMS: usize = 10;

/// The manifests that are read, for `Accept`.
pub const MEDIA_TYPES: [&str; 4] = [IMAGE, DOCKER_IMAGE, INDEX, DOCKER_LIST];

/// Some content of the registry, as a manifest names it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// What it is.
    pub media_type: String,
    /// `sha256:…`, or a digest of another kind.
    pub digest: String,
    /// Bytes, as the manifest says; a hostile one may say less than nothing.
    pub size: i64,
    /// What its maker notes of it.
    pub annotations: Option<BTreeMap<String, String>>,
}

/// The manifest of one image, or of an artifact.
#[derive(Clone, Debug, Deserialize)]
pub struct ImageManifest {
    /// Its configuration; its type says what the image is.
    pub config: Descriptor,
    /// From the lowest.
    pub layers: Vec<Descriptor>,
}

/// The manifest that lists an image for several platforms.
#[derive(Clone, Debug, Deserialize)]
pub struct Index {
    /// In the order of the index.
    pub manifests: Vec<IndexEntry>,
}

/// An image of an index.
#[derive(Clone, Debug, Deserialize)]
pub struct IndexEntry {
    /// `sha256:…` of its manifest.
    pub digest: String,
    platform: Option<Platform>,
}

#[derive(Clone, Debug, Deserialize)]
struct Platform {
    /// In Go's spelling, as the next.
    os: String,
    architecture: String,
}

/// The kinds of manifests.
#[derive(Debug)]
pub enum Manifest {
    /// One image, or an artifact.
    Image(Box<ImageManifest>),
    /// The same for several platforms.
    Index(Index),
}

/// Why a manifest cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// Not JSON of this shape.
    #[error("the manifest cannot be read: {why}")]
    Malformed {
        /// What is wrong.
        why: String,
    },
    /// Another kind.
    #[error(
        "a manifest of type {found} is not supported; push the image in OCI or Docker v2 format"
    )]
    Type {
        /// Its media type.
        found: String,
    },
    /// An image and an index in one (CVE-2021-41190).
    #[error(
        "the manifest is both an image and an index, which programs read differently; build the image again"
    )]
    Ambiguous,
    /// An index of indexes.
    #[error("the index leads to another index; name the image by its digest")]
    Nested,
    /// No platform that can be used.
    #[error("the index has no image for linux, only for {platforms}; name the image by its digest")]
    Platform {
        /// Those that are there.
        platforms: String,
    },
}

/// Reads a manifest.
///
/// # Errors
/// [`ManifestError`].
pub fn read(bytes: &[u8]) -> Result<Manifest, ManifestError> {
    let malformed = |error: serde_json::Error| ManifestError::Malformed {
        why: error.to_string(),
    };
    let value: Value = entrance::from_slice(bytes).map_err(malformed)?;
    let media_type = value.get("mediaType").and_then(Value::as_str);
    if value.get("schemaVersion").and_then(Value::as_u64) != Some(2) {
        let found = media_type.unwrap_or("without schemaVersion 2").to_owned();
        return Err(ManifestError::Type { found });
    }
    if let Some(found) = media_type.filter(|found| !MEDIA_TYPES.contains(found)) {
        let found = found.to_owned();
        return Err(ManifestError::Type { found });
    }
    let by_fields = (
        value.get("layers").is_some(),
        value.get("manifests").is_some(),
    );
    let is_index = match by_fields {
        (true, true) => return Err(ManifestError::Ambiguous),
        (_, is_index) => is_index,
    };
    Ok(if is_index {
        Manifest::Index(serde_json::from_value(value).map_err(malformed)?)
    } else {
        Manifest::Image(serde_json::from_value(value).map_err(malformed)?)
    })
}

/// The digest of the image that a manifest with this digest stands for: its own, or of an index that of the image which [`choose`] takes.
///
/// # Errors
/// [`ManifestError`].
pub fn image_of(digest: &str, bytes: &[u8]) -> Result<String, ManifestError> {
    Ok(match read(bytes)? {
        Manifest::Image(_) => digest.to_owned(),
        Manifest::Index(index) => choose(&index, architecture())?.digest.clone(),
    })
}

/// Chooses the image of an index: for linux/amd64, else for `architecture` (in Go's spelling), else the first for linux, else
/// the only one. Every machine should read the same bytes, so the platform that nearly every index has comes before the
/// machine's own.
///
/// # Errors
/// [`ManifestError::Platform`].
pub fn choose<'a>(index: &'a Index, architecture: &str) -> Result<&'a IndexEntry, ManifestError> {
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
            ManifestError::Platform {
                platforms: listed(platforms, MAX_PLATFORMS, "nothing"),
            }
        })
}

/// The architecture of this machine, in Go's spelling.
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

    fn index(platforms: &[&str]) -> Index {
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
            Manifest::Index(index) => index,
            Manifest::Image(_) => panic!("an image"),
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
            let expected = expected.map_err(|platforms| ManifestError::Platform {
                platforms: platforms.to_owned(),
            });
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn what_is_no_manifest() {
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
