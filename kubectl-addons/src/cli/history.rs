//! Flags of `history` and `rollback`.
#![expect(missing_docs, reason = "a flattened group has no help text of its own")]

use addons_plan::history::RevisionRequest;
use clap::Args;

use super::Listing;
use super::name::Candidates;
use super::operation::{ChangeArgs, DeleteArgs, DifferenceArgs};

/// Flags of `history`.
#[derive(Args, Debug)]
pub struct HistoryArgs {
    /// The installation
    #[arg(value_name = "NAME", value_parser = super::name::addon, add = Candidates::Installations)]
    pub name: String,
    #[command(flatten)]
    pub output: Listing,
}

/// Flags of `rollback`.
#[derive(Args, Debug)]
pub struct RollbackArgs {
    /// The installation
    #[arg(value_name = "NAME", value_parser = super::name::addon, add = Candidates::Installations)]
    pub name: String,
    /// The revision, as listed by history; default: the last successful one before the newest that differs from it
    #[arg(value_name = "REVISION", value_parser = revision, add = Candidates::Revisions)]
    pub revision: Option<i64>,
    /// Roll back to the newest revision that succeeded with this version
    #[arg(long, value_name = "VERSION", conflicts_with = "revision", value_parser = super::name::version, add = Candidates::RevisionVersions)]
    pub to: Option<String>,
    #[command(flatten)]
    pub delete: DeleteArgs,
    #[command(flatten)]
    pub differences: DifferenceArgs,
    #[command(flatten)]
    pub change: ChangeArgs,
}

impl RollbackArgs {
    /// Returns the revision that was asked for.
    #[must_use]
    pub fn request(&self) -> RevisionRequest {
        match (self.revision, &self.to) {
            (Some(number), _) => RevisionRequest::Number(number),
            (None, Some(version)) => RevisionRequest::Version(version.clone()),
            (None, None) => RevisionRequest::Previous,
        }
    }
}

/// Parses the number of a revision.
pub(super) fn revision(typed: &str) -> Result<i64, String> {
    let number = typed.parse().ok().filter(|&number| number >= 1);
    number.ok_or_else(|| "it is the number of a revision, from 1, as history lists them".to_owned())
}
