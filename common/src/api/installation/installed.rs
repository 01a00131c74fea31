//! Accessors for the installed state of a record.

use super::{AddonInstallation, Installed};
use crate::api::catalogue::HealthCheckExpr;

impl AddonInstallation {
    /// Returns what is installed, according to the record.
    #[must_use]
    pub fn installed(&self) -> Option<&Installed> {
        self.status.as_ref()?.installed.as_ref()
    }

    /// Returns the expressions by which the objects of the inventory are judged: those of the entry that the running operation, or else the
    /// last one, applied, whether it succeeded or not (semantics 17.11).
    #[must_use]
    pub fn health_check_exprs(&self) -> &[HealthCheckExpr] {
        let Some(status) = &self.status else {
            return &[];
        };
        let running = status.operation.as_ref();
        let running = running.and_then(|operation| operation.target.as_ref());
        let last = || status.history.first().map(|last| &last.installed);
        let applied = running.or_else(last).or(status.installed.as_ref());
        applied.map_or(&[], |applied| &applied.health_check_exprs)
    }

    /// Whether the spec is the one last installed. Returns `None` if the record does not say which one that was.
    #[must_use]
    pub fn is_observed(&self) -> Option<bool> {
        let observed = self.status.as_ref()?.observed_generation?;
        Some(self.metadata.generation == Some(observed))
    }
}
