//! Values as flags assign them, in the grammar of helm's `--set`, and typed by the form (semantics 9).

mod parse;
mod removal;

use serde_json::{Map, Number, Value};

use super::{ValuesError, changed_number, is_kept};
use crate::api::catalogue::{FieldType, FormField};
use crate::values::path::Path;
pub use parse::{Grammar, parse, removals};
pub use removal::{Removal, remove};

/// Largest index of a list, as helm has it.
pub const MAX_INDEX: usize = 65_536;
/// Most dots and indices of a path; of dots, helm allows as many.
pub const MAX_DEPTH: usize = 30;

/// One value and where it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    /// The first one is a key.
    steps: Vec<Step>,
    given: Given,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Key(String),
    Index(usize),
}

/// What stands behind the `=`.
#[derive(Clone, Debug, PartialEq)]
enum Given {
    /// Text of which the form or, where it has no such field, the spelling decides the type.
    Typed(String),
    Value(Value),
}

/// What is wrong with an assignment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetError {
    /// `a..b`
    #[error("a key of the path is empty")]
    EmptyKey,
    /// A backslash without a character to take as it is.
    #[error("it ends in a backslash: write \\\\ for one, \\, for a comma, \\. for a dot")]
    Backslash,
    /// Too many dots and indices.
    #[error("the path has more than {MAX_DEPTH} dots and indices")]
    TooDeep,
    /// `a[x]`
    #[error("an index is a number from 0 to {MAX_INDEX}, as in a[0]")]
    Index,
    /// `a[0]x`
    #[error("an index must be followed by =, a dot or another index")]
    AfterIndex,
    /// The part after a comma cannot be read. It is not repeated: it may be the rest of a password.
    #[error("what follows its comma is not PATH=VALUE; write \\, for a comma in a value")]
    AfterComma,
    /// `a={x,y`
    #[error("the list has no }} at its end; write \\{{ for a brace in a value")]
    OpenList,
    /// `a=x` where only a path is expected.
    #[error("give only the path, without = and a value")]
    Assigned,
    /// Not JSON where that is expected.
    #[error("the value is not valid JSON")]
    Json,
    /// A number that the API server would change.
    #[error("a number of that size loses digits in the API server; write it in quotes")]
    TooManyDigits,
    /// A key below text, a number or a list.
    #[error("{at} is not a map, so nothing can be set in it")]
    NotAMap {
        /// The path so far.
        at: String,
    },
    /// An index of text, a number or a map.
    #[error("{at} is not a list, so it has no index")]
    NotAList {
        /// The path so far.
        at: String,
    },
    /// Indices far beyond the ends of lists.
    #[error("the indices of these flags leave more than {MAX_INDEX} gaps in lists")]
    Gaps,
}

/// Writes assignments into values in their order. Where `form` has a field at a path, it decides the type of what is spelled in several
/// ways: `8080` is text for a field of text, `1.5` a number for a field of numbers.
///
/// Maps and lists on the way are created, also in place of null. What is below the index of a list replaces what is not a map there, as
/// with helm.
///
/// # Errors
/// [`ValuesError::Set`]; then nothing is changed.
pub fn apply(
    values: &mut Value,
    assignments: &[Assignment],
    form: &[FormField],
) -> Result<(), ValuesError> {
    let mut changed = values.clone();
    let mut gaps = MAX_INDEX;
    for one in assignments {
        let kind = one.field(form).map(|field| field.r#type);
        one.write(&mut changed, kind, &mut gaps)
            .map_err(|problem| ValuesError::Set {
                path: shown(&one.steps),
                problem,
            })?;
    }
    *values = changed;
    Ok(())
}

impl Assignment {
    /// The texts that it assigns, where these are names of files: each is to be replaced by what the file holds.
    pub fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let values = match &mut self.given {
            Given::Value(Value::Array(items)) => items.as_mut_slice(),
            Given::Value(one) => std::slice::from_mut(one),
            Given::Typed(_) => &mut [],
        };
        values.iter_mut().filter_map(|value| match value {
            Value::String(text) => Some(text),
            _ => None,
        })
    }

    /// The field of the form at its path.
    fn field<'a>(&self, form: &'a [FormField]) -> Option<&'a FormField> {
        let keys: Option<Vec<&str>> = self.steps.iter().map(Step::key).collect();
        let keys = keys?;
        form.iter().find(|field| {
            Path::parse(&field.internal_name).is_ok_and(|path| {
                path.keys()
                    .iter()
                    .map(String::as_str)
                    .eq(keys.iter().copied())
            })
        })
    }

    fn write(
        &self,
        values: &mut Value,
        kind: Option<FieldType>,
        gaps: &mut usize,
    ) -> Result<(), SetError> {
        let mut at = values;
        let mut is_item = false;
        for (done, step) in self.steps.iter().enumerate() {
            let so_far = || match self.steps.get(..done) {
                Some(way @ [_, ..]) => shown(way),
                _ => "the whole".to_owned(),
            };
            at = match step {
                Step::Key(key) => {
                    if at.is_null() || is_item && !at.is_object() {
                        *at = Value::Object(Map::new());
                    }
                    let Value::Object(map) = at else {
                        return Err(SetError::NotAMap { at: so_far() });
                    };
                    map.entry(key).or_insert(Value::Null)
                }
                Step::Index(index) => {
                    if at.is_null() {
                        *at = Value::Array(Vec::new());
                    }
                    let Value::Array(list) = at else {
                        return Err(SetError::NotAList { at: so_far() });
                    };
                    let gap = index.saturating_sub(list.len());
                    *gaps = gaps.checked_sub(gap).ok_or(SetError::Gaps)?;
                    if list.len() <= *index {
                        list.resize(*index + 1, Value::Null);
                    }
                    list.get_mut(*index).ok_or(SetError::Index)?
                }
            };
            is_item = matches!(step, Step::Index(_));
        }
        *at = match (&self.given, kind) {
            (Given::Value(value), _) => value.clone(),
            (Given::Typed(text), Some(kind)) => of_field(kind, text),
            (Given::Typed(text), None) => typed(text),
        };
        Ok(())
    }
}

impl Step {
    fn key(&self) -> Option<&str> {
        match self {
            Self::Key(key) => Some(key),
            Self::Index(_) => None,
        }
    }
}

/// A path as it is typed.
fn shown(steps: &[Step]) -> String {
    let mut text = String::new();
    for step in steps {
        match step {
            Step::Index(index) => text.push_str(&format!("[{index}]")),
            Step::Key(key) => {
                if !text.is_empty() {
                    text.push('.');
                }
                for c in key.chars() {
                    if matches!(c, '\\' | '.' | ',' | '=' | '[') {
                        text.push('\\');
                    }
                    text.push(c);
                }
            }
        }
    }
    text
}

/// What helm's `--set` is to be given so that the whole numbers in `value`, at the path `keys`, reach a chart as whole numbers: helm
/// makes floating-point numbers of those in a file, and a template then prints `1e+06`. Numbers and paths that `--set` cannot take
/// are left out.
#[must_use]
pub fn whole_numbers(keys: &[String], value: &Value) -> Vec<String> {
    let mut steps: Vec<Step> = keys.iter().cloned().map(Step::Key).collect();
    let mut found = Vec::new();
    find_whole_numbers(&mut steps, value, &mut found);
    found
}

fn find_whole_numbers(steps: &mut Vec<Step>, value: &Value, found: &mut Vec<String>) {
    let is_refused = |step: &Step| matches!(step, Step::Key(key) if key.is_empty());
    if steps.len() > MAX_DEPTH || steps.last().is_some_and(is_refused) {
        return;
    }
    match value {
        Value::Number(number) => {
            if let Some(number) = number.as_i64() {
                found.push(format!("{}={number}", shown(steps)));
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate().take(MAX_INDEX) {
                steps.push(Step::Index(index));
                find_whole_numbers(steps, item, found);
                steps.pop();
            }
        }
        Value::Object(fields) => {
            for (key, field) in fields {
                steps.push(Step::Key(key.clone()));
                find_whole_numbers(steps, field, found);
                steps.pop();
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// The value of a text as helm reads it: `true`, `false` and `null` in any case, and whole numbers of 64 bits that do not begin with a
/// zero. Everything else is text, also `1.10` and `007`.
fn typed(text: &str) -> Value {
    if text.eq_ignore_ascii_case("true") {
        return Value::Bool(true);
    }
    if text.eq_ignore_ascii_case("false") {
        return Value::Bool(false);
    }
    if text.eq_ignore_ascii_case("null") {
        return Value::Null;
    }
    match text.parse::<i64>() {
        Ok(number) if text == "0" || !text.starts_with('0') => number.into(),
        _ => Value::String(text.to_owned()),
    }
}

/// The value of a text for a field. What does not fit the field is read as elsewhere, and refused where values are judged.
fn of_field(kind: FieldType, text: &str) -> Value {
    let value = typed(text);
    match kind {
        _ if value.is_null() => value,
        FieldType::Text | FieldType::String | FieldType::TextArea => Value::String(text.to_owned()),
        FieldType::Number if value.is_string() => match text.parse::<Number>() {
            // 007 is not a number in JSON.
            Ok(number) if is_kept(&number) => Value::Number(number),
            _ => value,
        },
        FieldType::Number | FieldType::Boolean => value,
    }
}

#[cfg(test)]
mod tests;
