//! Values as Go's text/template sees them: with Go's types, because templates can tell an `int` from an `int64`, a missing
//! key from a null, and a pointer to false from false (`golden/kkp/README.md`, "TemplateData").
//!
//! Values are cheap to clone: texts and lists are shared, and a [`Dict`] is shared AND mutable, as Go's maps are.
//! Every walk over a value is bounded by [`MAX_DEPTH`], for `set` can make a dict that holds itself.
//!
//! Texts are UTF-8. Go's are bytes; what would leave UTF-8 (half a character, binary data) is an error here.

mod compare;
mod dict;
pub mod hexadecimal;
mod list;
pub mod number;
mod print;
mod record;
mod version;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::rc::Rc;

pub use dict::Dict;
pub use list::List;
pub use record::{Record, Shape};
pub use version::Version;

/// How deep values may be nested where they are printed, compared or copied.
pub const MAX_DEPTH: usize = 200;
/// Bytes of one text that a function may make.
pub const MAX_TEXT: usize = 64 << 20;

/// One value. The names in the comments are Go's types.
#[derive(Clone, Debug)]
pub enum Value {
    /// What a key that is not there gives: it prints as `<no value>`. Functions never see it: they get [`Value::Nil`].
    Missing,
    /// A key that is there and null; nil.
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
    List(List),
    /// A map whose keys are strings.
    Dict(Dict),
    /// A struct.
    Record(Rc<Record>),
    /// `*semver.Version`
    Version(Rc<Version>),
    /// A pointer: what it points to decides nothing about its truth.
    Pointer(Pointer),
}

/// A pointer, or nil of its type.
#[derive(Clone, Debug)]
pub enum Pointer {
    /// `*bool`
    Bool(Option<bool>),
    /// `*string`
    Text(Option<Rc<str>>),
}

/// The type of the elements of a list or a dict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// interface {}: whatever JSON and `list` and `dict` hold
    Any,
    /// string
    Text,
    /// int
    Int,
    /// `[]interface {}`
    List,
    /// A struct; [`Shape::Empty`] makes a dict a set of names that has the method `Has`.
    Record(Shape),
}

impl Value {
    /// A text.
    #[must_use]
    pub fn text(text: impl Into<Rc<str>>) -> Self {
        Self::Text(text.into())
    }

    /// A list of whatever: `[]interface {}`.
    #[must_use]
    pub fn list(items: Vec<Self>) -> Self {
        Self::List(List::new(Element::Any, items))
    }

    /// A list of texts: `[]string`.
    #[must_use]
    pub fn texts<T: Into<Rc<str>>>(items: impl IntoIterator<Item = T>) -> Self {
        let items = items.into_iter().map(Self::text).collect();
        Self::List(List::new(Element::Text, items))
    }

    /// Whether it is missing, null or a nil pointer.
    #[must_use]
    pub fn is_nil(&self) -> bool {
        match self {
            Self::Missing | Self::Nil => true,
            Self::Pointer(pointer) => pointer.target().is_none(),
            _ => false,
        }
    }

    /// Go's truth: not the zero value of its type; a struct and a pointer to anything are true.
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
            Self::Pointer(_) => !self.is_nil(),
        }
    }

    /// What a pointer points to; anything else itself.
    #[must_use]
    pub fn follow(&self) -> Cow<'_, Self> {
        match self {
            Self::Pointer(pointer) => Cow::Owned(pointer.target().unwrap_or(Self::Nil)),
            other => Cow::Borrowed(other),
        }
    }

    /// Go's name of its type, as `%T` and `typeOf` print it.
    #[must_use]
    pub fn type_name(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Missing | Self::Nil => "<nil>",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Int64(_) => "int64",
            Self::Uint64(_) => "uint64",
            Self::Byte(_) => "uint8",
            Self::Float(_) => "float64",
            Self::Complex(..) => "complex128",
            Self::Text(_) => "string",
            Self::List(list) => return Cow::Owned(format!("[]{}", list.element().type_name())),
            Self::Dict(dict) => {
                return Cow::Owned(format!("map[string]{}", dict.element().type_name()));
            }
            Self::Record(record) => record.shape().type_name(),
            Self::Version(_) => "*semver.Version",
            Self::Pointer(Pointer::Bool(_)) => "*bool",
            Self::Pointer(Pointer::Text(_)) => "*string",
        })
    }

    /// Go's name of its kind, as `kindOf` prints it.
    #[must_use]
    pub fn kind_name(&self) -> &'static str {
        match self {
            Self::Missing | Self::Nil => "invalid",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Int64(_) => "int64",
            Self::Uint64(_) => "uint64",
            Self::Byte(_) => "uint8",
            Self::Float(_) => "float64",
            Self::Complex(..) => "complex128",
            Self::Text(_) => "string",
            Self::List(_) => "slice",
            Self::Dict(_) => "map",
            Self::Record(_) => "struct",
            Self::Version(_) | Self::Pointer(_) => "ptr",
        }
    }
}

impl Pointer {
    /// What it points to.
    #[must_use]
    pub fn target(&self) -> Option<Value> {
        match self {
            Self::Bool(target) => target.map(Value::Bool),
            Self::Text(target) => target.clone().map(Value::Text),
        }
    }
}

impl Element {
    /// The zero value of the type, which `index` gives for a key that is not there.
    #[must_use]
    pub fn zero(self) -> Value {
        match self {
            Self::Any => Value::Nil,
            Self::Text => Value::text(""),
            Self::Int => Value::Int(0),
            Self::List => Value::list(Vec::new()),
            Self::Record(shape) => Value::Record(Rc::new(Record::zero(shape))),
        }
    }

    /// Go's name of the type.
    #[must_use]
    pub fn type_name(self) -> &'static str {
        match self {
            Self::Any => "interface {}",
            Self::Text => "string",
            Self::Int => "int",
            Self::List => "[]interface {}",
            Self::Record(shape) => shape.type_name(),
        }
    }
}
