//! Exit codes, and which error ends with which (product.md 2, semantics 17).

use std::process::ExitCode;

use common::engine::EngineError;
use common::plan::planner::{PlanError, RefusalReason};

use crate::operation::choose::ChooseError;
use crate::operation::verdict::Refused;
use crate::usage::Usage;

/// How the program ends. Of several add-ons the highest of 6, 5, 4, 3, 1 counts; 2 ends the program before any of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Exit {
    /// Done. `diff`: nothing differs.
    Done = 0,
    /// Failed. `diff`: something differs.
    Failed = 1,
    /// The command line, or an answer that was needed, was wrong.
    Usage = 2,
    /// Not ready in time.
    TimedOut = 3,
    /// Conflict with another owner, or the lock is held.
    Conflict = 4,
    /// Does not fit the cluster.
    DoesNotFit = 5,
    /// Denied at admission.
    Denied = 6,
}

impl Exit {
    /// The code of the first error in the chain that has one of its own.
    pub fn of(error: &anyhow::Error) -> Self {
        error.chain().find_map(Self::of_one).unwrap_or(Self::Failed)
    }

    fn of_one(error: &(dyn std::error::Error + 'static)) -> Option<Self> {
        if let Some(error) = error.downcast_ref::<EngineError>() {
            return Some(match error {
                EngineError::Locked { .. } | EngineError::Conflict { .. } => Self::Conflict,
                EngineError::Denied { .. } => Self::Denied,
                _ => Self::Failed,
            });
        }
        if let Some(error) = error.downcast_ref::<ChooseError>() {
            return Some(match error {
                ChooseError::DoesNotFit { .. } => Self::DoesNotFit,
                ChooseError::Unknown { .. } => Self::Failed,
            });
        }
        if let Some(error) = error.downcast_ref::<PlanError>() {
            return Some(match error {
                PlanError::Refused { objects }
                    if objects.iter().any(|object| matches!(object.reason, RefusalReason::Foreign { .. })) =>
                {
                    Self::Conflict
                }
                _ => Self::Failed,
            });
        }
        if error.is::<Refused>() {
            return Some(Self::Denied);
        }
        error.is::<Usage>().then_some(Self::Usage)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
