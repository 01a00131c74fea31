//! Checks one object by one structural schema.

mod scalar;

use std::collections::{HashMap, HashSet};

use regex_lite::Regex;
use serde_json::{Map, Value};

use crate::nearest::nearest;
pub use scalar::compile_pattern;

/// Maximum depth to which objects are checked. The YAML reader has a lower limit.
const MAX_DEPTH: usize = 128;
/// Maximum number of values that are checked in one object, counted again for every alternative. The rest is left to the API server.
const MAX_VALUES: usize = 500_000;
/// Maximum number of findings in one object: a wrong list of thousands repeats the same finding.
const MAX_FINDINGS: usize = 100;

/// Fields that every object of the cluster has, whatever its definition.
const OWN: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// The result of checking an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SchemaFinding {
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
pub(super) struct SchemaChecker<'a> {
    path: String,
    depth: usize,
    values: usize,
    /// Patterns by their text; `None` if they cannot be compiled here.
    patterns: HashMap<&'a str, Option<Regex>>,
    findings: Vec<SchemaFinding>,
}

/// The schemas that apply to a value.
#[derive(Clone, Copy)]
struct SchemaLevel<'a> {
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
    let level = SchemaLevel {
        schema,
        base: schema,
        structural: true,
        embedded: false,
    };
    SchemaChecker::default().fits(level, value)
}

impl<'a> SchemaChecker<'a> {
    /// Checks an object by the schema of its definition. apiVersion, kind and metadata are left to the API server.
    pub(super) fn check_root(schema: &'a Value, object: &'a Value) -> Vec<SchemaFinding> {
        let mut check = Self::default();
        let level = SchemaLevel {
            schema,
            base: schema,
            structural: true,
            embedded: true,
        };
        check.check_value(level, object);
        check.findings
    }

    fn check_value(&mut self, level: SchemaLevel<'a>, value: &'a Value) {
        let spent = self.depth >= MAX_DEPTH || self.values >= MAX_VALUES;
        if spent || self.findings.len() >= MAX_FINDINGS {
            return;
        }
        self.values += 1;
        self.depth += 1;
        self.check_node(level, value);
        self.depth -= 1;
    }

    fn check_node(&mut self, level: SchemaLevel<'a>, value: &'a Value) {
        let schema = level.schema;
        if value.is_null() && is_true(level.base, "nullable") {
            return;
        }
        if level.structural
            && let Some(expected) = scalar::wrong_type(schema, value)
        {
            let found = scalar::type_name(value);
            let is_scalar = value.is_number() || value.is_boolean();
            let hint = if expected == "a string" && is_scalar {
                ": put it in quotes"
            } else {
                ""
            };
            return self.report_problem(format!("must be {expected}, not {found}{hint}"));
        }
        match value {
            Value::Object(fields) => self.check_object(level, fields),
            Value::Array(items) => self.check_array(level, items),
            scalar => self.check_scalar(schema, scalar),
        }
        self.check_enum(schema, value);
        self.check_combinators(level, value);
    }

    fn check_object(&mut self, level: SchemaLevel<'a>, fields: &'a Map<String, Value>) {
        let SchemaLevel {
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
            let nullable = sub.is_some_and(|sub| is_true(sub, "nullable"));
            let there = fields.get(name).is_some_and(|v| nullable || !v.is_null());
            if !there && sub.is_none_or(|sub| sub.get("default").is_none()) {
                self.in_field(name, |check| check.report_problem("is required".to_owned()));
            }
        }
        if embedded
            && structural
            && !["apiVersion", "kind"]
                .iter()
                .all(|name| has_text(fields, name))
        {
            self.report_problem(
                "is an object of the cluster and needs apiVersion and kind".to_owned(),
            );
        }
        let additional = schema.get("additionalProperties");
        for (name, value) in fields {
            if embedded && OWN.contains(&name.as_str()) {
                continue;
            }
            let sub = property(schema, name).or_else(|| additional.filter(|sub| sub.is_object()));
            let Some(sub) = sub else {
                let kept = additional == Some(&Value::Bool(true))
                    || is_true(schema, "x-kubernetes-preserve-unknown-fields");
                if structural && !kept {
                    self.report_unknown(schema, name);
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
            if value.is_null() && !is_true(base_sub, "nullable") {
                continue;
            }
            let level = SchemaLevel {
                schema: sub,
                base: base_sub,
                structural,
                embedded: is_true(base_sub, "x-kubernetes-embedded-resource"),
            };
            self.in_field(name, |check| check.check_value(level, value));
        }
        self.check_count(schema, "Properties", "fields", fields.len());
    }

    fn check_array(&mut self, level: SchemaLevel<'a>, items: &'a [Value]) {
        let schema = level.schema;
        self.check_count(schema, "Items", "items", items.len());
        self.check_duplicates(schema, items);
        let Some(sub) = schema.get("items").filter(|sub| sub.is_object()) else {
            return;
        };
        let base = level.base.get("items").unwrap_or(sub);
        for (index, item) in items.iter().enumerate() {
            let level = SchemaLevel {
                schema: sub,
                base,
                structural: level.structural,
                embedded: is_true(base, "x-kubernetes-embedded-resource"),
            };
            self.in_path(&format!("[{index}]"), |check| {
                check.check_value(level, item)
            });
        }
    }

    /// Reports equal items of a set, and items of a map with equal keys.
    fn check_duplicates(&mut self, schema: &'a Value, items: &'a [Value]) {
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
                self.in_path(&format!("[{index}]"), |check| {
                    check.report_problem(format!("stands twice in the list{of}"));
                });
            }
        }
    }

    /// Checks `allOf`, `anyOf`, `oneOf` and `not`. Findings of a single alternative are not problems by themselves.
    fn check_combinators(&mut self, level: SchemaLevel<'a>, value: &'a Value) {
        let branch = |schema: &'a Value| SchemaLevel {
            schema,
            structural: false,
            ..level
        };
        let schema = level.schema;
        for schema in list(schema.get("allOf")) {
            self.check_value(branch(schema), value);
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
                (0, _) => self.report_problem(format!("{few} of its {word}")),
                (2.., Some(many)) => self.report_problem(format!("{many} of its {word}")),
                _ => {}
            }
        }
        if let Some(schema) = schema.get("not")
            && self.fits(branch(schema), value)
        {
            self.report_problem("is what its schema excludes (not)".to_owned());
        }
    }

    /// Returns whether a value fits, without reporting its findings.
    fn fits(&mut self, level: SchemaLevel<'a>, value: &'a Value) -> bool {
        let told = std::mem::take(&mut self.findings);
        self.check_value(level, value);
        let found = std::mem::replace(&mut self.findings, told);
        !found
            .iter()
            .any(|finding| matches!(finding, SchemaFinding::Problem { .. }))
    }

    fn report_unknown(&mut self, schema: &Value, name: &str) {
        let known = schema.get("properties").and_then(Value::as_object);
        let known = known.into_iter().flat_map(Map::keys).map(String::as_str);
        let near = nearest(name, known).map(str::to_owned);
        self.in_field(name, |check| {
            let path = check.path.clone();
            check.findings.push(SchemaFinding::Unknown { path, near });
        });
    }

    fn report_problem(&mut self, message: String) {
        let path = if self.path.is_empty() {
            "the object".to_owned()
        } else {
            self.path.clone()
        };
        self.findings.push(SchemaFinding::Problem { path, message });
    }

    fn in_field(&mut self, name: &str, then: impl FnOnce(&mut Self)) {
        let is_plain = !name.is_empty() && !name.contains(['.', '/', '[']);
        let step = match (is_plain, self.path.is_empty()) {
            (true, true) => name.to_owned(),
            (true, false) => format!(".{name}"),
            (false, _) => format!("[{name:?}]"),
        };
        self.in_path(&step, then);
    }

    fn in_path(&mut self, step: &str, then: impl FnOnce(&mut Self)) {
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

fn is_true(schema: &Value, flag: &str) -> bool {
    schema.get(flag).and_then(Value::as_bool) == Some(true)
}

fn has_text(fields: &Map<String, Value>, name: &str) -> bool {
    let value = fields.get(name).and_then(Value::as_str);
    value.is_some_and(|text| !text.is_empty())
}
