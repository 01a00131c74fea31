//! What a plan would change in live objects, field by field: server-side dry runs in parallel.

pub(super) mod fields;
pub(super) mod former;

use futures::stream;
use futures::{StreamExt as _, TryStreamExt as _};

use common::api::names;
use common::plan::changes::{ObjectDiff, hide};
use common::plan::migration::Migration;
use common::plan::{Action, InstallationPlan, Step};

use super::apply::explain;
use super::cluster::Cluster;
use super::dry_run::{Planned, dry_run};
use super::error::EngineError;
use super::live;

/// Dry-runs every step of a plan.
///
/// An object that cannot be dry-run because its namespace or definition is only planned counts as new.
///
/// # Errors
/// The server cannot be reached. Refusals of single objects are in [`ObjectDiff::error`].
pub async fn diff(
    cluster: &Cluster,
    plan: &InstallationPlan,
) -> Result<Vec<ObjectDiff>, EngineError> {
    let manager = names::field_manager(&plan.installation.namespace, &plan.installation.name);
    let steps: Vec<&Step> = plan.steps.iter().collect();
    let planned = Planned::of([plan]);
    let (planned, manager) = (&planned, manager.as_str());
    let mut changes: Vec<ObjectDiff> = stream::iter(steps)
        .map(async |step| {
            let mut migrations = plan.migrations.iter();
            let migration = migrations.find(|one| one.definition == step.target.key);
            diff_step(cluster, step, migration, manager, planned).await
        })
        .buffered(cluster.concurrency())
        .try_collect()
        .await?;
    hide(&mut changes, &plan.mask);
    Ok(changes)
}

/// `migration`: of a step that applies the transitional definition; what is wanted is the one after it.
async fn diff_step(
    cluster: &Cluster,
    step: &Step,
    migration: Option<&Migration>,
    manager: &str,
    planned: &Planned<'_>,
) -> Result<ObjectDiff, EngineError> {
    let key = &step.target.key;
    // A creation has none; the response shows whether another client made one meanwhile.
    let known = if step.action == Action::Create {
        None
    } else {
        live::object(cluster, step).await?
    };
    let answer = dry_run(cluster, step, known.as_ref(), manager).await;
    let is_there = answer.as_ref().is_ok_and(|answer| !answer.created);
    let live = match known {
        None if step.action == Action::Create && is_there => live::object(cluster, step).await?,
        known => known,
    };
    let mut change = ObjectDiff {
        key: key.clone(),
        action: step.action,
        created: live.is_none(),
        fields: Vec::new(),
        recreated: None,
        error: None,
        remedy: None,
        unjudged: None,
    };
    match (live, answer) {
        (Some(mut live), Ok(wanted)) => {
            if step.policy.adopted.is_some() {
                former::unmark(&mut live);
            }
            let is_secret = key.is_secret();
            let wanted = former::without(cluster, step, &live, wanted.object, manager).await;
            let wanted = match migration {
                Some(migration) => migration.finished(&wanted),
                None => wanted,
            };
            change.fields = fields::compare(&live, &wanted, manager, is_secret);
        }
        (_, Err(error @ (EngineError::Unreachable { .. } | EngineError::Unauthorized { .. }))) => {
            return Err(error);
        }
        (None, Ok(_)) => {}
        (_, Err(error @ EngineError::Immutable { .. })) if step.policy.recreate => {
            change.recreated = Some(error.words());
        }
        (_, Err(error)) => match planned.unjudged(step, &error) {
            // Its namespace or definition is part of the same plan, or of an add-on that is installed before.
            unjudged @ Some(_) => change.unjudged = unjudged,
            None => {
                let error = explain(error, step);
                change.remedy = error.remedy();
                change.error = Some(error.words());
            }
        },
    }
    Ok(change)
}
