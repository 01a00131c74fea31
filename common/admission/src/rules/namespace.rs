//! Rules for namespaces that hold core installations (semantics 14.2).

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::marks::GuardMarks;
use crate::verdict::AdmissionProblem;
use crate::{AdmissionFacts, Requester};
use common::api::names::{
    ANNOTATION_CLUSTER_DELETING, ANNOTATION_KKP_VERSION, LABEL_CLUSTER, LABEL_HOLDS_CORE,
    LABEL_KUBECONFIG_SECRET, MARKED,
};

/// The labels that a namespace keeps while it holds core records. They make the API server call the webhook for its deletion.
const KEPT: [&str; 3] = [LABEL_HOLDS_CORE, LABEL_CLUSTER, LABEL_KUBECONFIG_SECRET];

/// Returns the core installations that are not released and have their record or their objects in a namespace: names by the namespace of
/// the record.
fn find_held_core<'a>(
    namespace: &str,
    facts: &'a AdmissionFacts,
) -> BTreeMap<&'a str, Vec<&'a str>> {
    let mut held: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let all = facts.installations.iter().map(Arc::as_ref);
    for core in all.filter(|one| one.is_core && !one.is_released) {
        // The objects of a record for another cluster are in that cluster.
        let is_there = facts.is_local(&core.namespace) && core.namespaces.contains(namespace);
        if core.namespace == namespace || is_there {
            held.entry(&core.namespace).or_default().push(&core.name);
        }
    }
    held.values_mut().for_each(|names| names.sort_unstable());
    held
}

/// A namespace with core installations cannot be deleted unless its cluster is being deleted (semantics 14.2).
#[must_use]
pub fn deletion(old: &GuardMarks, facts: &AdmissionFacts) -> Option<AdmissionProblem> {
    let name = old.name();
    if old.is_marked(ANNOTATION_CLUSTER_DELETING)
        || old.is_being_deleted()
        || facts.is_unguarded(name)
    {
        return None;
    }
    let held = find_held_core(name, facts);
    let names: Vec<&str> = held.values().flatten().copied().collect();
    let commands: Vec<String> = held
        .iter()
        .map(|(home, names)| {
            let names = names.join(" ");
            format!("kubectl addons core release {names} -n {home}")
        })
        .collect();
    if names.is_empty() {
        return None;
    }
    Some(AdmissionProblem::forbidden(
        "namespace-holds-core",
        "",
        format!(
            "namespace {name} holds {} of this cluster ({}); a member of the core group releases them first: {}; or, if \
             the cluster itself is being deleted: kubectl annotate namespace {name} {ANNOTATION_CLUSTER_DELETING}={MARKED}",
            match names.len() {
                1 => "a core add-on".to_owned(),
                count => format!("{count} core add-ons"),
            },
            names.join(", "),
            commands.join("; "),
        ),
    ))
}

/// The labels of a namespace stay while it holds core records: without them, its deletion would not be validated, or its records would no
/// longer be reconciled. The KKP version stays as well, because it decides which versions fit (semantics 14.2).
#[must_use]
pub fn guarded_label(
    new: &GuardMarks,
    old: &GuardMarks,
    requester: &Requester,
    facts: &AdmissionFacts,
) -> Option<AdmissionProblem> {
    let is_taken = |label: &str| old.label(label).is_some() && new.label(label) != old.label(label);
    let taken = KEPT.into_iter().find(|label| is_taken(label));
    let kkp = |marks: &GuardMarks| marks.annotation(ANNOTATION_KKP_VERSION).map(str::to_owned);
    let (field, what) = match taken {
        Some(label) => (format!("metadata.labels[{label}]"), "label"),
        None if kkp(new) != kkp(old) => {
            let field = format!("metadata.annotations[{ANNOTATION_KKP_VERSION}]");
            (field, "annotation")
        }
        None => return None,
    };
    let free = new.is_being_deleted()
        || old.is_marked(ANNOTATION_CLUSTER_DELETING)
        || requester.is_core(&facts.settings);
    if free {
        return None;
    }
    let held = find_held_core(new.name(), facts);
    let first = held.values().flatten().next()?;
    Some(AdmissionProblem::forbidden(
        "guarded-label",
        field,
        format!("the namespace holds core add-ons ({first}); the {what} stays"),
    ))
}

/// Only the core group may mark the cluster of a namespace as being deleted: nothing in it is guarded from then on (semantics 14.1). The
/// rule holds for every namespace, so that no one can set the mark before the first core add-on.
#[must_use]
pub fn deleting_mark(
    new: &GuardMarks,
    old: Option<&GuardMarks>,
    requester: &Requester,
    facts: &AdmissionFacts,
) -> Option<AdmissionProblem> {
    let was = old.is_some_and(|old| old.is_marked(ANNOTATION_CLUSTER_DELETING));
    let set = new.is_marked(ANNOTATION_CLUSTER_DELETING) && !was;
    (set && !requester.is_core(&facts.settings)).then(|| {
        let groups = facts.settings.core_groups.join(", ");
        AdmissionProblem::forbidden(
            "deleting-mark",
            format!("metadata.annotations[{ANNOTATION_CLUSTER_DELETING}]"),
            format!("only group {groups} takes the guard from a namespace"),
        )
    })
}

#[cfg(test)]
mod tests;
