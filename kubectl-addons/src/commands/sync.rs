//! `sync [DIR]`: makes the cluster match a directory.

mod due;
mod tree;
mod watch;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use addons_operation::error::NotSynced;
use addons_operation::stage::Failed;
use addons_operation::{Choices, DirectorySync, Intent, Interruption, Offer, Plan, Resolver};
use addons_sources::directory;
use anyhow::{Context as _, Result};
use common::api::names::InstallationName;
use common::directory::allowed::AllowList;
use common::directory::{File, Options, read};

use crate::change::Reports;
use crate::cli::operation::DryRun;
use crate::cli::sync::{Kinds, Sync};
use crate::exit::Exit;
use crate::session::Session;
use crate::usage::Usage;
use crate::{change, choices, events, output, partial};

/// The result of a pass.
struct Passed {
    /// The exit code.
    exit: Exit,
    /// Whether there was nothing to do.
    is_nothing: bool,
    /// The reports, for a pass that is part of a longer operation.
    reports: Reports,
}

/// Installs, upgrades and repairs what is in the directory, and uninstalls what was removed from it. With `--watch`, continues until the
/// program ends.
///
/// # Errors
/// Nothing was written: the directory cannot be read, or the user declined.
pub async fn run(session: &Session, args: &Sync) -> Result<Exit> {
    events::check(args.output.format)?;
    if args.watch {
        return watch::run(session, args).await;
    }
    let path = absolute(&args.directory)?;
    let reading = directory::read_until_stable(Path::new(&path)).await?;
    let sync = Arc::new(found(session, args, path, reading.files));
    Ok(pass(session, args, &sync, None, None).await?.exit)
}

/// Compares the directory with the cluster once, and executes what is due. `only` limits the pass to one installation if nothing else can
/// have changed. `interruption` is that of the surrounding operation.
async fn pass(
    session: &Session,
    args: &Sync,
    sync: &Arc<DirectorySync>,
    only: Option<&InstallationName>,
    interruption: Option<&Interruption>,
) -> Result<Passed> {
    let resolver = Resolver::new(session.ctx(), Offer::Nothing).await?;
    let intent = Intent::SyncDirectory(Arc::clone(sync));
    let mut resolution = resolver.resolve(&intent, &Default::default()).await?;
    if let Some(only) = only {
        let installations = &mut resolution.installations;
        installations.retain(|resolved| resolved.name == *only);
    }
    let choices = Choices {
        wait_for_types: args.change.wait_for_types(),
        ..choices::choices(args.change.accept, args.delete, &args.differences)
    };
    let (plan, mut failed) = partial::plan(&resolver, resolution, &choices, false).await?;
    if !args.watch {
        change::check_named(session, &plan)?;
    }
    let (plan, refused) = plan.without_refused()?;
    failed.extend(refused);
    if sync.directory.is_empty() {
        output::note(&format!("{} holds no manifest", sync.path));
    }
    let removal = match refusal(&resolver, sync, args) {
        _ if sync.holds.is_some() || only.is_some() => None,
        Some(refused) => {
            failed.push(Failed {
                name: sync.path.clone(),
                error: refused.into(),
            });
            None
        }
        None => {
            let mut removal = resolver.plan_gone(sync, &plan, &choices).await?;
            failed.append(&mut removal.failed);
            Some(removal)
        }
    };
    let removal = removal.filter(|removal| !removal.is_empty());
    due::show([Some(&plan), removal.as_ref()], args.output.format)?;
    let is_nothing = plan.is_empty() && removal.is_none();
    let done = if args.watch && is_nothing {
        Ok((Exit::Done, Reports::new()))
    } else {
        carry_out(session, plan, removal, args, interruption).await
    };
    // Report failures even if the user declined the rest.
    let left_out = partial::report(failed);
    let (done, reports) = done?;
    Ok(Passed {
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
    args: &Sync,
    interruption: Option<&Interruption>,
) -> Result<(Exit, Reports)> {
    let change = &args.change;
    if change.dry_run != DryRun::None {
        let mut exit = change::run(session, plan, change).await?;
        if let Some(removal) = removal {
            exit = exit.max(change::show(session, removal, change.dry_run).await?);
        }
        return Ok((exit, Reports::new()));
    }
    change::propose(session, &plan).await?;
    if let Some(removal) = &removal {
        change::propose(session, removal).await?;
    }
    let nothing = plan.is_empty() && removal.is_none();
    if !nothing && !change.run.yes {
        change::confirm("Continue? [y/N] ")?;
    }
    let (mut exit, mut reports) = (Exit::Done, Reports::new());
    for plan in [Some(plan), removal].into_iter().flatten() {
        if !plan.is_empty() {
            let (run, define) = (&change.run, !change.no_init);
            let done = match interruption {
                Some(until) => {
                    let plan = Arc::new(plan);
                    let done = change::carry_out_until(session, &plan, run, define, until);
                    let (exit, done) = done.await?;
                    reports.extend(done);
                    exit
                }
                None => change::carry_out(session, plan, run, define).await?,
            };
            exit = exit.max(done);
        }
    }
    Ok((exit, reports))
}

/// Returns why nothing is uninstalled although manifests were removed: an empty or mostly empty directory is rarely intended.
fn refusal(resolver: &Resolver<'_>, sync: &DirectorySync, args: &Sync) -> Option<NotSynced> {
    let gone = resolver.gone(sync);
    let directory = sync.path.clone();
    if gone.names.is_empty() {
        return None;
    }
    if sync.directory.is_empty() {
        let installations = gone.names.len();
        return (!args.allow_empty).then_some(NotSynced::Empty {
            directory,
            installations,
        });
    }
    if !gone.is_most() || args.allow_removals || may_uninstall(args, &gone.names, gone.of) {
        return None;
    }
    Some(NotSynced::MostlyGone {
        directory,
        gone: gone.names.len(),
        of: gone.of,
    })
}

/// Asks the user on a terminal for confirmation, which `--yes` does not give.
fn may_uninstall(args: &Sync, gone: &[String], of: usize) -> bool {
    let asks = args.change.dry_run == DryRun::None && !args.change.run.yes && output::can_ask();
    let question = format!(
        "{} of the {of} add-ons of the directory are gone: {}. Uninstall them? [y/N] ",
        gone.len(),
        gone.join(", ")
    );
    asks && change::confirm(&question).is_ok()
}

/// Parses the files of the directory.
fn found(session: &Session, args: &Sync, path: String, files: Vec<File>) -> DirectorySync {
    let options = Options {
        all: args.all,
        duplicate_keys: session.ctx().duplicate_keys(),
    };
    let kinds = |typed: &Option<Kinds>| typed.clone().unwrap_or_default().0;
    DirectorySync {
        directory: read(&path, files, &options),
        allowed: AllowList::new(
            &kinds(&args.prune_allowlist),
            &kinds(&args.extra_prune_allowlist),
        ),
        holds: None,
        contested: BTreeSet::new(),
        legacy_names: args.legacy_names,
        path,
    }
}

/// Returns the absolute path that installations are recorded with, independent of the working directory.
fn absolute(typed: &Path) -> Result<String> {
    let path = std::path::absolute(typed).with_context(|| typed.display().to_string())?;
    let text = path
        .to_str()
        .map(|text| text.trim_end_matches('/').to_owned());
    let unreadable = || Usage(format!("{}: the path is not valid UTF-8", path.display()));
    Ok(text.ok_or_else(unreadable)?)
}
