//! Commands without names are about all installations: what fails for one does not stop the others.

use addons_operation::stage::Failed;
use addons_operation::{Choices, OperationError, Plan, Resolution, Resolver};

use crate::exit::Exit;
use crate::output;

/// The plan of a command, and what is left out of it: nothing where installations were named, for then all or none is meant.
///
/// # Errors
/// Those of [`Resolver::plan`]; of a named installation.
pub async fn plan(
    resolver: &Resolver<'_>,
    resolution: Resolution,
    choices: &Choices,
    is_named: bool,
) -> Result<(Plan, Vec<Failed>), OperationError> {
    if is_named {
        let plan = resolver.plan(resolution.whole()?, choices).await?;
        return Ok((plan.whole()?, Vec::new()));
    }
    let mut plan = resolver.plan(resolution, choices).await?;
    let failed = std::mem::take(&mut plan.failed);
    Ok((plan, failed))
}

/// Reports what was left out, each with the way out; returns the highest exit code.
pub fn report(failed: Vec<Failed>) -> Exit {
    let failed = failed.into_iter();
    let exits = failed.map(|Failed { name, error }| failure(&name, error));
    exits.max().unwrap_or(Exit::Done)
}

/// Reports the failure of one installation of several, under its name.
pub fn failure(name: &str, error: OperationError) -> Exit {
    let is_named = error.to_string().contains(name);
    let error = anyhow::Error::from(error);
    output::failure(&if is_named {
        error
    } else {
        error.context(name.to_owned())
    })
}
