//! Checks whether the installed version still fits its cluster, which may have been upgraded, and is still listed by its catalogue. This
//! sets conditions and removes nothing.

use addons_engine::compatible::{self, Fitness};
use addons_operation::recorded::Compatibility;
use addons_operation::{Context, OperationError, Resolver};
use common::api::installation::AddonInstallation;

use crate::installation::ReconcileOutcome;

/// Updates the conditions `Compatible` and `Unlisted`. Returns the new record, or `None` if nothing changed.
pub(crate) async fn update_conditions(
    ctx: &Context,
    resolver: &Resolver<'_>,
    record: &AddonInstallation,
    outcome: &ReconcileOutcome,
) -> Result<Option<AddonInstallation>, OperationError> {
    let last = match outcome {
        ReconcileOutcome::Executed(_, report) => report.record.as_ref(),
        _ => Some(record),
    };
    let Some(last) = last.filter(|last| last.metadata.deletion_timestamp.is_none()) else {
        return Ok(None);
    };
    let fitness = match resolver.compatibility(last).await? {
        Compatibility::Unknown => return Ok(None),
        Compatibility::Fits => Fitness::Fits,
        Compatibility::Orphaned(lost) => Fitness::Unlisted(lost.to_string()),
        Compatibility::Unlisted(unlisted) => Fitness::Unlisted(unlisted.to_string()),
        Compatibility::Misfit(reason) => {
            let version = last.installed().map(|installed| installed.version.as_str());
            let version = version.unwrap_or_default();
            Fitness::Misfit(format!("{} {version}: {reason}", last.spec.addon_ref.name))
        }
    };
    Ok(compatible::update_conditions(ctx.home().await?, last, &fitness).await?)
}
