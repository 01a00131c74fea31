//! JSON, as Go's encoding/json writes and reads it.

use super::super::function::Parameter::{Any, Text};
use super::super::function::{Arguments, Context, Function, FunctionError};
use super::super::value::{Dict, Element, MAX_DEPTH, MAX_TEXT, Value};
use super::{Answer, ITEM, reserve_items};

pub(super) const JSON: &[Function] = &[
    Function::new("fromJson", &[Text], |ctx, args| {
        // What is no JSON is nil.
        Ok(parsed(ctx, args.text(0)?)?.unwrap_or(Value::Nil))
    }),
    Function::new("mustFromJson", &[Text], |ctx, args| {
        parsed(ctx, args.text(0)?)?.map_err(|error| FunctionError::new(error.to_string()))
    }),
    Function::new("toJson", &[Any], |ctx, args| {
        or_empty(ctx, args, Style::Compact)
    }),
    Function::new("mustToJson", &[Any], |ctx, args| {
        written(ctx, args, Style::Compact)
    }),
    Function::new("toPrettyJson", &[Any], |ctx, args| {
        or_empty(ctx, args, Style::Pretty)
    }),
    Function::new("mustToPrettyJson", &[Any], |ctx, args| {
        written(ctx, args, Style::Pretty)
    }),
    Function::new("toRawJson", &[Any], |ctx, args| {
        written(ctx, args, Style::Raw)
    }),
    Function::new("mustToRawJson", &[Any], |ctx, args| {
        written(ctx, args, Style::Raw)
    }),
];

#[derive(Clone, Copy, PartialEq)]
enum Style {
    /// `<`, `>` and `&` escaped.
    Compact,
    /// The same over many lines.
    Pretty,
    /// Nothing escaped for HTML.
    Raw,
}

/// Nothing where it is no JSON; an error where it is too large.
fn parsed(
    ctx: &mut Context<'_>,
    text: &str,
) -> Result<Result<Value, serde_json::Error>, FunctionError> {
    let values = text
        .bytes()
        .filter(|byte| matches!(byte, b',' | b'[' | b'{' | b':'));
    reserve_items(ctx, values.count() + 1, 2 * ITEM)?;
    ctx.reserve(text.len())?;
    let read = serde_json::from_str::<serde_json::Value>(text);
    if let Err(error) = &read
        && error.to_string().starts_with("recursion limit")
    {
        return Err(FunctionError::too_deep());
    }
    Ok(read.map(value))
}

/// Every number is a float64. serde_json reads no deeper than 128 levels.
fn value(json: serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::Nil,
        serde_json::Value::Bool(bool) => Value::Bool(bool),
        serde_json::Value::Number(number) => Value::Float(number.as_f64().unwrap_or_default()),
        serde_json::Value::String(text) => Value::text(text),
        serde_json::Value::Array(items) => Value::list(items.into_iter().map(value).collect()),
        serde_json::Value::Object(fields) => {
            let fields = fields.into_iter();
            let fields = fields.map(|(name, field)| (name.into(), value(field)));
            Value::Dict(Dict::new(Element::Any, fields))
        }
    }
}

fn written(ctx: &mut Context<'_>, args: Arguments<'_>, style: Style) -> Answer {
    let mut writer = Writer::new(style);
    writer.value(args.value(0))?;
    if let Some(value) = writer.not_json {
        return Err(FunctionError::new(format!("JSON has no {value}")));
    }
    ctx.reserve(writer.out.len())?;
    Ok(Value::text(writer.out))
}

/// As [`written`], but nothing for what cannot be JSON.
fn or_empty(ctx: &mut Context<'_>, args: Arguments<'_>, style: Style) -> Answer {
    let mut writer = Writer::new(style);
    writer.value(args.value(0))?;
    if writer.not_json.is_some() {
        writer.out.clear();
    }
    ctx.reserve(writer.out.len())?;
    Ok(Value::text(writer.out))
}

struct Writer {
    out: String,
    style: Style,
    depth: usize,
    /// What JSON has not: a NaN, a complex number.
    not_json: Option<String>,
}

impl Writer {
    fn new(style: Style) -> Self {
        Self {
            out: String::new(),
            style,
            depth: 0,
            not_json: None,
        }
    }

    fn value(&mut self, value: &Value) -> Result<(), FunctionError> {
        if self.depth > MAX_DEPTH {
            return Err(FunctionError::too_deep());
        }
        if self.out.len() > MAX_TEXT {
            return Err(FunctionError::too_long());
        }
        match value.follow().as_ref() {
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

/// As ECMAScript writes it: an exponent below 1e-6 and from 1e21 on.
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
