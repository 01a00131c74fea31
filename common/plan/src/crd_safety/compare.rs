//! Compares two structural schemas, field by field.

use std::collections::BTreeMap;

use serde_json::Value;

use super::What;
use super::object::{Path, Segment};
use super::rule::{self, Rule};
use common::shorten::shortened;

/// The maximum depth. The API server's own limit for nested schemas is far lower.
const DEEPEST: usize = 100;
/// Fields that every object may have, whatever its schema says.
const IMPLICIT: [&str; 3] = ["apiVersion", "kind", "metadata"];
/// The longest rule that a message shows in full, in characters.
pub(super) const LONGEST_RULE: usize = 120;

/// The changes that were found, each with its path.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) changes: Vec<(Path, What)>,
    pub(super) unjudged: Vec<(Path, String)>,
}

/// Compares the schemas of whole objects. If there is no live schema, everything was allowed.
pub(super) fn compare(live: Option<&Value>, wanted: &Value) -> Found {
    let mut found = Found::default();
    found.node(live, wanted, &Path::default(), 0);
    found
}

/// How a schema treats fields that it does not name.
enum Others<'a> {
    /// The API server drops them.
    Dropped,
    /// They may have any value.
    Anything,
    /// They have to fit this schema.
    Fit(&'a Value),
}

impl Found {
    fn node(&mut self, live: Option<&Value>, wanted: &Value, path: &Path, depth: usize) {
        if depth > DEEPEST || live == Some(wanted) {
            return;
        }
        self.rules(live, wanted, path);
        self.fields(live, wanted, path, depth);
        match (live, wanted.get("items")) {
            (_, None) => {}
            (None, Some(items)) => {
                self.node(None, items, &path.with(Segment::Items), depth + 1);
            }
            (Some(live), Some(items)) => {
                self.node(
                    live.get("items"),
                    items,
                    &path.with(Segment::Items),
                    depth + 1,
                );
            }
        }
    }

    fn rules(&mut self, live: Option<&Value>, wanted: &Value, path: &Path) {
        let old = live.map(rule::of).unwrap_or_default();
        for rule in rule::of(wanted) {
            if old.iter().any(|old| old.implies(&rule)) || is_always_object(&rule, path) {
                continue;
            }
            if rule.is_judged() {
                self.changes.push((path.clone(), What::Rule(rule)));
            } else {
                let words = format!("{rule}, which cannot be judged from here");
                self.unjudged.push((path.clone(), words));
            }
        }
        let old: Vec<&str> = live.into_iter().flat_map(validations).collect();
        for rule in validations(wanted).filter(|rule| !old.contains(rule)) {
            let text = shortened(rule.to_owned(), LONGEST_RULE);
            let words = format!("gets a rule that cannot be judged from here: {text}");
            self.unjudged.push((path.clone(), words));
        }
    }

    fn fields(&mut self, live: Option<&Value>, wanted: &Value, path: &Path, depth: usize) {
        let is_whole = *path == Path::default() || flag(wanted, "x-kubernetes-embedded-resource");
        let is_implicit = |name: &str| is_whole && IMPLICIT.contains(&name);
        let old = live.map(properties).unwrap_or_default();
        let new = properties(wanted);
        let (old_others, new_others) = (live.map_or(Others::Anything, others), others(wanted));
        for (name, schema) in old
            .iter()
            .filter(|(name, _)| !new.contains_key(*name) && !is_implicit(name))
        {
            let path = path.field(name);
            match new_others {
                Others::Dropped => self.changes.push((path, What::Removed)),
                Others::Anything => {}
                Others::Fit(wanted) => self.node(Some(schema), wanted, &path, depth + 1),
            }
        }
        for (name, schema) in new.iter().filter(|(name, _)| !is_implicit(name)) {
            let path = path.field(name);
            match (old.get(name), &old_others) {
                (Some(old), _) => self.node(Some(old), schema, &path, depth + 1),
                (None, Others::Dropped) => {}
                (None, Others::Anything) => self.node(None, schema, &path, depth + 1),
                (None, Others::Fit(old)) => self.node(Some(old), schema, &path, depth + 1),
            }
        }
        let values = path.with(Segment::Values);
        match (old_others, new_others) {
            (Others::Dropped, _) | (_, Others::Anything) => {}
            // Only objects have fields: a schema for a string drops nothing.
            (_, Others::Dropped) if text(wanted, "type") == Some("object") => {
                let named = new.keys().map(|name| (*name).to_owned());
                let implicit = IMPLICIT.iter().filter(|_| is_whole);
                let named = named.chain(implicit.map(|name| (*name).to_owned()));
                let named = named.collect();
                self.changes.push((path.clone(), What::Unnamed { named }));
            }
            (_, Others::Dropped) => {}
            (Others::Anything, Others::Fit(new)) => self.node(None, new, &values, depth + 1),
            (Others::Fit(old), Others::Fit(new)) => self.node(Some(old), new, &values, depth + 1),
        }
        let was_required: Vec<&str> = live.into_iter().flat_map(required).collect();
        for name in required(wanted).filter(|name| !was_required.contains(name)) {
            // The API server fills in a missing field that has a default when it reads the object.
            let has_default = new
                .get(name)
                .is_some_and(|schema| schema.get("default").is_some());
            if !has_default && !is_implicit(name) {
                self.changes.push((path.field(name), What::Required));
            }
        }
    }
}

fn is_always_object(rule: &Rule, path: &Path) -> bool {
    *path == Path::default() && rule.is_of_type()
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

fn others(schema: &Value) -> Others<'_> {
    match schema.get("additionalProperties") {
        _ if flag(schema, "x-kubernetes-preserve-unknown-fields") => Others::Anything,
        Some(Value::Bool(true)) => Others::Anything,
        Some(schema) if schema.is_object() => Others::Fit(schema),
        _ => Others::Dropped,
    }
}

fn flag(schema: &Value, name: &str) -> bool {
    schema.get(name).and_then(Value::as_bool) == Some(true)
}

fn text<'a>(schema: &'a Value, name: &str) -> Option<&'a str> {
    schema.get(name).and_then(Value::as_str)
}
