//! Converts flags into the inputs of operations.

mod values;

use addons_operation::{Choices, Edits, Intent, NewInstallation, Offer, VersionedName};
use addons_plan::history::RevisionRequest;
use anyhow::Result;

use crate::cli::operation::{
    AcceptArgs, DeleteArgs, DifferenceArgs, NewInstallationArgs, RunArgs, SourceArgs,
};
use crate::exit::UsageError;
pub use values::{parse_changes, parse_edits};

/// Returns where entries are chosen from.
pub fn parse_offer(source: &SourceArgs) -> Offer {
    match (&source.channel, &source.catalogue) {
        (Some(index), _) => Offer::Indexes(vec![index.clone().into()]),
        (None, Some(name)) => Offer::Catalogue(name.clone()),
        (None, None) => Offer::Catalogues,
    }
}

/// Returns the named add-ons as installations, which may be new.
///
/// # Errors
/// `--name` is combined with several add-ons.
pub fn parse_installations(
    addons: &[String],
    new: &NewInstallationArgs,
    edits: &Edits,
) -> Result<Vec<NewInstallation>> {
    if new.named.name.is_some() && addons.len() != 1 {
        return Err(UsageError("--name can only be used with a single add-on".to_owned()).into());
    }
    let installation = |typed: &String| {
        let addon = VersionedName::parse(typed);
        NewInstallation {
            edits: edits.for_name(&addon.name),
            addon,
            name: new.named.name.clone(),
            target_namespace: new.named.target_namespace.clone(),
            core: new.core,
            replaces: None,
        }
    };
    Ok(addons.iter().map(installation).collect())
}

/// Returns the rollback of the only name to a revision.
///
/// # Errors
/// There are several names, or one with a version.
pub fn parse_rollback(addons: &[String], revision: i64) -> Result<Intent> {
    match addons {
        [name] if !name.contains('@') => Ok(Intent::Rollback {
            installation: name.clone(),
            to: RevisionRequest::Number(revision),
        }),
        _ => Err(UsageError(
            "--revision takes one installation, without a version: the revision has its own"
                .to_owned(),
        )
        .into()),
    }
}

/// Returns what the user accepts, deletes and recreates.
pub fn parse_choices(
    accept: AcceptArgs,
    delete: DeleteArgs,
    differences: &DifferenceArgs,
) -> Choices {
    Choices {
        allow_prune: accept.allow_prune,
        delete: delete.kinds(),
        conflicts: differences.conflicts.map(Into::into),
        recreate: differences.recreate.clone(),
        allow_breakage: accept.allow_crd_breakage,
        migrate_stored_versions: accept.migrate_stored_versions,
        adopt: accept.adopt,
        force_adopt: accept.force_adopt,
        force: accept.force,
        ..Choices::default()
    }
}

/// Returns how a plan is executed. `define` says that the CRDs may be installed.
pub fn parse_run(typed: &RunArgs, define: bool) -> addons_operation::RunOptions {
    addons_operation::RunOptions {
        wait: typed.wait,
        timeout: typed.timeout,
        wait_for_lock: !typed.no_wait_lock,
        steal_lock: typed.steal_lock,
        define,
    }
}
