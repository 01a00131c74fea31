//! Which values are filled in (semantics 7, 8, 10): the same for `/mutate` and for the plugin.

use std::collections::BTreeMap;

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, Patch, PatchOperation};
use serde::Deserialize as _;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::Facts;
use super::review::{Operation, Request};
use super::rules::reference::{self, Unseen};
use crate::api::catalogue::Method;
use crate::api::installation::AddonRef;
use crate::api::names::{ANNOTATION_DEFAULTED, GROUP};
use crate::catalogue::Entry;
use crate::values::defaulted::{self, Filled, Record};

/// What is filled in.
#[derive(Clone, Debug, Default)]
pub struct Defaults {
    /// The changes.
    pub patch: Patch,
    /// What the facts do not have and the patch depends on.
    pub unseen: Option<Unseen>,
}

/// The patch for a request: empty unless an installation is created, or its addonRef or values change (semantics 4).
///
/// Objects that cannot be read get no patch: the validating webhook reports what is wrong with them.
#[must_use]
pub fn mutate(request: &Request<'_>, facts: &Facts) -> Defaults {
    let ours = request.kind.group == GROUP && request.kind.kind == "AddonInstallation";
    let wanted = matches!(request.operation, Operation::Create | Operation::Update);
    if !ours || !wanted || request.is_of_subresource() {
        return Defaults::default();
    }
    let Some(object) = request.object.and_then(read) else {
        return Defaults::default();
    };
    let going = object.pointer("/metadata/deletionTimestamp").is_some();
    let old = request.old_object.and_then(read);
    let changed = ["/spec/addonRef", "/spec/values", "/spec/valuesFrom"]
        .iter()
        .any(|path| old.as_ref().and_then(|old| old.pointer(path)) != object.pointer(path));
    if going || (request.operation == Operation::Update && !changed) {
        return Defaults::default();
    }
    defaults(&object, request.namespace.as_deref(), facts)
}

/// Metadata and spec of an object; its status is often the larger part, and nothing depends on it.
fn read(object: &RawValue) -> Option<Value> {
    let mut fields: BTreeMap<String, &RawValue> = serde_json::from_str(object.get()).ok()?;
    fields.retain(|name, _| name == "metadata" || name == "spec");
    let fields = fields.into_iter().map(|(name, text)| {
        let value = serde_json::from_str(text.get())?;
        Ok::<(String, Value), serde_json::Error>((name, value))
    });
    fields.collect::<Result<_, _>>().ok().map(Value::Object)
}

/// The patch that fills in what is missing in an AddonInstallation, given as JSON with or without unknown fields.
/// Applied to the result, this function changes nothing.
///
/// - `spec.coreAddon` false and `spec.createNamespace` true (semantics 7, 8);
/// - `spec.targetNamespace`: the version's `defaultNamespace`, else the add-on's name, where the webhook knows the
///   entry; entries of an index or a directory only the plugin knows (semantics 7);
/// - `spec.values` at missing paths from the catalogue's values and the form's defaults, recorded in annotation
///   `kubectl-addons.dev/defaulted`; what is recorded and unchanged follows the entry (semantics 10).
///
/// `namespace` is where the object will be, if it does not say so itself.
#[must_use]
pub fn defaults(object: &Value, namespace: Option<&str>, facts: &Facts) -> Defaults {
    let fields = |name: &str| object.get(name).and_then(Value::as_object);
    let (Some(spec), Some(_)) = (fields("spec"), fields("metadata")) else {
        return Defaults::default();
    };
    let namespace = object
        .pointer("/metadata/namespace")
        .and_then(Value::as_str)
        .or(namespace)
        .unwrap_or_default();
    let mut operations = Vec::new();
    let at = |field: &str| PointerBuf::from_tokens(["spec", field]);
    for (field, default) in [("coreAddon", false), ("createNamespace", true)] {
        if is_missing(spec.get(field)) {
            operations.push(add(at(field), json!(default)));
        }
    }
    let (entry, unseen) = entry(spec, namespace, facts);
    if let Some(entry) = entry {
        if is_missing(spec.get("targetNamespace"))
            && let Some(target) = default_namespace(entry)
        {
            operations.push(add(at("targetNamespace"), json!(target)));
        }
        operations.extend(fill_values(object, spec, entry));
    }
    Defaults {
        patch: Patch(operations),
        unseen,
    }
}

/// The target namespace of an entry where the installation names none (semantics 7); `None` where neither the entry
/// has one nor the add-on's name is valid as one.
#[must_use]
pub fn default_namespace(entry: &Entry) -> Option<&str> {
    let name = entry
        .version
        .default_namespace
        .as_deref()
        .filter(|name| !name.is_empty())
        .unwrap_or(&entry.addon);
    is_namespace_name(name).then_some(name)
}

/// Whether `name` is an RFC 1123 label of at most 63 characters.
pub(crate) fn is_namespace_name(name: &str) -> bool {
    name.len() <= 63 && !name.contains('.') && crate::api::names::is_object_name(name)
}

/// The entry that the installation refers to, where the reference can be resolved, and what is missing of it.
fn entry<'a>(
    spec: &Map<String, Value>,
    namespace: &'a str,
    facts: &'a Facts,
) -> (Option<&'a Entry>, Option<Unseen>) {
    let Some(reference) = spec.get("addonRef") else {
        return (None, None);
    };
    let Ok(reference) = AddonRef::deserialize(reference) else {
        return (None, None);
    };
    let resolved = reference::resolve(&reference, namespace, facts);
    let unseen = Unseen::of(&reference, namespace, facts, resolved.as_ref().err());
    let chosen = resolved.ok().flatten();
    (chosen.and_then(|choice| choice.chosen), unseen)
}

/// The operations on `spec.values` and its record.
fn fill_values(object: &Value, spec: &Map<String, Value>, entry: &Entry) -> Vec<PatchOperation> {
    let annotations = object.pointer("/metadata/annotations");
    let annotation = annotations.and_then(|all| all.get(ANNOTATION_DEFAULTED));
    let record = Record::parse(annotation.and_then(Value::as_str));
    let current = match spec.get("values") {
        None | Some(Value::Null) => None,
        Some(Value::Object(values)) => Some(values),
        // Not an object: the schema refuses it.
        Some(_) => return Vec::new(),
    };
    // Plain manifests take no values (semantics 10).
    let defaults = match entry.version.template.method {
        Method::Manifest => Map::new(),
        Method::GoTemplate | Method::Helm => defaulted::defaults(&entry.version),
    };
    let empty = Map::new();
    let Some(Filled {
        values,
        record: new,
    }) = defaulted::fill(current.unwrap_or(&empty), &record, defaults)
    else {
        return Vec::new();
    };
    let mut operations = Vec::new();
    let path = PointerBuf::from_tokens(["spec", "values"]);
    match current {
        Some(current) => defaulted::difference(&path, current, &values, &mut operations),
        None if values.is_empty() => {}
        None => operations.push(add(path, Value::Object(values))),
    }
    operations.extend(record_operation(annotations, annotation, &new));
    operations
}

/// The operation on the annotation, if one is needed.
fn record_operation(
    annotations: Option<&Value>,
    annotation: Option<&Value>,
    new: &Record,
) -> Option<PatchOperation> {
    let path = PointerBuf::from_tokens(["metadata", "annotations", ANNOTATION_DEFAULTED]);
    let text = new.text();
    match (annotation, text) {
        (None, None) => None,
        (Some(old), Some(new)) if old.as_str() == Some(&new) => None,
        (Some(_), Some(new)) => Some(PatchOperation::Replace(json_patch::ReplaceOperation {
            path,
            value: json!(new),
        })),
        (Some(_), None) => Some(PatchOperation::Remove(json_patch::RemoveOperation { path })),
        (None, Some(new)) if annotations.is_some_and(Value::is_object) => {
            Some(add(path, json!(new)))
        }
        (None, Some(new)) => Some(add(
            PointerBuf::from_tokens(["metadata", "annotations"]),
            json!({ ANNOTATION_DEFAULTED: new }),
        )),
    }
}

fn is_missing(value: Option<&Value>) -> bool {
    matches!(value, None | Some(Value::Null))
}

fn add(path: PointerBuf, value: Value) -> PatchOperation {
    PatchOperation::Add(AddOperation { path, value })
}

#[cfg(test)]
mod tests;
