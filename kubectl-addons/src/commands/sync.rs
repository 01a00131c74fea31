//! `sync [DIR]`: makes the cluster match a directory.

mod due;
mod tree;
mod watch;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use addons_operation::directory::found::DirectorySync;
use addons_operation::error::DirectorySyncError;
use addons_operation::stage::FailedInstallation;
use addons_operation::{Choices, Interruption, Offer, Plan, Resolver};
use addons_plan::InstallationPlan;
use addons_sources::directory;
use anyhow::{Context as _, Result};
use common::api::names::InstallationName;
use common::directory::allowed::AllowList;
use common::directory::{DirectoryFile, DirectoryOptions, read};

use super::diff;
use crate::change::InstallationReports;
use crate::cli::operation::DryRunMode;
use crate::cli::sync::{AllowedKinds, SyncArgs};
use crate::exit::{Exit, UsageError};
use crate::session::Session;
use crate::{change, choices, events, output, partial, prompt};

/// The result of a pass.
struct PassResult {
    /// The exit code.
    exit: Exit,
    /// Whether there was nothing to do.
    is_nothing: bool,
    /// The reports, for a pass that is part of a longer operation.
    reports: InstallationReports,
}

/// Installs, upgrades and repairs what is in the directory, and uninstalls what was removed from it. With `--watch`, continues until the
/// program ends.
///
/// # Errors
/// Nothing was written: the directory cannot be read, or the user declined.
pub async fn run(session: &Session, args: &SyncArgs) -> Result<Exit> {
    events::check_output(args.output.format)?;
    if args.watch {
        return watch::run(session, args).await;
    }
    let path = absolute_path(&args.directory)?;
    let reading = directory::read_until_stable(Path::new(&path)).await?;
    let sync = Arc::new(parse_directory(session, args, path, reading.files));
    Ok(run_pass(session, args, &sync, None, None).await?.exit)
}

/// Compares the directory with the cluster once, and executes what is due. `only` limits the pass to one installation if nothing else can
/// have changed. `interruption` is that of the surrounding operation.
async fn run_pass(
    session: &Session,
    args: &SyncArgs,
    sync: &Arc<DirectorySync>,
    only: Option<&InstallationName>,
    interruption: Option<&Interruption>,
) -> Result<PassResult> {
    let resolver = Resolver::new(session.ctx(), Offer::Nothing).await?;
    let mut resolution = resolver.resolve_directory(sync).await?;
    if let Some(only) = only {
        let installations = &mut resolution.installations;
        installations.retain(|resolved| resolved.name == *only);
    }
    let choices = Choices {
        wait_for_types: args.change.wait_for_types(),
        ..choices::parse_choices(args.change.accept, args.delete, &args.differences)
    };
    let mut plan = resolver.plan_directory(resolution, &choices).await?;
    let mut failed = std::mem::take(&mut plan.failed);
    if !args.watch {
        change::check_named(session, &plan)?;
    }
    let (plan, refused) = plan.without_refused()?;
    failed.extend(refused);
    if sync.directory.is_empty() {
        output::note(&format!("{} holds no manifest", sync.path));
    }
    let removal = match removal_refusal(&resolver, sync, args) {
        _ if sync.keep_reason.is_some() || only.is_some() => None,
        Some(refused) => {
            failed.push(FailedInstallation {
                name: sync.path.clone(),
                error: refused.into(),
            });
            None
        }
        None => {
            let mut removal = resolver
                .plan_removed_installations(sync, &plan, &choices)
                .await?;
            failed.append(&mut removal.failed);
            Some(removal)
        }
    };
    let removal = removal.filter(|removal| !removal.is_empty());
    due::print_due([Some(&plan), removal.as_ref()], args.output.format)?;
    let is_nothing = plan.is_empty() && removal.is_none();
    let done = if args.watch && is_nothing {
        Ok((Exit::Done, InstallationReports::new()))
    } else {
        carry_out(session, plan, removal, args, interruption).await
    };
    // Report failures even if the user declined the rest.
    let left_out = partial::report_failed(failed);
    let (done, reports) = done?;
    Ok(PassResult {
        exit: done.max(left_out),
        is_nothing,
        reports,
    })
}

/// Shows what is due, asks once, and executes it: first the installations of the directory, then the removals.
async fn carry_out(
    session: &Session,
    plan: Plan,
    removal: Option<Plan>,
    args: &SyncArgs,
    interruption: Option<&Interruption>,
) -> Result<(Exit, InstallationReports)> {
    let change = &args.change;
    if change.dry_run != DryRunMode::None {
        if change.dry_run == DryRunMode::Server {
            show_fields(session, &plan).await?;
        }
        let mut exit = change::run(session, plan, change).await?;
        if let Some(removal) = removal {
            exit = exit.max(change::show_dry_run(session, removal, change.dry_run).await?);
        }
        return Ok((exit, InstallationReports::new()));
    }
    change::propose(session, &plan).await?;
    if let Some(removal) = &removal {
        change::propose(session, removal).await?;
    }
    for plan in [Some(&plan), removal.as_ref()].into_iter().flatten() {
        change::accept_closed_window(session, plan, &change.run).await?;
    }
    let nothing = plan.is_empty() && removal.is_none();
    if !nothing && !change.run.yes {
        prompt::confirm("Continue? [y/N] ")?;
    }
    let (mut exit, mut reports) = (Exit::Done, InstallationReports::new());
    for plan in [Some(plan), removal].into_iter().flatten() {
        if !plan.is_empty() {
            let (run, define) = (&change.run, !change.no_init);
            let done = match interruption {
                Some(until) => {
                    let plan = Arc::new(plan);
                    let done = change::execute_until(session, &plan, run, define, until);
                    let (exit, done) = done.await?;
                    reports.extend(done);
                    exit
                }
                None => change::execute_confirmed(session, plan, run, define).await?,
            };
            exit = exit.max(done);
        }
    }
    Ok((exit, reports))
}

/// Shows field by field what would change.
async fn show_fields(session: &Session, plan: &Plan) -> Result<()> {
    let now = session.cluster().await?.now();
    let is_one_of_several = plan.installations.len() > 1;
    for planned in &plan.installations {
        let changes = planned.plan.changes();
        // The plan is shown afterwards, with its warnings.
        let shown = InstallationPlan {
            warnings: Vec::new(),
            ..planned.plan.clone()
        };
        let text = diff::describe_changes(&shown, &changes, is_one_of_several, now);
        output::note(text.trim_end());
    }
    Ok(())
}

/// Returns why nothing is uninstalled although manifests were removed: an empty or mostly empty directory is rarely intended.
fn removal_refusal(
    resolver: &Resolver<'_>,
    sync: &DirectorySync,
    args: &SyncArgs,
) -> Option<DirectorySyncError> {
    let gone = resolver.find_removed_installations(sync);
    let directory = sync.path.clone();
    if gone.names.is_empty() {
        return None;
    }
    if sync.directory.is_empty() {
        let installations = gone.names.len();
        return (!args.allow_empty).then_some(DirectorySyncError::Empty {
            directory,
            installations,
        });
    }
    if !gone.is_majority() || args.allow_removals || confirm_removals(args, &gone.names, gone.total)
    {
        return None;
    }
    Some(DirectorySyncError::MostlyGone {
        directory,
        gone: gone.names.len(),
        of: gone.total,
    })
}

/// Asks the user on a terminal for confirmation, which `--yes` does not give.
fn confirm_removals(args: &SyncArgs, gone: &[String], of: usize) -> bool {
    let asks = args.change.dry_run == DryRunMode::None && !args.change.run.yes && output::can_ask();
    let question = format!(
        "{} of the {of} add-ons of the directory are gone: {}. Uninstall them? [y/N] ",
        gone.len(),
        gone.join(", ")
    );
    asks && prompt::confirm(&question).is_ok()
}

/// Parses the files of the directory.
fn parse_directory(
    session: &Session,
    args: &SyncArgs,
    path: String,
    files: Vec<DirectoryFile>,
) -> DirectorySync {
    let options = DirectoryOptions {
        all: args.all,
        duplicate_keys: session.ctx().duplicate_keys(),
    };
    let kinds = |typed: &Option<AllowedKinds>| typed.clone().unwrap_or_default().0;
    DirectorySync {
        directory: read(&path, files, &options),
        allowed: AllowList::new(
            &kinds(&args.prune_allowlist),
            &kinds(&args.extra_prune_allowlist),
        ),
        keep_reason: None,
        contested: BTreeSet::new(),
        legacy_names: args.legacy_names,
        path,
    }
}

/// Returns the absolute path that installations are recorded with, independent of the working directory.
fn absolute_path(typed: &Path) -> Result<String> {
    let path = std::path::absolute(typed).with_context(|| typed.display().to_string())?;
    let text = path
        .to_str()
        .map(|text| text.trim_end_matches('/').to_owned());
    let unreadable = || UsageError(format!("{}: the path is not valid UTF-8", path.display()));
    Ok(text.ok_or_else(unreadable)?)
}
