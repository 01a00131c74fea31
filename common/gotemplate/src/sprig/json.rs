//! JSON, as Go's encoding/json writes and reads it.

use super::{ITEM, reserve_items};
use crate::function::{Arguments, Context, Function, FunctionError, FunctionResult};
use crate::value::Type::{Any, Text};
use crate::value::{Decoded, MAX_DEPTH, MAX_TEXT, Value};

pub(super) const JSON: &[Function<'static>] = &[
    Function::new("fromJson", &[Text], &|ctx, args| {
        // Invalid JSON gives nil.
        Ok(parsed(ctx, args.text(0)?)?.unwrap_or(Value::Nil))
    }),
    Function::new("mustFromJson", &[Text], &|ctx, args| {
        parsed(ctx, args.text(0)?)?.map_err(|error| FunctionError::new(error.to_string()))
    }),
    Function::new("toJson", &[Any], &|ctx, args| {
        Ok(written(ctx, args, Style::Compact)?.unwrap_or_else(|_| Value::text("")))
    }),
    Function::new("mustToJson", &[Any], &|ctx, args| {
        written(ctx, args, Style::Compact)?
    }),
    Function::new("toPrettyJson", &[Any], &|ctx, args| {
        Ok(written(ctx, args, Style::Pretty)?.unwrap_or_else(|_| Value::text("")))
    }),
    Function::new("mustToPrettyJson", &[Any], &|ctx, args| {
        written(ctx, args, Style::Pretty)?
    }),
    Function::new("toRawJson", &[Any], &|ctx, args| {
        written(ctx, args, Style::Raw)?
    })
    .or(&["mustToRawJson"]),
];

#[derive(Clone, Copy, PartialEq)]
enum Style {
    /// `<`, `>` and `&` are escaped.
    Compact,
    /// Like `Compact`, but over several lines.
    Pretty,
    /// No character is escaped for HTML.
    Raw,
}

/// The inner error is one that Go reports as well; the outer error is a limit of this crate.
type Limited = Result<FunctionResult, FunctionError>;

fn parsed(ctx: &mut Context, text: &str) -> Limited {
    let values = text
        .bytes()
        .filter(|byte| matches!(byte, b',' | b'[' | b'{' | b':'));
    reserve_items(ctx, values.count() + 1, 2 * ITEM)?;
    ctx.reserve(text.len())?;
    // serde_json reads at most 128 levels of nesting.
    match serde_json::from_str(text) {
        Ok(Decoded(value)) => Ok(Ok(value)),
        Err(error) => match error.to_string() {
            message if message.starts_with("recursion limit") => Err(FunctionError::too_deep()),
            message => Ok(Err(message.into())),
        },
    }
}

fn written(ctx: &mut Context, args: Arguments<'_>, style: Style) -> Limited {
    let (written, length) = write(args.value(0), style)?;
    // Reserved even if a value at the end cannot be represented in JSON.
    ctx.reserve(length)?;
    Ok(written.map(Value::text))
}

/// Go's `json.Marshal`: compact, with `<`, `>` and `&` escaped.
///
/// # Errors
/// The value cannot be represented in JSON, or is nested too deeply.
pub fn to_json(value: &Value) -> Result<String, FunctionError> {
    write(value, Style::Compact)?.0
}

/// Returns the text, and the number of bytes that were written until a value could not be represented in JSON.
fn write(
    value: &Value,
    style: Style,
) -> Result<(Result<String, FunctionError>, usize), FunctionError> {
    let mut writer = Writer {
        out: String::new(),
        style,
        depth: 0,
        not_json: None,
    };
    writer.value(value)?;
    let length = writer.out.len();
    let written = match writer.not_json {
        Some(value) => Err(format!("JSON has no {value}").into()),
        None => Ok(writer.out),
    };
    Ok((written, length))
}

struct Writer {
    out: String,
    style: Style,
    depth: usize,
    /// The last value that cannot be represented in JSON: a NaN or a complex number.
    not_json: Option<String>,
}

impl Writer {
    fn value(&mut self, value: &Value) -> Result<(), FunctionError> {
        if self.depth > MAX_DEPTH {
            return Err(FunctionError::too_deep());
        }
        if self.out.len() > MAX_TEXT {
            return Err(FunctionError::too_long());
        }
        match value.follow() {
            Value::Missing | Value::Nil => self.out.push_str("null"),
            Value::Float(number) if number.is_finite() => self.out.push_str(&float(*number)),
            number @ (Value::Bool(_)
            | Value::Int(_)
            | Value::Int64(_)
            | Value::Uint64(_)
            | Value::Byte(_)) => number.print(&mut self.out)?,
            Value::Text(text) => self.text(text),
            Value::Version(version) => self.text(&version.to_string()),
            Value::List(list) => self.nested('[', ']', list.iter(), Self::value)?,
            Value::Dict(dict) => {
                self.nested('{', '}', dict.entries(), |writer, (key, value)| {
                    writer.field(&key, &value)
                })?;
            }
            Value::Record(record) => {
                self.nested('{', '}', record.fields(), |writer, (key, value)| {
                    writer.field(key, value)
                })?;
            }
            other @ (Value::Float(_) | Value::Complex(..) | Value::Pointer(_)) => {
                self.not_json = Some(other.to_text()?);
            }
        }
        Ok(())
    }

    fn nested<T>(
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
            self.new_line();
            write(self, item)?;
        }
        self.depth -= 1;
        if !is_empty {
            self.new_line();
        }
        self.out.push(close);
        Ok(())
    }

    fn field(&mut self, key: &str, value: &Value) -> Result<(), FunctionError> {
        self.text(key);
        self.out.push(':');
        if self.style == Style::Pretty {
            self.out.push(' ');
        }
        self.value(value)
    }

    fn new_line(&mut self) {
        if self.style == Style::Pretty {
            self.out.push('\n');
            self.out.extend(std::iter::repeat_n("  ", self.depth));
        }
    }

    fn text(&mut self, text: &str) {
        self.out.push('"');
        for c in text.chars() {
            match c {
                '"' | '\\' => self.out.extend(['\\', c]),
                '\u{8}' => self.out.push_str("\\b"),
                '\u{C}' => self.out.push_str("\\f"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                '<' | '>' | '&' if self.style == Style::Raw => self.out.push(c),
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
fn float(number: f64) -> String {
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
