//! Functions of templates, their arguments and their results.
//!
//! A function is a row of a table: its name, the types of its parameters and the code. Before a call, the executor checks the number and
//! the types of arguments as Go does: `trunc .n "x"` fails at `.n` if `.n` is an int64 of the data (Go converts constants, but not values),
//! and `upper .nope` fails at `.nope`.

mod arguments;

use std::fmt;

pub use arguments::Arguments;

use crate::builtins::BUILTINS;
use crate::limits::StopFlag;
use crate::value::{MAX_DEPTH, MAX_TEXT, Type, Value};

/// The result of a function.
pub type FunctionResult = Result<Value, FunctionError>;

/// The code of a function. The executor calls it only with arguments that fit the parameters.
pub type FunctionCode<'f> = dyn Fn(&mut FunctionContext, Arguments<'_>) -> FunctionResult + 'f;

/// A function that templates can call.
#[derive(Clone, Copy)]
pub struct Function<'f> {
    /// Its name in templates.
    pub(crate) name: &'f str,
    /// Other names.
    pub(crate) aliases: &'f [&'f str],
    /// Types of the parameters: a constant is converted to the type, a value must already have it.
    pub(crate) parameters: &'f [Type],
    /// The type of any number of further arguments (Go's `...T`).
    pub(crate) rest: Option<Type>,
    pub(crate) code: &'f FunctionCode<'f>,
}

/// The remaining budget of all functions of a rendering.
#[derive(Debug)]
pub struct FunctionContext {
    /// Bytes that functions may still produce.
    pub(crate) bytes: usize,
    /// Bytes that functions may still read.
    pub(crate) work: usize,
    /// Stops the rendering.
    pub(crate) stop: Option<StopFlag>,
}

/// Why a function failed. The executor adds the function's name and the position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FunctionError(String);

/// Finds the function `name`: the first one in `tables`, else Go's own.
pub(crate) fn find_function<'f>(
    tables: &'f [&'f [Function<'f>]],
    name: &str,
) -> Option<&'f Function<'f>> {
    let mut all = tables.iter().copied().chain([BUILTINS]).flatten();
    all.find(|function| function.name == name || function.aliases.contains(&name))
}

impl<'f> Function<'f> {
    /// A function with exactly `parameters`.
    #[must_use]
    pub const fn new(name: &'f str, parameters: &'f [Type], code: &'f FunctionCode<'f>) -> Self {
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
        code: &'f FunctionCode<'f>,
    ) -> Self {
        Self {
            rest: Some(rest),
            ..Self::new(name, parameters, code)
        }
    }

    /// Adds further names.
    #[must_use]
    pub const fn with_aliases(self, aliases: &'f [&'f str]) -> Self {
        Self { aliases, ..self }
    }
}

impl fmt::Debug for Function<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name)
    }
}

impl FunctionContext {
    /// Checks the budget before a function makes a result that can be much larger than its arguments (`repeat`, `indent`, `until`): at most
    /// [`MAX_TEXT`] bytes at once, and a limited number in the whole rendering. A list item counts as 32 bytes.
    ///
    /// # Errors
    /// The result would be too large.
    pub fn reserve(&mut self, bytes: usize) -> Result<(), FunctionError> {
        match self.bytes.checked_sub(bytes) {
            Some(left) if bytes <= MAX_TEXT => {
                self.bytes = left;
                Ok(())
            }
            _ => Err(FunctionError::too_long()),
        }
    }

    /// Counts bytes that a function reads, to bound loops over a long text or a long list.
    pub(crate) fn count_work(&mut self, bytes: usize) -> Result<(), FunctionError> {
        if self.is_stopped() {
            return Err(FunctionError::stopped());
        }
        let left = self.work.checked_sub(bytes);
        self.work = left.ok_or_else(FunctionError::too_much_work)?;
        Ok(())
    }

    /// Returns whether the rendering was asked to end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.as_ref().is_some_and(StopFlag::is_requested)
    }

    /// Go's deep equality. Every compared value counts as work.
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

    /// The error for a value nested deeper than [`MAX_DEPTH`].
    pub(crate) fn too_deep() -> Self {
        Self(format!(
            "a value is nested deeper than {MAX_DEPTH} levels, or holds itself"
        ))
    }

    /// The error for functions that read too much.
    pub(crate) fn too_much_work() -> Self {
        Self::new(
            "the functions of the templates read too much: does a loop, or an expression, go over long texts or lists again and again?",
        )
    }

    /// The error for a rendering that was asked to end.
    pub(crate) fn stopped() -> Self {
        Self::new("the rendering was stopped")
    }

    /// The error for a text longer than [`MAX_TEXT`].
    pub(crate) fn too_long() -> Self {
        Self(format!("it would make more than {} MiB", MAX_TEXT >> 20))
    }

    /// The error for a value that does not have the type `expected`.
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
