//! Objects that are restored although nothing of ours differs in them: another client added a label or a field of its own, which
//! an apply would leave as it is. They count as unchanged; one dry run and one read for each object that was edited.

use futures::stream;
use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::Value;

use common::api::names;
use common::manifest::key::ObjectKey;
use common::plan::inventory::Item;
use common::plan::{Action, InstallationPlan, Step};

use super::cluster::Cluster;
use super::diff::fields;
use super::dry_run::dry_run;
use super::error::EngineError;
use super::live;
use super::request::JSON;

/// Takes these steps out of a plan, and records the objects as they are now, so that they do not count as edited again.
///
/// # Errors
/// The server cannot be reached.
pub async fn drop_unneeded(
    cluster: &Cluster,
    plan: &mut InstallationPlan,
) -> Result<(), EngineError> {
    let manager = names::field_manager(&plan.installation.namespace, &plan.installation.name);
    let steps = plan.steps.iter().filter(|step| may_be_unneeded(plan, step));
    let steps: Vec<&Step> = steps.collect();
    let manager = manager.as_str();
    let same: Vec<Option<(ObjectKey, Value)>> = stream::iter(steps)
        .map(async |step| {
            let live = unchanged(cluster, step, manager).await?;
            Ok::<_, EngineError>(live.map(|live| (step.target.key.clone(), live)))
        })
        .buffered(cluster.concurrency())
        .try_collect()
        .await?;
    for (key, live) in same.into_iter().flatten() {
        let Some(item) = plan.union.objects.get(&key).cloned() else {
            continue;
        };
        plan.steps.retain(|step| step.target.key != key);
        plan.exact
            .objects
            .insert(key.clone(), as_it_is(item, &live));
        plan.unchanged.push(key);
    }
    plan.unchanged.sort();
    Ok(())
}

/// Whether the record and the manifest agree, and only an edit of another client led to the step. Fields that may be left to others are
/// found by the apply, which remembers them.
fn may_be_unneeded(plan: &InstallationPlan, step: &Step) -> bool {
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

/// The live object, where an apply would change nothing of it. What the server refuses is left to the operation.
async fn unchanged(
    cluster: &Cluster,
    step: &Step,
    manager: &str,
) -> Result<Option<Value>, EngineError> {
    let dry_run = dry_run::<Value>(cluster, step, manager, JSON);
    let (live, wanted) = match futures::join!(live::object(cluster, step), dry_run) {
        (Ok(Some(live)), Ok(wanted)) => (live, wanted.object),
        (Err(error @ (EngineError::Unreachable { .. } | EngineError::Unauthorized { .. })), _) => {
            return Err(error);
        }
        _ => return Ok(None),
    };
    // A comparison leaves out our own marks, which pruning needs.
    let marks = ["/metadata/labels", "/metadata/annotations", "/metadata/uid"];
    let is_marked = marks
        .iter()
        .all(|mark| live.pointer(mark) == wanted.pointer(mark));
    let is_same = is_marked && fields::compare(&live, &wanted, manager, false).is_empty();
    Ok(is_same.then_some(live))
}

/// What is recorded of an object, in its present generation or resourceVersion.
fn as_it_is(mut item: Item, live: &Value) -> Item {
    let object = &mut item.object;
    if object.generation.is_some() {
        object.generation = live
            .pointer("/metadata/generation")
            .and_then(Value::as_i64)
            .or(object.generation);
    }
    if object.resource_version.is_some() {
        let version = live.pointer("/metadata/resourceVersion");
        let version = version.and_then(Value::as_str).map(str::to_owned);
        object.resource_version = version.or(object.resource_version.take());
    }
    item
}
