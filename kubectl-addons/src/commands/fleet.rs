//! Runs the commands that work on many clusters: on each of them in waves, or merged into one table.

use anyhow::Result;

use super::{diff, list, plan, preflight, status};
use crate::cli::CliCommand;
use crate::exit::{Exit, UsageError};
use crate::fleet::rollout::{self, FleetRollout};
use crate::fleet::{Fleet, parse_rollout};
use crate::words::{fleet as words, typed};

/// Runs a command on a fleet.
///
/// # Errors
/// Nothing was written: the command works on one cluster only, or the user declined.
pub async fn run_fleet(fleet: &Fleet, command: &CliCommand) -> Result<Exit> {
    let (waves, how) = match command {
        CliCommand::Install(args) => (&args.waves, &args.change.run),
        CliCommand::Upgrade(args) => (&args.waves, &args.change.run),
        CliCommand::Uninstall(args) => (&args.waves, &args.run),
        CliCommand::Apply(args) if args.set.is_some() => (&args.waves, &args.change.run),
        CliCommand::Apply(_) => return Err(UsageError(words::CLUSTERS_OF_PLAN.to_owned()).into()),
        CliCommand::List(args) => return list::run_on_fleet(fleet, args).await,
        CliCommand::Status(args) => return status::run_on_fleet(fleet, args).await,
        CliCommand::Diff(args) => return diff::run_on_fleet(fleet, args).await,
        CliCommand::Preflight(args) => return preflight::run_on_fleet(fleet, args).await,
        CliCommand::Plan(args) => return plan::run_on_fleet(fleet, args).await,
        _ => return Err(UsageError(words::ONE_CLUSTER.to_owned()).into()),
    };
    let rollout = FleetRollout {
        waves: parse_rollout(waves, how)?,
        yes: how.yes,
        timeout: how.timeout,
        again: &typed::command_for_clusters,
    };
    rollout::run_rollout(fleet, &rollout, async |_, session| {
        super::run(session, command).await
    })
    .await
}
