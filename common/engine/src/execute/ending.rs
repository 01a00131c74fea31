//! Describes for the record how an operation ended.

use common::api::conditions::{ROLLOUT_FAILED, TIMED_OUT, shorten_message};
use common::manifest::key::ObjectKey;

use super::super::report::{Failure, FailureCause, Fate, Report, StepEnd};
use super::super::status::OperationEnding;
use super::super::task::ExecuteOptions;

/// Returns the failure that keeps the record of an uninstallation: `key` cannot be read (semantics 13.6).
pub(super) fn unreachable(key: &ObjectKey) -> Failure {
    let why = "it cannot be read, so it is not known whether it exists; the installation stays recorded, \
               and uninstall --keep forgets it";
    Failure::because(
        key.clone(),
        why.to_owned(),
        FailureCause::Other,
        Fate::Uncertain,
    )
}

/// Returns how the operation ended. The record shows it to other users. The message is shortened: a conflict names every field, and the
/// last status must fit into the record.
pub(super) fn ending(report: &Report, options: &ExecuteOptions) -> OperationEnding {
    let failed = |reason, key: &ObjectKey, message: &str| OperationEnding::Failed {
        reason,
        message: shorten_message(format!("{key}: {message}")),
    };
    match (
        report.failed().next(),
        report.not_ready().next(),
        report.skipped().next(),
    ) {
        (Some(failure), _, _) => {
            let reason = match failure.fate {
                Fate::Applied => ROLLOUT_FAILED,
                Fate::Refused | Fate::Uncertain => "Failed",
            };
            failed(reason, &failure.key, &failure.recorded)
        }
        (_, Some((key, readiness)), _) => failed(TIMED_OUT, key, &readiness.message),
        (_, _, Some((key, why))) => failed("Skipped", key, why),
        (None, None, None) => OperationEnding::Done {
            waited: options.wait && !report.is_unready,
            kept: report
                .objects(|end| matches!(end, StepEnd::Retained))
                .cloned()
                .collect(),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use addons_plan::choices::Choices;
    use common::api::conditions::LONGEST_MESSAGE;

    use super::*;

    #[test]
    fn what_is_recorded_of_a_failure_has_an_end() {
        let options = ExecuteOptions {
            holder: "me".to_owned(),
            wait: true,
            timeout: Duration::ZERO,
            wait_for_lock: true,
            steal_lock: false,
            leave_namespaces: Default::default(),
            choices: Choices::default(),
        };
        let recorded = "\n    data.ä: kubectl-edit".repeat(5_000);
        let report = Report {
            ended: vec![
                Failure {
                    key: ObjectKey {
                        kind: "ConfigMap".to_owned(),
                        name: "a".to_owned(),
                        ..ObjectKey::default()
                    },
                    message: recorded.clone(),
                    recorded,
                    cause: FailureCause::Conflict,
                    fate: Fate::Refused,
                }
                .into(),
            ],
            ..Report::default()
        };
        let OperationEnding::Failed { message, .. } = ending(&report, &options) else {
            panic!("it failed");
        };
        assert_eq!(message.chars().count(), LONGEST_MESSAGE);
        assert!(message.starts_with("ConfigMap a: ") && message.ends_with('…'));
    }
}
