//! Go's text/template with sprig's text functions.
//!
//! text → `lex` → tokens → `parse` → `tree` → `execute` with [`value`]s and [`function`]s → text. Functions, structs and
//! data of a particular tool come from the caller: [`TemplateOptions::functions`], [`value::StructType`].
//!
//! Existing engines are not used because they cannot change dicts (`set`), accept a missing `end`, or overflow the stack. Go's output is
//! the reference: `tests/golden/templates/cases.jsonl` and `functions.jsonl` hold it.
//!
//! Deliberate differences: nesting, steps and sizes are bounded ([`limits`]); a pointer prints what it points to; a text
//! stays UTF-8; lines and columns are counted in characters from 1.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod builtins;
mod error;
mod execute;
pub mod function;
mod lex;
pub mod limits;
mod parse;
pub mod sprig;
mod tree;
pub mod value;

#[cfg(test)]
mod tests;

use std::fmt;

pub use error::{TemplateError, TemplatePosition};

use error::SyntaxProblem;
use execute::Execution;
use function::Function;
use limits::{StopFlag, TemplateLimits};
use parse::{Definitions, ParsedTemplate, parse};
use value::Value;

/// A template file.
#[derive(Clone, Copy, Debug)]
pub struct TemplateFile<'a> {
    /// Its name in messages.
    pub name: &'a str,
    /// Its text.
    pub text: &'a str,
}

/// How templates are rendered, and which functions they can call.
#[derive(Clone, Copy, Debug, Default)]
pub struct TemplateOptions<'a> {
    /// Functions besides Go's own, for instance [`sprig::SPRIG`]. The first function with a name wins; all of them take precedence over
    /// Go's own.
    pub functions: &'a [&'a [Function<'a>]],
    /// Names of functions that do not exist but that users expect, each with advice for the error message.
    pub undefined: &'a [(&'a str, &'a str)],
    /// Text after every file. Trim markers of the files trim it as well.
    pub separator: &'a str,
    /// Whether printing a missing value is an error. Testing one (`if`, `default`) never is.
    pub strict: bool,
    /// The limits of a rendering.
    pub limits: TemplateLimits,
    /// Stops the rendering.
    pub stop: Option<&'a StopFlag>,
}

/// Rendered files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderedTemplates {
    /// The text of all files, each followed by [`TemplateOptions::separator`].
    pub text: String,
    /// The actions that printed `<no value>`, in the order of execution.
    pub warnings: Vec<NoValueWarning>,
    /// Where in `text` the output of each file begins.
    pub starts: Vec<usize>,
}

/// An action that printed `<no value>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoValueWarning {
    /// Its position.
    pub place: TemplatePosition,
    /// The expression that it prints: `.Variables.net`.
    pub path: String,
}

/// Renders the files as if they were one template, each followed by [`TemplateOptions::separator`]: variables of one file are still set in the next
/// one, and a `{{-` at the start of a file trims the blank lines at the end of the previous separator. Nevertheless, each file must be a
/// valid template by itself. If `data` is nil, all its fields are missing.
///
/// # Errors
/// [`TemplateError`], with file, line and column.
pub fn render(
    templates: &[TemplateFile<'_>],
    data: Value,
    options: &TemplateOptions<'_>,
) -> Result<RenderedTemplates, TemplateError> {
    let mut definitions = Definitions::new();
    let mut files: Vec<ParsedTemplate<'_>> = Vec::with_capacity(templates.len());
    for (index, template) in templates.iter().enumerate() {
        let parsed = parse(index, template.text, options, &mut definitions);
        files.push(
            parsed.map_err(|SyntaxProblem { at, message }| TemplateError::Parse {
                place: TemplatePosition::new(template.name, template.text, at),
                problem: message,
            })?,
        );
    }
    let dot = if data.is_nil() { Value::Missing } else { data };
    let mut execution = Execution::new(templates, &definitions, options, dot.clone());
    let mut starts = Vec::with_capacity(files.len());
    for (index, file) in files.iter().enumerate() {
        starts.push(execution.text.len());
        execution
            .execute_file(index, &dot, &file.nodes)
            .map_err(|error| *error)?;
        let next = templates.get(index + 1).map_or("", |next| next.text);
        let separator = trim_separator(options.separator, file.trims, next);
        execution.text.push_str(separator);
    }
    Ok(RenderedTemplates {
        text: execution.text,
        warnings: execution.warnings,
        starts,
    })
}

/// Checks whether a file is a valid template by itself, without rendering it.
///
/// # Errors
/// [`TemplateError::Parse`], with file, line and column.
pub fn check(
    template: TemplateFile<'_>,
    options: &TemplateOptions<'_>,
) -> Result<(), TemplateError> {
    let parsed = parse(0, template.text, options, &mut Definitions::new());
    let parsed = parsed.map(drop);
    parsed.map_err(|SyntaxProblem { at, message }| TemplateError::Parse {
        place: TemplatePosition::new(template.name, template.text, at),
        problem: message,
    })
}

/// Returns the separator without the blanks that the adjacent actions trim.
fn trim_separator<'s>(separator: &'s str, trims: bool, next: &str) -> &'s str {
    let separator = if trims {
        separator.trim_start_matches(lex::SPACES)
    } else {
        separator
    };
    let start = next.trim_start_matches(lex::SPACES).strip_prefix("{{");
    if start.is_some_and(lex::starts_with_left_marker) {
        separator.trim_end_matches(lex::SPACES)
    } else {
        separator
    }
}

impl fmt::Display for NoValueWarning {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, path } = self;
        write!(out, "{place}: {path} has no value and prints as <no value>")
    }
}
