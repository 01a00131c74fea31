//! The result of reconciling one installation.

use std::time::Duration;

use addons_operation::OperationError;
use common::api::installation::AddonInstallation;
use common::api::names::InstallationName;

use crate::installation::ReconcileOutcome;

/// A report about an installation that is being reconciled.
pub(crate) enum ReconcileReport {
    /// It only waits from now on.
    Waits(InstallationName),
    /// It was reconciled.
    Done(Box<ReconciledInstallation>),
}

/// An installation that was reconciled.
pub(crate) struct ReconciledInstallation {
    pub(crate) name: InstallationName,
    /// The record as it was last read or written; `None` if it was deleted, or if its namespace does not stand for a cluster.
    pub(crate) record: Option<AddonInstallation>,
    pub(crate) is_elsewhere: bool,
    pub(crate) outcome: Result<ReconcileOutcome, OperationError>,
    pub(crate) took: Duration,
}
