//! Finds which object holds something that the server does not give to two objects.
//!
//! A dry run detects a node port that is taken, but not a cluster IP, which is therefore looked up.

use serde_json::Value;

use addons_plan::holder::{self, ExclusiveResource, exclusive_resources, gives_up};
use addons_plan::immutable::FixedField;
use addons_plan::refusal::{FailureCause, RefusedWrite};
use addons_plan::{Action, InstallationPlan, Step, Target};
use common::manifest::key::ObjectKey;

use super::super::address::{Collection, query_value};
use super::super::apply::strip_object;
use super::super::cluster::Cluster;
use super::super::error::{EngineError, FieldCause};
use super::super::listing::read_one_page;
use super::super::live;
use super::super::meta::PartialObject;
use super::super::request::{ApiCall, METADATA_LIST};
use super::planned::{CommandPlans, is_named};
use super::require_answer;

/// Prefix of the server's name for a field of a port.
const PORTS: &str = "spec.ports[";

/// A field that asks for something that another object holds.
pub(super) struct HeldField {
    pub(super) field: FixedField,
    /// The object that holds it; `None` if unknown.
    pub(super) holder: Option<ObjectKey>,
}

/// Returns the Service that holds the cluster IP that a new one asks for.
pub(super) async fn find_address_holder(
    cluster: &Cluster,
    step: &Step,
) -> Result<Option<HeldField>, EngineError> {
    let Some(address) = holder::requested_cluster_ip(&step.target.key, &step.object) else {
        return Ok(None);
    };
    if step.action != Action::Create {
        return Ok(None);
    }
    let all = Collection {
        namespace: None,
        ..Collection::from_target(&step.target)
    };
    let selector = format!("spec.clusterIP={address}");
    let call = ApiCall::list(&all, METADATA_LIST).query("fieldSelector", &query_value(&selector));
    let found = match read_one_page::<PartialObject>(cluster, call).await {
        Ok(page) => page.items,
        // A client that may not list Services gets the refusal during the operation.
        Err(error) => return require_answer(error).map(|_| None),
    };
    let mut keys = found.iter().map(|found| all.key(&found.metadata));
    let holder = keys.find(|key| *key != step.target.key);
    Ok(holder.map(|holder| HeldField {
        field: FixedField {
            field: "spec.clusterIP".to_owned(),
            rule: format!("{holder} has {address}"),
        },
        holder: Some(holder),
    }))
}

/// Returns what a refused step asks for that other objects hold; `None` if it is refused for another reason.
pub(super) async fn find_held_fields(
    cluster: &Cluster,
    planned: &CommandPlans<'_>,
    plan: &InstallationPlan,
    step: &Step,
    error: &EngineError,
) -> Result<Option<Vec<HeldField>>, EngineError> {
    match error {
        EngineError::Invalid { causes, .. } => {
            let asked = causes
                .iter()
                .map(|cause| Some((cause, taken_port(step, cause)?)));
            let Some(asked) = asked.collect::<Option<Vec<_>>>() else {
                return Ok(None);
            };
            let holders = read_service_holders(cluster, planned, step).await?;
            let held = asked.into_iter().map(|(cause, port)| {
                let mut holders = holders.iter();
                let holder = holders.find(|holder| holder.has.contains(&port));
                HeldField {
                    field: FixedField {
                        field: cause.field.clone(),
                        rule: rule_of_cause(cause),
                    },
                    holder: holder.map(|holder| holder.key.clone()),
                }
            });
            Ok(Some(held.collect()))
        }
        EngineError::Denied { message, .. } => Ok(find_denial_holder(planned, plan, step, message)),
        _ => Ok(None),
    }
}

/// Returns the refusal of an object if the command frees nothing for it.
pub(super) fn held_refusal(key: &ObjectKey, held: &[HeldField]) -> RefusedWrite {
    let lines: Vec<String> = held.iter().map(|one| one.field.to_string()).collect();
    RefusedWrite {
        key: key.clone(),
        message: lines.join("; "),
        cause: FailureCause::Other,
        remedy: None,
    }
}

/// Returns the node port that a cause says is taken.
fn taken_port(step: &Step, cause: &FieldCause) -> Option<ExclusiveResource> {
    let is_taken = cause.message.contains("is already allocated");
    let index = cause
        .field
        .strip_prefix(PORTS)?
        .strip_suffix("].nodePort")?;
    let index: usize = index.parse().ok().filter(|_| is_taken)?;
    let port = step.object["spec"]["ports"].get(index)?["nodePort"].as_u64()?;
    Some(ExclusiveResource::NodePort(port))
}

/// Returns the rule of a cause without the value before it: `provided port is already allocated`.
fn rule_of_cause(cause: &FieldCause) -> String {
    let rule = cause.message.rsplit(": ").next();
    rule.unwrap_or(&cause.message).to_owned()
}

/// An object of the command, and what it holds now and gives up.
struct ServiceHolder {
    key: ObjectKey,
    has: Vec<ExclusiveResource>,
}

/// Returns the Services that the command deletes, or applies without node ports that they hold.
async fn read_service_holders(
    cluster: &Cluster,
    planned: &CommandPlans<'_>,
    step: &Step,
) -> Result<Vec<ServiceHolder>, EngineError> {
    let key = &step.target.key;
    let is_service =
        |other: &ObjectKey| other != key && other.group == key.group && other.kind == key.kind;
    let plans = planned.plans().iter();
    let candidates = plans.flat_map(|plan| {
        let pruned = plan.deletions();
        let pruned = pruned.map(|deletion| (&deletion.target, None));
        let steps = plan.steps.iter();
        let steps = steps.filter(|step| step.action != Action::Create);
        pruned.chain(steps.map(|step| (&step.target, Some(&*step.object))))
    });
    let candidates = candidates.filter(|(target, _)| is_service(&target.key));
    let candidates: Vec<(&Target, Option<&Value>)> = candidates.collect();
    let mut found = Vec::new();
    for (target, wanted) in candidates {
        let collection = Collection::from_target(target);
        let live = match live::read(cluster, &collection, &target.key.name).await {
            Ok(live) => live,
            Err(error) => require_answer(error).map(|_| None)?,
        };
        let has = live.map(|live| exclusive_resources(&target.key, &live));
        let has = has.into_iter().flatten();
        let has =
            has.filter(|single| wanted.is_none_or(|wanted| gives_up(single, &target.key, wanted)));
        found.push(ServiceHolder {
            key: target.key.clone(),
            has: has.collect(),
        });
    }
    Ok(found)
}

/// Returns the holder if a denial names an object that the plan prunes, or the default PriorityClass that the command makes an ordinary
/// one.
fn find_denial_holder(
    planned: &CommandPlans<'_>,
    plan: &InstallationPlan,
    step: &Step,
    message: &str,
) -> Option<Vec<HeldField>> {
    let key = &step.target.key;
    let asks_for_default = exclusive_resources(key, &step.object)
        .contains(&ExclusiveResource::DefaultPriority)
        && message.contains("already marked as default");
    if !asks_for_default && !message.contains("admission webhook \"") {
        return None;
    }
    let pruned = plan.deletions();
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
                && gives_up(
                    &ExclusiveResource::DefaultPriority,
                    &other.target.key,
                    &other.object,
                )
        });
        found
            .map(|other| &other.target.key)
            .filter(|_| asks_for_default)
    };
    let holder = named.next().or_else(applied)?;
    Some(vec![HeldField {
        field: FixedField {
            field: if asks_for_default {
                "globalDefault".to_owned()
            } else {
                String::new()
            },
            rule: strip_object(message),
        },
        holder: Some(holder.clone()),
    }])
}
