//! `channel apply INDEX`: every add-on of a kops index.

use addons_operation::{Choices, Intent, Offer, Resolver};
use anyhow::Result;

use crate::cli::operation::{ChannelApply, Delete, Differences, DryRun};
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
        wait_for_types: args.change.wait_for_types().filter(|_| yes),
        ..choices::choices(
            args.change.accept,
            Delete::default(),
            &Differences {
                recreate: args.recreate.clone(),
                ..Differences::default()
            },
        )
    };
    let (plan, failed) = partial::plan(&resolver, resolution, &choices, false).await?;
    let worst = partial::report(failed);
    let mut change = args.change.clone();
    if !yes && change.dry_run == DryRun::None && !plan.is_empty() {
        change.dry_run = DryRun::Client;
        let exit = change::run(session, plan, &change).await?;
        output::note("Must specify --yes to update");
        return Ok(worst.max(exit));
    }
    if plan.is_empty() && worst == Exit::Done {
        output::note("No update required");
        return Ok(Exit::Done);
    }
    Ok(worst.max(change::run(session, plan, &change).await?))
}
