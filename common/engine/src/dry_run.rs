//! Dry runs of steps: what the server would answer, and why it may not be able to say.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use common::api::installation::Conflicts;
use common::plan::conflicts::path;
use common::plan::migration;
use common::plan::order::defined_kind;
use common::plan::{Action, InstallationPlan, Step};
use common::values::mask::Mask;

use super::address::Collection;
use super::apply::{apply_object, fitting};
use super::cluster::Cluster;
use super::diff::former;
use super::error::EngineError;
use super::request::{Answer, Call, JSON};
use super::served::is_definition;

/// What the server cannot know before the plans of a command are executed.
pub(super) struct Planned<'a> {
    namespaces: BTreeSet<&'a str>,
    /// (group, kind) of definitions that are created or changed.
    kinds: BTreeSet<(String, String)>,
}

impl<'a> Planned<'a> {
    pub(super) fn of(plans: impl IntoIterator<Item = &'a InstallationPlan>) -> Self {
        let mut planned = Self {
            namespaces: BTreeSet::new(),
            kinds: BTreeSet::new(),
        };
        for plan in plans {
            let namespaces = plan.steps.iter().filter(|step| {
                let key = &step.target.key;
                step.action == Action::Create && key.group.is_empty() && key.kind == "Namespace"
            });
            let namespaces = namespaces.map(|step| step.target.key.name.as_str());
            planned
                .namespaces
                .extend(namespaces.chain(plan.create_namespace.as_deref()));
            let definitions = plan
                .steps
                .iter()
                .filter_map(|step| defined_kind(&step.object));
            planned.kinds.extend(definitions);
        }
        planned
    }

    /// Why the server refused what it will accept later.
    pub(super) fn unjudged(&self, step: &Step, error: &EngineError) -> Option<String> {
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

/// The result of a step on the API server, given its live object. Fields that others hold and may keep are left out, as the apply does, and
/// those that the apply claims are gone.
pub(super) async fn dry_run(
    cluster: &Cluster,
    step: &Step,
    live: Option<&Value>,
    manager: &str,
) -> Result<Answer<Value>, EngineError> {
    let definition = live.filter(|_| is_definition(&step.target.key));
    let lost = definition.map(|live| migration::lost(live, &step.object));
    let Some(lost) = lost.filter(|lost| !lost.is_empty()) else {
        return ask(cluster, step, live, manager).await;
    };
    // They leave the status before the apply, which a dry run cannot do.
    let step = Step {
        object: Arc::new(migration::with_lost(&step.object, &lost)),
        ..step.clone()
    };
    let mut answer = ask(cluster, &step, live, manager).await?;
    migration::without_lost(&mut answer.object, &lost);
    Ok(answer)
}

async fn ask(
    cluster: &Cluster,
    step: &Step,
    live: Option<&Value>,
    manager: &str,
) -> Result<Answer<Value>, EngineError> {
    let Some(live) = live else {
        return send(cluster, step, &step.object, manager).await;
    };
    let taken_over = former::taken_over(step, live, manager).map(|entries| {
        let mut live = live.clone();
        live["metadata"]["managedFields"] = entries.into();
        live
    });
    let live = taken_over.as_ref().unwrap_or(live);
    let fitted = fitting::judge(step, live, manager, &Mask::default())?;
    if fitted.leftovers.is_empty() {
        return send(cluster, step, &fitted.object, manager).await;
    }
    // A dry run cannot own fields first. The server judges the object with them, then what the apply leaves of it.
    let bridged = Arc::new(fitted.bridged(live));
    let mut answer = send(cluster, step, &bridged, manager).await?;
    fitted.cross(&mut answer.object);
    let target = &step.target;
    let replace = Call::replace(&Collection::of(target), &target.key.name, JSON)
        .query("dryRun", "All")
        .query("fieldManager", manager)
        .body(answer.object.to_string().into_bytes());
    match cluster.send::<Value>(replace).await {
        Ok(replaced) => answer.object = replaced.object,
        // Whoever may not replace it sees the object without the defaults that take the place of these fields.
        Err(EngineError::Forbidden { .. }) => {}
        Err(error) => return Err(error),
    }
    Ok(answer)
}

/// A dry run of an object.
async fn send(
    cluster: &Cluster,
    step: &Step,
    object: &Arc<Value>,
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
    // The fields of a former owner are ours before the apply.
    let force = policy.takes_all() || policy.inherited.is_some() || policy.adopted.is_some();
    let refusal = match send(object, force).await {
        Err(refusal @ EngineError::FieldConflict { .. }) => refusal,
        answer => return answer,
    };
    let mut object = Value::clone(object);
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
