//! Guards of core installations (semantics 8, 14.1).

use crate::marks::GuardMarks;
use crate::verdict::AdmissionProblem;
use crate::{AdmissionFacts, Requester};
use common::api::installation::AddonInstallation;
use common::api::names::{ANNOTATION_RELEASED, FINALIZER_CORE_GUARD};

/// A core installation cannot be deleted unless it was released, or its namespace or cluster is being deleted (semantics 14.1).
///
/// Reads the old object only: the request has no name when many objects are deleted at once.
#[must_use]
pub fn deletion(old: &GuardMarks, facts: &AdmissionFacts) -> Option<AdmissionProblem> {
    if !old.core || is_released(old, facts) {
        return None;
    }
    let name = old.name();
    Some(AdmissionProblem::forbidden(
        "core-deletion",
        "",
        format!(
            "{name} is a core add-on of this cluster (coreAddon in namespace {}); {}",
            old.namespace(),
            describe_release(old)
        ),
    ))
}

/// Returns how to make a core add-on deletable.
fn describe_release(core: &GuardMarks) -> String {
    format!(
        "a member of the core group releases it first: \
         kubectl addons core release {} -n {}",
        core.name(),
        core.namespace()
    )
}

/// Returns whether a core installation may be deleted.
fn is_released(marks: &GuardMarks, facts: &AdmissionFacts) -> bool {
    marks.is_marked(ANNOTATION_RELEASED) || facts.is_unguarded(marks.namespace())
}

/// Only the core group and the loop may set coreAddon, and it never becomes false again (semantics 8).
#[must_use]
pub fn core_flag(
    new: &GuardMarks,
    old: Option<&GuardMarks>,
    requester: &Requester,
    facts: &AdmissionFacts,
) -> Option<AdmissionProblem> {
    let was = old.is_some_and(|old| old.core);
    match (was, new.core) {
        (false, true) if !requester.is_core(&facts.settings) => {
            let groups = facts.settings.core_groups.join(", ");
            Some(AdmissionProblem::forbidden(
                "core-flag",
                "spec.coreAddon",
                format!("only group {groups} installs core add-ons; leave it false"),
            ))
        }
        (true, false) => Some(AdmissionProblem::invalid(
            "core-flag",
            "spec.coreAddon",
            format!("true never becomes false; {}", describe_release(new)),
        )),
        _ => None,
    }
}

/// Only the core group may add finalizers to a core installation, which would hold it after its release, and set the guard finalizer,
/// which stays until the release (semantics 14.1).
#[must_use]
pub fn guard_finalizer(
    new: &GuardMarks,
    old: Option<&GuardMarks>,
    requester: &Requester,
    facts: &AdmissionFacts,
) -> Option<AdmissionProblem> {
    if requester.is_core(&facts.settings) {
        return None;
    }
    let problem =
        |message| AdmissionProblem::forbidden("guard-finalizer", "metadata.finalizers", message);
    let core = old.filter(|old| old.core);
    let had = |finalizer: &str| old.is_some_and(|old| old.has_finalizer(finalizer));
    let mut added = new.metadata.finalizers.iter().flatten();
    let is_guarded = |one: &str| one == FINALIZER_CORE_GUARD || core.is_some();
    if let Some(added) = added.find(|one| is_guarded(one) && !had(one)) {
        let groups = facts.settings.core_groups.join(", ");
        return Some(problem(format!(
            "only group {groups} sets {added}; leave it out"
        )));
    }
    let core = core.filter(|_| had(FINALIZER_CORE_GUARD))?;
    // The finalizer also holds in a namespace that is being deleted, unless the cluster is deleted.
    let of_cluster = facts.namespaces.get(core.namespace());
    let is_free = new.has_finalizer(FINALIZER_CORE_GUARD)
        || core.is_marked(ANNOTATION_RELEASED)
        || of_cluster.is_some_and(|ns| ns.cluster_deleting);
    (!is_free).then(|| {
        problem(format!(
            "{FINALIZER_CORE_GUARD} holds the core add-on {}; {}",
            core.name(),
            describe_release(core)
        ))
    })
}

/// Only the core group and the loop may mark an installation as released, core or not: a mark that exists before an installation becomes
/// core would release it at once. Only they may remove the mark from a core installation (semantics 14.1).
#[must_use]
pub fn release_mark(
    new: &GuardMarks,
    old: Option<&GuardMarks>,
    requester: &Requester,
    facts: &AdmissionFacts,
) -> Option<AdmissionProblem> {
    let was = old.is_some_and(|old| old.is_marked(ANNOTATION_RELEASED));
    let is = new.is_marked(ANNOTATION_RELEASED);
    let is_set = is && !was;
    let is_taken = was && !is && new.core;
    ((is_set || is_taken) && !requester.is_core(&facts.settings)).then(|| {
        let groups = facts.settings.core_groups.join(", ");
        AdmissionProblem::forbidden(
            "release-mark",
            format!("metadata.annotations[{ANNOTATION_RELEASED}]"),
            format!("only group {groups} releases core add-ons"),
        )
    })
}

/// An installation that becomes core must not carry anything that would remove it at once, whoever set it and when: the mark of a
/// release, an owner, or a deletion that only a finalizer delays (semantics 14.1).
#[must_use]
pub fn check_becoming_core(new: &GuardMarks, old: Option<&GuardMarks>) -> Vec<AdmissionProblem> {
    let becomes_core = new.core && !old.is_some_and(|old| old.core);
    if !becomes_core {
        return Vec::new();
    }
    let has_owner = new.metadata.owner_references.as_ref();
    let has_owner = has_owner.is_some_and(|owners| !owners.is_empty());
    let planted = [
        (
            new.is_marked(ANNOTATION_RELEASED),
            "release-mark",
            format!("metadata.annotations[{ANNOTATION_RELEASED}]"),
            "it would release a core add-on at once; remove the annotation first",
        ),
        (
            // If a member of the core group creates an installation with an owner, this is intended.
            old.is_some() && has_owner,
            "owner-references",
            "metadata.ownerReferences".to_owned(),
            "with the owner a core add-on would be deleted; remove the reference first",
        ),
        (
            new.is_being_deleted(),
            "core-flag",
            "metadata.deletionTimestamp".to_owned(),
            "it is being deleted; install the core add-on when it is gone",
        ),
    ];
    let planted = planted.into_iter().filter(|(is_there, ..)| *is_there);
    planted
        .map(|(_, rule, field, message)| AdmissionProblem::invalid(rule, field, message))
        .collect()
}

/// The name of the rule of [`core_spec`] and [`core_metadata`].
pub const CORE_SPEC: &str = "core-spec";

/// Only the core group and the loop may change the spec of a core installation: its origin, version and values decide what is installed
/// (semantics 8).
#[must_use]
pub fn core_spec(
    new: &AddonInstallation,
    old: &AddonInstallation,
    requester: &Requester,
    facts: &AdmissionFacts,
) -> Option<AdmissionProblem> {
    let is_changed = old.spec.core_addon && new.spec != old.spec;
    is_changed.then(|| core_part("spec", requester, facts))?
}

/// Only the core group and the loop may change the labels and annotations of a core installation: they decide which values are defaults,
/// what is due, and what is checked (semantics 8). Finalizers, owners and the release mark have rules of their own.
#[must_use]
pub fn core_metadata(
    new: &GuardMarks,
    old: Option<&GuardMarks>,
    requester: &Requester,
    facts: &AdmissionFacts,
) -> Vec<AdmissionProblem> {
    let Some(old) = old.filter(|old| old.core) else {
        return Vec::new();
    };
    let annotations = |marks: &GuardMarks| {
        let mut all = marks.metadata.annotations.clone().unwrap_or_default();
        all.remove(ANNOTATION_RELEASED);
        all
    };
    let labels = |marks: &GuardMarks| marks.metadata.labels.clone().unwrap_or_default();
    let parts = [
        ("metadata.labels", labels(new) != labels(old)),
        ("metadata.annotations", annotations(new) != annotations(old)),
    ];
    let changed = parts.into_iter().filter(|(_, is_changed)| *is_changed);
    changed
        .filter_map(|(part, _)| core_part(part, requester, facts))
        .collect()
}

/// Returns the problem of a changed part of a core installation, unless the requester may change it.
fn core_part(
    part: &str,
    requester: &Requester,
    facts: &AdmissionFacts,
) -> Option<AdmissionProblem> {
    (!requester.is_core(&facts.settings)).then(|| {
        let groups = facts.settings.core_groups.join(", ");
        let message = format!("only group {groups} changes core add-ons");
        AdmissionProblem::forbidden(CORE_SPEC, part, message)
    })
}

/// The names of core sets are reserved in every namespace: a record that already has the name would keep the core add-on out (semantics
/// 14.3).
#[must_use]
pub fn reserved_name(
    new: &GuardMarks,
    requester: &Requester,
    facts: &AdmissionFacts,
) -> Option<AdmissionProblem> {
    let holder = facts.installations.iter().find(|other| {
        other.is_core
            && other.is_guarded
            && other.name == new.name()
            && other.namespace != new.namespace()
    })?;
    (!new.core && !requester.is_core(&facts.settings)).then(|| {
        let message = format!(
            "{} is a core add-on in namespace {}; choose another name",
            new.name(),
            holder.namespace
        );
        AdmissionProblem::forbidden("reserved-name", "metadata.name", message)
    })
}

/// Only the core group may add owners to a core installation: deleting the owner would delete it (semantics 14.1).
#[must_use]
pub fn owner_references(
    new: &GuardMarks,
    old: Option<&GuardMarks>,
    requester: &Requester,
    facts: &AdmissionFacts,
) -> Option<AdmissionProblem> {
    let uids = |marks: &GuardMarks| -> Vec<String> {
        let owners = marks.metadata.owner_references.iter().flatten();
        owners.map(|owner| owner.uid.clone()).collect()
    };
    let before = old.map(uids).unwrap_or_default();
    let added = uids(new).iter().any(|uid| !before.contains(uid));
    (new.core && added && !requester.is_core(&facts.settings)).then(|| {
        AdmissionProblem::forbidden(
            "owner-references",
            "metadata.ownerReferences",
            "a core add-on has no owner: with the owner it would be deleted",
        )
    })
}

#[cfg(test)]
mod tests;
