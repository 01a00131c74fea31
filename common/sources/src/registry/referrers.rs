//! What refers to a manifest: signatures and whatever else is attached to it, by the referrers API or, in registries without it, by the
//! tag `sha256-HEX` (OCI distribution 1.1).

use common::entrance;
use common::oci::manifest::INDEX;
use common::oci::referrers::tag;
use serde::Deserialize;

use super::manifest::{Manifest, ManifestError};
use super::{MAX_PAGES, Registry, RegistryError, TOO_MANY_PAGES, answers};

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
        if self.has_referrers {
            match self.of_api(digest).await {
                Err(error) if lacks_api(&error) => self.has_referrers = false,
                found => return found,
            }
        }
        let tag = tag(digest);
        match self.original_of(&tag).await? {
            Some((_, bytes)) => list(&bytes, self.location(&tag)),
            None => Ok(Vec::new()),
        }
    }

    /// Whether the registry lists referrers by itself; where it does not, the list under the tag counts.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub async fn lists_referrers(&mut self, digest: &str) -> Result<bool, RegistryError> {
        if self.has_referrers {
            // Its first page says so.
            match self.page(digest, "").await {
                Err(error) if lacks_api(&error) => self.has_referrers = false,
                found => return found.map(|_| true),
            }
        }
        Ok(false)
    }

    /// The bytes of a manifest and their digest; `None` where there is none of that name.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub async fn original_of(
        &mut self,
        name: &str,
    ) -> Result<Option<(String, Vec<u8>)>, RegistryError> {
        match self.original(name).await {
            Ok(found) => Ok(Some(found)),
            Err(RegistryError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
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

    /// A list that is not read to its end is an error: a signature may be on any of its pages.
    async fn of_api(&mut self, digest: &str) -> Result<Vec<Referrer>, RegistryError> {
        let mut all = Vec::new();
        let mut query = String::new();
        for _ in 0..MAX_PAGES {
            let (page, next) = self.page(digest, &query).await?;
            all.extend(page);
            match next {
                Some(next) => query = format!("?{next}"),
                None => return Ok(all),
            }
        }
        Err(RegistryError::List {
            location: self.location(digest),
            entries: "referrers",
            why: TOO_MANY_PAGES,
        })
    }

    /// A page of the list, and the query of the next one.
    async fn page(
        &mut self,
        digest: &str,
        query: &str,
    ) -> Result<(Vec<Referrer>, Option<String>), RegistryError> {
        let location = self.location(digest);
        let path = format!("referrers/{digest}{query}");
        let (headers, bytes) = self.read(&path, INDEX, &location).await?;
        Ok((list(&bytes, location)?, answers::next_page(&headers)))
    }
}

/// Registries answer with various statuses for a path that they do not know.
fn lacks_api(error: &RegistryError) -> bool {
    match error {
        RegistryError::NotFound { .. } => true,
        // One that is too busy may have it: without the list, signatures would be left out without a word.
        RegistryError::Status { status, .. } if status.starts_with("408") => false,
        RegistryError::Status { status, .. } if status.starts_with("429") => false,
        RegistryError::Status { status, .. } => {
            status.starts_with('4') || status.starts_with("501")
        }
        _ => false,
    }
}

fn list(bytes: &[u8], location: String) -> Result<Vec<Referrer>, RegistryError> {
    let read: Result<Referrers, _> = entrance::from_slice(bytes);
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
