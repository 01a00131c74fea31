//! Objects that the API server does not change in place, detected before anything is written. They are deleted and created again if the
//! user accepts this; otherwise the whole plan is refused (semantics 12.15). The plan is also refused if an object asks for something that
//! a pruned object holds ([`super::holder`]), unless the user accepts that the pruned object is deleted first.
//!
//! The server reports these objects in a dry run. If a webhook prevents the dry run, the [`table`] of built-in kinds decides.

pub mod table;

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Deletion, InstallationPlan, Step, Verb};
use common::api::installation::ObjectState;
use common::api::names::InstallationName;
use common::manifest::key::ObjectKey;
use common::manifest::kinds::traits::KeptKind;

/// An object that can only be applied after a deletion: of itself, or of the objects that hold something it needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Recreation {
    /// The object.
    pub key: ObjectKey,
    /// The fields that would change but are immutable.
    pub fields: Vec<FixedField>,
    /// The reason why it cannot be recreated, whatever the user accepts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub obstacle: Option<RecreationObstacle>,
    /// Objects that the plan prunes and that hold what these fields ask for. If there are any, they are deleted before the object is
    /// applied, and the object itself is not recreated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holders: Vec<Deletion>,
}

/// A field that is immutable, or that asks for something another object holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FixedField {
    /// Its path, `spec.selector`; empty if the server names none.
    pub field: String,
    /// The server's rule: `field is immutable`.
    pub rule: String,
}

/// The reason why an object is never recreated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RecreationObstacle {
    /// Its kind holds data or other objects.
    Kept(KeptKind),
    /// A StatefulSet whose claims would be deleted with it.
    Claims,
    /// It existed before the installation, which therefore never deletes it.
    Preexisting,
}

/// A write that the server could not check in a dry run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnjudgedWrite {
    /// The object.
    pub key: ObjectKey,
    /// The reason: `an admission webhook does not answer`.
    pub why: String,
    /// Whether it needs something that the command itself creates: a namespace or a kind.
    pub is_created_by_command: bool,
}

/// A plan is refused because objects would be recreated and the user did not accept this. Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}; nothing was changed:\n{}", headline(refused), lines(refused))]
pub struct RecreationError {
    /// The installations with such objects; at least one.
    pub refused: Vec<RefusedRecreations>,
}

/// The refused objects of one installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedRecreations {
    /// The installation.
    pub installation: InstallationName,
    /// The operation that was planned.
    pub verb: Verb,
    /// The objects; at least one.
    pub objects: Vec<Recreation>,
}

impl RecreationError {
    /// Whether the user can accept all of the objects.
    #[must_use]
    pub fn is_acceptable(&self) -> bool {
        self.objects().all(|object| object.obstacle.is_none())
    }

    /// Whether none of the objects can be recreated.
    #[must_use]
    pub fn is_final(&self) -> bool {
        self.objects().all(|object| object.obstacle.is_some())
    }

    /// Whether pruned objects would be deleted before other objects are applied.
    #[must_use]
    pub fn deletes_holders(&self) -> bool {
        self.objects().any(|object| !object.holders.is_empty())
    }

    fn objects(&self) -> impl Iterator<Item = &Recreation> {
        self.refused.iter().flat_map(|one| &one.objects)
    }
}

impl Recreation {
    /// Creates the recreation of an object, with the obstacle that its kind or its inventory state implies. The caller checks
    /// [`loses_claims`].
    #[must_use]
    pub fn new(plan: &InstallationPlan, key: &ObjectKey, fields: Vec<FixedField>) -> Self {
        let state = plan.exact.objects.get(key).map(|item| item.object.state);
        let kept = KeptKind::from_key(key).map(RecreationObstacle::Kept);
        let before_us =
            (state == Some(ObjectState::Preexisting)).then_some(RecreationObstacle::Preexisting);
        Self {
            key: key.clone(),
            fields,
            obstacle: kept.or(before_us),
            holders: Vec::new(),
        }
    }

    /// Creates an entry for an object that gets these fields once the holders are deleted.
    #[must_use]
    pub fn with_holders(key: &ObjectKey, fields: Vec<FixedField>, holders: Vec<Deletion>) -> Self {
        Self {
            key: key.clone(),
            fields,
            obstacle: None,
            holders,
        }
    }

    /// Returns the objects that are deleted, which the user has to name to accept it.
    pub fn deleted_keys(&self) -> impl Iterator<Item = &ObjectKey> {
        let itself = self.holders.is_empty().then_some(&self.key);
        let holders = self.holders.iter().map(|holder| &holder.target.key);
        itself.into_iter().chain(holders)
    }

    /// Formats the fields and rules: `spec.selector: field is immutable; spec.serviceName: …`
    #[must_use]
    pub fn reasons(&self) -> String {
        let fields: Vec<String> = self.fields.iter().map(ToString::to_string).collect();
        fields.join("; ")
    }

    /// Returns why it is never recreated, as a sentence.
    #[must_use]
    pub fn describe_obstacle(&self) -> Option<String> {
        let kind = &self.key.kind;
        Some(match self.obstacle? {
            RecreationObstacle::Kept(kept) => {
                format!("a {kind} is never recreated: {}", kept.loss())
            }
            RecreationObstacle::Claims => format!(
                "this {kind} is never recreated: its claims would be deleted with it \
                 (persistentVolumeClaimRetentionPolicy.whenDeleted is Delete)"
            ),
            RecreationObstacle::Preexisting => {
                "it existed before this installation, which never deletes it".to_owned()
            }
        })
    }
}

impl fmt::Display for FixedField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_empty() {
            return f.write_str(&self.rule);
        }
        write!(f, "{}: {}", self.field, self.rule)
    }
}

impl fmt::Display for Recreation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.reasons())?;
        for holder in &self.holders {
            let key = &holder.target.key;
            write!(f, "; {key}, which is pruned, has to be deleted first")?;
        }
        match self.describe_obstacle() {
            Some(why) => write!(f, "; {why}"),
            None => Ok(()),
        }
    }
}

impl InstallationPlan {
    /// Returns how an object is recreated; `None` if it is changed in place.
    #[must_use]
    pub fn recreation(&self, key: &ObjectKey) -> Option<&Recreation> {
        self.recreations.iter().find(|object| object.key == *key)
    }

    /// Returns the objects that would be recreated without permission.
    fn refused_recreations(&self) -> Vec<Recreation> {
        let is_allowed = |object: &&Recreation| {
            let step = self.step(&object.key);
            let is_named = |step: &Step| match object.holders.as_slice() {
                [] => step.policy.recreate,
                holders => holders
                    .iter()
                    .all(|holder| step.policy.deletes_first(holder)),
            };
            object.obstacle.is_none() && step.is_some_and(is_named)
        };
        let refused = self.recreations.iter();
        refused
            .filter(|object| !is_allowed(object))
            .cloned()
            .collect()
    }

    /// Returns the plan with permission to recreate every object that has to be recreated and can be.
    #[must_use]
    pub fn accepting_recreations(mut self) -> Self {
        for object in &self.recreations {
            let found = self
                .steps
                .binary_search_by(|step| step.target.key.cmp(&object.key));
            if object.obstacle.is_none()
                && let Some(step) = found.ok().and_then(|at| self.steps.get_mut(at))
            {
                step.policy.recreate |= object.holders.is_empty();
                step.policy.delete_first(&object.holders);
            }
        }
        self
    }
}

/// Refuses the plans of a command if they would recreate objects without permission.
///
/// # Errors
/// All of these objects.
pub fn check<'a>(
    plans: impl IntoIterator<Item = &'a InstallationPlan>,
) -> Result<(), RecreationError> {
    let refused = plans.into_iter().map(|plan| RefusedRecreations {
        installation: plan.installation.clone(),
        verb: plan.verb,
        objects: plan.refused_recreations(),
    });
    let refused: Vec<RefusedRecreations> = refused.filter(|one| !one.objects.is_empty()).collect();
    if refused.is_empty() {
        Ok(())
    } else {
        Err(RecreationError { refused })
    }
}

/// Whether recreating a StatefulSet deletes its claims: its selector changes, so its pods are deleted with it, and its retention policy
/// deletes the claims.
#[must_use]
pub fn loses_claims(live: &Value, wanted: &Value) -> bool {
    let policy = live.pointer("/spec/persistentVolumeClaimRetentionPolicy/whenDeleted");
    let selector = |object: &Value| object.pointer("/spec/selector").cloned();
    live.get("kind").and_then(Value::as_str) == Some("StatefulSet")
        && policy.and_then(Value::as_str) == Some("Delete")
        && selector(live) != selector(wanted)
}

fn headline(refused: &[RefusedRecreations]) -> String {
    let count: usize = refused.iter().map(|one| one.objects.len()).sum();
    let names: Vec<&str> = refused
        .iter()
        .map(|one| one.installation.name.as_str())
        .collect();
    let objects = if count == 1 {
        "1 object of"
    } else {
        "objects of"
    };
    let count = if count == 1 {
        String::new()
    } else {
        format!("{count} ")
    };
    let mut all = refused.iter().flat_map(|one| &one.objects);
    let why = if all.any(|object| !object.holders.is_empty()) {
        "cannot be applied before other objects are deleted"
    } else {
        "cannot be changed in place"
    };
    format!("{count}{objects} {} {why}", names.join(", "))
}

fn lines(refused: &[RefusedRecreations]) -> String {
    let objects = refused.iter().flat_map(|one| &one.objects);
    let lines: Vec<String> = objects.map(|object| format!("  {object}")).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests;
