//! Writes the core records of a cluster.

use addons_clusters::core_set::change::{is_guarded, is_released};
use addons_engine::standing::{Standing, stand};
use addons_engine::{Cluster, core_set};
use addons_operation::core_set::ClusterCore;
use addons_operation::core_set::look::{Look, State};
use addons_operation::{Context, OperationError, name_of};
use common::api::conditions;
use common::api::installation::AddonInstallation;
use common::api::names::InstallationName;

use super::due::{Due, waits_for_person};
use super::{Followed, Step};
use crate::installation::How;

/// Executes what is due in a cluster. `is_held`: whether changes by the rules or the list wait there for other clusters.
pub(super) async fn act(
    ctx: &Context,
    look: &Look,
    due: Vec<(InstallationName, Due<'_>)>,
    how: &How,
    is_held: bool,
) -> Result<Followed, OperationError> {
    let home = ctx.home().await?;
    let mut followed = Followed::default();
    let namespace = ctx.settings().records_namespace();
    match &look.state {
        State::Unused => return Ok(followed),
        State::Deleting { is_marked } => {
            // With the mark, the deletion of the namespace is no longer denied.
            if !is_marked {
                core_set::mark(home, namespace).await?;
            }
            for record in &look.records {
                if core_set::free(home, record).await? {
                    followed.steps.push((name_of(record), Step::Freed));
                }
            }
            return Ok(followed);
        }
        State::Found(ClusterCore {
            set: Err(unknown), ..
        }) => {
            let message = conditions::bounded(unknown.to_string());
            let raised = Some(("Unknown", message.as_str()));
            for record in look.records.iter().filter(|record| is_guarded(record)) {
                core_set::flag(home, record, &[(conditions::CORE_SET_UNKNOWN, raised)]).await?;
            }
            followed
                .unknown
                .push((namespace.to_owned(), unknown.clone()));
            return Ok(followed);
        }
        State::Found(_) => {}
    }
    for (name, due) in due {
        let step = if is_held && due.is_change() {
            Ok(Some(Step::Later))
        } else {
            write(home, due, how).await
        };
        let step = step.unwrap_or_else(|error| Some(Step::Failed(error)));
        followed.steps.extend(step.map(|step| (name, step)));
    }
    Ok(followed)
}

async fn write(home: &Cluster, due: Due<'_>, how: &How) -> Result<Option<Step>, OperationError> {
    Ok(match due {
        Due::Create(wanted) => {
            let is_new = core_set::create(home, &wanted).await?;
            is_new.then_some(Step::Created)
        }
        Due::Restore(restored) => {
            core_set::restore(home, &restored).await?;
            Some(Step::Restored)
        }
        Due::Keep(record) => {
            keep(home, record).await?;
            None
        }
        Due::Taken => Some(Step::Taken),
        Due::Release { record, waits } => release(home, record, waits.then_some(how)).await?,
        Due::Failed(error) => return Err(error),
    })
}

/// Updates the conditions in the record of a listed add-on.
async fn keep(home: &Cluster, record: &AddonInstallation) -> Result<(), OperationError> {
    let mut said = vec![(conditions::CORE_SET_UNKNOWN, None)];
    if waits_for_person(record) {
        said.push((conditions::NEEDS_CONFIRMATION, None));
    }
    if record.metadata.deletion_timestamp.is_some() {
        let message = "it is listed as a core add-on: it is deleted once it is no longer listed";
        said.push((conditions::DELETION_BLOCKED, Some(("Listed", message))));
    }
    core_set::flag(home, record, &said).await?;
    Ok(())
}

/// Sets the condition that a person has to release the installation, and how.
pub(super) async fn wait(
    home: &Cluster,
    record: &AddonInstallation,
    how: &How,
) -> Result<Step, OperationError> {
    let standing = Standing::NeedsConfirmation {
        reason: conditions::CORE_RELEASE,
        message: (how.words.release)(&name_of(record)),
    };
    stand(home, record, &standing).await?;
    Ok(Step::Waits)
}

/// Releases an installation. With `waits`, a person has to release it and is told how.
async fn release(
    home: &Cluster,
    record: &AddonInstallation,
    waits: Option<&How>,
) -> Result<Option<Step>, OperationError> {
    let is_released = is_released(record);
    if let Some(how) = waits.filter(|_| !is_released) {
        return wait(home, record, how).await.map(Some);
    }
    let is_going = record.metadata.deletion_timestamp.is_some();
    core_set::release(home, record, true).await?;
    Ok((!is_released || !is_going).then_some(Step::Released))
}
