//! A directory that was read.

use std::collections::{BTreeMap, BTreeSet};

use addons_plan::inventory::Inventory;
use common::directory::allowed::AllowList;
use common::directory::legacy::is_other_version;
use common::directory::{Directory, DirectoryEntry, NAMESPACE};
use common::manifest::key::ObjectKey;

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
    /// Returns the recorded objects that are kept although the add-on does not contain them, with the reasons.
    pub(super) fn kept_objects(
        &self,
        addon: &DirectoryEntry,
        inventory: &Inventory,
    ) -> BTreeMap<ObjectKey, String> {
        let keys = inventory.objects.keys();
        let kept = keys.filter_map(|key| {
            let is_recorded = |other: &ObjectKey| inventory.objects.contains_key(other);
            let why = addon.reason_to_keep(key, is_recorded);
            let why = why.or_else(|| why_not_prunable(&self.allowed, key));
            let why = why.or_else(|| self.keep_reason.clone());
            Some((key.clone(), why?))
        });
        kept.collect()
    }

    /// Returns the recorded objects that the allow-list does not let be pruned, with the reason.
    pub(super) fn unprunable_objects(&self, inventory: &Inventory) -> BTreeMap<ObjectKey, String> {
        let keys = inventory.objects.keys();
        let kept =
            keys.filter_map(|key| Some((key.clone(), why_not_prunable(&self.allowed, key)?)));
        kept.collect()
    }

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
            addon.reason_to_keep(key, |_| false).is_some()
                || wanted.any(|wanted| key.is_described_by(&wanted, NAMESPACE))
        };
        is_other
            && self.keep_reason.is_none()
            && self.allowed.allows(key)
            && !self.directory.addons.iter().any(is_there)
    }
}

/// Returns why the allow-list does not let an object be pruned.
fn why_not_prunable(allowed: &AllowList, key: &ObjectKey) -> Option<String> {
    (!allowed.allows(key)).then(|| "its kind is not in the prune allow-list".to_owned())
}
