//! `catalogue create NAME --from LOCATION…`: writes the first version of a catalogue.

use std::collections::{BTreeMap, BTreeSet};

use addons_operation::catalogue::scaffold::{self, Scaffold, ScaffoldError, ScaffoldRequest};
use anyhow::{Error, Result, anyhow};
use common::api::names;
use common::catalogue::author::Typed;
use common::image::is_of_this_machine;

use crate::cli::create::CatalogueCreateArgs;
use crate::exit::{Exit, UsageError};
use crate::output;
use crate::session::Session;

/// Prints a catalogue of the named locations, with hashes, versions and images.
///
/// # Errors
/// A location cannot be read, has no version, or cannot be installed.
pub async fn run(session: &Session, args: &CatalogueCreateArgs) -> Result<Exit> {
    if !names::is_object_name(&args.name) {
        let text = format!(
            "{:?} cannot be the name of a catalogue (lower-case letters, digits, - and .)",
            args.name
        );
        return Err(UsageError(text).into());
    }
    let single = [
        ("--version", args.version.is_some()),
        ("--chart", args.chart.is_some()),
        ("--addon", args.addon.is_some()),
    ];
    for (flag, is_set) in single {
        if is_set && args.from.len() > 1 {
            let text = format!("{flag} can only be used with a single --from");
            return Err(UsageError(text).into());
        }
    }
    if let Some(addon) = args.addon.as_deref().filter(|it| !is_addon_name(it)) {
        let text = format!(
            "{addon:?} cannot be the name of an add-on (lower-case letters, digits, - and .)"
        );
        return Err(UsageError(text).into());
    }
    let listed: Vec<Typed> = args.from.iter().flat_map(scaffold::list_packages).collect();
    if args.version.is_some() && listed.len() > 1 {
        let names: Vec<&str> = listed.iter().map(|one| &**one).collect();
        let text = format!(
            "--version can only be used with a single version; these are {}",
            names.join(", ")
        );
        return Err(UsageError(text).into());
    }
    let mut versions = Vec::with_capacity(listed.len());
    for from in &listed {
        let wanted = ScaffoldRequest {
            from,
            chart: args.chart.as_deref(),
            version: args.version.as_deref(),
            plain_http: args.plain_http || is_of_this_machine(registry_host(from)),
        };
        let entry = scaffold::scaffold_entry(session.ctx(), &wanted).await;
        let is_only = listed.len() == 1;
        versions.push(entry.map_err(|error| add_advice(error, is_only))?);
    }
    if args.version.is_none() {
        for addon in scaffold::take_folder_versions(&mut versions) {
            output::note(&format!(
                "{addon}: Chart.yaml has a version of no release, so the folders say which versions these are"
            ));
        }
    }
    check_distinct(&listed, &versions, args.addon.as_deref())?;
    if let Some(addon) = &args.addon {
        versions
            .iter_mut()
            .for_each(|one| one.addon.clone_from(addon));
    }
    output::print_bytes(scaffold::catalogue_text(&args.name, &versions).as_bytes());
    Ok(Exit::Done)
}

/// Whether an add-on of a catalogue can have this name.
fn is_addon_name(name: &str) -> bool {
    name.len() <= 63 && names::is_object_name(name)
}

/// Refuses one name for different add-ons, and two packages for one version.
fn check_distinct(
    listed: &[Typed],
    versions: &[Scaffold],
    addon: Option<&str>,
) -> Result<(), UsageError> {
    let found: BTreeSet<&str> = versions.iter().map(|one| one.addon.as_str()).collect();
    if let (Some(addon), true) = (addon, found.len() > 1) {
        let found: Vec<&str> = found.into_iter().collect();
        return Err(UsageError(format!(
            "--addon {addon} names one add-on, and these are {}",
            found.join(", ")
        )));
    }
    let mut known = BTreeMap::new();
    for (from, one) in listed.iter().zip(versions) {
        let key = (&one.addon, &one.version.version);
        if let Some(other) = known.insert(key, from) {
            return Err(UsageError(format!(
                "{other} and {from} are both {} {}: list one of them",
                key.0, key.1
            )));
        }
    }
    Ok(())
}

/// Adds advice to an error about a missing version.
fn add_advice(error: ScaffoldError, is_only: bool) -> Error {
    match error {
        ScaffoldError::NoVersion { .. } if is_only => anyhow!("{error}; give it with --version"),
        ScaffoldError::NoVersion { .. } => {
            anyhow!("{error}; create a catalogue of this --from alone, and give it with --version")
        }
        error => error.into(),
    }
}

/// Returns the host of a registry. Empty for other locations.
fn registry_host(from: &str) -> &str {
    let path = from.strip_prefix("oci://").unwrap_or_default();
    path.split('/').next().unwrap_or_default()
}
