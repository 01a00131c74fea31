//! The arguments of one call.

use std::rc::Rc;

use super::FunctionError;
use crate::value::{Dict, ListValue, SpelledVersion, Type, Value};

/// The arguments of one call. Their number and types fit the function's parameters.
#[derive(Clone, Copy, Debug)]
pub struct Arguments<'a>(&'a [Value]);

impl<'a> Arguments<'a> {
    /// Wraps `values`.
    #[must_use]
    pub fn new(values: &'a [Value]) -> Self {
        Self(values)
    }

    /// Returns argument `index`, or nil if it does not exist.
    #[must_use]
    pub fn value(self, index: usize) -> &'a Value {
        self.0.get(index).unwrap_or(&Value::Nil)
    }

    /// Returns the arguments from `index` on.
    #[must_use]
    pub fn rest(self, index: usize) -> &'a [Value] {
        self.0.get(index..).unwrap_or_default()
    }

    /// The number of arguments.
    #[must_use]
    pub fn len(self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no arguments.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// Returns argument `index` as a text.
    ///
    /// # Errors
    /// The argument has another type, which the function's parameters exclude. This applies to all methods below.
    pub fn text(self, index: usize) -> Result<&'a str, FunctionError> {
        match self.value(index) {
            Value::Text(text) => Ok(text),
            other => Err(FunctionError::wrong_type(other, "string")),
        }
    }

    /// Returns argument `index`, an int or int64.
    pub fn int(self, index: usize) -> Result<i64, FunctionError> {
        match self.value(index) {
            Value::Int(number) | Value::Int64(number) => Ok(*number),
            other => Err(FunctionError::wrong_type(other, "int")),
        }
    }

    /// Returns argument `index`, a float64.
    pub fn float(self, index: usize) -> Result<f64, FunctionError> {
        match self.value(index) {
            Value::Float(number) => Ok(*number),
            other => Err(FunctionError::wrong_type(other, "float64")),
        }
    }

    /// Returns argument `index`, a bool.
    pub fn bool(self, index: usize) -> Result<bool, FunctionError> {
        match self.value(index) {
            Value::Bool(value) => Ok(*value),
            other => Err(FunctionError::wrong_type(other, "bool")),
        }
    }

    /// Returns argument `index`, a list of any type.
    pub fn list(self, index: usize) -> Result<&'a ListValue, FunctionError> {
        match self.value(index) {
            Value::List(list) => Ok(list),
            other => Err(FunctionError::wrong_type(other, "list")),
        }
    }

    /// Returns argument `index`, a dict. Nil becomes an empty dict ([`Arguments::value`] distinguishes the two).
    pub fn dict(self, index: usize) -> Result<Dict, FunctionError> {
        match self.value(index) {
            Value::Dict(dict) => Ok(dict.clone()),
            Value::Nil => Ok(Dict::new(&Type::Any, [])),
            other => Err(FunctionError::wrong_type(other, "map[string]interface {}")),
        }
    }

    /// Returns argument `index`, a version.
    pub fn version(self, index: usize) -> Result<&'a Rc<SpelledVersion>, FunctionError> {
        match self.value(index) {
            Value::Version(version) => Ok(version),
            other => Err(FunctionError::wrong_type(other, "*semver.Version")),
        }
    }
}
