//! JSON, as Go's encoding/json writes and reads it.

use super::{ITEM, reserve_items};
use crate::function::{Arguments, Function, FunctionContext, FunctionError, FunctionResult};
use crate::value::Type::{Any, Text};
use crate::value::{DecodedJson, MAX_DEPTH, MAX_TEXT, Value};

pub(super) const JSON: &[Function<'static>] = &[
    Function::new("fromJson", &[Text], &|ctx, args| {
        // Invalid JSON gives nil.
        Ok(parse_json(ctx, args.text(0)?)?.unwrap_or(Value::Nil))
    }),
    Function::new("mustFromJson", &[Text], &|ctx, args| {
        parse_json(ctx, args.text(0)?)?.map_err(|error| FunctionError::new(error.to_string()))
    }),
    Function::new("toJson", &[Any], &|ctx, args| {
        Ok(write_argument(ctx, args, JsonStyle::Compact)?.unwrap_or_else(|_| Value::text("")))
    }),
    Function::new("mustToJson", &[Any], &|ctx, args| {
        write_argument(ctx, args, JsonStyle::Compact)?
    }),
    Function::new("toPrettyJson", &[Any], &|ctx, args| {
        Ok(write_argument(ctx, args, JsonStyle::Pretty)?.unwrap_or_else(|_| Value::text("")))
    }),
    Function::new("mustToPrettyJson", &[Any], &|ctx, args| {
        write_argument(ctx, args, JsonStyle::Pretty)?
    }),
    Function::new("toRawJson", &[Any], &|ctx, args| {
        write_argument(ctx, args, JsonStyle::Raw)?
    })
    .with_aliases(&["mustToRawJson"]),
];

#[derive(Clone, Copy, PartialEq)]
enum JsonStyle {
    /// `<`, `>` and `&` are escaped.
    Compact,
    /// Like `Compact`, but over several lines.
    Pretty,
    /// No character is escaped for HTML.
    Raw,
}

/// The inner error is one that Go reports as well; the outer error is a limit of this crate.
type LimitedResult = Result<FunctionResult, FunctionError>;

fn parse_json(ctx: &mut FunctionContext, text: &str) -> LimitedResult {
    let values = text
        .bytes()
        .filter(|byte| matches!(byte, b',' | b'[' | b'{' | b':'));
    reserve_items(ctx, values.count() + 1, 2 * ITEM)?;
    ctx.reserve(text.len())?;
    // serde_json reads at most 128 levels of nesting.
    match serde_json::from_str(text) {
        Ok(DecodedJson(value)) => Ok(Ok(value)),
        Err(error) => match error.to_string() {
            message if message.starts_with("recursion limit") => Err(FunctionError::too_deep()),
            message => Ok(Err(message.into())),
        },
    }
}

fn write_argument(
    ctx: &mut FunctionContext,
    args: Arguments<'_>,
    style: JsonStyle,
) -> LimitedResult {
    let (written, length) = write_json(args.value(0), style)?;
    // Reserved even if a value at the end cannot be represented in JSON.
    ctx.reserve(length)?;
    Ok(written.map(Value::text))
}

/// Go's `json.Marshal`: compact, with `<`, `>` and `&` escaped.
///
/// # Errors
/// The value cannot be represented in JSON, or is nested too deeply.
pub fn to_json(value: &Value) -> Result<String, FunctionError> {
    write_json(value, JsonStyle::Compact)?.0
}

/// Returns the text, and the number of bytes that were written until a value could not be represented in JSON.
fn write_json(
    value: &Value,
    style: JsonStyle,
) -> Result<(Result<String, FunctionError>, usize), FunctionError> {
    let mut writer = JsonWriter {
        out: String::new(),
        style,
        depth: 0,
        not_json: None,
    };
    writer.write_value(value)?;
    let length = writer.out.len();
    let written = match writer.not_json {
        Some(value) => Err(format!("JSON has no {value}").into()),
        None => Ok(writer.out),
    };
    Ok((written, length))
}

struct JsonWriter {
    out: String,
    style: JsonStyle,
    depth: usize,
    /// The last value that cannot be represented in JSON: a NaN or a complex number.
    not_json: Option<String>,
}

impl JsonWriter {
    fn write_value(&mut self, value: &Value) -> Result<(), FunctionError> {
        if self.depth > MAX_DEPTH {
            return Err(FunctionError::too_deep());
        }
        if self.out.len() > MAX_TEXT {
            return Err(FunctionError::too_long());
        }
        match value.follow() {
            Value::Missing | Value::Nil => self.out.push_str("null"),
            Value::Float(number) if number.is_finite() => self.out.push_str(&format_float(*number)),
            number @ (Value::Bool(_)
            | Value::Int(_)
            | Value::Int64(_)
            | Value::Uint64(_)
            | Value::Byte(_)) => number.print(&mut self.out)?,
            Value::Text(text) => self.write_text(text),
            Value::Version(version) => self.write_text(&version.to_string()),
            Value::List(list) => self.write_nested('[', ']', list.iter(), Self::write_value)?,
            Value::Dict(dict) => {
                self.write_nested('{', '}', dict.entries(), |writer, (key, value)| {
                    writer.write_field(&key, &value)
                })?;
            }
            Value::Record(record) => {
                self.write_nested('{', '}', record.fields(), |writer, (key, value)| {
                    writer.write_field(key, value)
                })?;
            }
            other @ (Value::Float(_) | Value::Complex(..) | Value::Pointer(_)) => {
                self.not_json = Some(other.to_text()?);
            }
        }
        Ok(())
    }

    fn write_nested<T>(
        &mut self,
        open: char,
        close: char,
        items: impl IntoIterator<Item = T>,
        write: impl Fn(&mut Self, T) -> Result<(), FunctionError>,
    ) -> Result<(), FunctionError> {
        self.out.push(open);
        self.depth += 1;
        let mut is_empty = true;
        for item in items {
            if !is_empty {
                self.out.push(',');
            }
            is_empty = false;
            self.write_line_break();
            write(self, item)?;
        }
        self.depth -= 1;
        if !is_empty {
            self.write_line_break();
        }
        self.out.push(close);
        Ok(())
    }

    fn write_field(&mut self, key: &str, value: &Value) -> Result<(), FunctionError> {
        self.write_text(key);
        self.out.push(':');
        if self.style == JsonStyle::Pretty {
            self.out.push(' ');
        }
        self.write_value(value)
    }

    fn write_line_break(&mut self) {
        if self.style == JsonStyle::Pretty {
            self.out.push('\n');
            self.out.extend(std::iter::repeat_n("  ", self.depth));
        }
    }

    fn write_text(&mut self, text: &str) {
        self.out.push('"');
        for c in text.chars() {
            match c {
                '"' | '\\' => self.out.extend(['\\', c]),
                '\u{8}' => self.out.push_str("\\b"),
                '\u{C}' => self.out.push_str("\\f"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                '<' | '>' | '&' if self.style == JsonStyle::Raw => self.out.push(c),
                '\0'..='\u{1F}' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                    self.out.push_str(&format!("\\u{:04x}", u32::from(c)));
                }
                c => self.out.push(c),
            }
        }
        self.out.push('"');
    }
}

/// Formats a float as ECMAScript does: with an exponent below 1e-6 and from 1e21 on.
fn format_float(number: f64) -> String {
    let size = number.abs();
    if size == 0.0 || (1e-6..1e21).contains(&size) {
        return number.to_string();
    }
    let text = format!("{number:e}");
    match text.split_once('e') {
        Some((digits, exponent)) if !exponent.starts_with('-') => format!("{digits}e+{exponent}"),
        _ => text,
    }
}
