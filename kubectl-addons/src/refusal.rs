//! Errors that stand for others: what an announced plan already listed, and several failures of one command.

use addons_operation::OperationError;
use common::causes::with_causes;

/// Why an announced plan is not executed. The plan that was printed above lists the objects, so the message only counts them.
#[derive(Debug, thiserror::Error)]
#[error("{}", first_line(.0))]
pub struct AnnouncedRefusal(#[source] OperationError);

impl AnnouncedRefusal {
    /// Wraps the error that a check of an announced plan returns.
    pub fn wrap(error: impl Into<OperationError>) -> anyhow::Error {
        Self(error.into()).into()
    }

    /// Returns the error with all objects, for readers who did not see the plan.
    pub fn whole(&self) -> &(dyn std::error::Error + 'static) {
        &self.0
    }
}

/// Returns the first line of a message, without the colon that introduces the others.
fn first_line(error: &OperationError) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.trim_end_matches(':').to_owned()
}

/// The failures of several installations, of which none is changed.
#[derive(Debug, thiserror::Error)]
#[error("{}", join_errors(.0))]
pub struct FailedTogether(Vec<anyhow::Error>);

impl FailedTogether {
    /// Joins errors.
    pub fn new(errors: Vec<anyhow::Error>) -> Self {
        Self(errors)
    }

    /// Returns the failures, each with its own advice.
    pub fn errors(&self) -> &[anyhow::Error] {
        &self.0
    }
}

fn join_errors(errors: &[anyhow::Error]) -> String {
    let texts: Vec<String> = errors.iter().map(|one| with_causes(one.as_ref())).collect();
    texts.join("\n")
}
