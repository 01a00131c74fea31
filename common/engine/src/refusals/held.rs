//! Finds which object holds something that the server does not give to two objects.
//!
//! A dry run detects a node port that is taken, but not a cluster IP, which is therefore looked up.

use serde_json::Value;

use addons_plan::holder::{self, Single, gives_up, singles};
use addons_plan::immutable::FixedField;
use addons_plan::refusal::{Cause, Refusal};
use addons_plan::{Action, InstallationPlan, Step, Target};
use common::manifest::key::ObjectKey;

use super::super::address::{Collection, query_value};
use super::super::apply::plain;
use super::super::cluster::Cluster;
use super::super::error::{EngineError, FieldCause};
use super::super::listing::one_page;
use super::super::live;
use super::super::meta::Partial;
use super::super::request::{Call, METADATA_LIST};
use super::planned::{Planned, is_named};
use super::reachable;

/// Prefix of the server's name for a field of a port.
const PORTS: &str = "spec.ports[";

/// A field that asks for something that another object holds.
pub(super) struct Held {
    pub(super) field: FixedField,
    /// The object that holds it; `None` if unknown.
    pub(super) holder: Option<ObjectKey>,
}

/// Returns the Service that holds the cluster IP that a new one asks for.
pub(super) async fn address(cluster: &Cluster, step: &Step) -> Result<Option<Held>, EngineError> {
    let Some(address) = holder::address(&step.target.key, &step.object) else {
        return Ok(None);
    };
    if step.action != Action::Create {
        return Ok(None);
    }
    let all = Collection {
        namespace: None,
        ..Collection::of(&step.target)
    };
    let selector = format!("spec.clusterIP={address}");
    let call = Call::list(&all, METADATA_LIST).query("fieldSelector", &query_value(&selector));
    let found = match one_page::<Partial>(cluster, call).await {
        Ok(page) => page.items,
        // A client that may not list Services gets the refusal during the operation.
        Err(error) => return reachable(error).map(|_| None),
    };
    let mut keys = found.iter().map(|found| all.key(&found.metadata));
    let holder = keys.find(|key| *key != step.target.key);
    Ok(holder.map(|holder| Held {
        field: FixedField {
            field: "spec.clusterIP".to_owned(),
            rule: format!("{holder} has {address}"),
        },
        holder: Some(holder),
    }))
}

/// Returns what a refused step asks for that other objects hold; `None` if it is refused for another reason.
pub(super) async fn of_refusal(
    cluster: &Cluster,
    planned: &Planned<'_>,
    plan: &InstallationPlan,
    step: &Step,
    error: &EngineError,
) -> Result<Option<Vec<Held>>, EngineError> {
    match error {
        EngineError::Invalid { causes, .. } => {
            let asked = causes.iter().map(|cause| Some((cause, port(step, cause)?)));
            let Some(asked) = asked.collect::<Option<Vec<_>>>() else {
                return Ok(None);
            };
            let holders = holders(cluster, planned, step).await?;
            let held = asked.into_iter().map(|(cause, port)| {
                let mut holders = holders.iter();
                let holder = holders.find(|holder| holder.has.contains(&port));
                Held {
                    field: FixedField {
                        field: cause.field.clone(),
                        rule: rule(cause),
                    },
                    holder: holder.map(|holder| holder.key.clone()),
                }
            });
            Ok(Some(held.collect()))
        }
        EngineError::Denied { message, .. } => Ok(denied(planned, plan, step, message)),
        _ => Ok(None),
    }
}

/// Returns the refusal of an object if the command frees nothing for it.
pub(super) fn refusal(key: &ObjectKey, held: &[Held]) -> Refusal {
    let lines: Vec<String> = held.iter().map(|one| one.field.to_string()).collect();
    Refusal {
        key: key.clone(),
        message: lines.join("; "),
        cause: Cause::Other,
        remedy: None,
    }
}

/// Returns the node port that a cause says is taken.
fn port(step: &Step, cause: &FieldCause) -> Option<Single> {
    let is_taken = cause.message.contains("is already allocated");
    let index = cause
        .field
        .strip_prefix(PORTS)?
        .strip_suffix("].nodePort")?;
    let index: usize = index.parse().ok().filter(|_| is_taken)?;
    let port = step.object["spec"]["ports"].get(index)?["nodePort"].as_u64()?;
    Some(Single::NodePort(port))
}

/// Returns the rule of a cause without the value before it: `provided port is already allocated`.
fn rule(cause: &FieldCause) -> String {
    let rule = cause.message.rsplit(": ").next();
    rule.unwrap_or(&cause.message).to_owned()
}

/// An object of the command, and what it holds now and gives up.
struct Holder {
    key: ObjectKey,
    has: Vec<Single>,
}

/// Returns the Services that the command deletes, or applies without node ports that they hold.
async fn holders(
    cluster: &Cluster,
    planned: &Planned<'_>,
    step: &Step,
) -> Result<Vec<Holder>, EngineError> {
    let key = &step.target.key;
    let is_service =
        |other: &ObjectKey| other != key && other.group == key.group && other.kind == key.kind;
    let plans = planned.plans().iter();
    let candidates = plans.flat_map(|plan| {
        let pruned = plan.prune.iter().flatten();
        let pruned = pruned.map(|deletion| (&deletion.target, None));
        let steps = plan.steps.iter();
        let steps = steps.filter(|step| step.action != Action::Create);
        pruned.chain(steps.map(|step| (&step.target, Some(&*step.object))))
    });
    let candidates = candidates.filter(|(target, _)| is_service(&target.key));
    let candidates: Vec<(&Target, Option<&Value>)> = candidates.collect();
    let mut found = Vec::new();
    for (target, wanted) in candidates {
        let collection = Collection::of(target);
        let live = match live::read(cluster, &collection, &target.key.name).await {
            Ok(live) => live,
            Err(error) => reachable(error).map(|_| None)?,
        };
        let has = live.map(|live| singles(&target.key, &live));
        let has = has.into_iter().flatten();
        let has =
            has.filter(|single| wanted.is_none_or(|wanted| gives_up(single, &target.key, wanted)));
        found.push(Holder {
            key: target.key.clone(),
            has: has.collect(),
        });
    }
    Ok(found)
}

/// Returns the holder if a denial names an object that the plan prunes, or the default PriorityClass that the command makes an ordinary
/// one.
fn denied(
    planned: &Planned<'_>,
    plan: &InstallationPlan,
    step: &Step,
    message: &str,
) -> Option<Vec<Held>> {
    let key = &step.target.key;
    let asks_for_default = singles(key, &step.object).contains(&Single::DefaultPriority)
        && message.contains("already marked as default");
    if !asks_for_default && !message.contains("admission webhook \"") {
        return None;
    }
    let pruned = plan.prune.iter().flatten();
    let pruned = pruned.map(|deletion| &deletion.target.key);
    let mut named = pruned.filter(|other| is_named(message, other));
    let applied = || {
        let steps = planned.plans().iter().flat_map(|plan| &plan.steps);
        let mut steps = steps.filter(|other| {
            let other = &other.target.key;
            other.kind == key.kind && other.group == key.group && is_named(message, other)
        });
        let found = steps.find(|other| {
            other.target.key != *key
                && other.action != Action::Create
                && gives_up(&Single::DefaultPriority, &other.target.key, &other.object)
        });
        found
            .map(|other| &other.target.key)
            .filter(|_| asks_for_default)
    };
    let holder = named.next().or_else(applied)?;
    Some(vec![Held {
        field: FixedField {
            field: if asks_for_default {
                "globalDefault".to_owned()
            } else {
                String::new()
            },
            rule: plain(message),
        },
        holder: Some(holder.clone()),
    }])
}
