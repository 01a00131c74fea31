//! Rules for namespaces that hold core installations (semantics 14).

use std::sync::Arc;

use crate::admission::marks::Marks;
use crate::admission::verdict::Problem;
use crate::admission::{Facts, Requester};
use crate::api::names::{ANNOTATION_CLUSTER_DELETING, ANNOTATION_RELEASED, LABEL_HOLDS_CORE};

/// Core installations in a namespace that were not released, by name.
fn held<'a>(namespace: &str, facts: &'a Facts) -> Vec<&'a str> {
    let mut names: Vec<&str> = facts
        .installations
        .iter()
        .map(Arc::as_ref)
        .filter(|installation| {
            let metadata = &installation.metadata;
            let released = metadata
                .annotations
                .as_ref()
                .is_some_and(|all| all.contains_key(ANNOTATION_RELEASED));
            installation.spec.core_addon
                && !released
                && metadata.namespace.as_deref() == Some(namespace)
        })
        .filter_map(|installation| installation.metadata.name.as_deref())
        .collect();
    names.sort_unstable();
    names
}

/// A namespace that holds core installations is not deleted unless its cluster is (semantics 14).
#[must_use]
pub fn deletion(old: &Marks, facts: &Facts) -> Option<Problem> {
    let name = old.name();
    if old.annotation(ANNOTATION_CLUSTER_DELETING).is_some()
        || old.is_going()
        || facts.is_unguarded(name)
    {
        return None;
    }
    let held = held(name, facts);
    held.first()?;
    Some(Problem::forbidden(
        "namespace-holds-core",
        "",
        format!(
            "namespace {name} holds {} of this cluster ({}); a member of the core group releases them first: \
             kubectl annotate addoninstallation {} -n {name} {ANNOTATION_RELEASED}=true; or, if the cluster itself is \
             being deleted: kubectl annotate namespace {name} {ANNOTATION_CLUSTER_DELETING}=true",
            match held.len() {
                1 => "a core add-on".to_owned(),
                count => format!("{count} core add-ons"),
            },
            held.join(", "),
            held.join(" ")
        ),
    ))
}

/// The guarded label is not removed while it is true: without it a deletion would not be judged.
#[must_use]
pub fn guarded_label(
    new: &Marks,
    old: &Marks,
    requester: &Requester,
    facts: &Facts,
) -> Option<Problem> {
    let taken = old.label(LABEL_HOLDS_CORE).is_some()
        && new.label(LABEL_HOLDS_CORE) != old.label(LABEL_HOLDS_CORE);
    let free = new.is_going()
        || new.annotation(ANNOTATION_CLUSTER_DELETING).is_some()
        || requester.is_core(&facts.settings);
    if !taken || free {
        return None;
    }
    let held = held(new.name(), facts);
    let first = held.first()?;
    Some(Problem::forbidden(
        "guarded-label",
        format!("metadata.labels[{LABEL_HOLDS_CORE}]"),
        format!("the namespace holds core add-ons ({first}); the label stays"),
    ))
}

#[cfg(test)]
mod tests;
