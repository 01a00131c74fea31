//! `apply FILE`: a plan file is of one cluster or of several, which is known once it is read.

use addons_operation::plan::replay::is_done;
use addons_plan::file::{FleetClusterSource, PlanFile, Plans};
use anyhow::{Context as _, Result};

use super::rollout::{self, FleetRollout};
use super::{Fleet, parse_rollout};
use crate::cli::plan::ApplyArgs;
use crate::commands::apply;
use crate::exit::{Exit, UsageError};
use crate::output;
use crate::session::Session;
use crate::words::{fleet as words, typed};

/// Runs a plan file, on its cluster or on each of its clusters.
///
/// # Errors
/// The file is not a plan file, the cluster changed since the plan was made, or an error of install and upgrade.
pub async fn run(session: &Session, args: &ApplyArgs) -> Result<Exit> {
    let path = args.file.as_deref().context("no plan file is named")?;
    let fleet = match apply::read_plan_file(path, args.expect_digest.as_deref())? {
        Plans::One(_) if args.waves.rollout().is_some() => {
            return Err(UsageError(words::NO_WAVES.to_owned()).into());
        }
        Plans::One(file) => return apply::run(session, &file, args).await,
        Plans::Fleet(fleet) => fleet,
    };
    let (places, plans): (Vec<FleetClusterSource>, Vec<PlanFile>) = fleet
        .clusters
        .into_iter()
        .map(|it| (it.at, it.plan))
        .unzip();
    let fleet = Fleet::from_places(session.global(), places)?;
    let rollout = FleetRollout {
        waves: parse_rollout(&args.waves, &args.change.run)?,
        yes: args.change.run.yes,
        timeout: args.change.run.timeout,
        // Clusters that are done are skipped.
        again: &|_| typed::command_for_clusters(&[]),
    };
    let work = async |at: usize, session: &Session| match plans.get(at) {
        Some(file) => apply_to_member(session, file, args).await,
        None => Ok(Exit::Done),
    };
    rollout::run_rollout(&fleet, &rollout, work).await
}

/// Applies the plan of one of several clusters. What an earlier run applied does not count as a change.
async fn apply_to_member(session: &Session, file: &PlanFile, args: &ApplyArgs) -> Result<Exit> {
    if let Some(turn) = session.turn()
        && !file.installations.is_empty()
        && is_done(session.ctx(), file).await?
    {
        output::note("the plan is done already");
        let stay = file
            .installations
            .iter()
            .filter(|it| !it.verb.ends_installation());
        let names = stay.map(|it| it.installation.clone());
        turn.wait_unchanged(names.collect()).await?;
        return Ok(Exit::Done);
    }
    apply::run(session, file, args).await
}
