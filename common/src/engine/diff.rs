//! What a plan would change in live objects, field by field: server-side dry runs in parallel.

mod fields;

use futures::stream;
use futures::{StreamExt as _, TryStreamExt as _};
use serde::Serialize;
use serde_json::Value;

use crate::api::names;
use crate::manifest::key::ObjectKey;
use crate::plan::{Plan, Step};

use super::address::Collection;
use super::apply::{apply_call, explain};
use super::cluster::Cluster;
use super::error::EngineError;
use super::request::{Call, JSON};

/// The change of one object.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectDiff {
    /// The object.
    pub key: ObjectKey,
    /// Whether it is new.
    pub created: bool,
    /// Changed fields, sorted by path; empty where the server would change nothing.
    pub fields: Vec<FieldChange>,
    /// The server's refusal of the dry run.
    pub error: Option<String>,
}

/// The change of one field. Values of Secrets are masked.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FieldChange {
    /// `spec.template.spec.containers[metrics-server].image`.
    pub path: String,
    /// Live value.
    pub old: Option<Value>,
    /// Value after the apply.
    pub new: Option<Value>,
    /// Field manager that owns the live value now, where it is not us.
    pub manager: Option<String>,
}

/// Dry-runs every step of a plan.
///
/// An object that cannot be dry-run because its namespace or definition is only planned is simply new.
///
/// # Errors
/// None of its own: what the server says to single objects stands in [`ObjectDiff::error`]. An unreachable server is.
pub async fn diff(cluster: &Cluster, plan: &Plan) -> Result<Vec<ObjectDiff>, EngineError> {
    let manager = names::field_manager(&plan.installation.namespace, &plan.installation.name);
    let steps: Vec<&Step> = plan.steps.iter().collect();
    stream::iter(steps)
        .map(async |step| diff_step(cluster, step, &manager).await)
        .buffered(cluster.concurrency())
        .try_collect()
        .await
}

async fn diff_step(
    cluster: &Cluster,
    step: &Step,
    manager: &str,
) -> Result<ObjectDiff, EngineError> {
    let key = &step.target.key;
    let collection = Collection::of(&step.target);
    let mut dry_run = apply_call(step, manager, JSON)?.query("dryRun", "All");
    if step.force {
        dry_run = dry_run.query("force", "true");
    }
    let live = async {
        match cluster
            .send::<Value>(Call::get(&collection, &key.name, JSON))
            .await
        {
            Ok(answer) => Ok(Some(answer.object)),
            Err(error) if error.code() == Some(404) => Ok(None),
            Err(error) => Err(error),
        }
    };
    let (live, wanted) = futures::join!(live, cluster.send::<Value>(dry_run));
    let live = live?;
    let mut change = ObjectDiff {
        key: key.clone(),
        created: live.is_none(),
        fields: Vec::new(),
        error: None,
    };
    match (live, wanted) {
        (Some(live), Ok(wanted)) => {
            let is_secret = key.group.is_empty() && key.kind == "Secret";
            change.fields = fields::compare(&live, &wanted.object, manager, is_secret);
        }
        (_, Err(error @ (EngineError::Unreachable { .. } | EngineError::Unauthorized { .. }))) => {
            return Err(error);
        }
        // Its namespace or its definition comes with the same plan.
        (None, Err(error)) if error.code() == Some(404) => {}
        (_, Err(error)) => change.error = Some(explain(error, step).words()),
        (None, Ok(_)) => {}
    }
    Ok(change)
}
