//! Sentences about reconciled installations.

use addons_engine::Report;
use addons_engine::changes::WatchFailure;
use addons_loops::{ReconcileCause, ReconcileMessage, ReconcileOutcome};
use addons_operation::error::OutsideWindow;
use addons_operation::health::DriftCounts;
use addons_operation::text::shell_word;
use addons_operation::{OperationError, Plan, name_of};
use common::api::installation::AddonInstallation;
use common::api::names::InstallationName;

use super::{core, hint, plan};
use crate::output;

/// Describes a message in one line, for a condition or an Event.
pub fn describe_message(message: ReconcileMessage<'_>) -> String {
    match message {
        ReconcileMessage::Failed(name, error) => describe_condition(name, error),
        ReconcileMessage::Elsewhere(record, error) => describe_elsewhere(record, error),
        ReconcileMessage::Executed(plan, report) => event_note(plan, report),
        ReconcileMessage::OutsideWindow(outside) => describe_outside_window(outside),
        ReconcileMessage::Drifted(record, counts) => {
            let restore = hint::restore_command(record);
            format!("{}; to restore them: {restore}", describe_drift(counts))
        }
        ReconcileMessage::Cause(cause) => format!("cause: {}", describe_cause(cause)),
        ReconcileMessage::WaitsForRelease(name) => core::describe_waiting_release(name),
    }
}

/// Formats an error and its advice as one line for a condition: its readers see no lines below it, and did not type the command that a bare
/// flag would be added to.
fn describe_condition(name: &InstallationName, error: &OperationError) -> String {
    let ways = hint::hint_lines(error);
    let ways = ways
        .iter()
        .map(|line| format!("; {}", complete_line(name, line)));
    let text = format!(
        "{}{}",
        output::describe_chain(error),
        ways.collect::<String>()
    );
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Says until when a change waits, and how it begins before. The time comes first, because lists show only the beginning.
fn describe_outside_window(outside: &OutsideWindow) -> String {
    let begin = hint::begin_now_command(&outside.installation);
    format!(
        "{}: {}; to begin now: {begin}",
        outside.window, outside.what
    )
}

/// Formats `2 objects edited, 1 missing`.
pub fn describe_drift(counts: DriftCounts) -> String {
    let objects = |count: usize| if count == 1 { "object" } else { "objects" };
    match (counts.edited, counts.missing) {
        (edited, 0) => format!("{edited} {} edited", objects(edited)),
        (0, missing) => format!("{missing} {} missing", objects(missing)),
        (edited, missing) => format!("{edited} {} edited, {missing} missing", objects(edited)),
    }
}

/// Completes a line of advice that has only flags with the upgrade command.
fn complete_line(name: &InstallationName, line: &str) -> String {
    match line.split_once(':') {
        Some((label, flags)) if flags.trim_start().starts_with("--") => {
            let upgrade = hint::command("upgrade", name);
            format!("{label}: {upgrade} {}", flags.trim_start())
        }
        _ => line.to_owned(),
    }
}

/// Says why an index cannot be read here, and names the command for people who can read it.
fn describe_elsewhere(record: &AddonInstallation, error: &OperationError) -> String {
    let text = output::describe_chain(error);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let upgrade = hint::command("upgrade", &name_of(record));
    let index = record.spec.addon_ref.index.as_deref().unwrap_or_default();
    let index = shell_word(index);
    format!("{text}; fix: {upgrade} --channel {index}, where it can be read")
}

/// Formats the first line of a report, for the note of an Event.
fn event_note(executed: &Plan, report: &Report) -> String {
    let all = executed.installations.iter();
    let choices = &executed.choices;
    let text: String = all
        .map(|one| plan::describe_report(one, choices, report, true))
        .collect();
    text.lines().map(str::trim).collect::<Vec<_>>().join("; ")
}

/// Describes who or what caused an installation to be reconciled, for the log of a loop and for Events.
pub fn describe_cause(cause: &ReconcileCause) -> String {
    match cause {
        ReconcileCause::Command => "it was asked for".to_owned(),
        ReconcileCause::Start { .. } => "the reconciler began to lead".to_owned(),
        ReconcileCause::Interval => "the interval has passed".to_owned(),
        ReconcileCause::Retry => "it is tried again".to_owned(),
        ReconcileCause::Window => "it waited for a maintenance window".to_owned(),
        ReconcileCause::Record { writer: None } => "its record changed".to_owned(),
        ReconcileCause::Record {
            writer: Some(writer),
        } => format!("{writer} changed its record"),
        ReconcileCause::Deletion { since, is_released } => {
            let since = since.map(|at| format!(" since {at:.0}"));
            let released = match is_released {
                true => ", released as a core add-on",
                false => "",
            };
            let since = since.unwrap_or_default();
            format!("its record is being deleted{since}{released}")
        }
        ReconcileCause::Status => "another client wrote the status of its record".to_owned(),
        ReconcileCause::Catalogue { name: Some(name) } => format!("catalogue {name} changed"),
        ReconcileCause::Catalogue { name: None } => "catalogues may have changed".to_owned(),
        ReconcileCause::Object {
            kind,
            namespace,
            name,
            is_deleted,
        } => {
            let slash = if namespace.is_empty() { "" } else { "/" };
            let what = if *is_deleted { "deleted" } else { "edited" };
            format!("{namespace}{slash}{kind} {name} was {what}")
        }
        ReconcileCause::Objects { kind } => {
            format!("changes of its objects of kind {kind} may have been missed")
        }
        ReconcileCause::Kubeconfig {
            secret: Some(secret),
        } => format!("Secret {secret} with the kubeconfig changed"),
        ReconcileCause::Kubeconfig { secret: None } => {
            "Secrets with kubeconfigs may have changed".to_owned()
        }
    }
}

/// Says that objects cannot be watched, and what follows.
pub fn describe_unwatched(what: &str, failure: &WatchFailure) -> String {
    let next = match failure.is_forbidden {
        true => "changes are noticed at the interval only",
        false => "trying again",
    };
    format!("{what} cannot be watched, {next}: {}", failure.why)
}

/// Describes an outcome for the log of a loop. `None` if nothing happened.
pub fn describe_news(name: &InstallationName, of: &ReconcileOutcome) -> Option<String> {
    match of {
        ReconcileOutcome::Executed(..) => Some(describe_outcome(name, of).trim_end().to_owned()),
        ReconcileOutcome::Failed(error) => {
            Some(format!("{name}  {}", describe_condition(name, error)))
        }
        ReconcileOutcome::Lost(error) => {
            Some(format!("{name}  {}", describe_condition(name, error)))
        }
        ReconcileOutcome::LetGo => Some(describe_outcome(name, of)),
        _ => None,
    }
}

/// Describes an outcome in a line.
pub fn describe_outcome(name: &InstallationName, outcome: &ReconcileOutcome) -> String {
    match outcome {
        ReconcileOutcome::UpToDate => format!("{name}  up to date"),
        ReconcileOutcome::Drifted(counts) => format!(
            "{name}  up to date, but {}: not restored because of reconcile: Once",
            describe_drift(*counts)
        ),
        ReconcileOutcome::OutsideWindow(outside) => {
            format!("{name}  waits {}", describe_outside_window(outside))
        }
        ReconcileOutcome::Suspended => format!("{name}  suspended"),
        ReconcileOutcome::OfDirectory => {
            format!("{name}  comes from a directory, and is left alone")
        }
        ReconcileOutcome::Elsewhere(message) => format!("{name}  is managed elsewhere: {message}"),
        ReconcileOutcome::Terminating => format!("{name}  is being deleted by another client"),
        ReconcileOutcome::Waits => format!(
            "{name}  waits: its catalogue has other content, which reaches this cluster with the core set"
        ),
        ReconcileOutcome::Executed(executed, report) => {
            let (reports, choices) = (executed.installations.iter(), &executed.choices);
            reports
                .map(|one| plan::describe_report(one, choices, report, true))
                .collect()
        }
        ReconcileOutcome::LetGo => {
            format!("{name}  deleted here; its objects stay in the other cluster")
        }
        ReconcileOutcome::Lost(error) => format!("{name}  {error}"),
        ReconcileOutcome::Failed(error) => format!("{name}  {error}"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use addons_plan::gitops::{GitOpsReconciler, LiveReconciler};
    use addons_plan::planner::{ObjectRefusal, PlanError, RefusalReason};
    use common::manifest::key::ObjectKey;
    use common::values::ValuesError;

    use super::*;
    use crate::cli;

    /// Every way out of a condition that names this plugin can be typed as it stands there.
    #[test]
    fn the_commands_of_conditions_are_whole() {
        let name = InstallationName {
            namespace: "shop".to_owned(),
            name: "till".to_owned(),
        };
        let refused = |reason| PlanError::Refused {
            objects: vec![ObjectRefusal {
                key: ObjectKey {
                    kind: "ConfigMap".to_owned(),
                    name: "a".to_owned(),
                    ..ObjectKey::default()
                },
                reason,
            }],
        };
        let labels = [("argocd.argoproj.io/instance".to_owned(), "shop".to_owned())].into();
        let named = GitOpsReconciler::from_marks(&labels, &BTreeMap::new(), []);
        let by = LiveReconciler {
            reconciler: named.into_iter().next().unwrap(),
            namespace: Some("argocd".to_owned()),
            is_seen: true,
        };
        let no_value = ValuesError::NoValue {
            path: "host".to_owned(),
        };
        for (error, expected) in [
            (
                refused(RefusalReason::Foreign { owner: None }).into(),
                "; accept: kubectl addons upgrade till -n shop --adopt, which takes over",
            ),
            (
                refused(RefusalReason::Reconciled { by: Box::new(by) }).into(),
                "; accept: kubectl addons upgrade till -n shop --adopt --force-adopt, once",
            ),
            (
                OperationError::from(no_value),
                "; fix: kubectl addons upgrade till -n shop --set host=VALUE",
            ),
            (
                OperationError::NoKubernetesVersion,
                "; fix: add --k8s VERSION",
            ),
        ] {
            let text = describe_condition(&name, &error);
            assert!(text.contains(expected), "{text}");
            let commands = text.split("kubectl addons ").skip(1);
            for command in commands {
                let end = command.find([',', ';']).unwrap_or(command.len());
                let words = command[..end].split_whitespace();
                let words = std::iter::once("kubectl-addons").chain(words);
                let words: Vec<_> = words.map(Into::into).collect();
                assert!(cli::parse(&words).is_ok(), "{command}");
            }
        }
    }
}
