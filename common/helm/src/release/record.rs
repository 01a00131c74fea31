//! What helm answers about a release, as far as we read it: the rest holds values.

use serde::Deserialize;

use common::entrance;

use super::HelmError;

/// How a release is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The revision that this is about, from 1.
    pub revision: u32,
    /// Its phase.
    pub phase: Phase,
    /// Helm's words: `Install complete`.
    pub description: String,
}

/// One revision of a release.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Revision {
    /// From 1.
    pub revision: u32,
    /// Its phase.
    #[serde(rename = "status")]
    pub phase: Phase,
    /// `NAME-VERSION`.
    #[serde(default)]
    pub chart: String,
    /// When, as helm writes it.
    #[serde(default)]
    pub updated: String,
    /// Helm's words.
    #[serde(default)]
    pub description: String,
}

/// Phases of a revision, by helm's names for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// It is what runs.
    Deployed,
    /// It went, and its history was kept.
    Uninstalled,
    /// A newer one runs.
    Superseded,
    /// It failed.
    Failed,
    /// It is going.
    Uninstalling,
    /// It is being installed, or was when its helm went away.
    PendingInstall,
    /// The same of an upgrade.
    PendingUpgrade,
    /// The same of a rollback.
    PendingRollback,
    /// Helm does not know.
    #[serde(other)]
    Unknown,
}

#[derive(Deserialize)]
struct Answer {
    version: u32,
    info: Info,
}

#[derive(Deserialize)]
struct Info {
    status: Phase,
    #[serde(default)]
    description: String,
}

/// Of `helm status --output json`.
pub(super) fn status(text: &str) -> Result<Status, HelmError> {
    let answer: Answer =
        entrance::from_str(text).map_err(|_| HelmError::Answer { verb: "status" })?;
    Ok(Status {
        revision: answer.version,
        phase: answer.info.status,
        description: answer.info.description,
    })
}

/// Of `helm history --output json`, the oldest first.
pub(super) fn history(text: &str) -> Result<Vec<Revision>, HelmError> {
    let mut history: Vec<Revision> =
        entrance::from_str(text).map_err(|_| HelmError::Answer { verb: "history" })?;
    history.sort_by_key(|revision| revision.revision);
    Ok(history)
}
