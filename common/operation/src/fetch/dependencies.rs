//! The dependencies of a chart in a folder, which are fetched with it, so that one hash covers both.

use addons_render::chart::Chart;
use addons_render::chart::lock::PinnedDependency;
use addons_render::package::Package;
use addons_sources::archive;
use addons_sources::dependency::ParentSource;
use common::api::catalogue::Method;

use crate::context::Context;
use crate::error::OperationError;
use crate::event::{Activity, OperationEvent};
use crate::resolve::resolved::Resolved;

/// Returns the package with the charts that its lock file names, and these charts. Returns `None` if there are none or the package is not
/// the folder of a chart: rendering reports what is wrong with it.
///
/// # Errors
/// The lock file does not fit the chart, or a chart cannot be fetched.
pub(crate) async fn fetch(
    ctx: &Context,
    resolved: &Resolved,
    package: &Package,
    parent: &ParentSource<'_>,
) -> Result<Option<(Package, Vec<PinnedDependency>)>, OperationError> {
    let is_chart = resolved.entry.version.template.method == Method::Helm;
    if !is_chart || package.as_file().is_some() {
        return Ok(None);
    }
    let Ok(chart) = Chart::read(package) else {
        return Ok(None);
    };
    let pinned = chart
        .pinned_dependencies(package, &archive::archived_charts(package))
        .map_err(addons_helm::HelmError::Chart)?;
    if pinned.is_empty() {
        return Ok(None);
    }
    let work = Activity::Dependencies {
        addon: resolved.entry.addon.clone(),
    };
    ctx.emit(OperationEvent::Began(work.clone()));
    let complete = add_dependencies(package, &pinned, parent).await;
    ctx.emit(OperationEvent::Ended(work));
    Ok(Some((complete?, pinned)))
}

async fn add_dependencies(
    package: &Package,
    pinned: &[PinnedDependency],
    parent: &ParentSource<'_>,
) -> Result<Package, OperationError> {
    let mut files = package.files().to_vec();
    for wanted in pinned {
        files.push(parent.fetch(wanted).await?);
    }
    Ok(Package::from_folder(files).map_err(addons_helm::HelmError::Package)?)
}
