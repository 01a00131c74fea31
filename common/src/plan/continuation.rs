//! How an operation is continued that was interrupted or failed: by the verb that began it, as it was meant.

use crate::api::installation::{AddonInstallation, Installed};

use super::Verb;

/// What a person types next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Continuation {
    /// The directory that it comes from is applied again.
    Sync(String),
    /// The installation is upgraded, or installed after all; also where the record spells a verb that this release does not know.
    Upgrade,
    /// It goes back to the same revision.
    Rollback,
    /// It is taken over in this version; without one, the newest would be recorded.
    Adopt(Option<String>),
    /// It is uninstalled.
    Uninstall,
    /// It is given back.
    Release,
}

impl Continuation {
    /// That of an operation of a record. `verb`: as the record spells it. `target`: what it was to install.
    #[must_use]
    pub fn of(record: &AddonInstallation, verb: &str, target: Option<&Installed>) -> Self {
        let directory = record.spec.addon_ref.directory.as_ref();
        match (Verb::of_record(verb), directory) {
            (Some(Verb::Uninstall), _) => Self::Uninstall,
            (Some(Verb::Release), _) => Self::Release,
            (_, Some(directory)) => Self::Sync(directory.clone()),
            (Some(Verb::Rollback), None) => Self::Rollback,
            (Some(Verb::Adopt), None) if !is_installed(record) => {
                let version = target.map(|target| target.version.clone());
                Self::Adopt(version.filter(|version| !version.is_empty()))
            }
            (Some(Verb::Install | Verb::Upgrade | Verb::Adopt) | None, None) => Self::Upgrade,
        }
    }
}

/// Whether an operation has applied it: then its record was recorded again, and the next upgrade applies what that noted.
fn is_installed(record: &AddonInstallation) -> bool {
    let installed = record.installed();
    installed.is_some_and(|installed| !installed.adopted)
}
