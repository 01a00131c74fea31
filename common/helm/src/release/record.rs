//! Parses helm's output about a release. Only the fields used here are read, because the rest contains values.

use serde::Deserialize;

use common::entrance;

use super::HelmError;

/// The status of a release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleaseStatus {
    /// Number of the current revision, from 1.
    pub revision: u32,
    /// Its phase.
    pub phase: ReleasePhase,
    /// Helm's description: `Install complete`.
    pub description: String,
}

/// A revision of a release.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ReleaseRevision {
    /// Number, from 1.
    pub revision: u32,
    /// Its phase.
    #[serde(rename = "status")]
    pub phase: ReleasePhase,
    /// `NAME-VERSION`.
    #[serde(default)]
    pub chart: String,
    /// Time of the update, as helm writes it.
    #[serde(default)]
    pub updated: String,
    /// Helm's description.
    #[serde(default)]
    pub description: String,
}

/// Phases of a revision, with helm's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReleasePhase {
    /// The revision is running.
    Deployed,
    /// The release was uninstalled, and its history was kept.
    Uninstalled,
    /// A newer revision is running.
    Superseded,
    /// The revision failed.
    Failed,
    /// The release is being uninstalled.
    Uninstalling,
    /// The revision is being installed, or helm ended during the installation.
    PendingInstall,
    /// The same for an upgrade.
    PendingUpgrade,
    /// The same for a rollback.
    PendingRollback,
    /// Helm does not know the phase.
    #[serde(other)]
    Unknown,
}

#[derive(Deserialize)]
struct StatusOutput {
    version: u32,
    info: StatusInfo,
}

#[derive(Deserialize)]
struct StatusInfo {
    status: ReleasePhase,
    #[serde(default)]
    description: String,
}

/// Parses the output of `helm status --output json`.
pub(super) fn parse_status(text: &str) -> Result<ReleaseStatus, HelmError> {
    let answer: StatusOutput =
        entrance::from_str(text).map_err(|_| HelmError::Answer { verb: "status" })?;
    Ok(ReleaseStatus {
        revision: answer.version,
        phase: answer.info.status,
        description: answer.info.description,
    })
}

/// Parses the output of `helm history --output json`. The oldest revision comes first.
pub(super) fn parse_history(text: &str) -> Result<Vec<ReleaseRevision>, HelmError> {
    let mut history: Vec<ReleaseRevision> =
        entrance::from_str(text).map_err(|_| HelmError::Answer { verb: "history" })?;
    history.sort_by_key(|revision| revision.revision);
    Ok(history)
}
