//! Writes the core records of a cluster.

use addons_distribution::core_set::ClusterCore;
use addons_distribution::core_set::look::{ClusterLook, CoreSetState};
use addons_engine::standing::{ReconcileState, record_state};
use addons_engine::{Cluster, core_set};
use addons_operation::{Context, OperationError, name_of};
use common::api::conditions;
use common::api::installation::AddonInstallation;
use common::api::installation::core_guard::{is_guarded, is_released};
use common::api::names::InstallationName;

use super::due::{DueCoreChange, waits_for_person};
use super::{CoreSetReport, CoreStep};
use crate::installation::{ReconcileMessage, ReconcileOptions};

/// Executes what is due in a cluster. `is_held`: whether changes by the rules or the list wait there for other clusters.
pub(super) async fn execute(
    ctx: &Context,
    look: &ClusterLook,
    due: Vec<(InstallationName, DueCoreChange<'_>)>,
    how: &ReconcileOptions,
    is_held: bool,
) -> Result<CoreSetReport, OperationError> {
    let home = ctx.home().await?;
    let mut followed = CoreSetReport::default();
    let namespace = ctx.settings().records_namespace();
    match &look.state {
        CoreSetState::Unused => return Ok(followed),
        CoreSetState::Deleting { is_marked } => {
            // With the mark, the deletion of the namespace is no longer denied.
            if !is_marked {
                core_set::mark_cluster_deleting(home, namespace).await?;
            }
            for record in &look.records {
                if core_set::remove_finalizers(home, record).await? {
                    followed.steps.push((name_of(record), CoreStep::Freed));
                }
            }
            return Ok(followed);
        }
        CoreSetState::Found(ClusterCore {
            set: Err(unknown), ..
        }) => {
            let message = conditions::shorten_message(unknown.to_string());
            let raised = Some(("Unknown", message.as_str()));
            for record in look.records.iter().filter(|record| is_guarded(record)) {
                core_set::update_conditions(
                    home,
                    record,
                    &[(conditions::CORE_SET_UNKNOWN, raised)],
                )
                .await?;
            }
            followed
                .unknown
                .push((namespace.to_owned(), unknown.clone()));
            return Ok(followed);
        }
        CoreSetState::Found(_) => {}
    }
    for (name, due) in due {
        let step = if is_held && due.is_change() {
            Ok(Some(CoreStep::Later))
        } else {
            write_due(home, due, how).await
        };
        let step = step.unwrap_or_else(|error| Some(CoreStep::Failed(error)));
        followed.steps.extend(step.map(|step| (name, step)));
    }
    Ok(followed)
}

async fn write_due(
    home: &Cluster,
    due: DueCoreChange<'_>,
    how: &ReconcileOptions,
) -> Result<Option<CoreStep>, OperationError> {
    Ok(match due {
        DueCoreChange::Create(wanted) => {
            let is_new = core_set::create(home, &wanted).await?;
            is_new.then_some(CoreStep::Created)
        }
        DueCoreChange::Restore(restored) => {
            core_set::restore(home, &restored).await?;
            Some(CoreStep::Restored)
        }
        DueCoreChange::Keep(record) => {
            update_conditions(home, record).await?;
            None
        }
        DueCoreChange::Taken => Some(CoreStep::Taken),
        DueCoreChange::Release { record, waits } => {
            release(home, record, waits.then_some(how)).await?
        }
        DueCoreChange::Failed(error) => return Err(error),
    })
}

/// Updates the conditions in the record of a listed add-on.
async fn update_conditions(
    home: &Cluster,
    record: &AddonInstallation,
) -> Result<(), OperationError> {
    let mut said = vec![(conditions::CORE_SET_UNKNOWN, None)];
    if waits_for_person(record) {
        said.push((conditions::NEEDS_CONFIRMATION, None));
    }
    if record.metadata.deletion_timestamp.is_some() {
        let message = "it is listed as a core add-on: it is deleted once it is no longer listed";
        said.push((conditions::DELETION_BLOCKED, Some(("Listed", message))));
    }
    core_set::update_conditions(home, record, &said).await?;
    Ok(())
}

/// Sets the condition that a person has to release the installation, and how.
pub(super) async fn request_release(
    home: &Cluster,
    record: &AddonInstallation,
    how: &ReconcileOptions,
) -> Result<CoreStep, OperationError> {
    let standing = ReconcileState::NeedsConfirmation {
        reason: conditions::CORE_RELEASE,
        message: (how.describe)(ReconcileMessage::WaitsForRelease(&name_of(record))),
    };
    record_state(home, record, &standing).await?;
    Ok(CoreStep::Waits)
}

/// Releases an installation. With `waits`, a person has to release it and is told how.
async fn release(
    home: &Cluster,
    record: &AddonInstallation,
    waits: Option<&ReconcileOptions>,
) -> Result<Option<CoreStep>, OperationError> {
    let is_released = is_released(record);
    if let Some(how) = waits.filter(|_| !is_released) {
        return request_release(home, record, how).await.map(Some);
    }
    let is_going = record.metadata.deletion_timestamp.is_some();
    core_set::release(home, record, true).await?;
    Ok((!is_released || !is_going).then_some(CoreStep::Released))
}
