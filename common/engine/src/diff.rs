//! Compares a plan with live objects field by field, by server-side dry runs in parallel.

pub(super) mod fields;
pub(super) mod former;

use futures::stream;
use futures::{StreamExt as _, TryStreamExt as _};

use addons_plan::changes::{ObjectDiff, RefusalRemedy, hide};
use addons_plan::immutable::Recreation;
use addons_plan::migration::Migration;
use addons_plan::{Action, InstallationPlan, Step};

use super::apply::explain;
use super::cluster::Cluster;
use super::dry_run::PlanDryRun;
use super::error::EngineError;
use super::live;
use super::refusals::CommandPlans;

/// Compares every step of a plan with its live object. No dry run is sent for creations, and for steps that the plan already reports as
/// refused, unchangeable or undecidable.
///
/// # Errors
/// The server cannot be reached. Refusals of single objects are in [`ObjectDiff::error`].
pub async fn diff(
    cluster: &Cluster,
    plan: &InstallationPlan,
) -> Result<Vec<ObjectDiff>, EngineError> {
    let run = PlanDryRun::new(cluster, plan);
    let planned = CommandPlans::new(&[plan]);
    let (run, planned) = (&run, &planned);
    let mut changes: Vec<ObjectDiff> = stream::iter(&plan.steps)
        .map(async |step| match known_diff(plan, step) {
            Some(change) => Ok(change),
            None => {
                let mut migrations = plan.migrations();
                let migration = migrations.find(|one| one.definition == step.target.key);
                diff_step(run, step, migration, planned).await
            }
        })
        .buffered(cluster.concurrency())
        .try_collect()
        .await?;
    hide(&mut changes, &plan.mask);
    Ok(changes)
}

/// Returns the change of one object, without fields.
fn empty_diff(step: &Step) -> ObjectDiff {
    ObjectDiff {
        key: step.target.key.clone(),
        action: step.action,
        created: step.action == Action::Create,
        fields: Vec::new(),
        recreated: None,
        error: None,
        remedy: None,
        unjudged: None,
    }
}

/// Returns the change that the plan already knows; `None` if fields have to be compared.
fn known_diff(plan: &InstallationPlan, step: &Step) -> Option<ObjectDiff> {
    let key = &step.target.key;
    let change = empty_diff(step);
    if let Some(refusal) = plan.refusal(key) {
        return Some(ObjectDiff {
            error: Some(refusal.message.clone()),
            remedy: refusal.remedy.clone(),
            ..change
        });
    }
    if let Some(recreation) = plan.recreation(key) {
        return Some(recreation_diff(recreation, step, change));
    }
    let mut unjudged = plan.unjudged.iter();
    if let Some(unjudged) = unjudged.find(|unjudged| unjudged.key == *key) {
        return Some(ObjectDiff {
            unjudged: Some(unjudged.why.clone()),
            ..change
        });
    }
    change.created.then_some(change)
}

/// Returns the change for a step that needs a deletion.
fn recreation_diff(recreation: &Recreation, step: &Step, change: ObjectDiff) -> ObjectDiff {
    let reasons = recreation.reasons();
    let is_accepted = recreation.obstacle.is_none();
    match recreation.holders.as_slice() {
        [] if step.policy.recreate && is_accepted => ObjectDiff {
            recreated: Some(reasons),
            ..change
        },
        [] => ObjectDiff {
            error: Some(match recreation.describe_obstacle() {
                Some(why) => format!("cannot be changed: {reasons}; {why}"),
                None => format!("cannot be changed: {reasons}"),
            }),
            remedy: Some(if is_accepted {
                RefusalRemedy::Recreate
            } else {
                RefusalRemedy::ByHand
            }),
            ..change
        },
        holders
            if holders
                .iter()
                .all(|holder| step.policy.deletes_first(holder)) =>
        {
            change
        }
        holders => {
            let keys: Vec<String> = holders.iter().map(|it| it.target.key.to_string()).collect();
            ObjectDiff {
                error: Some(format!(
                    "{reasons}; {}, which is pruned, has to be deleted first",
                    keys.join(", ")
                )),
                ..change
            }
        }
    }
}

/// Compares one step. `migration`: that of a step that applies a transitional CRD; the result is compared in its final form.
async fn diff_step(
    run: &PlanDryRun<'_>,
    step: &Step,
    migration: Option<&Migration>,
    planned: &CommandPlans<'_>,
) -> Result<ObjectDiff, EngineError> {
    let (cluster, manager) = (run.cluster, run.manager.as_str());
    let key = &step.target.key;
    let live = live::read_step_object(cluster, step).await?;
    let answer = run.apply(step, live.as_ref()).await;
    let mut change = ObjectDiff {
        created: live.is_none(),
        ..empty_diff(step)
    };
    match (live, answer) {
        (Some(mut live), Ok(wanted)) => {
            if step.policy.adopted.is_some() {
                former::remove_helm_marks(&mut live);
            }
            let is_secret = key.is_secret();
            let wanted = former::apply_takeover(cluster, step, &live, wanted.object, manager).await;
            let wanted = match migration {
                Some(migration) => migration.to_final(&wanted),
                None => wanted,
            };
            change.fields = fields::compare(&live, &wanted, manager, is_secret);
        }
        (_, Err(error @ (EngineError::Unreachable { .. } | EngineError::Unauthorized { .. }))) => {
            return Err(error);
        }
        (None, Ok(_)) => {}
        (_, Err(error @ EngineError::Immutable { .. })) if step.policy.recreate => {
            change.recreated = Some(error.describe());
        }
        (_, Err(error)) => match planned.reason_unjudged(step, &error) {
            // Its namespace or CRD is part of the same plan, or of an add-on that is installed before.
            unjudged @ Some(_) => change.unjudged = unjudged,
            None => {
                let error = explain(error, step);
                change.remedy = error.remedy();
                change.error = Some(error.describe());
            }
        },
    }
    Ok(change)
}
