//! How the core records of a cluster change with its core set.

use kube::ResourceExt as _;

use super::{CoreAddon, CoreSet};
use common::api::installation::AddonInstallation;
use common::api::installation::core_guard::{add_guard, is_guarded};
use common::api::names::{ANNOTATION_DEFAULTED, ANNOTATION_RELEASED};

/// A change of one installation.
#[derive(Clone, Debug, PartialEq)]
pub enum CoreChange<'a> {
    /// It is listed and has no record.
    Create {
        /// The name of the installation.
        name: &'a str,
        /// The add-on, as listed.
        addon: &'a CoreAddon,
    },
    /// It is listed, and its record must match the list.
    Keep {
        /// The record.
        record: &'a AddonInstallation,
        /// The add-on, as listed.
        addon: &'a CoreAddon,
    },
    /// It is listed, but the record with its name is not a core add-on and is left alone.
    Taken {
        /// The record.
        record: &'a AddonInstallation,
    },
    /// It is no longer listed.
    Release {
        /// The record.
        record: &'a AddonInstallation,
        /// Whether a rule still has the add-on and only its condition no longer holds. Probably a fact of the cluster changed, so a
        /// person has to release it (semantics 14.6).
        is_unmet: bool,
    },
}

/// Returns the changes of the records in the namespace that stands for the cluster. Core installations that a person created carry no
/// guard and stay unchanged. So do suspended ones, until they are resumed (semantics 12.1, 14.6).
#[must_use]
pub fn list_changes<'a>(
    set: &'a CoreSet,
    records: &[&'a AddonInstallation],
) -> Vec<CoreChange<'a>> {
    let of_name = |name: &str| {
        let mut all = records.iter();
        all.find(|record| record.metadata.name.as_deref() == Some(name))
    };
    let listed = set
        .addons
        .iter()
        .map(|(name, (addon, _))| match of_name(name) {
            None => CoreChange::Create { name, addon },
            Some(record) if record.spec.core_addon => CoreChange::Keep { record, addon },
            Some(record) => CoreChange::Taken { record },
        });
    let dropped = records.iter().filter_map(|record| {
        let name = record.metadata.name.as_deref().unwrap_or_default();
        let is_dropped =
            is_guarded(record) && !record.spec.suspend && !set.addons.contains_key(name);
        let is_unmet = set.unmet.contains(name);
        is_dropped.then_some(CoreChange::Release { record, is_unmet })
    });
    listed.chain(dropped).collect()
}

/// Returns the record of a listed add-on as it must be, or `None` if it already is. `wanted`: a new record of the add-on. The target
/// namespace stays, because it never changes, and so does a ServiceAccount that an administrator chose. A suspended record stays
/// unchanged.
#[must_use]
pub fn restored_record(
    record: &AddonInstallation,
    wanted: &AddonInstallation,
) -> Option<AddonInstallation> {
    if record.spec.suspend {
        return None;
    }
    let mut restored = record.clone();
    restored.spec = wanted.spec.clone();
    let target = record.spec.target_namespace.clone();
    restored.spec.target_namespace = target.or(restored.spec.target_namespace.take());
    let account = record.spec.service_account_name.clone();
    restored.spec.service_account_name = account.or(restored.spec.service_account_name.take());
    let annotations = restored.annotations_mut();
    annotations.remove(ANNOTATION_RELEASED);
    match wanted.annotations().get(ANNOTATION_DEFAULTED) {
        Some(text) => annotations.insert(ANNOTATION_DEFAULTED.to_owned(), text.clone()),
        None => annotations.remove(ANNOTATION_DEFAULTED),
    };
    // The API server does not accept a new finalizer on an object that is being deleted.
    if record.metadata.deletion_timestamp.is_none() {
        add_guard(&mut restored);
    }
    let is_new = restored.spec != record.spec
        || restored.annotations() != record.annotations()
        || restored.finalizers() != record.finalizers();
    is_new.then_some(restored)
}
