//! `upgrade [NAME[@VERSION]…]`

use addons_operation::{Choices, Edits, Intent, Resolver, VersionedName};
use anyhow::Result;

use crate::cli::operation::UpgradeArgs;
use crate::commands::delegated;
use crate::exit::{Exit, UsageError};
use crate::session::Session;
use crate::{again, change, choices, partial, prompt};

/// Upgrades the named installations, or all of them.
///
/// # Errors
/// Nothing was written.
pub async fn run(session: &Session, args: &UpgradeArgs) -> Result<Exit> {
    again::once_more(async || upgrade(session, args).await).await
}

async fn upgrade(session: &Session, args: &UpgradeArgs) -> Result<Exit> {
    if args.atomic && !args.change.run.wait {
        let why =
            "--atomic goes back where an upgrade is not ready in time: leave out --wait=false";
        return Err(UsageError(why.to_owned()).into());
    }
    let targets = args.addons.iter().map(|typed| VersionedName::parse(typed));
    let installations: Vec<VersionedName> = targets.collect();
    if args.unpin
        && let Some(VersionedName {
            name,
            version: Some(version),
        }) = installations.iter().find(|one| one.version.is_some())
    {
        return Err(UsageError(format!(
            "{name}@{version} pins the version and --unpin takes it away: leave out one of them"
        ))
        .into());
    }
    let edits = Edits {
        unpin: args.unpin,
        ..choices::parse_changes(&args.values, &args.addons)?
    };
    let intent = Intent::Upgrade {
        installations,
        edits,
    };
    let resolver = Resolver::new(session.ctx(), choices::parse_offer(&args.source)).await?;
    let resolution = prompt::resolve_with_prompt(&resolver, &intent, args.change.run.yes).await?;
    if let Some(why) = delegated::find_unavailable(session).await? {
        let change = &args.change;
        return delegated::write(session, resolution, &why, &change.run, change.dry_run).await;
    }
    let choices = Choices {
        repair: args.due.repair,
        allow_downgrade: args.due.allow_downgrade,
        wait_for_types: args.change.wait_for_types(),
        ..choices::parse_choices(args.change.accept, args.delete, &args.differences)
    };
    let is_named = !args.addons.is_empty();
    let (mut plan, mut failed) =
        partial::plan_partially(&resolver, resolution, &choices, is_named, None).await?;
    if args.atomic {
        plan = resolver.atomic(plan).await?;
        if is_named {
            plan = plan.whole()?;
        }
        failed.append(&mut plan.failed);
    }
    change::check_named(session, &plan)?;
    let done = change::run(session, plan, &args.change).await;
    // Report failures even if the user declined the rest.
    let left_out = partial::report_failed(failed);
    Ok(done?.max(left_out))
}
