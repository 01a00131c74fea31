//! Referrers: signatures, attestations and other manifests that refer to a subject.
//!
//! A registry without the referrers API stores a list of them under the tag `sha256-HEX` of the subject (OCI distribution 1.1,
//! "Referrers Tag Schema"). Older releases of cosign use a separate tag for each kind.

use serde_json::{Value, json};

use super::manifest::{Descriptor, INDEX, OciManifest, OciManifestError};
use crate::entrance;

/// The suffixes of cosign's tags.
const COSIGN: [&str; 3] = ["sig", "att", "sbom"];

/// Returns the tag of the list of referrers: `sha256-HEX`.
#[must_use]
pub fn referrers_tag(digest: &str) -> String {
    digest.replace(':', "-")
}

/// Returns cosign's tags for a digest: `sha256-HEX.sig` and so on.
pub fn cosign_tags(digest: &str) -> impl Iterator<Item = String> {
    let tag = referrers_tag(digest);
    COSIGN.into_iter().map(move |kind| format!("{tag}.{kind}"))
}

/// Returns the digests in a list of referrers.
///
/// # Errors
/// [`OciManifestError`] if it is not an index.
pub fn list_digests(bytes: &[u8]) -> Result<Vec<String>, OciManifestError> {
    let index = OciManifest::read(bytes)?;
    let manifests = index.manifests.into_iter();
    Ok(manifests.map(|referrer| referrer.digest).collect())
}

/// Adds a referrer to the list. Returns `None` if the list already contains it.
///
/// # Errors
/// [`OciManifestError`] if the content of the tag is not an index.
pub fn add_referrer(
    list: Option<&[u8]>,
    referrer: &Descriptor,
    manifest: &OciManifest,
) -> Result<Option<Vec<u8>>, OciManifestError> {
    let mut index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": []});
    if let Some(bytes) = list {
        if list_digests(bytes)?.contains(&referrer.digest) {
            return Ok(None);
        }
        index = entrance::from_slice(bytes).map_err(OciManifestError::Malformed)?;
    }
    let mut entry = json!({
        "mediaType": referrer.media_type, "digest": referrer.digest, "size": referrer.size,
    });
    if let Some(fields) = entry.as_object_mut() {
        let kind = manifest.artifact_type.clone().map(Value::from);
        let more = [
            ("artifactType", kind),
            ("annotations", manifest.annotations.clone()),
        ];
        let more = more
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value?)));
        fields.extend(more);
    }
    if let Some(manifests) = index.get_mut("manifests").and_then(Value::as_array_mut) {
        manifests.push(entry);
    }
    Ok(Some(index.to_string().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::super::manifest::IMAGE;
    use super::*;

    #[test]
    fn a_referrer_is_listed_once_beside_the_others() {
        let digest = |digit: &str| format!("sha256:{}", digit.repeat(64));
        let referrer = |digit: &str| Descriptor {
            media_type: IMAGE.to_owned(),
            digest: digest(digit),
            size: 3,
        };
        let config = json!({"mediaType": "a/b", "digest": digest("c"), "size": 1});
        let written = json!({"config": config, "annotations": {"k": "v"}}).to_string();
        let manifest = OciManifest::read(written.as_bytes()).unwrap();
        let one = add_referrer(None, &referrer("a"), &manifest)
            .unwrap()
            .unwrap();
        let two = add_referrer(Some(&one), &referrer("b"), &manifest)
            .unwrap()
            .unwrap();
        assert_eq!(list_digests(&two).unwrap(), [digest("a"), digest("b")]);
        assert_eq!(
            add_referrer(Some(&two), &referrer("a"), &manifest).unwrap(),
            None
        );
        let read: Value = serde_json::from_slice(&two).unwrap();
        assert_eq!(read["manifests"][1]["artifactType"], "a/b");
        assert_eq!(read["manifests"][1]["annotations"]["k"], "v");
        assert!(add_referrer(Some(b"{}"), &referrer("a"), &manifest).is_err());
    }

    #[test]
    fn tags() {
        let tags: Vec<String> = cosign_tags("sha256:ab").collect();
        assert_eq!(tags, ["sha256-ab.sig", "sha256-ab.att", "sha256-ab.sbom"]);
    }
}
