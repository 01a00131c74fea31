//! Accessors for the installed state of a record.

use super::{AddonInstallation, Installed};

impl AddonInstallation {
    /// Returns what is installed, according to the record.
    #[must_use]
    pub fn installed(&self) -> Option<&Installed> {
        self.status.as_ref()?.installed.as_ref()
    }

    /// Whether the spec is the one last installed. Returns `None` if the record does not say which one that was.
    #[must_use]
    pub fn is_observed(&self) -> Option<bool> {
        let observed = self.status.as_ref()?.observed_generation?;
        Some(self.metadata.generation == Some(observed))
    }
}
