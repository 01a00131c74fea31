//! The catalogues of the cluster with their entries: those by reference get the content of their files.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use addons_engine::{EngineError, catalogues};
use common::api::catalogue::{AddonCatalogue, AddonCatalogueSpec};
use common::api::names::COMPATIBLE_ADDONS;
use common::catalogue::precedence::{UnreadCatalogue, list_losers};
use common::catalogue::{Catalogue, CatalogueEntry, compatible, is_copy};
use futures::future::join_all;
use tokio::sync::{Mutex, OnceCell};

use super::{Context, Offer};
use crate::catalogue::{file, find_named};
use crate::error::{CatalogueFileError, OperationError, within};

/// The catalogues that were read.
#[derive(Default)]
pub(super) struct CatalogueCache {
    objects: OnceCell<Vec<AddonCatalogue>>,
    /// Whether they are those that a copy lists, because the caller may not read the catalogues themselves.
    are_compatible_only: AtomicBool,
    /// `None` if no catalogue is by reference or unreadable: the objects then have everything.
    contents: OnceCell<Option<ReadCatalogues>>,
}

/// The content of the files of catalogues by reference, by uid and generation of the object. A loop reads repeatedly: while an object does
/// not change, neither do its digest and its file.
#[derive(Default)]
pub(super) struct CatalogueFileCache(Mutex<BTreeMap<ObjectVersion, Arc<AddonCatalogueSpec>>>);

/// The uid and the generation of an object.
type ObjectVersion = (String, i64);

struct ReadCatalogues {
    objects: Vec<AddonCatalogue>,
    unread: Vec<UnreadCatalogue>,
}

/// The catalogues with their entries.
#[derive(Clone, Copy)]
pub struct CatalogueContents<'a> {
    /// All catalogues. One that cannot be read is as it is stored.
    pub objects: &'a [AddonCatalogue],
    /// The catalogues that cannot be read.
    pub unread: &'a [UnreadCatalogue],
}

impl Context {
    /// Returns the AddonCatalogue objects of the system namespace as they are stored, or none if our definitions are missing. A person who
    /// may not read them gets what the copy in the namespace of the command has of them (semantics 1.7).
    ///
    /// # Errors
    /// The server cannot be reached, or refuses.
    pub async fn catalogues(&self) -> Result<&[AddonCatalogue], OperationError> {
        let list = || async {
            let home = self.home().await?;
            let error = match catalogues::list(home, &self.settings.system_namespace).await {
                Ok(listed) => return Ok(listed),
                Err(EngineError::NotInitialised) => return Ok(Vec::new()),
                Err(error) => error,
            };
            if matches!(error, EngineError::Forbidden { .. })
                && let Some(copied) = self.compatible_catalogues().await
            {
                self.catalogues
                    .are_compatible_only
                    .store(true, Ordering::Relaxed);
                return Ok(copied);
            }
            within(Err(error), || "cannot read the catalogues".to_owned())
        };
        Ok(self.catalogues.objects.get_or_try_init(list).await?)
    }

    /// Whether [`Context::catalogues`] returned what the copy in the namespace of the command lists: versions that fit its cluster, without
    /// their content, and no core add-ons.
    pub(crate) fn reads_compatible_only(&self) -> bool {
        self.catalogues.are_compatible_only.load(Ordering::Relaxed)
    }

    /// Returns the catalogues that the copy in the namespace of the command was derived from, or `None` if there is no copy that the caller
    /// may read, or no person runs the command.
    async fn compatible_catalogues(&self) -> Option<Vec<AddonCatalogue>> {
        let namespace = self.settings.namespace.as_deref();
        let namespace = namespace.filter(|_| self.is_run_by_person())?;
        let home = self.home().await.ok()?;
        let found = catalogues::get(home, namespace, COMPATIBLE_ADDONS).await;
        let copy = found.ok()?.filter(|copy| is_copy(&copy.metadata))?;
        Some(compatible::list_sources(&copy))
    }

    /// As [`Context::catalogues`], but `None` if the caller may not read them: entries of an index need none.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses for another reason.
    pub async fn readable_catalogues(&self) -> Result<Option<&[AddonCatalogue]>, OperationError> {
        match self.catalogues().await {
            Err(error) if error.is_forbidden() => Ok(None),
            other => other.map(Some),
        }
    }

    /// Returns the entries to choose from.
    ///
    /// # Errors
    /// The source cannot be read, or no catalogue has that name.
    pub async fn catalogue(&self, offer: &Offer) -> Result<Arc<Catalogue>, OperationError> {
        let name = match offer {
            Offer::Indexes(locations) => return self.merge_indexes(locations).await,
            Offer::Entry(entry) => {
                return Ok(Arc::new(Catalogue::from_entry(CatalogueEntry::clone(
                    entry,
                ))));
            }
            Offer::Nothing => return Ok(Arc::default()),
            Offer::Catalogues => None,
            Offer::Catalogue(name) => Some(name),
        };
        let contents = self.contents().await?;
        let read = match name {
            None => Catalogue::from_objects(contents.objects),
            Some(name) => {
                find_named(contents.objects, name)?;
                let mut unread = contents.unread.iter();
                if let Some(unread) = unread.find(|unread| unread.catalogue == *name) {
                    return Err(CatalogueFileError::from(unread).into());
                }
                Catalogue::from_named(contents.objects, name)
            }
        };
        Ok(Arc::new(Catalogue {
            unread: contents.unread.to_vec(),
            ..read
        }))
    }

    /// Returns the catalogues with their entries. The files of those by reference are read concurrently, each once. One that cannot be read
    /// does not affect the others.
    ///
    /// # Errors
    /// Those of [`Context::catalogues`].
    pub async fn contents(&self) -> Result<CatalogueContents<'_>, OperationError> {
        let objects = self.catalogues().await?;
        let read = || async { self.read_contents(objects).await };
        let read = self.catalogues.contents.get_or_init(read).await;
        Ok(match read {
            Some(ReadCatalogues { objects, unread }) => CatalogueContents { objects, unread },
            None => CatalogueContents {
                objects,
                unread: &[],
            },
        })
    }

    async fn read_contents(&self, objects: &[AddonCatalogue]) -> Option<ReadCatalogues> {
        let is_whole = |object: &AddonCatalogue| {
            object.spec.reference().is_none() && object.spec.unreadable.is_none()
        };
        if objects.iter().all(is_whole) {
            return None;
        }
        let known = self.files.0.lock().await.clone();
        let reading = objects.iter().map(async |object| {
            if let Some(unreadable) = &object.spec.unreadable {
                return Some(Err(unreadable.to_string()));
            }
            let (from, digest) = object.spec.from.as_ref().zip(object.spec.reference())?;
            if let Some(there) = object_version(object).and_then(|version| known.get(&version)) {
                return Some(Ok(Arc::clone(there)));
            }
            let content = file::fetch_content(self, object, from, digest).await;
            Some(content.map(Arc::new).map_err(|error| error.chain()))
        });
        let (mut read, mut kept) = (Vec::new(), BTreeMap::new());
        let mut unread = Vec::new();
        for (object, found) in objects.iter().zip(join_all(reading).await) {
            match found {
                None => read.push(object.clone()),
                Some(Ok(spec)) => {
                    // Only the spec comes from the file: metadata and status may have changed within a generation.
                    read.push(AddonCatalogue {
                        metadata: object.metadata.clone(),
                        spec: AddonCatalogueSpec::clone(&spec),
                        status: object.status.clone(),
                    });
                    if let Some(version) = object_version(object) {
                        kept.insert(version, spec);
                    }
                }
                Some(Err(why)) => {
                    unread.push(UnreadCatalogue {
                        catalogue: object.metadata.name.clone().unwrap_or_default(),
                        class: object.spec.class,
                        addons: addon_names(object),
                        losers: list_losers(object, objects),
                        why,
                    });
                    read.push(object.clone());
                }
            }
        }
        *self.files.0.lock().await = kept;
        Some(ReadCatalogues {
            objects: read,
            unread,
        })
    }
}

fn object_version(object: &AddonCatalogue) -> Option<ObjectVersion> {
    let uid = object.metadata.uid.clone()?;
    Some((uid, object.metadata.generation?))
}

fn addon_names(object: &AddonCatalogue) -> Vec<String> {
    let addons = object.spec.addons.iter();
    addons.map(|addon| addon.name.clone()).collect()
}
