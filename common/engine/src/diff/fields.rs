//! Compares two objects field by field, and finds the owner of each field. Items of lists are paired as the API server merges them.

mod lists;

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use addons_plan::changes::{FieldChange, FieldOwner};
use common::api::names;
use common::entrance;
use common::values::mask::MASK;

use lists::{Merge, items, merge_of};

/// What the server maintains in metadata by itself.
const NOISE: &[&str] = &[
    "managedFields",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "uid",
    "selfLink",
];
/// Counts the templates of a DaemonSet, as `generation` does; the server refuses to let a client set it.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";
/// Contains a whole Secret that `kubectl apply` wrote.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// One step of a path.
#[derive(Clone, Debug, PartialEq)]
enum Segment {
    Field(String),
    /// An item of a list whose items are identified by these values.
    Item(Vec<(String, Value)>),
    /// A value of a set.
    Value(Value),
    /// Another item of a list, and its live value.
    Index(usize, Option<Value>),
}

/// Changed fields, sorted by path.
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
    /// Every other manager and its fields.
    managers: Vec<(FieldOwner, &'a Value)>,
    /// The fields of all managers, ours as well, before and after: they tell how lists are merged.
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
            // Key by key: our marks do not count where they are all there is.
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

    /// What a set gained and lost, wherever it stands in the list.
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

    /// Whether a field of a Secret may hold its values.
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

    /// What the server counts by itself, the status, and our own labels and annotations.
    /// Whether these are labels or annotations, which hold our marks.
    fn is_marked(&self) -> bool {
        let field = |segment: &Segment, names: &[&str]| matches!(segment, Segment::Field(field) if names.contains(&field.as_str()));
        match self.path.as_slice() {
            [metadata, marks] => {
                field(metadata, &["metadata"]) && field(marks, &["labels", "annotations"])
            }
            _ => false,
        }
    }

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

/// Every manager of the object but ours, with its fields.
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

/// The fields of every manager of an object.
fn fields_of(object: &Value) -> impl Iterator<Item = &Value> {
    let managers = object.pointer("/metadata/managedFields");
    let managers = managers.and_then(Value::as_array).into_iter().flatten();
    managers.filter_map(|entry| entry.get("fieldsV1"))
}

/// Whether a manager's fields (`f:spec: {f:replicas: {}}`) hold a path, or an atomic field above it.
fn owns(fields: &Value, path: &[Segment]) -> bool {
    let mut fields = fields;
    for segment in path {
        if fields.as_object().is_some_and(Map::is_empty) {
            // A leaf above the path: it is owned as a whole. The root itself does not count.
            return true;
        }
        match next(fields, segment) {
            Some(next) => fields = next,
            None => return false,
        }
    }
    true
}

/// What a manager's fields have at a path.
fn at<'a>(fields: &'a Value, path: &[Segment]) -> Option<&'a Value> {
    path.iter().try_fold(fields, next)
}

/// What a manager's fields have one step further.
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
            // What the manifest leaves out is defaulted in the key: protocol.
            let fits = |(field, value): &(String, Value)| key.get(field) == Some(value);
            (!values.is_empty() && values.iter().all(fits)).then_some(fields)
        }),
        Segment::Value(value) => of_value(value),
        Segment::Index(index, value) => known
            .get(&format!("i:{index}"))
            .or_else(|| of_value(value.as_ref()?)),
    }
}

/// `spec.template.spec.containers[web].image`; names with dots are quoted.
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
