//! Compares two structural schemas, field by field.

use std::collections::BTreeMap;

use serde_json::Value;

use super::SchemaEffect;
use super::object::{SchemaPath, SchemaSegment};
use super::rule::{self, SchemaRule};
use common::text::shorten;

/// The maximum depth. The API server's own limit for nested schemas is far lower.
const MAX_DEPTH: usize = 100;
/// Fields that every object may have, whatever its schema says.
const IMPLICIT: [&str; 3] = ["apiVersion", "kind", "metadata"];
/// The longest rule that a message shows in full, in characters.
pub(super) const MAX_RULE_LENGTH: usize = 120;

/// The changes that were found, each with its path.
#[derive(Debug, Default)]
pub(super) struct SchemaChanges {
    pub(super) changes: Vec<(SchemaPath, SchemaEffect)>,
    pub(super) unjudged: Vec<(SchemaPath, String)>,
}

/// Compares the schemas of whole objects. If there is no live schema, everything was allowed.
pub(super) fn compare(live: Option<&Value>, wanted: &Value) -> SchemaChanges {
    let mut found = SchemaChanges::default();
    found.compare_node(live, wanted, &SchemaPath::default(), 0);
    found
}

/// How a schema treats fields that it does not name.
enum UnnamedFields<'a> {
    /// The API server drops them.
    Dropped,
    /// They may have any value.
    Anything,
    /// They have to fit this schema.
    Fit(&'a Value),
}

impl SchemaChanges {
    fn compare_node(
        &mut self,
        live: Option<&Value>,
        wanted: &Value,
        path: &SchemaPath,
        depth: usize,
    ) {
        if depth > MAX_DEPTH || live == Some(wanted) {
            return;
        }
        self.compare_rules(live, wanted, path);
        self.compare_fields(live, wanted, path, depth);
        match (live, wanted.get("items")) {
            (_, None) => {}
            (None, Some(items)) => {
                self.compare_node(None, items, &path.with(SchemaSegment::Items), depth + 1);
            }
            (Some(live), Some(items)) => {
                self.compare_node(
                    live.get("items"),
                    items,
                    &path.with(SchemaSegment::Items),
                    depth + 1,
                );
            }
        }
    }

    fn compare_rules(&mut self, live: Option<&Value>, wanted: &Value, path: &SchemaPath) {
        let old = live.map(rule::parse_rules).unwrap_or_default();
        for rule in rule::parse_rules(wanted) {
            if old.iter().any(|old| old.implies(&rule)) || is_always_object(&rule, path) {
                continue;
            }
            if rule.can_check() {
                self.changes.push((path.clone(), SchemaEffect::Rule(rule)));
            } else {
                let words = format!("{rule}, which cannot be judged from here");
                self.unjudged.push((path.clone(), words));
            }
        }
        let old: Vec<&str> = live.into_iter().flat_map(validations).collect();
        for rule in validations(wanted).filter(|rule| !old.contains(rule)) {
            let text = shorten(rule.to_owned(), MAX_RULE_LENGTH);
            let words = format!("gets a rule that cannot be judged from here: {text}");
            self.unjudged.push((path.clone(), words));
        }
    }

    fn compare_fields(
        &mut self,
        live: Option<&Value>,
        wanted: &Value,
        path: &SchemaPath,
        depth: usize,
    ) {
        let is_whole =
            *path == SchemaPath::default() || flag(wanted, "x-kubernetes-embedded-resource");
        let is_implicit = |name: &str| is_whole && IMPLICIT.contains(&name);
        let old = live.map(properties).unwrap_or_default();
        let new = properties(wanted);
        let (old_others, new_others) = (
            live.map_or(UnnamedFields::Anything, unnamed_fields),
            unnamed_fields(wanted),
        );
        for (name, schema) in old
            .iter()
            .filter(|(name, _)| !new.contains_key(*name) && !is_implicit(name))
        {
            let path = path.field(name);
            match new_others {
                UnnamedFields::Dropped => self.changes.push((path, SchemaEffect::Removed)),
                UnnamedFields::Anything => {}
                UnnamedFields::Fit(wanted) => {
                    self.compare_node(Some(schema), wanted, &path, depth + 1)
                }
            }
        }
        for (name, schema) in new.iter().filter(|(name, _)| !is_implicit(name)) {
            let path = path.field(name);
            match (old.get(name), &old_others) {
                (Some(old), _) => self.compare_node(Some(old), schema, &path, depth + 1),
                (None, UnnamedFields::Dropped) => {}
                (None, UnnamedFields::Anything) => {
                    self.compare_node(None, schema, &path, depth + 1)
                }
                (None, UnnamedFields::Fit(old)) => {
                    self.compare_node(Some(old), schema, &path, depth + 1)
                }
            }
        }
        let values = path.with(SchemaSegment::Values);
        match (old_others, new_others) {
            (UnnamedFields::Dropped, _) | (_, UnnamedFields::Anything) => {}
            // Only objects have fields: a schema for a string drops nothing.
            (_, UnnamedFields::Dropped) if text(wanted, "type") == Some("object") => {
                let named = new.keys().map(|name| (*name).to_owned());
                let implicit = IMPLICIT.iter().filter(|_| is_whole);
                let named = named.chain(implicit.map(|name| (*name).to_owned()));
                let named = named.collect();
                self.changes
                    .push((path.clone(), SchemaEffect::Unnamed { named }));
            }
            (_, UnnamedFields::Dropped) => {}
            (UnnamedFields::Anything, UnnamedFields::Fit(new)) => {
                self.compare_node(None, new, &values, depth + 1)
            }
            (UnnamedFields::Fit(old), UnnamedFields::Fit(new)) => {
                self.compare_node(Some(old), new, &values, depth + 1)
            }
        }
        let was_required: Vec<&str> = live.into_iter().flat_map(required).collect();
        for name in required(wanted).filter(|name| !was_required.contains(name)) {
            // The API server fills in a missing field that has a default when it reads the object.
            let has_default = new
                .get(name)
                .is_some_and(|schema| schema.get("default").is_some());
            if !has_default && !is_implicit(name) {
                self.changes
                    .push((path.field(name), SchemaEffect::Required));
            }
        }
    }
}

fn is_always_object(rule: &SchemaRule, path: &SchemaPath) -> bool {
    *path == SchemaPath::default() && rule.demands_type()
}

fn properties(schema: &Value) -> BTreeMap<&str, &Value> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let properties = properties.into_iter().flatten();
    properties
        .map(|(name, schema)| (name.as_str(), schema))
        .collect()
}

fn required(schema: &Value) -> impl Iterator<Item = &str> {
    let required = schema.get("required").and_then(Value::as_array);
    required.into_iter().flatten().filter_map(Value::as_str)
}

fn validations(schema: &Value) -> impl Iterator<Item = &str> {
    let rules = schema
        .get("x-kubernetes-validations")
        .and_then(Value::as_array);
    let rules = rules.into_iter().flatten();
    rules.filter_map(|rule| rule.get("rule")?.as_str())
}

fn unnamed_fields(schema: &Value) -> UnnamedFields<'_> {
    match schema.get("additionalProperties") {
        _ if flag(schema, "x-kubernetes-preserve-unknown-fields") => UnnamedFields::Anything,
        Some(Value::Bool(true)) => UnnamedFields::Anything,
        Some(schema) if schema.is_object() => UnnamedFields::Fit(schema),
        _ => UnnamedFields::Dropped,
    }
}

fn flag(schema: &Value, name: &str) -> bool {
    schema.get(name).and_then(Value::as_bool) == Some(true)
}

fn text<'a>(schema: &'a Value, name: &str) -> Option<&'a str> {
    schema.get(name).and_then(Value::as_str)
}
