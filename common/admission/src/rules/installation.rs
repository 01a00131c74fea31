//! Rules for AddonInstallations (semantics 4, 7, 10, 15); those that guard core add-ons are in [`guards`].

mod from;
pub mod guards;

use serde_json::Value;

use crate::marks::GuardMarks;
use crate::mutate::is_namespace_name;
use crate::rules::location;
use crate::verdict::AdmissionProblem;
use common::api::catalogue::{HelmMode, Method};
use common::api::installation::AddonInstallation;
use common::api::names::{FINALIZER_UNINSTALL, INDEX_BUILTIN, LABEL_OWNER, owner_hash};
use common::catalogue::CatalogueEntry;
use common::patch::{PatchError, Patches};
use common::values::form;
use common::values::layers::Layers;

pub use from::named_content;

/// Warns that the objects stay when a record is deleted that no reconciler watches (semantics 15).
#[must_use]
pub fn warn_orphans(old: &GuardMarks) -> Option<String> {
    let is_watched = old.has_finalizer(FINALIZER_UNINSTALL);
    (old.leaves_objects && !is_watched).then(|| {
        let (namespace, name) = (old.namespace(), old.name());
        format!(
            "only the record of {name} is deleted, its objects stay (label {LABEL_OWNER}={})",
            owner_hash(namespace, name)
        )
    })
}

/// Warns that a deletion takes some time, because a reconciler deletes the objects before the record (semantics 15).
#[must_use]
pub fn warn_finished_later(old: &GuardMarks) -> Option<String> {
    let is_watched = old.has_finalizer(FINALIZER_UNINSTALL);
    (old.leaves_objects && is_watched).then(|| {
        format!(
            "{} is uninstalled by the reconciler: its record goes when its objects are deleted",
            old.name()
        )
    })
}

/// The name of an installation must be known before it is created, because labels and field managers are derived from it (semantics 4,
/// 5).
#[must_use]
pub fn generate_name(new: &GuardMarks) -> Option<AdmissionProblem> {
    let generated = new.metadata.generate_name.as_deref();
    generated.filter(|prefix| !prefix.is_empty()).map(|_| {
        AdmissionProblem::invalid(
            "generate-name",
            "metadata.generateName",
            "an installation has a fixed name; set metadata.name",
        )
    })
}

/// The add-on and the target namespace never change (semantics 7.1).
#[must_use]
pub fn immutable(new: &AddonInstallation, old: &AddonInstallation) -> Vec<AdmissionProblem> {
    let mut problems = Vec::new();
    if new.spec.addon_ref.name != old.spec.addon_ref.name {
        problems.push(AdmissionProblem::invalid(
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
        problems.push(AdmissionProblem::invalid(
            "immutable",
            "spec.targetNamespace",
            format!("stays {target}: uninstall, then install into the other namespace"),
        ));
    }
    problems
}

/// The name of the rule of [`target_namespace`].
pub const TARGET_NAMESPACE: &str = "target-namespace";

/// The target namespace must be a valid name.
#[must_use]
pub fn target_namespace(
    new: &AddonInstallation,
    entry: Option<&CatalogueEntry>,
) -> Option<AdmissionProblem> {
    let name = match (&new.spec.target_namespace, entry) {
        (Some(name), _) => name,
        (None, Some(entry)) if crate::mutate::default_namespace(entry).is_none() => &entry.addon,
        _ => return None,
    };
    (!is_namespace_name(name)).then(|| {
        AdmissionProblem::invalid(
            TARGET_NAMESPACE,
            "spec.targetNamespace",
            format!("{name} is not a valid name of a namespace; set spec.targetNamespace"),
        )
    })
}

/// The schemes of an index location.
const INDEXES: [&str; 8] = ["https", "http", "oci", "s3", "gs", "az", "azure", "file"];

/// An index must have a scheme that is read, and contain no credentials: everyone who may read the record could read them (semantics 4).
#[must_use]
pub fn index(new: &AddonInstallation) -> Option<AdmissionProblem> {
    let index = new.spec.addon_ref.index.as_deref();
    let message = location::check_url(index.filter(|it| *it != INDEX_BUILTIN)?, &INDEXES)?;
    Some(AdmissionProblem::invalid(
        "index",
        "spec.addonRef.index",
        message,
    ))
}

/// Warns about an index that is read without TLS (semantics 4).
#[must_use]
pub fn warn_unencrypted_index(new: &AddonInstallation) -> Option<String> {
    let index = new.spec.addon_ref.index.as_deref()?;
    location::is_unencrypted(index).then(|| {
        "spec.addonRef.index: it is read without TLS: whoever is on the way decides what is installed"
            .to_owned()
    })
}

/// Values must have the types of the form, required values must be set unless a Secret may hold them, `formOnly` allows no other keys,
/// and plain manifests take no values (semantics 10.3, 10.5). Messages name paths, never values.
#[must_use]
pub fn values(new: &AddonInstallation, entry: &CatalogueEntry) -> Vec<AdmissionProblem> {
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
        let message = || {
            format!(
                "{} is a plain manifest and takes no values; leave them out",
                entry.addon
            )
        };
        return given
            .into_iter()
            .filter(|(_, given)| *given)
            .map(|(field, _)| AdmissionProblem::invalid("values", field, message()))
            .collect();
    }
    let layers = Layers::for_installation(entry, new);
    let is_whole = spec.values_from.is_empty();
    let wrong = form::check_values(&template.form_spec, &layers.merge_all(), is_whole);
    let unknown = match layers.spec.values() {
        Value::Object(written) if template.form_only => {
            form::find_unknown(&template.form_spec, written)
        }
        _ => Vec::new(),
    };
    wrong
        .into_iter()
        .chain(unknown)
        .map(|violation| {
            let field = format!("spec.values.{}", violation.path);
            AdmissionProblem::invalid("values", field, violation.message)
        })
        .collect()
}

/// Patches must be valid, and helm itself applies none (semantics 12.23). Which objects they match is known only after rendering.
#[must_use]
pub fn patches(
    new: &AddonInstallation,
    entry: Option<&CatalogueEntry>,
) -> Option<AdmissionProblem> {
    let patches = &new.spec.patches;
    let helm = entry.and_then(|entry| entry.version.template.helm.as_ref());
    let checked = match helm {
        Some(helm) if helm.mode == HelmMode::Release => Patches::check_release(patches),
        _ => Patches::compile(patches).map(drop),
    };
    let PatchError { field, problem, .. } = checked.err()?;
    let message = problem.to_string();
    Some(AdmissionProblem::invalid("patches", field, message))
}

/// Checks values from Secrets of `spec.valuesFrom` once they are read: types, `formOnly`, and required values. The webhook reads no
/// Secrets, so only the plugin and the loop can check them.
#[must_use]
pub fn secret_values(layers: &Layers, entry: &CatalogueEntry) -> Vec<AdmissionProblem> {
    let template = &entry.version.template;
    let mut problems = Vec::new();
    for secret in &layers.values_from {
        let mut found = form::check_values(&template.form_spec, secret.values(), false);
        if let (Value::Object(values), true) = (secret.values(), template.form_only) {
            found.extend(form::find_unknown(&template.form_spec, values));
        }
        problems.extend(found.into_iter().map(|violation| {
            let message = format!("{}: {}", violation.path, violation.message);
            AdmissionProblem::invalid("values", secret.source(), message)
        }));
    }
    let merged = layers.merge_all();
    let missing = form::missing_fields(&template.form_spec, &merged);
    problems.extend(missing.into_iter().map(|field| {
        let path = format!("spec.values.{}", field.internal_name);
        let message = "a value is required, and no Secret of spec.valuesFrom holds one";
        AdmissionProblem::invalid("values", path, message)
    }));
    problems
}

#[cfg(test)]
mod tests;
