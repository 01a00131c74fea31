//! Rules for AddonInstallations (semantics 4, 7, 8, 10, 14, 15).

use serde_json::Value;

use crate::admission::marks::Marks;
use crate::admission::mutate::is_namespace_name;
use crate::admission::verdict::Problem;
use crate::admission::{Facts, Requester};
use crate::api::catalogue::Method;
use crate::api::installation::AddonInstallation;
use crate::api::names::{
    ANNOTATION_RELEASED, FINALIZER_CORE_GUARD, FINALIZER_UNINSTALL, LABEL_OWNER, owner_hash,
};
use crate::catalogue::Entry;
use crate::values::form;
use crate::values::layers::Layers;

/// A core installation is not deleted unless it was released, or its namespace or cluster is deleted (semantics 14).
///
/// Reads the old object only: the request has no name when many are deleted at once.
#[must_use]
pub fn deletion(old: &Marks, facts: &Facts) -> Option<Problem> {
    if !old.core || is_released(old, facts) {
        return None;
    }
    let name = old.name();
    Some(Problem::forbidden(
        "core-deletion",
        "",
        format!(
            "{name} is a core add-on of this cluster (coreAddon in namespace {}); {}",
            old.namespace(),
            release_first(old)
        ),
    ))
}

/// How a core add-on becomes deletable (semantics 14).
fn release_first(core: &Marks) -> String {
    format!(
        "a member of the core group releases it first: \
         kubectl annotate addoninstallation {} -n {} {ANNOTATION_RELEASED}=true",
        core.name(),
        core.namespace()
    )
}

/// The warning that objects stay when a record is deleted that no reconciler watches (semantics 15).
#[must_use]
pub fn orphans(old: &Marks) -> Option<String> {
    let is_watched = old.has_finalizer(FINALIZER_UNINSTALL);
    (old.leaves_objects && !is_watched).then(|| {
        let (namespace, name) = (old.namespace(), old.name());
        format!(
            "only the record of {name} is deleted, its objects stay (label {LABEL_OWNER}={})",
            owner_hash(namespace, name)
        )
    })
}

/// The warning that a deletion takes its time: a reconciler deletes the objects before the record goes (semantics 15).
#[must_use]
pub fn finished_later(old: &Marks) -> Option<String> {
    let is_watched = old.has_finalizer(FINALIZER_UNINSTALL);
    (old.leaves_objects && is_watched).then(|| {
        format!(
            "{} is uninstalled by the reconciler: its record goes when its objects are deleted",
            old.name()
        )
    })
}

/// Whether a core installation may be deleted.
fn is_released(marks: &Marks, facts: &Facts) -> bool {
    marks.is_marked(ANNOTATION_RELEASED) || facts.is_unguarded(marks.namespace())
}

/// Only the core group and the loop set coreAddon, and it never becomes false again (semantics 8).
#[must_use]
pub fn core_flag(
    new: &Marks,
    old: Option<&Marks>,
    requester: &Requester,
    facts: &Facts,
) -> Option<Problem> {
    let was = old.is_some_and(|old| old.core);
    match (was, new.core) {
        (false, true) if !requester.is_core(&facts.settings) => {
            let groups = facts.settings.core_groups.join(", ");
            Some(Problem::forbidden(
                "core-flag",
                "spec.coreAddon",
                format!("only group {groups} installs core add-ons; leave it false"),
            ))
        }
        (true, false) => Some(Problem::invalid(
            "core-flag",
            "spec.coreAddon",
            format!("true never becomes false; {}", release_first(new)),
        )),
        _ => None,
    }
}

/// An installation's name is known before it is created: labels and field managers depend on it (semantics 4, 5).
#[must_use]
pub fn generate_name(new: &Marks) -> Option<Problem> {
    let generated = new.metadata.generate_name.as_deref();
    generated.filter(|prefix| !prefix.is_empty()).map(|_| {
        Problem::invalid(
            "generate-name",
            "metadata.generateName",
            "an installation has a fixed name; set metadata.name",
        )
    })
}

/// The guard finalizer stays on a core installation until it is released (semantics 14).
#[must_use]
pub fn guard_finalizer(
    new: &Marks,
    old: &Marks,
    requester: &Requester,
    facts: &Facts,
) -> Option<Problem> {
    let removed =
        old.has_finalizer(FINALIZER_CORE_GUARD) && !new.has_finalizer(FINALIZER_CORE_GUARD);
    // A namespace that is being deleted is not enough: the finalizer holds there too, unless the cluster is deleted.
    let free = old.is_marked(ANNOTATION_RELEASED)
        || facts
            .namespaces
            .get(old.namespace())
            .is_some_and(|ns| ns.cluster_deleting)
        || requester.is_core(&facts.settings);
    (removed && old.core && !free).then(|| {
        Problem::forbidden(
            "guard-finalizer",
            "metadata.finalizers",
            format!(
                "{FINALIZER_CORE_GUARD} holds the core add-on {}; {}",
                old.name(),
                release_first(old)
            ),
        )
    })
}

/// Only the core group and the loop release an installation, core or not: a mark that is there before it becomes core would release
/// it at once (semantics 14).
#[must_use]
pub fn release_mark(
    new: &Marks,
    old: Option<&Marks>,
    requester: &Requester,
    facts: &Facts,
) -> Option<Problem> {
    let was = old.is_some_and(|old| old.is_marked(ANNOTATION_RELEASED));
    let set = new.is_marked(ANNOTATION_RELEASED) && !was;
    (set && !requester.is_core(&facts.settings)).then(|| {
        let groups = facts.settings.core_groups.join(", ");
        Problem::forbidden(
            "release-mark",
            format!("metadata.annotations[{ANNOTATION_RELEASED}]"),
            format!("only group {groups} releases core add-ons"),
        )
    })
}

/// What becomes core is not released yet, whoever has set the mark, and when (semantics 14).
#[must_use]
pub fn released_before(new: &Marks, old: Option<&Marks>) -> Option<Problem> {
    let was = old.is_some_and(|old| old.core);
    (new.core && !was && new.is_marked(ANNOTATION_RELEASED)).then(|| {
        Problem::invalid(
            "release-mark",
            format!("metadata.annotations[{ANNOTATION_RELEASED}]"),
            "it would release a core add-on at once; remove the annotation first",
        )
    })
}

/// The rule of [`core_spec`].
pub const CORE_SPEC: &str = "core-spec";

/// Only the core group and the loop write the spec of a core installation: its origin, version and values decide what is installed as
/// much as the record itself (semantics 8).
#[must_use]
pub fn core_spec(
    new: &AddonInstallation,
    old: &AddonInstallation,
    requester: &Requester,
    facts: &Facts,
) -> Option<Problem> {
    let is_changed = old.spec.core_addon && new.spec != old.spec;
    (is_changed && !requester.is_core(&facts.settings)).then(|| {
        let groups = facts.settings.core_groups.join(", ");
        let message = format!("only group {groups} changes core add-ons");
        Problem::forbidden(CORE_SPEC, "spec", message)
    })
}

/// A core installation gets no owner: deleting the owner would delete it (webhook.md 6).
#[must_use]
pub fn owner_references(
    new: &Marks,
    old: Option<&Marks>,
    requester: &Requester,
    facts: &Facts,
) -> Option<Problem> {
    let uids = |marks: &Marks| -> Vec<String> {
        let owners = marks.metadata.owner_references.iter().flatten();
        owners.map(|owner| owner.uid.clone()).collect()
    };
    let before = old.map(uids).unwrap_or_default();
    let added = uids(new).iter().any(|uid| !before.contains(uid));
    (new.core && added && !requester.is_core(&facts.settings)).then(|| {
        Problem::forbidden(
            "owner-references",
            "metadata.ownerReferences",
            "a core add-on has no owner: with the owner it would be deleted",
        )
    })
}

/// The add-on and the target namespace never change (semantics 7).
#[must_use]
pub fn immutable(new: &AddonInstallation, old: &AddonInstallation) -> Vec<Problem> {
    let mut problems = Vec::new();
    if new.spec.addon_ref.name != old.spec.addon_ref.name {
        problems.push(Problem::invalid(
            "immutable",
            "spec.addonRef.name",
            format!(
                "stays {}: uninstall, then install the other add-on",
                old.spec.addon_ref.name
            ),
        ));
    }
    if let Some(target) = &old.spec.target_namespace
        && new.spec.target_namespace.as_ref() != Some(target)
    {
        problems.push(Problem::invalid(
            "immutable",
            "spec.targetNamespace",
            format!("stays {target}: uninstall, then install into the other namespace"),
        ));
    }
    problems
}

/// The target namespace is a valid name.
#[must_use]
pub fn target_namespace(new: &AddonInstallation, entry: Option<&Entry>) -> Option<Problem> {
    let name = match (&new.spec.target_namespace, entry) {
        (Some(name), _) => name,
        (None, Some(entry)) if crate::admission::mutate::default_namespace(entry).is_none() => {
            &entry.addon
        }
        _ => return None,
    };
    (!is_namespace_name(name)).then(|| {
        Problem::invalid(
            "target-namespace",
            "spec.targetNamespace",
            format!("{name} is not a valid name of a namespace; set spec.targetNamespace"),
        )
    })
}

/// Values have the types of the form, required ones are set where no Secret can hold them, with `formOnly` there are no
/// others, and plain manifests take none (semantics 10). Paths are named, values never.
#[must_use]
pub fn values(new: &AddonInstallation, entry: &Entry) -> Vec<Problem> {
    let (spec, template) = (&new.spec, &entry.version.template);
    if template.method == Method::Manifest {
        let given = match &spec.values {
            Some(Value::Object(values)) => !values.is_empty(),
            other => other.is_some(),
        };
        let given = [
            ("spec.values", given),
            ("spec.valuesFrom", !spec.values_from.is_empty()),
        ];
        let message = format!(
            "{} is a plain manifest and takes no values; leave them out",
            entry.addon
        );
        return given
            .into_iter()
            .filter(|(_, given)| *given)
            .map(|(field, _)| Problem::invalid("values", field, &message))
            .collect();
    }
    let layers = Layers::of(entry, new);
    let is_whole = spec.values_from.is_empty();
    let wrong = form::check(&template.form_spec, &layers.merged(), is_whole);
    let unknown = match layers.spec.values() {
        Value::Object(written) if template.form_only => form::unknown(&template.form_spec, written),
        _ => Vec::new(),
    };
    wrong
        .into_iter()
        .chain(unknown)
        .map(|violation| {
            let field = format!("spec.values.{}", violation.path);
            Problem::invalid("values", field, violation.message)
        })
        .collect()
}

/// The same for values from Secrets of `spec.valuesFrom`, once they are read: types, `formOnly`, and required values.
/// The webhook reads no Secret, so only the plugin and the loop can check it.
#[must_use]
pub fn secret_values(layers: &Layers, entry: &Entry) -> Vec<Problem> {
    let template = &entry.version.template;
    let mut problems = Vec::new();
    for secret in &layers.values_from {
        let mut found = form::check(&template.form_spec, secret.values(), false);
        if let (Value::Object(values), true) = (secret.values(), template.form_only) {
            found.extend(form::unknown(&template.form_spec, values));
        }
        problems.extend(found.into_iter().map(|violation| {
            let message = format!("{}: {}", violation.path, violation.message);
            Problem::invalid("values", secret.source(), message)
        }));
    }
    let merged = layers.merged();
    let missing = form::missing(&template.form_spec, &merged);
    problems.extend(missing.into_iter().map(|field| {
        let path = format!("spec.values.{}", field.internal_name);
        let message = "a value is required, and no Secret of spec.valuesFrom holds one";
        Problem::invalid("values", path, message)
    }));
    problems
}

#[cfg(test)]
mod tests;
