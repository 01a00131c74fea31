//! JSON as values.

use std::rc::Rc;

use serde_json::{Number, Value as Json};

use super::{Dict, MAX_DEPTH, Type, Value};

/// Data that is nested too deeply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is nested deeper than {MAX_DEPTH} levels")]
pub struct TooDeep;

/// A whole number within 64 bits becomes an int64, any other number a float64, as Kubernetes decodes them.
impl TryFrom<&Json> for Value {
    type Error = TooDeep;

    fn try_from(json: &Json) -> Result<Self, TooDeep> {
        let number = |number: &Number| match number.as_i64() {
            Some(number) => Self::Int64(number),
            None => Self::Float(number.as_f64().unwrap_or_default()),
        };
        value(json, number, 0)
    }
}

impl Value {
    /// As Go's encoding/json decodes JSON: every number becomes a float64.
    pub(crate) fn with_floats(json: &Json) -> Result<Self, TooDeep> {
        let number = |number: &Number| Self::Float(number.as_f64().unwrap_or_default());
        value(json, number, 0)
    }
}

fn value(json: &Json, number: fn(&Number) -> Value, depth: usize) -> Result<Value, TooDeep> {
    if depth > MAX_DEPTH {
        return Err(TooDeep);
    }
    let nested = |json| value(json, number, depth + 1);
    Ok(match json {
        Json::Null => Value::Nil,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(of) => number(of),
        Json::String(text) => Value::text(text.as_str()),
        Json::Array(items) => Value::list(items.iter().map(nested).collect::<Result<_, _>>()?),
        Json::Object(fields) => {
            let mut entries = Vec::with_capacity(fields.len());
            for (name, field) in fields {
                entries.push((Rc::from(name.as_str()), nested(field)?));
            }
            Value::Dict(Dict::new(&Type::Any, entries))
        }
    })
}
