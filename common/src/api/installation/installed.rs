//! What a record says of what is installed.

use super::{AddonInstallation, Installed};

impl AddonInstallation {
    /// What its record says is installed.
    #[must_use]
    pub fn installed(&self) -> Option<&Installed> {
        self.status.as_ref()?.installed.as_ref()
    }

    /// Whether its spec is the one that was last installed; `None` where its record does not say which one that was.
    #[must_use]
    pub fn is_observed(&self) -> Option<bool> {
        let observed = self.status.as_ref()?.observed_generation?;
        Some(self.metadata.generation == Some(observed))
    }
}
