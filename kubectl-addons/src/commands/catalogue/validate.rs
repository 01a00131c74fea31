//! `catalogue validate LOCATION…`, which needs no cluster.

use addons_operation::validate::{self, Judged, Mistake, Sources};
use anyhow::Result;
use common::api::catalogue::AddonCatalogue;
use serde::Serialize;

use super::count;
use crate::cli::Format;
use crate::cli::reading::CatalogueValidate;
use crate::exit::Exit;
use crate::output::{self, Items};
use crate::session::Session;

/// A problem or a warning, as it is printed in JSON and YAML.
#[derive(Debug, Serialize)]
struct Row<'a> {
    /// `error` or `warning`.
    severity: &'static str,
    /// The location as it was typed.
    file: &'a str,
    /// The line, counted from 1. Absent if the problem concerns the whole file.
    #[serde(skip_serializing_if = "is_zero")]
    line: usize,
    #[serde(skip_serializing_if = "is_zero")]
    column: usize,
    /// The path of the field.
    #[serde(skip_serializing_if = "str::is_empty")]
    field: &'a str,
    message: &'a str,
}

/// Validates every location as `catalogue add` and the webhook would, also against the locations before it, and the sources that its
/// entries refer to. Prints all problems; the exit code is 1 if there are any.
///
/// # Errors
/// None: a location that cannot be read is reported as a problem.
pub async fn run(session: &Session, args: &CatalogueValidate) -> Result<Exit> {
    let sources = match args.fetch {
        true => Sources::All,
        false => Sources::Local,
    };
    let judged = validate::files(session.ctx(), &args.locations, sources).await;
    match args.output.format {
        Format::Json | Format::Yaml | Format::Template(_) => {
            let rows: Vec<Row<'_>> = judged.iter().flat_map(rows).collect();
            output::value(&Items { items: &rows }, args.output.format)?;
        }
        Format::Table | Format::Wide | Format::Name => judged.iter().for_each(print),
    }
    let is_clean = judged.iter().all(|file| file.mistakes.is_empty());
    Ok(if is_clean { Exit::Done } else { Exit::Failed })
}

fn rows(file: &Judged) -> impl Iterator<Item = Row<'_>> {
    let mistakes = file.mistakes.iter().map(|it| row("error", it));
    let warnings = file.warnings.iter().map(|it| row("warning", it));
    mistakes.chain(warnings)
}

fn row<'a>(severity: &'static str, mistake: &'a Mistake) -> Row<'a> {
    Row {
        severity,
        file: &mistake.place.file,
        line: mistake.place.line,
        column: mistake.place.column,
        field: &mistake.field,
        message: &mistake.message,
    }
}

fn print(file: &Judged) {
    for warning in &file.warnings {
        output::note(&format!("warning: {}", line(warning)));
    }
    for mistake in &file.mistakes {
        output::note(&format!("error: {}", line(mistake)));
    }
    let found = match file.mistakes.len() {
        0 => "no problems".to_owned(),
        many => count(many, "problem"),
    };
    let content = match file.objects.as_slice() {
        [] => String::new(),
        objects => format!(" in {}", counts(objects)),
    };
    output::note(&format!("{}: {found}{content}", file.location));
}

/// `FILE:LINE:COLUMN: FIELD: MESSAGE`
fn line(mistake: &Mistake) -> String {
    let Mistake {
        place,
        field,
        message,
    } = mistake;
    match field.as_str() {
        "" => format!("{place}: {message}"),
        field => format!("{place}: {field}: {message}"),
    }
}

/// Counts the contents of all catalogues of a file.
fn counts(objects: &[AddonCatalogue]) -> String {
    if let [object] = objects {
        return super::counts(object);
    }
    let addons = objects.iter().flat_map(|object| &object.spec.addons);
    let versions = addons.clone().map(|addon| addon.versions.len()).sum();
    let (addons, versions) = (count(addons.count(), "add-on"), count(versions, "version"));
    let catalogues = count(objects.len(), "catalogue");
    format!("{catalogues}, {addons}, {versions}")
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}
