//! What refers to a manifest: signatures and whatever else is attached to it, by the referrers API or, in registries without it, by the
//! tag `sha256-HEX` (OCI distribution 1.1).

use oci_client::manifest::OCI_IMAGE_INDEX_MEDIA_TYPE;
use serde::Deserialize;

use super::manifest::{Manifest, ManifestError};
use super::{Registry, RegistryError, answers};

/// Pages of the list; what comes behind them is not seen.
const MAX_PAGES: usize = 8;

/// A manifest that refers to another one.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Referrer {
    /// `sha256:…` of its manifest.
    pub digest: String,
    /// What it is; some registries leave it out.
    #[serde(default)]
    pub artifact_type: Option<String>,
}

#[derive(Deserialize)]
struct Referrers {
    // Null if there are none.
    manifests: Option<Vec<Referrer>>,
}

impl Registry<'_> {
    /// What refers to the manifest with that digest: one request for each page, and one more where the registry has no such list.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub async fn referrers(&mut self, digest: &str) -> Result<Vec<Referrer>, RegistryError> {
        let error = match self.listed(digest).await {
            Err(error @ (RegistryError::NotFound { .. } | RegistryError::Status { .. })) => error,
            listed => return listed,
        };
        let tag = digest.replace(':', "-");
        let location = self.location(&tag);
        let path = format!("manifests/{tag}");
        let read = self.read(&path, OCI_IMAGE_INDEX_MEDIA_TYPE, &location);
        match (read.await, error) {
            (Ok((_, bytes)), _) => list(&bytes, location),
            // Without the tag there is nothing; but a registry that fails did not say so.
            (Err(RegistryError::NotFound { .. }), RegistryError::NotFound { .. }) => Ok(Vec::new()),
            (Err(RegistryError::NotFound { .. }), error) | (Err(error), _) => Err(error),
        }
    }

    /// Whether an index names the manifest with that digest.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub async fn names(&mut self, index: &str, digest: &str) -> Result<bool, RegistryError> {
        match self.manifest(index).await?.1 {
            Manifest::Index(index) => {
                let mut named = index.manifests.iter();
                Ok(named.any(|entry| entry.digest == digest))
            }
            Manifest::Image(_) => Ok(false),
        }
    }

    async fn listed(&mut self, digest: &str) -> Result<Vec<Referrer>, RegistryError> {
        let location = self.location(digest);
        let mut all = Vec::new();
        let mut path = format!("referrers/{digest}");
        for _ in 0..MAX_PAGES {
            let read = self.read(&path, OCI_IMAGE_INDEX_MEDIA_TYPE, &location);
            let (headers, bytes) = read.await?;
            all.extend(list(&bytes, location.clone())?);
            match answers::next_page(&headers) {
                Some(query) => path = format!("referrers/{digest}?{query}"),
                None => break,
            }
        }
        Ok(all)
    }
}

fn list(bytes: &[u8], location: String) -> Result<Vec<Referrer>, RegistryError> {
    let read: Result<Referrers, _> = serde_json::from_slice(bytes);
    let list = read.map_err(|error| RegistryError::Manifest {
        location,
        source: ManifestError::Malformed {
            why: error.to_string(),
        },
    })?;
    Ok(list.manifests.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_may_be_empty_and_types_may_be_missing() {
        let read = |text: &str| list(text.as_bytes(), "r.example/web".to_owned());
        assert_eq!(read(r#"{"manifests": null}"#).unwrap(), []);
        let found =
            read(r#"{"manifests": [{"digest": "a", "artifactType": "t"}, {"digest": "b"}]}"#);
        let types: Vec<_> = found
            .unwrap()
            .into_iter()
            .map(|one| one.artifact_type)
            .collect();
        assert_eq!(types, [Some("t".to_owned()), None]);
        assert!(read("[]").is_err());
    }
}
