//! Fits a step to the live object ([`addons_plan::fit`]): which fields are claimed first, what is sent, and what stays.

use serde_json::Value;

use addons_plan::Step;
use addons_plan::conflicts::{Conflict, Decider};
use addons_plan::fit::{self, FittedObject, KeptField, LeftoverField};
use addons_plan::migration;
use common::api::installation::ConflictPolicy;
use common::values::mask::{MASK, SecretMask};
use tokio::time::Instant;

use super::super::cluster::Cluster;
use super::super::definitions;
use super::super::error::{EngineError, FieldCause};
use super::super::live;
use super::super::report::{Settled, Settlement};
use super::{Applier, is_planned, managed, settle};

impl Applier<'_> {
    /// Returns the step as it is sent, after claiming the fields that must not stay beside the wanted ones. Decisions about fields of
    /// others are added to `settled`. `None` if the live object makes no difference.
    pub(super) async fn fit_step(
        &self,
        cluster: &Cluster,
        step: &Step,
        settled: &mut Vec<Settled>,
    ) -> Result<Option<Step>, EngineError> {
        if !fit::needs_live_object(&step.target.key, &step.object, &step.policy) {
            return Ok(None);
        }
        let live = match self.read_repaired(cluster, step).await {
            Ok(Some(live)) => live,
            Ok(None) => return Ok(None),
            // A client that may write the object but not read it applies it unmodified.
            Err(EngineError::Forbidden { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let uid = live.pointer("/metadata/uid").and_then(Value::as_str);
        if !is_planned(step, uid.unwrap_or_default()) {
            return Ok(None);
        }
        let fitted = fit_to_live(step, &live, &self.manager, &self.mask)?;
        let claims = fitted.claimed_paths();
        if !claims.is_empty() {
            managed::claim(cluster, &step.target, &self.manager, &claims).await?;
        }
        settled.extend(taken_leftovers(step, &fitted, &self.mask));
        settled.extend(fitted.kept.iter().map(|kept| Settled {
            key: step.target.key.clone(),
            conflict: kept_conflict(step, kept).masked(&self.mask),
            settlement: Settlement::Kept {
                why: kept.why.to_owned(),
            },
        }));
        let version = live.pointer("/metadata/resourceVersion");
        Ok(Some(Step {
            object: fitted.object,
            seen: version.and_then(Value::as_str).map(str::to_owned),
            ..step.clone()
        }))
    }

    /// Returns the live object. From a CRD, stored versions that it no longer defines are first removed from its status, because the server
    /// would refuse every change of it.
    async fn read_repaired(
        &self,
        cluster: &Cluster,
        step: &Step,
    ) -> Result<Option<Value>, EngineError> {
        loop {
            let Some(live) = live::read_step_object(cluster, step).await? else {
                return Ok(None);
            };
            if !step.target.key.is_definition() {
                return Ok(Some(live));
            }
            let lost = migration::find_lost_versions(&live, &step.object);
            if lost.is_empty() {
                return Ok(Some(live));
            }
            match definitions::remove_stored_versions(cluster, &live, &lost).await {
                // Another client was faster, or the status is already as wanted.
                Err(error) if error.is_conflict() && Instant::now() < self.deadline => {}
                done => done?,
            }
        }
    }
}

/// Fits a step to its live object.
///
/// # Errors
/// [`EngineError::Immutable`] if the object would have to be recreated; [`EngineError::Conflict`] if a field of another manager would have
/// to be removed, and the policy forbids it.
pub(crate) fn fit_to_live(
    step: &Step,
    live: &Value,
    manager: &str,
    mask: &SecretMask,
) -> Result<FittedObject, EngineError> {
    let fitted = fit::fit(&step.target.key, &step.object, &step.policy, live, manager);
    if !fitted.fixed.is_empty() {
        let causes = fitted.fixed.iter().map(|fixed| FieldCause {
            field: fixed.field.clone(),
            message: fixed.rule.clone(),
        });
        return Err(EngineError::Immutable {
            object: step.target.key.to_string(),
            causes: causes.collect(),
        });
    }
    let refused = fitted.leftovers.iter().filter_map(|leftover| {
        let conflict = leftover_conflict(step, leftover)?.masked(mask);
        let (policy, decider) = step.policy.at(&conflict.field);
        // It cannot be left: the server would refuse the rest of the object.
        let is_refused = policy != ConflictPolicy::Take && !leftover.is_ours_to_drop;
        is_refused.then_some((conflict, decider == Decider::Manifest))
    });
    let refused: Vec<(Conflict, bool)> = refused.collect();
    if refused.is_empty() {
        Ok(fitted)
    } else {
        Err(settle::refusal_error(step, &refused))
    }
}

/// Returns the leftovers that others owned.
fn taken_leftovers<'a>(
    step: &'a Step,
    fitted: &'a FittedObject,
    mask: &'a SecretMask,
) -> impl Iterator<Item = Settled> + use<'a> {
    let leftovers = fitted.leftovers.iter();
    leftovers.filter_map(|leftover| {
        Some(Settled {
            key: step.target.key.clone(),
            conflict: leftover_conflict(step, leftover)?.masked(mask),
            settlement: Settlement::Taken,
        })
    })
}

/// Returns a leftover as a conflict with its owner; `None` if it has no owner.
fn leftover_conflict(step: &Step, leftover: &LeftoverField) -> Option<Conflict> {
    let (manager, time) = leftover.owners.first()?.clone();
    Some(Conflict {
        field: leftover.path.to_string(),
        manager,
        time,
        live: Some(masked_value(step, &leftover.live)),
        ours: None,
    })
}

fn kept_conflict(step: &Step, kept: &KeptField) -> Conflict {
    let owner = kept.owners.first().cloned();
    let (manager, time) = owner.unwrap_or_else(|| ("the server".to_owned(), None));
    Conflict {
        field: kept.path.to_string(),
        manager,
        time,
        live: Some(masked_value(step, &kept.live)),
        ours: Some(masked_value(step, &kept.wanted)),
    }
}

fn masked_value(step: &Step, value: &Value) -> Value {
    if step.target.key.is_secret() {
        MASK.into()
    } else {
        value.clone()
    }
}

/// Describes for the plan a field that keeps its live value: `spec.resources.requests.storage stays "2Gi" (kubectl-patch), wanted "1Gi": a
/// claim never shrinks`.
pub(crate) fn describe_kept(step: &Step, kept: &KeptField) -> String {
    let conflict = kept_conflict(step, kept);
    format!(
        "{} {} stays {} ({}), wanted {}: {}",
        step.target.key,
        conflict.field,
        Conflict::describe_value(conflict.live.as_ref()),
        conflict.manager,
        Conflict::describe_value(conflict.ours.as_ref()),
        kept.why
    )
}
