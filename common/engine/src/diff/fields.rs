//! Compares two objects field by field, and finds the owners of each field. List items are paired as the API server merges them.

mod lists;

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use addons_plan::changes::{FieldChange, FieldOwner};
use common::api::names;
use common::entrance;
use common::values::mask::MASK;

use lists::{Merge, items, merge_of};

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
enum Segment {
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
    let mut comparison = Comparison {
        managers: managers(live, ours),
        all: fields_of(live).chain(fields_of(wanted)).collect(),
        is_secret,
        path: Vec::new(),
        changes: Vec::new(),
    };
    comparison.object(live, wanted);
    comparison
        .changes
        .sort_by(|one, other| one.path.cmp(&other.path));
    comparison.changes
}

struct Comparison<'a> {
    /// The other managers with their fields.
    managers: Vec<(FieldOwner, &'a Value)>,
    /// The fields of all managers, ours included, before and after: they show how lists are merged.
    all: Vec<&'a Value>,
    is_secret: bool,
    path: Vec<Segment>,
    changes: Vec<FieldChange>,
}

impl Comparison<'_> {
    fn object(&mut self, live: &Value, wanted: &Value) {
        let none = Map::new();
        let live = live.as_object().unwrap_or(&none);
        let wanted = wanted.as_object().unwrap_or(&none);
        let keys: BTreeSet<&String> = live.keys().chain(wanted.keys()).collect();
        for key in keys {
            if self.is_noise(key) {
                continue;
            }
            self.path.push(Segment::Field(key.clone()));
            self.value(live.get(key), wanted.get(key));
            self.path.pop();
        }
    }

    fn value(&mut self, live: Option<&Value>, wanted: Option<&Value>) {
        match (live, wanted) {
            (live, wanted) if live == wanted => {}
            (Some(Value::Object(_)), Some(Value::Object(_))) => {
                if let (Some(live), Some(wanted)) = (live, wanted) {
                    self.object(live, wanted);
                }
            }
            (Some(Value::Array(live)), Some(Value::Array(wanted))) => self.list(live, wanted),
            // Compared key by key, because a map that holds only our marks does not count as changed.
            (live, wanted) if self.is_marked() => {
                self.object(live.unwrap_or(&Value::Null), wanted.unwrap_or(&Value::Null));
            }
            (live, wanted) => self.changed(live, wanted),
        }
    }

    fn list(&mut self, live: &[Value], wanted: &[Value]) {
        let merge = merge_of(self.all.iter().filter_map(|fields| at(fields, &self.path)));
        if merge == Some(Merge::Set) {
            return self.set(live, wanted);
        }
        for identity in merge.iter().filter_map(Merge::keys).chain(lists::guesses()) {
            let (Some(old), Some(new)) = (items(live, &identity), items(wanted, &identity)) else {
                continue;
            };
            let labels: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for label in labels {
                let (old, new) = (old.get(label).copied(), new.get(label).copied());
                let Some(item) = old.or(new) else { continue };
                let values = identity
                    .iter()
                    .filter_map(|field| Some((field.clone(), item.get(field)?.clone())));
                self.path.push(Segment::Item(values.collect()));
                self.value(old, new);
                self.path.pop();
            }
            return;
        }
        for index in 0..live.len().max(wanted.len()) {
            let (old, new) = (live.get(index), wanted.get(index));
            let scalar = old.filter(|value| !value.is_object() && !value.is_array());
            self.path.push(Segment::Index(index, scalar.cloned()));
            self.value(old, new);
            self.path.pop();
        }
    }

    /// Records which values a set gained and lost, at any position.
    fn set(&mut self, live: &[Value], wanted: &[Value]) {
        let gone = live.iter().filter(|value| !wanted.contains(value));
        let new = wanted.iter().filter(|value| !live.contains(value));
        let gone = gone.map(|value| (Some(value), None));
        for (old, new) in gone.chain(new.map(|value| (None, Some(value)))) {
            let value = old.or(new).cloned().unwrap_or_default();
            self.path.push(Segment::Value(value));
            self.changed(old, new);
            self.path.pop();
        }
    }

    fn changed(&mut self, old: Option<&Value>, new: Option<&Value>) {
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
            path: display(&self.path),
            old: shown(old),
            new: shown(new),
            owners: owners.collect(),
        });
    }

    /// Returns whether a field of a Secret may contain its values.
    fn is_confidential(&self) -> bool {
        let field = |index: usize| match self.path.get(index) {
            Some(Segment::Field(field)) => Some(field.as_str()),
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
        let field = |segment: &Segment, names: &[&str]| matches!(segment, Segment::Field(field) if names.contains(&field.as_str()));
        match self.path.as_slice() {
            [metadata, marks] => {
                field(metadata, &["metadata"]) && field(marks, &["labels", "annotations"])
            }
            _ => false,
        }
    }

    /// Returns whether a field is not compared: the status, what the server maintains by itself, and our own marks.
    fn is_noise(&self, key: &str) -> bool {
        let field = |index: usize, name: &str| matches!(self.path.get(index), Some(Segment::Field(field)) if field == name);
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

/// Returns the managers of an object except ours, with their fields.
fn managers<'a>(object: &'a Value, ours: &str) -> Vec<(FieldOwner, &'a Value)> {
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
fn owns(fields: &Value, path: &[Segment]) -> bool {
    let mut fields = fields;
    for segment in path {
        if fields.as_object().is_some_and(Map::is_empty) {
            // A leaf above the path is owned as a whole. The root itself does not count.
            return true;
        }
        match next(fields, segment) {
            Some(next) => fields = next,
            None => return false,
        }
    }
    true
}

/// Returns a manager's fields at a path.
fn at<'a>(fields: &'a Value, path: &[Segment]) -> Option<&'a Value> {
    path.iter().try_fold(fields, next)
}

/// Returns a manager's fields one segment further.
fn next<'a>(fields: &'a Value, segment: &Segment) -> Option<&'a Value> {
    let known = fields.as_object()?;
    let tagged =
        |key: &str, tag: &str| -> Option<Value> { entrance::from_str(key.strip_prefix(tag)?).ok() };
    let of_value = |value: &Value| {
        let mut items = known.iter();
        items.find_map(|(key, fields)| (tagged(key, "v:")? == *value).then_some(fields))
    };
    match segment {
        Segment::Field(name) => known.get(&format!("f:{name}")),
        Segment::Item(values) => known.iter().find_map(|(key, fields)| {
            let key = tagged(key, "k:")?;
            // The key contains defaults that the manifest omits, such as protocol.
            let fits = |(field, value): &(String, Value)| key.get(field) == Some(value);
            (!values.is_empty() && values.iter().all(fits)).then_some(fields)
        }),
        Segment::Value(value) => of_value(value),
        Segment::Index(index, value) => known
            .get(&format!("i:{index}"))
            .or_else(|| of_value(value.as_ref()?)),
    }
}

/// Formats a path: `spec.template.spec.containers[web].image`; names with dots are quoted.
fn display(path: &[Segment]) -> String {
    let mut text = String::new();
    for segment in path {
        match segment {
            Segment::Field(name) if name.contains('.') || name.contains('/') => {
                text.push_str(&format!("[\"{name}\"]"));
            }
            Segment::Field(name) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(name);
            }
            Segment::Item(values) => {
                let values: Vec<String> = values.iter().map(|(_, value)| plain(value)).collect();
                text.push_str(&format!("[{}]", values.join("/")));
            }
            Segment::Value(value) => text.push_str(&format!("[{}]", plain(value))),
            Segment::Index(index, _) => text.push_str(&format!("[{index}]")),
        }
    }
    text
}

fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
#[path = "fields/tests.rs"]
mod tests;
