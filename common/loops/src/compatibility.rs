//! Whether what is installed still fits its cluster, which may have been upgraded: a condition, and nothing is removed.

use addons_engine::compatible;
use addons_operation::recorded::Compatibility;
use addons_operation::{Context, OperationError, Resolver};
use common::api::installation::AddonInstallation;

use crate::installation::Outcome;

/// Records whether what is installed now fits the cluster, where that is new. Returns the record then.
pub(crate) async fn note(
    ctx: &Context,
    resolver: &Resolver<'_>,
    record: &AddonInstallation,
    outcome: &Outcome,
) -> Result<Option<AddonInstallation>, OperationError> {
    let last = match outcome {
        Outcome::Executed(_, report) => report.record.as_ref(),
        _ => Some(record),
    };
    let Some(last) = last.filter(|last| last.metadata.deletion_timestamp.is_none()) else {
        return Ok(None);
    };
    let misfit = match resolver.compatibility(last).await? {
        Compatibility::Unknown => return Ok(None),
        Compatibility::Fits => None,
        Compatibility::Misfit(reason) => {
            let version = last.installed().map(|installed| installed.version.as_str());
            let version = version.unwrap_or_default();
            Some(format!("{} {version}: {reason}", last.spec.addon_ref.name))
        }
    };
    Ok(compatible::note(ctx.home().await?, last, misfit.as_deref()).await?)
}
