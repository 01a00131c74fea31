//! How values print: Go's `%v`.

use super::{MAX_DEPTH, MAX_TEXT, Value, number};
use crate::render::gotemplate::function::FunctionError;

impl Value {
    /// Go's `fmt.Sprint` of one value, sprig's `strval`: `map[a:1]`, `[1 <nil>]`, 1e+06. A pointer prints what it points to
    /// (upstream its address).
    ///
    /// # Errors
    /// Nested deeper than [`MAX_DEPTH`], or longer than [`MAX_TEXT`].
    pub fn to_text(&self) -> Result<String, FunctionError> {
        let mut text = String::new();
        self.print(&mut text)?;
        Ok(text)
    }

    /// [`Value::to_text`], behind what `out` holds already.
    ///
    /// # Errors
    /// As [`Value::to_text`].
    pub fn print(&self, out: &mut String) -> Result<(), FunctionError> {
        self.print_nested(out, 0)
    }

    fn print_nested(&self, out: &mut String, depth: usize) -> Result<(), FunctionError> {
        if depth > MAX_DEPTH {
            return Err(FunctionError::too_deep());
        }
        if out.len() > MAX_TEXT {
            return Err(FunctionError::too_long());
        }
        match self {
            Self::Missing | Self::Nil => out.push_str("<nil>"),
            Self::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Self::Int(value) | Self::Int64(value) => out.push_str(&value.to_string()),
            Self::Uint64(value) => out.push_str(&value.to_string()),
            Self::Byte(value) => out.push_str(&value.to_string()),
            Self::Float(value) => out.push_str(&number::text(*value)),
            Self::Complex(real, imaginary) => out.push_str(&complex(*real, *imaginary)),
            Self::Text(text) => out.push_str(text),
            Self::List(list) => {
                out.push('[');
                for (index, item) in list.iter().enumerate() {
                    if index > 0 {
                        out.push(' ');
                    }
                    item.print_nested(out, depth + 1)?;
                }
                out.push(']');
            }
            Self::Dict(dict) => {
                out.push_str("map[");
                for (index, (key, value)) in dict.entries().iter().enumerate() {
                    if index > 0 {
                        out.push(' ');
                    }
                    out.push_str(key);
                    out.push(':');
                    value.print_nested(out, depth + 1)?;
                }
                out.push(']');
            }
            Self::Record(record) => {
                out.push('{');
                for (index, (_, value)) in record.fields().enumerate() {
                    if index > 0 {
                        out.push(' ');
                    }
                    value.print_nested(out, depth + 1)?;
                }
                out.push('}');
            }
            Self::Version(version) => out.push_str(&version.to_string()),
            Self::Pointer(pointer) => match pointer.target() {
                Some(target) => target.print_nested(out, depth + 1)?,
                None => out.push_str("<nil>"),
            },
        }
        Ok(())
    }
}

/// `(1+2i)`
fn complex(real: f64, imaginary: f64) -> String {
    let (real, imaginary) = (number::text(real), number::text(imaginary));
    let sign = if imaginary.starts_with(['-', '+']) {
        ""
    } else {
        "+"
    };
    format!("({real}{sign}{imaginary}i)")
}
