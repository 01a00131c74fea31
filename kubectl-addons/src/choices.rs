//! Converts flags into the inputs of operations.

mod values;

use addons_operation::{Choices, Edits, NewInstallation, Offer, Target};
use anyhow::Result;

use crate::cli::operation::{Accept, Delete, Differences, New, Run, Source};
use crate::usage::Usage;
pub use values::{changes, edits};

/// Returns where entries are chosen from.
pub fn offer(source: &Source) -> Offer {
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
pub fn installations(addons: &[String], new: &New, edits: &Edits) -> Result<Vec<NewInstallation>> {
    if new.named.name.is_some() && addons.len() != 1 {
        return Err(Usage("--name can only be used with a single add-on".to_owned()).into());
    }
    let installation = |typed: &String| {
        let addon = Target::parse(typed);
        NewInstallation {
            edits: edits.of(&addon.name),
            addon,
            name: new.named.name.clone(),
            target_namespace: new.named.target_namespace.clone(),
            core: new.core,
        }
    };
    Ok(addons.iter().map(installation).collect())
}

/// Returns what the user accepts, deletes and recreates.
pub fn choices(accept: Accept, delete: Delete, differences: &Differences) -> Choices {
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
pub fn run(typed: &Run, define: bool) -> addons_operation::Run {
    addons_operation::Run {
        wait: typed.wait,
        timeout: typed.timeout,
        wait_for_lock: !typed.no_wait_lock,
        steal_lock: typed.steal_lock,
        define,
    }
}
