//! The arguments of one call.

use std::rc::Rc;

use super::FunctionError;
use crate::value::{Dict, List, Type, Value, Version};

/// The arguments of one call: as many as the function has parameters, of their types.
#[derive(Clone, Copy, Debug)]
pub struct Arguments<'a>(&'a [Value]);

impl<'a> Arguments<'a> {
    /// The arguments `values`.
    #[must_use]
    pub fn new(values: &'a [Value]) -> Self {
        Self(values)
    }

    /// Argument `index`; nil where there is none.
    #[must_use]
    pub fn value(self, index: usize) -> &'a Value {
        self.0.get(index).unwrap_or(&Value::Nil)
    }

    /// The arguments from `index` on.
    #[must_use]
    pub fn rest(self, index: usize) -> &'a [Value] {
        self.0.get(index..).unwrap_or_default()
    }

    /// How many there are.
    #[must_use]
    pub fn len(self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// Argument `index`, a text.
    ///
    /// # Errors
    /// It has another type, which the function's parameters exclude. So for all methods below.
    pub fn text(self, index: usize) -> Result<&'a str, FunctionError> {
        match self.value(index) {
            Value::Text(text) => Ok(text),
            other => Err(FunctionError::wrong_type(other, "string")),
        }
    }

    /// Argument `index`, an int or int64.
    pub fn int(self, index: usize) -> Result<i64, FunctionError> {
        match self.value(index) {
            Value::Int(number) | Value::Int64(number) => Ok(*number),
            other => Err(FunctionError::wrong_type(other, "int")),
        }
    }

    /// Argument `index`, a float64.
    pub fn float(self, index: usize) -> Result<f64, FunctionError> {
        match self.value(index) {
            Value::Float(number) => Ok(*number),
            other => Err(FunctionError::wrong_type(other, "float64")),
        }
    }

    /// Argument `index`, a bool.
    pub fn bool(self, index: usize) -> Result<bool, FunctionError> {
        match self.value(index) {
            Value::Bool(value) => Ok(*value),
            other => Err(FunctionError::wrong_type(other, "bool")),
        }
    }

    /// Argument `index`, a list of any type.
    pub fn list(self, index: usize) -> Result<&'a List, FunctionError> {
        match self.value(index) {
            Value::List(list) => Ok(list),
            other => Err(FunctionError::wrong_type(other, "list")),
        }
    }

    /// Argument `index`, a dict; an empty one for nil ([`Arguments::value`] distinguishes them).
    pub fn dict(self, index: usize) -> Result<Dict, FunctionError> {
        match self.value(index) {
            Value::Dict(dict) => Ok(dict.clone()),
            Value::Nil => Ok(Dict::new(&Type::Any, [])),
            other => Err(FunctionError::wrong_type(other, "map[string]interface {}")),
        }
    }

    /// Argument `index`, a version.
    pub fn version(self, index: usize) -> Result<&'a Rc<Version>, FunctionError> {
        match self.value(index) {
            Value::Version(version) => Ok(version),
            other => Err(FunctionError::wrong_type(other, "*semver.Version")),
        }
    }
}
