//! What was changed by another client between the plan and the first write is planned once more: mostly a reconciler was faster, and
//! did the same.

use addons_engine::EngineError;
use addons_engine::error::StaleReason;
use addons_operation::{OperationError, Outcome};
use anyhow::Result;

use crate::exit::Exit;
use crate::output;

/// Does it, and once more where another client was faster.
///
/// # Errors
/// Those of the work.
pub async fn once_more(work: impl AsyncFn() -> Result<Exit>) -> Result<Exit> {
    match work().await {
        Err(error) if is_overtaken(&error) => work().await,
        done => done,
    }
}

/// Whether an error says that another client was faster; that is told.
pub fn is_overtaken(error: &anyhow::Error) -> bool {
    let what = error.downcast_ref().and_then(changed);
    if let Some(what) = &what {
        output::note(&format!("{what}; planning again"));
    }
    what.is_some()
}

/// The outcomes of a command; of a single installation, the error where nothing was written because another client was faster.
///
/// # Errors
/// That of the only installation.
pub fn checked(mut outcomes: Vec<Outcome>) -> Result<Vec<Outcome>, Box<OperationError>> {
    let is_stale = |one: &mut Outcome| {
        let error = one.result.as_ref().err();
        error.is_some_and(|error| changed(error).is_some())
    };
    if outcomes.len() == 1
        && let Some(stale) = outcomes.pop_if(is_stale)
    {
        stale.result.map_err(Box::new)?;
    }
    Ok(outcomes)
}

fn changed(error: &OperationError) -> Option<String> {
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
