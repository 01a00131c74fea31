//! Functions of templates, their arguments and their results.
//!
//! A function is a row of a table: its name, the types of its parameters and the code. The executor checks the number and
//! the types of arguments as Go does before it calls, so that `trunc .n "x"` fails at `.n` where `.n` is an int64 of the
//! data (Go converts constants, but not values), and `upper .nope` fails at `.nope`.

mod arguments;

use std::fmt;

pub use arguments::Arguments;

use crate::builtins::BUILTINS;
use crate::limits::Stop;
use crate::value::{MAX_DEPTH, MAX_TEXT, Type, Value};

/// What a function returns.
pub type FunctionResult = Result<Value, FunctionError>;

/// The code of a function. It is only called with arguments that fit the parameters.
pub type Code<'f> = dyn Fn(&mut Context, Arguments<'_>) -> FunctionResult + 'f;

/// A function.
#[derive(Clone, Copy)]
pub struct Function<'f> {
    /// As templates call it.
    pub(crate) name: &'f str,
    /// Other names of it.
    pub(crate) aliases: &'f [&'f str],
    /// The types of its parameters: a constant is converted to the type, a value must already have it.
    pub(crate) parameters: &'f [Type],
    /// The type of any number of further arguments (Go's `...T`).
    pub(crate) rest: Option<Type>,
    pub(crate) code: &'f Code<'f>,
}

/// The remaining budget of functions.
#[derive(Debug)]
pub struct Context {
    /// Bytes that functions may still make.
    pub(crate) bytes: usize,
    /// Bytes that functions may still read.
    pub(crate) work: usize,
    /// Stops the rendering.
    pub(crate) stop: Option<Stop>,
}

/// Why a function has no result. The executor adds the function's name and the place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FunctionError(String);

/// The function `name`: the first in `tables`, else Go's own.
pub(crate) fn find<'f>(tables: &'f [&'f [Function<'f>]], name: &str) -> Option<&'f Function<'f>> {
    let mut all = tables.iter().copied().chain([BUILTINS]).flatten();
    all.find(|function| function.name == name || function.aliases.contains(&name))
}

impl<'f> Function<'f> {
    /// A function with exactly `parameters`.
    #[must_use]
    pub const fn new(name: &'f str, parameters: &'f [Type], code: &'f Code<'f>) -> Self {
        Self {
            name,
            aliases: &[],
            parameters,
            rest: None,
            code,
        }
    }

    /// A function with `parameters` and any number of further arguments of type `rest`.
    #[must_use]
    pub const fn variadic(
        name: &'f str,
        parameters: &'f [Type],
        rest: Type,
        code: &'f Code<'f>,
    ) -> Self {
        Self {
            rest: Some(rest),
            ..Self::new(name, parameters, code)
        }
    }

    /// The same function under further names.
    #[must_use]
    pub const fn or(self, aliases: &'f [&'f str]) -> Self {
        Self { aliases, ..self }
    }
}

impl fmt::Debug for Function<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name)
    }
}

impl Context {
    /// Checks the budget before a result is made that can be much larger than the arguments (`repeat`, `indent`, `until`): at most
    /// [`MAX_TEXT`] bytes at once, and a limited number in the whole rendering. An item of a list counts as 32 bytes.
    ///
    /// # Errors
    /// It would be too large.
    pub fn reserve(&mut self, bytes: usize) -> Result<(), FunctionError> {
        match self.bytes.checked_sub(bytes) {
            Some(left) if bytes <= MAX_TEXT => {
                self.bytes = left;
                Ok(())
            }
            _ => Err(FunctionError::too_long()),
        }
    }

    /// Counts bytes that a function reads, so that a loop over a long text or a long list ends.
    pub(crate) fn work(&mut self, bytes: usize) -> Result<(), FunctionError> {
        if self.is_stopped() {
            return Err(FunctionError::stopped());
        }
        let left = self.work.checked_sub(bytes);
        self.work = left.ok_or_else(FunctionError::too_much)?;
        Ok(())
    }

    /// Whether the rendering was asked to end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.as_ref().is_some_and(Stop::is_asked)
    }

    /// Go's deep equality; every value that is compared counts as work.
    pub(crate) fn deep_equal(&mut self, a: &Value, b: &Value) -> Result<bool, FunctionError> {
        a.deep_equal(b, &mut self.work)
    }
}

impl FunctionError {
    /// An error with the function's own message.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    /// A value nested deeper than [`MAX_DEPTH`].
    pub(crate) fn too_deep() -> Self {
        Self(format!(
            "a value is nested deeper than {MAX_DEPTH} levels, or holds itself"
        ))
    }

    /// A rendering whose functions read too much.
    pub(crate) fn too_much() -> Self {
        Self::new(
            "the functions of the templates read too much: does a loop, or an expression, go over long texts or lists again and again?",
        )
    }

    /// A rendering that was asked to end.
    pub(crate) fn stopped() -> Self {
        Self::new("the rendering was stopped")
    }

    /// A text longer than [`MAX_TEXT`].
    pub(crate) fn too_long() -> Self {
        Self(format!("it would make more than {} MiB", MAX_TEXT >> 20))
    }

    /// A value of another type than `expected`.
    pub(crate) fn wrong_type(value: &Value, expected: impl fmt::Display) -> Self {
        Self(format!(
            "wrong type for value; expected {expected}; got {}",
            value.type_name()
        ))
    }
}

impl From<String> for FunctionError {
    fn from(message: String) -> Self {
        Self(message)
    }
}

impl From<&str> for FunctionError {
    fn from(message: &str) -> Self {
        Self::new(message)
    }
}
