//! Add-ons that were installed from an index and are no longer in it.

use addons_operation::Resolver;
use addons_operation::kops::index::RemovedAddon;
use addons_operation::plan::{UninstallRequest, plan_uninstall};
use anyhow::Result;

use crate::cli::channel::ChannelApplyArgs;
use crate::exit::Exit;
use crate::session::Session;
use crate::{change, output};

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

/// Uninstalls those that have an installation.
pub(super) async fn uninstall_removed(
    session: &Session,
    resolver: &Resolver<'_>,
    removed: &[RemovedAddon],
    args: &ChannelApplyArgs,
) -> Result<Exit> {
    let names = removed.iter().filter_map(|one| one.installation.clone());
    let removal = UninstallRequest {
        names: names.collect(),
        delete: args.delete.kinds(),
        force: args.change.accept.force,
        ..UninstallRequest::default()
    };
    resolver.check_removal(&removal.names, args.change.accept.allow_prune)?;
    let plan = plan_uninstall(resolver, &removal).await?;
    change::execute(session, plan, &args.change.run, false).await
}
