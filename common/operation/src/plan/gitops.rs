//! Installations that Argo CD or Flux applies from Git: edits that the next sync would undo are refused, unless the caller insists
//! (semantics 12.20).

use addons_plan::choices::Choices;
use addons_plan::gitops::GitOpsOwner;
use common::api::installation::AddonInstallation;

use crate::error::ManagedInGit;
use crate::records::name_of;
use crate::resolve::resolved::Resolved;
use crate::stage::FailedInstallation;

/// Refuses to delete a record that a sync creates again. A record that is already being deleted is not refused.
///
/// # Errors
/// [`ManagedInGit::Created`].
pub(crate) fn check_deletion(record: &AddonInstallation) -> Result<(), ManagedInGit> {
    let owner =
        GitOpsOwner::from_record(record).filter(|_| record.metadata.deletion_timestamp.is_none());
    owner.map_or(Ok(()), |owner| {
        Err(ManagedInGit::Created {
            installation: name_of(record),
            by: owner.by,
        })
    })
}

/// Separates the installations that may be planned from those that are left to Git.
pub(crate) fn separate_git_managed(
    resolved: Vec<Resolved>,
    choices: &Choices,
) -> (Vec<Resolved>, Vec<FailedInstallation>) {
    let mut allowed = Vec::new();
    let mut refused = Vec::new();
    for resolved in resolved {
        match find_refusal(&resolved).filter(|_| !choices.force) {
            Some(error) => refused.push(FailedInstallation {
                name: resolved.name.to_string(),
                error: error.into(),
            }),
            None => allowed.push(resolved),
        }
    }
    (allowed, refused)
}

fn find_refusal(resolved: &Resolved) -> Option<ManagedInGit> {
    if resolved.keeps_spec {
        return None;
    }
    refuse_edits(resolved.existing.as_ref()?, &resolved.edits)
}

/// Returns why a record is left to Git if these fields of its spec are edited.
pub(crate) fn refuse_edits(
    record: &AddonInstallation,
    edits: &[Vec<String>],
) -> Option<ManagedInGit> {
    if edits.is_empty() {
        return None;
    }
    let owner = GitOpsOwner::from_record(record)?;
    let installation = name_of(record);
    let words = |path: &Vec<String>| format!("spec.{}", path.join("."));
    let set: Vec<String> = edits
        .iter()
        .filter(|path| owner.sets(path))
        .map(words)
        .collect();
    let by = owner.by;
    Some(if set.is_empty() {
        ManagedInGit::Unset {
            installation,
            by,
            fields: edits.iter().map(words).collect(),
        }
    } else {
        ManagedInGit::Undone {
            installation,
            by,
            fields: set,
        }
    })
}
