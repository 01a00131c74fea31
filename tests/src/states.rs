//! Random states of an object: one field after the other gets another value that the schema of its definition allows.
//!
//! What a schema cannot say (patterns, rules) is left to the API server, which refuses such a state.

use anyhow::{Context as _, Result};
use kube::CustomResourceExt;
use serde_json::{Map, Value, json};

use crate::chaos::seed::Chance;

/// How deep optional fields are filled in.
const DEEP: usize = 6;
/// The longest generated text.
const LONGEST: usize = 40;

/// The states of objects of one kind.
pub struct States {
    /// The schema of their specification.
    schema: Value,
    /// Fields that are never changed.
    kept: Vec<&'static str>,
    /// Values that mean something, by the name of their field; others are for every text.
    known: Vec<(&'static str, Vec<Value>)>,
}

impl States {
    /// Those of a kind.
    ///
    /// # Errors
    /// A definition without a schema.
    pub fn of<K: CustomResourceExt>() -> Result<Self> {
        let definition = serde_json::to_value(K::crd())?;
        let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
        let schema = definition.pointer(spec).cloned();
        Ok(Self {
            schema: schema.context("a definition without a schema of its spec")?,
            kept: Vec::new(),
            known: Vec::new(),
        })
    }

    /// Without changes of these fields, wherever they are.
    #[must_use]
    pub fn keep(mut self, fields: &[&'static str]) -> Self {
        self.kept.extend(fields);
        self
    }

    /// With values that mean something in fields of this name.
    #[must_use]
    pub fn know(mut self, field: &'static str, values: Vec<Value>) -> Self {
        self.known.push((field, values));
        self
    }

    /// Gives one field of a specification another value, or none, and says which.
    pub fn change(&self, spec: &mut Value, chance: &mut Chance) -> String {
        let mut path = String::new();
        self.change_in(&self.schema, spec, chance, &mut path);
        path
    }

    fn change_in(&self, schema: &Value, value: &mut Value, chance: &mut Chance, path: &mut String) {
        if let (Some(items), Some(all)) = (schema.get("items"), value.as_array_mut()) {
            let at = chance.below(all.len() + 1);
            path.push_str(&format!("[{at}]"));
            let is_changed = chance.below(4) > 0;
            if at == all.len() {
                all.push(self.value(items, "", chance, 0));
            } else if is_changed && let Some(item) = all.get_mut(at) {
                self.change_in(items, item, chance, path);
            } else {
                drop(all.remove(at));
            }
            return;
        }
        let fields = self.fields(schema);
        if fields.is_empty() || !value.is_object() {
            let field = path.rsplit('.').next().unwrap_or_default();
            *value = self.value(schema, field, chance, 0);
            return;
        }
        let Some(object) = value.as_object_mut() else {
            return;
        };
        let (name, of_field) = *chance.one_of(&fields);
        path.push('.');
        path.push_str(name);
        let is_nested = of_field.get("properties").is_some() || of_field.get("items").is_some();
        let (is_changed, is_removed) = (chance.below(6) > 0, chance.below(3) == 0);
        let is_there = object.contains_key(name);
        if is_there && is_removed && !is_nested && !is_required(schema, name) {
            object.remove(name);
        } else if is_nested
            && is_changed
            && let Some(inner) = object.get_mut(name)
        {
            self.change_in(of_field, inner, chance, path);
        } else {
            let value = self.value(of_field, name, chance, 0);
            object.insert(name.to_owned(), value);
        }
    }

    /// The fields of a schema that may change, with the schema of each.
    fn fields<'a>(&self, schema: &'a Value) -> Vec<(&'a str, &'a Value)> {
        let fields = schema.get("properties").and_then(Value::as_object);
        let fields = fields.into_iter().flatten();
        let fields = fields.map(|(name, schema)| (name.as_str(), schema));
        fields
            .filter(|(name, _)| !self.kept.contains(name))
            .collect()
    }

    /// A value that a schema allows, as far as it is read here.
    fn value(&self, schema: &Value, field: &str, chance: &mut Chance, depth: usize) -> Value {
        let known = self.known.iter().find(|(name, _)| *name == field);
        if let Some((_, values)) = known
            && chance.below(4) > 0
        {
            return chance.one_of(values).clone();
        }
        if let Some(all) = schema.get("enum").and_then(Value::as_array) {
            return chance.one_of(all).clone();
        }
        match schema.get("type").and_then(Value::as_str) {
            Some("boolean") => json!(chance.below(2) == 0),
            Some("integer" | "number") => {
                let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
                let least = bound("minimum").unwrap_or(0.0);
                let numbers = [
                    least,
                    least + 1.0,
                    bound("maximum").unwrap_or(least + 1000.0),
                ];
                json!(*chance.one_of(&numbers) as i64)
            }
            Some("string") => json!(text(schema, chance)),
            Some("array") => {
                let least = schema.get("minItems").and_then(Value::as_u64);
                let least = least.and_then(|least| usize::try_from(least).ok());
                let count = least.unwrap_or(0) + chance.below(2);
                let items = schema.get("items").unwrap_or(&Value::Null);
                let items = (0..count).map(|_| self.value(items, "", chance, depth + 1));
                Value::Array(items.collect())
            }
            Some("object") => Value::Object(self.object(schema, chance, depth)),
            _ => json!({"key": chance.below(3)}),
        }
    }

    /// What is required, and some of what is not.
    fn object(&self, schema: &Value, chance: &mut Chance, depth: usize) -> Map<String, Value> {
        let mut object = Map::new();
        for (name, of_field) in self.fields(schema) {
            let is_drawn = depth < DEEP && chance.below(4) == 0;
            if is_required(schema, name) || is_drawn {
                let value = self.value(of_field, name, chance, depth + 1);
                object.insert(name.to_owned(), value);
            }
        }
        if object.is_empty() && schema.get("properties").is_none() {
            object.insert("key".to_owned(), json!(text(&Value::Null, chance)));
        }
        object
    }
}

fn is_required(schema: &Value, name: &str) -> bool {
    let required = schema.get("required").and_then(Value::as_array);
    required.is_some_and(|all| all.iter().any(|one| one == name))
}

/// A text within the bounds of its schema: empty, short, and like what tests use.
fn text(schema: &Value, chance: &mut Chance) -> String {
    let bound = |name: &str| {
        let bound = schema.get(name).and_then(Value::as_u64)?;
        usize::try_from(bound).ok()
    };
    let long = "x".repeat(bound("maxLength").unwrap_or(LONGEST).min(LONGEST));
    let all = [
        "",
        "a",
        "web",
        "1.0.0",
        "127.0.0.1:9/a",
        "https://127.0.0.1:9/a.yaml",
        long.as_str(),
    ];
    let least = bound("minLength").unwrap_or(0);
    let text = *chance.one_of(&all);
    let longest = bound("maxLength").unwrap_or(usize::MAX);
    match text.len() < least || text.len() > longest {
        true => "a".repeat(least.max(1).min(longest)),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use common::api::catalogue::AddonCatalogue;
    use common::api::installation::AddonInstallation;
    use common::api::policy::AddonPolicy;

    use super::*;

    /// The changes of a seed: the path of each, and the specification after all of them.
    fn changes(states: &States, seed: u64) -> (Vec<String>, Value) {
        let mut spec = json!({"addonRef": {"name": "web"}, "addons": [], "action": "Warn"});
        let mut chance = Chance::of(seed);
        let changes = (0..50).map(|_| states.change(&mut spec, &mut chance));
        let paths = changes.collect();
        (paths, spec)
    }

    #[test]
    fn a_seed_has_always_the_same_states() {
        for states in [
            States::of::<AddonInstallation>().unwrap(),
            States::of::<AddonCatalogue>().unwrap(),
            States::of::<AddonPolicy>().unwrap(),
        ] {
            assert_eq!(changes(&states, 1), changes(&states, 1));
            assert_ne!(changes(&states, 1), changes(&states, 2));
        }
    }

    #[test]
    fn fields_of_all_depths_are_changed_but_those_that_are_kept() {
        let states = States::of::<AddonInstallation>().unwrap();
        let states = states.keep(&["coreAddon"]);
        let mut all: Vec<String> = Vec::new();
        for seed in 0..20 {
            all.extend(changes(&states, seed).0);
        }
        for path in [".suspend", ".addonRef.version", ".values", ".valuesFrom[0]"] {
            assert!(all.iter().any(|one| one == path), "{path}: {all:?}");
        }
        assert!(all.iter().all(|path| !path.contains("coreAddon")));
        let known = vec![json!("only")];
        let states = States::of::<AddonInstallation>().unwrap();
        let states = states.know("registry", known);
        let mut found = 0;
        for seed in 0..20 {
            let (_, spec) = changes(&states, seed);
            found += usize::from(spec["registry"] == "only");
        }
        assert!(found > 0);
    }
}
