//! Objects of a plan that cannot be changed in place, found before the first write: each object whose manifest changed is read and dry-run,
//! none that is created or unchanged. What the change leaves as it is becomes a warning.
//!
//! Where an admission webhook keeps the server from judging, the live object is read and compared by the table of built-in
//! kinds. What cannot be judged at all is counted and stops nothing: the operation finds out.

use std::collections::BTreeSet;

use futures::stream;
use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::Value;

use common::api::installation::ObjectState;
use common::api::names;
use common::manifest::key::ObjectKey;
use common::plan::conflicts::{Conflict, Policy};
use common::plan::fit;
use common::plan::immutable::{FixedField, Obstacle, Recreation, Unjudged, loses_claims, table};
use common::plan::{Action, InstallationPlan, Step, Verb};

use super::apply::{fitting, is_silent_webhook, precise};
use super::cluster::Cluster;
use super::dry_run::{Planned, dry_run};
use super::error::{EngineError, FieldCause};
use super::live;
use super::served::is_definition;

/// How many fields of one object that stay are named.
const MOST: usize = 5;

/// The verdict on one object; none where it is refused for another reason, which the operation reports.
enum Verdict {
    Recreate(Recreation),
    Unjudged(Unjudged),
    /// It is changed in place, but for these fields.
    InPlace(Vec<String>),
}

/// Adds to the plans of a command what cannot be changed in place, and what cannot be judged. Returns the objects that are changed in
/// place, each with the place of its plan.
///
/// # Errors
/// The server cannot be reached.
pub async fn find(
    cluster: &Cluster,
    plans: &mut [&mut InstallationPlan],
) -> Result<BTreeSet<(usize, ObjectKey)>, EngineError> {
    let verdicts = {
        let planned = Planned::of(plans.iter().map(|plan| &**plan));
        let planned = &planned;
        let changed = plans.iter().enumerate().flat_map(|(part, plan)| {
            let plan: &InstallationPlan = plan;
            let steps = plan.steps.iter().filter(|step| may_recreate(plan, step));
            steps.map(move |step| (part, plan, step))
        });
        let changed: Vec<(usize, &InstallationPlan, &Step)> = changed.collect();
        let verdicts: Vec<(usize, ObjectKey, Option<Verdict>)> = stream::iter(changed)
            .map(async |(part, plan, step)| {
                let verdict = judge(cluster, plan, step, planned).await?;
                Ok::<_, EngineError>((part, step.target.key.clone(), verdict))
            })
            .buffered(cluster.concurrency())
            .try_collect()
            .await?;
        verdicts
    };
    let mut in_place = BTreeSet::new();
    for (part, key, verdict) in verdicts {
        let (Some(plan), Some(verdict)) = (plans.get_mut(part), verdict) else {
            continue;
        };
        match verdict {
            Verdict::Recreate(mut recreation) => {
                for field in &mut recreation.fields {
                    field.rule = plan.mask.text(&field.rule);
                }
                plan.recreations.push(recreation);
            }
            Verdict::Unjudged(unjudged) => plan.unjudged.push(unjudged),
            Verdict::InPlace(lines) => {
                in_place.insert((part, key));
                let lines = lines.iter().map(|line| plan.mask.text(line));
                let lines: Vec<String> = lines.collect();
                plan.warnings.extend(lines);
            }
        }
    }
    Ok(in_place)
}

/// Whether a step could change what never changes. Changed definitions are compared with the live ones anyway. An object that is
/// restored has fields that never change only where another client created it.
fn may_recreate(plan: &InstallationPlan, step: &Step) -> bool {
    let key = &step.target.key;
    if is_definition(key) || plan.verb == Verb::Adopt {
        return false;
    }
    match step.action {
        Action::Create => false,
        Action::Adopt | Action::Update | Action::Refresh => true,
        Action::Restore => plan.union.objects.get(key).is_some_and(|item| {
            item.object.digest != step.digest || item.object.state == ObjectState::Preexisting
        }),
    }
}

async fn judge(
    cluster: &Cluster,
    plan: &InstallationPlan,
    step: &Step,
    planned: &Planned<'_>,
) -> Result<Option<Verdict>, EngineError> {
    let manager = names::field_manager(&plan.installation.namespace, &plan.installation.name);
    // Replicas, which are left to an autoscaler, can always change: to leave them out would be one more request.
    let asked = Step {
        policy: Policy {
            autoscaler: None,
            ..step.policy.clone()
        },
        ..step.clone()
    };
    let live = readable(cluster, step).await?;
    let error = match dry_run(cluster, &asked, live.as_ref(), &manager).await {
        Ok(answer) => {
            let stays = live.map(|live| stays(step, &live, &answer.object, &manager));
            return Ok(Some(Verdict::InPlace(stays.unwrap_or_default())));
        }
        Err(error @ (EngineError::Unreachable { .. } | EngineError::Unauthorized { .. })) => {
            return Err(error);
        }
        Err(error) => error,
    };
    let unjudged = |why: String| {
        Some(Verdict::Unjudged(Unjudged {
            key: step.target.key.clone(),
            why,
        }))
    };
    if let Some(why) = planned.unjudged(step, &error) {
        return Ok(unjudged(why));
    }
    let fields = match error {
        EngineError::Immutable { causes, .. } => precise::causes(cluster, step, causes)
            .await
            .into_iter()
            .map(field)
            .collect(),
        error => match hidden_by(&error) {
            Some(why) => match by_table(step, live.as_ref()) {
                Some(fields) => fields,
                None => return Ok(unjudged(why.to_owned())),
            },
            None => return Ok(None),
        },
    };
    if fields.is_empty() {
        return Ok(None);
    }
    let mut recreation = Recreation::new(plan, &step.target.key, fields);
    if recreation.obstacle.is_none() && is_stateful(step) {
        let loses = live.is_some_and(|live| loses_claims(&live, &step.object));
        recreation.obstacle = loses.then_some(Obstacle::Claims);
    }
    Ok(Some(Verdict::Recreate(recreation)))
}

fn field(cause: FieldCause) -> FixedField {
    FixedField {
        field: cause.field,
        rule: cause.message,
    }
}

/// Why the server could not judge a change that it may accept later.
fn hidden_by(error: &EngineError) -> Option<&'static str> {
    match error {
        error if is_silent_webhook(error) => Some("an admission webhook does not answer"),
        EngineError::Api { message, .. } if message.contains("does not support dry run") => {
            Some("an admission webhook takes no dry runs")
        }
        EngineError::Api {
            code: 500..=599, ..
        } => Some("the server failed"),
        _ => None,
    }
}

/// The fields that never change by the table of built-in kinds; `None` where it does not have the kind, or the object cannot be
/// read.
fn by_table(step: &Step, live: Option<&Value>) -> Option<Vec<FixedField>> {
    table::changed(&step.target.key, live?, &step.object)
}

/// What an accepted change does not change, although the manifest does.
fn stays(step: &Step, live: &Value, answer: &Value, manager: &str) -> Vec<String> {
    let key = &step.target.key;
    let fitted = fit::fit(key, &step.object, &step.policy, live, manager);
    let kept = fitted.kept.iter().map(|kept| fitting::words(step, kept));
    let still = fit::still_there(key, live, answer, manager);
    let more = still.len().saturating_sub(MOST);
    let still = still.iter().take(MOST).map(|field| {
        let value = if key.is_secret() {
            String::new()
        } else {
            format!(" {}", Conflict::value(Some(&field.value)))
        };
        let verb = if field.owners.len() == 1 {
            "sets"
        } else {
            "set"
        };
        let owners = field.owners.join(" and ");
        format!(
            "{key} {} stays{value}, although the manifest drops it: {owners} {verb} it, too",
            field.path
        )
    });
    let more = (more > 0)
        .then(|| format!("{key}: {more} more fields stay, which other managers set, too"));
    kept.chain(still).chain(more).collect()
}

/// The whole live object; `None` where it does not exist or may not be read.
async fn readable(cluster: &Cluster, step: &Step) -> Result<Option<Value>, EngineError> {
    match live::object(cluster, step).await {
        Err(error @ (EngineError::Unreachable { .. } | EngineError::Unauthorized { .. })) => {
            Err(error)
        }
        Err(_) => Ok(None),
        found => found,
    }
}

fn is_stateful(step: &Step) -> bool {
    let key = &step.target.key;
    (key.group.as_str(), key.kind.as_str()) == ("apps", "StatefulSet")
}
