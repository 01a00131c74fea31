//! Changed CustomResourceDefinitions: hundreds of changes of a schema as a few numbers, and as fields of the objects rather than of the schema.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::changes::FieldChange;
use crate::crd_safety::HarmlessChanges;
use common::manifest::key::ObjectKey;

/// The path of a schema below a version.
const SCHEMA: &str = ".schema.openAPIV3Schema.";

/// What changes in one CustomResourceDefinition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DefinitionChange {
    /// The definition.
    pub key: ObjectKey,
    /// Versions that are new.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub new_versions: Vec<String>,
    /// Versions that are removed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removed_versions: Vec<String>,
    /// The number of fields that objects may set from now on.
    pub added: usize,
    /// The number of fields that objects may no longer set.
    pub removed: usize,
    /// The number of changes that forbid what was allowed.
    pub narrowed: usize,
    /// The number of changed rules that only the API server can evaluate.
    pub unjudged: usize,
    /// The number of other changes of the schema, such as defaults and formats.
    pub altered: usize,
    /// The number of changed descriptions, which change nothing.
    pub descriptions: usize,
    /// Changes outside the schema: names, conversion, printer columns. Paths, sorted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub other: Vec<String>,
}

/// A field of a schema: `v1: spec.strategy.canary.steps[]`, and what changes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaField {
    /// The version.
    pub version: String,
    /// The path of the field in an object.
    pub field: String,
    /// What changes of it, such as `maximum`; `None` for the field as a whole.
    pub schema_keyword: Option<String>,
}

impl DefinitionChange {
    /// Counts the changed fields of a definition; `None` if there are none. `harmless`: what the comparison with live objects found.
    #[must_use]
    pub fn new(
        key: &ObjectKey,
        fields: &[&FieldChange],
        harmless: Option<&HarmlessChanges>,
    ) -> Option<Self> {
        if fields.is_empty() {
            return None;
        }
        let mut change = Self {
            key: key.clone(),
            narrowed: harmless.map_or(0, |harmless| harmless.narrowed.len()),
            unjudged: harmless.map_or(0, |harmless| harmless.unjudged.len()),
            ..Self::default()
        };
        let mut other = BTreeSet::new();
        for field in fields {
            match SchemaField::parse(&field.path) {
                Some(SchemaField {
                    schema_keyword: None,
                    ..
                }) => match (&field.old, &field.new) {
                    (None, Some(schema)) => change.added += count_fields(schema),
                    (Some(schema), None) => change.removed += count_fields(schema),
                    _ => change.altered += 1,
                },
                Some(SchemaField {
                    schema_keyword: Some(keyword),
                    ..
                }) if keyword == "description" => {
                    change.descriptions += 1;
                }
                Some(_) => change.altered += 1,
                None => match (whole_version(&field.path), &field.old, &field.new) {
                    (Some(version), None, Some(_)) => change.new_versions.push(version.to_owned()),
                    (Some(version), Some(_), None) => {
                        change.removed_versions.push(version.to_owned());
                    }
                    _ => {
                        other.insert(field.path.clone());
                    }
                },
            }
        }
        change.other = other.into_iter().collect();
        Some(change)
    }

    /// Adds the numbers of another definition.
    pub fn add(&mut self, other: &Self) {
        self.added += other.added;
        self.removed += other.removed;
        self.narrowed += other.narrowed;
        self.unjudged += other.unjudged;
        self.altered += other.altered;
        self.descriptions += other.descriptions;
    }

    /// Describes the numbers: `189 fields added, 15 narrowed; no live object is affected`.
    #[must_use]
    pub fn describe(&self) -> String {
        let mut parts = Vec::new();
        for (versions, what) in [
            (&self.new_versions, "new"),
            (&self.removed_versions, "removed"),
        ] {
            if !versions.is_empty() {
                parts.push(format!("{} {what}", versions.join(", ")));
            }
        }
        let fields = |count: usize, what: &str| match count {
            1 => format!("1 field {what}"),
            count => format!("{count} fields {what}"),
        };
        let counted = [
            (self.added, fields(self.added, "added")),
            (self.removed, fields(self.removed, "removed")),
            (self.narrowed, format!("{} narrowed", self.narrowed)),
            (self.altered, format!("{} altered", self.altered)),
            (
                self.unjudged,
                match self.unjudged {
                    1 => "1 rule only the server can judge".to_owned(),
                    count => format!("{count} rules only the server can judge"),
                },
            ),
        ];
        parts.extend(
            counted
                .into_iter()
                .filter(|(count, _)| *count > 0)
                .map(|(_, text)| text),
        );
        parts.extend(self.other.iter().map(|path| format!("{path} changed")));
        if parts.is_empty() {
            return match self.descriptions {
                1 => "1 description changed".to_owned(),
                count => format!("{count} descriptions changed"),
            };
        }
        parts.join(", ")
    }
}

/// Returns the number of fields that a schema describes, itself included.
fn count_fields(schema: &Value) -> usize {
    let properties = schema.get("properties").and_then(Value::as_object);
    let below = properties.into_iter().flat_map(Map::values);
    let others = ["items", "additionalProperties"].into_iter();
    let others = others
        .filter_map(|keyword| schema.get(keyword))
        .filter(|it| it.is_object());
    // An item is not a field of its own.
    let others: usize = others.map(|schema| count_fields(schema) - 1).sum();
    1 + below.map(count_fields).sum::<usize>() + others
}

/// Returns the version that a path names as a whole: `spec.versions[v1]`.
fn whole_version(path: &str) -> Option<&str> {
    let version = path.strip_prefix("spec.versions[")?.strip_suffix(']')?;
    (!version.contains(']')).then_some(version)
}

impl SchemaField {
    /// Reads the path of a changed field of a definition; `None` if it is not in a schema.
    #[must_use]
    pub fn parse(path: &str) -> Option<Self> {
        let (version, schema) = path.strip_prefix("spec.versions[")?.split_once(']')?;
        let mut rest = schema.strip_prefix(SCHEMA)?;
        let mut field = String::new();
        let mut keyword = None;
        while !rest.is_empty() {
            if let Some(below) = rest.strip_prefix("properties") {
                let (name, below) = next_segment(below);
                if !field.is_empty() {
                    field.push('.');
                }
                field.push_str(name);
                rest = below;
            } else if let Some(below) = below_keyword(rest, "items") {
                field.push_str("[]");
                rest = below;
            } else if let Some(below) = below_keyword(rest, "additionalProperties") {
                field.push_str("{}");
                rest = below;
            } else {
                keyword = Some(rest.to_owned());
                break;
            }
        }
        Some(Self {
            version: version.to_owned(),
            field,
            schema_keyword: keyword,
        })
    }
}

/// Returns what follows a keyword and its dot; `None` if the path goes on with another word.
fn below_keyword<'a>(path: &'a str, keyword: &str) -> Option<&'a str> {
    let below = path.strip_prefix(keyword)?;
    match below.strip_prefix('.') {
        Some(below) => Some(below),
        None => below.is_empty().then_some(below),
    }
}

/// Splits `.name.rest` or `["a.b"].rest` into the name and the rest.
fn next_segment(path: &str) -> (&str, &str) {
    let (name, rest) = match path.strip_prefix("[\"") {
        Some(quoted) => quoted.split_once("\"]").unwrap_or((quoted, "")),
        None => {
            let path = path.strip_prefix('.').unwrap_or(path);
            let end = path.find(['.', '[']).unwrap_or(path.len());
            path.split_at(end)
        }
    };
    (name, rest.strip_prefix('.').unwrap_or(rest))
}
