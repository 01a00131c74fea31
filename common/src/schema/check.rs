//! Checks one object by one structural schema.

mod scalar;

use std::collections::{HashMap, HashSet};

use regex_lite::Regex;
use serde_json::{Map, Value};

use crate::nearest::nearest;
pub use scalar::compile;

/// Maximum depth to which objects are checked. The YAML reader has a lower limit.
const DEEPEST: usize = 128;
/// Maximum number of values that are checked in one object, counted again for every alternative. The rest is left to the API server.
const MOST_VALUES: usize = 500_000;
/// Maximum number of findings in one object: a wrong list of thousands repeats the same finding.
const MOST: usize = 100;

/// Fields that every object of the cluster has, whatever its definition.
const OWN: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// The result of checking an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// The API server would refuse the object.
    Problem {
        /// Path of the field.
        path: String,
        /// What is wrong with it.
        message: String,
    },
    /// The schema does not have the field.
    Unknown {
        /// Path of the field.
        path: String,
        /// The known field with the most similar name.
        near: Option<String>,
    },
    /// The API server would accept the object, but the user should know this.
    Note(String),
}

/// Checks one object.
#[derive(Default)]
pub(super) struct Check<'a> {
    path: String,
    depth: usize,
    values: usize,
    /// Patterns by their text; `None` if they cannot be compiled here.
    patterns: HashMap<&'a str, Option<Regex>>,
    findings: Vec<Finding>,
}

/// The schemas that apply to a value.
#[derive(Clone, Copy)]
struct Level<'a> {
    /// The schema to check.
    schema: &'a Value,
    /// The structural schema of the same field, which alone has defaults. It differs from `schema` inside `anyOf` and the like.
    base: &'a Value,
    /// Whether `schema` is the structural schema.
    structural: bool,
    /// Whether the value is an object of the cluster, whose apiVersion, kind and metadata are not checked here.
    embedded: bool,
}

/// Returns whether any part of a schema has CEL rules.
pub(super) fn has_rules(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => map
            .iter()
            .any(|(key, value)| key == "x-kubernetes-validations" || has_rules(value)),
        Value::Array(items) => items.iter().any(has_rules),
        _ => false,
    }
}

/// Returns whether a value fits a schema, as far as this module can check.
pub fn fits(schema: &Value, value: &Value) -> bool {
    let level = Level {
        schema,
        base: schema,
        structural: true,
        embedded: false,
    };
    Check::default().fits(level, value)
}

impl<'a> Check<'a> {
    /// Checks an object by the schema of its definition. apiVersion, kind and metadata are left to the API server.
    pub(super) fn root(schema: &'a Value, object: &'a Value) -> Vec<Finding> {
        let mut check = Self::default();
        let level = Level {
            schema,
            base: schema,
            structural: true,
            embedded: true,
        };
        check.value(level, object);
        check.findings
    }

    fn value(&mut self, level: Level<'a>, value: &'a Value) {
        let spent = self.depth >= DEEPEST || self.values >= MOST_VALUES;
        if spent || self.findings.len() >= MOST {
            return;
        }
        self.values += 1;
        self.depth += 1;
        self.judge(level, value);
        self.depth -= 1;
    }

    fn judge(&mut self, level: Level<'a>, value: &'a Value) {
        let schema = level.schema;
        if value.is_null() && is(level.base, "nullable") {
            return;
        }
        if level.structural
            && let Some(expected) = scalar::wrong_type(schema, value)
        {
            let found = scalar::kind(value);
            let is_scalar = value.is_number() || value.is_boolean();
            let hint = if expected == "a string" && is_scalar {
                ": put it in quotes"
            } else {
                ""
            };
            return self.problem(format!("must be {expected}, not {found}{hint}"));
        }
        match value {
            Value::Object(fields) => self.object(level, fields),
            Value::Array(items) => self.array(level, items),
            scalar => self.scalar(schema, scalar),
        }
        self.one_of(schema, value);
        self.junctors(level, value);
    }

    fn object(&mut self, level: Level<'a>, fields: &'a Map<String, Value>) {
        let Level {
            schema,
            base,
            structural,
            embedded,
        } = level;
        let property = |schema: &'a Value, name: &str| schema.get("properties")?.get(name);
        for name in strings(schema.get("required")) {
            if embedded && OWN.contains(&name) {
                continue;
            }
            let sub = property(base, name);
            let nullable = sub.is_some_and(|sub| is(sub, "nullable"));
            let there = fields.get(name).is_some_and(|v| nullable || !v.is_null());
            if !there && sub.is_none_or(|sub| sub.get("default").is_none()) {
                self.at_field(name, |check| check.problem("is required".to_owned()));
            }
        }
        if embedded
            && structural
            && !["apiVersion", "kind"]
                .iter()
                .all(|name| named(fields, name))
        {
            self.problem("is an object of the cluster and needs apiVersion and kind".to_owned());
        }
        let additional = schema.get("additionalProperties");
        for (name, value) in fields {
            if embedded && OWN.contains(&name.as_str()) {
                continue;
            }
            let sub = property(schema, name).or_else(|| additional.filter(|sub| sub.is_object()));
            let Some(sub) = sub else {
                let kept = additional == Some(&Value::Bool(true))
                    || is(schema, "x-kubernetes-preserve-unknown-fields");
                if structural && !kept {
                    self.unknown(schema, name);
                }
                continue;
            };
            let base_sub = if structural {
                sub
            } else {
                let additional = base.get("additionalProperties");
                property(base, name).or(additional).unwrap_or(sub)
            };
            // The API server drops the field, or sets its default, before it checks.
            if value.is_null() && !is(base_sub, "nullable") {
                continue;
            }
            let level = Level {
                schema: sub,
                base: base_sub,
                structural,
                embedded: is(base_sub, "x-kubernetes-embedded-resource"),
            };
            self.at_field(name, |check| check.value(level, value));
        }
        self.count(schema, "Properties", "fields", fields.len());
    }

    fn array(&mut self, level: Level<'a>, items: &'a [Value]) {
        let schema = level.schema;
        self.count(schema, "Items", "items", items.len());
        self.duplicates(schema, items);
        let Some(sub) = schema.get("items").filter(|sub| sub.is_object()) else {
            return;
        };
        let base = level.base.get("items").unwrap_or(sub);
        for (index, item) in items.iter().enumerate() {
            let level = Level {
                schema: sub,
                base,
                structural: level.structural,
                embedded: is(base, "x-kubernetes-embedded-resource"),
            };
            self.at(&format!("[{index}]"), |check| check.value(level, item));
        }
    }

    /// Reports equal items of a set, and items of a map with equal keys.
    fn duplicates(&mut self, schema: &'a Value, items: &'a [Value]) {
        let keys: Vec<&str> = strings(schema.get("x-kubernetes-list-map-keys")).collect();
        let default = |key: &str| schema.pointer(&format!("/items/properties/{key}/default"));
        let mut seen = HashSet::new();
        for (index, item) in items.iter().enumerate() {
            let identity = match schema.get("x-kubernetes-list-type").and_then(Value::as_str) {
                Some("set") => item.to_string(),
                Some("map") => {
                    let value = |key: &&str| item.get(*key).or_else(|| default(key));
                    let values: Vec<_> = keys.iter().map(value).collect();
                    format!("{values:?}")
                }
                _ => return,
            };
            if !seen.insert(identity) {
                let of = if keys.is_empty() {
                    String::new()
                } else {
                    format!(" (by {})", keys.join(", "))
                };
                self.at(&format!("[{index}]"), |check| {
                    check.problem(format!("stands twice in the list{of}"));
                });
            }
        }
    }

    /// Checks `allOf`, `anyOf`, `oneOf` and `not`. Findings of a single alternative are not problems by themselves.
    fn junctors(&mut self, level: Level<'a>, value: &'a Value) {
        let branch = |schema: &'a Value| Level {
            schema,
            structural: false,
            ..level
        };
        let schema = level.schema;
        for schema in list(schema.get("allOf")) {
            self.value(branch(schema), value);
        }
        for (word, few, many) in [
            ("anyOf", "fits none of the alternatives", None),
            (
                "oneOf",
                "fits none of the alternatives",
                Some("fits more than one of the alternatives"),
            ),
        ] {
            let Some(alternatives) = schema.get(word) else {
                continue;
            };
            let fitting = list(Some(alternatives))
                .filter(|schema| self.fits(branch(schema), value))
                .count();
            match (fitting, many) {
                (0, _) => self.problem(format!("{few} of its {word}")),
                (2.., Some(many)) => self.problem(format!("{many} of its {word}")),
                _ => {}
            }
        }
        if let Some(schema) = schema.get("not")
            && self.fits(branch(schema), value)
        {
            self.problem("is what its schema excludes (not)".to_owned());
        }
    }

    /// Returns whether a value fits, without reporting its findings.
    fn fits(&mut self, level: Level<'a>, value: &'a Value) -> bool {
        let told = std::mem::take(&mut self.findings);
        self.value(level, value);
        let found = std::mem::replace(&mut self.findings, told);
        !found
            .iter()
            .any(|finding| matches!(finding, Finding::Problem { .. }))
    }

    fn unknown(&mut self, schema: &Value, name: &str) {
        let known = schema.get("properties").and_then(Value::as_object);
        let known = known.into_iter().flat_map(Map::keys).map(String::as_str);
        let near = nearest(name, known).map(str::to_owned);
        self.at_field(name, |check| {
            let path = check.path.clone();
            check.findings.push(Finding::Unknown { path, near });
        });
    }

    fn problem(&mut self, message: String) {
        let path = if self.path.is_empty() {
            "the object".to_owned()
        } else {
            self.path.clone()
        };
        self.findings.push(Finding::Problem { path, message });
    }

    fn at_field(&mut self, name: &str, then: impl FnOnce(&mut Self)) {
        let is_plain = !name.is_empty() && !name.contains(['.', '/', '[']);
        let step = match (is_plain, self.path.is_empty()) {
            (true, true) => name.to_owned(),
            (true, false) => format!(".{name}"),
            (false, _) => format!("[{name:?}]"),
        };
        self.at(&step, then);
    }

    fn at(&mut self, step: &str, then: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        self.path.push_str(step);
        then(self);
        self.path.truncate(length);
    }
}

fn list(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    value.and_then(Value::as_array).into_iter().flatten()
}

fn strings(value: Option<&Value>) -> impl Iterator<Item = &str> {
    list(value).filter_map(Value::as_str)
}

fn is(schema: &Value, flag: &str) -> bool {
    schema.get(flag).and_then(Value::as_bool) == Some(true)
}

fn named(fields: &Map<String, Value>, name: &str) -> bool {
    let value = fields.get(name).and_then(Value::as_str);
    value.is_some_and(|text| !text.is_empty())
}
