//! Reads the dependencies of a manifest: the manifests of an index, or the configuration and layers of an image or artifact.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::entrance;

/// The media type of an OCI index.
pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// The media type of an OCI image or artifact.
pub const IMAGE: &str = "application/vnd.oci.image.manifest.v1+json";
/// The media type of Docker's index.
pub const DOCKER_LIST: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
/// The media type of Docker's image.
pub const DOCKER_IMAGE: &str = "application/vnd.docker.distribution.manifest.v2+json";
/// The maximum number of manifests of an image: its platforms, their signatures and attestations. Each counts as often as it is
/// listed.
pub const MAX_MANIFESTS: usize = 10_000;

/// A reference to content by its digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// The media type.
    pub media_type: String,
    /// `sha256:…`
    pub digest: String,
    /// The size in bytes.
    pub size: u64,
}

/// The parts of a manifest that copying needs. The manifest itself is copied as bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OciManifest {
    /// The media type.
    pub media_type: String,
    /// The manifests that an index lists.
    pub manifests: Vec<Descriptor>,
    /// The configuration and the layers that are in the registry.
    pub blobs: Vec<Descriptor>,
    /// The digest of the manifest that this one refers to. Then this one is a signature, an attestation or the like.
    pub subject: Option<String>,
    /// The artifact type in the list of referrers.
    pub artifact_type: Option<String>,
    /// The annotations.
    pub annotations: Option<Value>,
}

/// Why a manifest cannot be copied.
#[derive(Debug, thiserror::Error)]
pub enum OciManifestError {
    /// It is not JSON, or has another structure.
    #[error("the manifest cannot be read")]
    Malformed(#[source] serde_json::Error),
    /// Its media type is not supported.
    #[error("a manifest of type {0} is not supported; push the image in OCI or Docker v2 format")]
    Type(String),
    /// It is both an image and an index (CVE-2021-41190).
    #[error("the manifest is both an image and an index, which programs read differently")]
    Ambiguous,
    /// A digest is not a sha256.
    #[error("{0} is not a valid sha256 digest, the only kind supported")]
    Digest(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ManifestFields {
    media_type: Option<String>,
    artifact_type: Option<String>,
    config: Option<Descriptor>,
    layers: Option<Vec<Descriptor>>,
    manifests: Option<Vec<Descriptor>>,
    subject: Option<Descriptor>,
    annotations: Option<Value>,
}

impl OciManifest {
    /// Reads a manifest.
    ///
    /// # Errors
    /// [`OciManifestError`].
    pub fn read(bytes: &[u8]) -> Result<Self, OciManifestError> {
        let written: ManifestFields =
            entrance::from_slice(bytes).map_err(OciManifestError::Malformed)?;
        let is_index = match (&written.manifests, &written.layers) {
            (Some(_), Some(_)) => return Err(OciManifestError::Ambiguous),
            (manifests, _) => manifests.is_some(),
        };
        let allowed = if is_index {
            [INDEX, DOCKER_LIST]
        } else {
            [IMAGE, DOCKER_IMAGE]
        };
        // OCI allows the media type to be missing. Then the manifest is in OCI format.
        let default = if is_index { INDEX } else { IMAGE };
        let media_type = written.media_type.unwrap_or_else(|| default.to_owned());
        if !allowed.contains(&media_type.as_str()) || (!is_index && written.config.is_none()) {
            return Err(OciManifestError::Type(media_type));
        }
        let config_type = written.config.as_ref().map(|it| it.media_type.clone());
        let layers = written.layers.unwrap_or_default().into_iter();
        let layers = layers.filter(|layer| is_in_registry(&layer.media_type));
        let manifest = Self {
            media_type,
            manifests: written.manifests.unwrap_or_default(),
            blobs: written.config.into_iter().chain(layers).collect(),
            subject: written.subject.map(|subject| subject.digest),
            artifact_type: written.artifact_type.or(config_type),
            annotations: written.annotations,
        };
        let named = manifest.manifests.iter().chain(&manifest.blobs);
        let mut digests = named.map(|it| &it.digest).chain(&manifest.subject);
        match digests.find(|digest| !is_digest(digest)) {
            Some(digest) => Err(OciManifestError::Digest(digest.clone())),
            None => Ok(manifest),
        }
    }
}

/// Whether a digest is `sha256:` and 64 hex digits, so that it can also be the name of a file.
#[must_use]
pub fn is_digest(digest: &str) -> bool {
    let hex = digest.strip_prefix("sha256:").unwrap_or_default();
    hex.len() == 64
        && hex
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether a layer is in the registry. Container runtimes fetch the nondistributable layers of Windows from Microsoft instead.
fn is_in_registry(media_type: &str) -> bool {
    !media_type.contains("nondistributable") && !media_type.contains("foreign")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn descriptor(media_type: &str, digit: &str) -> Value {
        let digest = format!("sha256:{}", digit.repeat(64));
        json!({"mediaType": media_type, "digest": digest, "size": 3, "urls": ["https://h/x"]})
    }

    fn digits(found: &[Descriptor]) -> Vec<&str> {
        found.iter().map(|it| &it.digest[7..8]).collect()
    }

    #[test]
    fn what_a_manifest_needs() {
        let image = json!({
            "schemaVersion": 2,
            "config": descriptor("application/vnd.example", "a"),
            "layers": [
                descriptor("application/vnd.oci.image.layer.v1.tar", "b"),
                descriptor("application/vnd.docker.image.rootfs.foreign.diff.tar.gzip", "c"),
            ],
            "subject": descriptor(INDEX, "d"),
        });
        let read = OciManifest::read(image.to_string().as_bytes()).unwrap();
        assert_eq!(read.media_type, IMAGE);
        assert_eq!(digits(&read.blobs), ["a", "b"]);
        assert_eq!(
            read.subject.as_deref(),
            Some(&*format!("sha256:{}", "d".repeat(64)))
        );
        assert_eq!(
            read.artifact_type.as_deref(),
            Some("application/vnd.example")
        );
        let list = json!({"mediaType": DOCKER_LIST, "manifests": [descriptor(IMAGE, "e")]});
        let read = OciManifest::read(list.to_string().as_bytes()).unwrap();
        assert_eq!(
            (read.media_type.as_str(), digits(&read.manifests)),
            (DOCKER_LIST, vec!["e"])
        );
    }

    #[test]
    fn what_is_not_copied() {
        let config = descriptor("c", "a");
        let short = json!({"mediaType": "c", "digest": "sha256:../x", "size": 1});
        for (manifest, words) in [
            (json!([]), "cannot be read"),
            (json!({"schemaVersion": 1}), "is not supported"),
            (
                json!({"mediaType": "text/x", "config": config}),
                "type text/x",
            ),
            (
                json!({"config": config, "layers": [], "manifests": []}),
                "both",
            ),
            (json!({"config": short}), "sha256:../x is not a valid"),
            (
                json!({"config": config, "subject": short}),
                "sha256:../x is not a valid",
            ),
        ] {
            let error = OciManifest::read(manifest.to_string().as_bytes()).unwrap_err();
            assert!(error.to_string().contains(words), "{manifest}: {error}");
        }
    }
}
