//! `apply FILE`: makes the plan of a plan file again, compares both, and executes it if nothing changed since (semantics 17.1).

use std::path::Path;

use addons_operation::plan::replay::{check_same_cluster, replay};
use addons_plan::file::{self, FileError, PlanFile, Plans};
use anyhow::{Context as _, Result};

use crate::cli::plan::ApplyArgs;
use crate::exit::{Exit, UsageError};
use crate::session::Session;
use crate::{change, input, output};
use addons_operation::text::shell_word;

/// Executes the plan of a plan file for this cluster.
///
/// # Errors
/// The cluster changed since the plan was made, or an error of install and upgrade.
pub async fn run(session: &Session, file: &PlanFile, args: &ApplyArgs) -> Result<Exit> {
    if file.installations.is_empty() {
        check_same_cluster(session.ctx(), file).await?;
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

/// Reads a plan file. `expected` is the digest of the plan that was reviewed, if it is known.
///
/// # Errors
/// The file is not a plan file.
pub fn read_plan_file(path: &Path, expected: Option<&str>) -> Result<Plans> {
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
