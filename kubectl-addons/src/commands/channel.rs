//! `channel apply INDEX`: every add-on of a kops index.

use addons_operation::{Choices, Intent, Offer, Resolver};
use anyhow::Result;

use crate::cli::operation::{ChannelApply, DryRun};
use crate::exit::Exit;
use crate::session::Session;
use crate::{change, choices, output, partial};

/// Installs or upgrades every add-on of an index. Without `--yes` it shows what is due, as kops' tool does.
///
/// # Errors
/// Nothing was written.
pub async fn apply(session: &Session, args: &ChannelApply) -> Result<Exit> {
    let yes = args.change.run.yes;
    let resolver = Resolver::new(session.ctx(), Offer::Index(args.index.clone())).await?;
    let resolution = resolver
        .resolve(&Intent::ApplyIndex, &Default::default())
        .await?;
    let choices = Choices {
        repair: args.due.repair,
        allow_downgrade: args.due.allow_downgrade,
        wait_for_types: args.change.wait_for_types().filter(|_| yes),
        ..choices::choices(args.change.accept, args.delete, &args.differences)
    };
    let (plan, failed) = partial::plan(&resolver, resolution, &choices, false).await?;
    let worst = partial::report(failed);
    if !yes && args.change.dry_run == DryRun::None && !plan.is_empty() {
        change::propose(session, &plan)?;
        output::note("Must specify --yes to update");
        return Ok(worst);
    }
    if plan.is_empty() && worst == Exit::Done {
        output::note("No update required");
        return Ok(Exit::Done);
    }
    Ok(worst.max(change::run(session, plan, &args.change).await?))
}
