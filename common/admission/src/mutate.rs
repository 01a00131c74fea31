//! Which values are filled in (semantics 7, 8, 10): the same for `/mutate` and for the plugin.

mod written;

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, Patch, PatchOperation, RemoveOperation, ReplaceOperation};
use serde_json::{Map, Value, json};

use self::written::{Spec, Written};
use super::review::{Operation, Request};
use super::rules::reference::{self, Unseen};
use super::{Facts, Requester, validate, writer};
use common::api::catalogue::Method;
use common::api::installation::{AddonInstallationSpec, AddonRef};
use common::api::names::{ANNOTATION_DEFAULTED, ANNOTATION_WRITTEN_BY, GROUP};
use common::catalogue::Entry;
use common::entrance;
use common::values::defaulted::{self, Filled, Record};

/// What is filled in.
#[derive(Clone, Debug, Default)]
pub struct Defaults {
    /// The changes.
    pub patch: Patch,
    /// What the facts do not have and the patch depends on.
    pub unseen: Option<Unseen>,
}

/// The patch for a request: defaults where an installation is created, or its addonRef or values change (semantics 4), and the writer
/// where policies judge the change (semantics 19).
///
/// Objects that cannot be read get no patch: the validating webhook reports what is wrong with them.
#[must_use]
pub fn mutate(request: &Request<'_>, facts: &Facts) -> Defaults {
    let ours = request.kind.group == GROUP && request.kind.kind == "AddonInstallation";
    let wanted = matches!(request.operation, Operation::Create | Operation::Update);
    if !ours || !wanted || request.is_of_subresource() {
        return Defaults::default();
    }
    let Some(Ok(object)) = request.object.map(|raw| Written::read(raw.get())) else {
        return Defaults::default();
    };
    if object.metadata.is_going() {
        return Defaults::default();
    }
    let old = request
        .old_object
        .filter(|_| request.operation == Operation::Update);
    let old = old.and_then(|raw| Written::read(raw.get()).ok());
    let is_unchanged = |old: &Written<'_>| old.spec.asks_for_the_same(&object.spec);
    let mut defaults = match old.as_ref().is_some_and(is_unchanged) {
        true => Defaults::default(),
        false => object.defaults(request.namespace.as_deref(), facts),
    };
    let written = object.written_by(&request.requester(), old.as_ref(), &defaults.patch);
    defaults.patch.0.extend(written);
    defaults
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
    let text = object.to_string();
    match Written::read(&text) {
        Ok(object) => object.defaults(namespace, facts),
        Err(_) => Defaults::default(),
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
    name.len() <= 63 && !name.contains('.') && common::api::names::is_object_name(name)
}

impl Written<'_> {
    /// What is missing in it.
    fn defaults(&self, namespace: Option<&str>, facts: &Facts) -> Defaults {
        let (metadata, spec) = (&self.metadata, &self.spec);
        let mut operations = Vec::new();
        let at = |field: &str| PointerBuf::from_tokens(["spec", field]);
        if spec.core_addon.is_none() {
            operations.push(add(at("coreAddon"), json!(false)));
        }
        if spec.create_namespace.is_none() {
            operations.push(add(at("createNamespace"), json!(true)));
        }
        let namespace = metadata.namespace.as_deref().or(namespace);
        let Found {
            entry,
            target,
            unseen,
        } = found(spec, namespace.unwrap_or_default(), facts);
        if let Some(target) = target.filter(|_| spec.target_namespace.is_none()) {
            operations.push(add(at("targetNamespace"), json!(target)));
        }
        if let Some(entry) = entry {
            operations.extend(fill_values(self, entry));
        }
        Defaults {
            patch: Patch(operations),
            unseen,
        }
    }

    /// The operation that records the requester as the writer, after those of `defaults`: where policies judge the change, and where the
    /// request changes the annotation itself. Core add-ons are exempt from policies.
    fn written_by(
        &self,
        requester: &Requester,
        old: Option<&Self>,
        defaults: &Patch,
    ) -> Option<PatchOperation> {
        let spec = AddonInstallationSpec::read(self.text);
        let current = self.metadata.annotation(ANNOTATION_WRITTEN_BY);
        let is_kept = old.is_some_and(|old| {
            let is_same = old.text == self.text
                || !validate::is_judged(&spec, Some(&AddonInstallationSpec::read(old.text)));
            is_same && old.metadata.annotation(ANNOTATION_WRITTEN_BY) == current
        });
        let text = writer::text(requester);
        if spec.core_addon || is_kept || current.as_ref() == Some(&text) {
            return None;
        }
        let mut made = defaults.0.iter();
        let has_annotations = self.metadata.annotations().is_some()
            || made.any(|one| *one.path() == "/metadata/annotations");
        Some(match has_annotations {
            true => add(
                PointerBuf::from_tokens(["metadata", "annotations", ANNOTATION_WRITTEN_BY]),
                json!(text),
            ),
            false => add(
                PointerBuf::from_tokens(["metadata", "annotations"]),
                json!({ ANNOTATION_WRITTEN_BY: text }),
            ),
        })
    }
}

/// What the installation refers to.
#[derive(Default)]
struct Found<'a> {
    /// The entry, where the reference can be resolved.
    entry: Option<&'a Entry>,
    /// Its namespace where it names none. That of several entries is known where they agree.
    target: Option<&'a str>,
    /// What is missing of it.
    unseen: Option<Unseen>,
}

fn found<'a>(spec: &Spec<'_>, namespace: &str, facts: &'a Facts) -> Found<'a> {
    let Some(reference) = spec.addon_ref else {
        return Found::default();
    };
    let Ok(reference) = entrance::from_str::<AddonRef>(reference.get()) else {
        return Found::default();
    };
    let resolved = reference::resolve(&reference, namespace, facts);
    let unseen = Unseen::of(&reference, namespace, facts, resolved.as_ref().err());
    let (entry, target) = match resolved {
        Ok(Some(choice)) => (choice.chosen, choice.chosen.and_then(default_namespace)),
        Ok(None) => (None, reference::target_namespace(&reference, facts)),
        Err(_) => (None, None),
    };
    Found {
        entry,
        target,
        unseen,
    }
}

/// The operations on `spec.values` and its record.
fn fill_values(object: &Written<'_>, entry: &Entry) -> Vec<PatchOperation> {
    let annotations = object.metadata.annotations();
    let annotation = annotations
        .as_ref()
        .and_then(|all| all.get(ANNOTATION_DEFAULTED));
    let annotation = annotation.map(|text| entrance::from_str::<String>(text.get()).ok());
    let record = Record::parse(annotation.as_ref().and_then(Option::as_deref));
    // Plain manifests take no values (semantics 10).
    let defaults = match entry.version.template.method {
        Method::Manifest => Map::new(),
        Method::GoTemplate | Method::Helm => defaulted::defaults(&entry.version),
    };
    // All others stay as they are.
    let keys = record.keys().chain(defaults.keys().cloned()).collect();
    let Ok(current) = object.spec.values(&keys) else {
        // Not an object: the schema refuses it.
        return Vec::new();
    };
    let empty = Map::new();
    let Some(Filled {
        values,
        record: new,
    }) = defaulted::fill(current.as_ref().unwrap_or(&empty), &record, defaults)
    else {
        return Vec::new();
    };
    let mut operations = Vec::new();
    let path = PointerBuf::from_tokens(["spec", "values"]);
    match current {
        Some(current) => defaulted::difference(&path, &current, &values, &mut operations),
        None if values.is_empty() => {}
        None => operations.push(add(path, Value::Object(values))),
    }
    let record = record_operation(annotations.is_some(), annotation, new.text());
    operations.extend(record);
    operations
}

/// The operation on the annotation, if one is needed.
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
        (None, Some(new)) if has_annotations => Some(add(path, json!(new))),
        (None, Some(new)) => Some(add(
            PointerBuf::from_tokens(["metadata", "annotations"]),
            json!({ ANNOTATION_DEFAULTED: new }),
        )),
    }
}

fn add(path: PointerBuf, value: Value) -> PatchOperation {
    PatchOperation::Add(AddOperation { path, value })
}

#[cfg(test)]
mod tests;
