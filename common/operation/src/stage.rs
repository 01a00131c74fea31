//! The stages of the installations of one command. If one fails, the others continue.

use crate::error::{OperationError, Questions};
use crate::resolve::resolved::Resolved;

/// One installation, and its stage.
#[derive(Debug)]
pub struct Staged<T> {
    /// The wanted installation.
    pub resolved: Resolved,
    /// Its stage.
    pub stage: StageResult<T>,
}

/// The stage of an installation.
#[derive(Debug)]
pub enum StageResult<T> {
    /// The installation continues with this result.
    Due(T),
    /// Nothing is due. The live objects were not read.
    UpToDate,
    /// It failed.
    Failed(OperationError),
}

/// An installation that an operation gave up.
#[derive(Debug)]
pub struct FailedInstallation {
    /// The name of the installation, or that of the add-on if the installation has none yet.
    pub name: String,
    /// Why.
    pub error: OperationError,
}

impl FailedInstallation {
    /// Returns the questions whose answers would resolve the failure.
    #[must_use]
    pub fn questions(&self) -> Option<&Questions> {
        match self.error.root() {
            OperationError::Refused(refused) => {
                refused.questions.as_deref().filter(|all| all.are_all)
            }
            _ => None,
        }
    }
}

impl<T> StageResult<T> {
    pub(crate) fn from_result(result: Result<Option<T>, OperationError>) -> Self {
        match result {
            Ok(Some(due)) => Self::Due(due),
            Ok(None) => Self::UpToDate,
            Err(error) => Self::Failed(error),
        }
    }
}
