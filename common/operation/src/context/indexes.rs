//! Indexes, each fetched once, and what they may open on this machine.

use std::sync::Arc;

use addons_sources::location::LocationContent;
use addons_sources::{Reach, SourceAccess, location, url};
use common::api::names::INDEX_BUILTIN;
use common::catalogue::Catalogue;
use common::catalogue::author::{Author, Typed};

use super::Context;
use crate::builtin;
use crate::error::OperationError;
use crate::event::Finding;

/// The location of a kops index or a catalogue file, and who named it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexLocation {
    /// A path or a URL.
    pub location: String,
    /// Who named it, which decides what it may open on this machine.
    pub(crate) author: Author,
}

impl IndexLocation {
    /// Returns the index that is built into the program.
    #[must_use]
    pub fn builtin() -> Self {
        Self {
            location: INDEX_BUILTIN.to_owned(),
            author: Author::Record,
        }
    }
}

impl From<Typed> for IndexLocation {
    fn from(typed: Typed) -> Self {
        Self {
            location: typed.to_string(),
            author: Author::Typed(typed),
        }
    }
}

impl Context {
    /// Returns a location as it is recorded: a path becomes a URL.
    pub(crate) fn absolute_location(given: &str) -> Result<String, OperationError> {
        Ok(url::absolute(given)?)
    }

    /// Returns the index that a record, a plan or a set names for an installation in this namespace. It counts as typed only if the command
    /// line opens exactly this index (semantics 16.4).
    pub(crate) fn index_for(&self, location: &str, namespace: &str) -> IndexLocation {
        let author = match self.settings.opened.index(location) {
            Some(typed) => Author::Typed(typed.clone()),
            None => self.author_in(namespace),
        };
        IndexLocation {
            location: location.to_owned(),
            author,
        }
    }

    /// Returns the author of the records of a namespace.
    pub(crate) fn author_in(&self, namespace: &str) -> Author {
        if namespace == self.settings.system_namespace {
            Author::Record
        } else {
            Author::Tenant
        }
    }

    /// Returns what a location that the user typed may open.
    #[must_use]
    pub fn reach_of_typed(&self, typed: &Typed) -> Reach {
        Reach::typed(typed, &self.settings.opened)
    }

    /// Returns what the content of a location that the user typed may open.
    #[must_use]
    pub fn reach_beside(&self, typed: &Typed, location: &str) -> Reach {
        let author = Author::Typed(typed.clone());
        Reach::for_index(&author, location, &self.settings.opened)
    }

    /// Returns what a name on the command line, or in the objects of an administrator, may open: the places that the command line opens.
    #[must_use]
    pub fn reach_of_opened(&self) -> Reach {
        Reach::for_author(&Author::Record, &self.settings.opened)
    }

    pub(super) async fn merge_indexes(
        &self,
        indexes: &[IndexLocation],
    ) -> Result<Arc<Catalogue>, OperationError> {
        if let [index] = indexes {
            return self.fetch_index(index).await;
        }
        let mut merged = Catalogue::default();
        for index in indexes {
            let one = self.fetch_index(index).await?;
            merged.entries.extend(one.entries.iter().cloned());
        }
        Ok(Arc::new(merged))
    }

    /// Returns the entries of a kops index or a catalogue file, which is fetched once.
    ///
    /// # Errors
    /// It cannot be fetched or read.
    pub async fn fetch_index(
        &self,
        index: &IndexLocation,
    ) -> Result<Arc<Catalogue>, OperationError> {
        let IndexLocation { location, author } = index;
        // Authors of records in other namespaces must not install the builtin add-ons there.
        if location == INDEX_BUILTIN && *author != Author::Tenant {
            return Ok(builtin::catalogue()?);
        }
        let location = Self::absolute_location(location)?;
        let mut indexes = self.indexes.lock().await;
        let key = (location, author.clone());
        if let Some(catalogue) = indexes.get(&key) {
            return Ok(Arc::clone(catalogue));
        }
        let reach = Reach::for_author(author, &self.settings.opened);
        let access: SourceAccess<'_> = self.access(&reach);
        let found = match location::fetch(&key.0, &access).await? {
            LocationContent::Addon(whole) => vec![*whole],
            LocationContent::File { bytes, location } => match &self.settings.jail {
                Some(jail) => jail.parse_index(bytes, location).await?,
                None => location::parse_any(&bytes, &location)?,
            },
        };
        let (mut catalogue, warnings) = location::entries(found);
        for warning in warnings {
            self.report_finding(Finding::Index(warning));
        }
        for entry in &mut catalogue.entries {
            entry.author = author.clone();
        }
        let catalogue = Arc::new(catalogue);
        indexes.insert(key, Arc::clone(&catalogue));
        Ok(catalogue)
    }
}
