//! The guard of core installations: a finalizer that only the core group and the reconciler set, and the mark that lifts it
//! (semantics 14.6).

use kube::ResourceExt as _;

use super::AddonInstallation;
use crate::api::names::{ANNOTATION_RELEASED, FINALIZER_CORE_GUARD, FINALIZER_UNINSTALL, MARKED};

/// Returns whether a record belongs to the core set. Only the core group and the loop set its finalizer.
#[must_use]
pub fn is_guarded(record: &AddonInstallation) -> bool {
    let mut finalizers = record.finalizers().iter();
    record.spec.core_addon && finalizers.any(|one| one == FINALIZER_CORE_GUARD)
}

/// Returns whether a record carries the mark of a release.
#[must_use]
pub fn is_released(record: &AddonInstallation) -> bool {
    record
        .annotations()
        .get(ANNOTATION_RELEASED)
        .map(String::as_str)
        == Some(MARKED)
}

/// Adds the guard to a record.
pub fn add_guard(record: &mut AddonInstallation) {
    let finalizers = record.finalizers_mut();
    if !finalizers.iter().any(|one| one == FINALIZER_CORE_GUARD) {
        finalizers.push(FINALIZER_CORE_GUARD.to_owned());
    }
}

/// Returns the record with the mark that allows its deletion, or `None` if it already has the mark.
#[must_use]
pub fn released_record(record: &AddonInstallation) -> Option<AddonInstallation> {
    (!is_released(record)).then(|| {
        let mut released = record.clone();
        let annotations = released.annotations_mut();
        annotations.insert(ANNOTATION_RELEASED.to_owned(), MARKED.to_owned());
        released
    })
}

/// Returns the record without our finalizers, so that its deletion leaves its objects, or `None` if it has none of them. A core record is
/// marked as released as well.
#[must_use]
pub fn freed_record(record: &AddonInstallation) -> Option<AddonInstallation> {
    let holds = |one: &String| [FINALIZER_CORE_GUARD, FINALIZER_UNINSTALL].contains(&one.as_str());
    record.finalizers().iter().any(holds).then(|| {
        let mut freed = released_record(record).unwrap_or_else(|| record.clone());
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
