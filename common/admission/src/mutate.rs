//! Fills in defaults (semantics 7, 8, 10), with the same result for `/mutate` and for the plugin.

mod written;

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, Patch, PatchOperation, RemoveOperation, ReplaceOperation};
use serde_json::{Map, Value, json};

use self::written::{WrittenInstallation, WrittenSpec};
use super::review::{AdmissionOperation, ReviewRequest};
use super::rules::reference::{self, UnseenDependency};
use super::{AdmissionFacts, Requester, validate, writer};
use common::api::catalogue::Method;
use common::api::installation::{AddonInstallationSpec, AddonRef};
use common::api::names::{ANNOTATION_DEFAULTED, ANNOTATION_WRITTEN_BY, GROUP};
use common::catalogue::CatalogueEntry;
use common::entrance;
use common::values::defaulted::{self, DefaultsRecord, FilledValues};

/// The defaults that an object lacks.
#[derive(Clone, Debug, Default)]
pub struct Defaults {
    /// The changes.
    pub patch: Patch,
    /// A dependency of the patch that the facts may not contain yet.
    pub unseen: Option<UnseenDependency>,
}

/// Returns the patch for a request: defaults if an installation is created, or if its addonRef or values change (semantics 4), and the
/// writer if policies evaluate the change (semantics 19.3).
///
/// Objects that cannot be read get no patch: the validating webhook reports what is wrong with them.
#[must_use]
pub fn mutate(request: &ReviewRequest<'_>, facts: &AdmissionFacts) -> Defaults {
    let ours = request.kind.group == GROUP && request.kind.kind == "AddonInstallation";
    let wanted = matches!(
        request.operation,
        AdmissionOperation::Create | AdmissionOperation::Update
    );
    if !ours || !wanted || request.is_of_subresource() {
        return Defaults::default();
    }
    let Some(Ok(object)) = request
        .object
        .map(|raw| WrittenInstallation::read(raw.get()))
    else {
        return Defaults::default();
    };
    if object.metadata.is_being_deleted() {
        return Defaults::default();
    }
    let old = request
        .old_object
        .filter(|_| request.operation == AdmissionOperation::Update);
    let old = old.and_then(|raw| WrittenInstallation::read(raw.get()).ok());
    let is_unchanged = |old: &WrittenInstallation<'_>| old.spec.has_same_content(&object.spec);
    let mut defaults = match old.as_ref().is_some_and(is_unchanged) {
        true => Defaults::default(),
        false => object.defaults(request.namespace.as_deref(), facts),
    };
    let written = object.record_writer(&request.requester(), old.as_ref(), &defaults.patch);
    defaults.patch.0.extend(written);
    defaults
}

/// Returns the patch that fills in the missing fields of an AddonInstallation, given as JSON with or without unknown fields. Applied to
/// the result, this function changes nothing.
///
/// - `spec.coreAddon` false and `spec.createNamespace` true (semantics 7.1, 8);
/// - `spec.targetNamespace`: the version's `defaultNamespace`, else the add-on's name, if the webhook knows the entry. Only the plugin
///   knows the entries of an index or a directory (semantics 7.1);
/// - `spec.values` at missing paths, from the catalogue's values and the form's defaults. They are recorded in the annotation
///   `kubectl-addons.dev/defaulted`, and unchanged recorded values follow the entry (semantics 10.1).
///
/// `namespace` is used if the object does not name one.
#[must_use]
pub fn defaults(object: &Value, namespace: Option<&str>, facts: &AdmissionFacts) -> Defaults {
    let text = object.to_string();
    match WrittenInstallation::read(&text) {
        Ok(object) => object.defaults(namespace, facts),
        Err(_) => Defaults::default(),
    }
}

/// Returns the target namespace of an entry for an installation that names none (semantics 7.1), or `None` if neither the entry nor the
/// add-on's name gives a valid one.
#[must_use]
pub fn default_namespace(entry: &CatalogueEntry) -> Option<&str> {
    let name = entry
        .version
        .default_namespace
        .as_deref()
        .filter(|name| !name.is_empty())
        .unwrap_or(&entry.addon);
    is_namespace_name(name).then_some(name)
}

/// Returns whether `name` is an RFC 1123 label of at most 63 characters.
pub(crate) fn is_namespace_name(name: &str) -> bool {
    name.len() <= 63 && !name.contains('.') && common::api::names::is_object_name(name)
}

impl WrittenInstallation<'_> {
    /// Returns the defaults that the object lacks.
    fn defaults(&self, namespace: Option<&str>, facts: &AdmissionFacts) -> Defaults {
        let (metadata, spec) = (&self.metadata, &self.spec);
        let mut operations = Vec::new();
        let at = |field: &str| PointerBuf::from_tokens(["spec", field]);
        if spec.core_addon.is_none() {
            operations.push(add_operation(at("coreAddon"), json!(false)));
        }
        if spec.create_namespace.is_none() {
            operations.push(add_operation(at("createNamespace"), json!(true)));
        }
        let namespace = metadata.namespace.as_deref().or(namespace);
        let ReferencedEntry {
            entry,
            target,
            unseen,
        } = find_referenced_entry(spec, namespace.unwrap_or_default(), facts);
        if let Some(target) = target.filter(|_| spec.target_namespace.is_none()) {
            operations.push(add_operation(at("targetNamespace"), json!(target)));
        }
        if let Some(entry) = entry {
            operations.extend(fill_values(self, entry));
        }
        Defaults {
            patch: Patch(operations),
            unseen,
        }
    }

    /// Returns the operation that records the requester as the writer, for use after those of `defaults`. It is needed if policies
    /// evaluate the change, or if the request changes the annotation itself. Core add-ons are exempt from policies.
    fn record_writer(
        &self,
        requester: &Requester,
        old: Option<&Self>,
        defaults: &Patch,
    ) -> Option<PatchOperation> {
        let spec = AddonInstallationSpec::read(self.text);
        let current = self.metadata.annotation(ANNOTATION_WRITTEN_BY);
        let is_kept = old.is_some_and(|old| {
            let is_same = old.text == self.text
                || !validate::is_policy_relevant(
                    &spec,
                    Some(&AddonInstallationSpec::read(old.text)),
                );
            is_same && old.metadata.annotation(ANNOTATION_WRITTEN_BY) == current
        });
        let text = writer::format_writer(requester);
        if spec.core_addon || is_kept || current.as_ref() == Some(&text) {
            return None;
        }
        let mut made = defaults.0.iter();
        let has_annotations = self.metadata.annotations().is_some()
            || made.any(|one| *one.path() == "/metadata/annotations");
        Some(match has_annotations {
            true => add_operation(
                PointerBuf::from_tokens(["metadata", "annotations", ANNOTATION_WRITTEN_BY]),
                json!(text),
            ),
            false => add_operation(
                PointerBuf::from_tokens(["metadata", "annotations"]),
                json!({ ANNOTATION_WRITTEN_BY: text }),
            ),
        })
    }
}

/// The entry that an installation refers to.
#[derive(Default)]
struct ReferencedEntry<'a> {
    /// The entry, if the reference resolves to one.
    entry: Option<&'a CatalogueEntry>,
    /// The target namespace for an installation that names none. If the reference may mean several entries, it is known if they agree.
    target: Option<&'a str>,
    /// The part of the reference that the facts may not contain yet.
    unseen: Option<UnseenDependency>,
}

fn find_referenced_entry<'a>(
    spec: &WrittenSpec<'_>,
    namespace: &str,
    facts: &'a AdmissionFacts,
) -> ReferencedEntry<'a> {
    let Some(reference) = spec.addon_ref else {
        return ReferencedEntry::default();
    };
    let Ok(reference) = entrance::from_str::<AddonRef>(reference.get()) else {
        return ReferencedEntry::default();
    };
    let resolved = reference::resolve(&reference, namespace, facts);
    let unseen =
        UnseenDependency::from_reference(&reference, namespace, facts, resolved.as_ref().err());
    let (entry, target) = match resolved {
        Ok(Some(choice)) => (choice.chosen, choice.chosen.and_then(default_namespace)),
        Ok(None) => (None, reference::target_namespace(&reference, facts)),
        Err(_) => (None, None),
    };
    ReferencedEntry {
        entry,
        target,
        unseen,
    }
}

/// Returns the operations on `spec.values` and on the annotation that records defaults.
fn fill_values(object: &WrittenInstallation<'_>, entry: &CatalogueEntry) -> Vec<PatchOperation> {
    let annotations = object.metadata.annotations();
    let annotation = annotations
        .as_ref()
        .and_then(|all| all.get(ANNOTATION_DEFAULTED));
    let annotation = annotation.map(|text| entrance::from_str::<String>(text.get()).ok());
    let record = DefaultsRecord::parse(annotation.as_ref().and_then(Option::as_deref));
    // Plain manifests take no values (semantics 10.5).
    let defaults = match entry.version.template.method {
        Method::Manifest => Map::new(),
        Method::GoTemplate | Method::Helm => defaulted::defaults(&entry.version),
    };
    // Other keys stay unchanged and are not read.
    let keys = record.keys().chain(defaults.keys().cloned()).collect();
    let Ok(current) = object.spec.values(&keys) else {
        // It is not an object: the schema refuses it.
        return Vec::new();
    };
    let empty = Map::new();
    let Some(FilledValues {
        values,
        record: new,
    }) = defaulted::fill_defaults(current.as_ref().unwrap_or(&empty), &record, defaults)
    else {
        return Vec::new();
    };
    let mut operations = Vec::new();
    let path = PointerBuf::from_tokens(["spec", "values"]);
    match current {
        Some(current) => defaulted::append_difference(&path, &current, &values, &mut operations),
        None if values.is_empty() => {}
        None => operations.push(add_operation(path, Value::Object(values))),
    }
    let record = record_operation(annotations.is_some(), annotation, new.to_annotation());
    operations.extend(record);
    operations
}

/// Returns the operation on the annotation that records defaults, if one is needed.
fn record_operation(
    has_annotations: bool,
    annotation: Option<Option<String>>,
    new: Option<String>,
) -> Option<PatchOperation> {
    let path = PointerBuf::from_tokens(["metadata", "annotations", ANNOTATION_DEFAULTED]);
    match (annotation, new) {
        (None, None) => None,
        (Some(old), new) if old.is_some() && old == new => None,
        (Some(_), Some(new)) => Some(PatchOperation::Replace(ReplaceOperation {
            path,
            value: json!(new),
        })),
        (Some(_), None) => Some(PatchOperation::Remove(RemoveOperation { path })),
        (None, Some(new)) if has_annotations => Some(add_operation(path, json!(new))),
        (None, Some(new)) => Some(add_operation(
            PointerBuf::from_tokens(["metadata", "annotations"]),
            json!({ ANNOTATION_DEFAULTED: new }),
        )),
    }
}

fn add_operation(path: PointerBuf, value: Value) -> PatchOperation {
    PatchOperation::Add(AddOperation { path, value })
}

#[cfg(test)]
mod tests;
