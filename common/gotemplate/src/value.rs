//! Values as Go's text/template sees them. They have Go's types, because templates can distinguish an `int` from an `int64`, a missing key
//! from a null, and a pointer to false from false.
//!
//! Values are cheap to clone: texts and lists are shared, and a [`Dict`] is shared AND mutable, as Go's maps are.
//! Every walk over a value is bounded by [`MAX_DEPTH`], because `set` can put a dict into itself.
//!
//! Texts are UTF-8, while Go's are bytes: a result that would not be UTF-8 (half a character, binary data) is an error.

mod compare;
mod dict;
pub(crate) mod format;
mod from_json;
pub(crate) mod hexadecimal;
mod list;
pub(crate) mod number;
mod print;
mod record;
mod types;
mod version;

#[cfg(test)]
mod tests;

use std::rc::Rc;

pub use dict::Dict;
pub(crate) use from_json::DecodedJson;
pub use from_json::TooDeep;
pub use list::ListValue;
pub use record::{StructType, StructValue};
pub use types::Type;
pub use version::SpelledVersion;

/// Maximum nesting of values that are printed, compared or copied.
pub const MAX_DEPTH: usize = 200;
/// Maximum size of one text that a function may make.
pub const MAX_TEXT: usize = 64 << 20;

/// A value of a template. The names in the comments are Go's types.
#[derive(Clone, Debug)]
pub enum Value {
    /// The value of a key that does not exist. It prints as `<no value>`; functions get [`Value::Nil`] instead.
    Missing,
    /// The value of a key that exists and is null, or nil.
    Nil,
    /// bool
    Bool(bool),
    /// int: constants of templates, indexes, `len`
    Int(i64),
    /// int64: whole numbers of JSON data
    Int64(i64),
    /// uint64: the numbers of a version
    Uint64(u64),
    /// uint8: a byte of a text
    Byte(u8),
    /// float64
    Float(f64),
    /// complex128: real and imaginary part
    Complex(f64, f64),
    /// string
    Text(Rc<str>),
    /// A slice.
    List(ListValue),
    /// A map whose keys are strings.
    Dict(Dict),
    /// A struct.
    Record(Rc<StructValue>),
    /// `*semver.Version`
    Version(Rc<SpelledVersion>),
    /// A pointer. It is true unless it is nil, whatever its target is.
    Pointer(PointerValue),
}

/// A pointer to a value, or a nil pointer. It prints its target.
#[derive(Clone, Debug)]
pub struct PointerValue {
    to: &'static Type,
    target: Option<Rc<Value>>,
}

impl Value {
    /// Makes a text.
    #[must_use]
    pub fn text(text: impl Into<Rc<str>>) -> Self {
        Self::Text(text.into())
    }

    /// Makes a `[]interface {}`.
    #[must_use]
    pub fn list(items: Vec<Self>) -> Self {
        Self::List(ListValue::new(&Type::Any, items))
    }

    /// Makes a `[]string`.
    #[must_use]
    pub fn texts<T: Into<Rc<str>>>(items: impl IntoIterator<Item = T>) -> Self {
        let items = items.into_iter().map(Self::text).collect();
        Self::List(ListValue::new(&Type::Text, items))
    }

    /// Returns whether the value is missing, null or a nil pointer.
    #[must_use]
    pub fn is_nil(&self) -> bool {
        matches!(self.follow(), Self::Missing | Self::Nil)
    }

    /// Go's truth: false for the zero value of its type. Structs and non-nil pointers are true.
    #[must_use]
    pub fn truth(&self) -> bool {
        match self {
            Self::Missing | Self::Nil => false,
            Self::Bool(value) => *value,
            Self::Int(value) | Self::Int64(value) => *value != 0,
            Self::Uint64(value) => *value != 0,
            Self::Byte(value) => *value != 0,
            Self::Float(value) => *value != 0.0,
            Self::Complex(real, imaginary) => *real != 0.0 || *imaginary != 0.0,
            Self::Text(text) => !text.is_empty(),
            Self::List(list) => !list.is_empty(),
            Self::Dict(dict) => !dict.is_empty(),
            Self::Record(_) | Self::Version(_) => true,
            Self::Pointer(pointer) => pointer.target.is_some(),
        }
    }

    /// Returns the target of a pointer, nil for a nil pointer, and any other value itself.
    #[must_use]
    pub fn follow(&self) -> &Self {
        match self {
            Self::Pointer(pointer) => pointer.target().unwrap_or(&Self::Nil),
            other => other,
        }
    }

    /// Returns the value of a whole number of any type.
    #[must_use]
    pub fn integer(&self) -> Option<i128> {
        match self {
            Self::Int(value) | Self::Int64(value) => Some(i128::from(*value)),
            Self::Uint64(value) => Some(i128::from(*value)),
            Self::Byte(value) => Some(i128::from(*value)),
            _ => None,
        }
    }

    /// Returns the type, or `None` for nil.
    #[must_use]
    pub fn type_of(&self) -> Option<Type> {
        Some(match self {
            Self::Missing | Self::Nil => return None,
            Self::Bool(_) => Type::Bool,
            Self::Int(_) => Type::Int,
            Self::Int64(_) => Type::Int64,
            Self::Uint64(_) => Type::Uint64,
            Self::Byte(_) => Type::Byte,
            Self::Float(_) => Type::Float,
            Self::Complex(..) => Type::Complex,
            Self::Text(_) => Type::Text,
            Self::List(list) => Type::List(list.element()),
            Self::Dict(dict) => Type::Dict(dict.element()),
            Self::Record(record) => Type::Record(record.shape()),
            Self::Version(_) => Type::Version,
            Self::Pointer(pointer) => Type::Pointer(pointer.to),
        })
    }

    /// Returns Go's name of the type, as `%T` and `typeOf` print it.
    #[must_use]
    pub fn type_name(&self) -> String {
        let of = self.type_of().map(|of| of.to_string());
        of.unwrap_or_else(|| "<nil>".to_owned())
    }

    /// Returns Go's name of the kind, as `kindOf` prints it.
    #[must_use]
    pub fn kind_name(&self) -> &'static str {
        self.type_of().map_or("invalid", Type::kind)
    }
}

impl PointerValue {
    /// Makes a pointer to `target`, which must be of type `to`.
    #[must_use]
    pub fn new(to: &'static Type, target: Option<Value>) -> Self {
        let target = target.map(Rc::new);
        Self { to, target }
    }

    /// Returns the type of the target.
    #[must_use]
    pub fn to(&self) -> &'static Type {
        self.to
    }

    /// Returns the target.
    #[must_use]
    pub fn target(&self) -> Option<&Value> {
        self.target.as_deref()
    }
}
