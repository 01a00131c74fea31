//! Installations of one command on their way to a plan. The failure of one says nothing of the others.

use crate::error::OperationError;
use crate::resolved::Resolved;
use crate::verdict::Questions;

/// One installation, and how far it got.
#[derive(Debug)]
pub struct Staged<T> {
    /// The installation as it should be.
    pub resolved: Resolved,
    /// How far it got.
    pub stage: Stage<T>,
}

/// How far an installation got.
#[derive(Debug)]
pub enum Stage<T> {
    /// It goes on with this.
    Due(T),
    /// Nothing is due; its live objects were not read.
    UpToDate,
    /// It cannot go on.
    Failed(OperationError),
}

/// An installation that an operation could do nothing for.
#[derive(Debug)]
pub struct Failed {
    /// Its name, or that of the add-on where it has none yet.
    pub name: String,
    /// Why.
    pub error: OperationError,
}

impl Failed {
    /// What could be asked: answers would end the failure.
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
