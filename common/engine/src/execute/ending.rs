//! How an operation ended, in the words of its record.

use common::api::conditions::ROLLOUT_FAILED;
use common::manifest::key::ObjectKey;

use super::super::report::{Cause, Failure, Fate, Report};
use super::super::status::Ending;
use super::super::task::ExecuteOptions;

/// Why the record of an uninstallation stays.
pub(super) fn unreachable(key: &ObjectKey) -> Failure {
    let why = "it cannot be read, so it is not known whether it exists; the installation stays recorded, \
               and uninstall --keep forgets it";
    Failure {
        key: key.clone(),
        message: why.to_owned(),
        recorded: why.to_owned(),
        cause: Cause::Other,
        fate: Fate::Uncertain,
    }
}

/// How the operation ended, for the record, which others may read.
pub(super) fn ending(report: &Report, options: &ExecuteOptions) -> Ending {
    let failed = |reason, key: &ObjectKey, message: &str| Ending::Failed {
        reason,
        message: format!("{key}: {message}"),
    };
    match (
        report.failed.first(),
        report.not_ready.first(),
        report.skipped.first(),
    ) {
        (Some(failure), _, _) => {
            let reason = match failure.fate {
                Fate::Applied => ROLLOUT_FAILED,
                Fate::Refused | Fate::Uncertain => "Failed",
            };
            failed(reason, &failure.key, &failure.recorded)
        }
        (_, Some((key, readiness)), _) => failed("TimedOut", key, &readiness.message),
        (_, _, Some((key, why))) => failed("Skipped", key, why),
        (None, None, None) => Ending::Done {
            waited: options.wait,
        },
    }
}
