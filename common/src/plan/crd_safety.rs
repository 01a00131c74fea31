//! What a new version of a CustomResourceDefinition does to the live objects of its kind.
//!
//! [`Comparison::of`] finds what changes, [`Scan`] judges live objects by it, [`Breakage`] says what they lose. Peers (carvel
//! kapp's CRDUpgradeSafety, kubernetes-sigs/crdify) refuse by the schemas alone: a removed field that no object sets, a dropped
//! pattern, any changed text. Here a change is refused only where a live object breaks, and what a controller writes again
//! (`status`, where it is a subresource) is left out; what cannot be judged here (CEL rules) is a warning.

mod breakage;
mod compare;
mod object;
mod rule;

use std::fmt;

use serde_json::Value;

use super::schema::versions;
use crate::manifest::key::ObjectKey;

pub(super) use breakage::counted;
pub use breakage::{Breakage, BreakageError, Hurt, Scan};
use object::Path;
use rule::Rule;

/// Changes of one definition that are looked at; a schema that changes more is another one.
const MOST_CHANGES: usize = 2_000;

/// What changes between a live definition and the wanted one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// The definition.
    pub definition: ObjectKey,
    /// Kind of its objects.
    pub kind: String,
    /// What the API server will refuse whatever live objects there are, with the way out.
    pub impossible: Vec<String>,
    /// What may break live objects, by the version they are read in.
    pub changes: Vec<Change>,
    /// What cannot be judged from here, in words.
    pub unjudged: Vec<String>,
}

/// One change of a schema that an object can break by.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The served version that objects are read in.
    pub version: String,
    path: Path,
    what: What,
}

#[derive(Clone, Debug, PartialEq)]
enum What {
    /// The field is not in the schema any more: the API server drops its value.
    Removed,
    /// The field has to be there.
    Required,
    /// What the schema does not name is dropped from now on; `named` stays.
    Unnamed { named: Vec<String> },
    /// Its value has to obey.
    Rule(Rule),
}

impl Comparison {
    /// Compares the live definition with the wanted one.
    #[must_use]
    pub fn of(live: &Value, wanted: &Value) -> Self {
        let mut comparison = Self {
            definition: ObjectKey::of(wanted).unwrap_or_default(),
            kind: text(live, "/spec/names/kind").to_owned(),
            ..Self::default()
        };
        comparison.fixed_fields(live, wanted);
        comparison.versions(live, wanted);
        comparison
    }

    /// Versions that objects have to be read in, without repetition.
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

    /// What the API server never changes in a definition that is established.
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
                self.impossible.push(format!(
                    "{field} cannot change from {old} to {new}; save the objects, uninstall with --delete-crds, \
                     and install the new version"
                ));
            }
        }
        for version in strings(live, "/status/storedVersions") {
            if version_of(wanted, version).is_none() {
                self.impossible.push(format!(
                    "version {version} goes away and objects may still be stored in it (status.storedVersions); write them \
                     all again in a version that stays, then take {version} out of status.storedVersions"
                ));
            }
        }
    }

    fn versions(&mut self, live: &Value, wanted: &Value) {
        let root_is_free = live
            .pointer("/spec/preserveUnknownFields")
            .and_then(Value::as_bool)
            == Some(true);
        for (old, new) in pairs(live, wanted) {
            let (Some(version), Some(new_schema)) = (name(old), new.pointer(SCHEMA)) else {
                continue;
            };
            // A version that is not served cannot be read; the storage version says the same.
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
            let is_stored = strings(live, "/status/storedVersions").any(|stored| stored == version);
            // A stored one that goes is refused above.
            let is_refused = is_stored && next.is_none();
            if !is_refused && !next.is_some_and(is_served) {
                self.unjudged.push(format!(
                    "version {version} is not served any more: who uses it has to change first"
                ));
            }
        }
    }
}

impl Change {
    /// Whether it takes something away from an object, rather than making it invalid.
    #[must_use]
    pub fn loses(&self) -> bool {
        matches!(self.what, What::Removed | What::Unnamed { .. })
    }

    /// Whether an object, read in [`Change::version`], breaks.
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

    /// `3 live objects set it`.
    fn breaking(&self, objects: &str, count: usize) -> String {
        let (singular, plural) = match self.what {
            What::Removed => ("sets it", "set it"),
            What::Required => ("lacks it", "lack it"),
            What::Unnamed { .. } => ("has such a field", "have such fields"),
            What::Rule(_) => ("does not fit", "do not fit"),
        };
        format!("{objects} {}", if count == 1 { singular } else { plural })
    }

    /// That it breaks nothing.
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
            What::Removed => write!(f, "{path} goes away"),
            What::Required => write!(f, "{path} becomes required"),
            What::Unnamed { .. } => write!(f, "{path} keeps only fields that the schema names"),
            What::Rule(rule) => write!(f, "{path} {rule}"),
        }
    }
}

const SCHEMA: &str = "/schema/openAPIV3Schema";

/// Which version's schema has to be compared with which: first what objects are stored in with what they will be stored in
/// (without a conversion webhook they are the same JSON), then every version with itself.
fn pairs<'a>(live: &'a Value, wanted: &'a Value) -> Vec<(&'a Value, &'a Value)> {
    let strategy = |crd: &'a Value| crd.pointer("/spec/conversion/strategy")?.as_str();
    let converts = strategy(wanted).or_else(|| strategy(live)) == Some("Webhook");
    let stored = |crd: &'a Value| versions(crd).find(|version| is_storage(version));
    let mut pairs: Vec<(&Value, &Value)> = Vec::new();
    if let (Some(old), Some(new)) = (stored(live), stored(wanted))
        && (!converts || name(old) == name(new))
    {
        pairs.push((old, new));
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

fn strings<'a>(object: &'a Value, pointer: &str) -> impl Iterator<Item = &'a str> {
    let list = object.pointer(pointer).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str)
}

#[cfg(test)]
mod tests;
