//! Determines what has to change in a cluster, before anything is written there.

use addons_clusters::core_set::change::{CoreChange, restored_record};
use addons_clusters::core_set::rollout::{CoreSetStanding, ready_since};
use addons_distribution::core_set::look::{ClusterLook, CoreSetState};
use addons_distribution::core_set::{ClusterCore, core_record};
use addons_operation::{Context, OperationError, Resolver, name_of};
use common::api::conditions;
use common::api::installation::AddonInstallation;
use common::api::installation::core_guard::is_released;
use common::api::names::InstallationName;

use super::releases::Releases;

/// What is due for one installation.
pub(super) enum DueCoreChange<'a> {
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

impl DueCoreChange<'_> {
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
    pub(super) fn needs_person(&self) -> bool {
        matches!(self, Self::Release { record, waits: true } if !is_released(record))
    }
}

/// Returns what is due for the installations of a cluster; nothing if its core set is unknown. `releases`: the releases in all clusters.
pub(super) async fn list_due<'a>(
    ctx: &Context,
    look: &'a ClusterLook,
    releases: &Releases<'_>,
) -> Result<Vec<(InstallationName, DueCoreChange<'a>)>, OperationError> {
    let changes = look.changes();
    if changes.is_empty() {
        return Ok(Vec::new());
    }
    let resolver = Resolver::for_known_records(ctx, look.records.clone()).await?;
    let mut all = Vec::new();
    for change in changes {
        let (name, due) = match change {
            CoreChange::Create { name, addon } => {
                let name = InstallationName {
                    namespace: ctx.settings().records_namespace().to_owned(),
                    name: name.to_owned(),
                };
                let due = match core_record(&resolver, &name, addon).await {
                    Ok(wanted) => DueCoreChange::Create(Box::new(wanted)),
                    Err(error) => DueCoreChange::Failed(error),
                };
                (name, due)
            }
            CoreChange::Keep { record, addon } => {
                let name = name_of(record);
                let due = match core_record(&resolver, &name, addon).await {
                    Ok(wanted) => match restored_record(record, &wanted) {
                        Some(restored) => DueCoreChange::Restore(Box::new(restored)),
                        None => DueCoreChange::Keep(record),
                    },
                    Err(error) => DueCoreChange::Failed(error),
                };
                (name, due)
            }
            CoreChange::Taken { record } => (name_of(record), DueCoreChange::Taken),
            CoreChange::Release { record, is_unmet } => {
                let waits =
                    is_unmet || releases.affects_several(record) || waits_for_person(record);
                (name_of(record), DueCoreChange::Release { record, waits })
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
pub(super) fn cluster_standing(
    look: &ClusterLook,
    due: Option<&[(InstallationName, DueCoreChange<'_>)]>,
) -> Option<CoreSetStanding> {
    let set = match &look.state {
        CoreSetState::Unused | CoreSetState::Deleting { .. } => return None,
        CoreSetState::Found(ClusterCore { set, .. }) => set,
    };
    let (Ok(set), Some(due)) = (set, due) else {
        return Some(CoreSetStanding::Unknown);
    };
    if due.iter().any(|(_, due)| due.is_change()) {
        return Some(CoreSetStanding::Due);
    }
    let records: Vec<_> = look.records.iter().collect();
    Some(CoreSetStanding::Followed(ready_since(set, &records)))
}
