//! Exit codes, the errors and reports that end with them (semantics 17.5), and the end of the program.

use std::process::{self, ExitCode};

use addons_airgap::AirgapError;
use addons_distribution::DistributionError;
use addons_engine::{EngineError, Report};
use addons_operation::OperationError;
use addons_operation::error::{Category, ErrorKind, VerdictRefusal};
use addons_operation::resolve::choose::ChooseError;
use addons_plan::refusal::FailureCause;
use addons_sources::scratch;
use serde::Serialize;

use crate::refusal::FailedTogether;

/// How the program ends. With several add-ons, the highest of 6, 5, 4, 3, 1 counts. 2 ends the program before any of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
#[repr(u8)]
pub enum Exit {
    /// Done. For `diff`: nothing differs.
    Done = 0,
    /// Failed. For `diff`: something differs.
    Failed = 1,
    /// The command line, or a required answer, was wrong.
    Usage = 2,
    /// Not ready in time.
    TimedOut = 3,
    /// Conflict with another owner, or the lock is held.
    Conflict = 4,
    /// Does not fit the cluster.
    DoesNotFit = 5,
    /// Denied at admission.
    Denied = 6,
    /// Ctrl-C, with the code that shells use.
    Interrupted = 130,
}

impl Exit {
    /// Returns the code of the first error in the chain that has its own code, or else [`Exit::Failed`].
    pub fn from_error(error: &anyhow::Error) -> Self {
        if let Some(together) = error.downcast_ref::<FailedTogether>() {
            let codes = together.errors().iter().map(Self::from_error);
            return codes.max().unwrap_or(Self::Failed);
        }
        error
            .chain()
            .find_map(Self::code_of_cause)
            .unwrap_or(Self::Failed)
    }

    fn code_of_cause(error: &(dyn std::error::Error + 'static)) -> Option<Self> {
        if let Some(AirgapError::Operation(error)) = error.downcast_ref() {
            Self::from_operation(error)
        } else if let Some(error) = error.downcast_ref::<DistributionError>() {
            error.category().map(Self::from)
        } else if let Some(error) = error.downcast_ref::<OperationError>() {
            Self::from_operation(error)
        } else if let Some(error) = error.downcast_ref::<EngineError>() {
            Self::from_kind(error.into())
        } else if let Some(error) = error.downcast_ref::<ChooseError>() {
            Self::from_kind(error.into())
        } else if error.is::<VerdictRefusal>() {
            Some(Self::Denied)
        } else if error.is::<UsageError>() {
            Some(Self::Usage)
        } else {
            None
        }
    }

    /// Returns the code of an error of an operation; `None` if its causes decide.
    pub fn from_operation(error: &OperationError) -> Option<Self> {
        Self::from_kind(error.kind())
    }

    fn from_kind(kind: ErrorKind) -> Option<Self> {
        kind.category.map(Self::from)
    }

    /// Returns the code of a refusal, or of an object that failed.
    pub fn from_cause(cause: FailureCause) -> Self {
        Self::from(Category::from(cause))
    }
}

impl From<Category> for Exit {
    fn from(category: Category) -> Self {
        match category {
            Category::Failed => Self::Failed,
            Category::Usage => Self::Usage,
            Category::TimedOut => Self::TimedOut,
            Category::Conflict => Self::Conflict,
            Category::DoesNotFit => Self::DoesNotFit,
            Category::Denied => Self::Denied,
            Category::Interrupted => Self::Interrupted,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Returns the highest exit code of the objects of an installation (semantics 17.5).
pub fn exit_of_report(report: &Report) -> Exit {
    exit_with_skipped(
        exit_without_skipped(report),
        report.skipped().next().is_some(),
    )
}

/// Returns the highest exit code of the objects except skipped ones. See [`exit_with_skipped`].
pub fn exit_without_skipped(report: &Report) -> Exit {
    let not_ready = report.not_ready().map(|_| Exit::TimedOut);
    let failed = report
        .failed()
        .map(|failure| Exit::from_cause(failure.cause));
    not_ready.chain(failed).max().unwrap_or(Exit::Done)
}

/// Adds skipped objects to the exit code: they were skipped because of a failure, perhaps in another add-on, or else because of a timeout.
pub fn exit_with_skipped(worst: Exit, skipped: bool) -> Exit {
    if worst == Exit::Done && skipped {
        Exit::TimedOut
    } else {
        worst
    }
}

/// Ends the program at once, and removes its temporary folders.
pub fn exit(exit: Exit) -> ! {
    scratch::remove_all();
    process::exit(exit as i32)
}

/// A mistake in how the program was called that clap does not detect, with one sentence that says what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

#[cfg(test)]
mod tests {
    use addons_engine::{EndedStep, Failure, Fate, StepEnd};
    use addons_operation::execute::interruption::Interrupted;
    use addons_plan::readiness::{Readiness, ReadinessStatus};
    use anyhow::anyhow;
    use common::manifest::key::ObjectKey;

    use super::*;

    #[test]
    fn the_code_is_that_of_the_first_error_that_has_one() {
        let denied = EngineError::Denied {
            object: "ConfigMap a".into(),
            message: "no".into(),
        };
        let conflict = EngineError::Api {
            what: "ConfigMap a".into(),
            message: "the object has been modified".into(),
            code: 409,
        };
        let misfit = ChooseError::DoesNotFit {
            name: "a".into(),
            details: String::new(),
        };
        for (error, code) in [
            (anyhow!("anything"), Exit::Failed),
            (
                anyhow::Error::from(denied).context("while adding"),
                Exit::Denied,
            ),
            (conflict.into(), Exit::Conflict),
            (misfit.into(), Exit::DoesNotFit),
            (EngineError::NotInitialised.into(), Exit::Failed),
            (UsageError("wrong".into()).into(), Exit::Usage),
            (OperationError::from(Interrupted).into(), Exit::Interrupted),
        ] {
            assert_eq!(Exit::from_error(&error), code, "{error}");
        }
    }

    #[test]
    fn the_highest_code_counts() {
        let report = |causes: &[FailureCause], is_late: bool| Report {
            ended: causes
                .iter()
                .map(|cause| Failure {
                    key: ObjectKey::default(),
                    message: String::new(),
                    recorded: String::new(),
                    fate: Fate::Refused,
                    cause: *cause,
                })
                .map(EndedStep::from)
                .chain(is_late.then(|| EndedStep {
                    key: ObjectKey::default(),
                    end: StepEnd::NotReady(Readiness {
                        status: ReadinessStatus::InProgress,
                        message: String::new(),
                    }),
                }))
                .collect(),
            ..Report::default()
        };
        for (causes, is_late, exit) in [
            (&[][..], false, Exit::Done),
            (&[FailureCause::Other], false, Exit::Failed),
            (&[FailureCause::Other], true, Exit::TimedOut),
            (
                &[FailureCause::Other, FailureCause::Conflict],
                true,
                Exit::Conflict,
            ),
            (
                &[FailureCause::Denied, FailureCause::Conflict],
                true,
                Exit::Denied,
            ),
        ] {
            assert_eq!(
                exit_without_skipped(&report(causes, is_late)),
                exit,
                "{causes:?}"
            );
        }
        let skipped = Report {
            ended: vec![EndedStep {
                key: ObjectKey::default(),
                end: StepEnd::Skipped("timed out".to_owned()),
            }],
            ..Report::default()
        };
        assert_eq!(exit_without_skipped(&skipped), Exit::Done);
        for (worst, skipped, exit) in [
            (Exit::Done, false, Exit::Done),
            (Exit::Done, true, Exit::TimedOut),
            (Exit::Failed, true, Exit::Failed),
            (Exit::Conflict, true, Exit::Conflict),
        ] {
            assert_eq!(exit_with_skipped(worst, skipped), exit, "{worst:?}");
        }
    }
}
