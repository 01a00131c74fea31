//! `show NAME --values` and `--readme`: prints documents from the package of an add-on.

use addons_operation::documents;
use anyhow::Result;
use common::api::catalogue::Method;
use common::catalogue::Entry;
use common::values;
use serde_json::json;

use crate::cli::Format;
use crate::cli::reading::Show;
use crate::exit::Exit;
use crate::output;
use crate::session::Session;
use crate::usage::Usage;

/// Prints a document, or a note that the package has none.
///
/// # Errors
/// The package cannot be fetched, or values that have to be parsed are not a map.
pub async fn print(session: &Session, args: &Show, entry: &Entry) -> Result<Exit> {
    let format = args.output.format;
    if args.values && format == Format::Name {
        let usage = "--values prints values, which -o name cannot show; leave out -o".to_owned();
        return Err(Usage(usage).into());
    }
    let found = documents::of_entry(session.ctx(), entry).await?;
    let file = if args.values {
        found.values
    } else {
        found.readme
    };
    if file.is_none() {
        output::note(&none(entry, args.values));
    }
    let is_read = matches!(format, Format::Json | Format::Template(_));
    match file {
        Some(file) if is_read => {
            output::value(&values::read(&file.bytes, &file.path)?, format)?;
        }
        None if is_read => output::value(&json!({}), format)?,
        Some(file) => output::bytes(&file.bytes),
        None => {}
    }
    Ok(Exit::Done)
}

/// Says why there is no document.
fn none(entry: &Entry, of_values: bool) -> String {
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
