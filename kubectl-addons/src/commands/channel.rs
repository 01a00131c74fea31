//! `channel apply INDEX…` and `channel list`: do what kops' own tool does, with the same records.

mod removed;
mod table;

use std::time::Duration;

use addons_engine::kops;
use addons_operation::{Choices, Intent, Offer, Plan, Resolver};
use anyhow::Result;
use common::catalogue::channel::ChannelVersion;
use serde::Serialize;

use crate::cli::channel::{Apply, List};
use crate::cli::operation::DryRun;
use crate::cli::{Format, Listing};
use crate::events;
use crate::exit::Exit;
use crate::output::{self, Items, table::Table};
use crate::session::Session;
use crate::{change, choices, partial};
use table::{Row, Version};

/// The pause after a failed pass, until the first pass succeeds.
const RETRY: Duration = Duration::from_secs(5);

/// Installs or upgrades every add-on of the indexes. Without `--yes` it shows what is due, as kops' tool does.
///
/// # Errors
/// Nothing was written.
pub async fn apply(session: &Session, args: &Apply) -> Result<Exit> {
    events::check(args.output.format)?;
    let Some(interval) = args.interval else {
        return pass(session, args).await;
    };
    let mut has_succeeded = false;
    loop {
        // Read everything again: the index, the version and the cluster may have changed.
        let fresh = Session::within(session.global().clone(), Some(args.change.run.timeout));
        let exit = match pass(&fresh, args).await {
            Ok(exit) => exit,
            Err(error) => output::failure(&error),
        };
        has_succeeded |= exit == Exit::Done;
        let pause = if has_succeeded {
            interval
        } else {
            interval.min(RETRY)
        };
        // A signal ends the program here, because nothing is being written.
        tokio::time::sleep(pause).await;
    }
}

async fn pass(session: &Session, args: &Apply) -> Result<Exit> {
    let indexes = args.indexes.iter().chain(&args.files).cloned();
    let offer = Offer::Indexes(indexes.map(Into::into).collect());
    let resolver = Resolver::new(session.ctx(), offer).await?;
    let resolution = resolver
        .resolve(&Intent::ApplyIndex, &Default::default())
        .await?;
    let run = &args.change.run;
    let choices = Choices {
        repair: args.due.repair,
        allow_downgrade: args.due.allow_downgrade,
        wait_for_types: args.change.wait_for_types().filter(|_| run.yes),
        ..choices::choices(args.change.accept, args.delete, &args.differences)
    };
    let (plan, failed) = partial::plan(&resolver, resolution, &choices, false).await?;
    let removed = resolver.removed().await?;
    let worst = partial::report(failed);
    if args.interval.is_none() {
        change::check_named(session, &plan)?;
    }
    show(&plan, args.output)?;
    if !removed.is_empty() {
        removed::announce(&removed, args.prune_removed);
    }
    let uninstalls = args.prune_removed && removed.iter().any(|one| one.installation.is_some());
    if plan.is_empty() && !uninstalls && worst == Exit::Done {
        output::note("No update required");
        return Ok(Exit::Done);
    }
    if !run.yes && args.change.dry_run == DryRun::None {
        if !plan.is_empty() {
            change::propose(session, &plan).await?;
        }
        output::note("Must specify --yes to update");
        return Ok(worst);
    }
    let worst = worst.max(change::run(session, plan, &args.change).await?);
    if uninstalls && args.change.dry_run == DryRun::None {
        // Uninstall even if an update failed: the removed add-ons do not depend on it.
        let exit = removed::uninstall(session, &resolver, &removed, args).await?;
        return Ok(worst.max(exit));
    }
    Ok(worst)
}

/// Shows what is due, in the columns of kops' tool.
fn show(plan: &Plan, asked: Listing) -> Result<()> {
    let rows: Vec<Row> = table::rows(plan);
    match asked.format {
        Format::Json | Format::Yaml | Format::Template(_) => {
            output::value(&Items { items: &rows }, asked)
        }
        Format::Name => {
            output::names("addon", rows.iter().map(|row| row.name.as_str()));
            Ok(())
        }
        Format::Table | Format::Wide => {
            if !rows.is_empty() && !events::is_on() {
                output::data(&table::table(&rows).listed(asked));
            }
            Ok(())
        }
    }
}

/// A row of `channel list`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Recorded {
    namespace: String,
    name: String,
    #[serde(flatten)]
    version: Version,
    #[serde(skip_serializing_if = "Option::is_none")]
    channel: Option<String>,
}

/// Lists the records of kops, whichever tool wrote them.
///
/// # Errors
/// The namespaces cannot be read.
pub async fn list(session: &Session, args: &List) -> Result<Exit> {
    let mut rows = Vec::new();
    for one in kops::of_cluster(session.cluster().await?).await? {
        match ChannelVersion::parse(&one.addon, &one.text) {
            Ok(found) => rows.push(Recorded {
                namespace: one.namespace,
                name: one.addon,
                version: Version::of(&found),
                channel: found.channel,
            }),
            Err(error) => output::warn(&format!("namespace {}: {error}", one.namespace)),
        }
    }
    match args.output.format {
        Format::Json | Format::Yaml | Format::Template(_) => {
            output::value(&Items { items: &rows }, args.output)?
        }
        Format::Name => output::names("addon", rows.iter().map(|row| row.name.as_str())),
        Format::Table | Format::Wide if rows.is_empty() => {
            output::note("No managed addons found");
        }
        Format::Table | Format::Wide => {
            let mut table = Table::new(&["NAMESPACE", "NAME", "VERSION", "ID", "HASH", "CHANNEL"]);
            for row in rows {
                let text = Option::unwrap_or_default;
                table.row(vec![
                    row.namespace,
                    row.name,
                    text(row.version.version),
                    text(row.version.id),
                    text(row.version.manifest_hash),
                    text(row.channel),
                ]);
            }
            output::data(&table.listed(args.output));
        }
    }
    Ok(Exit::Done)
}
