//! Parses the text of a flag to assignments: `a.b=c,d[0]={x,y}`.

use serde_json::{Deserializer, Value};

use super::{
    AssignedValue, Assignment, AssignmentError, AssignmentStep, MAX_DEPTH, MAX_INDEX, ValueRemoval,
    find_changed_number, parse_typed, path_text,
};
use crate::values::ValuesError;

/// The kind of value after each `=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grammar {
    /// A text whose type is to be determined: `--set`.
    Typed,
    /// A text that stays text: `--set-string`.
    Text,
    /// JSON: `--set-json`.
    Json,
}

/// The end of a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PathEnd {
    /// The `=` before a value.
    Value,
    /// A comma, or the end of the flag.
    Path,
}

/// Parses assignments, separated by commas. A backslash takes the next character literally. A list of values is written as `{x,y}`.
///
/// Parses like helm, except that input which helm silently drops is an error: an empty key, a backslash at the end, an index without `=`.
///
/// # Errors
/// [`ValuesError::NoValue`] and [`ValuesError::Set`]. Neither contains a value or the text after a comma, which may belong to the value.
pub fn parse_assignments(grammar: Grammar, flag: &str) -> Result<Vec<Assignment>, ValuesError> {
    let mut reader = FlagReader { rest: flag };
    let mut assignments: Vec<Assignment> = Vec::new();
    while !reader.rest.is_empty() || assignments.is_empty() {
        let steps = reader.read_path(PathEnd::Value);
        let steps = steps.map_err(|problem| match assignments.last() {
            Some(before) => ValuesError::Set {
                path: path_text(&before.steps),
                problem: AssignmentError::AfterComma,
            },
            None => unreadable(flag, problem),
        })?;
        let given = reader
            .read_value(grammar)
            .map_err(|problem| ValuesError::Set {
                path: path_text(&steps),
                problem,
            })?;
        assignments.push(Assignment { steps, given });
    }
    Ok(assignments)
}

/// Parses the paths of values to remove, separated by commas. They are written as in an assignment, without `=`.
///
/// # Errors
/// [`ValuesError::Set`], which does not contain the text after a `=`.
pub fn parse_removals(flag: &str) -> Result<Vec<ValueRemoval>, ValuesError> {
    let mut reader = FlagReader { rest: flag };
    let mut removals = Vec::new();
    while !reader.rest.is_empty() || removals.is_empty() {
        let steps = reader.read_path(PathEnd::Path);
        let steps = steps.map_err(|problem| unreadable(flag, problem))?;
        removals.push(ValueRemoval { steps });
    }
    Ok(removals)
}

/// Returns the error for a flag that cannot be parsed. `None` means that there is no `=`.
fn unreadable(flag: &str, problem: Option<AssignmentError>) -> ValuesError {
    let path = flag.split('=').next().unwrap_or_default().to_owned();
    match problem {
        Some(problem) => ValuesError::Set { path, problem },
        None => ValuesError::NoValue { path },
    }
}

struct FlagReader<'a> {
    rest: &'a str,
}

impl FlagReader<'_> {
    /// Reads the steps of a path, and consumes its end. The error is `None` if the `=` of a value is missing.
    fn read_path(&mut self, end: PathEnd) -> Result<Vec<AssignmentStep>, Option<AssignmentError>> {
        let mut steps = Vec::new();
        let mut is_key = true;
        loop {
            let stops = match end {
                PathEnd::Value if !is_key => "=.[",
                _ => "=.[,",
            };
            let (text, stop) = self.read_until(stops)?;
            let is_last = match (end, stop) {
                (PathEnd::Value, None | Some(',')) => return Err(None),
                (PathEnd::Path, Some('=')) => return Err(Some(AssignmentError::Assigned)),
                (PathEnd::Value, Some('=')) | (PathEnd::Path, None | Some(',')) => true,
                _ => false,
            };
            match (is_key, text.is_empty()) {
                (true, true) => return Err(Some(AssignmentError::EmptyKey)),
                (true, false) => steps.push(AssignmentStep::Key(text)),
                (false, true) => {}
                (false, false) => return Err(Some(AssignmentError::AfterIndex)),
            }
            if is_last {
                return Ok(steps);
            }
            is_key = stop == Some('.');
            if stop == Some('[') {
                steps.push(AssignmentStep::Index(self.read_index()?));
            }
            // The first key has no dot before it; after a dot, another key is still to come.
            if steps.len() + usize::from(is_key) > MAX_DEPTH + 1 {
                return Err(Some(AssignmentError::TooDeep));
            }
        }
    }

    fn read_index(&mut self) -> Result<usize, AssignmentError> {
        let (text, stop) = self.read_until("]")?;
        let index = text.parse().ok().filter(|index| *index <= MAX_INDEX);
        stop.and(index).ok_or(AssignmentError::Index)
    }

    /// Reads a value, and the comma after it.
    fn read_value(&mut self, grammar: Grammar) -> Result<AssignedValue, AssignmentError> {
        if grammar == Grammar::Json {
            return self.read_json().map(AssignedValue::Value);
        }
        let Some(list) = self.rest.strip_prefix('{') else {
            let (text, _) = self.read_until(",")?;
            return Ok(match grammar {
                Grammar::Typed => AssignedValue::Typed(text),
                _ => AssignedValue::Value(Value::String(text)),
            });
        };
        self.rest = list;
        let mut items = Vec::new();
        loop {
            let (text, stop) = self.read_until(",}")?;
            items.push(match grammar {
                Grammar::Typed => parse_typed(&text),
                _ => Value::String(text),
            });
            match stop {
                Some('}') => break,
                Some(_) => {}
                None => return Err(AssignmentError::OpenList),
            }
        }
        self.rest = self.rest.strip_prefix(',').unwrap_or(self.rest);
        Ok(AssignedValue::Value(Value::Array(items)))
    }

    /// Reads one JSON value. An empty text is null.
    fn read_json(&mut self) -> Result<Value, AssignmentError> {
        if self.skip_end() {
            return Ok(Value::Null);
        }
        let mut values = Deserializer::from_str(self.rest).into_iter::<Value>();
        let Some(Ok(value)) = values.next() else {
            return Err(AssignmentError::Json);
        };
        self.rest = self.rest.get(values.byte_offset()..).unwrap_or_default();
        if find_changed_number(&value, &mut Vec::new()) {
            return Err(AssignmentError::TooManyDigits);
        }
        self.skip_end();
        Ok(value)
    }

    /// Skips blanks and a comma. Returns whether the value ends here.
    fn skip_end(&mut self) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(',') {
            Some(behind) => {
                self.rest = behind;
                true
            }
            None => self.rest.is_empty(),
        }
    }

    /// Reads the text before one of these characters, and consumes it. Returns the text and the character; `None` at the end of the flag.
    fn read_until(&mut self, stops: &str) -> Result<(String, Option<char>), AssignmentError> {
        let mut text = String::new();
        let mut chars = self.rest.chars();
        while let Some(c) = chars.next() {
            if stops.contains(c) {
                self.rest = chars.as_str();
                return Ok((text, Some(c)));
            }
            text.push(match c {
                '\\' => chars.next().ok_or(AssignmentError::Backslash)?,
                c => c,
            });
        }
        self.rest = "";
        Ok((text, None))
    }
}
