//! What a plan would change in live objects, field by field: server-side dry runs in parallel.

mod fields;

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::stream;
use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::Value;

use common::api::installation::Conflicts;
use common::api::names;
use common::plan::changes::{ObjectDiff, hide};
use common::plan::conflicts::path;
use common::plan::order::defined_kind;
use common::plan::{Action, InstallationPlan, Step};

use super::address::Collection;
use super::apply::{apply_object, explain};
use super::cluster::Cluster;
use super::error::EngineError;
use super::request::{Answer, Call, JSON};

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
    let planned = Planned::of(plan);
    let (planned, manager) = (&planned, manager.as_str());
    let mut changes: Vec<ObjectDiff> = stream::iter(steps)
        .map(async |step| diff_step(cluster, step, manager, planned).await)
        .buffered(cluster.concurrency())
        .try_collect()
        .await?;
    hide(&mut changes, &plan.mask);
    Ok(changes)
}

/// What the server cannot know before the plan is executed.
struct Planned<'a> {
    namespaces: BTreeSet<&'a str>,
    /// (group, kind) of definitions that are created or changed.
    kinds: BTreeSet<(String, String)>,
}

impl<'a> Planned<'a> {
    fn of(plan: &'a InstallationPlan) -> Self {
        let namespaces = plan.steps.iter().filter(|step| {
            let key = &step.target.key;
            step.action == Action::Create && key.group.is_empty() && key.kind == "Namespace"
        });
        let namespaces = namespaces.map(|step| step.target.key.name.as_str());
        let definitions = plan
            .steps
            .iter()
            .filter_map(|step| defined_kind(&step.object));
        Self {
            namespaces: namespaces.chain(plan.create_namespace.as_deref()).collect(),
            kinds: definitions.collect(),
        }
    }

    /// Why the server refused what it will accept later.
    fn unjudged(&self, step: &Step, error: &EngineError) -> Option<String> {
        let key = &step.target.key;
        let is_missing = error.code() == Some(404) && step.action == Action::Create;
        if let Some(namespace) = &key.namespace
            && (self.namespaces.contains(namespace.as_str())
                || is_missing && error.words().contains("namespaces \""))
        {
            return Some(format!("namespace {namespace} does not exist yet"));
        }
        if is_missing {
            return Some(format!("kind {} is not defined yet", key.kind));
        }
        let kind = (key.group.clone(), key.kind.clone());
        self.kinds
            .contains(&kind)
            .then(|| format!("the definition of {} is part of the plan", key.kind))
    }
}

async fn diff_step(
    cluster: &Cluster,
    step: &Step,
    manager: &str,
    planned: &Planned<'_>,
) -> Result<ObjectDiff, EngineError> {
    let key = &step.target.key;
    let dry_run = dry_run(cluster, step, manager);
    let (live, answer) = if step.action == Action::Create {
        // The snapshot did not have it; the response shows whether another client created it meanwhile.
        let answer = dry_run.await;
        let there = answer.as_ref().is_ok_and(|answer| !answer.created);
        let live = if there {
            live(cluster, step).await?
        } else {
            None
        };
        (live, answer)
    } else {
        let (live, answer) = futures::join!(live(cluster, step), dry_run);
        (live?, answer)
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
        (Some(live), Ok(wanted)) => {
            let is_secret = key.is_secret();
            change.fields = fields::compare(&live, &wanted.object, manager, is_secret);
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

/// The result of a step on the API server. Fields that others hold and may keep are left out, as the apply does.
async fn dry_run(
    cluster: &Cluster,
    step: &Step,
    manager: &str,
) -> Result<Answer<Value>, EngineError> {
    let send = async |object: &Arc<Value>, force: bool| {
        let call = apply_object(step, object, manager, JSON)?.query("dryRun", "All");
        let call = if force {
            call.query("force", "true")
        } else {
            call
        };
        cluster.send::<Value>(call).await
    };
    let policy = &step.policy;
    let refusal = match send(&step.object, policy.takes_all()).await {
        Err(refusal @ EngineError::FieldConflict { .. }) => refusal,
        answer => return answer,
    };
    let mut object = Value::clone(&step.object);
    if let EngineError::FieldConflict { causes, .. } = &refusal {
        let fields = causes.iter().map(|cause| cause.field.as_str());
        let left = fields
            .clone()
            .filter(|field| policy.at(field).0 == Conflicts::Yield);
        let fails = fields
            .clone()
            .any(|field| policy.at(field).0 == Conflicts::Fail);
        if fails || path::remove_all(&mut object, left).is_err() {
            return Err(refusal);
        }
    }
    send(&Arc::new(object), true).await
}

/// The whole live object; `None` where it does not exist.
async fn live(cluster: &Cluster, step: &Step) -> Result<Option<Value>, EngineError> {
    let call = Call::get(&Collection::of(&step.target), &step.target.key.name, JSON);
    match cluster.send::<Value>(call).await {
        Ok(answer) => Ok(Some(answer.object)),
        Err(error) if error.code() == Some(404) => Ok(None),
        Err(error) => Err(error),
    }
}
