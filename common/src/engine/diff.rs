//! What a plan would change in live objects, field by field: server-side dry runs in parallel.

mod fields;

use std::collections::BTreeSet;

use futures::stream;
use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::Value;

use crate::api::installation::Conflicts;
use crate::api::names;
use crate::plan::changes::ObjectDiff;
use crate::plan::order::defined_kind;
use crate::plan::{Action, Plan, Step};

use super::address::Collection;
use super::apply::{apply_call, explain};
use super::cluster::Cluster;
use super::error::EngineError;
use super::request::{Call, JSON};

/// Dry-runs every step of a plan.
///
/// An object that cannot be dry-run because its namespace or definition is only planned is simply new.
///
/// # Errors
/// None of its own: what the server says to single objects stands in [`ObjectDiff::error`]. An unreachable server is.
pub async fn diff(cluster: &Cluster, plan: &Plan) -> Result<Vec<ObjectDiff>, EngineError> {
    let manager = names::field_manager(&plan.installation.namespace, &plan.installation.name);
    let steps: Vec<&Step> = plan.steps.iter().collect();
    let planned = Planned::of(plan);
    let (planned, manager) = (&planned, manager.as_str());
    stream::iter(steps)
        .map(async |step| diff_step(cluster, step, manager, planned).await)
        .buffered(cluster.concurrency())
        .try_collect()
        .await
}

/// What the server cannot know before the plan was executed.
struct Planned<'a> {
    namespaces: BTreeSet<&'a str>,
    /// (group, kind) of definitions that come or change.
    kinds: BTreeSet<(String, String)>,
}

impl<'a> Planned<'a> {
    fn of(plan: &'a Plan) -> Self {
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

    fn unjudged(&self, step: &Step) -> Option<String> {
        let key = &step.target.key;
        let namespace = key.namespace.as_deref();
        let kind = (key.group.clone(), key.kind.clone());
        if namespace.is_some_and(|namespace| self.namespaces.contains(namespace)) {
            Some("its namespace comes with this plan".to_owned())
        } else if self.kinds.contains(&kind) {
            Some("its definition comes with this plan".to_owned())
        } else {
            None
        }
    }
}

async fn diff_step(
    cluster: &Cluster,
    step: &Step,
    manager: &str,
    planned: &Planned<'_>,
) -> Result<ObjectDiff, EngineError> {
    let key = &step.target.key;
    let mut dry_run = apply_call(step, manager, JSON)?.query("dryRun", "All");
    if step.policy.conflicts == Conflicts::Take {
        dry_run = dry_run.query("force", "true");
    }
    let (live, answer) = if step.action == Action::Create {
        // The snapshot said that it is not there; the answer tells where somebody was faster.
        let answer = cluster.send::<Value>(dry_run).await;
        let there = answer.as_ref().is_ok_and(|answer| !answer.created);
        let live = if there {
            live(cluster, step).await?
        } else {
            None
        };
        (live, answer)
    } else {
        let (live, answer) = futures::join!(live(cluster, step), cluster.send::<Value>(dry_run));
        (live?, answer)
    };
    let mut change = ObjectDiff {
        key: key.clone(),
        action: step.action,
        created: live.is_none(),
        fields: Vec::new(),
        error: None,
        unjudged: None,
    };
    match (live, answer) {
        (Some(live), Ok(wanted)) => {
            let is_secret = key.group.is_empty() && key.kind == "Secret";
            change.fields = fields::compare(&live, &wanted.object, manager, is_secret);
        }
        (_, Err(error @ (EngineError::Unreachable { .. } | EngineError::Unauthorized { .. }))) => {
            return Err(error);
        }
        (None, Ok(_)) => {}
        (_, Err(error)) => match planned.unjudged(step) {
            // Its namespace or its definition comes with the same plan, or with an add-on that goes before.
            unjudged @ Some(_) => change.unjudged = unjudged,
            None if error.code() == Some(404) && change.created => {
                change.unjudged = Some("its namespace or definition is not there yet".to_owned());
            }
            None => change.error = Some(explain(error, step).words()),
        },
    }
    Ok(change)
}

/// The whole live object; `None` where it is not there.
async fn live(cluster: &Cluster, step: &Step) -> Result<Option<Value>, EngineError> {
    let call = Call::get(&Collection::of(&step.target), &step.target.key.name, JSON);
    match cluster.send::<Value>(call).await {
        Ok(answer) => Ok(Some(answer.object)),
        Err(error) if error.code() == Some(404) => Ok(None),
        Err(error) => Err(error),
    }
}
