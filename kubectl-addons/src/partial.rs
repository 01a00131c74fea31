//! Commands without names concern all installations, and the failure of one does not stop the others.

use addons_operation::stage::FailedInstallation;
use addons_operation::{Choices, OperationError, Plan, Resolution, Resolver};

use crate::exit::Exit;
use crate::failure;

/// Returns the plan of a command, and the installations that are left out of it. With named installations, nothing is left out: one failure
/// fails the command.
///
/// # Errors
/// Those of [`Resolver::plan`], or an error of a named installation.
pub async fn plan_partially(
    resolver: &Resolver<'_>,
    resolution: Resolution,
    choices: &Choices,
    is_named: bool,
) -> Result<(Plan, Vec<FailedInstallation>), OperationError> {
    if is_named {
        let plan = resolver.plan(resolution.whole()?, choices).await?;
        return Ok((plan.whole()?, Vec::new()));
    }
    let mut plan = resolver.plan(resolution, choices).await?;
    let failed = std::mem::take(&mut plan.failed);
    Ok((plan, failed))
}

/// Reports what was left out, each with its advice. Returns the highest exit code.
pub fn report_failed(failed: Vec<FailedInstallation>) -> Exit {
    let failed = failed.into_iter();
    let exits = failed.map(|FailedInstallation { name, error }| report_failure(&name, error));
    exits.max().unwrap_or(Exit::Done)
}

/// Reports the failure of an installation under its name.
pub fn report_failure(name: &str, error: OperationError) -> Exit {
    let is_named = error.to_string().contains(name);
    let error = anyhow::Error::from(error);
    failure::report_failure(&if is_named {
        error
    } else {
        error.context(name.to_owned())
    })
}
