//! Fits a step to the live object ([`addons_plan::fit`]): which fields are claimed first, what is sent, and what stays.

use serde_json::Value;

use addons_plan::Step;
use addons_plan::conflicts::{Conflict, Decider};
use addons_plan::fit::{self, Fitted, Kept, Leftover};
use addons_plan::migration;
use common::api::installation::Conflicts;
use common::values::mask::{MASK, Mask};
use tokio::time::Instant;

use super::super::cluster::Cluster;
use super::super::definitions;
use super::super::error::{EngineError, FieldCause};
use super::super::live;
use super::super::report::{Settled, Settlement};
use super::super::served::is_definition;
use super::{Applier, is_planned, managed, settle};

impl Applier<'_> {
    /// Returns the step as it is sent, after claiming the fields that must not stay beside the wanted ones. Decisions about fields of
    /// others are added to `settled`. `None` if the live object makes no difference.
    pub(super) async fn fitted(
        &self,
        cluster: &Cluster,
        step: &Step,
        settled: &mut Vec<Settled>,
    ) -> Result<Option<Step>, EngineError> {
        if !fit::matters(&step.target.key, &step.object, &step.policy) {
            return Ok(None);
        }
        let live = match self.readable(cluster, step).await {
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
        let fitted = judge(step, &live, &self.manager, &self.mask)?;
        let claims = fitted.claims();
        if !claims.is_empty() {
            managed::claim(cluster, &step.target, &self.manager, &claims).await?;
        }
        settled.extend(taken(step, &fitted, &self.mask));
        settled.extend(fitted.kept.iter().map(|kept| Settled {
            key: step.target.key.clone(),
            conflict: of_kept(step, kept).masked(&self.mask),
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
    async fn readable(&self, cluster: &Cluster, step: &Step) -> Result<Option<Value>, EngineError> {
        loop {
            let Some(live) = live::object(cluster, step).await? else {
                return Ok(None);
            };
            if !is_definition(&step.target.key) {
                return Ok(Some(live));
            }
            let lost = migration::lost(&live, &step.object);
            if lost.is_empty() {
                return Ok(Some(live));
            }
            match definitions::leave(cluster, &live, &lost).await {
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
pub(crate) fn judge(
    step: &Step,
    live: &Value,
    manager: &str,
    mask: &Mask,
) -> Result<Fitted, EngineError> {
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
        let conflict = of_leftover(step, leftover)?.masked(mask);
        let (policy, decider) = step.policy.at(&conflict.field);
        // It cannot be left: the server would refuse the rest of the object.
        let is_refused = policy != Conflicts::Take && !leftover.is_ours_to_drop;
        is_refused.then_some((conflict, decider == Decider::Manifest))
    });
    let refused: Vec<(Conflict, bool)> = refused.collect();
    if refused.is_empty() {
        Ok(fitted)
    } else {
        Err(settle::refusal(step, &refused))
    }
}

/// Returns the leftovers that others owned.
fn taken<'a>(
    step: &'a Step,
    fitted: &'a Fitted,
    mask: &'a Mask,
) -> impl Iterator<Item = Settled> + use<'a> {
    let leftovers = fitted.leftovers.iter();
    leftovers.filter_map(|leftover| {
        Some(Settled {
            key: step.target.key.clone(),
            conflict: of_leftover(step, leftover)?.masked(mask),
            settlement: Settlement::Taken,
        })
    })
}

/// Returns a leftover as a conflict with its owner; `None` if it has no owner.
fn of_leftover(step: &Step, leftover: &Leftover) -> Option<Conflict> {
    let (manager, time) = leftover.owners.first()?.clone();
    Some(Conflict {
        field: leftover.path.to_string(),
        manager,
        time,
        live: Some(shown(step, &leftover.live)),
        ours: None,
    })
}

fn of_kept(step: &Step, kept: &Kept) -> Conflict {
    let owner = kept.owners.first().cloned();
    let (manager, time) = owner.unwrap_or_else(|| ("the server".to_owned(), None));
    Conflict {
        field: kept.path.to_string(),
        manager,
        time,
        live: Some(shown(step, &kept.live)),
        ours: Some(shown(step, &kept.wanted)),
    }
}

fn shown(step: &Step, value: &Value) -> Value {
    if step.target.key.is_secret() {
        MASK.into()
    } else {
        value.clone()
    }
}

/// Describes for the plan a field that keeps its live value: `spec.resources.requests.storage stays "2Gi" (kubectl-patch), wanted "1Gi": a
/// claim never shrinks`.
pub(crate) fn words(step: &Step, kept: &Kept) -> String {
    let conflict = of_kept(step, kept);
    format!(
        "{} {} stays {} ({}), wanted {}: {}",
        step.target.key,
        conflict.field,
        Conflict::value(conflict.live.as_ref()),
        conflict.manager,
        Conflict::value(conflict.ours.as_ref()),
        kept.why
    )
}
