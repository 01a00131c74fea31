//! The page of all fields of our objects, as their definitions describe them.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use common::manifest::yaml::{YamlOptions, documents};
use serde_json::Value;

use super::cell;
use crate::crds;

const HEAD: &str = "\
# Field reference

<!-- Generated: cargo run -p addons-tests --bin generate reference -->

Every field of our objects, as `kubectl explain` describes it; they are explained in
[Catalogue fields](catalogue-fields.md), [Installation fields](installation-fields.md) and
[Policies](policies.md). `[]` stands for an item of a list, and `{}` for a value under any key.
";

/// A field.
#[derive(Debug, PartialEq, Eq)]
pub struct Field {
    /// `spec.addons[].name`.
    pub path: String,
    /// `string`, `object`, `list` and so on; required ones say so.
    pub kind: String,
    /// What the definition says of it.
    pub description: String,
}

/// The page.
///
/// # Errors
/// A definition that cannot be read.
pub fn page() -> Result<String> {
    let mut page = HEAD.to_owned();
    for (file, text) in crds::files()? {
        let crd = documents(text.as_bytes(), &YamlOptions::default())
            .next()
            .with_context(|| format!("{file} is empty"))??
            .value;
        let kind = crd["spec"]["names"]["kind"]
            .as_str()
            .context("a definition without a kind")?;
        write!(
            page,
            "\n## {kind}\n\n| field | type | meaning |\n|---|---|---|\n"
        )?;
        for field in fields(&crd) {
            let Field {
                path,
                kind,
                description,
            } = field;
            writeln!(page, "| `{path}` | {kind} | {} |", escaped(&description))?;
        }
    }
    Ok(page)
}

/// The fields of a definition, but for those that every object has.
#[must_use]
pub fn fields(crd: &Value) -> Vec<Field> {
    let schema = crd.pointer("/spec/versions/0/schema/openAPIV3Schema");
    let mut found = Vec::new();
    if let Some(schema) = schema {
        below(schema, "", &mut found);
    }
    found
}

fn below(schema: &Value, path: &str, found: &mut Vec<Field>) {
    if let Some(properties) = schema["properties"].as_object() {
        let required = schema["required"].as_array();
        let is_required = |name: &str| {
            required.is_some_and(|names| names.iter().any(|one| one.as_str() == Some(name)))
        };
        for (name, property) in properties {
            let path = if path.is_empty() {
                name.clone()
            } else {
                format!("{path}.{name}")
            };
            let mut kind = kind(property);
            if is_required(name) {
                kind.push_str(", required");
            }
            let description = property["description"].as_str().unwrap_or_default();
            found.push(Field {
                path: path.clone(),
                kind,
                description: description.to_owned(),
            });
            below(property, &path, found);
        }
    }
    if schema["items"].is_object() {
        below(&schema["items"], &format!("{path}[]"), found);
    }
    if schema["additionalProperties"].is_object() {
        below(
            &schema["additionalProperties"],
            &format!("{path}{{}}"),
            found,
        );
    }
}

fn kind(schema: &Value) -> String {
    if let Some(values) = schema["enum"].as_array() {
        let names: Vec<String> = values
            .iter()
            .filter_map(|value| Some(format!("`{}`", value.as_str()?)))
            .collect();
        return names.join(", ");
    }
    match schema["type"].as_str() {
        Some("array") => format!("list of {}", plural(&kind(&schema["items"]))),
        Some(name) => name.to_owned(),
        None if schema["x-kubernetes-int-or-string"] == true => "integer or string".to_owned(),
        None => "any".to_owned(),
    }
}

fn plural(kind: &str) -> String {
    match kind {
        "string" | "object" | "integer" | "number" | "boolean" => format!("{kind}s"),
        other => other.to_owned(),
    }
}

/// A description in a cell: what pages read as markup stays text.
fn escaped(text: &str) -> String {
    let text = if text.matches('`').count() % 2 == 1 {
        text.replace('`', "'")
    } else {
        text.to_owned()
    };
    cell(&text).replace('<', "&lt;")
}
