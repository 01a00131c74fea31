//! The effect of a changed CustomResourceDefinition on the live objects of its kind.
//!
//! [`CrdComparison::new`] compares the definitions, [`ObjectScan`] checks live objects against the changes, and [`Breakage`] is the result. Similar
//! tools (carvel kapp's CRDUpgradeSafety, kubernetes-sigs/crdify) refuse by the schemas alone: a removed field that no object sets, a
//! dropped pattern, any changed text. Here a change is refused only if it breaks a live object. Fields that a controller writes again
//! (`status`, if it is a subresource) are ignored, and rules that cannot be checked here (CEL) are warnings.

mod breakage;
mod compare;
mod object;
mod rule;

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use common::manifest::key::ObjectKey;
use common::manifest::managed_fields;
use common::schema::definition_versions;

pub(super) use breakage::count_kind;
pub use breakage::{
    AffectedObjects, Breakage, BreakageError, HarmlessChanges, ObjectScan, ScanResult,
};
use object::SchemaPath;
use rule::SchemaRule;

/// The maximum number of changes of one CRD that are checked.
const MOST_CHANGES: usize = 2_000;

/// The differences between a live CRD and the wanted one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CrdComparison {
    /// The CRD.
    pub definition: ObjectKey,
    /// Kind of its objects.
    pub kind: String,
    /// Changes that the API server refuses, whatever live objects exist.
    pub impossible: Vec<ImpossibleChange>,
    /// Changes that may break live objects, each with the version in which to read them.
    pub changes: Vec<SchemaChange>,
    /// Rules that only the API server can evaluate, as sentences.
    pub unjudged: Vec<String>,
    /// Versions that would no longer be served, as sentences.
    pub unserved: Vec<String>,
}

/// A change of an established CRD that the API server refuses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ImpossibleChange {
    /// A field that never changes. Only a new CRD can have another value.
    Fixed {
        /// `spec.scope`.
        field: String,
        /// The live value.
        old: String,
        /// The wanted value.
        new: String,
    },
}

/// One change of a schema that may break an object.
#[derive(Clone, Debug, PartialEq)]
pub struct SchemaChange {
    /// The served version in which to read the objects.
    pub version: String,
    path: SchemaPath,
    what: SchemaEffect,
}

#[derive(Clone, Debug, PartialEq)]
enum SchemaEffect {
    /// The schema no longer has the field: the API server drops its value.
    Removed,
    /// The field becomes required.
    Required,
    /// The API server now drops fields that the schema does not name. It keeps those in `named`.
    Unnamed { named: Vec<String> },
    /// The value of the field has to satisfy a new rule.
    Rule(SchemaRule),
}

impl CrdComparison {
    /// Compares the live CRD with the wanted one. `is_ours` tells whether the installation's apply removes the fields that a manager owns.
    #[must_use]
    pub fn new(live: &Value, wanted: &Value, is_ours: &dyn Fn(&str) -> bool) -> Self {
        let mut comparison = Self {
            definition: ObjectKey::from_object(wanted).unwrap_or_default(),
            kind: text(live, "/spec/names/kind").to_owned(),
            ..Self::default()
        };
        comparison.compare_fixed_fields(live, wanted);
        comparison.compare_versions(live, wanted, is_ours);
        comparison
    }

    /// Returns the versions in which objects have to be read, without duplicates.
    #[must_use]
    pub fn versions_to_read(&self) -> Vec<&str> {
        let mut versions: Vec<&str> = Vec::new();
        for change in &self.changes {
            if !versions.contains(&change.version.as_str()) {
                versions.push(&change.version);
            }
        }
        versions
    }

    /// Compares the fields that the API server never changes in an established CRD.
    fn compare_fixed_fields(&mut self, live: &Value, wanted: &Value) {
        for field in [
            "spec.scope",
            "spec.group",
            "spec.names.plural",
            "spec.names.kind",
        ] {
            let pointer = format!("/{}", field.replace('.', "/"));
            let (old, new) = (text(live, &pointer), text(wanted, &pointer));
            if old != new && !old.is_empty() && !new.is_empty() {
                self.impossible.push(ImpossibleChange::Fixed {
                    field: field.to_owned(),
                    old: old.to_owned(),
                    new: new.to_owned(),
                });
            }
        }
    }

    fn compare_versions(&mut self, live: &Value, wanted: &Value, is_ours: &dyn Fn(&str) -> bool) {
        let root_is_free = live
            .pointer("/spec/preserveUnknownFields")
            .and_then(Value::as_bool)
            == Some(true);
        for (old, new) in version_pairs(live, wanted, is_ours) {
            let (Some(version), Some(new_schema)) = (name(old), new.pointer(SCHEMA)) else {
                continue;
            };
            // Objects cannot be read in an unserved version; the storage version has the same changes.
            if !is_served(old) {
                continue;
            }
            let old_schema = old.pointer(SCHEMA).filter(|_| !root_is_free);
            let mut found = compare::compare(old_schema, new_schema);
            if new.pointer("/subresources/status").is_some() {
                found.changes.retain(|(path, _)| !path.is_under("status"));
                found.unjudged.retain(|(path, _)| !path.is_under("status"));
            }
            for (path, what) in found.changes {
                let is_known = |known: &&SchemaChange| known.path == path && known.what == what;
                if !self.changes.iter().any(|known| is_known(&known))
                    && self.changes.len() < MOST_CHANGES
                {
                    self.changes.push(SchemaChange {
                        version: version.to_owned(),
                        path,
                        what,
                    });
                }
            }
            for (path, words) in found.unjudged {
                let words = format!("{path} {words}");
                if !self.unjudged.contains(&words) {
                    self.unjudged.push(words);
                }
            }
        }
        for old in definition_versions(live).filter(|old| is_served(old)) {
            let Some(version) = name(old) else { continue };
            let next = find_version(wanted, version);
            if !next.is_some_and(is_served) {
                self.unserved.push(format!(
                    "version {version} would no longer be served: move its clients to another version first"
                ));
            }
        }
    }
}

impl ImpossibleChange {
    /// The texts that come from manifests, for masking.
    fn texts(&mut self) -> Vec<&mut String> {
        match self {
            Self::Fixed { old, new, .. } => vec![old, new],
        }
    }
}

impl fmt::Display for ImpossibleChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed { field, old, new } => write!(
                f,
                "{field} cannot change from {old} to {new}; save the objects, uninstall and delete the definition, then \
                 install the new version"
            ),
        }
    }
}

impl SchemaChange {
    /// Whether the change removes data from an object, rather than making the object invalid.
    #[must_use]
    pub fn loses_data(&self) -> bool {
        matches!(
            self.what,
            SchemaEffect::Removed | SchemaEffect::Unnamed { .. }
        )
    }

    /// Whether the change breaks an object that was read in [`SchemaChange::version`].
    #[must_use]
    pub fn breaks(&self, object: &Value) -> bool {
        match &self.what {
            SchemaEffect::Removed => self.path.any_value(object, &|value| !value.is_null()),
            SchemaEffect::Required => {
                let Some((parent, field)) = self.path.parent() else {
                    return false;
                };
                parent.any_value(object, &|value| {
                    value
                        .as_object()
                        .is_some_and(|fields| !fields.contains_key(field))
                })
            }
            SchemaEffect::Unnamed { named } => self.path.any_value(object, &|value| {
                value
                    .as_object()
                    .is_some_and(|fields| fields.keys().any(|key| !named.contains(key)))
            }),
            SchemaEffect::Rule(rule) => self.path.any_value(object, &|value| !rule.accepts(value)),
        }
    }

    /// Describes how many objects break: `3 live objects set it`.
    fn describe_breaking(&self, objects: &str, count: usize) -> String {
        let (singular, plural) = match self.what {
            SchemaEffect::Removed => ("sets it", "set it"),
            SchemaEffect::Required => ("lacks it", "lack it"),
            SchemaEffect::Unnamed { .. } => ("has such a field", "have such fields"),
            SchemaEffect::Rule(_) => ("does not fit", "do not fit"),
        };
        format!("{objects} {}", if count == 1 { singular } else { plural })
    }

    /// Describes that no object breaks: `no live object sets it`.
    fn describe_harmless(&self) -> &'static str {
        match self.what {
            SchemaEffect::Removed => "no live object sets it",
            SchemaEffect::Required => "every live object has it",
            SchemaEffect::Unnamed { .. } => "no live object has others",
            SchemaEffect::Rule(_) => "every live object fits",
        }
    }
}

impl fmt::Display for SchemaChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = &self.path;
        match &self.what {
            SchemaEffect::Removed => write!(f, "{path} is removed"),
            SchemaEffect::Required => write!(f, "{path} becomes required"),
            SchemaEffect::Unnamed { .. } => {
                write!(f, "{path} keeps only fields that the schema names")
            }
            SchemaEffect::Rule(rule) => write!(f, "{path} {rule}"),
        }
    }
}

const SCHEMA: &str = "/schema/openAPIV3Schema";

/// Returns the pairs of versions whose schemas are compared: the live storage version with the wanted one (without a conversion webhook
/// they have the same JSON), then every version with itself.
fn version_pairs<'a>(
    live: &'a Value,
    wanted: &'a Value,
    is_ours: &dyn Fn(&str) -> bool,
) -> Vec<(&'a Value, &'a Value)> {
    let stored = |crd: &'a Value| definition_versions(crd).find(|version| is_storage(version));
    let mut pairs: Vec<(&Value, &Value)> = Vec::new();
    if let (Some(old), Some(new)) = (stored(live), stored(wanted)) {
        // Objects in a stored version that is removed are written again before the webhook converts (`migration`).
        let leaves = name(old).is_none_or(|name| find_version(wanted, name).is_none());
        let converts = will_convert(live, wanted, is_ours) || leaves && converts(live);
        if !converts || name(old) == name(new) {
            pairs.push((old, new));
        }
    }
    for old in definition_versions(live) {
        let new = name(old).and_then(|name| find_version(wanted, name));
        if let Some(new) = new.filter(|new| is_served(new))
            && !pairs.contains(&(old, new))
        {
            pairs.push((old, new));
        }
    }
    pairs
}

/// Whether a webhook converts the objects of the CRD.
fn converts(crd: &Value) -> bool {
    conversion_strategy(crd) == Some("Webhook")
}

/// Whether a webhook converts the objects once the wanted CRD is applied. A manifest without a conversion keeps that of the live CRD only
/// if another manager owns it: the apply removes a conversion that only this installation set, and the default is none.
fn will_convert(live: &Value, wanted: &Value, is_ours: &dyn Fn(&str) -> bool) -> bool {
    if conversion_strategy(wanted).is_some() || !converts(live) {
        return converts(wanted);
    }
    let mut managers =
        managed_fields::managers_of(live, &["spec", "conversion", "strategy"]).peekable();
    // An apply does not touch a field that no manager owns.
    managers.peek().is_none() || managers.any(|manager| !is_ours(manager))
}

fn conversion_strategy(crd: &Value) -> Option<&str> {
    crd.pointer("/spec/conversion/strategy")?.as_str()
}

fn find_version<'a>(crd: &'a Value, wanted: &str) -> Option<&'a Value> {
    definition_versions(crd).find(|version| name(version) == Some(wanted))
}

fn name(version: &Value) -> Option<&str> {
    version.get("name")?.as_str()
}

fn is_served(version: &Value) -> bool {
    version.get("served").and_then(Value::as_bool) == Some(true)
}

fn is_storage(version: &Value) -> bool {
    version.get("storage").and_then(Value::as_bool) == Some(true)
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
