//! Runs the commands that work on many clusters: on each of them in waves, or merged into one table.

use anyhow::Result;

use super::rollout::{self, FleetRollout};
use super::{Fleet, parse_rollout, reading};
use crate::cli::CliCommand;
use crate::cli::core::CoreCommand;
use crate::commands::{self, core};
use crate::exit::{Exit, UsageError};
use crate::words::{fleet as words, typed};

/// Runs a command on a fleet.
///
/// # Errors
/// Nothing was written: the command works on one cluster only, or the user declined.
pub async fn run(fleet: &Fleet, command: &CliCommand) -> Result<Exit> {
    let (waves, how) = match command {
        CliCommand::Install(args) => (&args.waves, &args.change.run),
        CliCommand::Upgrade(args) => (&args.waves, &args.change.run),
        CliCommand::Uninstall(args) => (&args.waves, &args.run),
        CliCommand::Apply(args) if args.set.is_some() => (&args.waves, &args.change.run),
        CliCommand::Apply(_) => return Err(UsageError(words::CLUSTERS_OF_PLAN.to_owned()).into()),
        CliCommand::List(args) => return reading::list(fleet, args).await,
        CliCommand::Status(args) => return reading::status(fleet, args).await,
        CliCommand::Diff(args) => return reading::diff(fleet, args).await,
        CliCommand::Preflight(args) => return reading::preflight(fleet, args).await,
        CliCommand::Plan(args) => return reading::plan(fleet, args).await,
        CliCommand::Core(CoreCommand::Release(args)) => {
            let (done, failed) = fleet
                .read_each(async |session| core::release::release_found(session, args).await)
                .await;
            return core::release::conclude(&done, failed, args);
        }
        _ => return Err(UsageError(words::ONE_CLUSTER.to_owned()).into()),
    };
    let rollout = FleetRollout {
        waves: parse_rollout(waves, how)?,
        yes: how.yes,
        timeout: how.timeout,
        again: &typed::command_for_clusters,
    };
    rollout::run_rollout(fleet, &rollout, async |_, session| {
        commands::run(session, command).await
    })
    .await
}
