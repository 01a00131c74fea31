//! Compares values: `eq`, `lt` and sprig's `deepEqual`.

use std::cmp::Ordering;

use super::{Dict, MAX_DEPTH, Value};
use crate::function::FunctionError;

/// Bytes that a compared value counts, in addition to its text.
const COMPARED: usize = 32;

impl Value {
    /// Go's `eq a b`. Numbers of different types cannot be compared, except for whole numbers with and without sign. Nil equals nil.
    ///
    /// # Errors
    /// The types cannot be compared.
    pub fn equals(&self, other: &Self) -> Result<bool, FunctionError> {
        if let (Some(a), Some(b)) = (self.integer(), other.integer()) {
            return Ok(a == b);
        }
        Ok(match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a == b,
            (Self::Complex(a, b), Self::Complex(c, d)) => a == c && b == d,
            (Self::Text(a), Self::Text(b)) => a == b,
            (Self::Missing | Self::Nil, _) | (_, Self::Missing | Self::Nil) => {
                self.is_nil() && other.is_nil()
            }
            (Self::Version(a), Self::Version(b)) => std::rc::Rc::ptr_eq(a, b),
            (a, b) if a.is_basic() || b.is_basic() || a.kind_name() != b.kind_name() => {
                return Err(incompatible(a, b));
            }
            (Self::Pointer(_), Self::Pointer(_)) if self.is_nil() || other.is_nil() => {
                self.is_nil() == other.is_nil()
            }
            (a, _) => return Err(format!("non-comparable type {}", a.type_name()).into()),
        })
    }

    /// Orders two values as Go's `lt` and `le`; `None` if one is NaN.
    ///
    /// # Errors
    /// The types have no order, or differ.
    pub fn compare(&self, other: &Self) -> Result<Option<Ordering>, FunctionError> {
        if let (Some(a), Some(b)) = (self.integer(), other.integer()) {
            return Ok(Some(a.cmp(&b)));
        }
        match (self, other) {
            (Self::Float(a), Self::Float(b)) => Ok(a.partial_cmp(b)),
            (Self::Text(a), Self::Text(b)) => Ok(Some(a.cmp(b))),
            (a, b) if a.is_basic() && b.is_basic() && a.kind_name() != b.kind_name() => {
                Err(incompatible(a, b))
            }
            _ => Err("invalid type for comparison".into()),
        }
    }

    /// Go's `reflect.DeepEqual`: same types and same values. An int never equals an int64.
    ///
    /// # Errors
    /// Values nested deeper than [`MAX_DEPTH`], or more bytes to compare than `left`.
    pub fn deep_equal(&self, other: &Self, left: &mut usize) -> Result<bool, FunctionError> {
        deep_equal(self, other, 0, left)
    }

    /// Returns whether the kind is one that Go compares.
    fn is_basic(&self) -> bool {
        match self {
            Self::Bool(_) | Self::Float(_) | Self::Complex(..) | Self::Text(_) => true,
            other => other.integer().is_some(),
        }
    }
}

fn deep_equal(a: &Value, b: &Value, depth: usize, left: &mut usize) -> Result<bool, FunctionError> {
    if depth > MAX_DEPTH {
        return Err(FunctionError::too_deep());
    }
    let cost = match a {
        Value::Text(text) => text.len().saturating_add(COMPARED),
        _ => COMPARED,
    };
    *left = left
        .checked_sub(cost)
        .ok_or_else(FunctionError::too_much_work)?;
    Ok(match (a, b) {
        (Value::Missing | Value::Nil, Value::Missing | Value::Nil) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(a), Value::Int(b)) | (Value::Int64(a), Value::Int64(b)) => a == b,
        (Value::Uint64(a), Value::Uint64(b)) => a == b,
        (Value::Byte(a), Value::Byte(b)) => a == b,
        (Value::Float(a), Value::Float(b)) => a == b,
        (Value::Complex(a, b), Value::Complex(c, d)) => a == c && b == d,
        (Value::Text(a), Value::Text(b)) => a == b,
        (Value::Version(a), Value::Version(b)) => {
            a.version() == b.version() && a.original() == b.original()
        }
        (Value::List(a), Value::List(b)) => {
            a.element() == b.element()
                && a.len() == b.len()
                && all_equal(a.iter().zip(b.iter()), depth, left)?
        }
        (Value::Dict(a), Value::Dict(b)) => dicts_equal(a, b, depth, left)?,
        (Value::Record(a), Value::Record(b)) => {
            let pairs = a.fields().zip(b.fields());
            let pairs = pairs.map(|((_, a), (_, b))| (a, b));
            a.shape() == b.shape() && all_equal(pairs, depth, left)?
        }
        (Value::Pointer(a), Value::Pointer(b)) => match (a.target(), b.target()) {
            (Some(a), Some(b)) => deep_equal(a, b, depth + 1, left)?,
            (None, None) => true,
            _ => false,
        },
        _ => false,
    })
}

/// Returns whether the values of every pair are deeply equal.
fn all_equal<'v>(
    pairs: impl Iterator<Item = (&'v Value, &'v Value)>,
    depth: usize,
    left: &mut usize,
) -> Result<bool, FunctionError> {
    for (a, b) in pairs {
        if !deep_equal(a, b, depth + 1, left)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn dicts_equal(a: &Dict, b: &Dict, depth: usize, left: &mut usize) -> Result<bool, FunctionError> {
    if a.is_same(b) {
        return Ok(true);
    }
    if a.element() != b.element() || a.len() != b.len() {
        return Ok(false);
    }
    // All entries are copied, even if the first ones differ.
    let cost = a.len().saturating_mul(2 * COMPARED);
    *left = left
        .checked_sub(cost)
        .ok_or_else(FunctionError::too_much_work)?;
    let (a, b) = (a.entries(), b.entries());
    let keys = a.iter().map(|(key, _)| key.len()).sum();
    *left = left
        .checked_sub(keys)
        .ok_or_else(FunctionError::too_much_work)?;
    let is_equal = a
        .iter()
        .map(|(key, _)| key)
        .eq(b.iter().map(|(key, _)| key));
    let pairs = a.iter().zip(&b).map(|((_, a), (_, b))| (a, b));
    Ok(is_equal && all_equal(pairs, depth, left)?)
}

fn incompatible(a: &Value, b: &Value) -> FunctionError {
    let (a, b) = (a.type_name(), b.type_name());
    FunctionError::new(format!("incompatible types for comparison: {a} and {b}"))
}
