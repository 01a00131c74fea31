//! Installations that Argo CD or Flux applies from Git: edits that the next sync would undo are refused, unless the caller insists
//! (semantics 12.20).

use addons_plan::choices::Choices;
use addons_plan::gitops::Owner;
use common::api::installation::AddonInstallation;

use crate::error::InGit;
use crate::records::name_of;
use crate::resolved::Resolved;
use crate::stage::Failed;

/// Refuses to delete a record that a sync creates again. A record that is already being deleted is not refused.
///
/// # Errors
/// [`InGit::Created`].
pub(crate) fn deletion(record: &AddonInstallation) -> Result<(), InGit> {
    let owner = Owner::of(record).filter(|_| record.metadata.deletion_timestamp.is_none());
    owner.map_or(Ok(()), |owner| {
        Err(InGit::Created {
            installation: name_of(record),
            by: owner.by,
        })
    })
}

/// Separates the installations that may be planned from those that are left to Git.
pub(crate) fn judge(resolved: Vec<Resolved>, choices: &Choices) -> (Vec<Resolved>, Vec<Failed>) {
    let mut allowed = Vec::new();
    let mut refused = Vec::new();
    for resolved in resolved {
        match obstacle(&resolved).filter(|_| !choices.force) {
            Some(error) => refused.push(Failed {
                name: resolved.name.to_string(),
                error: error.into(),
            }),
            None => allowed.push(resolved),
        }
    }
    (allowed, refused)
}

fn obstacle(resolved: &Resolved) -> Option<InGit> {
    if resolved.keeps_spec {
        return None;
    }
    of_edits(resolved.existing.as_ref()?, &resolved.edits)
}

/// Returns why a record is left to Git if these fields of its spec are edited.
pub(crate) fn of_edits(record: &AddonInstallation, edits: &[Vec<String>]) -> Option<InGit> {
    if edits.is_empty() {
        return None;
    }
    let owner = Owner::of(record)?;
    let installation = name_of(record);
    let words = |path: &Vec<String>| format!("spec.{}", path.join("."));
    let set: Vec<String> = edits
        .iter()
        .filter(|path| owner.sets(path))
        .map(words)
        .collect();
    let by = owner.by;
    Some(if set.is_empty() {
        InGit::Unset {
            installation,
            by,
            fields: edits.iter().map(words).collect(),
        }
    } else {
        InGit::Undone {
            installation,
            by,
            fields: set,
        }
    })
}
