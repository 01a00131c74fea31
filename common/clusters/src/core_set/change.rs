//! What becomes of the core records of a cluster when its core set is known.

use kube::ResourceExt as _;

use super::{CoreAddon, CoreSet};
use common::api::installation::AddonInstallation;
use common::api::names::{
    ANNOTATION_DEFAULTED, ANNOTATION_RELEASED, FINALIZER_CORE_GUARD, FINALIZER_UNINSTALL, MARKED,
};

/// What becomes of one installation.
#[derive(Clone, Debug, PartialEq)]
pub enum CoreChange<'a> {
    /// It is listed, and there is no record.
    Create {
        /// Name of the installation.
        name: &'a str,
        /// As it is listed.
        addon: &'a CoreAddon,
    },
    /// It is listed, and its record has to be as the list says.
    Keep {
        /// The record.
        record: &'a AddonInstallation,
        /// As it is listed.
        addon: &'a CoreAddon,
    },
    /// It is listed, and the record of its name is not that of a core add-on: it is left alone.
    Taken {
        /// The record.
        record: &'a AddonInstallation,
    },
    /// It dropped out.
    Release {
        /// The record.
        record: &'a AddonInstallation,
        /// Whether a rule still has the add-on: then it dropped out because its condition does not hold any more, probably because a
        /// fact of the cluster changed, and a person has to release it.
        is_unmet: bool,
    },
}

/// What becomes of the records of the namespace that stands for a cluster. Core installations that a person made, and that were never
/// listed, carry no guard: they stay as they are. So do suspended ones, until nothing suspends them any more (semantics 12).
#[must_use]
pub fn changes<'a>(set: &'a CoreSet, records: &[&'a AddonInstallation]) -> Vec<CoreChange<'a>> {
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

/// Whether a record is one of the core set: only the core group and the loop set its finalizer.
#[must_use]
pub fn is_guarded(record: &AddonInstallation) -> bool {
    let mut finalizers = record.finalizers().iter();
    record.spec.core_addon && finalizers.any(|one| one == FINALIZER_CORE_GUARD)
}

/// Whether a record was released.
#[must_use]
pub fn is_released(record: &AddonInstallation) -> bool {
    record
        .annotations()
        .get(ANNOTATION_RELEASED)
        .map(String::as_str)
        == Some(MARKED)
}

/// The record of a listed add-on as it has to be; `None` where it is that. `wanted`: as a new one would be. What holds for good, its
/// target namespace, stays, and so does the account whose rights an administrator chose for it. A record that a person suspended stays as
/// it is.
#[must_use]
pub fn restored(
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
    // The API server takes no new finalizer for an object that is being deleted.
    if record.metadata.deletion_timestamp.is_none() {
        guard(&mut restored);
    }
    let is_new = restored.spec != record.spec
        || restored.annotations() != record.annotations()
        || restored.finalizers() != record.finalizers();
    is_new.then_some(restored)
}

/// Puts the guard on a record.
pub fn guard(record: &mut AddonInstallation) {
    let finalizers = record.finalizers_mut();
    if !finalizers.iter().any(|one| one == FINALIZER_CORE_GUARD) {
        finalizers.push(FINALIZER_CORE_GUARD.to_owned());
    }
}

/// The record with the mark that lets it be deleted; `None` where it has that.
#[must_use]
pub fn released(record: &AddonInstallation) -> Option<AddonInstallation> {
    (!is_released(record)).then(|| {
        let mut released = record.clone();
        let annotations = released.annotations_mut();
        annotations.insert(ANNOTATION_RELEASED.to_owned(), MARKED.to_owned());
        released
    })
}

/// The record without anything of ours that holds it: its deletion leaves its objects then. `None` where nothing does.
#[must_use]
pub fn freed(record: &AddonInstallation) -> Option<AddonInstallation> {
    let holds = |one: &String| [FINALIZER_CORE_GUARD, FINALIZER_UNINSTALL].contains(&one.as_str());
    record.finalizers().iter().any(holds).then(|| {
        let mut freed = released(record).unwrap_or_else(|| record.clone());
        if !record.spec.core_addon {
            freed
                .metadata
                .annotations
                .clone_from(&record.metadata.annotations);
        }
        freed.finalizers_mut().retain(|one| !holds(one));
        freed
    })
}
