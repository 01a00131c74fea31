//! `apply FILE`: plans again what a plan file says, compares, and does it where nothing moved since (semantics 17).

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use addons_operation::replay::replay;
use anyhow::{Context as _, Result};
use common::plan::file::{self, PlanFile};

use crate::cli::plan::Apply;
use crate::commands::set;
use crate::exit::Exit;
use crate::session::Session;
use crate::{change, output};

/// Runs a plan file, or applies a set.
///
/// # Errors
/// It cannot be read as one; something moved since it was made; those of install and upgrade.
pub async fn run(session: &Session, args: &Apply) -> Result<Exit> {
    if let Some(path) = &args.set {
        return set::run(session, args, path).await;
    }
    let path = args.file.as_deref().context("no plan file is named")?;
    let file = read(path)?;
    if file.installations.is_empty() {
        addons_operation::replay::same_cluster(session.ctx(), &file).await?;
        output::note("the plan holds nothing to do");
        return Ok(Exit::Done);
    }
    let plan = replay(session.ctx(), &file, Some(args.run.timeout)).await?;
    plan.check_breakages()?;
    change::execute(session, plan, &args.run, !args.no_init).await
}

fn read(path: &Path) -> Result<PlanFile> {
    let name = || format!("plan file {}", path.display());
    let mut bytes = Vec::new();
    // One byte more than allowed shows that there are too many.
    let limit = u64::try_from(file::LARGEST).unwrap_or(u64::MAX);
    File::open(path)
        .and_then(|file| file.take(limit.saturating_add(1)).read_to_end(&mut bytes))
        .with_context(name)?;
    file::read(&bytes).with_context(name)
}
