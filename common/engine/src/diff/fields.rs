//! Compares two objects field by field, and finds the owners of each field. List items are paired as the API server merges them.

mod lists;

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use addons_plan::changes::{FieldChange, FieldOwner};
use common::api::names;
use common::entrance;
use common::values::mask::MASK;

use lists::{MergeKind, detect_merge, items_by_key};

pub(super) use lists::items_by_guessed_keys;

/// Metadata that the server maintains by itself.
const NOISE: &[&str] = &[
    "managedFields",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "uid",
    "selfLink",
];
/// Counts the templates of a DaemonSet, as `generation` does; clients cannot set it.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";
/// Contains a whole Secret if `kubectl apply` wrote it.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// One segment of a path.
#[derive(Clone, Debug, PartialEq)]
enum FieldSegment {
    Field(String),
    /// An item of a list with these keys.
    Item(Vec<(String, Value)>),
    /// A value of a set.
    Value(Value),
    /// An item of any other list, with its live value if that is a scalar.
    Index(usize, Option<Value>),
}

/// Returns the changed fields, sorted by path.
pub(crate) fn compare(
    live: &Value,
    wanted: &Value,
    ours: &str,
    is_secret: bool,
) -> Vec<FieldChange> {
    let mut comparison = FieldComparison {
        managers: other_managers(live, ours),
        all: fields_of(live).chain(fields_of(wanted)).collect(),
        is_secret,
        is_rbac: is_rbac(wanted),
        path: Vec::new(),
        changes: Vec::new(),
    };
    comparison.compare_objects(live, wanted);
    comparison
        .changes
        .sort_by(|one, other| one.path.cmp(&other.path));
    comparison.changes
}

struct FieldComparison<'a> {
    /// The other managers with their fields.
    managers: Vec<(FieldOwner, &'a Value)>,
    /// The fields of all managers, ours included, before and after: they show how lists are merged.
    all: Vec<&'a Value>,
    is_secret: bool,
    /// Whether the object is a role or a binding.
    is_rbac: bool,
    path: Vec<FieldSegment>,
    changes: Vec<FieldChange>,
}

impl FieldComparison<'_> {
    fn compare_objects(&mut self, live: &Value, wanted: &Value) {
        let none = Map::new();
        let live = live.as_object().unwrap_or(&none);
        let wanted = wanted.as_object().unwrap_or(&none);
        let keys: BTreeSet<&String> = live.keys().chain(wanted.keys()).collect();
        for key in keys {
            if self.is_noise(key) {
                continue;
            }
            self.path.push(FieldSegment::Field(key.clone()));
            self.compare_values(live.get(key), wanted.get(key));
            self.path.pop();
        }
    }

    fn compare_values(&mut self, live: Option<&Value>, wanted: Option<&Value>) {
        match (live, wanted) {
            (live, wanted) if live == wanted => {}
            (Some(Value::Object(_)), Some(Value::Object(_))) => {
                if let (Some(live), Some(wanted)) = (live, wanted) {
                    self.compare_objects(live, wanted);
                }
            }
            (Some(Value::Array(live)), Some(Value::Array(wanted))) => {
                self.compare_lists(live, wanted)
            }
            // Compared key by key, because a map that holds only our marks does not count as changed.
            (live, wanted) if self.is_marked() => {
                self.compare_objects(live.unwrap_or(&Value::Null), wanted.unwrap_or(&Value::Null));
            }
            (live, wanted) => self.add_change(live, wanted),
        }
    }

    fn compare_lists(&mut self, live: &[Value], wanted: &[Value]) {
        if self.is_rbac && self.path.len() == 1 {
            // Rules and subjects are reviewed as rights (`addons_plan::review::rights`), whatever their positions.
            let [live, wanted] = [live, wanted].map(|list| Value::from(list.to_vec()));
            return self.add_change(Some(&live), Some(&wanted));
        }
        let merge = detect_merge(
            self.all
                .iter()
                .filter_map(|fields| fields_at(fields, &self.path)),
        );
        if merge == Some(MergeKind::Set) {
            return self.compare_sets(live, wanted);
        }
        for identity in merge
            .iter()
            .filter_map(MergeKind::keys)
            .chain(lists::guessed_keys())
        {
            let (Some(old), Some(new)) = (
                items_by_key(live, &identity),
                items_by_key(wanted, &identity),
            ) else {
                continue;
            };
            let labels: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for label in labels {
                let (old, new) = (old.get(label).copied(), new.get(label).copied());
                let Some(item) = old.or(new) else { continue };
                let values = identity
                    .iter()
                    .filter_map(|field| Some((field.clone(), item.get(field)?.clone())));
                self.path.push(FieldSegment::Item(values.collect()));
                self.compare_values(old, new);
                self.path.pop();
            }
            return;
        }
        for (index, old, new) in lists::align(live, wanted) {
            let scalar = old.filter(|value| !value.is_object() && !value.is_array());
            self.path.push(FieldSegment::Index(index, scalar.cloned()));
            self.compare_values(old, new);
            self.path.pop();
        }
    }

    /// Records which values a set gained and lost, at any position.
    fn compare_sets(&mut self, live: &[Value], wanted: &[Value]) {
        let gone = live.iter().filter(|value| !wanted.contains(value));
        let new = wanted.iter().filter(|value| !live.contains(value));
        let gone = gone.map(|value| (Some(value), None));
        for (old, new) in gone.chain(new.map(|value| (None, Some(value)))) {
            let value = old.or(new).cloned().unwrap_or_default();
            self.path.push(FieldSegment::Value(value));
            self.add_change(old, new);
            self.path.pop();
        }
    }

    fn add_change(&mut self, old: Option<&Value>, new: Option<&Value>) {
        let is_masked = self.is_secret && self.is_confidential();
        let shown = |value: Option<&Value>| match (value, is_masked) {
            (Some(_), true) => Some(Value::from(MASK)),
            (value, _) => value.cloned(),
        };
        let owners = self
            .managers
            .iter()
            .filter(|(_, fields)| owns(fields, &self.path))
            .map(|(owner, _)| owner.clone());
        self.changes.push(FieldChange {
            path: format_path(&self.path),
            old: shown(old),
            new: shown(new),
            owners: owners.collect(),
        });
    }

    /// Returns whether a field of a Secret may contain its values.
    fn is_confidential(&self) -> bool {
        let field = |index: usize| match self.path.get(index) {
            Some(FieldSegment::Field(field)) => Some(field.as_str()),
            _ => None,
        };
        match (field(0), field(1), field(2)) {
            (Some("metadata"), Some("annotations"), Some(name)) => name == LAST_APPLIED,
            (Some("metadata"), Some("annotations") | None, None) => true,
            (Some("metadata" | "type" | "immutable" | "kind" | "apiVersion"), ..) => false,
            _ => true,
        }
    }

    /// Returns whether the path is that of the labels or annotations, which hold our marks.
    fn is_marked(&self) -> bool {
        let field = |segment: &FieldSegment, names: &[&str]| matches!(segment, FieldSegment::Field(field) if names.contains(&field.as_str()));
        match self.path.as_slice() {
            [metadata, marks] => {
                field(metadata, &["metadata"]) && field(marks, &["labels", "annotations"])
            }
            _ => false,
        }
    }

    /// Returns whether a field is not compared: the status, what the server maintains by itself, and our own marks.
    fn is_noise(&self, key: &str) -> bool {
        let field = |index: usize, name: &str| matches!(self.path.get(index), Some(FieldSegment::Field(field)) if field == name);
        match self.path.len() {
            0 => key == "status",
            1 => field(0, "metadata") && NOISE.contains(&key),
            2 if field(0, "metadata") => {
                (field(1, "labels") && key == names::LABEL_OWNER)
                    || (field(1, "annotations")
                        && [names::ANNOTATION_INSTALLATION, TEMPLATE_GENERATION].contains(&key))
            }
            _ => false,
        }
    }
}

fn is_rbac(object: &Value) -> bool {
    let version = object.get("apiVersion").and_then(Value::as_str);
    version.is_some_and(|version| version.starts_with("rbac.authorization.k8s.io/"))
}

/// Returns the managers of an object except ours, with their fields.
fn other_managers<'a>(object: &'a Value, ours: &str) -> Vec<(FieldOwner, &'a Value)> {
    let text = |entry: &Value, field: &str| Some(entry.get(field)?.as_str()?.to_owned());
    object
        .pointer("/metadata/managedFields")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let owner = FieldOwner {
                manager: text(entry, "manager")?,
                since: text(entry, "time"),
            };
            Some((owner, entry.get("fieldsV1")?))
        })
        .filter(|(owner, _)| owner.manager != ours)
        .collect()
}

/// Returns the fields of every manager of an object.
fn fields_of(object: &Value) -> impl Iterator<Item = &Value> {
    let managers = object.pointer("/metadata/managedFields");
    let managers = managers.and_then(Value::as_array).into_iter().flatten();
    managers.filter_map(|entry| entry.get("fieldsV1"))
}

/// Returns whether a manager's fields (`f:spec: {f:replicas: {}}`) contain a path, or an atomic field above it.
fn owns(fields: &Value, path: &[FieldSegment]) -> bool {
    let mut fields = fields;
    for segment in path {
        if fields.as_object().is_some_and(Map::is_empty) {
            // A leaf above the path is owned as a whole. The root itself does not count.
            return true;
        }
        match fields_below(fields, segment) {
            Some(next) => fields = next,
            None => return false,
        }
    }
    true
}

/// Returns a manager's fields at a path.
fn fields_at<'a>(fields: &'a Value, path: &[FieldSegment]) -> Option<&'a Value> {
    path.iter().try_fold(fields, fields_below)
}

/// Returns a manager's fields one segment further.
fn fields_below<'a>(fields: &'a Value, segment: &FieldSegment) -> Option<&'a Value> {
    let known = fields.as_object()?;
    let tagged =
        |key: &str, tag: &str| -> Option<Value> { entrance::from_str(key.strip_prefix(tag)?).ok() };
    let of_value = |value: &Value| {
        let mut items = known.iter();
        items.find_map(|(key, fields)| (tagged(key, "v:")? == *value).then_some(fields))
    };
    match segment {
        FieldSegment::Field(name) => known.get(&format!("f:{name}")),
        FieldSegment::Item(values) => known.iter().find_map(|(key, fields)| {
            let key = tagged(key, "k:")?;
            // The key contains defaults that the manifest omits, such as protocol.
            let fits = |(field, value): &(String, Value)| key.get(field) == Some(value);
            (!values.is_empty() && values.iter().all(fits)).then_some(fields)
        }),
        FieldSegment::Value(value) => of_value(value),
        FieldSegment::Index(index, value) => known
            .get(&format!("i:{index}"))
            .or_else(|| of_value(value.as_ref()?)),
    }
}

/// Formats a path: `spec.template.spec.containers[web].image`; names with dots are quoted.
fn format_path(path: &[FieldSegment]) -> String {
    let mut text = String::new();
    for segment in path {
        match segment {
            FieldSegment::Field(name) if name.contains('.') || name.contains('/') => {
                text.push_str(&format!("[\"{name}\"]"));
            }
            FieldSegment::Field(name) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(name);
            }
            FieldSegment::Item(values) => {
                let values: Vec<String> =
                    values.iter().map(|(_, value)| plain_text(value)).collect();
                text.push_str(&format!("[{}]", values.join("/")));
            }
            FieldSegment::Value(value) => text.push_str(&format!("[{}]", plain_text(value))),
            FieldSegment::Index(index, _) => text.push_str(&format!("[{index}]")),
        }
    }
    text
}

fn plain_text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
#[path = "fields/tests.rs"]
mod tests;
