//! Resolves conflicts over fields of other managers: the object is read once, then the fields are taken, left or refused, as the policy
//! says (semantics 12.9).

use std::sync::Arc;

use serde_json::{Value, json};

use addons_plan::Step;
use addons_plan::changes::RefusalRemedy;
use addons_plan::conflicts::{Conflict, Decider, path};
use common::api::installation::ConflictPolicy;
use common::values::mask::{MASK, SecretMask};

use super::super::address::Collection;
use super::super::cluster::Cluster;
use super::super::error::{EngineError, FieldCause};
use super::super::report::{Settled, Settlement};
use super::super::request::{ApiCall, JSON};
use super::explain::conflict_remedy;
use super::holder::FieldHolder;
use super::{Applier, is_planned, replaced_error};

/// One apply: what is sent, and the decisions about conflicts.
pub(super) struct ApplyAttempt {
    pub(super) object: Arc<Value>,
    pub(super) settled: Vec<Settled>,
    /// managedFields of the object that was read, if fields are taken.
    pub(super) before: Vec<Value>,
    /// The resourceVersion of the object that was read: fields are taken only while this version is live.
    pinned: Option<String>,
}

impl ApplyAttempt {
    /// Returns an attempt with the planned object and without force.
    pub(super) fn from_step(step: &Step) -> Self {
        Self {
            object: Arc::clone(&step.object),
            settled: Vec::new(),
            before: Vec::new(),
            pinned: None,
        }
    }

    /// Returns whether conflicts are forced, which is done for one resourceVersion only.
    pub(super) fn is_pinned(&self) -> bool {
        self.pinned.is_some()
    }

    /// Returns the same attempt for another resourceVersion, the one after our own write.
    pub(super) fn pinned_to(&self, resource_version: &str) -> Self {
        let pinned = Some(resource_version.to_owned());
        Self {
            object: pin(&self.object, resource_version),
            settled: self.settled.clone(),
            before: self.before.clone(),
            pinned,
        }
    }

    /// Returns the same attempt without force and for any version. It succeeds if everything that it wants is ours.
    pub(super) fn unpinned(self) -> Self {
        if !self.is_pinned() {
            return self;
        }
        let mut object = self.object;
        if let Some(metadata) = Arc::make_mut(&mut object)
            .get_mut("metadata")
            .and_then(Value::as_object_mut)
        {
            metadata.remove("resourceVersion");
        }
        Self {
            object,
            pinned: None,
            ..self
        }
    }
}

/// Returns the next attempt after the server named fields of other managers.
pub(super) async fn resolve_conflicts(
    applier: &Applier<'_>,
    cluster: &Cluster,
    step: &Step,
    before: ApplyAttempt,
    causes: &[FieldCause],
) -> Result<ApplyAttempt, EngineError> {
    let collection = Collection::from_target(&step.target);
    let call = ApiCall::get(&collection, &step.target.key.name, JSON);
    let live: Value = match cluster.send(call).await {
        Ok(answer) => answer.object,
        // The object was deleted meanwhile: it is created again.
        Err(error) if error.is_not_found() => return Ok(ApplyAttempt::from_step(step)),
        Err(error) => return Err(error),
    };
    let uid = live.pointer("/metadata/uid").and_then(Value::as_str);
    if !is_planned(step, uid.unwrap_or_default()) {
        return Err(replaced_error(step));
    }
    let mut settled = before.settled;
    // The last attempt took nothing: only decisions to leave a field still hold.
    settled.retain(Settled::is_left);
    settled.extend(decide(step, &live, causes, &applier.mask)?);
    let object = without_left_fields(step, &step.object, &settled)?;
    let attempt = ApplyAttempt {
        object: Arc::new(object),
        settled,
        before: managed_fields_of(&live).to_vec(),
        pinned: None,
    };
    if attempt.settled.iter().all(Settled::is_left) {
        return Ok(attempt);
    }
    let version = live.pointer("/metadata/resourceVersion");
    Ok(attempt.pinned_to(version.and_then(Value::as_str).unwrap_or_default()))
}

/// Decides by the policy of the step about fields of other managers. `live`: null if it cannot be read.
///
/// # Errors
/// [`EngineError::Conflict`] with every field whose policy is `Fail`.
pub(crate) fn decide(
    step: &Step,
    live: &Value,
    causes: &[FieldCause],
    mask: &SecretMask,
) -> Result<Vec<Settled>, EngineError> {
    let mut settled = Vec::new();
    let mut refused = Vec::new();
    for cause in causes {
        let conflict = to_conflict(step, live, cause).masked(mask);
        let (policy, decider) = step.policy.at(&conflict.field);
        let settlement = match policy {
            ConflictPolicy::Yield => Settlement::Left {
                autoscaler: match decider {
                    Decider::Autoscaler(name) => Some(name.to_owned()),
                    Decider::Installation | Decider::Manifest => None,
                },
            },
            ConflictPolicy::Take => Settlement::Taken,
            ConflictPolicy::Fail => {
                refused.push((conflict, decider == Decider::Manifest));
                continue;
            }
        };
        settled.push(Settled {
            key: step.target.key.clone(),
            conflict,
            settlement,
        });
    }
    if refused.is_empty() {
        Ok(settled)
    } else {
        Err(refusal_error(step, &refused))
    }
}

/// Returns the managedFields of a live object.
pub(super) fn managed_fields_of(live: &Value) -> &[Value] {
    let entries = live.pointer("/metadata/managedFields");
    let entries = entries.and_then(Value::as_array);
    entries.map(Vec::as_slice).unwrap_or_default()
}

/// Returns the object without the fields that are left to others.
pub(crate) fn without_left_fields(
    step: &Step,
    object: &Value,
    settled: &[Settled],
) -> Result<Value, EngineError> {
    let left = settled.iter().filter(|settled| settled.is_left());
    let left: Vec<&Conflict> = left.map(|settled| &settled.conflict).collect();
    let mut object = object.clone();
    let fields = left.iter().map(|conflict| conflict.field.as_str());
    if let Err(field) = path::remove_all(&mut object, fields) {
        let held = left.iter().find(|conflict| conflict.field == field);
        let manager = held.map_or("", |conflict| conflict.manager.as_str());
        return Err(EngineError::Conflict {
            key: Box::new(step.target.key.clone()),
            message: format!(
                "{field} is held by {manager} and cannot be left out by itself; take it, or remove it from the manifest"
            ),
            recorded: None,
            remedy: Some(conflict_remedy(step)),
        });
    }
    Ok(object)
}

fn pin(object: &Value, resource_version: &str) -> Arc<Value> {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("resourceVersion".to_owned(), json!(resource_version));
    }
    Arc::new(object)
}

fn to_conflict(step: &Step, live: &Value, cause: &FieldCause) -> Conflict {
    let key = &step.target.key;
    // An annotation of a Secret can repeat its values, too.
    let is_masked = key.is_secret();
    let value = |object: &Value| {
        let value = path::get(object, &cause.field)?;
        Some(if is_masked {
            json!(MASK)
        } else {
            value.clone()
        })
    };
    let holder = FieldHolder::parse(&cause.message);
    Conflict {
        field: cause.field.clone(),
        time: holder.last_write(live),
        live: value(live),
        ours: value(&step.object),
        manager: holder.to_string(),
    }
}

pub(super) fn refusal_error(step: &Step, refused: &[(Conflict, bool)]) -> EngineError {
    let mut message = match refused {
        [_] => "a field belongs to another manager".to_owned(),
        many => format!("{} fields belong to other managers", many.len()),
    };
    let mut recorded = message.clone();
    for (conflict, by_manifest) in refused {
        let since = conflict.time.as_ref();
        let since = since
            .map(|time| format!(" since {time}"))
            .unwrap_or_default();
        let live = Conflict::describe_value(conflict.live.as_ref());
        let ours = Conflict::describe_value(conflict.ours.as_ref());
        message.push_str(&format!(
            "\n    {}: {live}, {}{since}; wanted {ours}",
            conflict.field, conflict.manager
        ));
        recorded.push_str(&format!(
            "\n    {}: {}{since}",
            conflict.field, conflict.manager
        ));
        if *by_manifest {
            let annotation = " (the manifest's annotation kubectl-addons.dev/conflicts says Fail)";
            message.push_str(annotation);
            recorded.push_str(annotation);
        }
    }
    let all_by_manifest = refused.iter().all(|(_, by_manifest)| *by_manifest);
    EngineError::Conflict {
        key: Box::new(step.target.key.clone()),
        message,
        recorded: Some(recorded),
        remedy: Some(if all_by_manifest {
            RefusalRemedy::Annotation
        } else {
            conflict_remedy(step)
        }),
    }
}
