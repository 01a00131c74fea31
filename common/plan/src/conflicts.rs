//! Conflicts over fields of the installation's objects: which manager changed them, and which policy decides (semantics 12.9).
//!
//! `spec.conflicts` of the installation is the policy for all objects. The annotation [`ANNOTATION_CONFLICTS`] on an object of the manifest
//! sets it for single fields: `spec.replicas=Yield,spec.template=Fail`. The rule with the longest path that covers a conflict decides.

pub mod path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Deletion;
use super::adoption::Adoption;
use super::holder::ResourceHolder;
use common::api::installation::ConflictPolicy;
use common::api::names::{ANNOTATION_CONFLICTS, ANNOTATION_RECREATE};
use common::text::shorten;
use common::values::mask::SecretMask;

/// Path of the field that an autoscaler sets.
pub const REPLICAS: &str = "spec.replicas";
/// The longest value that is shown in full, in characters.
const LONGEST_VALUE: usize = 60;

/// How an object may be applied if other managers changed it, or if the server refuses its change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Policy {
    /// The policy for fields that no rule covers.
    pub conflicts: ConflictPolicy,
    /// Rules for single fields.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldRule>,
    /// The autoscaler that sets [`REPLICAS`] (`HorizontalPodAutoscaler web`, or the manager of another controller that scales). `replicas`
    /// always yields to it, whatever the other rules say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autoscaler: Option<String>,
    /// Owner label of the installation that the object moves from. Its fields are transferred before the apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inherited: Option<String>,
    /// The former owner, if no installation owned the object. The object is labelled, and the fields of the tool that created it are
    /// transferred, before the apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adopted: Option<Adoption>,
    /// Whether the object existed before the installation. Fields that others own then stay theirs and are not lost when the object is
    /// released.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
    /// Whether the object is only recorded if another client creates it first: several installations may contain it, and one owns it
    /// (semantics 5).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_recorded: bool,
    /// Whether the object may be deleted and created again if a field cannot change.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recreate: bool,
    /// Objects that hold something the object needs and that only one object can have. They are deleted or applied before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holders: Vec<ResourceHolder>,
}

/// The origin of the policy that decides a conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decider<'a> {
    /// `spec.conflicts` of the installation.
    Installation,
    /// An annotation in the manifest.
    Manifest,
    /// The controller that scales the object.
    Autoscaler(&'a str),
}

/// The policy for conflicts at a field and below it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FieldRule {
    /// Path as the server writes it, without the leading dot: `spec.template.spec.containers[name="main"].image`.
    pub field: String,
    /// The policy.
    pub conflicts: ConflictPolicy,
}

/// A field that another manager owns with a value that differs from the applied one.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Conflict {
    /// Path as the server writes it, without the leading dot.
    pub field: String,
    /// The manager that owns it: `kubectl-edit`, or `kubectl/scale` for a subresource.
    pub manager: String,
    /// When the manager last wrote (RFC 3339). The server does not report it for subresources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// The live value; masked in Secrets.
    pub live: Option<Value>,
    /// The applied value; masked in Secrets.
    pub ours: Option<Value>,
}

/// An annotation of the manifest that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum PolicyError {
    /// A malformed rule for a field.
    #[error(
        "annotation {ANNOTATION_CONFLICTS}: {rule:?} is not FIELD=Take, FIELD=Fail or FIELD=Yield; write for example \"spec.replicas=Yield,spec.template=Fail\""
    )]
    Rule {
        /// The malformed rule.
        rule: String,
    },
    /// A malformed value of the annotation for recreation.
    #[error("annotation {ANNOTATION_RECREATE}: {value:?} is neither \"true\" nor \"false\"")]
    Recreate {
        /// The value.
        value: String,
    },
}

impl Policy {
    /// Reads the policy of an object from its annotations. `conflicts` is the policy of the installation.
    ///
    /// # Errors
    /// [`PolicyError`] if an annotation cannot be read.
    pub fn from_object(object: &Value, conflicts: ConflictPolicy) -> Result<Self, PolicyError> {
        let annotation = |name| {
            object
                .get("metadata")?
                .get("annotations")?
                .get(name)?
                .as_str()
        };
        let fields = match annotation(ANNOTATION_CONFLICTS) {
            Some(text) => parse_rules(text)?,
            None => Vec::new(),
        };
        let recreate = match annotation(ANNOTATION_RECREATE) {
            Some("true") => true,
            Some("false") | None => false,
            Some(value) => {
                return Err(PolicyError::Recreate {
                    value: value.to_owned(),
                });
            }
        };
        Ok(Self {
            conflicts,
            fields,
            autoscaler: None,
            inherited: None,
            adopted: None,
            shared: false,
            only_recorded: false,
            recreate,
            holders: Vec::new(),
        })
    }

    /// Requires that these pruned objects are deleted before this one is applied.
    pub fn delete_first(&mut self, pruned: &[Deletion]) {
        for deletion in pruned {
            if !self.deletes_first(deletion) {
                self.holders.push(ResourceHolder::Pruned(deletion.clone()));
            }
        }
    }

    /// Whether `pruned` is deleted before this object is applied.
    #[must_use]
    pub fn deletes_first(&self, pruned: &Deletion) -> bool {
        let mut holders = self.holders.iter();
        holders
            .any(|holder| matches!(holder, ResourceHolder::Pruned(deletion) if deletion == pruned))
    }

    /// Returns the policy for a conflict at `field`, and where it comes from.
    #[must_use]
    pub fn at(&self, field: &str) -> (ConflictPolicy, Decider<'_>) {
        let autoscaler = self.autoscaler.as_deref();
        if let Some(name) = autoscaler.filter(|_| self.leaves_to_autoscaler(field)) {
            return (ConflictPolicy::Yield, Decider::Autoscaler(name));
        }
        let covering = self.fields.iter().filter(|rule| covers(&rule.field, field));
        match covering.max_by_key(|rule| rule.field.len()) {
            Some(rule) => (rule.conflicts, Decider::Manifest),
            None => (self.conflicts, Decider::Installation),
        }
    }

    /// Whether a field is left to the autoscaler of the object.
    #[must_use]
    pub fn leaves_to_autoscaler(&self, field: &str) -> bool {
        self.autoscaler.is_some() && field == REPLICAS
    }

    /// Whether the policy takes every field of the object.
    #[must_use]
    pub fn takes_all(&self) -> bool {
        self.autoscaler.is_none()
            && self.conflicts == ConflictPolicy::Take
            && self
                .fields
                .iter()
                .all(|rule| rule.conflicts == ConflictPolicy::Take)
    }
}

impl Conflict {
    /// Returns the conflict with values of Secrets masked.
    #[must_use]
    pub fn masked(mut self, mask: &SecretMask) -> Self {
        mask.mask_change([&mut self.live, &mut self.ours]);
        self
    }

    /// Formats a value, shortened; `nothing` if the field is missing.
    #[must_use]
    pub fn describe_value(value: Option<&Value>) -> String {
        let Some(value) = value else {
            return "nothing".to_owned();
        };
        shorten(value.to_string(), LONGEST_VALUE)
    }
}

/// Whether a rule for the field `rule` covers `field`: the field itself, or one below it.
fn covers(rule: &str, field: &str) -> bool {
    field
        .strip_prefix(rule)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

fn parse_rules(text: &str) -> Result<Vec<FieldRule>, PolicyError> {
    let parts = path::split(text, ',').into_iter().map(str::trim);
    parts
        .filter(|part| !part.is_empty())
        .map(|part| {
            parse_rule(part).ok_or_else(|| PolicyError::Rule {
                rule: part.to_owned(),
            })
        })
        .collect()
}

fn parse_rule(part: &str) -> Option<FieldRule> {
    let (field, word) = part.rsplit_once('=')?;
    let field = field.trim().trim_start_matches('.');
    let conflicts = match word.trim() {
        "Take" => ConflictPolicy::Take,
        "Fail" => ConflictPolicy::Fail,
        "Yield" => ConflictPolicy::Yield,
        _ => return None,
    };
    (!field.is_empty()).then(|| FieldRule {
        field: field.to_owned(),
        conflicts,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn policy(conflicts: &str) -> Result<Policy, PolicyError> {
        let object = json!({"metadata": {"annotations": {ANNOTATION_CONFLICTS: conflicts}}});
        Policy::from_object(&object, ConflictPolicy::Take)
    }

    /// Semantics 12, per field.
    #[test]
    fn the_longest_rule_that_covers_a_field_decides() {
        let policy = policy(
            "spec.replicas=Yield, spec.template=Fail,\n.spec.template.spec.containers[name=\"a,b\"].image=Take,",
        )
        .unwrap();
        for (field, wanted) in [
            ("spec.replicas", (ConflictPolicy::Yield, Decider::Manifest)),
            (
                "spec.replicasets",
                (ConflictPolicy::Take, Decider::Installation),
            ),
            ("spec", (ConflictPolicy::Take, Decider::Installation)),
            (
                "spec.template.metadata.labels.app",
                (ConflictPolicy::Fail, Decider::Manifest),
            ),
            (
                "spec.template.spec.containers[name=\"a,b\"].image",
                (ConflictPolicy::Take, Decider::Manifest),
            ),
            (
                "spec.template.spec.containers[name=\"c\"].image",
                (ConflictPolicy::Fail, Decider::Manifest),
            ),
        ] {
            assert_eq!(policy.at(field), wanted, "{field}");
        }
        assert!(!policy.takes_all());
        assert!(Policy::default().takes_all());
    }

    /// Semantics 12: also against a rule of the manifest.
    #[test]
    fn replicas_yield_to_an_autoscaler() {
        let policy = Policy {
            autoscaler: Some("web".to_owned()),
            ..policy("spec.replicas=Fail").unwrap()
        };
        let yields = (ConflictPolicy::Yield, Decider::Autoscaler("web"));
        assert_eq!(policy.at(REPLICAS), yields);
        let others = (ConflictPolicy::Take, Decider::Installation);
        assert_eq!(policy.at("spec.paused"), others);
        let scaled = Policy {
            autoscaler: Some("web".to_owned()),
            ..Policy::default()
        };
        assert!(!scaled.takes_all());
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (text, rule) in [
            ("spec.replicas", "spec.replicas"),
            ("spec.replicas=yield", "spec.replicas=yield"),
            ("a=Take, =Yield", "=Yield"),
        ] {
            let rule = rule.to_owned();
            assert_eq!(policy(text), Err(PolicyError::Rule { rule }), "{text}");
        }
        assert_eq!(policy(" , ").unwrap().fields, []);
        for (value, wanted) in [("true", Some(true)), ("false", Some(false)), ("yes", None)] {
            let object = json!({"metadata": {"annotations": {ANNOTATION_RECREATE: value}}});
            let policy = Policy::from_object(&object, ConflictPolicy::Fail);
            assert_eq!(policy.ok().map(|policy| policy.recreate), wanted, "{value}");
        }
    }

    #[test]
    fn values_are_short() {
        assert_eq!(Conflict::describe_value(None), "nothing");
        assert_eq!(Conflict::describe_value(Some(&json!("é"))), "\"é\"");
        let long = json!("é".repeat(100));
        assert_eq!(
            Conflict::describe_value(Some(&long)).chars().count(),
            LONGEST_VALUE
        );
    }
}
