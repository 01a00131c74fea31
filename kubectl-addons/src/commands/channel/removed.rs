//! Add-ons that were installed from an index and are no longer in it.

use addons_operation::Resolver;
use addons_operation::channel::Removed;
use addons_operation::plan::{Removal, plan_uninstall};
use anyhow::Result;

use crate::change;
use crate::cli::channel::Apply;
use crate::exit::Exit;
use crate::output;
use crate::session::Session;

/// Names the add-ons, and says what happens to them.
pub(super) fn announce(removed: &[Removed], prune: bool) {
    for Removed {
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
pub(super) async fn uninstall(
    session: &Session,
    resolver: &Resolver<'_>,
    removed: &[Removed],
    args: &Apply,
) -> Result<Exit> {
    let names = removed.iter().filter_map(|one| one.installation.clone());
    let removal = Removal {
        names: names.collect(),
        delete: args.delete.kinds(),
        force: args.change.accept.force,
        ..Removal::default()
    };
    resolver.check_removal(&removal.names, args.change.accept.allow_prune)?;
    let plan = plan_uninstall(resolver, &removal).await?;
    change::execute(session, plan, &args.change.run, false).await
}
