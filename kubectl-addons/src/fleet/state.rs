//! The progress of one of several clusters.

use crate::exit::Exit;
use crate::turn::PlannedCommand;

/// The progress of a cluster.
#[derive(Debug)]
pub enum ClusterState {
    /// It is being planned.
    Planning,
    /// It waits for its wave.
    Planned(PlannedCommand),
    /// Its wave has begun.
    Begun(PlannedCommand),
    /// Its command only showed what it would do.
    Shown,
    /// Its command ended.
    Ended {
        /// How it ended.
        exit: Exit,
        /// Whether there was anything to do.
        was_due: bool,
    },
    /// Its command succeeded, but it was not ready when the next wave should begin.
    NotReady,
}

impl ClusterState {
    /// The exit code of this state.
    pub fn exit_code(&self) -> Exit {
        match self {
            Self::Ended { exit, .. } => *exit,
            Self::NotReady => Exit::TimedOut,
            Self::Planning | Self::Shown | Self::Planned(_) | Self::Begun(_) => Exit::Done,
        }
    }
}
