//! Where the installations of a command are declared, for the advice in its errors.

use addons_operation::OperationError;

use crate::cli::set::MemberArgs;

/// The file of a set and the flags about its members, which a command that applies it needs.
#[derive(Clone, Debug)]
pub struct SetPlace {
    /// The path of the file.
    pub path: String,
    /// The flags about its members.
    pub members: MemberArgs,
}

/// An error of an installation that a set declares. Its advice names the set, because only the set can be applied differently.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct SetInstallationError {
    /// The set that declares the installation.
    pub set: SetPlace,
    /// The error.
    #[source]
    pub error: OperationError,
}

impl SetPlace {
    /// Adds the set to an error of one of its installations, if the advice depends on it.
    pub fn within(self, error: OperationError) -> anyhow::Error {
        match error {
            OperationError::Downgrade { .. } => SetInstallationError { set: self, error }.into(),
            error => error.into(),
        }
    }
}

/// Adds the set to an error, if a set was typed. See [`SetPlace::within`].
pub fn within(set: Option<SetPlace>, error: OperationError) -> anyhow::Error {
    match set {
        Some(set) => set.within(error),
        None => error.into(),
    }
}
