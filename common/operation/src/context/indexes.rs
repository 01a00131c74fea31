//! Indexes, each fetched once.

use std::sync::Arc;

use addons_sources::{Access, Reach, location, url};
use common::api::names::INDEX_BUILTIN;
use common::catalogue::Catalogue;

use super::Context;
use crate::builtin;
use crate::error::OperationError;
use crate::event::Finding;

impl Context {
    /// A location as it is recorded: a path is a URL.
    pub(crate) fn location(given: &str) -> Result<String, OperationError> {
        Ok(url::absolute(given)?)
    }

    pub(super) async fn indexes(
        &self,
        locations: &[String],
    ) -> Result<Arc<Catalogue>, OperationError> {
        if let [location] = locations {
            return self.index(location, Reach::Own).await;
        }
        let mut merged = Catalogue::default();
        for location in locations {
            let one = self.index(location, Reach::Own).await?;
            merged.entries.extend(one.entries.iter().cloned());
        }
        Ok(Arc::new(merged))
    }

    /// The entries of a kops index or of a catalogue file, fetched once. `reach`: by who named it.
    ///
    /// # Errors
    /// It cannot be fetched or read.
    pub async fn index(
        &self,
        location: &str,
        reach: Reach,
    ) -> Result<Arc<Catalogue>, OperationError> {
        // Who may write records in other namespaces is not to install it there.
        if location == INDEX_BUILTIN && reach == Reach::Own {
            return Ok(builtin::catalogue()?);
        }
        let location = Self::location(location)?;
        let mut indexes = self.indexes.lock().await;
        let known = indexes.get(&(location.clone(), reach));
        if let Some(catalogue) = known {
            return Ok(Arc::clone(catalogue));
        }
        let access = Access {
            reach,
            ..self.access()
        };
        let (catalogue, warnings) = location::entries(&location, &access).await?;
        for warning in warnings {
            self.find(Finding::Index(warning));
        }
        let catalogue = Arc::new(catalogue);
        indexes.insert((location, reach), Arc::clone(&catalogue));
        Ok(catalogue)
    }
}
