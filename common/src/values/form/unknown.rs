//! Finds values without a field in the form (semantics 10.3, `formOnly`).

use serde_json::{Map, Value};

use super::FormViolation;
use crate::api::catalogue::FormField;
use crate::manifest::parse::type_of;
use crate::nearest::{did_you_mean, nearest};
use crate::values::path::ValuePath;

/// Maximum number of unknown paths for which the nearest field is determined, because that takes an edit distance to every field.
const MAX_HINTS: usize = 20;

/// Returns the outermost paths of `values` without a field in the form, and the paths of values that are not a map although the form has
/// fields below them. Such a value would remove what the catalogue sets there.
#[must_use]
pub fn find_unknown(form: &[FormField], values: &Map<String, Value>) -> Vec<FormViolation> {
    let parsed = form.iter().filter_map(|field| {
        let path = ValuePath::parse(&field.internal_name).ok()?;
        Some((path, field.internal_name.as_str()))
    });
    let mut search = UnknownFieldSearch {
        fields: parsed.collect(),
        at: Vec::new(),
        found: Vec::new(),
    };
    search.check_map(values);
    search.found
}

struct UnknownFieldSearch<'a> {
    /// Paths, each with its spelling in the form.
    fields: Vec<(ValuePath, &'a str)>,
    at: Vec<String>,
    found: Vec<FormViolation>,
}

impl UnknownFieldSearch<'_> {
    fn check_map(&mut self, values: &Map<String, Value>) {
        for (key, value) in values {
            self.at.push(key.clone());
            self.check_value(value);
            self.at.pop();
        }
    }

    fn check_value(&mut self, value: &Value) {
        let is_field = |path: &ValuePath| self.at.starts_with(path.keys());
        let is_above = |path: &ValuePath| path.keys().starts_with(&self.at);
        // Values below a field are checked with the field, whose value is never a map.
        if self.fields.iter().any(|(path, _)| is_field(path)) {
            return;
        }
        let below = self.fields.iter().find(|(path, _)| is_above(path));
        match (below, value) {
            (Some(_), Value::Object(inner)) => self.check_map(inner),
            (Some((_, field)), other) => {
                let message = format!(
                    "a map is expected, this is {}: the form has {field} in it",
                    type_of(other)
                );
                self.report(message);
            }
            (None, _) => {
                let message = format!(
                    "the form has no such field, and the add-on takes no other values{}",
                    self.suggestion()
                );
                self.report(message);
            }
        }
    }

    fn report(&mut self, message: String) {
        let path = ValuePath::from_keys(self.at.clone());
        self.found.extend(path.map(|path| FormViolation {
            path: path.to_string(),
            message,
        }));
    }

    /// Suggests the field with the name nearest to the key, from the same map if possible.
    fn suggestion(&self) -> String {
        let Some((key, map)) = self.at.split_last() else {
            return String::new();
        };
        if self.found.len() >= MAX_HINTS {
            return String::new();
        }
        let names = |all: bool| {
            let fields = self.fields.iter().filter_map(|(path, name)| {
                let (last, rest) = path.keys().split_last()?;
                (all || rest == map).then_some((last.as_str(), *name))
            });
            fields.collect::<Vec<_>>()
        };
        let near = [names(false), names(true)].into_iter().find_map(|names| {
            let near = nearest(key, names.iter().map(|(last, _)| *last))?;
            names.into_iter().find(|(last, _)| *last == near)
        });
        did_you_mean(near.map(|(_, name)| name))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(values: Value) -> Vec<String> {
        let form: Vec<FormField> = serde_json::from_value(json!([
            {"internalName": "spec.replicas", "type": "number"},
            {"internalName": "spec.host"},
            {"internalName": "host\\.name"},
        ]))
        .unwrap();
        find_unknown(&form, values.as_object().unwrap())
            .into_iter()
            .map(|violation| format!("{}: {}", violation.path, violation.message))
            .collect()
    }

    #[test]
    fn only_fields_of_the_form_are_known() {
        let unknown = "the form has no such field, and the add-on takes no other values";
        for (values, expected) in [
            (json!({}), vec![]),
            (json!({"spec": {}}), vec![]),
            (
                json!({"spec": {"replicas": 1, "host": "a"}, "host.name": "b"}),
                vec![],
            ),
            // A wrong type is reported where types are judged.
            (json!({"spec": {"replicas": {"nested": 1}}}), vec![]),
            (
                json!({"spec": {"replica": 1}}),
                vec![format!(
                    "spec.replica: {unknown}; did you mean spec.replicas?"
                )],
            ),
            (
                json!({"host": {"name": "s3cret"}, "other": {"deep": {}}}),
                vec![
                    format!("host: {unknown}; did you mean spec.host?"),
                    format!("other: {unknown}"),
                ],
            ),
            (
                json!({"spec": {"image": {"tag": "s3cret"}}}),
                vec![format!("spec.image: {unknown}")],
            ),
            (
                json!({"spec": null}),
                vec![
                    "spec: a map is expected, this is null: the form has spec.replicas in it"
                        .to_owned(),
                ],
            ),
            (
                json!({"spec": "s3cret"}),
                vec![
                    "spec: a map is expected, this is text: the form has spec.replicas in it"
                        .to_owned(),
                ],
            ),
        ] {
            assert_eq!(found(values.clone()), expected, "{values}");
        }
    }

    #[test]
    fn a_form_without_fields_takes_nothing() {
        let values = json!({"a": 1, "b": {}});
        let found = find_unknown(&[], values.as_object().unwrap());
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn hints_are_few() {
        let values: Map<String, Value> = (0..100_000)
            .map(|i| (format!("replica{i:06}"), json!(i)))
            .collect();
        let form = [serde_json::from_value(json!({"internalName": "replicas00000"})).unwrap()];
        let found = find_unknown(&form, &values);
        let hints = found.iter().filter(|one| one.message.contains("mean"));
        assert_eq!((found.len(), hints.count()), (100_000, MAX_HINTS));
    }
}
