//! Whether a live object works, in kstatus' words, with the gaps of kstatus closed (research/peers.md 4).

use serde::Serialize;

/// The verdict on one live object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Readiness {
    /// The word.
    pub status: Status,
    /// Why, for people: `1/2 ready`, `available`, `waiting: …`.
    pub message: String,
}

/// kstatus' words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Status {
    /// It works.
    Current,
    /// It is on its way.
    InProgress,
    /// It will not get there by itself.
    Failed,
    /// It is being deleted.
    Terminating,
}
