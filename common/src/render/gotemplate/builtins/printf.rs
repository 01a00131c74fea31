//! `printf`: fmt/print.go. Left out are `%p`, and `%b` and `%x` of floats; they print as unknown verbs.

use super::format::Format;
use super::{Arguments, Context, FunctionError, Outcome, Value};
use crate::render::gotemplate::value::{Dict, List, MAX_DEPTH, MAX_TEXT, Pointer};

/// Widths and precisions above it are none.
const MAX_NUMBER: usize = 1_000_000;

pub(super) fn printf(_: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let mut printer = Printer {
        rest: arguments.text(0)?,
        arguments: arguments.rest(1),
        next: 0,
        reordered: false,
        good_index: true,
        out: String::new(),
    };
    printer.print()?;
    Ok(Value::text(printer.out))
}

struct Printer<'a> {
    /// What is left of the format.
    rest: &'a str,
    arguments: &'a [Value],
    /// The argument of the next verb.
    next: usize,
    /// Whether an index like `[2]` was met: then nobody counts what was left over.
    reordered: bool,
    /// Whether the index of this verb exists.
    good_index: bool,
    out: String,
}

impl<'a> Printer<'a> {
    fn print(&mut self) -> Result<(), FunctionError> {
        while let Some((before, after)) = self.rest.split_once('%') {
            self.out.push_str(before);
            self.rest = after;
            self.verb()?;
        }
        self.out.push_str(self.rest);
        if self.reordered || self.next >= self.arguments.len() {
            return Ok(());
        }
        self.out.push_str("%!(EXTRA ");
        for (index, value) in self.arguments.iter().skip(self.next).enumerate() {
            if index > 0 {
                self.out.push_str(", ");
            }
            typed(&mut self.out, value, &Format::default())?;
        }
        self.out.push(')');
        Ok(())
    }

    /// One verb with its flags, of which the `%` is read.
    fn verb(&mut self) -> Result<(), FunctionError> {
        self.good_index = true;
        let mut format = Format::default();
        while let Some(flag) = self.rest.chars().next() {
            match flag {
                '#' => format.sharp = true,
                '0' => format.zero = true,
                '+' => format.plus = true,
                '-' => format.minus = true,
                ' ' => format.space = true,
                _ => break,
            }
            self.skip(1);
        }
        let mut indexed = self.index();
        format.width = self.star_or_number(&mut indexed, &mut format, "%!(BADWIDTH)");
        if self.rest.starts_with('.') && self.rest.len() > 1 {
            self.skip(1);
            if indexed {
                self.good_index = false;
            }
            indexed = self.index();
            let mut unused = Format::default();
            let is_star = self.rest.starts_with('*');
            let precision = self.star_or_number(&mut indexed, &mut unused, "%!(BADPREC)");
            format.precision = match precision {
                // An argument below 0 is none, a missing number is 0.
                Some(_) if unused.minus => {
                    self.out.push_str("%!(BADPREC)");
                    None
                }
                None if !is_star => Some(0),
                precision => precision,
            };
        }
        if !indexed {
            self.index();
        }
        let Some(verb) = self.rest.chars().next() else {
            self.out.push_str("%!(NOVERB)");
            return Ok(());
        };
        self.skip(verb.len_utf8());
        if verb == '%' {
            self.out.push('%');
            return Ok(());
        }
        if !self.good_index {
            self.out
                .extend(["%!", verb.encode_utf8(&mut [0; 4]), "(BADINDEX)"]);
            return Ok(());
        }
        let Some(value) = self.arguments.get(self.next) else {
            self.out
                .extend(["%!", verb.encode_utf8(&mut [0; 4]), "(MISSING)"]);
            return Ok(());
        };
        self.next += 1;
        if verb == 'v' {
            format.go_syntax = std::mem::take(&mut format.sharp);
            format.names = std::mem::take(&mut format.plus);
        }
        value_as(&mut self.out, value, &format, verb, 0)
    }

    /// `[2]`: the number of the next argument.
    fn index(&mut self) -> bool {
        let Some(after) = self.rest.strip_prefix('[') else {
            return false;
        };
        self.reordered = true;
        let Some((number, after)) = after.split_once(']') else {
            self.good_index = false;
            self.skip(1);
            return false;
        };
        self.rest = after;
        let number = number
            .parse::<usize>()
            .ok()
            .and_then(|number| number.checked_sub(1));
        match number.filter(|index| *index < self.arguments.len()) {
            Some(index) => {
                self.next = index;
                true
            }
            None => {
                self.good_index = false;
                number.is_some()
            }
        }
    }

    /// `12`, or `*` for the next argument; a negative one of these sets `minus`.
    fn star_or_number(
        &mut self,
        indexed: &mut bool,
        format: &mut Format,
        bad: &str,
    ) -> Option<usize> {
        if self.rest.starts_with('*') {
            self.skip(1);
            *indexed = false;
            let value = self.arguments.get(self.next).and_then(integer);
            self.next += 1;
            let number = value.filter(|value| value.unsigned_abs() <= MAX_NUMBER as u128);
            let Some(number) = number else {
                self.out.push_str(bad);
                return None;
            };
            if number < 0 {
                format.minus = true;
                format.zero = false;
            }
            return usize::try_from(number.unsigned_abs()).ok();
        }
        let digits = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, after) = self.rest.split_at_checked(digits)?;
        if digits == 0 {
            return None;
        }
        self.rest = after;
        if *indexed {
            self.good_index = false;
        }
        number.parse().ok().filter(|number| *number <= MAX_NUMBER)
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }
}

/// Writes a value as `verb` says.
fn value_as(
    out: &mut String,
    value: &Value,
    format: &Format,
    verb: char,
    depth: usize,
) -> Result<(), FunctionError> {
    if depth > MAX_DEPTH {
        return Err(FunctionError::too_deep());
    }
    if out.len() > MAX_TEXT {
        return Err(FunctionError::too_long());
    }
    if verb == 'T' {
        format.text(out, &value.type_name());
        return Ok(());
    }
    if let Some(number) = integer(value) {
        match verb {
            'v' | 'd' | 'b' | 'o' | 'O' | 'x' | 'X' => format.integer(out, number, verb),
            'c' => format.character(out, number),
            'q' => format.quoted_character(out, number),
            'U' => format.unicode(out, number),
            _ => return bad_verb(out, value, format, verb),
        }
        return Ok(());
    }
    match (value, verb) {
        // Inside of lists and dicts nil prints as nil whatever the verb.
        (Value::Missing | Value::Nil, _) if depth > 0 => {
            out.push_str(if format.go_syntax {
                "interface {}(nil)"
            } else {
                "<nil>"
            });
        }
        (Value::Missing | Value::Nil, 'v') => format.pad(out, "<nil>"),
        (Value::Bool(value), 'v' | 't') => format.pad(out, if *value { "true" } else { "false" }),
        (Value::Float(value), 'v' | 'e' | 'E' | 'f' | 'F' | 'g' | 'G') => {
            format.float(out, *value, verb);
        }
        (Value::Complex(real, imaginary), 'v' | 'e' | 'E' | 'f' | 'F' | 'g' | 'G') => {
            out.push('(');
            format.float(out, *real, verb);
            Format {
                plus: true,
                ..*format
            }
            .float(out, *imaginary, verb);
            out.push_str("i)");
        }
        (Value::Text(text), _) if text_as(out, text, format, verb) => {}
        (Value::Version(version), _) if text_as(out, &version.to_string(), format, verb) => {}
        (Value::List(list), _) => list_as(out, list, format, verb, depth)?,
        (Value::Dict(dict), _) => dict_as(out, dict, format, verb, depth)?,
        (Value::Record(record), _) => {
            if format.go_syntax {
                out.push_str(record.shape().type_name());
            }
            out.push('{');
            for (index, (name, value)) in record.fields().enumerate() {
                if index > 0 {
                    out.push_str(if format.go_syntax { ", " } else { " " });
                }
                if format.names || format.go_syntax {
                    out.extend([name, ":"]);
                }
                value_as(out, value, format, verb, depth + 1)?;
            }
            out.push('}');
        }
        (Value::Pointer(pointer), _) => pointer_as(out, pointer, format, verb, depth)?,
        _ => return bad_verb(out, value, format, verb),
    }
    Ok(())
}

/// Writes a text; whether there is such a verb for it.
fn text_as(out: &mut String, text: &str, format: &Format, verb: char) -> bool {
    match verb {
        'v' if format.go_syntax => format.quoted(out, text),
        'v' | 's' => format.text(out, text),
        'q' => format.quoted(out, text),
        'x' | 'X' => format.bytes(out, text, verb),
        _ => return false,
    }
    true
}

fn list_as(
    out: &mut String,
    list: &List,
    format: &Format,
    verb: char,
    depth: usize,
) -> Result<(), FunctionError> {
    let (open, separator, close) = if format.go_syntax {
        out.extend(["[]", list.element().type_name()]);
        ("{", ", ", "}")
    } else {
        ("[", " ", "]")
    };
    out.push_str(open);
    for (index, item) in list.iter().enumerate() {
        if index > 0 {
            out.push_str(separator);
        }
        value_as(out, item, format, verb, depth + 1)?;
    }
    out.push_str(close);
    Ok(())
}

fn dict_as(
    out: &mut String,
    dict: &Dict,
    format: &Format,
    verb: char,
    depth: usize,
) -> Result<(), FunctionError> {
    let (separator, close) = if format.go_syntax {
        out.extend(["map[string]", dict.element().type_name(), "{"]);
        (", ", "}")
    } else {
        out.push_str("map[");
        (" ", "]")
    };
    for (index, (key, value)) in dict.entries().into_iter().enumerate() {
        if index > 0 {
            out.push_str(separator);
        }
        value_as(out, &Value::Text(key), format, verb, depth + 1)?;
        out.push(':');
        value_as(out, &value, format, verb, depth + 1)?;
    }
    out.push_str(close);
    Ok(())
}

/// What a pointer points to: upstream its address, which nobody wants in a manifest.
fn pointer_as(
    out: &mut String,
    pointer: &Pointer,
    format: &Format,
    verb: char,
    depth: usize,
) -> Result<(), FunctionError> {
    match pointer.target() {
        Some(target) => value_as(out, &target, format, verb, depth + 1),
        None if verb == 'v' => {
            format.pad(out, "<nil>");
            Ok(())
        }
        None => bad_verb(out, &Value::Pointer(pointer.clone()), format, verb),
    }
}

/// `%!d(string=x)`
fn bad_verb(
    out: &mut String,
    value: &Value,
    format: &Format,
    verb: char,
) -> Result<(), FunctionError> {
    out.extend(["%!", verb.encode_utf8(&mut [0; 4]), "("]);
    typed(out, value, format)?;
    out.push(')');
    Ok(())
}

/// `string=x`, `<nil>`
fn typed(out: &mut String, value: &Value, format: &Format) -> Result<(), FunctionError> {
    if matches!(value, Value::Missing | Value::Nil) {
        out.push_str("<nil>");
        return Ok(());
    }
    out.extend([&*value.type_name(), "="]);
    value_as(out, value, format, 'v', 0)
}

fn integer(value: &Value) -> Option<i128> {
    match value {
        Value::Int(number) | Value::Int64(number) => Some((*number).into()),
        Value::Uint64(number) => Some((*number).into()),
        Value::Byte(number) => Some((*number).into()),
        _ => None,
    }
}
