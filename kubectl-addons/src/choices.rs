//! From flags to what operations take.

use addons_operation::{Choices, Edit, Edits, NewInstallation, Offer, Target};
use anyhow::{Context as _, Result};
use common::values;

use crate::cli::operation::{Accept, Delete, Differences, New, Run, Source, Values};
use crate::usage::Usage;

/// Where entries are chosen from.
pub fn offer(source: &Source) -> Offer {
    match (&source.channel, &source.catalogue) {
        (Some(index), _) => Offer::Indexes(vec![index.clone()]),
        (None, Some(name)) => Offer::Catalogue(name.clone()),
        (None, None) => Offer::Catalogues,
    }
}

/// The add-ons of an installation, which may be new.
///
/// # Errors
/// `--name` with several; a file of values that cannot be read.
pub fn installations(
    addons: &[String],
    new: &New,
    values: &Values,
) -> Result<Vec<NewInstallation>> {
    if new.name.is_some() && addons.len() != 1 {
        return Err(Usage("--name goes with one add-on only".to_owned()).into());
    }
    let edits = edits(values)?;
    let installation = |typed: &String| NewInstallation {
        addon: Target::parse(typed),
        name: new.name.clone(),
        target_namespace: new.target_namespace.clone(),
        core: new.core,
        edits: edits.clone(),
    };
    Ok(addons.iter().map(installation).collect())
}

/// What `-f`, `--set` and `--registry` say.
///
/// # Errors
/// A file that cannot be read or is not a map.
pub fn edits(typed: &Values) -> Result<Edits> {
    let mut edits = Edits {
        values: Vec::new(),
        registry: typed.registry.clone(),
    };
    for path in &typed.files {
        let name = path.to_string_lossy();
        let bytes = std::fs::read(path).with_context(|| format!("--values {name}"))?;
        edits.values.push(Edit::Merge(values::read(&bytes, &name)?));
    }
    edits
        .values
        .extend(typed.set.iter().cloned().map(Edit::Set));
    Ok(edits)
}

/// What is accepted, deleted and recreated.
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

/// How a plan is executed. `define`: our definitions may be installed.
pub fn run(typed: &Run, define: bool) -> addons_operation::Run {
    addons_operation::Run {
        wait: typed.wait,
        timeout: typed.timeout,
        wait_for_lock: !typed.no_wait,
        steal_lock: typed.steal_lock,
        define,
    }
}
