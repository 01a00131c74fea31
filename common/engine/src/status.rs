//! Computes the status at the beginning and the end of an operation, without requests.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use addons_plan::choices::Choices;
use addons_plan::history;
use addons_plan::inventory::Inventory;
use addons_plan::{InstallationPlan, Verb};
use common::api::conditions::{self, Condition};
use common::api::installation::{
    AddonInstallationStatus, CreatedNamespace, FormerRecord, HistoryEntry, InstallationPhase,
    RecordedOutcome,
};
use common::manifest::key::ObjectKey;
use common::pin;

use super::error::EngineError;

/// Maximum number of ended operations in the history.
const LONGEST_HISTORY: usize = 10;

/// How an operation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum OperationEnding {
    /// It ended as planned.
    Done {
        /// Whether readiness was waited for.
        waited: bool,
        /// Objects that were kept although the plan deletes them; they stay recorded.
        kept: BTreeSet<ObjectKey>,
    },
    /// It failed.
    Failed {
        /// One CamelCase word.
        reason: &'static str,
        /// A sentence.
        message: String,
    },
}

/// Returns the status at the beginning of an operation: with the union inventory, so that no object can be lost, and with the user's
/// choices, so that the operation can be continued.
pub(super) fn begin_status(
    stored: Option<&AddonInstallationStatus>,
    plan: &InstallationPlan,
    choices: &Choices,
    now: Timestamp,
) -> AddonInstallationStatus {
    let mut status = stored.cloned().unwrap_or_default();
    // A plan was made, so the attempt did not kill its process.
    status.attempt = None;
    // Its client did not record its end, so it is added to the history here.
    if let Some(operation) = &status.operation {
        let interrupted = HistoryEntry::from_interrupted(operation, status.installed.as_ref());
        add_to_history(&mut status.history, interrupted, true);
    }
    status.inventory = plan.union.to_groups();
    status.choices = choices.to_record();
    if !plan.verb.ends_installation() {
        former(&mut status.former, plan, false);
    }
    status.phase = Some(match plan.verb {
        Verb::Uninstall => InstallationPhase::Uninstalling,
        Verb::Install | Verb::Upgrade | Verb::Rollback | Verb::Adopt | Verb::Release => {
            InstallationPhase::Progressing
        }
    });
    if let Some(name) = &plan.create_namespace {
        // Without a uid, it is only planned. The namespace is ours if it has our label.
        status.created_namespace = Some(CreatedNamespace {
            name: name.clone(),
            uid: String::new(),
        });
    }
    let found = plan.rebuilt.as_ref();
    pin::record_cluster(&mut status, plan.cluster.as_ref(), found.is_some());
    if let Some(found) = found.and_then(|rebuilt| rebuilt.namespace.clone()) {
        status.created_namespace = Some(found);
    }
    let message = match &plan.to {
        Some(to) if !to.version.is_empty() => format!("{} {}", plan.addon, to.version),
        _ => plan.addon.clone(),
    };
    let progressing = new_condition(
        conditions::PROGRESSING,
        "True",
        verb_reason(plan.verb),
        message,
        now,
    );
    conditions::set(&mut status.conditions, progressing);
    conditions::set(
        &mut status.conditions,
        new_condition(
            conditions::STALLED,
            "False",
            verb_reason(plan.verb),
            String::new(),
            now,
        ),
    );
    // A repair does not decide whether a core installation may be released.
    let waits = !plan.verb.ends_installation() && conditions::waits_for_release(&status.conditions);
    let confirmed = (!waits).then_some(conditions::NEEDS_CONFIRMATION);
    let others = [
        conditions::CONTESTED,
        conditions::MANAGED_ELSEWHERE,
        conditions::WAITING,
    ];
    for r#type in confirmed.into_iter().chain(others) {
        lower_condition(
            &mut status.conditions,
            r#type,
            verb_reason(plan.verb),
            None,
            now,
        );
    }
    status
}

/// Records which records of other tools are about to be set aside, or were.
fn former(noted: &mut Vec<FormerRecord>, plan: &InstallationPlan, is_done: bool) {
    for record in plan.former() {
        noted.retain(|one| !one.is_same(record));
        noted.push(FormerRecord {
            is_set_aside: is_done && !record.objects.is_empty(),
            ..record.clone()
        });
    }
    noted.sort();
}

/// Sets a condition to `False` if it is `True`.
pub(super) fn lower_condition(
    all: &mut Vec<Condition>,
    r#type: &str,
    reason: &str,
    generation: Option<i64>,
    now: Timestamp,
) {
    if conditions::find_raised(all, r#type).is_some() {
        let mut lowered = new_condition(r#type, "False", reason, String::new(), now);
        lowered.observed_generation = generation;
        conditions::set(all, lowered);
    }
}

/// Ends an operation: removes lock and journal, and makes the inventory exact. `recorded`: the union inventory with every answer of the
/// server; after a failure, nothing is removed from it.
pub(super) fn end_status(
    status: &mut AddonInstallationStatus,
    plan: &InstallationPlan,
    recorded: &Inventory,
    ending: &OperationEnding,
    generation: Option<i64>,
    by: &str,
    now: Timestamp,
) {
    let is_same_spec = status.observed_generation == generation;
    let mut inventory = recorded.clone();
    if let OperationEnding::Done { kept, .. } = ending {
        former(&mut status.former, plan, true);
        inventory.close(&plan.exact, kept);
    }
    status.inventory = inventory.to_groups();
    status.operation = None;
    let mut installed = plan.to.clone().or_else(|| plan.from.clone());
    if let Some(installed) = &mut installed {
        installed.at = Some(Time(now));
        by.clone_into(&mut installed.by);
    }
    let (words, outcome) = match ending {
        OperationEnding::Done { waited, .. } => {
            status.phase = Some(if *waited {
                InstallationPhase::Ready
            } else {
                InstallationPhase::Installed
            });
            status.observed_generation = generation;
            status.choices = None;
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
                    new_condition(conditions::DRIFTED, "False", "Applied", String::new(), now);
                conditions::set(&mut status.conditions, restored);
            }
            ((ready, "False"), RecordedOutcome::Done)
        }
        OperationEnding::Failed { reason, message } => {
            status.phase = Some(InstallationPhase::Failed);
            (
                (("False", *reason, message.clone()), "True"),
                RecordedOutcome::Failed(message.clone()),
            )
        }
    };
    let ((ready, reason, message), stalled) = words;
    for (r#type, value) in [
        (conditions::READY, ready),
        (conditions::PROGRESSING, "False"),
        (conditions::STALLED, stalled),
    ] {
        let mut new = new_condition(r#type, value, reason, message.clone(), now);
        new.observed_generation = generation;
        conditions::set(&mut status.conditions, new);
    }
    let revision = HistoryEntry {
        verb: plan.verb.into(),
        installed: installed.unwrap_or_default(),
        outcome,
    };
    add_to_history(&mut status.history, revision, is_same_spec);
}

/// Adds a line to the history. A repair gets no line, so the change that it repaired stays the last one, and a rollback stays in force. Of
/// a repeated failure, the first and the last have a line.
fn add_to_history(lines: &mut Vec<HistoryEntry>, revision: HistoryEntry, is_same_spec: bool) {
    match lines.as_mut_slice() {
        [last, ..] if last.is_done() && history::is_repeated(last, &revision, is_same_spec) => {}
        [last, first, ..]
            if history::is_repeated(last, &revision, is_same_spec)
                && history::is_repeated(first, last, is_same_spec) =>
        {
            *last = revision;
        }
        _ => {
            lines.insert(0, revision);
            lines.truncate(LONGEST_HISTORY);
        }
    }
}

/// Fails if an inventory does not fit into the record, before anything is written.
pub(super) fn check_size(plan: &InstallationPlan) -> Result<(), EngineError> {
    let check = |inventory: &Inventory| inventory.check_budget();
    check(&plan.union)
        .and_then(|()| check(&plan.exact))
        .map_err(|error| EngineError::TooLarge {
            objects: error.objects,
            bytes: error.bytes,
            limit: error.limit,
        })
}

fn verb_reason(verb: Verb) -> &'static str {
    match verb {
        Verb::Install => "Installing",
        Verb::Upgrade => "Upgrading",
        Verb::Rollback => "RollingBack",
        Verb::Adopt => "Adopting",
        Verb::Uninstall => "Uninstalling",
        Verb::Release => "Releasing",
    }
}

pub(super) fn new_condition(
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
