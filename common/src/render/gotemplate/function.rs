//! Functions of templates: what they are called with, what they give back, and which there are.
//!
//! A function is a row of a table: its name, the types of its parameters and the code. The executor checks number and
//! types of arguments as Go does before it calls, so that `trunc .n "x"` fails at `.n` where `.n` is an int64 of the data
//! (Go converts constants, but no values), and `upper .nope` fails at `.nope`.

mod arguments;

pub use arguments::Arguments;

use super::value::{MAX_DEPTH, MAX_TEXT, Value};
use super::{builtins, functions};
use crate::render::registry::Registry;

/// A function.
#[derive(Debug)]
pub struct Function {
    /// As templates call it.
    pub name: &'static str,
    /// What it needs, in order.
    pub parameters: &'static [Parameter],
    /// The type of any number of further arguments (Go's `...T`).
    pub rest: Option<Parameter>,
    /// The code. It is only called with arguments that fit the parameters.
    pub run: fn(&mut Context<'_>, Arguments<'_>) -> Result<Value, FunctionError>,
}

/// Go's type of a parameter. A constant becomes a value of that type; a value must have it already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// `interface {}`: anything, nil too.
    Any,
    /// bool
    Bool,
    /// int
    Int,
    /// int64
    Int64,
    /// float64
    Float,
    /// string
    Text,
    /// `[]string`; nil is the empty list.
    Texts,
    /// `[]interface {}`; nil is the empty list.
    List,
    /// `map[string]interface {}`; a missing key comes as [`Value::Nil`], which reads as an empty dict and cannot be set.
    Dict,
    /// `*semver.Version`
    Version,
}

/// What a function may use besides its arguments.
#[derive(Debug)]
pub struct Context<'a> {
    /// Instead of the registry of every image: `Image`.
    pub registry: Option<&'a Registry>,
    /// Bytes that functions may still make.
    pub(super) bytes: usize,
    /// Bytes that functions may still read.
    pub(super) work: usize,
}

/// Which functions a template has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionSet {
    /// Go's own.
    Core,
    /// sprig's text functions, then Go's own.
    Sprig,
    /// KKP's `Image`, `join` and `semverCompare`, then as [`FunctionSet::Sprig`].
    Kkp,
}

/// Why a function has no result. The executor adds the function's name and the place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FunctionError(String);

impl Function {
    /// A function with exactly `parameters`.
    #[must_use]
    pub const fn new(
        name: &'static str,
        parameters: &'static [Parameter],
        run: fn(&mut Context<'_>, Arguments<'_>) -> Result<Value, FunctionError>,
    ) -> Self {
        Self {
            name,
            parameters,
            rest: None,
            run,
        }
    }

    /// A function with `parameters` and any number of further arguments of type `rest`.
    #[must_use]
    pub const fn variadic(
        name: &'static str,
        parameters: &'static [Parameter],
        rest: Parameter,
        run: fn(&mut Context<'_>, Arguments<'_>) -> Result<Value, FunctionError>,
    ) -> Self {
        Self {
            name,
            parameters,
            rest: Some(rest),
            run,
        }
    }
}

impl FunctionSet {
    /// The function `name` of this set: what an addon's set adds wins over sprig's, sprig's over Go's.
    #[must_use]
    pub fn find(self, name: &str) -> Option<&'static Function> {
        let tables: &[&[&'static [Function]]] = match self {
            Self::Core => &[&[builtins::BUILTINS]],
            Self::Sprig => &[functions::SPRIG, &[builtins::BUILTINS]],
            Self::Kkp => &[functions::KKP, functions::SPRIG, &[builtins::BUILTINS]],
        };
        let all = tables
            .iter()
            .flat_map(|set| set.iter())
            .flat_map(|table| table.iter());
        let mut named = all.filter(|function| function.name == name);
        named.next()
    }
}

impl Context<'_> {
    /// Asks before a result is made that can be much larger than the arguments (`repeat`, `indent`, `until`): at most
    /// [`MAX_TEXT`] bytes at once, and a limited number in the whole rendering. An item of a list counts as 32 bytes.
    ///
    /// # Errors
    /// It would be too large.
    pub fn reserve(&mut self, bytes: usize) -> Result<(), FunctionError> {
        let left = self.bytes.checked_sub(bytes);
        match left {
            Some(left) if bytes <= MAX_TEXT => {
                self.bytes = left;
                Ok(())
            }
            _ => Err(FunctionError::too_long()),
        }
    }

    /// Counts bytes that a function reads: a loop over a long text, or over all items of a long list, ends.
    pub(super) fn work(&mut self, bytes: usize) -> Result<(), FunctionError> {
        let left = self.work.checked_sub(bytes);
        self.work = left.ok_or_else(FunctionError::too_much)?;
        Ok(())
    }

    /// Go's deep equality, where every value that is looked at counts.
    pub(super) fn deep_equal(&mut self, a: &Value, b: &Value) -> Result<bool, FunctionError> {
        a.deep_equal(b, &mut self.work)
    }
}

impl FunctionError {
    /// An error in the function's own words.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    /// A value nested deeper than [`MAX_DEPTH`].
    #[must_use]
    pub fn too_deep() -> Self {
        Self(format!(
            "a value is nested deeper than {MAX_DEPTH} levels, or holds itself"
        ))
    }

    /// A rendering whose functions read too much.
    #[must_use]
    pub fn too_much() -> Self {
        Self("the functions of the templates read too much: does a loop compare long texts or lists?".to_owned())
    }

    /// A text longer than [`MAX_TEXT`].
    #[must_use]
    pub fn too_long() -> Self {
        Self(format!("it would make more than {} MiB", MAX_TEXT >> 20))
    }
}
