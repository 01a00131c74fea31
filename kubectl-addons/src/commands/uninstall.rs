//! `uninstall NAME…`, and `uninstall --all`.

use addons_operation::delegate::Unavailable;
use addons_operation::plan::{UninstallRequest, plan_uninstall};
use addons_operation::{Offer, Resolver};
use anyhow::Result;

use crate::cli::operation::{DryRunMode, UninstallArgs};
use crate::commands::delegated;
use crate::exit::Exit;
use crate::session::Session;
use crate::{change, output};

/// Uninstalls add-ons: first the objects, then the record. `--dry-run` only announces.
///
/// # Errors
/// Nothing was written.
pub async fn run(session: &Session, args: &UninstallArgs) -> Result<Exit> {
    let resolver = Resolver::new(session.ctx(), Offer::Catalogues).await?;
    let is_plain = !args.all && !args.keep && args.delete.kinds().is_empty();
    if let Some(why) = session.ctx().why_out_of_reach().await? {
        if !is_plain {
            return Err(why.into());
        }
        let why = Unavailable::Cluster(Box::new(why));
        let (run, names) = (&args.run, &args.names);
        return delegated::delete(session, &resolver, names, &why, run, args.dry_run).await;
    }
    let removal = UninstallRequest {
        names: args.names.clone(),
        all: args.all,
        keep: args.keep,
        delete: args.delete.kinds(),
        force: args.force,
        ..UninstallRequest::default()
    };
    let plan = plan_uninstall(&resolver, &removal).await?;
    if plan.is_empty() {
        output::note("nothing to uninstall");
    }
    if args.dry_run != DryRunMode::None {
        return change::show_dry_run(session, plan, args.dry_run).await;
    }
    if plan.is_empty() {
        if let Some(turn) = session.turn() {
            turn.wait_for_turn(&plan).await?;
        }
        return Ok(Exit::Done);
    }
    change::execute(session, plan, &args.run, false).await
}
