//! `html`, `js` and `urlquery`.

use std::fmt::Write as _;

use super::print;
use crate::function::{Arguments, FunctionContext, FunctionResult};
use crate::value::Value;
use crate::value::format::is_printable;

pub(super) fn html(_: &mut FunctionContext, arguments: Arguments<'_>) -> FunctionResult {
    escape(arguments, |out, c| match c {
        '\0' => out.push('\u{fffd}'),
        '"' => out.push_str("&#34;"),
        '\'' => out.push_str("&#39;"),
        '&' => out.push_str("&amp;"),
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        c => out.push(c),
    })
}

pub(super) fn js(_: &mut FunctionContext, arguments: Arguments<'_>) -> FunctionResult {
    escape(arguments, |out, c| match c {
        '\\' => out.push_str("\\\\"),
        '\'' => out.push_str("\\'"),
        '"' => out.push_str("\\\""),
        '<' | '>' | '&' | '=' | '\0'..='\x1f' => unicode(out, c),
        c if c.is_ascii() || is_printable(c) => out.push(c),
        c => unicode(out, c),
    })
}

/// `\u000A`
fn unicode(out: &mut String, c: char) {
    // Writing to a String cannot fail.
    let _ = write!(out, "\\u{:04X}", u32::from(c));
}

/// Go's `url.QueryEscape`.
pub(super) fn urlquery(_: &mut FunctionContext, arguments: Arguments<'_>) -> FunctionResult {
    escape(arguments, |out, c| match c {
        ' ' => out.push('+'),
        'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' | '.' | '~' => out.push(c),
        c => {
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    })
}

/// Prints all arguments as `print` does, except that nil prints as in actions, and escapes every character with `each`.
fn escape(arguments: Arguments<'_>, each: fn(&mut String, char)) -> FunctionResult {
    let printable = |value: &Value| match value {
        Value::Nil => Value::text("<no value>"),
        value => value.clone(),
    };
    let printable: Vec<Value> = arguments.rest(0).iter().map(printable).collect();
    let text = print(Arguments::new(&printable))?;
    let mut out = String::with_capacity(text.len());
    text.chars().for_each(|c| each(&mut out, c));
    Ok(Value::text(out))
}
