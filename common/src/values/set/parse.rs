//! Parses the text of a flag to assignments: `a.b=c,d[0]={x,y}`.

use serde_json::{Deserializer, Value};

use super::{
    Assignment, Given, MAX_DEPTH, MAX_INDEX, Removal, SetError, Step, changed_number, shown, typed,
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
enum End {
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
pub fn parse(grammar: Grammar, flag: &str) -> Result<Vec<Assignment>, ValuesError> {
    let mut reader = Reader { rest: flag };
    let mut assignments: Vec<Assignment> = Vec::new();
    while !reader.rest.is_empty() || assignments.is_empty() {
        let steps = reader.path(End::Value);
        let steps = steps.map_err(|problem| match assignments.last() {
            Some(before) => ValuesError::Set {
                path: shown(&before.steps),
                problem: SetError::AfterComma,
            },
            None => unreadable(flag, problem),
        })?;
        let given = reader.value(grammar).map_err(|problem| ValuesError::Set {
            path: shown(&steps),
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
pub fn removals(flag: &str) -> Result<Vec<Removal>, ValuesError> {
    let mut reader = Reader { rest: flag };
    let mut removals = Vec::new();
    while !reader.rest.is_empty() || removals.is_empty() {
        let steps = reader.path(End::Path);
        let steps = steps.map_err(|problem| unreadable(flag, problem))?;
        removals.push(Removal { steps });
    }
    Ok(removals)
}

/// Returns the error for a flag that cannot be parsed. `None` means that there is no `=`.
fn unreadable(flag: &str, problem: Option<SetError>) -> ValuesError {
    let path = flag.split('=').next().unwrap_or_default().to_owned();
    match problem {
        Some(problem) => ValuesError::Set { path, problem },
        None => ValuesError::NoValue { path },
    }
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    /// Reads the steps of a path, and consumes its end. The error is `None` if the `=` of a value is missing.
    fn path(&mut self, end: End) -> Result<Vec<Step>, Option<SetError>> {
        let mut steps = Vec::new();
        let mut is_key = true;
        loop {
            let stops = match end {
                End::Value if !is_key => "=.[",
                _ => "=.[,",
            };
            let (text, stop) = self.until(stops)?;
            let is_last = match (end, stop) {
                (End::Value, None | Some(',')) => return Err(None),
                (End::Path, Some('=')) => return Err(Some(SetError::Assigned)),
                (End::Value, Some('=')) | (End::Path, None | Some(',')) => true,
                _ => false,
            };
            match (is_key, text.is_empty()) {
                (true, true) => return Err(Some(SetError::EmptyKey)),
                (true, false) => steps.push(Step::Key(text)),
                (false, true) => {}
                (false, false) => return Err(Some(SetError::AfterIndex)),
            }
            if is_last {
                return Ok(steps);
            }
            is_key = stop == Some('.');
            if stop == Some('[') {
                steps.push(Step::Index(self.index()?));
            }
            // The first key has no dot before it; after a dot, another key is still to come.
            if steps.len() + usize::from(is_key) > MAX_DEPTH + 1 {
                return Err(Some(SetError::TooDeep));
            }
        }
    }

    fn index(&mut self) -> Result<usize, SetError> {
        let (text, stop) = self.until("]")?;
        let index = text.parse().ok().filter(|index| *index <= MAX_INDEX);
        stop.and(index).ok_or(SetError::Index)
    }

    /// Reads a value, and the comma after it.
    fn value(&mut self, grammar: Grammar) -> Result<Given, SetError> {
        if grammar == Grammar::Json {
            return self.json().map(Given::Value);
        }
        let Some(list) = self.rest.strip_prefix('{') else {
            let (text, _) = self.until(",")?;
            return Ok(match grammar {
                Grammar::Typed => Given::Typed(text),
                _ => Given::Value(Value::String(text)),
            });
        };
        self.rest = list;
        let mut items = Vec::new();
        loop {
            let (text, stop) = self.until(",}")?;
            items.push(match grammar {
                Grammar::Typed => typed(&text),
                _ => Value::String(text),
            });
            match stop {
                Some('}') => break,
                Some(_) => {}
                None => return Err(SetError::OpenList),
            }
        }
        self.rest = self.rest.strip_prefix(',').unwrap_or(self.rest);
        Ok(Given::Value(Value::Array(items)))
    }

    /// Reads one JSON value. An empty text is null.
    fn json(&mut self) -> Result<Value, SetError> {
        if self.is_at_end() {
            return Ok(Value::Null);
        }
        let mut values = Deserializer::from_str(self.rest).into_iter::<Value>();
        let Some(Ok(value)) = values.next() else {
            return Err(SetError::Json);
        };
        self.rest = self.rest.get(values.byte_offset()..).unwrap_or_default();
        if changed_number(&value, &mut Vec::new()) {
            return Err(SetError::TooManyDigits);
        }
        self.is_at_end();
        Ok(value)
    }

    /// Skips blanks and a comma. Returns whether the value ends here.
    fn is_at_end(&mut self) -> bool {
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
    fn until(&mut self, stops: &str) -> Result<(String, Option<char>), SetError> {
        let mut text = String::new();
        let mut chars = self.rest.chars();
        while let Some(c) = chars.next() {
            if stops.contains(c) {
                self.rest = chars.as_str();
                return Ok((text, Some(c)));
            }
            text.push(match c {
                '\\' => chars.next().ok_or(SetError::Backslash)?,
                c => c,
            });
        }
        self.rest = "";
        Ok((text, None))
    }
}
