//! Checks types, bounds, lengths and patterns.

use regex_lite::{Regex, RegexBuilder};
use serde_json::Value;

use super::{SchemaChecker, SchemaFinding};
use crate::text::shorten;
use crate::values::form::is_one_of;

/// Maximum size of a compiled pattern, in bytes.
const PATTERN_LIMIT: usize = 1 << 20;
/// Number of characters of a value that a message repeats.
const SHOWN: usize = 60;
/// Number of characters of a pattern that a message repeats.
const PATTERN_SHOWN: usize = 120;
/// Number of values of an enum that a message lists.
const LISTED: usize = 8;

/// Returns the expected type, or `None` if the type is right or not restricted.
pub(super) fn wrong_type(schema: &Value, value: &Value) -> Option<&'static str> {
    let expected = if super::is_true(schema, "x-kubernetes-int-or-string") {
        "an integer or a string"
    } else {
        match schema.get("type")?.as_str()? {
            "object" => "an object",
            "array" => "a list",
            "string" => "a string",
            "integer" => "an integer",
            "number" => "a number",
            "boolean" => "true or false",
            _ => return None,
        }
    };
    let holds = match expected {
        "an integer or a string" => value.is_string() || is_integer(value),
        "an object" => value.is_object(),
        "a list" => value.is_array(),
        "a string" => value.is_string(),
        "an integer" => is_integer(value),
        "a number" => value.is_number(),
        _ => value.is_boolean(),
    };
    (!holds).then_some(expected)
}

/// Returns the type of a value, for messages.
pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) if is_integer(value) => "an integer",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn is_integer(value: &Value) -> bool {
    let whole = |number: f64| number.fract() == 0.0 && number.abs() < 9.0e15;
    value.is_i64() || value.is_u64() || value.as_f64().is_some_and(whole)
}

impl<'a> SchemaChecker<'a> {
    pub(super) fn check_scalar(&mut self, schema: &'a Value, value: &'a Value) {
        match value {
            Value::String(text) => self.check_text(schema, text),
            Value::Number(number) => {
                if let Some(number) = number.as_f64() {
                    self.check_number(schema, number);
                }
            }
            _ => {}
        }
    }

    pub(super) fn check_enum(&mut self, schema: &Value, value: &Value) {
        let Some(allowed) = schema.get("enum").and_then(Value::as_array) else {
            return;
        };
        if !is_one_of(allowed, value) {
            let more = if allowed.len() > LISTED { ", …" } else { "" };
            let allowed: Vec<String> = allowed.iter().take(LISTED).map(show_value).collect();
            let allowed = allowed.join(", ") + more;
            self.report_problem(format!(
                "must be one of {allowed}, not {}",
                show_value(value)
            ));
        }
    }

    /// Checks `minItems`, `maxItems` and similar bounds.
    pub(super) fn check_count(&mut self, schema: &Value, of: &str, word: &str, count: usize) {
        let bound = |edge: &str| schema.get(format!("{edge}{of}")).and_then(Value::as_u64);
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        if let Some(least) = bound("min").filter(|least| count < *least) {
            self.report_problem(format!("must have {least} {word} at least, not {count}"));
        }
        if let Some(most) = bound("max").filter(|most| count > *most) {
            self.report_problem(format!("must have {most} {word} at most, not {count}"));
        }
    }

    fn check_text(&mut self, schema: &'a Value, text: &str) {
        if schema.get("minLength").is_some() || schema.get("maxLength").is_some() {
            self.check_count(schema, "Length", "characters", text.chars().count());
        }
        let Some(pattern) = schema.get("pattern").and_then(Value::as_str) else {
            return;
        };
        let compiled = self
            .patterns
            .entry(pattern)
            .or_insert_with(|| compile_pattern(pattern));
        match compiled {
            Some(compiled) if compiled.is_match(text) => {}
            Some(_) => {
                let text = show_value(&Value::from(text));
                let pattern = shorten(pattern.to_owned(), PATTERN_SHOWN);
                self.report_problem(format!("must match the pattern {pattern}, unlike {text}"));
            }
            None => {
                let path = &self.path;
                let pattern = shorten(pattern.to_owned(), PATTERN_SHOWN);
                let note = format!("{path}: the pattern {pattern} is left to the API server");
                self.findings.push(SchemaFinding::Note(note));
            }
        }
    }

    fn check_number(&mut self, schema: &Value, number: f64) {
        let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
        if let Some(least) = bound("minimum") {
            let exclusive = super::is_true(schema, "exclusiveMinimum");
            if number < least || (exclusive && number == least) {
                let word = if exclusive { "more than" } else { "at least" };
                self.report_problem(format!("must be {word} {least}, not {number}"));
            }
        }
        if let Some(most) = bound("maximum") {
            let exclusive = super::is_true(schema, "exclusiveMaximum");
            if number > most || (exclusive && number == most) {
                let word = if exclusive { "less than" } else { "at most" };
                self.report_problem(format!("must be {word} {most}, not {number}"));
            }
        }
        let is_int32 = schema.get("format").and_then(Value::as_str) == Some("int32");
        if is_int32 && !(f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&number) {
            self.report_problem(format!("must be a number of 32 bits, not {number}"));
        }
        if let Some(step) = bound("multipleOf").filter(|step| *step > 0.0) {
            let quotient = number / step;
            if (quotient - quotient.round()).abs() > 1e-9 {
                self.report_problem(format!("must be a multiple of {step}, not {number}"));
            }
        }
    }
}

/// Compiles a pattern. The syntax differs slightly from Go's: a pattern that does not compile here is left to the API server.
pub fn compile_pattern(pattern: &str) -> Option<Regex> {
    RegexBuilder::new(pattern)
        .size_limit(PATTERN_LIMIT)
        .build()
        .ok()
}

fn show_value(value: &Value) -> String {
    shorten(value.to_string(), SHOWN)
}
