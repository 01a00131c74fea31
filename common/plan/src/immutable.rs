//! Objects that the API server does not change in place, known before anything is written: they are deleted and created
//! again where that is accepted, and otherwise the whole plan is refused. The plan is also refused if an object asks for what a pruned
//! object holds ([`super::holder`]), unless the caller accepts that the pruned object is deleted first.
//!
//! The server says so itself in a dry run; where a webhook keeps it from judging, the [`table`] of built-in kinds does.

pub mod table;

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Deletion, InstallationPlan, Step, Verb};
use common::api::installation::ObjectState;
use common::api::names::InstallationName;
use common::manifest::key::ObjectKey;
use common::manifest::kinds::traits::KeptKind;

/// An object of a plan that can only be applied after a deletion: of itself, or of the objects that hold what it needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Recreation {
    /// The object.
    pub key: ObjectKey,
    /// The fields that would change and never do.
    pub fields: Vec<FixedField>,
    /// Why it is not recreated, whatever the user accepts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub obstacle: Option<Obstacle>,
    /// Objects that the plan prunes, and that hold what these fields ask for. Where there are some, they are deleted before the object
    /// is applied, and the object itself is not recreated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holders: Vec<Deletion>,
}

/// A field that never changes, or that asks for what another object has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FixedField {
    /// `spec.selector`; empty where the server names none.
    pub field: String,
    /// The server's rule: `field is immutable`.
    pub rule: String,
}

/// Why an object is never deleted to be created again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Obstacle {
    /// Its kind holds data or other objects.
    Kept(KeptKind),
    /// A StatefulSet whose claims would be deleted with it.
    Claims,
    /// It existed before the installation, which never deletes it.
    Preexisting,
}

/// Something that the server could not judge before the plan is executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unjudged {
    /// The object.
    pub key: ObjectKey,
    /// Why: `an admission webhook does not answer`.
    pub why: String,
    /// Whether it needs what the command itself brings: a namespace, a kind.
    pub is_coming: bool,
}

/// Objects that would be deleted and created again, which the user did not accept. Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}; nothing was changed:\n{}", headline(refused), lines(refused))]
pub struct RecreationError {
    /// The installations that have such objects; one at least.
    pub refused: Vec<Refused>,
}

/// What is refused of one installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The installation.
    pub installation: InstallationName,
    /// What was to be done with it.
    pub verb: Verb,
    /// The objects; one at least.
    pub objects: Vec<Recreation>,
}

impl RecreationError {
    /// Whether the user can accept it: no object of it holds data.
    #[must_use]
    pub fn is_acceptable(&self) -> bool {
        self.objects().all(|object| object.obstacle.is_none())
    }

    /// Whether no object of it could be recreated.
    #[must_use]
    pub fn is_final(&self) -> bool {
        self.objects().all(|object| object.obstacle.is_some())
    }

    /// Whether pruned objects would be deleted before the rest.
    #[must_use]
    pub fn frees(&self) -> bool {
        self.objects().any(|object| !object.holders.is_empty())
    }

    fn objects(&self) -> impl Iterator<Item = &Recreation> {
        self.refused.iter().flat_map(|one| &one.objects)
    }
}

impl Recreation {
    /// The object, with what stands in the way of recreating it. `loses_claims`: see [`loses_claims`].
    #[must_use]
    pub fn new(plan: &InstallationPlan, key: &ObjectKey, fields: Vec<FixedField>) -> Self {
        let state = plan.exact.objects.get(key).map(|item| item.object.state);
        let kept = KeptKind::of(key).map(Obstacle::Kept);
        let before_us = (state == Some(ObjectState::Preexisting)).then_some(Obstacle::Preexisting);
        Self {
            key: key.clone(),
            fields,
            obstacle: kept.or(before_us),
            holders: Vec::new(),
        }
    }

    /// An object that gets these fields once the holders are deleted.
    #[must_use]
    pub fn held(key: &ObjectKey, fields: Vec<FixedField>, holders: Vec<Deletion>) -> Self {
        Self {
            key: key.clone(),
            fields,
            obstacle: None,
            holders,
        }
    }

    /// The objects that are deleted: those that have to be named to accept it.
    pub fn deleted(&self) -> impl Iterator<Item = &ObjectKey> {
        let itself = self.holders.is_empty().then_some(&self.key);
        let holders = self.holders.iter().map(|holder| &holder.target.key);
        itself.into_iter().chain(holders)
    }

    /// `spec.selector: field is immutable; spec.serviceName: …`
    #[must_use]
    pub fn reasons(&self) -> String {
        let fields: Vec<String> = self.fields.iter().map(ToString::to_string).collect();
        fields.join("; ")
    }

    /// Why it is never recreated, as a sentence.
    #[must_use]
    pub fn never(&self) -> Option<String> {
        let kind = &self.key.kind;
        Some(match self.obstacle? {
            Obstacle::Kept(kept) => format!("a {kind} is never recreated: {}", kept.loss()),
            Obstacle::Claims => format!(
                "this {kind} is never recreated: its claims would be deleted with it \
                 (persistentVolumeClaimRetentionPolicy.whenDeleted is Delete)"
            ),
            Obstacle::Preexisting => {
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
        match self.never() {
            Some(why) => write!(f, "; {why}"),
            None => Ok(()),
        }
    }
}

impl InstallationPlan {
    /// How an object is recreated; `None` where it is changed in place.
    #[must_use]
    pub fn recreation(&self, key: &ObjectKey) -> Option<&Recreation> {
        self.recreations.iter().find(|object| object.key == *key)
    }

    /// The objects that would be recreated and may not be.
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

    /// The same plan where every object may be recreated that has to be and can be.
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

/// Refuses the plans of a command as long as objects of them would be recreated and that was not accepted.
///
/// # Errors
/// All of these objects.
pub fn check<'a>(
    plans: impl IntoIterator<Item = &'a InstallationPlan>,
) -> Result<(), RecreationError> {
    let refused = plans.into_iter().map(|plan| Refused {
        installation: plan.installation.clone(),
        verb: plan.verb,
        objects: plan.refused_recreations(),
    });
    let refused: Vec<Refused> = refused.filter(|one| !one.objects.is_empty()).collect();
    if refused.is_empty() {
        Ok(())
    } else {
        Err(RecreationError { refused })
    }
}

/// Whether deleting a StatefulSet to create it again deletes its claims: its pods go with it, because its selector changes,
/// and its claims are to go when it is deleted.
#[must_use]
pub fn loses_claims(live: &Value, wanted: &Value) -> bool {
    let policy = live.pointer("/spec/persistentVolumeClaimRetentionPolicy/whenDeleted");
    let selector = |object: &Value| object.pointer("/spec/selector").cloned();
    live.get("kind").and_then(Value::as_str) == Some("StatefulSet")
        && policy.and_then(Value::as_str) == Some("Delete")
        && selector(live) != selector(wanted)
}

fn headline(refused: &[Refused]) -> String {
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

fn lines(refused: &[Refused]) -> String {
    let objects = refused.iter().flat_map(|one| &one.objects);
    let lines: Vec<String> = objects.map(|object| format!("  {object}")).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests;
