//! Go's types, of values, parameters, and elements of lists and dicts.

use std::fmt;
use std::rc::Rc;

use super::{Dict, ListValue, PointerValue, StructType, StructValue, Value};

/// A type of Go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// `interface {}`: a value of any type, or nil
    Any,
    /// bool
    Bool,
    /// int
    Int,
    /// int64
    Int64,
    /// uint64
    Uint64,
    /// uint8
    Byte,
    /// float64
    Float,
    /// complex128
    Complex,
    /// string
    Text,
    /// A slice.
    List(&'static Self),
    /// A map with strings as keys.
    Dict(&'static Self),
    /// A struct.
    Record(&'static StructType),
    /// `*semver.Version`
    Version,
    /// A pointer.
    Pointer(&'static Self),
}

impl Type {
    /// Returns the zero value, which `index` gives for a key that does not exist.
    #[must_use]
    pub fn zero(self) -> Value {
        match self {
            Self::Any | Self::Version => Value::Nil,
            Self::Bool => Value::Bool(false),
            Self::Int => Value::Int(0),
            Self::Int64 => Value::Int64(0),
            Self::Uint64 => Value::Uint64(0),
            Self::Byte => Value::Byte(0),
            Self::Float => Value::Float(0.0),
            Self::Complex => Value::Complex(0.0, 0.0),
            Self::Text => Value::text(""),
            Self::List(element) => Value::List(ListValue::new(element, Vec::new())),
            Self::Dict(element) => Value::Dict(Dict::new(element, [])),
            Self::Record(shape) => Value::Record(Rc::new(StructValue::zero(shape))),
            Self::Pointer(to) => Value::Pointer(PointerValue::new(to, None)),
        }
    }

    /// Returns Go's name of the kind, as `kindOf` prints it.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            Self::Any => "interface",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Int64 => "int64",
            Self::Uint64 => "uint64",
            Self::Byte => "uint8",
            Self::Float => "float64",
            Self::Complex => "complex128",
            Self::Text => "string",
            Self::List(_) => "slice",
            Self::Dict(_) => "map",
            Self::Record(_) => "struct",
            Self::Version | Self::Pointer(_) => "ptr",
        }
    }
}

/// Prints the type as `%T` and `typeOf` do.
impl fmt::Display for Type {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => out.write_str("interface {}"),
            Self::List(element) => write!(out, "[]{element}"),
            Self::Dict(element) => write!(out, "map[string]{element}"),
            Self::Record(shape) => out.write_str(shape.type_name),
            Self::Version => out.write_str("*semver.Version"),
            Self::Pointer(to) => write!(out, "*{to}"),
            basic => out.write_str(basic.kind()),
        }
    }
}
