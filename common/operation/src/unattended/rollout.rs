//! A rollout that failed for good is not applied again without a person (semantics 20.7).

use addons_plan::InstallationPlan;
use addons_plan::readiness::ReadinessStatus;
use addons_plan::standing::object::ObjectHealth;
use common::api::conditions::{READY, ROLLOUT_FAILED};
use common::api::installation::{AddonInstallation, Installed};

use crate::context::Context;
use crate::error::{OperationError, RolloutFailed};
use crate::health;
use crate::plan::Plan;
use crate::records::name_of;

/// Refuses a plan that applies the same as the last operation while an object of it is failed and all are as they were applied. An object
/// that was edited or deleted since may be the solution.
///
/// # Errors
/// [`RolloutFailed`]; those of the requests, which are sent only if the last operation failed as a rollout.
pub async fn check(
    ctx: &Context,
    record: &AddonInstallation,
    plan: &Plan,
) -> Result<(), OperationError> {
    let mut plans = plan.installations.iter().map(|planned| &planned.plan);
    if !plans.any(|plan| repeats_failed_rollout(record, plan)) {
        return Ok(());
    }
    let objects = health::object_health(ctx.cluster().await?, record)
        .await?
        .objects;
    let is_as_applied = |object: &ObjectHealth| object.readiness.is_some() && !object.edited;
    if !objects.iter().all(is_as_applied) {
        return Ok(());
    }
    let failed = objects.into_iter().find_map(|object| {
        let readiness = object.readiness?;
        (readiness.status == ReadinessStatus::Failed).then_some((object.key, readiness.message))
    });
    match failed {
        Some((object, message)) => Err(RolloutFailed {
            installation: name_of(record),
            object: Box::new(object),
            message,
        }
        .into()),
        None => Ok(()),
    }
}

/// Whether a plan would repeat the last operation, which failed as a rollout.
fn repeats_failed_rollout(record: &AddonInstallation, plan: &InstallationPlan) -> bool {
    let Some(status) = &record.status else {
        return false;
    };
    let failed = status.conditions.iter().any(|condition| {
        condition.r#type == READY
            && condition.reason == ROLLOUT_FAILED
            && condition.observed_generation == record.metadata.generation
    });
    let last = status.history.first().map(|revision| &revision.installed);
    let is_same = |to: &Installed| last.is_some_and(|last| last.is_same_target(to));
    failed && plan.to.as_ref().is_some_and(is_same)
}
