//! `catalogue validate LOCATION…`, which needs no cluster.

use addons_advice::doctor::Severity;
use addons_operation::OperationError;
use addons_operation::catalogue::file::check_size;
use addons_operation::catalogue::validate::{self, CatalogueMistake, SourceScope, ValidatedFile};
use addons_sources::url;
use anyhow::Result;
use common::api::catalogue::AddonCatalogue;
use common::catalogue::author::Typed;
use common::manifest::FilePosition;
use serde::Serialize;

use super::objects::{self, format_count};
use crate::cli::OutputFormat;
use crate::cli::reading::CatalogueValidateArgs;
use crate::contained::inline_all;
use crate::exit::Exit;
use crate::output::{self, ItemList};
use crate::session::Session;
use crate::words::hint;

/// A problem or a warning, as it is printed in JSON and YAML.
#[derive(Debug, Serialize)]
struct ProblemRow<'a> {
    severity: Severity,
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
pub async fn run(session: &Session, args: &CatalogueValidateArgs) -> Result<Exit> {
    let sources = match args.fetch {
        true => SourceScope::All,
        false => SourceScope::Local,
    };
    let mut judged = validate::validate_files(session.ctx(), &args.locations, sources).await;
    let mut hints = Vec::with_capacity(judged.len());
    for (typed, file) in args.locations.iter().zip(&mut judged) {
        hints.push(warn_of_refusals(session, typed, file).await);
    }
    match args.output.format {
        OutputFormat::Value(_) => {
            let rows: Vec<ProblemRow<'_>> = judged.iter().flat_map(problem_rows).collect();
            output::print_value(&ItemList { items: &rows }, args.output.format)?;
        }
        OutputFormat::Table | OutputFormat::Wide | OutputFormat::Name => {
            for (file, hints) in judged.iter().zip(&hints) {
                print_problems(file, hints);
            }
        }
    }
    let is_clean = judged.iter().all(|file| file.mistakes.is_empty());
    Ok(if is_clean { Exit::Done } else { Exit::Failed })
}

/// Adds a warning for a valid file that `catalogue add` would refuse. Returns the advice.
async fn warn_of_refusals(
    session: &Session,
    typed: &Typed,
    file: &mut ValidatedFile,
) -> Vec<String> {
    let Ok(location) = url::absolute(typed) else {
        return Vec::new();
    };
    let reach = session.ctx().reach_beside(typed, &location);
    let objects = file.objects.iter().filter(|_| file.mistakes.is_empty());
    for object in objects {
        let mut stored = object.clone();
        let access = session.ctx().access(&reach);
        let refused = inline_all(&mut stored, (typed, &location), &access).await;
        let refused = refused.map(|()| check_size(objects::catalogue_name(object), &stored.spec));
        let error = match refused {
            Err(error) => error,
            Ok(Err(error)) => OperationError::from(error).into(),
            Ok(Ok(())) => continue,
        };
        let message = output::describe_chain(error.as_ref());
        file.warnings.push(CatalogueMistake {
            place: FilePosition {
                file: file.location.clone(),
                line: 0,
                column: 0,
            },
            field: String::new(),
            message: format!("a cluster cannot store it: {message}"),
        });
        return hint::hint_lines(error.as_ref());
    }
    Vec::new()
}

fn problem_rows(file: &ValidatedFile) -> impl Iterator<Item = ProblemRow<'_>> {
    let mistakes = file
        .mistakes
        .iter()
        .map(|it| problem_row(Severity::Error, it));
    let warnings = file
        .warnings
        .iter()
        .map(|it| problem_row(Severity::Warning, it));
    mistakes.chain(warnings)
}

fn problem_row<'a>(severity: Severity, mistake: &'a CatalogueMistake) -> ProblemRow<'a> {
    ProblemRow {
        severity,
        file: &mistake.place.file,
        line: mistake.place.line,
        column: mistake.place.column,
        field: &mistake.field,
        message: &mistake.message,
    }
}

/// Prints the problems of a file. `hints` is the advice for the last warning.
pub(super) fn print_problems(file: &ValidatedFile, hints: &[String]) {
    for warning in &file.warnings {
        output::note(&format!("warning: {}", format_mistake(warning)));
    }
    if !hints.is_empty() {
        output::note(hint::indent_lines(hints).trim_start_matches('\n'));
    }
    for mistake in &file.mistakes {
        output::note(&format!("error: {}", format_mistake(mistake)));
    }
    let found = match file.mistakes.len() {
        0 => "no problems".to_owned(),
        many => format_count(many, "problem"),
    };
    let content = match file.objects.as_slice() {
        [] => String::new(),
        objects => format!(" in {}", count_catalogues(objects)),
    };
    output::note(&format!("{}: {found}{content}", file.location));
}

/// `FILE:LINE:COLUMN: FIELD: MESSAGE`
fn format_mistake(mistake: &CatalogueMistake) -> String {
    let CatalogueMistake {
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
fn count_catalogues(objects: &[AddonCatalogue]) -> String {
    if let [object] = objects {
        return objects::count_content(object);
    }
    let addons = objects.iter().flat_map(|object| &object.spec.addons);
    let versions = addons.clone().map(|addon| addon.versions.len()).sum();
    let (addons, versions) = (
        format_count(addons.count(), "add-on"),
        format_count(versions, "version"),
    );
    let catalogues = format_count(objects.len(), "catalogue");
    format!("{catalogues}, {addons}, {versions}")
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}
