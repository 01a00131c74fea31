//! `catalogue create NAME --from LOCATION…`: writes the first version of a catalogue.

use addons_operation::catalogue::scaffold::{self, ScaffoldError, ScaffoldRequest};
use anyhow::{Error, Result, anyhow};
use common::api::names;
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
    if args.version.is_some() && args.from.len() > 1 {
        return Err(
            UsageError("--version can only be used with a single --from".to_owned()).into(),
        );
    }
    if args.chart.is_some() && args.from.len() > 1 {
        return Err(UsageError("--chart can only be used with a single --from".to_owned()).into());
    }
    let mut versions = Vec::with_capacity(args.from.len());
    for from in &args.from {
        let wanted = ScaffoldRequest {
            from,
            chart: args.chart.as_deref(),
            version: args.version.as_deref(),
            plain_http: args.plain_http || is_of_this_machine(registry_host(from)),
        };
        let entry = scaffold::scaffold_entry(session.ctx(), &wanted).await;
        let is_only = args.from.len() == 1;
        versions.push(entry.map_err(|error| add_advice(error, is_only))?);
    }
    output::print_bytes(scaffold::catalogue_text(&args.name, &versions).as_bytes());
    Ok(Exit::Done)
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
