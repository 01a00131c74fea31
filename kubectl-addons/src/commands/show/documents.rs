//! `show NAME --values` and `--readme`: prints documents from the package of an add-on.

use addons_operation::catalogue::documents;
use anyhow::Result;
use common::api::catalogue::Method;
use common::catalogue::CatalogueEntry;
use common::values;
use serde_json::json;

use crate::cli::reading::ShowArgs;
use crate::cli::{OutputFormat, ValueFormat};
use crate::exit::{Exit, UsageError};
use crate::output;
use crate::session::Session;

/// Prints a document, or a note that the package has none.
///
/// # Errors
/// The package cannot be fetched, or values that have to be parsed are not a map.
pub async fn print_document(
    session: &Session,
    args: &ShowArgs,
    entry: &CatalogueEntry,
) -> Result<Exit> {
    let format = args.output.format;
    if args.values && format == OutputFormat::Name {
        let usage = "--values prints values, which -o name cannot show; leave out -o".to_owned();
        return Err(UsageError(usage).into());
    }
    let found = documents::read_documents(session.ctx(), entry).await?;
    let file = if args.values {
        found.values
    } else {
        found.readme
    };
    if file.is_none() {
        output::note(&describe_missing(entry, args.values));
    }
    let is_read = match format {
        // A file that is YAML is printed as it is, with its comments.
        OutputFormat::Value(format) => format != ValueFormat::Yaml,
        OutputFormat::Table | OutputFormat::Wide | OutputFormat::Name => false,
    };
    match file {
        Some(file) if is_read => {
            output::print_value(&values::read(&file.bytes, &file.path)?, format)?;
        }
        None if is_read => output::print_value(&json!({}), format)?,
        Some(file) => output::print_bytes(&file.bytes),
        None => {}
    }
    Ok(Exit::Done)
}

/// Says why there is no document.
fn describe_missing(entry: &CatalogueEntry, of_values: bool) -> String {
    let name = format!("{} {}", entry.addon, entry.version.version);
    let name = name.trim_end();
    match (of_values, entry.version.template.method) {
        (true, Method::Manifest) => format!("{name} is a plain manifest and takes no values"),
        (true, _) => {
            format!("{name} has no default values: there is no values.yaml in its package")
        }
        (false, _) => format!("{name} has no README in its package"),
    }
}
