//! The effect of a changed CustomResourceDefinition on the live objects of its kind.
//!
//! [`Comparison::of`] compares the definitions, [`Scan`] checks live objects against the changes, and [`Breakage`] is the result. Similar
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
use common::schema::versions;

pub(super) use breakage::counted;
pub use breakage::{Breakage, BreakageError, Hurt, Scan};
use object::Path;
use rule::Rule;

/// The maximum number of changes of one CRD that are checked.
const MOST_CHANGES: usize = 2_000;

/// The differences between a live CRD and the wanted one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// The CRD.
    pub definition: ObjectKey,
    /// Kind of its objects.
    pub kind: String,
    /// Changes that the API server refuses, whatever live objects exist.
    pub impossible: Vec<Impossible>,
    /// Changes that may break live objects, each with the version in which to read them.
    pub changes: Vec<Change>,
    /// Changes that cannot be checked here, as sentences.
    pub unjudged: Vec<String>,
}

/// A change of an established CRD that the API server refuses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Impossible {
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
pub struct Change {
    /// The served version in which to read the objects.
    pub version: String,
    path: Path,
    what: What,
}

#[derive(Clone, Debug, PartialEq)]
enum What {
    /// The schema no longer has the field: the API server drops its value.
    Removed,
    /// The field becomes required.
    Required,
    /// The API server now drops fields that the schema does not name. It keeps those in `named`.
    Unnamed { named: Vec<String> },
    /// The value of the field has to satisfy a new rule.
    Rule(Rule),
}

impl Comparison {
    /// Compares the live CRD with the wanted one. `is_ours` tells whether the installation's apply removes the fields that a manager owns.
    #[must_use]
    pub fn of(live: &Value, wanted: &Value, is_ours: &dyn Fn(&str) -> bool) -> Self {
        let mut comparison = Self {
            definition: ObjectKey::of(wanted).unwrap_or_default(),
            kind: text(live, "/spec/names/kind").to_owned(),
            ..Self::default()
        };
        comparison.fixed_fields(live, wanted);
        comparison.versions(live, wanted, is_ours);
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
    fn fixed_fields(&mut self, live: &Value, wanted: &Value) {
        for field in [
            "spec.scope",
            "spec.group",
            "spec.names.plural",
            "spec.names.kind",
        ] {
            let pointer = format!("/{}", field.replace('.', "/"));
            let (old, new) = (text(live, &pointer), text(wanted, &pointer));
            if old != new && !old.is_empty() && !new.is_empty() {
                self.impossible.push(Impossible::Fixed {
                    field: field.to_owned(),
                    old: old.to_owned(),
                    new: new.to_owned(),
                });
            }
        }
    }

    fn versions(&mut self, live: &Value, wanted: &Value, is_ours: &dyn Fn(&str) -> bool) {
        let root_is_free = live
            .pointer("/spec/preserveUnknownFields")
            .and_then(Value::as_bool)
            == Some(true);
        for (old, new) in pairs(live, wanted, is_ours) {
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
                let is_known = |known: &&Change| known.path == path && known.what == what;
                if !self.changes.iter().any(|known| is_known(&known))
                    && self.changes.len() < MOST_CHANGES
                {
                    self.changes.push(Change {
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
        for old in versions(live).filter(|old| is_served(old)) {
            let Some(version) = name(old) else { continue };
            let next = version_of(wanted, version);
            if !next.is_some_and(is_served) {
                self.unjudged.push(format!(
                    "version {version} would no longer be served: move its clients to another version first"
                ));
            }
        }
    }
}

impl Impossible {
    /// The texts that come from manifests, for masking.
    fn texts(&mut self) -> Vec<&mut String> {
        match self {
            Self::Fixed { old, new, .. } => vec![old, new],
        }
    }
}

impl fmt::Display for Impossible {
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

impl Change {
    /// Whether the change removes data from an object, rather than making the object invalid.
    #[must_use]
    pub fn loses(&self) -> bool {
        matches!(self.what, What::Removed | What::Unnamed { .. })
    }

    /// Whether the change breaks an object that was read in [`Change::version`].
    #[must_use]
    pub fn breaks(&self, object: &Value) -> bool {
        match &self.what {
            What::Removed => self.path.any(object, &|value| !value.is_null()),
            What::Required => {
                let Some((parent, field)) = self.path.parent() else {
                    return false;
                };
                parent.any(object, &|value| {
                    value
                        .as_object()
                        .is_some_and(|fields| !fields.contains_key(field))
                })
            }
            What::Unnamed { named } => self.path.any(object, &|value| {
                value
                    .as_object()
                    .is_some_and(|fields| fields.keys().any(|key| !named.contains(key)))
            }),
            What::Rule(rule) => self.path.any(object, &|value| !rule.holds(value)),
        }
    }

    /// Describes how many objects break: `3 live objects set it`.
    fn breaking(&self, objects: &str, count: usize) -> String {
        let (singular, plural) = match self.what {
            What::Removed => ("sets it", "set it"),
            What::Required => ("lacks it", "lack it"),
            What::Unnamed { .. } => ("has such a field", "have such fields"),
            What::Rule(_) => ("does not fit", "do not fit"),
        };
        format!("{objects} {}", if count == 1 { singular } else { plural })
    }

    /// Describes that no object breaks: `no live object sets it`.
    fn harmless(&self) -> &'static str {
        match self.what {
            What::Removed => "no live object sets it",
            What::Required => "every live object has it",
            What::Unnamed { .. } => "no live object has others",
            What::Rule(_) => "every live object fits",
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = &self.path;
        match &self.what {
            What::Removed => write!(f, "{path} is removed"),
            What::Required => write!(f, "{path} becomes required"),
            What::Unnamed { .. } => write!(f, "{path} keeps only fields that the schema names"),
            What::Rule(rule) => write!(f, "{path} {rule}"),
        }
    }
}

const SCHEMA: &str = "/schema/openAPIV3Schema";

/// Returns the pairs of versions whose schemas are compared: the live storage version with the wanted one (without a conversion webhook
/// they have the same JSON), then every version with itself.
fn pairs<'a>(
    live: &'a Value,
    wanted: &'a Value,
    is_ours: &dyn Fn(&str) -> bool,
) -> Vec<(&'a Value, &'a Value)> {
    let stored = |crd: &'a Value| versions(crd).find(|version| is_storage(version));
    let mut pairs: Vec<(&Value, &Value)> = Vec::new();
    if let (Some(old), Some(new)) = (stored(live), stored(wanted)) {
        // Objects in a stored version that is removed are written again before the webhook converts (`migration`).
        let leaves = name(old).is_none_or(|name| version_of(wanted, name).is_none());
        let converts = will_convert(live, wanted, is_ours) || leaves && converts(live);
        if !converts || name(old) == name(new) {
            pairs.push((old, new));
        }
    }
    for old in versions(live) {
        let new = name(old).and_then(|name| version_of(wanted, name));
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
    strategy(crd) == Some("Webhook")
}

/// Whether a webhook converts the objects once the wanted CRD is applied. A manifest without a conversion keeps that of the live CRD only
/// if another manager owns it: the apply removes a conversion that only this installation set, and the default is none.
fn will_convert(live: &Value, wanted: &Value, is_ours: &dyn Fn(&str) -> bool) -> bool {
    if strategy(wanted).is_some() || !converts(live) {
        return converts(wanted);
    }
    let mut managers =
        managed_fields::managers_of(live, &["spec", "conversion", "strategy"]).peekable();
    // An apply does not touch a field that no manager owns.
    managers.peek().is_none() || managers.any(|manager| !is_ours(manager))
}

fn strategy(crd: &Value) -> Option<&str> {
    crd.pointer("/spec/conversion/strategy")?.as_str()
}

fn version_of<'a>(crd: &'a Value, wanted: &str) -> Option<&'a Value> {
    versions(crd).find(|version| name(version) == Some(wanted))
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
