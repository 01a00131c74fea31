//! What is written into a status when an operation begins and when it ends: values only, no requests.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::conditions::{self, Condition};
use crate::api::installation::{
    AddonInstallationStatus, CreatedNamespace, Installed, InventoryGroup, ObjectState, Phase,
    Revision,
};
use crate::manifest::key::ObjectKey;
use crate::plan::inventory::Inventory;
use crate::plan::{Plan, Verb};

use super::error::EngineError;
use super::meta::Metadata;

/// Bytes of inventory in a record (semantics 13: 5,000 objects in 0.8 MB).
const LARGEST_INVENTORY: usize = 800_000;
/// What uid and generation add to an object that has none yet.
const BYTES_OF_A_UID: usize = 64;
/// Ended operations that are kept.
const LONGEST_HISTORY: usize = 10;

/// What the requests of an operation told about single objects.
#[derive(Debug, Default)]
pub(super) struct Results {
    /// Applied objects.
    pub(super) applied: BTreeMap<ObjectKey, Applied>,
    /// Objects that are gone, or no longer ours.
    pub(super) gone: BTreeSet<ObjectKey>,
}

/// An applied object as the server answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Applied {
    pub(super) uid: String,
    pub(super) generation: Option<i64>,
    pub(super) resource_version: String,
    /// For a planned creation: whether it was one.
    pub(super) state: Option<ObjectState>,
}

impl Applied {
    /// Of an answer.
    pub(super) fn new(metadata: &Metadata, state: Option<ObjectState>) -> Self {
        Self {
            uid: metadata.uid.clone(),
            generation: metadata.generation,
            resource_version: metadata.resource_version.clone(),
            state,
        }
    }
}

/// How an operation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// As planned.
    Done {
        /// Whether readiness was waited for.
        waited: bool,
    },
    /// Not as planned.
    Failed {
        /// One CamelCase word.
        reason: &'static str,
        /// A sentence.
        message: String,
    },
}

/// The status that an operation begins with: the union inventory, so that nothing can leak.
pub(super) fn begun(
    stored: Option<&AddonInstallationStatus>,
    plan: &Plan,
    now: Timestamp,
) -> AddonInstallationStatus {
    let mut status = stored.cloned().unwrap_or_default();
    status.inventory = groups(&plan.union);
    status.phase = Some(match plan.verb {
        Verb::Uninstall => Phase::Uninstalling,
        Verb::Install | Verb::Upgrade => Phase::Progressing,
    });
    if let Some(name) = &plan.create_namespace {
        // Without uid: planned. The namespace is ours if it carries our label.
        status.created_namespace = Some(CreatedNamespace {
            name: name.clone(),
            uid: String::new(),
        });
    }
    let message = match &plan.to {
        Some(to) if !to.version.is_empty() => format!("{} {}", plan.addon, to.version),
        _ => plan.addon.clone(),
    };
    let progressing = condition(
        conditions::PROGRESSING,
        "True",
        reason(plan.verb),
        message,
        now,
    );
    conditions::set(&mut status.conditions, progressing);
    conditions::set(
        &mut status.conditions,
        condition(
            conditions::STALLED,
            "False",
            reason(plan.verb),
            String::new(),
            now,
        ),
    );
    status
}

/// Ends an operation: lock and journal go, the inventory says what there is now.
pub(super) fn end(
    status: &mut AddonInstallationStatus,
    plan: &Plan,
    results: &Results,
    ending: &Ending,
    generation: Option<i64>,
    by: &str,
    now: Timestamp,
) {
    let inventory = match ending {
        Ending::Done { .. } => exact(plan, results),
        Ending::Failed { .. } => known(plan, results),
    };
    status.inventory = groups(&inventory);
    status.operation = None;
    let mut installed = plan.to.clone().or_else(|| plan.from.clone());
    if let Some(installed) = &mut installed {
        installed.at = Some(Time(now));
        by.clone_into(&mut installed.by);
    }
    let (words, outcome) = match ending {
        Ending::Done { waited } => {
            status.phase = Some(if *waited {
                Phase::Ready
            } else {
                Phase::Installed
            });
            status.observed_generation = generation;
            status.installed.clone_from(&installed);
            let ready = if *waited {
                ("True", "Ready", String::new())
            } else {
                (
                    "Unknown",
                    "NotWaited",
                    "applied; readiness was not waited for".to_owned(),
                )
            };
            let drifted = status.conditions.iter();
            if drifted
                .into_iter()
                .any(|known| known.r#type == conditions::DRIFTED)
            {
                let restored =
                    condition(conditions::DRIFTED, "False", "Applied", String::new(), now);
                conditions::set(&mut status.conditions, restored);
            }
            ((ready, "False"), "done".to_owned())
        }
        Ending::Failed { reason, message } => {
            status.phase = Some(Phase::Failed);
            (
                (("False", *reason, message.clone()), "True"),
                message.clone(),
            )
        }
    };
    let ((ready, reason, message), stalled) = words;
    for (r#type, value) in [
        (conditions::READY, ready),
        (conditions::PROGRESSING, "False"),
        (conditions::STALLED, stalled),
    ] {
        let mut new = condition(r#type, value, reason, message.clone(), now);
        new.observed_generation = generation;
        conditions::set(&mut status.conditions, new);
    }
    let revision = Revision {
        verb: verb(plan.verb).to_owned(),
        installed: installed.unwrap_or_default(),
        outcome,
    };
    status.history.insert(0, revision);
    status.history.truncate(LONGEST_HISTORY);
}

/// Whether two installed versions are the same but for when and by whom.
pub(super) fn is_same_target(one: &Installed, other: &Installed) -> bool {
    let bare = |installed: &Installed| Installed {
        at: None,
        by: String::new(),
        ..installed.clone()
    };
    bare(one) == bare(other)
}

/// The error for an inventory that would not fit into the record, before anything is written.
pub(super) fn check_size(plan: &Plan) -> Result<(), EngineError> {
    for inventory in [&plan.union, &plan.exact] {
        let objects = inventory.objects.len();
        let without_uid = inventory.objects.values();
        let without_uid = without_uid
            .filter(|item| item.object.uid.is_empty())
            .count();
        let bytes = serde_json::to_vec(&groups(inventory)).map_or(usize::MAX, |json| json.len());
        let bytes = bytes.saturating_add(without_uid * BYTES_OF_A_UID);
        if bytes > LARGEST_INVENTORY {
            return Err(EngineError::TooLarge {
                objects,
                bytes,
                limit: LARGEST_INVENTORY,
            });
        }
    }
    Ok(())
}

/// The verb as records spell it.
pub(super) fn verb(verb: Verb) -> &'static str {
    match verb {
        Verb::Install => "install",
        Verb::Upgrade => "upgrade",
        Verb::Uninstall => "uninstall",
    }
}

/// The exact inventory, with what the server answered.
fn exact(plan: &Plan, results: &Results) -> Inventory {
    let mut inventory = plan.exact.clone();
    inventory
        .objects
        .retain(|key, _| !results.gone.contains(key));
    for (key, applied) in &results.applied {
        if let Some(item) = inventory.objects.get_mut(key) {
            learn(&mut item.object, applied);
        }
    }
    inventory
}

/// After a failure: the union, exact in what was applied or is gone.
fn known(plan: &Plan, results: &Results) -> Inventory {
    let mut inventory = plan.union.clone();
    inventory
        .objects
        .retain(|key, _| !results.gone.contains(key));
    for (key, applied) in &results.applied {
        if let Some(item) = plan.exact.objects.get(key) {
            let mut item = item.clone();
            learn(&mut item.object, applied);
            inventory.objects.insert(key.clone(), item);
        }
    }
    inventory
}

fn learn(object: &mut crate::api::installation::InventoryObject, applied: &Applied) {
    object.uid.clone_from(&applied.uid);
    object.generation = applied.generation;
    object.resource_version = match applied.generation {
        Some(_) => None,
        None => Some(applied.resource_version.clone()),
    };
    match applied.state {
        Some(state) => object.state = state,
        // Planned by an operation that was cut off, and taken as ours by the plan.
        None if object.state == ObjectState::Planned => object.state = ObjectState::Owned,
        None => {}
    }
}

// STAND-IN: the merge replaces it by the conversion of plan/inventory.rs.
fn groups(inventory: &Inventory) -> Vec<InventoryGroup> {
    let mut groups: Vec<InventoryGroup> = Vec::new();
    let mut places: BTreeMap<(&str, &str, &str, Option<&str>), usize> = BTreeMap::new();
    for (key, item) in &inventory.objects {
        let place = (
            key.group.as_str(),
            item.version.as_str(),
            key.kind.as_str(),
            key.namespace.as_deref(),
        );
        let index = *places.entry(place).or_insert_with(|| {
            groups.push(InventoryGroup {
                group: key.group.clone(),
                version: item.version.clone(),
                kind: key.kind.clone(),
                namespace: key.namespace.clone(),
                objects: Vec::new(),
            });
            groups.len() - 1
        });
        if let Some(group) = groups.get_mut(index) {
            group.objects.push(item.object.clone());
        }
    }
    groups
}

fn reason(verb: Verb) -> &'static str {
    match verb {
        Verb::Install => "Installing",
        Verb::Upgrade => "Upgrading",
        Verb::Uninstall => "Uninstalling",
    }
}

fn condition(
    r#type: &str,
    status: &str,
    reason: &str,
    message: String,
    now: Timestamp,
) -> Condition {
    Condition {
        r#type: r#type.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message,
        last_transition_time: Time(now),
        observed_generation: None,
    }
}

#[cfg(test)]
#[path = "status/tests.rs"]
mod tests;
