//! `channel apply INDEX…` and `channel list`: do what kops' own tool does, with the same records.

mod removed;
mod table;

use std::collections::BTreeMap;
use std::time::Duration;

use addons_engine::{Report, kops};
use addons_loops::fights::{Fights, TRUCE, record_contested};
use addons_operation::{Choices, Offer, Plan, Records, Resolution, Resolver};
use addons_plan::closing::AnnotationChange;
use anyhow::Result;
use common::api::names::InstallationName;
use common::catalogue::channel::ChannelVersion;
use serde::Serialize;
use tokio::time::Instant;

use crate::cli::channel::{ChannelApplyArgs, ChannelListArgs};
use crate::cli::operation::DryRunMode;
use crate::cli::{Listing, OutputFormat};
use crate::exit::Exit;
use crate::output::{self, ItemList, table::Table};
use crate::session::Session;
use crate::{change, choices, events, failure, partial};
use table::{ChannelRow, RecordedVersion};

/// The pause after a failed pass, until the first pass succeeds.
const RETRY: Duration = Duration::from_secs(5);

/// Installs or upgrades every add-on of the indexes. Without `--yes` it shows what is due, as kops' tool does.
///
/// # Errors
/// Nothing was written.
pub async fn apply(session: &Session, args: &ChannelApplyArgs) -> Result<Exit> {
    events::check_output(args.output.format)?;
    let Some(interval) = args.interval else {
        return run_pass(session, args, None).await;
    };
    let mut has_succeeded = false;
    let mut term = LoopTerm::default();
    loop {
        // Read everything again: the index, the version and the cluster may have changed.
        let fresh = Session::with_timeout(session.global().clone(), Some(args.change.run.timeout));
        let exit = match run_pass(&fresh, args, Some(&mut term)).await {
            Ok(exit) => exit,
            Err(error) => failure::report_failure(&error),
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

/// What a pass of `--interval` needs to know about earlier ones.
#[derive(Default)]
struct LoopTerm {
    /// What was taken back from another client.
    fights: Fights,
    /// Installations that are left alone until a time, because another client keeps replacing what this one has applied.
    contested: BTreeMap<InstallationName, Instant>,
}

impl LoopTerm {
    /// Leaves out what is contested.
    fn leave_contested(&mut self, resolution: &mut Resolution) {
        let now = Instant::now();
        self.contested.retain(|_, until| *until > now);
        resolution
            .installations
            .retain(|resolved| !self.contested.contains_key(&resolved.name));
    }

    /// Counts the records that were replaced after another client had done so. Too many repetitions are recorded and reported.
    async fn count_fights(
        &mut self,
        session: &Session,
        changes: Vec<(InstallationName, AnnotationChange)>,
    ) -> Result<()> {
        let now = Instant::now();
        for (name, change) in changes {
            let report = Report::default();
            let fight = self
                .fights
                .record_repairs(&name, Some(&change), &report, now);
            let Some(sentence) = fight else {
                continue;
            };
            output::warn(&sentence);
            self.contested.insert(name.clone(), now + TRUCE);
            let records = Records::read(session.ctx()).await?;
            if let Some(record) = records.get(&name) {
                record_contested(session.ctx(), record, sentence).await?;
            }
        }
        Ok(())
    }
}

async fn run_pass(
    session: &Session,
    args: &ChannelApplyArgs,
    mut term: Option<&mut LoopTerm>,
) -> Result<Exit> {
    let indexes = args.indexes.iter().chain(&args.files).cloned();
    let offer = Offer::Indexes(indexes.map(Into::into).collect());
    let resolver = Resolver::new(session.ctx(), offer).await?;
    let mut resolution = resolver.resolve_indexes().await?;
    if let Some(term) = &mut term {
        term.leave_contested(&mut resolution);
    }
    let run = &args.change.run;
    let choices = Choices {
        repair: args.due.repair,
        allow_downgrade: args.due.allow_downgrade,
        wait_for_types: args.change.wait_for_types().filter(|_| run.yes),
        ..choices::parse_choices(args.change.accept, args.delete, &args.differences)
    };
    let (plan, failed) =
        partial::plan_partially(&resolver, resolution, &choices, false, None).await?;
    let removed = resolver.find_removed_addons().await?;
    let worst = partial::report_failed(failed);
    if args.interval.is_none() {
        change::check_named(session, &plan)?;
    }
    show_due(&plan, args.output)?;
    if !removed.is_empty() {
        removed::announce_removed(&removed, args.prune_removed);
    }
    let uninstalls = args.prune_removed && removed.iter().any(|one| one.installation.is_some());
    if plan.is_empty() && !uninstalls && worst == Exit::Done {
        output::note("No update required");
        return Ok(Exit::Done);
    }
    if !run.yes && args.change.dry_run == DryRunMode::None {
        if !plan.is_empty() {
            change::propose(session, &plan).await?;
            change::report_closed_window(session, &plan).await?;
        }
        if uninstalls {
            let removal = removed::plan_removal(&resolver, &removed, args).await?;
            change::propose(session, &removal).await?;
            change::report_closed_window(session, &removal).await?;
        }
        output::note("Must specify --yes to update");
        return Ok(worst);
    }
    let changes = plan.installations.iter();
    let changes = changes.filter_map(|planned| {
        let change = planned.plan.annotation()?.clone();
        Some((planned.plan.installation.clone(), change))
    });
    let changes = changes.collect();
    let exit = change::run(session, plan, &args.change).await?;
    if let Some(term) = term.filter(|_| exit == Exit::Done) {
        term.count_fights(session, changes).await?;
    }
    let worst = worst.max(exit);
    if !uninstalls {
        return Ok(worst);
    }
    // Uninstall even if an update failed: the removed add-ons do not depend on it.
    let removal = removed::plan_removal(&resolver, &removed, args).await?;
    let exit = match args.change.dry_run {
        DryRunMode::None => change::execute(session, removal, run, false).await?,
        mode => change::show_dry_run(session, removal, mode).await?,
    };
    Ok(worst.max(exit))
}

/// Shows what is due, in the columns of kops' tool.
fn show_due(plan: &Plan, asked: Listing) -> Result<()> {
    let rows: Vec<ChannelRow> = table::channel_rows(plan);
    match asked.format {
        OutputFormat::Value(_) => output::print_value(&ItemList { items: &rows }, asked),
        OutputFormat::Name => {
            output::print_names("addon", rows.iter().map(|row| row.name.as_str()));
            Ok(())
        }
        OutputFormat::Table | OutputFormat::Wide => {
            if !rows.is_empty() && !events::is_on() {
                output::print_painted(&table::render_table(&rows).render_listing(asked));
            }
            Ok(())
        }
    }
}

/// A row of `channel list`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RecordedRow {
    namespace: String,
    name: String,
    #[serde(flatten)]
    version: RecordedVersion,
    #[serde(skip_serializing_if = "Option::is_none")]
    channel: Option<String>,
}

/// Lists the records of kops, whichever tool wrote them.
///
/// # Errors
/// The namespaces cannot be read.
pub async fn list(session: &Session, args: &ChannelListArgs) -> Result<Exit> {
    let mut rows = Vec::new();
    for one in kops::of_cluster(session.cluster().await?).await? {
        match ChannelVersion::parse(&one.addon, &one.text) {
            Ok(found) => rows.push(RecordedRow {
                namespace: one.namespace,
                name: one.addon,
                version: RecordedVersion::new(&found),
                channel: found.channel,
            }),
            Err(error) => output::warn(&format!("namespace {}: {error}", one.namespace)),
        }
    }
    match args.output.format {
        OutputFormat::Value(_) => output::print_value(&ItemList { items: &rows }, args.output)?,
        OutputFormat::Name => {
            output::print_names("addon", rows.iter().map(|row| row.name.as_str()))
        }
        OutputFormat::Table | OutputFormat::Wide if rows.is_empty() => {
            output::note("No managed addons found");
        }
        OutputFormat::Table | OutputFormat::Wide => {
            let mut table = Table::new(&["NAMESPACE", "NAME", "VERSION", "ID", "HASH", "CHANNEL"]);
            for row in rows {
                let text = Option::unwrap_or_default;
                table.add_row(vec![
                    row.namespace,
                    row.name,
                    text(row.version.version),
                    text(row.version.id),
                    text(row.version.manifest_hash),
                    text(row.channel),
                ]);
            }
            output::print_painted(&table.render_listing(args.output));
        }
    }
    Ok(Exit::Done)
}
