//! Asks on a terminal: for confirmation, and for values that a form requires and no layer has.

use std::io::{BufRead as _, Read as _};

use addons_operation::error::Questions;
use addons_operation::resolve::Answers;
use addons_operation::{Intent, Resolution, Resolver};
use anyhow::{Context as _, Result};
use common::api::catalogue::{FieldType, FormField};
use common::values::form;
use common::values::path::ValuePath;
use serde_json::{Number, Value, json};

use crate::output;
use crate::words::form as words;

/// The longest answer in bytes. A text area takes many lines.
const MAX_ANSWER: usize = 256 << 10;

/// Shows a text and reads a line. Returns `None` at the end of the input.
type AskLine<'a> = dyn FnMut(&str) -> Option<String> + 'a;

/// The user did not agree, or could not be asked. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum ConfirmationError {
    /// There is no terminal to ask on.
    #[error("cannot ask for confirmation without a terminal; to go ahead unasked, add --yes")]
    NoTerminal,
    /// The user gave another answer than `y`.
    #[error("nothing was changed")]
    No,
    /// On one of several clusters, the plan is no longer the one that the user confirmed.
    #[error("the plan differs from the one that was confirmed")]
    Overtaken,
}

/// Asks a question that only `y` confirms.
///
/// # Errors
/// [`ConfirmationError`].
pub fn confirm(question: &str) -> Result<(), ConfirmationError> {
    if !output::can_ask() {
        return Err(ConfirmationError::NoTerminal);
    }
    output::ask(question);
    let mut answer = String::new();
    // An unreadable answer counts as no.
    let _ = std::io::stdin().lock().read_line(&mut answer);
    if matches!(answer.trim(), "y" | "Y" | "yes") {
        Ok(())
    } else {
        Err(ConfirmationError::No)
    }
}

/// Resolves an intent, and asks on a terminal for values that forms require and no layer has (semantics 9). Does not ask if other values
/// are wrong, if there is no terminal, or with `--yes`: then the error names all problems.
///
/// Those of [`Resolver::resolve`], or [`ConfirmationError`] if the input ended. Nothing was changed.
pub async fn resolve_with_prompt(
    resolver: &Resolver<'_>,
    intent: &Intent,
    yes: bool,
) -> Result<Resolution> {
    resolve_with_answers(resolver, intent, yes, &mut Answers::new()).await
}

/// As [`resolve_with_prompt`]; asks nothing that was answered before, and keeps the answers.
pub async fn resolve_with_answers(
    resolver: &Resolver<'_>,
    intent: &Intent,
    yes: bool,
    answers: &mut Answers,
) -> Result<Resolution> {
    loop {
        let resolution = resolver.resolve(intent, answers).await?;
        let mut failed = resolution.failed.iter();
        let Some(questions) = failed
            .find_map(|failed| failed.questions())
            .filter(|questions| {
                !yes && output::can_ask() && !answers.contains_key(&questions.installation)
            })
        else {
            return Ok(resolution);
        };
        let values = ask_questions(questions)?;
        answers.insert(questions.installation.clone(), values);
    }
}

/// Asks for each field, and returns the answers at the paths of the fields.
fn ask_questions(questions: &Questions) -> Result<Value> {
    output::note(&format!(
        "{} {} needs values; Ctrl-C ends this, and nothing is changed",
        questions.installation.name, questions.version
    ));
    let mut values = json!({});
    for field in &questions.fields {
        let value = ask_field(field, &mut |text| {
            output::ask(text);
            read_line()
        })?;
        ValuePath::parse(&field.internal_name)
            .and_then(|path| path.set(&mut values, value))
            .with_context(|| format!("spec.values.{}", field.internal_name))?;
    }
    Ok(values)
}

/// Asks until the answer is a valid value of the field.
fn ask_field(field: &FormField, ask: &mut AskLine<'_>) -> Result<Value, ConfirmationError> {
    let mut question = format_question(field);
    loop {
        let text = match field.r#type {
            FieldType::TextArea => read_lines(&question, ask),
            _ => ask(&question),
        };
        let text = text.ok_or(ConfirmationError::No)?;
        let value = parse_answer(field, &text);
        let allowed = value.and_then(|value| match form::find_refusal(field, &value) {
            Some(reason) => Err(reason),
            None => Ok(value),
        });
        match allowed {
            Ok(value) => return Ok(value),
            Err(reason) => question = format!("  {reason}\n> "),
        }
    }
}

fn format_question(field: &FormField) -> String {
    let name = &field.internal_name;
    let title = match field.display_name.trim() {
        "" => name.clone(),
        title => format!("{title} ({name})"),
    };
    let kind = match field.r#type {
        FieldType::Number => "a number",
        FieldType::Boolean => "true or false",
        FieldType::Text | FieldType::String => "text",
        FieldType::TextArea => "lines of text, an empty one ends them",
    };
    let default = match &field.default {
        Some(default) if !default.is_null() => format!(", default {default}"),
        _ => String::new(),
    };
    let help = field.help_text.as_deref().map(str::trim);
    let help: String = help
        .into_iter()
        .flat_map(str::lines)
        .map(|line| format!("  {line}\n"))
        .collect();
    let allowed = words::describe_allowed(field);
    format!("{title}: {kind}{allowed}{default}\n{help}> ")
}

/// Reads lines up to an empty one, or to the end of the input after the first.
fn read_lines(question: &str, ask: &mut AskLine<'_>) -> Option<String> {
    let mut text = ask(question)?;
    if text.is_empty() {
        return Some(text);
    }
    while let Some(line) = ask("> ").filter(|line| !line.is_empty()) {
        text.push('\n');
        text.push_str(&line);
        if text.len() > MAX_ANSWER {
            break;
        }
    }
    Some(text)
}

/// Parses an answer.
///
/// # Errors
/// Says in a sentence why the answer is not a valid value.
fn parse_answer(field: &FormField, text: &str) -> Result<Value, String> {
    if text.len() > MAX_ANSWER {
        return Err(format!("an answer has {} KiB at most", MAX_ANSWER >> 10));
    }
    let trimmed = text.trim();
    if trimmed.is_empty() {
        let default = field.default.clone();
        return default
            .filter(|default| !default.is_null() && default != "")
            .ok_or_else(|| "a value is required".to_owned());
    }
    match field.r#type {
        FieldType::Text | FieldType::String | FieldType::TextArea => Ok(Value::from(text)),
        FieldType::Number => trimmed
            .parse::<Number>()
            .map(Value::Number)
            .map_err(|_| "a number is expected, as in 3 or 0.5".to_owned()),
        FieldType::Boolean => match trimmed.to_ascii_lowercase().as_str() {
            "true" | "yes" | "y" => Ok(Value::Bool(true)),
            "false" | "no" | "n" => Ok(Value::Bool(false)),
            _ => Err("true or false is expected".to_owned()),
        },
    }
}

/// Reads a line from the terminal, without its line break. `None` at the end of the input or on an error.
fn read_line() -> Option<String> {
    let mut bytes = Vec::new();
    // An unreadable line counts as the end of the input. A line that is too long is detected by its length.
    let limit = MAX_ANSWER as u64 + 2;
    let stdin = std::io::stdin().lock();
    let read = stdin.take(limit).read_until(b'\n', &mut bytes);
    if !matches!(read, Ok(1..)) {
        // The error begins on its own line.
        output::ask("\n");
        return None;
    }
    let text = String::from_utf8_lossy(&bytes);
    Some(text.trim_end_matches(['\n', '\r']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(fields: Value) -> FormField {
        serde_json::from_value(fields).unwrap()
    }

    /// The value that these lines come to, and all that was shown.
    fn asked(of: Value, typed: &[&str]) -> (Option<Value>, Vec<String>) {
        let mut typed = typed.iter();
        let mut shown = Vec::new();
        let value = ask_field(&field(of), &mut |text| {
            shown.push(text.to_owned());
            typed.next().map(|line| (*line).to_owned())
        });
        (value.ok(), shown)
    }

    #[test]
    fn answers_are_values_of_the_field() {
        for (kind, typed, value) in [
            ("text", &["web.example.test"][..], json!("web.example.test")),
            ("string", &["3"], json!("3")),
            ("text", &["", "  ", "a b"], json!("a b")),
            ("number", &["three", "007", "3"], json!(3)),
            ("number", &["1.5 "], json!(1.5)),
            ("number", &["\"3\"", "[1]", "-1e3"], json!(-1000.0)),
            ("boolean", &["maybe", "Yes"], json!(true)),
            ("boolean", &["false"], json!(false)),
            ("text-area", &["", "a", " b", "", "c"], json!("a\n b")),
            // The end of the input ends a text area like an empty line.
            ("text-area", &["a"], json!("a")),
        ] {
            let of = json!({"internalName": "a.b", "type": kind, "required": true});
            assert_eq!(asked(of, typed).0, Some(value), "{kind} {typed:?}");
        }
    }

    #[test]
    fn the_question_names_the_field_and_is_repeated_with_the_reason() {
        let of = json!({
            "internalName": "spec.replicas", "displayName": "Replicas", "type": "number", "required": true,
            "helpText": "How many pods serve.\nOne is enough.\n",
        });
        let (value, shown) = asked(of, &["many", ""]);
        assert_eq!(value, None);
        assert_eq!(
            shown,
            [
                "Replicas (spec.replicas): a number\n  How many pods serve.\n  One is enough.\n> ",
                "  a number is expected, as in 3 or 0.5\n> ",
                "  a value is required\n> ",
            ]
        );
        let of =
            json!({"internalName": "a", "type": "boolean", "default": false, "required": true});
        assert_eq!(
            asked(of, &[""]),
            (
                Some(json!(false)),
                vec!["a: true or false, default false\n> ".to_owned()]
            )
        );
    }

    #[test]
    fn the_question_says_what_is_allowed() {
        let of = json!({"internalName": "size", "enum": ["small", "large"], "default": "small", "required": true});
        let (value, shown) = asked(of, &["huge", "large"]);
        assert_eq!(value, Some(json!("large")));
        assert_eq!(
            shown,
            [
                "size: text, one of small, large, default \"small\"\n> ",
                "  must be one of small, large\n> ",
            ]
        );
        let of = json!({"internalName": "host", "pattern": "^[a-z]+$", "required": true});
        let (value, shown) = asked(of, &["a.b", "ab"]);
        assert_eq!(value, Some(json!("ab")));
        assert_eq!(
            shown,
            [
                "host: text, pattern ^[a-z]+$\n> ",
                "  must match the pattern ^[a-z]+$\n> ",
            ]
        );
    }

    #[test]
    fn an_answer_that_is_too_long_is_none() {
        let of = json!({"internalName": "a", "required": true});
        let long = "x".repeat(MAX_ANSWER + 1);
        let (value, shown) = asked(of.clone(), &[&long, "short"]);
        assert_eq!(value, Some(json!("short")));
        assert_eq!(shown[1], "  an answer has 256 KiB at most\n> ");
    }
}
