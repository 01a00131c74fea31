//! Commands that read every cluster of a fleet, and show the results together. One cluster's failure does not stop the others.

use addons_plan::file::{self, ClusterPlan, FleetPlan};
use anyhow::Result;

use super::Fleet;
use crate::cli::operation::DiffArgs;
use crate::cli::plan::{PlanArgs, PlanOutput};
use crate::cli::reading::{ListArgs, PreflightArgs, StatusArgs};
use crate::commands::list::ListedInstallations;
use crate::commands::plan::WrittenPlan;
use crate::commands::preflight::report::PreflightReport;
use crate::commands::review::{markdown, page};
use crate::commands::{diff, list, plan, preflight, status};
use crate::exit::{Exit, UsageError};
use crate::failure;
use crate::output::{self, of_cluster};

/// Lists the installations of all clusters in one table.
///
/// # Errors
/// Flags exclude each other.
pub(super) async fn list(fleet: &Fleet, args: &ListArgs) -> Result<Exit> {
    if args.all_namespaces {
        return Err(UsageError(
            "--all-namespaces cannot be combined with several clusters".to_owned(),
        )
        .into());
    }
    if args.available.is_asked() {
        let one = "what could be installed is listed for one cluster: use --for-cluster NAMESPACE";
        return Err(UsageError(one.to_owned()).into());
    }
    let (found, exit) = fleet
        .read_each(async |session| list::list_installations(session, args).await)
        .await;
    let merged = ListedInstallations::merge(found);
    list::show(&merged, args)?;
    Ok(exit.max(merged.exit()))
}

/// Shows the installations of these names on every cluster.
///
/// # Errors
/// A value cannot be printed.
pub(super) async fn status(fleet: &Fleet, args: &StatusArgs) -> Result<Exit> {
    if args.watch {
        return Err(UsageError("--watch can only be used with a single cluster".to_owned()).into());
    }
    let (found, failed) = fleet
        .read_each(async |session| status::read(session, args).await)
        .await;
    status::show_clusters(args, &found)?;
    let exits = found.iter().map(|(_, all)| status::exit_code(all));
    let exit = exits.max().unwrap_or(Exit::Done);
    match failed {
        Exit::Done => status::apply_exit_code(args, Ok(exit)),
        failed if args.exit_code => Ok(failed.max(Exit::Usage)),
        failed => Ok(failed),
    }
}

/// Shows what an upgrade would change on each cluster.
///
/// # Errors
/// None: a value that cannot be printed is reported.
pub(super) async fn diff(fleet: &Fleet, args: &DiffArgs) -> Result<Exit> {
    let (found, failed) = fleet
        .read_each(async |session| diff::compare(session, args).await)
        .await;
    let named = found
        .iter()
        .map(|(cluster, found)| (Some(cluster.as_str()), found));
    let named: Vec<_> = named.collect();
    if let Err(error) = diff::show(&named, args) {
        return Ok(failure::report_failure(&error).max(Exit::Usage));
    }
    let failed = (failed != Exit::Done).then(|| failed.max(Exit::Usage));
    let exits = found.iter().map(|(_, found)| found.exit()).chain(failed);
    Ok(exits.max().unwrap_or(Exit::Done))
}

/// Checks every cluster against a future release of Kubernetes, in one table.
///
/// # Errors
/// The version is not valid.
pub(super) async fn preflight(fleet: &Fleet, args: &PreflightArgs) -> Result<Exit> {
    let to = preflight::target_facts(args)?;
    let (found, failed) = fleet
        .read_each(async |session| preflight::make_report(session, args, &to).await)
        .await;
    let mut merged = PreflightReport::default();
    for (cluster, of_cluster) in found {
        merged.add(&cluster, of_cluster);
    }
    preflight::show(&merged, &to, args)?;
    Ok(failed.max(preflight::exit_code(&merged)))
}

/// Makes the plans of all clusters in one file. A cluster that cannot be planned is left out of it.
///
/// # Errors
/// The plan cannot be written.
pub(super) async fn plan(fleet: &Fleet, args: &PlanArgs) -> Result<Exit> {
    plan::exit_code(args, write_plans(fleet, args).await)
}

async fn write_plans(fleet: &Fleet, args: &PlanArgs) -> Result<WrittenPlan> {
    if let PlanOutput::Draw(_) = args.output {
        return Err(
            UsageError("-o dot and -o mermaid draw the plan of one cluster".to_owned()).into(),
        );
    }
    let (mut found, failed) = fleet
        .read_each(async |session| plan::make_plan(session, args).await)
        .await;
    let mut exit = failed;
    let mut is_empty = true;
    let shown = found.iter().map(|(name, made)| made.shown(Some(name)));
    let shown: Vec<_> = shown.collect();
    match args.output {
        PlanOutput::Html => output::print_bytes(page::render_page(&shown).as_bytes()),
        PlanOutput::Markdown => output::print_text(&markdown::render_markdown(&shown)),
        _ => {}
    }
    let mut clusters = Vec::new();
    for at in &fleet.members {
        let Some(made) = found.iter().position(|(name, _)| name == at.name()) else {
            continue;
        };
        let (name, made) = found.swap_remove(made);
        exit = exit.max(made.exit);
        is_empty &= made.plan.is_empty();
        match args.output {
            PlanOutput::Text => output::print_painted(&format!("{name}:\n{}", made.text)),
            _ => of_cluster::run_labelled(at, async { output::note(made.text.trim_end()) }).await,
        }
        let (at, plan) = (at.clone(), made.file);
        clusters.push(ClusterPlan { at, plan });
    }
    if clusters.is_empty() {
        return Ok(WrittenPlan { exit, is_empty });
    }
    let plans = FleetPlan::new(clusters);
    match &args.output {
        PlanOutput::Print(format) => output::print_value(&file::write(&plans)?.0, *format)?,
        PlanOutput::File(path) => plan::write_file(&plans, path)?,
        PlanOutput::Text | PlanOutput::Html | PlanOutput::Markdown | PlanOutput::Draw(_) => {}
    }
    Ok(WrittenPlan { exit, is_empty })
}
