//! Structs. The caller describes their types.

use super::{Type, Value};

/// A struct type.
#[derive(Debug, PartialEq, Eq)]
pub struct StructType {
    /// Name in error messages and `%T`.
    pub type_name: &'static str,
    /// Fields in order.
    pub fields: &'static [(&'static str, Type)],
}

/// A struct, with a value for each field of its [`StructType`], in that order.
#[derive(Clone, Debug)]
pub struct StructValue {
    shape: &'static StructType,
    values: Vec<Value>,
}

impl StructValue {
    /// Makes a struct with `values`, one for each field.
    #[must_use]
    pub fn new(shape: &'static StructType, values: Vec<Value>) -> Self {
        Self { shape, values }
    }

    /// Makes a struct whose fields have their zero values.
    #[must_use]
    pub fn zero(shape: &'static StructType) -> Self {
        let values = shape.fields.iter().map(|(_, of)| of.zero()).collect();
        Self { shape, values }
    }

    /// Returns the struct type.
    #[must_use]
    pub fn shape(&self) -> &'static StructType {
        self.shape
    }

    /// Returns the value of `field`, or `None` if there is no such field.
    #[must_use]
    pub fn get(&self, field: &str) -> Option<&Value> {
        let mut fields = self.fields();
        fields.find_map(|(name, value)| (name == field).then_some(value))
    }

    /// Iterates over names and values, in order.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        let names = self.shape.fields.iter().map(|(name, _)| *name);
        names.zip(&self.values)
    }
}
