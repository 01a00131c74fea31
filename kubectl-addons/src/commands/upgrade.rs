//! `upgrade [NAME[@VERSION]…]`

use addons_operation::{Choices, Edits, Intent, Offer, Resolver, VersionedName};
use anyhow::Result;

use crate::cli::operation::UpgradeArgs;
use crate::commands::delegated;
use crate::commands::reference::{TypedReference, misplaced_version};
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
    let offer = parse_offer(session, args, &installations).await?;
    let intent = Intent::Upgrade {
        installations,
        edits,
    };
    let resolver = Resolver::new(session.ctx(), offer).await?;
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

/// Returns what the new version is chosen from: with `--to`, the chart or manifest there.
///
/// # Errors
/// The reference is combined with several installations or a version, or it cannot be read.
async fn parse_offer(
    session: &Session,
    args: &UpgradeArgs,
    installations: &[VersionedName],
) -> Result<Offer> {
    let Some(to) = &args.to else {
        let name = installations
            .first()
            .map_or("NAME", |one| one.name.as_str());
        let why = match &args.reference {
            reference if reference.repo.is_some() => {
                format!("--repo is for a reference: kubectl addons upgrade {name} --to REFERENCE")
            }
            reference => match &reference.version {
                Some(version) => misplaced_version("upgrade", name, version),
                None => return Ok(choices::parse_offer(&args.source)),
            },
        };
        return Err(UsageError(why).into());
    };
    let [
        VersionedName {
            name,
            version: None,
        },
    ] = installations
    else {
        let name = installations.first().map_or("NAME", |one| &one.name);
        let why = format!(
            "--to names the version of one installation: kubectl addons upgrade {name} --to {to}"
        );
        return Err(UsageError(why).into());
    };
    let command = format!("upgrade {name} --to");
    let typed = TypedReference::parse(to, &args.reference, &command)?;
    let found = typed.read(session.ctx(), Some(name), false).await?;
    Ok(Offer::Entry(Box::new(found.entry)))
}
