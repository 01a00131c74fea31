//! Go's text/template as the seeds' templates use it, with sprig's text functions and those of Kubermatic (KKP).
//!
//! text → [`lex`] → tokens → [`parse`] → [`tree`] → [`execute`] with [`value`]s and [`function`]s → text. An engine of our
//! own, because those that exist cannot change dicts (`set`), do not see that an `end` is missing, or overflow the stack
//! (`research/crates.md` §1). What Go answers is the rule, row by row: `tests/golden/templates/cases.jsonl` and
//! `golden/kkp`.
//!
//! Where we depart on purpose: nesting, steps and sizes are bounded ([`limits`]); a pointer prints what it points to; a
//! text stays UTF-8; positions are told in characters from 1.

mod builtins;
mod error;
mod execute;
pub mod function;
mod functions;
pub mod lex;
pub mod limits;
pub mod parse;
mod template_data;
pub mod tree;
pub mod value;

#[cfg(test)]
mod tests;

use std::fmt;

pub use error::{Place, Problem, TemplateError};

use execute::Execution;
use function::FunctionSet;
use limits::Limits;
use parse::{Definitions, Parsed, parse};
use value::Value;

use crate::render::registry::Registry;

/// What stands behind every file (KKP).
pub const SEPARATOR: &str = "\n\n---\n\n";

/// A file of templates.
#[derive(Clone, Copy, Debug)]
pub struct Template<'a> {
    /// What messages call it.
    pub name: &'a str,
    /// Its text.
    pub text: &'a str,
}

/// How templates are rendered.
#[derive(Clone, Debug)]
pub struct Options {
    /// The functions that they have. With [`FunctionSet::Kkp`] the data is a TemplateData document.
    pub functions: FunctionSet,
    /// Whether it is an error to print what has no value. Asking for it (`if`, `default`) never is.
    pub strict: bool,
    /// Instead of the registry of every image: `Image`.
    pub registry: Option<Registry>,
    /// How much they may do.
    pub limits: Limits,
}

/// What came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// The text of all files, each followed by [`SEPARATOR`].
    pub text: String,
    /// What printed `<no value>`, in the order of its first time.
    pub warnings: Vec<Warning>,
    /// Where in `text` the output of each file begins.
    pub starts: Vec<usize>,
}

/// An action that printed `<no value>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Where it stands.
    pub place: Place,
    /// What it prints: `.Variables.net`.
    pub path: String,
}

/// Renders the files as KKP does: as if they were one template, each followed by [`SEPARATOR`]. So a variable of one file
/// is still set in the next, and a `{{-` at the start of a file eats the blank lines after the `---` before it. But each
/// file must be a template by itself.
///
/// # Errors
/// [`TemplateError`], with file, line and column.
pub fn render(
    templates: &[Template<'_>],
    data: &serde_json::Value,
    options: &Options,
) -> Result<Rendered, TemplateError> {
    let mut definitions = Definitions::new();
    let mut files: Vec<Parsed<'_>> = Vec::with_capacity(templates.len());
    for (index, template) in templates.iter().enumerate() {
        let parsed = parse(index, template.text, options.functions, &mut definitions);
        files.push(parsed.map_err(|problem| TemplateError::Parse {
            place: Place::new(template.name, template.text, problem.at),
            problem: problem.message,
        })?);
    }
    let dot = match options.functions {
        FunctionSet::Kkp => template_data::read(data)?,
        FunctionSet::Core | FunctionSet::Sprig => template_data::plain(data)?,
    };
    // No data at all: every field of it is missing, none an error.
    let dot = if dot.is_nil() { Value::Missing } else { dot };
    let mut execution = Execution::new(templates, &definitions, options, dot.clone());
    let mut starts = Vec::with_capacity(files.len());
    for (index, file) in files.iter().enumerate() {
        starts.push(execution.text.len());
        execution
            .file(index, &dot, &file.nodes)
            .map_err(|error| *error)?;
        let next = templates.get(index + 1).map_or("", |next| next.text);
        execution.text.push_str(separator(file.trims, next));
    }
    Ok(Rendered {
        text: execution.text,
        warnings: execution.warnings,
        starts,
    })
}

/// The separator, without the blank lines that the actions beside it trim.
fn separator(trimmed: bool, next: &str) -> &'static str {
    let start = next.trim_start_matches(lex::SPACES).strip_prefix("{{");
    let trims = start.is_some_and(lex::starts_with_left_marker);
    let separator = if trimmed {
        SEPARATOR.trim_start()
    } else {
        SEPARATOR
    };
    if trims {
        separator.trim_end()
    } else {
        separator
    }
}

impl Rendered {
    /// The index of the file that printed byte `at` of the text.
    #[must_use]
    pub fn file_at(&self, at: usize) -> usize {
        let after = self.starts.partition_point(|start| *start <= at);
        after.saturating_sub(1)
    }
}

impl Default for Options {
    /// KKP's functions, `<no value>` with a warning, every image from its own registry.
    fn default() -> Self {
        Self {
            functions: FunctionSet::Kkp,
            strict: false,
            registry: None,
            limits: Limits::default(),
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, path } = self;
        write!(out, "{place}: {path} has no value and prints as <no value>")
    }
}
