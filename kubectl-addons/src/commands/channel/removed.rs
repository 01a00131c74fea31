//! Add-ons that were installed from an index and are no longer in it.

use addons_operation::kops::index::RemovedAddon;
use addons_operation::plan::{UninstallRequest, plan_uninstall};
use addons_operation::{Plan, Resolver};
use anyhow::Result;

use crate::cli::channel::ChannelApplyArgs;
use crate::output;

/// Names the add-ons, and says what happens to them.
pub(super) fn announce_removed(removed: &[RemovedAddon], prune: bool) {
    for RemovedAddon {
        namespace,
        addon,
        installation,
    } in removed
    {
        let what = match installation {
            None => "only kops' own tool has installed it; it stays",
            Some(_) if prune => "it is uninstalled",
            Some(_) => "it stays; --prune-removed uninstalls it",
        };
        output::note(&format!(
            "{addon} (namespace {namespace}) is no longer in the index: {what}"
        ));
    }
}

/// Plans to uninstall those that have an installation.
///
/// # Errors
/// Too many are missing from the index, or the plan cannot be made.
pub(super) async fn plan_removal(
    resolver: &Resolver<'_>,
    removed: &[RemovedAddon],
    args: &ChannelApplyArgs,
) -> Result<Plan> {
    let names = removed.iter().filter_map(|one| one.installation.clone());
    let removal = UninstallRequest {
        names: names.collect(),
        delete: args.delete.kinds(),
        force: args.change.accept.force,
        ..UninstallRequest::default()
    };
    resolver.check_removal(&removal.names, args.change.accept.allow_prune)?;
    Ok(plan_uninstall(resolver, &removal).await?)
}
