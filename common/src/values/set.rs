//! Values that flags assign, in the grammar of helm's `--set`, with types from the form (semantics 9).

mod parse;
mod removal;

use serde_json::{Map, Number, Value};

use super::{ValuesError, find_changed_number, is_stored_exactly};
use crate::api::catalogue::{FieldType, FormField};
use crate::values::path::ValuePath;
pub use parse::{Grammar, parse_assignments, parse_removals};
pub use removal::{ValueRemoval, remove_values};

/// Maximum index of a list, as in helm.
pub const MAX_INDEX: usize = 65_536;
/// Maximum number of dots and indices in a path. Helm allows the same number of dots.
pub const MAX_DEPTH: usize = 30;

/// A value, with the path to which it is assigned.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    /// The path. Its first step is a key.
    steps: Vec<AssignmentStep>,
    given: AssignedValue,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum AssignmentStep {
    Key(String),
    Index(usize),
}

/// The text after the `=`.
#[derive(Clone, Debug, PartialEq)]
enum AssignedValue {
    /// A text whose type follows from the form's field or, without one, from the spelling.
    Typed(String),
    Value(Value),
}

/// What is wrong with an assignment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AssignmentError {
    /// `a..b`.
    #[error("a key of the path is empty")]
    EmptyKey,
    /// A backslash is not followed by a character.
    #[error("it ends in a backslash: write \\\\ for one, \\, for a comma, \\. for a dot")]
    Backslash,
    /// There are too many dots and indices.
    #[error("the path has more than {MAX_DEPTH} dots and indices")]
    TooDeep,
    /// `a[x]`.
    #[error("an index is a number from 0 to {MAX_INDEX}, as in a[0]")]
    Index,
    /// `a[0]x`.
    #[error("an index must be followed by =, a dot or another index")]
    AfterIndex,
    /// The part after a comma cannot be parsed. The message does not repeat it, because it may be the rest of a password.
    #[error("what follows its comma is not PATH=VALUE; write \\, for a comma in a value")]
    AfterComma,
    /// `a={x,y`.
    #[error("the list has no }} at its end; write \\{{ for a brace in a value")]
    OpenList,
    /// `a=x`, although only a path is expected.
    #[error("give only the path, without = and a value")]
    Assigned,
    /// The value is not JSON, although JSON is expected.
    #[error("the value is not valid JSON")]
    Json,
    /// The API server would change a number.
    #[error("a number of that size loses digits in the API server; write it in quotes")]
    TooManyDigits,
    /// The path has a key below a text, a number or a list.
    #[error("{at} is not a map, so nothing can be set in it")]
    NotAMap {
        /// The path up to that value.
        at: String,
    },
    /// The path has an index of a text, a number or a map.
    #[error("{at} is not a list, so it has no index")]
    NotAList {
        /// The path up to that value.
        at: String,
    },
    /// Indices are far beyond the ends of lists.
    #[error("the indices of these flags leave more than {MAX_INDEX} gaps in lists")]
    Gaps,
}

/// Applies assignments to values, in order. If `form` has a field at a path, the field decides the type of an ambiguous text: `8080` is
/// text for a text field, `1.5` a number for a number field.
///
/// Maps and lists above a path are created, also in the place of null. As in helm, a key below the index of a list replaces an item that is
/// not a map.
///
/// # Errors
/// [`ValuesError::Set`]; then nothing is changed.
pub fn apply_assignments(
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
                path: path_text(&one.steps),
                problem,
            })?;
    }
    *values = changed;
    Ok(())
}

impl Assignment {
    /// Returns the assigned texts. If they are names of files, the caller replaces them with the content of the files.
    pub fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let values = match &mut self.given {
            AssignedValue::Value(Value::Array(items)) => items.as_mut_slice(),
            AssignedValue::Value(one) => std::slice::from_mut(one),
            AssignedValue::Typed(_) => &mut [],
        };
        values.iter_mut().filter_map(|value| match value {
            Value::String(text) => Some(text),
            _ => None,
        })
    }

    /// Returns the field of the form at this path.
    fn field<'a>(&self, form: &'a [FormField]) -> Option<&'a FormField> {
        let keys: Option<Vec<&str>> = self.steps.iter().map(AssignmentStep::key).collect();
        let keys = keys?;
        form.iter().find(|field| {
            ValuePath::parse(&field.internal_name).is_ok_and(|path| {
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
    ) -> Result<(), AssignmentError> {
        let mut at = values;
        let mut is_item = false;
        for (done, step) in self.steps.iter().enumerate() {
            let so_far = || match self.steps.get(..done) {
                Some(way @ [_, ..]) => path_text(way),
                _ => "the whole".to_owned(),
            };
            at = match step {
                AssignmentStep::Key(key) => {
                    if at.is_null() || is_item && !at.is_object() {
                        *at = Value::Object(Map::new());
                    }
                    let Value::Object(map) = at else {
                        return Err(AssignmentError::NotAMap { at: so_far() });
                    };
                    map.entry(key).or_insert(Value::Null)
                }
                AssignmentStep::Index(index) => {
                    if at.is_null() {
                        *at = Value::Array(Vec::new());
                    }
                    let Value::Array(list) = at else {
                        return Err(AssignmentError::NotAList { at: so_far() });
                    };
                    let gap = index.saturating_sub(list.len());
                    *gaps = gaps.checked_sub(gap).ok_or(AssignmentError::Gaps)?;
                    if list.len() <= *index {
                        list.resize(*index + 1, Value::Null);
                    }
                    list.get_mut(*index).ok_or(AssignmentError::Index)?
                }
            };
            is_item = matches!(step, AssignmentStep::Index(_));
        }
        *at = match (&self.given, kind) {
            (AssignedValue::Value(value), _) => value.clone(),
            (AssignedValue::Typed(text), Some(kind)) => parse_for_field(kind, text),
            (AssignedValue::Typed(text), None) => parse_typed(text),
        };
        Ok(())
    }
}

impl AssignmentStep {
    fn key(&self) -> Option<&str> {
        match self {
            Self::Key(key) => Some(key),
            Self::Index(_) => None,
        }
    }
}

/// Returns a path as it is written in a flag.
fn path_text(steps: &[AssignmentStep]) -> String {
    let mut text = String::new();
    for step in steps {
        match step {
            AssignmentStep::Index(index) => text.push_str(&format!("[{index}]")),
            AssignmentStep::Key(key) => {
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

/// Returns arguments for helm's `--set` that make the whole numbers in `value`, at the path `keys`, reach a chart as whole numbers. Helm
/// turns those in a file into floating-point numbers, which a template prints as `1e+06`. Numbers and paths that `--set` cannot express are
/// left out.
#[must_use]
pub fn whole_number_assignments(keys: &[String], value: &Value) -> Vec<String> {
    let mut steps: Vec<AssignmentStep> = keys.iter().cloned().map(AssignmentStep::Key).collect();
    let mut found = Vec::new();
    find_whole_numbers(&mut steps, value, &mut found);
    found
}

fn find_whole_numbers(steps: &mut Vec<AssignmentStep>, value: &Value, found: &mut Vec<String>) {
    let is_refused =
        |step: &AssignmentStep| matches!(step, AssignmentStep::Key(key) if key.is_empty());
    if steps.len() > MAX_DEPTH || steps.last().is_some_and(is_refused) {
        return;
    }
    match value {
        Value::Number(number) => {
            if let Some(number) = number.as_i64() {
                found.push(format!("{}={number}", path_text(steps)));
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate().take(MAX_INDEX) {
                steps.push(AssignmentStep::Index(index));
                find_whole_numbers(steps, item, found);
                steps.pop();
            }
        }
        Value::Object(fields) => {
            for (key, field) in fields {
                steps.push(AssignmentStep::Key(key.clone()));
                find_whole_numbers(steps, field, found);
                steps.pop();
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// Reads a text as helm does: `true`, `false` and `null` in any case, and whole numbers of 64 bits without a leading zero. Everything else
/// is text, including `1.10` and `007`.
fn parse_typed(text: &str) -> Value {
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

/// Reads a text for a field. A text that does not fit the field is read as without one; validation refuses it later.
fn parse_for_field(kind: FieldType, text: &str) -> Value {
    let value = parse_typed(text);
    match kind {
        _ if value.is_null() => value,
        FieldType::Text | FieldType::String | FieldType::TextArea => Value::String(text.to_owned()),
        FieldType::Number if value.is_string() => match text.parse::<Number>() {
            // JSON does not allow 007 as a number.
            Ok(number) if is_stored_exactly(&number) => Value::Number(number),
            _ => value,
        },
        FieldType::Number | FieldType::Boolean => value,
    }
}

#[cfg(test)]
mod tests;
