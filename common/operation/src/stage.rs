//! Installations of one command and their progress. The failure of one does not affect the others.

use crate::error::OperationError;
use crate::resolved::Resolved;
use crate::verdict::Questions;

/// One installation, and how far it got.
#[derive(Debug)]
pub struct Staged<T> {
    /// The wanted installation.
    pub resolved: Resolved,
    /// How far it got.
    pub stage: Stage<T>,
}

/// How far an installation got.
#[derive(Debug)]
pub enum Stage<T> {
    /// It continues with this.
    Due(T),
    /// Nothing is due; its live objects were not read.
    UpToDate,
    /// It failed.
    Failed(OperationError),
}

/// An installation that an operation gave up.
#[derive(Debug)]
pub struct Failed {
    /// Its name, or that of the add-on where it has none yet.
    pub name: String,
    /// Why.
    pub error: OperationError,
}

impl Failed {
    /// The questions whose answers would end the failure.
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

impl<T> Stage<T> {
    pub(crate) fn of(result: Result<Option<T>, OperationError>) -> Self {
        match result {
            Ok(Some(due)) => Self::Due(due),
            Ok(None) => Self::UpToDate,
            Err(error) => Self::Failed(error),
        }
    }
}
