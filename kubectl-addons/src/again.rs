//! Plans once more if another client changed something between the plan and the first write. In most cases a reconciler already made the
//! same change.

use addons_engine::EngineError;
use addons_engine::error::StaleReason;
use addons_operation::{InstallationOutcome, OperationError};
use anyhow::Result;

use crate::exit::Exit;
use crate::output;

/// Runs `work`, and once more if another client was faster.
///
/// # Errors
/// Those of `work`.
pub async fn once_more(work: impl AsyncFn() -> Result<Exit>) -> Result<Exit> {
    match work().await {
        Err(error) if is_overtaken(&error) => work().await,
        done => done,
    }
}

/// Whether an error means that another client was faster. If so, prints a note.
pub fn is_overtaken(error: &anyhow::Error) -> bool {
    let what = error.downcast_ref().and_then(describe_stale);
    if let Some(what) = &what {
        output::note(&format!("{what}; planning again"));
    }
    what.is_some()
}

/// Returns the outcomes of a command. If there is a single installation and another client was faster, returns its error instead, because
/// nothing was written.
///
/// # Errors
/// The error of the only installation.
pub fn check_outcomes(
    mut outcomes: Vec<InstallationOutcome>,
) -> Result<Vec<InstallationOutcome>, Box<OperationError>> {
    let is_stale = |one: &mut InstallationOutcome| {
        let error = one.result.as_ref().err();
        error.is_some_and(|error| describe_stale(error).is_some())
    };
    if outcomes.len() == 1
        && let Some(stale) = outcomes.pop_if(is_stale)
    {
        stale.result.map_err(Box::new)?;
    }
    Ok(outcomes)
}

fn describe_stale(error: &OperationError) -> Option<String> {
    match error.root() {
        OperationError::Engine(EngineError::Stale {
            installation,
            what: what @ (StaleReason::Installed | StaleReason::SpecChanged | StaleReason::Created),
        }) => Some(format!(
            "{installation} was changed after the plan was made ({what})"
        )),
        _ => None,
    }
}
