//! A directory that was read, and its add-ons.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use addons_plan::Deletion;
use addons_plan::inventory::Inventory;
use common::api::names::InstallationName;
use common::directory::allowed::AllowList;
use common::directory::legacy::is_other_version;
use common::directory::{Directory, DirectoryEntry, NAMESPACE};
use common::manifest::key::ObjectKey;

use crate::error::OperationError;

/// A directory that was read.
#[derive(Clone, Debug, Default)]
pub struct DirectorySync {
    /// Its absolute path, with which installations are recorded.
    pub path: String,
    /// Its content.
    pub directory: Directory,
    /// The kinds that may be pruned.
    pub allowed: AllowList,
    /// Why nothing is deleted now, if that is so.
    pub keep_reason: Option<String>,
    /// Installations that are left alone because another manager keeps setting a field of them back.
    pub contested: BTreeSet<String>,
    /// Whether names carry versions by the naming rule of 2015: an older version that no installation owns is deleted once the new one is
    /// ready (semantics 21.7).
    pub legacy_names: bool,
}

impl DirectorySync {
    /// Whether an object is an older version of an object of the add-on, and no add-on of the directory contains or ignores it.
    pub(super) fn supersedes(&self, addon: &DirectoryEntry, key: &ObjectKey) -> bool {
        let written = |addon: &DirectoryEntry| -> Vec<ObjectKey> {
            let objects = addon.manifests.iter().map(|manifest| &*manifest.object);
            objects.filter_map(ObjectKey::from_object).collect()
        };
        let is_other = written(addon).into_iter().any(|mut wanted| {
            wanted.namespace.get_or_insert_with(|| NAMESPACE.to_owned());
            is_other_version(key, &wanted)
        });
        let is_there = |addon: &DirectoryEntry| {
            let mut wanted = written(addon).into_iter();
            addon.reason_to_keep(key).is_some()
                || wanted.any(|wanted| key.is_described_by(&wanted, NAMESPACE))
        };
        is_other
            && self.keep_reason.is_none()
            && self.allowed.allows(key)
            && !self.directory.addons.iter().any(is_there)
    }
}

/// An add-on of a directory, whose objects need not be fetched.
#[derive(Clone, Debug)]
pub struct DirectorySyncAddon {
    /// The add-on.
    pub addon: DirectoryEntry,
    /// The directory that contains it.
    pub sync: Arc<DirectorySync>,
    /// Older versions of its objects that no installation owns, by the naming rule of 2015.
    pub superseded: Vec<Deletion>,
}

impl DirectorySyncAddon {
    /// Wraps an error with the place of the add-on.
    pub(crate) fn wrap_error(
        &self,
        installation: &InstallationName,
        error: OperationError,
    ) -> OperationError {
        OperationError::InDirectory {
            path: self.addon.path.clone(),
            installation: installation.clone(),
            directory: self.sync.path.clone(),
            error: Box::new(error),
        }
    }

    /// Returns the recorded objects that are kept although the add-on does not contain them, with the reasons.
    pub(crate) fn held(&self, inventory: &Inventory) -> BTreeMap<ObjectKey, String> {
        let keys = inventory.objects.keys();
        let held = keys.filter_map(|key| {
            let why = self.addon.reason_to_keep(key);
            let why = why.or_else(|| why_not_prunable(&self.sync.allowed, key));
            let why = why.or_else(|| self.sync.keep_reason.clone());
            Some((key.clone(), why?))
        });
        held.collect()
    }
}

/// Returns why the allow-list does not let an object be pruned.
pub(crate) fn why_not_prunable(allowed: &AllowList, key: &ObjectKey) -> Option<String> {
    (!allowed.allows(key)).then(|| "its kind is not in the prune allow-list".to_owned())
}
