//! `apply FILE`: makes the plan of a plan file again, compares both, and executes it if nothing changed since (semantics 17.1).

use std::path::Path;

use addons_operation::replay::{is_done, replay};
use addons_plan::file::{self, FileError, FleetClusterSource, PlanFile, Plans};
use anyhow::{Context as _, Result};

use crate::cli::plan::ApplyArgs;
use crate::commands::set;
use crate::exit::{Exit, UsageError};
use crate::fleet::rollout::{self, FleetRollout};
use crate::fleet::{Fleet, parse_rollout};
use crate::session::Session;
use crate::words::{fleet as words, typed};
use crate::{change, input, output};
use addons_operation::text::shell_word;

/// Runs a plan file, of one cluster or of several, or applies a set.
///
/// # Errors
/// The file is not a plan file, the cluster changed since the plan was made, or an error of install and upgrade.
pub async fn run(session: &Session, args: &ApplyArgs) -> Result<Exit> {
    if let Some(path) = &args.set {
        return set::run(session, args, path).await;
    }
    let path = args.file.as_deref().context("no plan file is named")?;
    let fleet = match read_plan_file(path, args.expect_digest.as_deref())? {
        Plans::One(_) if args.waves.rollout().is_some() => {
            return Err(UsageError(words::NO_WAVES.to_owned()).into());
        }
        Plans::One(file) => return apply_plan(session, &file, args).await,
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

async fn apply_plan(session: &Session, file: &PlanFile, args: &ApplyArgs) -> Result<Exit> {
    if file.installations.is_empty() {
        addons_operation::replay::check_same_cluster(session.ctx(), file).await?;
        output::note("the plan holds nothing to do");
        if let Some(turn) = session.turn() {
            turn.wait_unchanged(Vec::new()).await?;
        }
        return Ok(Exit::Done);
    }
    let plan = replay(session.ctx(), file, Some(args.change.run.timeout)).await?;
    plan.check_breakages()?;
    change::execute(session, plan, &args.change.run, !args.change.no_init).await
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
    apply_plan(session, file, args).await
}

fn read_plan_file(path: &Path, expected: Option<&str>) -> Result<Plans> {
    let name = || format!("plan file {}", path.display());
    let bytes = input::read_bounded(path, file::LARGEST).with_context(name)?;
    let plans = file::read(&bytes, expected);
    if let Err(FileError::NotJson { .. }) = plans
        && is_set(&bytes)
    {
        let set = shell_word(&path.to_string_lossy());
        let why = format!("{set} is a set, not a plan file: kubectl addons apply -f {set}");
        return Err(UsageError(why).into());
    }
    plans.with_context(name)
}

/// Whether a file that is not a plan file looks like a set: YAML with an installation.
fn is_set(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    text.lines()
        .any(|line| line.trim_end() == "kind: AddonInstallation")
}
