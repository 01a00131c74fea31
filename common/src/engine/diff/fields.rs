//! Compares two objects field by field, and finds out whose a field is.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::api::names;

use super::FieldChange;

/// What the server keeps in metadata by itself.
const NOISE: &[&str] = &[
    "managedFields",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "uid",
    "selfLink",
];
const MASK: &str = "***";

/// One step of a path.
#[derive(Clone, Debug, PartialEq)]
enum Segment {
    Field(String),
    /// An item of a list of objects with distinct names.
    Named(String),
    Index(usize),
}

/// Changed fields, sorted by path.
pub(super) fn compare(
    live: &Value,
    wanted: &Value,
    ours: &str,
    is_secret: bool,
) -> Vec<FieldChange> {
    let mut comparison = Comparison {
        managers: managers(live, ours),
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
    /// Name and fields of every other manager.
    managers: Vec<(&'a str, &'a Value)>,
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
            (live, wanted) => self.changed(live, wanted),
        }
    }

    fn list(&mut self, live: &[Value], wanted: &[Value]) {
        if let (Some(live_names), Some(wanted_names)) = (item_names(live), item_names(wanted)) {
            let item = |items: &[Value], name: &str| {
                items
                    .iter()
                    .position(|item| item.get("name").and_then(Value::as_str) == Some(name))
            };
            for name in live_names.union(&wanted_names) {
                self.path.push(Segment::Named((*name).to_owned()));
                let old = item(live, name).and_then(|index| live.get(index));
                let new = item(wanted, name).and_then(|index| wanted.get(index));
                self.value(old, new);
                self.path.pop();
            }
            return;
        }
        for index in 0..live.len().max(wanted.len()) {
            self.path.push(Segment::Index(index));
            self.value(live.get(index), wanted.get(index));
            self.path.pop();
        }
    }

    fn changed(&mut self, old: Option<&Value>, new: Option<&Value>) {
        let is_masked = self.is_secret
            && matches!(self.path.first(), Some(Segment::Field(field)) if field == "data" || field == "stringData");
        let shown = |value: Option<&Value>| match (value, is_masked) {
            (Some(_), true) => Some(Value::from(MASK)),
            (value, _) => value.cloned(),
        };
        let manager = self
            .managers
            .iter()
            .find(|(_, fields)| owns(fields, &self.path));
        self.changes.push(FieldChange {
            path: display(&self.path),
            old: shown(old),
            new: shown(new),
            manager: manager.map(|(name, _)| (*name).to_owned()),
        });
    }

    /// What the server counts by itself, status, and our own marks.
    fn is_noise(&self, key: &str) -> bool {
        let field = |index: usize, name: &str| matches!(self.path.get(index), Some(Segment::Field(field)) if field == name);
        match self.path.len() {
            0 => key == "status",
            1 => field(0, "metadata") && NOISE.contains(&key),
            2 if field(0, "metadata") => {
                (field(1, "labels") && key == names::LABEL_OWNER)
                    || (field(1, "annotations") && key == names::ANNOTATION_INSTALLATION)
            }
            _ => false,
        }
    }
}

/// The distinct names of a list's items; `None` where they are no objects with distinct names.
fn item_names(items: &[Value]) -> Option<BTreeSet<&str>> {
    let mut names = BTreeSet::new();
    for item in items {
        let name = item.as_object()?.get("name")?.as_str()?;
        if !names.insert(name) {
            return None;
        }
    }
    Some(names)
}

/// Fields of every manager of the object but ours.
fn managers<'a>(object: &'a Value, ours: &str) -> Vec<(&'a str, &'a Value)> {
    object
        .pointer("/metadata/managedFields")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some((entry.get("manager")?.as_str()?, entry.get("fieldsV1")?)))
        .filter(|(manager, _)| *manager != ours)
        .collect()
}

/// Whether a manager's fields (`f:spec: {f:replicas: {}}`) hold a path, or an atomic field above it.
fn owns(fields: &Value, path: &[Segment]) -> bool {
    let mut fields = fields;
    for segment in path {
        let Some(known) = fields.as_object() else {
            return false;
        };
        if known.is_empty() {
            // A leaf above the path: owned as a whole. The root itself is none.
            return true;
        }
        let next = match segment {
            Segment::Field(name) => known.get(&format!("f:{name}")),
            Segment::Named(name) => known.iter().find_map(|(key, fields)| {
                let key: Value = serde_json::from_str(key.strip_prefix("k:")?).ok()?;
                (key.get("name")?.as_str()? == name).then_some(fields)
            }),
            Segment::Index(index) => known.get(&format!("i:{index}")),
        };
        match next {
            Some(next) => fields = next,
            None => return false,
        }
    }
    true
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
            Segment::Named(name) => text.push_str(&format!("[{name}]")),
            Segment::Index(index) => text.push_str(&format!("[{index}]")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lines(changes: &[FieldChange]) -> Vec<String> {
        let text = |value: &Option<Value>| value.as_ref().map_or("-".to_owned(), Value::to_string);
        let line = |change: &FieldChange| {
            let manager = change.manager.as_deref().unwrap_or("-");
            format!(
                "{} {} {} {manager}",
                change.path,
                text(&change.old),
                text(&change.new)
            )
        };
        changes.iter().map(line).collect()
    }

    #[test]
    fn fields_their_values_and_their_managers() {
        let live = json!({
            "metadata": {"resourceVersion": "1", "generation": 1, "labels": {"app.kubernetes.io/name": "a", "kubectl-addons.dev/owner": "x"},
                "managedFields": [
                    {"manager": "ours", "fieldsV1": {"f:spec": {"f:paused": {}}}},
                    {"manager": "kubectl-scale", "fieldsV1": {"f:spec": {"f:replicas": {},
                        "f:containers": {"k:{\"name\":\"web\"}": {".": {}, "f:image": {}}}, "f:args": {}}}}]},
            "spec": {"replicas": 5, "paused": true, "args": ["a", "b"],
                "containers": [{"name": "old"}, {"name": "web", "image": "web:1"}]},
            "status": {"replicas": 5},
        });
        let wanted = json!({
            "metadata": {"resourceVersion": "2", "generation": 2, "labels": {"app.kubernetes.io/name": "b"}},
            "spec": {"replicas": 2, "args": ["a"],
                "containers": [{"name": "web", "image": "web:2"}, {"name": "new"}]},
        });
        assert_eq!(
            lines(&compare(&live, &wanted, "ours", false)),
            [
                r#"metadata.labels["app.kubernetes.io/name"] "a" "b" -"#,
                r#"spec.args[1] "b" - kubectl-scale"#,
                r#"spec.containers[new] - {"name":"new"} -"#,
                r#"spec.containers[old] {"name":"old"} - -"#,
                r#"spec.containers[web].image "web:1" "web:2" kubectl-scale"#,
                "spec.paused true - -",
                "spec.replicas 5 2 kubectl-scale",
            ]
        );
    }

    #[test]
    fn values_of_secrets_are_masked() {
        let live = json!({"data": {"password": "aHVudGVyMg=="}, "type": "Opaque"});
        let wanted =
            json!({"data": {"password": "aHVudGVyMw==", "more": "eA=="}, "type": "Opaque"});
        let changes = compare(&live, &wanted, "ours", true);
        assert_eq!(
            lines(&changes),
            [r#"data.more - "***" -"#, r#"data.password "***" "***" -"#]
        );
        let same = json!({"data": null, "type": "x"});
        assert!(!format!("{:?}", compare(&live, &same, "ours", true)).contains("aHVu"));
    }
}
