//! Objects that are restored although nothing of ours differs in them: another client added a label or a field of its own, which
//! an apply would leave as it is. Nothing of them is to be agreed to; one dry run and one read for each object that was edited.

use std::collections::BTreeSet;

use futures::stream;
use futures::{StreamExt as _, TryStreamExt as _};

use common::api::names;
use common::manifest::key::ObjectKey;
use common::plan::{Action, InstallationPlan, Step};

use super::cluster::Cluster;
use super::diff::fields;
use super::dry_run::dry_run;
use super::error::EngineError;
use super::live;

/// Turns these steps into ones that record the object as it is now, so that it does not count as edited again.
///
/// # Errors
/// The server cannot be reached.
pub async fn refresh_unchanged(
    cluster: &Cluster,
    plan: &mut InstallationPlan,
) -> Result<(), EngineError> {
    let manager = names::field_manager(&plan.installation.namespace, &plan.installation.name);
    let steps = plan
        .steps
        .iter()
        .filter(|step| may_be_unchanged(plan, step));
    let steps: Vec<&Step> = steps.collect();
    let manager = manager.as_str();
    let unchanged: Vec<Option<ObjectKey>> = stream::iter(steps)
        .map(async |step| {
            let is_unchanged = is_unchanged(cluster, step, manager).await?;
            Ok::<_, EngineError>(is_unchanged.then(|| step.target.key.clone()))
        })
        .buffered(cluster.concurrency())
        .try_collect()
        .await?;
    let unchanged: BTreeSet<ObjectKey> = unchanged.into_iter().flatten().collect();
    for step in &mut plan.steps {
        if unchanged.contains(&step.target.key) {
            step.action = Action::Refresh;
        }
    }
    Ok(())
}

/// Whether the record and the manifest agree, and only an edit of another client led to the step. Fields that may be left to others are
/// found by the apply, which remembers them.
fn may_be_unchanged(plan: &InstallationPlan, step: &Step) -> bool {
    let policy = &step.policy;
    let recorded = plan.union.objects.get(&step.target.key);
    step.action == Action::Restore
        && policy.takes_all()
        && policy.inherited.is_none()
        && policy.adopted.is_none()
        && recorded.is_some_and(|item| {
            let object = &item.object;
            !step.digest.is_empty() && object.digest == step.digest && object.yielded.is_empty()
        })
}

/// Whether an apply would change nothing of the live object. What the server refuses is left to the operation.
async fn is_unchanged(cluster: &Cluster, step: &Step, manager: &str) -> Result<bool, EngineError> {
    let live = match live::object(cluster, step).await {
        Ok(Some(live)) => live,
        Err(error @ (EngineError::Unreachable { .. } | EngineError::Unauthorized { .. })) => {
            return Err(error);
        }
        _ => return Ok(false),
    };
    let Ok(wanted) = dry_run(cluster, step, Some(&live), manager).await else {
        return Ok(false);
    };
    let wanted = wanted.object;
    // A comparison leaves out our own marks, which pruning needs.
    let marks = ["/metadata/labels", "/metadata/annotations", "/metadata/uid"];
    let is_marked = marks
        .iter()
        .all(|mark| live.pointer(mark) == wanted.pointer(mark));
    Ok(is_marked && fields::compare(&live, &wanted, manager, false).is_empty())
}
