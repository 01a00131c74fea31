//! Prints values: Go's `%v`, and the other verbs of `printf`.

use super::format::FormatFlags;
use super::{MAX_DEPTH, MAX_TEXT, Value};
use crate::function::FunctionError;

impl Value {
    /// Go's `fmt.Sprint` of one value, sprig's `strval`: `map[a:1]`, `[1 <nil>]`, 1e+06. A pointer prints its target (in Go, its address).
    ///
    /// # Errors
    /// A value nested deeper than [`MAX_DEPTH`], or a text longer than [`MAX_TEXT`].
    pub fn to_text(&self) -> Result<String, FunctionError> {
        let mut text = String::new();
        self.print(&mut text)?;
        Ok(text)
    }

    /// [`Value::to_text`], appended to `out`.
    ///
    /// # Errors
    /// As [`Value::to_text`].
    pub fn print(&self, out: &mut String) -> Result<(), FunctionError> {
        self.print_as(out, &FormatFlags::default(), 'v', 0)
    }

    /// Appends the value to `out`, formatted by `verb`.
    pub(crate) fn print_as(
        &self,
        out: &mut String,
        format: &FormatFlags,
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
            format.text(out, &self.type_name());
            return Ok(());
        }
        if let Some(number) = self.integer() {
            match verb {
                'v' | 'd' | 'b' | 'o' | 'O' | 'x' | 'X' => format.integer(out, number, verb),
                'c' => format.character(out, number),
                'q' => format.quoted_character(out, number),
                'U' => format.unicode(out, number),
                _ => return self.bad_verb(out, format, verb),
            }
            return Ok(());
        }
        let print = |out: &mut String, value: &Self| value.print_as(out, format, verb, depth + 1);
        match (self, verb) {
            // Inside of lists and dicts, nil prints as nil for every verb.
            (Self::Missing | Self::Nil, _) if depth > 0 => {
                out.push_str(if format.go_syntax {
                    "interface {}(nil)"
                } else {
                    "<nil>"
                });
            }
            (Self::Missing | Self::Nil, 'v') => format.pad(out, "<nil>"),
            (Self::Bool(value), 'v' | 't') => {
                format.pad(out, if *value { "true" } else { "false" });
            }
            (Self::Float(value), 'v' | 'e' | 'E' | 'f' | 'F' | 'g' | 'G') => {
                format.float(out, *value, verb);
            }
            (Self::Complex(real, imaginary), 'v' | 'e' | 'E' | 'f' | 'F' | 'g' | 'G') => {
                format.complex(out, *real, *imaginary, verb);
            }
            (Self::Text(text), _) if print_text(out, text, format, verb) => {}
            (Self::Version(version), _) if print_text(out, &version.to_string(), format, verb) => {}
            (Self::List(list), _) => {
                self.print_nested(out, format, ["[", "]"], list.iter(), print)?;
            }
            (Self::Dict(dict), _) => {
                let entries = dict.entries();
                self.print_nested(out, format, ["map[", "]"], entries, |out, (key, value)| {
                    print(out, &Self::Text(key))?;
                    out.push(':');
                    print(out, &value)
                })?;
            }
            (Self::Record(record), _) => {
                let fields = record.fields();
                self.print_nested(out, format, ["{", "}"], fields, |out, (name, value)| {
                    if format.names || format.go_syntax {
                        out.extend([name, ":"]);
                    }
                    print(out, value)
                })?;
            }
            (Self::Pointer(pointer), _) => match pointer.target() {
                Some(target) => print(out, target)?,
                None if verb == 'v' => format.pad(out, "<nil>"),
                None => return self.bad_verb(out, format, verb),
            },
            _ => return self.bad_verb(out, format, verb),
        }
        Ok(())
    }

    /// Appends `items` between brackets; in Go syntax between braces, after the type.
    fn print_nested<T>(
        &self,
        out: &mut String,
        format: &FormatFlags,
        [open, close]: [&str; 2],
        items: impl IntoIterator<Item = T>,
        print: impl Fn(&mut String, T) -> Result<(), FunctionError>,
    ) -> Result<(), FunctionError> {
        let (separator, close) = if format.go_syntax {
            out.extend([&*self.type_name(), "{"]);
            (", ", "}")
        } else {
            out.push_str(open);
            (" ", close)
        };
        for (index, item) in items.into_iter().enumerate() {
            if index > 0 {
                out.push_str(separator);
            }
            print(out, item)?;
        }
        out.push_str(close);
        Ok(())
    }

    /// Appends `%!d(string=x)`.
    fn bad_verb(
        &self,
        out: &mut String,
        format: &FormatFlags,
        verb: char,
    ) -> Result<(), FunctionError> {
        out.extend(["%!", verb.encode_utf8(&mut [0; 4]), "("]);
        self.print_with_type(out, format)?;
        out.push(')');
        Ok(())
    }

    /// Appends `string=x`, or `<nil>`.
    pub(crate) fn print_with_type(
        &self,
        out: &mut String,
        format: &FormatFlags,
    ) -> Result<(), FunctionError> {
        if matches!(self, Self::Missing | Self::Nil) {
            out.push_str("<nil>");
            return Ok(());
        }
        out.extend([&*self.type_name(), "="]);
        self.print_as(out, format, 'v', 0)
    }
}

/// Appends a text. Returns whether `verb` is one for texts.
fn print_text(out: &mut String, text: &str, format: &FormatFlags, verb: char) -> bool {
    match verb {
        'v' if format.go_syntax => format.quoted(out, text),
        'v' | 's' => format.text(out, text),
        'q' => format.quoted(out, text),
        'x' | 'X' => format.bytes(out, text, verb),
        _ => return false,
    }
    true
}
