//! Lists the referrers of a manifest, such as signatures, with the referrers API or, in registries without
//! it, from the tag `sha256-HEX` (OCI distribution 1.1).

use common::entrance;
use common::oci::manifest::INDEX;
use common::oci::referrers::referrers_tag;
use serde::Deserialize;

use super::manifest::{RegistryManifest, RegistryManifestError};
use super::{MAX_PAGES, RegistryAccessError, RegistryClient, TOO_MANY_PAGES, answers, if_found};

/// A manifest that refers to another manifest.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Referrer {
    /// `sha256:…` of the manifest.
    pub digest: String,
    /// The type of the artifact, which some registries leave out.
    #[serde(default)]
    pub artifact_type: Option<String>,
}

#[derive(Deserialize)]
struct ReferrersPage {
    // Null if there are no referrers.
    manifests: Option<Vec<Referrer>>,
}

impl RegistryClient<'_> {
    /// Lists the referrers of a manifest. Takes one request per page, and one more if the registry does not
    /// have the API.
    ///
    /// # Errors
    /// [`RegistryAccessError`].
    pub async fn referrers(&mut self, digest: &str) -> Result<Vec<Referrer>, RegistryAccessError> {
        if self.has_referrers {
            match self.referrers_from_api(digest).await {
                Err(error) if lacks_api(&error) => self.has_referrers = false,
                found => return found,
            }
        }
        let tag = referrers_tag(digest);
        match self.find_manifest_bytes(&tag).await? {
            Some((_, bytes)) => parse_list(&bytes, self.location(&tag)),
            None => Ok(Vec::new()),
        }
    }

    /// Whether the registry has the referrers API. If not, the list under the tag is used.
    ///
    /// # Errors
    /// [`RegistryAccessError`].
    pub async fn lists_referrers(&mut self, digest: &str) -> Result<bool, RegistryAccessError> {
        if self.has_referrers {
            // Request the first page to find out.
            match self.fetch_page(digest, "").await {
                Err(error) if lacks_api(&error) => self.has_referrers = false,
                found => return found.map(|_| true),
            }
        }
        Ok(false)
    }

    /// Requests the bytes of a manifest and their digest. Returns `None` if it does not exist.
    ///
    /// # Errors
    /// [`RegistryAccessError`].
    pub async fn find_manifest_bytes(
        &mut self,
        name: &str,
    ) -> Result<Option<(String, Vec<u8>)>, RegistryAccessError> {
        if_found(self.manifest_bytes(name).await)
    }

    /// Whether an index lists the manifest with this digest.
    ///
    /// # Errors
    /// [`RegistryAccessError`].
    pub async fn index_names(
        &mut self,
        index: &str,
        digest: &str,
    ) -> Result<bool, RegistryAccessError> {
        match self.manifest(index).await?.1 {
            RegistryManifest::Index(index) => {
                let mut named = index.manifests.iter();
                Ok(named.any(|entry| entry.digest == digest))
            }
            RegistryManifest::Image(_) => Ok(false),
        }
    }

    /// Reads the list of the API. A list that cannot be read to its end is an error, because a signature can
    /// be on any page.
    async fn referrers_from_api(
        &mut self,
        digest: &str,
    ) -> Result<Vec<Referrer>, RegistryAccessError> {
        let mut all = Vec::new();
        let mut query = String::new();
        for _ in 0..MAX_PAGES {
            let (page, next) = self.fetch_page(digest, &query).await?;
            all.extend(page);
            match next {
                Some(next) => query = format!("?{next}"),
                None => return Ok(all),
            }
        }
        Err(RegistryAccessError::List {
            location: self.location(digest),
            entries: "referrers",
            why: TOO_MANY_PAGES,
        })
    }

    /// Requests a page of the list, and returns it with the query of the next page.
    async fn fetch_page(
        &mut self,
        digest: &str,
        query: &str,
    ) -> Result<(Vec<Referrer>, Option<String>), RegistryAccessError> {
        let location = self.location(digest);
        let path = format!("referrers/{digest}{query}");
        let (headers, bytes) = self.read(&path, INDEX, &location).await?;
        Ok((parse_list(&bytes, location)?, answers::next_page(&headers)))
    }
}

/// Whether an error means that the registry does not have the API. Registries respond with various statuses
/// to unknown paths.
fn lacks_api(error: &RegistryAccessError) -> bool {
    match error {
        RegistryAccessError::NotFound { .. } => true,
        // An overloaded registry may have the API. Without it, signatures would be silently left out.
        RegistryAccessError::Status { status, .. } if status.starts_with("408") => false,
        RegistryAccessError::Status { status, .. } if status.starts_with("429") => false,
        RegistryAccessError::Status { status, .. } => {
            status.starts_with('4') || status.starts_with("501")
        }
        _ => false,
    }
}

fn parse_list(bytes: &[u8], location: String) -> Result<Vec<Referrer>, RegistryAccessError> {
    let read: Result<ReferrersPage, _> = entrance::from_slice(bytes);
    let list = read.map_err(|error| RegistryAccessError::Manifest {
        location,
        source: RegistryManifestError::Malformed {
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
        let read = |text: &str| parse_list(text.as_bytes(), "r.example/web".to_owned());
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
