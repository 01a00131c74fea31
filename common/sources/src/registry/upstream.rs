//! What refers to an image: by the referrers API, by its tag where the registry has no such API, and by the tags of cosign.

use common::airgap::manifest::INDEX;
use common::airgap::referrers;

use super::manifest::ManifestError;
use super::{MAX_PAGES, Registry, RegistryError, answers};

impl Registry<'_> {
    /// The digests of what refers to a manifest.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub async fn referrers(&mut self, digest: &str) -> Result<Vec<String>, RegistryError> {
        if self.has_referrers {
            match self.of_api(digest).await {
                Err(error) if lacks_api(&error) => self.has_referrers = false,
                found => return found,
            }
        }
        let tag = referrers::tag(digest);
        match self.original_of(&tag).await? {
            Some((_, list)) => self.listed(&tag, &list),
            None => Ok(Vec::new()),
        }
    }

    /// Whether the registry lists referrers by itself; where it does not, the list under the tag counts.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub async fn lists_referrers(&mut self, digest: &str) -> Result<bool, RegistryError> {
        if self.has_referrers {
            match self.of_api(digest).await {
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

    async fn of_api(&mut self, digest: &str) -> Result<Vec<String>, RegistryError> {
        let location = self.location(digest);
        let mut found = Vec::new();
        let mut path = format!("referrers/{digest}");
        for _ in 0..MAX_PAGES {
            let (headers, bytes) = self.read(&path, INDEX, &location).await?;
            found.extend(self.listed(digest, &bytes)?);
            match answers::next_page(&headers) {
                Some(query) => path = format!("referrers/{digest}?{query}"),
                None => break,
            }
        }
        Ok(found)
    }

    fn listed(&self, name: &str, bytes: &[u8]) -> Result<Vec<String>, RegistryError> {
        referrers::listed(bytes).map_err(|error| RegistryError::Manifest {
            location: self.location(name),
            source: ManifestError::Malformed {
                why: error.to_string(),
            },
        })
    }
}

/// Registries answer with various statuses for a path that they do not know.
fn lacks_api(error: &RegistryError) -> bool {
    match error {
        RegistryError::NotFound { .. } => true,
        RegistryError::Status { status, .. } => {
            status.starts_with('4') || status.starts_with("501")
        }
        _ => false,
    }
}
