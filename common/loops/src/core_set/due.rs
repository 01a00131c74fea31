//! Determines what has to change in a cluster, before anything is written there.

use addons_clusters::core_set::change::{CoreChange, is_released, restored};
use addons_clusters::core_set::rollout::{Standing, ready_since};
use addons_operation::core_set::ClusterCore;
use addons_operation::core_set::look::{Look, State};
use addons_operation::{Context, OperationError, Resolver, name_of};
use common::api::conditions;
use common::api::installation::AddonInstallation;
use common::api::names::InstallationName;

use super::releases::Releases;

/// What is due for one installation.
pub(super) enum Due<'a> {
    /// Its record is created.
    Create(Box<AddonInstallation>),
    /// Its record is changed to match the list.
    Restore(Box<AddonInstallation>),
    /// Its record matches the list.
    Keep(&'a AddonInstallation),
    /// It is listed, but its record is not a core add-on.
    Taken,
    /// It is no longer listed.
    Release {
        /// The record.
        record: &'a AddonInstallation,
        /// Whether a person has to release it.
        waits: bool,
    },
    /// The record that it must have cannot be determined.
    Failed(OperationError),
}

impl Due<'_> {
    /// Returns whether the rules or the list ask for a write.
    pub(super) fn is_change(&self) -> bool {
        match self {
            Self::Create(_) | Self::Restore(_) | Self::Failed(_) => true,
            Self::Release { record, waits } => !waits && !is_released(record),
            Self::Keep(_) | Self::Taken => false,
        }
    }

    /// Returns whether a record is created, changed or deleted, now or after waiting.
    pub(super) fn is_written(&self) -> bool {
        matches!(
            self,
            Self::Create(_) | Self::Restore(_) | Self::Release { .. }
        )
    }

    /// Returns whether a person has to release it, and has not done so.
    pub(super) fn waits(&self) -> bool {
        matches!(self, Self::Release { record, waits: true } if !is_released(record))
    }
}

/// Returns what is due for the installations of a cluster; nothing if its core set is unknown. `releases`: the releases in all clusters.
pub(super) async fn due<'a>(
    ctx: &Context,
    look: &'a Look,
    releases: &Releases<'_>,
) -> Result<Vec<(InstallationName, Due<'a>)>, OperationError> {
    let changes = look.changes();
    if changes.is_empty() {
        return Ok(Vec::new());
    }
    let resolver = Resolver::of_known(ctx, look.records.clone()).await?;
    let mut all = Vec::new();
    for change in changes {
        let (name, due) = match change {
            CoreChange::Create { name, addon } => {
                let name = InstallationName {
                    namespace: ctx.settings().records_namespace().to_owned(),
                    name: name.to_owned(),
                };
                let due = match resolver.core_record(&name, addon).await {
                    Ok(wanted) => Due::Create(Box::new(wanted)),
                    Err(error) => Due::Failed(error),
                };
                (name, due)
            }
            CoreChange::Keep { record, addon } => {
                let name = name_of(record);
                let due = match resolver.core_record(&name, addon).await {
                    Ok(wanted) => match restored(record, &wanted) {
                        Some(restored) => Due::Restore(Box::new(restored)),
                        None => Due::Keep(record),
                    },
                    Err(error) => Due::Failed(error),
                };
                (name, due)
            }
            CoreChange::Taken { record } => (name_of(record), Due::Taken),
            CoreChange::Release { record, is_unmet } => {
                let waits = is_unmet || releases.are_several(record) || waits_for_person(record);
                (name_of(record), Due::Release { record, waits })
            }
        };
        all.push((name, due));
    }
    Ok(all)
}

/// Returns whether a person was asked to release it. The loop does not release it by itself later, even if fewer clusters are affected
/// then.
pub(super) fn waits_for_person(record: &AddonInstallation) -> bool {
    let status = record.status.as_ref();
    status.is_some_and(|status| conditions::waits_for_release(&status.conditions))
}

/// Returns the state of a cluster with respect to its core set; `None` if it has none. `due`: what is due there, if that is known.
pub(super) fn standing(
    look: &Look,
    due: Option<&[(InstallationName, Due<'_>)]>,
) -> Option<Standing> {
    let set = match &look.state {
        State::Unused | State::Deleting { .. } => return None,
        State::Found(ClusterCore { set, .. }) => set,
    };
    let (Ok(set), Some(due)) = (set, due) else {
        return Some(Standing::Unknown);
    };
    if due.iter().any(|(_, due)| due.is_change()) {
        return Some(Standing::Due);
    }
    let records: Vec<_> = look.records.iter().collect();
    Some(Standing::Followed(ready_since(set, &records)))
}
