//! `uninstall NAME…`

use addons_operation::plan::{Removal, plan_uninstall};
use addons_operation::{Offer, Resolver};
use anyhow::Result;

use crate::change;
use crate::cli::operation::Uninstall;
use crate::exit::Exit;
use crate::session::Session;

/// Uninstalls: objects first, the record last; `--dry-run` only announces.
///
/// # Errors
/// Nothing was written.
pub async fn run(session: &Session, args: &Uninstall) -> Result<Exit> {
    let resolver = Resolver::new(session.ctx(), Offer::Catalogues).await?;
    let removal = Removal {
        names: args.names.clone(),
        keep: args.keep,
        delete: args.delete.kinds(),
        force: args.force,
        ..Removal::default()
    };
    let plan = plan_uninstall(&resolver, &removal).await?;
    if args.dry_run {
        return Ok(change::preview(session, &plan));
    }
    change::execute(session, plan, &args.run, false).await
}
